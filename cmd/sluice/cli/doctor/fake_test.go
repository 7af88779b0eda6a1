package doctor

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fake answers the few requests that the doctor sends, with what the test wants to be wrong.
type fake struct {
	apis     []kmsg.Key
	hangUp   bool     // at once
	hangUpOn kmsg.Key // when this is asked, as a listener does that wants a login first

	mu         sync.Mutex
	brokers    []member
	controller int32
	topics     []kmsg.MetadataResponseTopic
}

// say sets what the fake tells of its cluster. It is broker 1.
func (f *fake) say(brokers []member, controller int32, topics []kmsg.MetadataResponseTopic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.brokers, f.controller, f.topics = brokers, controller, topics
}

func startFake(t *testing.T, f *fake) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.serve(t, l)
	return l.Addr().String()
}

func (f *fake) serve(t *testing.T, l net.Listener) {
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go f.answer(conn)
		}
	}()
}

// answer serves a connection until its peer or the test ends it. The peer is the doctor, which sends no client ids that are null or long.
func (f *fake) answer(conn net.Conn) {
	defer conn.Close()
	for !f.hangUp {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		frame := make([]byte, min(binary.BigEndian.Uint32(size[:]), 1<<20))
		if _, err := io.ReadFull(conn, frame); err != nil || len(frame) < 10 {
			return
		}
		key, version := kmsg.Key(binary.BigEndian.Uint16(frame)), int16(binary.BigEndian.Uint16(frame[2:]))
		request := kmsg.RequestForKey(key.Int16())
		if request == nil || f.hangUpOn == key && key != 0 {
			return
		}
		request.SetVersion(min(version, request.MaxVersion()))
		body := frame[10+int(binary.BigEndian.Uint16(frame[8:])):]
		if request.IsFlexible() {
			body = body[1:] // no tagged fields in the header
		}
		if err := request.ReadFrom(body); err != nil {
			return
		}
		response := f.respond(request)
		answer := slices.Concat([]byte{0, 0, 0, 0}, frame[4:8])
		if response.IsFlexible() && key != kmsg.ApiVersions {
			answer = append(answer, 0)
		}
		answer = response.AppendTo(answer)
		binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

func (f *fake) respond(request kmsg.Request) kmsg.Response {
	f.mu.Lock()
	defer f.mu.Unlock()
	response := request.ResponseKind()
	switch response := response.(type) {
	case *kmsg.ApiVersionsResponse:
		for _, key := range f.apis {
			api := kmsg.NewApiVersionsResponseApiKey()
			api.ApiKey, api.MaxVersion = key.Int16(), kmsg.RequestForKey(key.Int16()).MaxVersion()
			response.ApiKeys = append(response.ApiKeys, api)
		}
	case *kmsg.MetadataResponse:
		id := "fake"
		response.ClusterID, response.ControllerID, response.Topics = &id, f.controller, f.topics
		for _, m := range f.brokers {
			b := kmsg.NewMetadataResponseBroker()
			b.NodeID, b.Host, b.Port = m.id, m.host, m.port
			response.Brokers = append(response.Brokers, b)
		}
	case *kmsg.DescribeConfigsResponse:
		r := kmsg.NewDescribeConfigsResponseResource()
		if request.(*kmsg.DescribeConfigsRequest).Resources[0].ResourceName != "1" {
			r.ErrorCode = kerr.InvalidRequest.Code
		}
		response.Resources = append(response.Resources, r)
	}
	return response
}

func splitPort(t *testing.T, address string) (string, int32) {
	t.Helper()
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return host, int32(port)
}
