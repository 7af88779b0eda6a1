package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"sluice/broker/metrics"
	"sluice/broker/server"
	"sluice/protocol/frame"
	"sluice/replication/metadata"
)

// oneImage is a Controller whose image stays as it is.
type oneImage struct{ image *metadata.Image }

func (o oneImage) Image() *metadata.Image { return o.image }
func (o oneImage) Do(context.Context, metadata.Op) (kmsg.Response, error) {
	return nil, kerr.NotController
}

// frontHandlers are handlers that can serve ApiVersions only.
func frontHandlers() *Handlers {
	machine := metadata.NewMachine(metadata.Settings{ClusterID: "cluster-1"})
	return New(Deps{
		NodeID:     7,
		NowMs:      func() int64 { return 1 },
		Metrics:    metrics.New(metrics.Build{}),
		Controller: oneImage{machine.Image()},
		Features:   []metadata.Feature{{Name: "zeta.version", Min: 0, Max: 2}, {Name: "metadata.version", Min: 7, Max: 33}},
	})
}

// wire is a raw client of handlers behind a real server.
type wire struct {
	t testing.TB
	net.Conn
}

// serve starts a server and returns a dialler.
func serve(t testing.TB, d server.Dispatcher, limits server.Limits) (dial func() wire) {
	t.Helper()
	s := server.New(server.Options{Dispatcher: d, Limits: limits, Listeners: []server.ListenerConfig{{Name: "PLAINTEXT", Addresses: []string{"127.0.0.1:0"}}}})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	s.Serve()
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return func() wire {
		conn, err := net.Dial("tcp", s.Addrs("PLAINTEXT")[0].String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		return wire{t, conn}
	}
}

func (w wire) send(key kmsg.Key, version int16, correlation int32, body []byte) {
	w.t.Helper()
	client := "tester"
	b := frame.AppendRequestHeader(make([]byte, 4), frame.RequestHeader{Key: int16(key), Version: version, CorrelationID: correlation, ClientID: &client})
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	if _, err := w.Write(b); err != nil {
		w.t.Fatal(err)
	}
}

func (w wire) receive() []byte {
	w.t.Helper()
	var size [4]byte
	if _, err := io.ReadFull(w, size[:]); err != nil {
		w.t.Fatal("reading a response:", err)
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(w, b); err != nil {
		w.t.Fatal("reading a response:", err)
	}
	return b
}

// closed reports that the server closed the connection without an answer.
func (w wire) closed() bool {
	n, err := w.Read(make([]byte, 1))
	return n == 0 && err != nil && !os.IsTimeout(err)
}

// apiVersionsResponse reads a response with header version 0.
func (w wire) apiVersionsResponse(version int16, correlation int32) *kmsg.ApiVersionsResponse {
	w.t.Helper()
	b := w.receive()
	if got := int32(binary.BigEndian.Uint32(b)); got != correlation {
		w.t.Fatalf("correlation id %d, want %d", got, correlation)
	}
	response := kmsg.NewPtrApiVersionsResponse()
	response.SetVersion(version)
	if err := response.ReadFrom(b[4:]); err != nil {
		w.t.Fatal(err)
	}
	return response
}

func apiVersionsBody(version int16, change func(*kmsg.ApiVersionsRequest)) []byte {
	request := kmsg.NewPtrApiVersionsRequest()
	request.SetVersion(version)
	request.ClientSoftwareName, request.ClientSoftwareVersion = "tester", "1.0"
	if change != nil {
		change(request)
	}
	return request.AppendTo(nil)
}

// V01: a version of ApiVersions that is not known is answered in version 0 with error 35 and the range of key 18, and the connection goes
// on. The bytes are those that Apache Kafka 4.4.0 sends.
func TestV01_ApiVersionsNewerThanTheBroker(t *testing.T) {
	w := serve(t, frontHandlers(), server.Limits{})()
	w.send(kmsg.ApiVersions, 127, 1, apiVersionsBody(5, func(r *kmsg.ApiVersionsRequest) { r.UnknownTags.Set(99, []byte("later")) }))
	want := []byte{0, 0, 0, 1, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5}
	if got := w.receive(); !bytes.Equal(got, want) {
		t.Fatalf("answer to version 127:\n%x, want\n%x", got, want)
	}
	w.send(kmsg.ApiVersions, -1, 2, nil)
	want[3] = 2
	if got := w.receive(); !bytes.Equal(got, want) {
		t.Fatalf("answer to version -1:\n%x, want\n%x", got, want)
	}
	w.send(kmsg.ApiVersions, 3, 3, apiVersionsBody(3, func(r *kmsg.ApiVersionsRequest) { r.UnknownTags.Set(99, []byte("later")) }))
	if r := w.apiVersionsResponse(3, 3); r.ErrorCode != 0 || len(r.ApiKeys) != len(rows) {
		t.Errorf("version 3: error %d, %d keys", r.ErrorCode, len(r.ApiKeys))
	}
	w.send(kmsg.ApiVersions, 0, 4, []byte("bytes after the body are ignored"))
	if r := w.apiVersionsResponse(0, 4); r.ErrorCode != 0 || len(r.ApiKeys) != len(rows) {
		t.Errorf("version 0: error %d, %d keys", r.ErrorCode, len(r.ApiKeys))
	}
}

// V01: names and versions of client software follow a rule; both or none of cluster and node are given, and they must be ours.
func TestV01_ApiVersionsRequestIsChecked(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, test := range []struct {
		name, version string
		cluster       *string
		node          int32
		want          int16
	}{
		{"apache-kafka-java", "4.4.0", nil, -1, 0},
		{"a", "1", nil, -1, 0},
		{"", "1.0", nil, -1, 42},
		{"x", "", nil, -1, 42},
		{"x", "-bad", nil, -1, 42},
		{"bad.", "1.0", nil, -1, 42},
		{"with space", "1.0", nil, -1, 42},
		{"ünicode", "1.0", nil, -1, 42},
		{"a_b", "1.0", nil, -1, 42},
		{"a--..b", "1.0", nil, -1, 0},
		{"x", "1", text("cluster-1"), 7, 0},
		{"x", "1", text("cluster-1"), 8, 129},
		{"x", "1", text("cluster-2"), 7, 129},
		{"x", "1", text("cluster-1"), -1, 42},
		{"x", "1", nil, 7, 42},
	} {
		w := serve(t, frontHandlers(), server.Limits{})()
		w.send(kmsg.ApiVersions, 5, 1, apiVersionsBody(5, func(r *kmsg.ApiVersionsRequest) {
			r.ClientSoftwareName, r.ClientSoftwareVersion, r.ClusterID, r.NodeID = test.name, test.version, test.cluster, test.node
		}))
		if r := w.apiVersionsResponse(5, 1); r.ErrorCode != test.want || (len(r.ApiKeys) > 0) != (test.want == 0) {
			t.Errorf("%+v: error %d and %d keys", test, r.ErrorCode, len(r.ApiKeys))
		}
	}
}

// Features come sorted; those that may be off are left out before version 4, which could not read them.
func TestApiVersions_Features(t *testing.T) {
	w := serve(t, frontHandlers(), server.Limits{})()
	names := func(r *kmsg.ApiVersionsResponse) (names []string) {
		for _, f := range r.SupportedFeatures {
			names = append(names, fmt.Sprintf("%s %d-%d", f.Name, f.MinVersion, f.MaxVersion))
		}
		return names
	}
	for version, want := range map[int16][]string{3: {"metadata.version 7-33"}, 4: {"metadata.version 7-33", "zeta.version 0-2"}} {
		w.send(kmsg.ApiVersions, version, 1, apiVersionsBody(version, nil))
		r := w.apiVersionsResponse(version, 1)
		if diff := cmp.Diff(want, names(r)); diff != "" {
			t.Errorf("version %d: %s", version, diff)
		}
		if r.FinalizedFeaturesEpoch != -1 || r.ZkMigrationReady {
			t.Errorf("version %d: epoch %d, ready %v", version, r.FinalizedFeaturesEpoch, r.ZkMigrationReady)
		}
	}
}

// Every row is for one key, matches its handler's request, and covers the versions of Apache Kafka 4.4.0.
func TestTable(t *testing.T) {
	seen := map[int16]bool{}
	for _, row := range rows {
		if seen[row.key] {
			t.Errorf("%s has two rows", row.name)
		}
		seen[row.key] = true
		kafka, ok := kafka440[row.key]
		if !ok {
			t.Errorf("%s is not an API of a Kafka 4.4 broker", row.name)
		}
		if row.advertisedMin > kafka[0] || row.max != kafka[1] || row.min > row.max || row.advertisedMin > row.min {
			t.Errorf("%s: versions %d (advertised %d) to %d, Kafka's are %d to %d", row.name, row.min, row.advertisedMin, row.max, kafka[0], kafka[1])
		}
		if _, err := os.Stat(row.file()); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if want := reflect.TypeOf(kmsg.RequestForKey(row.key)); row.request != want {
			t.Errorf("%s: the handler takes %v, want %v", row.name, row.request, want)
		}
	}
}

// What cannot be served ends the connection, with the reason in the log; another connection notices nothing.
func TestDispatch_Hangups(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	logged := make(chan struct{}, 1)
	log := zap.New(core, zap.Hooks(func(zapcore.Entry) error {
		logged <- struct{}{}
		return nil
	}))
	s := server.New(server.Options{Dispatcher: frontHandlers(), Log: log, Listeners: []server.ListenerConfig{{Name: "PLAINTEXT", Addresses: []string{"127.0.0.1:0"}}}})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	s.Serve()
	defer s.Shutdown(context.Background())
	for _, test := range []struct {
		key     kmsg.Key
		version int16
		body    []byte
		reason  string
	}{
		{999, 0, nil, "unknown API key 999"},
		{-5, 0, nil, "unknown API key -5"},
		{kmsg.ControlledShutdown, 1, nil, "unknown API key 7"},
		{kmsg.Produce, 2, nil, "Produce version 2, which is not served (3 to 13 are)"},
		{kmsg.Metadata, 99, []byte{0}, "Metadata version 99, which is not served (0 to 13 are)"},
		{kmsg.Metadata, 1, []byte{0, 0}, "malformed Metadata request, version 1: it ends early, holds an impossible length, or null where none may be"},
	} {
		conn, err := net.Dial("tcp", s.Addrs("PLAINTEXT")[0].String())
		if err != nil {
			t.Fatal(err)
		}
		w := wire{t, conn}
		w.SetDeadline(time.Now().Add(20 * time.Second))
		w.send(kmsg.ApiVersions, 3, 1, apiVersionsBody(3, nil))
		w.apiVersionsResponse(3, 1)
		w.send(test.key, test.version, 1, test.body)
		if !w.closed() {
			t.Errorf("key %d version %d: the connection is not closed", test.key, test.version)
		}
		conn.Close()
		select {
		case <-logged: // which happens after the client sees the end
		case <-time.After(20 * time.Second):
		}
		entries := logs.TakeAll()
		if len(entries) != 1 || entries[0].ContextMap()["reason"] != test.reason || entries[0].ContextMap()["software"] != "tester" {
			t.Errorf("key %d version %d: log %v, want reason %q", test.key, test.version, entries, test.reason)
		}
	}
}

// capture returns an empty request of a live connection, to be filled with bodies.
func capture(t testing.TB) *server.Request {
	t.Helper()
	captured := make(chan *server.Request, 1)
	dial := serve(t, dispatcherFunc(func(r *server.Request) server.Reply {
		captured <- &server.Request{Conn: r.Conn}
		return server.None()
	}), server.Limits{QueuedBytes: 1 << 50})
	dial().send(kmsg.ApiVersions, 0, 1, nil)
	return <-captured
}

type dispatcherFunc func(*server.Request) server.Reply

func (f dispatcherFunc) Dispatch(r *server.Request) server.Reply { return f(r) }

// V33: whatever a body claims to hold, decoding it allocates no more than the bound. Tried with every request in every version, and bodies
// that are empty elements all over, counts that cannot be, and noise.
func TestV33_DecodingIsBounded(t *testing.T) {
	r := capture(t)
	random := rand.New(rand.NewPCG(3, 4))
	bodies := map[string][]byte{
		"zeros":        make([]byte, 256<<10),
		"ones":         bytes.Repeat([]byte{1}, 256<<10),
		"twos":         bytes.Repeat([]byte{2}, 256<<10),
		"huge count":   append([]byte{0x7f, 0xff, 0xff, 0xff}, make([]byte, 60)...),
		"huge compact": append([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, make([]byte, 60)...),
		"exact count":  append([]byte{0, 3, 0xff, 0xfc}, make([]byte, 256<<10-4)...),
		"noise":        noise(random, 64<<10),
	}
	var before, after runtime.MemStats
	eachRequestVersion(func(request kmsg.Request, name string) {
		for kind, body := range bodies {
			if len(body) > 1000 && request.GetVersion() != 0 && request.GetVersion() != request.MaxVersion() {
				continue // the large ones take time
			}
			r.Body = body
			fresh := kmsg.RequestForKey(request.Key())
			fresh.SetVersion(request.GetVersion())
			layoutOf(fresh)
			runtime.ReadMemStats(&before)
			decode(fresh, r)
			runtime.ReadMemStats(&after)
			// kmsg's maps for tagged fields grow by doubling, which allocates about twice what is kept.
			if spent, bound := int(after.TotalAlloc-before.TotalAlloc), 2*(decodedBase+decodedPerByte*len(body)); spent > bound {
				t.Errorf("%s, %s: decoding %d bytes allocated %d", name, kind, len(body), spent)
			}
		}
	})
}

func noise(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// V33: a million tagged fields are refused rather than turned into a map.
func TestV33_MillionTaggedFields(t *testing.T) {
	body := apiVersionsBody(3, nil)
	body = binary.AppendUvarint(body[:len(body)-1], 1_000_000)
	for tag := range uint64(1_000_000) {
		body = append(binary.AppendUvarint(body, tag), 0)
	}
	dial := serve(t, frontHandlers(), server.Limits{})
	w := dial()
	w.send(kmsg.ApiVersions, 3, 1, body)
	if !w.closed() {
		t.Error("the connection is not closed")
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapInuse > 100<<20 {
		t.Errorf("%d bytes in use", m.HeapInuse)
	}
}

// A large honest request is decoded as ever.
func TestDecode_LargeHonestRequest(t *testing.T) {
	r := capture(t)
	request := kmsg.NewPtrOffsetCommitRequest()
	request.SetVersion(9)
	for i := range 50 {
		topic := kmsg.NewOffsetCommitRequestTopic()
		topic.Topic = fmt.Sprint("topic-", i)
		for p := range int32(1000) {
			partition := kmsg.NewOffsetCommitRequestTopicPartition()
			partition.Partition, partition.Offset = p, int64(p)
			topic.Partitions = append(topic.Partitions, partition)
		}
		request.Topics = append(request.Topics, topic)
	}
	r.Body = request.AppendTo(nil)
	got := kmsg.NewPtrOffsetCommitRequest()
	got.SetVersion(9)
	if err := decode(got, r); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Topics[49].Partitions[999], request.Topics[49].Partitions[999]) {
		t.Error("decoded something else")
	}
}

// Error codes are found wherever a response has them.
func TestEachCode(t *testing.T) {
	response := kmsg.NewPtrDescribeConfigsResponse()
	response.Resources = []kmsg.DescribeConfigsResponseResource{{ErrorCode: 3}, {ErrorCode: 0}}
	top := kmsg.NewPtrFetchResponse()
	top.ErrorCode = 70
	top.Topics = []kmsg.FetchResponseTopic{{Partitions: []kmsg.FetchResponseTopicPartition{{ErrorCode: 1}, {}}}}
	for _, test := range []struct {
		response kmsg.Response
		want     []int16
	}{{response, []int16{3, 0}}, {top, []int16{70, 1, 0}}, {kmsg.NewPtrApiVersionsResponse(), []int16{0}}} {
		var got []int16
		eachCode(test.response, func(code int16) { got = append(got, code) })
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%T: %s", test.response, diff)
		}
	}
}

// docs/APIS.md is what the table generates.
func TestDoc_IsFresh(t *testing.T) {
	var b strings.Builder
	if err := WriteDoc(&b); err != nil {
		t.Fatal(err)
	}
	const name = "../../docs/APIS.md"
	if have, err := os.ReadFile(name); err != nil || string(have) != b.String() {
		t.Errorf("%s is stale (%v): run make docs", name, err)
	}
}

// Whatever the key, version and body, a request is decoded or refused within bounds, and never panics.
func FuzzDispatch(f *testing.F) {
	r := capture(f)
	table := make([]row, len(rows))
	for i, row := range rows {
		row.call = func(*Handlers, *Context, kmsg.Request) Reply { return NoReply() }
		table[i] = row
		request := kmsg.RequestForKey(row.key)
		request.SetVersion(row.max)
		f.Add(row.key, row.max, request.AppendTo(nil))
	}
	f.Add(int16(18), int16(127), []byte{1, 2, 3})
	h := frontHandlers()
	h.table = indexRows(table)
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		fresh := server.Request{Conn: r.Conn, Header: frame.RequestHeader{Key: key, Version: version}, Body: body}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h.Dispatch(&fresh)
		runtime.ReadMemStats(&after)
		if spent := int(after.TotalAlloc - before.TotalAlloc); spent > 2*(decodedBase+decodedPerByte*len(body)) {
			t.Errorf("%d bytes allocated for %d", spent, len(body))
		}
	})
}

// BenchmarkApiVersions is the whole way of a small request: socket, dispatch, handler, answer.
func BenchmarkApiVersions(b *testing.B) {
	w := serve(b, frontHandlers(), server.Limits{})()
	w.SetDeadline(time.Time{})
	client := "tester"
	request := frame.AppendRequestHeader(make([]byte, 4), frame.RequestHeader{Key: 18, Version: 127, ClientID: &client})
	binary.BigEndian.PutUint32(request, uint32(len(request)-4))
	reply := make([]byte, 20)
	b.ReportAllocs()
	for b.Loop() {
		w.Write(request)
		io.ReadFull(w, reply)
	}
}
