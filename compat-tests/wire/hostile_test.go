package wire

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

// Bounds that a broker under attack keeps.
const (
	maxDelay  = time.Second // of a request of a client that behaves
	maxGrowth = 32 << 20    // resident bytes, once the attackers are gone
)

// A bystander produces and fetches on a connection of its own while others misbehave, and must not notice.
type bystander struct {
	stop    chan struct{}
	wait    sync.WaitGroup
	rounds  int
	longest time.Duration
}

func startBystander(t *testing.T, address string) *bystander {
	t.Helper()
	c := sluicetest.Dial(t, address)
	topic := fresh("bystander")
	createTopic(t, c, topic, 1)
	b := &bystander{stop: make(chan struct{})}
	timed := func(f func()) {
		start := time.Now()
		f()
		if took := time.Since(start); took > b.longest {
			b.longest = took
		}
	}
	b.wait.Go(func() {
		for offset := int64(0); ; offset++ {
			timed(func() {
				if got := produce(c, topic, 0, batch(t, plain(), values(1000, "v")...)); got.ErrorCode != none || got.BaseOffset != offset {
					t.Errorf("a client that behaves: produce: error %d, offset %d, want %d", got.ErrorCode, got.BaseOffset, offset)
				}
			})
			timed(func() {
				if got := fetch(c, topic, 0, offset); got.ErrorCode != none || got.HighWatermark != offset+1 || len(got.RecordBatches) == 0 {
					t.Errorf("a client that behaves: fetch: error %d, high watermark %d", got.ErrorCode, got.HighWatermark)
				}
			})
			b.rounds++
			select {
			case <-b.stop:
				return
			case <-time.After(time.Millisecond): // it is no load test
			}
		}
	})
	t.Cleanup(b.end)
	return b
}

func (b *bystander) end() {
	select {
	case <-b.stop:
	default:
		close(b.stop)
	}
	b.wait.Wait()
}

// undisturbed ends the bystander and checks how it fared.
func (b *bystander) undisturbed(t *testing.T) {
	t.Helper()
	b.end()
	t.Logf("the client that behaves made %d rounds, the longest request took %v", b.rounds, b.longest)
	if b.longest > maxDelay {
		t.Errorf("a client that behaves waited %v", b.longest)
	}
}

// wantFlat checks that a broker has given back what its attackers made it take.
func wantFlat(t *testing.T, p *sluicetest.Process, before int64) {
	t.Helper()
	const mib = 1 << 20
	peak := p.ResidentBytes()
	sluicetest.Until(t, 20*time.Second, "resident memory below the bound", func() bool { return p.ResidentBytes() < before+maxGrowth })
	t.Logf("resident: %d MiB before, %d MiB at the end, %d MiB after", before/mib, peak/mib, p.ResidentBytes()/mib)
}

// compactHuge is the compact length of an array or string of 2147483647.
var compactHuge = []byte{0x80, 0x80, 0x80, 0x80, 0x08}

// TestV33_ForeignBytes: what is no request ends the connection at once, without an answer and without memory for what it claims to bring.
func TestV33_ForeignBytes(t *testing.T) {
	address := broker(t)
	b := startBystander(t, address)
	before := int64(0)
	if shared.Process != nil {
		before = shared.ResidentBytes()
	}
	plainHuge := binary.BigEndian.AppendUint32(nil, hugeLength)
	pad := make([]byte, 40)
	join := func(parts ...[]byte) []byte {
		var all []byte
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	varint10 := []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}
	for name, bytes := range map[string][]byte{
		"HTTP":                   []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"a TLS hello":            {0x16, 3, 1, 0, 0xf4, 1, 0, 0, 0xf0, 3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		"size -1":                {0xff, 0xff, 0xff, 0xff},
		"size 0":                 {0, 0, 0, 0},
		"size 2147483647":        {0x7f, 0xff, 0xff, 0xff},
		"size 104857601":         {0x06, 0x40, 0, 1},
		"size 7":                 {0, 0, 0, 7, 0, 18, 0, 0, 0, 0, 0},
		"client id too long":     sized([]byte{0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xff, 'x'}),
		"client id of length -2": sized([]byte{0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xfe, 'x'}),

		"Metadata v1, array":       sized(join(header(3, 1, false), plainHuge, pad)),
		"Metadata v12, array":      sized(join(header(3, 12, true), compactHuge, pad)),
		"Metadata v1, string":      sized(join(header(3, 1, false), []byte{0, 0, 0, 1, 0x7f, 0xff}, pad)),
		"Metadata v12, string":     sized(join(header(3, 12, true), []byte{2}, pad[:16], compactHuge, pad)),
		"Metadata v12, varint":     sized(join(header(3, 12, true), varint10, pad)),
		"Metadata v12, tags":       sized(join(header(3, 12, true), []byte{0, 0, 0}, compactHuge)),
		"Metadata v12, a long tag": sized(join(header(3, 12, true), []byte{0, 0, 0, 1, 99}, compactHuge)),
		"a header with many tags":  sized(join(header(3, 12, false), compactHuge, pad)),
		"a header with a varint":   sized(join(header(3, 12, false), varint10, pad)),

		"Produce v3, array":           sized(join(header(0, 3, false), []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1}, plainHuge, pad)),
		"Produce v9, array":           sized(join(header(0, 9, true), []byte{0, 0xff, 0xff, 0, 0, 0, 1}, compactHuge, pad)),
		"Produce v9, records":         sized(join(header(0, 9, true), []byte{0, 0xff, 0xff, 0, 0, 0, 1, 2, 2, 'x', 2, 0, 0, 0, 0}, compactHuge, pad)),
		"CreateTopics v4, array":      sized(join(header(19, 4, false), plainHuge, pad)),
		"CreateTopics v7, array":      sized(join(header(19, 7, true), compactHuge, pad)),
		"JoinGroup v4, metadata":      sized(join(header(11, 4, false), []byte{0, 1, 'g', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'c', 0, 0, 0, 1, 0, 1, 'p'}, plainHuge, pad)),
		"OffsetCommit v2, array":      sized(join(header(8, 2, false), []byte{0, 1, 'g', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, plainHuge, pad)),
		"a key that nobody has":       sized(header(9999, 0, false)),
		"a negative key":              sized(header(-1, 0, false)),
		"a version that nobody has":   sized(join(header(3, 99, true), pad)),
		"a negative version":          sized(join(header(3, -1, false), pad)),
		"a version that was dropped":  sized(join(header(1, 3, false), pad)),
		"an answer instead of a call": sized([]byte{0, 0, 0, 9, 0, 0, 0, 0}),
	} {
		t.Run(name, func(t *testing.T) {
			c := sluicetest.Dial(t, address)
			if _, err := c.Write(bytes); err != nil {
				t.Fatal(err)
			}
			c.WantClosed(5 * time.Second)
		})
	}
	// A million tagged fields are lawful. Apache Kafka answers; so little is told by an answer that a closed connection is as good.
	million := make([]byte, 0, 4<<20)
	million = append(million, 0xc0, 0x84, 0x3d) // 1,000,000
	for i := range 1_000_000 {
		million = append(binary.AppendUvarint(million, uint64(i)), 0)
	}
	for name, frame := range map[string][]byte{
		"a million tagged fields in the header": sized(join(header(3, 12, false), million, []byte{1, 0, 0, 0, 0})),
		"a million tagged fields in the body":   sized(join(header(3, 12, true), []byte{1, 0, 0}, million)),
	} {
		t.Run(name, func(t *testing.T) {
			c := sluicetest.Dial(t, address)
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := c.Write(frame); err != nil {
				return // closed before all was read
			}
			if _, err := c.Read(make([]byte, 4)); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("neither an answer nor the end")
			}
		})
	}
	b.undisturbed(t)
	if shared.Process != nil {
		wantFlat(t, shared.Process, before)
	}
}

// TestV33_HalfAFrameOnManySockets: what has not arrived costs nothing, and does not keep others from being served.
func TestV33_HalfAFrameOnManySockets(t *testing.T) {
	p := own(t)
	b := startBystander(t, p.Address)
	before := p.ResidentBytes()
	half := append([]byte{0x06, 0x40, 0, 0}, header(0, 9, true)...) // of 100 MiB
	var open []net.Conn
	for range 2000 {
		c, err := net.Dial("tcp", p.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(half); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	for _, c := range open[:10] {
		r := &sluicetest.Raw{Conn: c}
		_ = r.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if n, err := r.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	during := p.ResidentBytes() - before
	t.Logf("2,000 connections with half a frame: %d KiB each", during/2000>>10)
	if during > maxGrowth {
		t.Errorf("%d MiB for half a frame on 2,000 connections", during>>20)
	}
	for _, c := range open {
		c.Close()
	}
	b.undisturbed(t)
	wantFlat(t, p, before)
}

// TestV33_ConnectionsPerAddress: the one too many is closed, those that are there work on, and a place that becomes free can be taken.
func TestV33_ConnectionsPerAddress(t *testing.T) {
	p := own(t, "--set", "max.connections.per.ip=20")
	var open []*sluicetest.Raw
	for range 20 {
		c := sluicetest.Dial(t, p.Address)
		metadata(c, 12, false)
		open = append(open, c)
	}
	for range 50 {
		sluicetest.Dial(t, p.Address).WantClosed(5 * time.Second)
	}
	for _, c := range open {
		metadata(c, 12, false)
	}
	open[0].Close()
	sluicetest.Until(t, 5*time.Second, "the free place is given", func() bool {
		c := sluicetest.Dial(t, p.Address)
		c.Send(kmsg.NewPtrMetadataRequest(), 12)
		_, err := c.TryReceive(5 * time.Second)
		return err == nil
	})
	for _, c := range open[1:] {
		metadata(c, 12, false)
	}
}

// TestV33_IdleConnections end after connections.max.idle.ms; one that awaits an answer, or asks now and then, is not idle.
func TestV33_IdleConnections(t *testing.T) {
	const idle = time.Second
	p := own(t, "--set", "connections.max.idle.ms=1000")
	active, waiting := sluicetest.Dial(t, p.Address), sluicetest.Dial(t, p.Address)
	topic := fresh("v33")
	createTopic(t, active, topic, 1)
	poll := fetchRequest(topic, [16]byte{}, 0, 0)
	poll.MaxWaitMillis = 3000
	waiting.Send(poll, 12)

	silent, half := sluicetest.Dial(t, p.Address), sluicetest.Dial(t, p.Address)
	start := time.Now()
	if _, err := half.Write([]byte{0, 0, 0, 100, 0, 3}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 2)
	for name, c := range map[string]*sluicetest.Raw{"a silent connection": silent, "half a frame": half} {
		go func() {
			_ = c.SetReadDeadline(start.Add(10 * time.Second))
			if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				name += " (was not closed)"
			} else if took := time.Since(start); took < idle-50*time.Millisecond || took > 3*idle {
				name += " (closed after " + took.String() + ")"
			} else {
				name = ""
			}
			ended <- name
		}()
	}
	for range 2 {
		for waitingFor := true; waitingFor; {
			select {
			case name := <-ended:
				waitingFor = false
				if name != "" {
					t.Error(name)
				}
			case <-time.After(200 * time.Millisecond):
				metadata(active, 12, false)
			}
		}
	}
	if got := waiting.Receive().(*kmsg.FetchResponse); got.ErrorCode != none {
		t.Errorf("the fetch that waited: error %d", got.ErrorCode)
	}
	if took := time.Since(start); took < 2500*time.Millisecond {
		t.Errorf("the fetch waited only %v", took)
	}
}

// TestV33_ClientThatNeverReads costs what its connection may owe, and no more; others do not wait for it.
func TestV33_ClientThatNeverReads(t *testing.T) {
	p := own(t)
	setup := sluicetest.Dial(t, p.Address)
	topic := fresh("v33")
	createTopic(t, setup, topic, 1)
	if got := produce(setup, topic, 0, batch(t, plain(), values(1000, string(make([]byte, 900_000)))...)); got.ErrorCode != none {
		t.Fatalf("produce: error %d", got.ErrorCode)
	}
	b := startBystander(t, p.Address)
	before := p.ResidentBytes()
	configs := kmsg.NewPtrDescribeConfigsRequest()
	configs.IncludeDocumentation, configs.IncludeSynonyms = true, true
	configs.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1"}}
	for name, req := range map[string]kmsg.Request{
		"Fetch":           fetchRequest(topic, [16]byte{}, 0, 0),
		"ApiVersions":     apiVersions("x", "1"),
		"DescribeConfigs": configs, // a large answer to a short request
	} {
		req.SetVersion(min(req.MaxVersion(), 12))
		frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("wire")).AppendRequest(nil, req, 1)
		for range 10 {
			c := sluicetest.Dial(t, p.Address)
			_ = c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
			sent := 0
			for ; sent < 100_000; sent++ {
				if _, err := c.Write(frame); err != nil {
					if !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("%s: %v", name, err)
					}
					break
				}
			}
		}
	}
	during := p.ResidentBytes() - before
	t.Logf("30 clients that never read: %d MiB", during>>20)
	if limit := int64(30<<20 + maxGrowth); during > limit { // a connection owes at most 1 MiB, but for the last answer
		t.Errorf("%d MiB for 30 clients that never read", during>>20)
	}
	b.undisturbed(t)
}
