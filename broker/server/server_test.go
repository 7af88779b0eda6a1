package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"sluice/protocol/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tests speak to the server with requests of one API key; the fake dispatcher does what the body says.
const testKey, testVersion = 3, 1

type dispatcherFunc func(r *Request) Reply

func (f dispatcherFunc) Dispatch(r *Request) Reply { return f(r) }

// answer is a response that echoes the correlation id and then has body.
func answer(r *Request, body string) Response {
	head := NewBuffer(0)
	head.B = binary.BigEndian.AppendUint32(head.B, uint32(r.Header.CorrelationID))
	head.B = append(head.B, body...)
	return Response{Head: head}
}

// echo answers every request with its own body at once.
var echo = dispatcherFunc(func(r *Request) Reply { return Now(answer(r, string(r.Body))) })

// startTCP serves d on loopback and returns the address.
func startTCP(t testing.TB, d Dispatcher, limits Limits) (*Server, string) {
	t.Helper()
	return startLogged(t, d, limits, zap.NewNop())
}

func startLogged(t testing.TB, d Dispatcher, limits Limits, log *zap.Logger) (*Server, string) {
	t.Helper()
	s := New(Options{Dispatcher: d, Limits: limits, Log: log, Listeners: []ListenerConfig{{Name: "PLAINTEXT", Addresses: []string{"127.0.0.1:0"}}}})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	s.Serve()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error("shutdown:", err)
		}
	})
	return s, s.Addrs("PLAINTEXT")[0].String()
}

// client is the other end of a connection.
type client struct {
	t testing.TB
	net.Conn
}

func dial(t testing.TB, address string) client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	return client{t, conn}
}

func requestBytes(correlation int32, body string) []byte {
	b := frame.AppendRequestHeader(make([]byte, frame.LengthBytes), frame.RequestHeader{Key: testKey, Version: testVersion, CorrelationID: correlation})
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-frame.LengthBytes))
	return b
}

func (c client) send(correlation int32, body string) {
	c.t.Helper()
	if _, err := c.Write(requestBytes(correlation, body)); err != nil {
		c.t.Fatal(err)
	}
}

func (c client) receive() (correlation int32, body string) {
	c.t.Helper()
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		c.t.Fatal("reading an answer:", err)
	}
	rest := make([]byte, binary.BigEndian.Uint32(head[:])-4)
	if _, err := io.ReadFull(c, rest); err != nil {
		c.t.Fatal("reading an answer:", err)
	}
	return int32(binary.BigEndian.Uint32(head[4:])), string(rest)
}

func (c client) expect(correlation int32, body string) {
	c.t.Helper()
	if gotCorrelation, got := c.receive(); gotCorrelation != correlation || got != body {
		c.t.Fatalf("answer %d %q, want %d %q", gotCorrelation, got, correlation, body)
	}
}

// expectClosed checks that the server closes the connection and sends nothing before.
func (c client) expectClosed() {
	c.t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || os.IsTimeout(err) {
		c.t.Fatalf("read %d bytes, %v; want a closed connection", n, err)
	}
}

// A request is answered with its own correlation id, one after the other and several at once.
func TestServer_AnswersRequests(t *testing.T) {
	_, address := startTCP(t, echo, Limits{})
	c := dial(t, address)
	c.send(1, "a")
	c.expect(1, "a")
	c.Write(append(append(requestBytes(2, "b"), requestBytes(3, "")...), requestBytes(4, "d")...))
	c.expect(2, "b")
	c.expect(3, "")
	c.expect(4, "d")
}

// Frames of every size around the steps of reading arrive whole, and so do answers around the sizes that are copied, gathered and sent.
func TestServer_FrameSizes(t *testing.T) {
	_, address := startTCP(t, echo, Limits{})
	c := dial(t, address)
	for i, size := range []int{0, 1, 2047, 2048, 2049, 4081, 4082, 4083, 4092, 4096, 5000, 16384, 32768, 32769, 300_000, 3 << 20} {
		body := bytes.Repeat([]byte{byte('a' + i)}, size)
		c.send(int32(i), string(body))
		c.expect(int32(i), string(body))
	}
}

// V03: replies come strictly in request order, the later ones wait for those before; a request without reply takes no place.
func TestV03_RepliesInRequestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := newPipeListener()
		s := New(Options{Dispatcher: dispatcherFunc(func(r *Request) Reply {
			switch body := string(r.Body); body {
			case "slow":
				p := r.Pending()
				time.AfterFunc(3*time.Second, func() { p.Complete(answer(r, "slow done")) })
				return Later(p)
			case "slower":
				p := r.Pending()
				time.AfterFunc(2*time.Second, func() { p.Complete(answer(r, "slower done")) })
				return Later(p)
			case "none":
				return None()
			case "omitted":
				p := r.Pending()
				time.AfterFunc(time.Second, p.Omit)
				return Later(p)
			case "early":
				p := r.Pending()
				p.Complete(answer(r, "early done"))
				return Later(p)
			case "bad":
				return Hangup("no such partition")
			default:
				return Now(answer(r, body))
			}
		}), Listeners: []ListenerConfig{{Name: "PIPE", Listeners: []net.Listener{ends}}}})
		s.Serve()
		defer s.Shutdown(context.Background())
		c := client{t, ends.dial()}
		defer c.Close()

		start := time.Now()
		go func() {
			for i, body := range []string{"slow", "metadata", "none", "slower", "omitted", "early", "versions"} {
				c.send(int32(i), body)
			}
		}()
		c.expect(0, "slow done")
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("first answer after %v, want 3s", waited)
		}
		c.expect(1, "metadata")
		c.expect(3, "slower done")
		c.expect(5, "early done")
		c.expect(6, "versions")
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("last answer after %v, want 3s: the others were ready", waited)
		}

		go c.send(7, "none")
		go func() { c.send(8, "after") }()
		// Which of the two goes first is open; only one is answered.
		c.expect(8, "after")

		go func() {
			c.Write(append(append(requestBytes(9, "last"), requestBytes(10, "bad")...), requestBytes(11, "never")...))
		}()
		c.expect(9, "last")
		c.expectClosed()
	})
}

// Replies that are completed in any order by other goroutines, mixed with ready ones, keep the order of the requests.
func TestServer_OrderUnderConcurrentCompletion(t *testing.T) {
	const requests = 2000
	work := make(chan func(), requests)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for f := range work {
				f()
			}
		})
	}
	_, address := startTCP(t, dispatcherFunc(func(r *Request) Reply {
		body := string(r.Body)
		switch r.Header.CorrelationID % 7 {
		case 0, 1, 2:
			p := r.Pending()
			work <- func() { p.Complete(answer(r, body)) }
			return Later(p)
		case 3:
			return None()
		}
		return Now(answer(r, body))
	}), Limits{InFlight: 32})
	c := dial(t, address)
	go func() {
		for i := range int32(requests) {
			c.Write(requestBytes(i, fmt.Sprint("body ", i)))
		}
	}()
	for i := range int32(requests) {
		if i%7 != 3 {
			c.expect(i, fmt.Sprint("body ", i))
		}
	}
	c.Close()
	close(work)
	workers.Wait()
}

// A panic while one client is served closes its connection, is logged, and does not disturb the others.
func TestServer_PanicClosesOneConnection(t *testing.T) {
	core, logs := observer.New(zap.ErrorLevel)
	_, address := startLogged(t, dispatcherFunc(func(r *Request) Reply {
		if string(r.Body) == "boom" {
			panic("boom")
		}
		return echo(r)
	}), Limits{}, zap.New(core))
	good, bad := dial(t, address), dial(t, address)
	good.send(1, "x")
	good.expect(1, "x")
	bad.Write(append(requestBytes(1, "before"), requestBytes(2, "boom")...))
	bad.expect(1, "before")
	bad.expectClosed()
	good.send(2, "y")
	good.expect(2, "y")
	if logs.FilterMessage("panic while serving a request").Len() != 1 {
		t.Error("the panic is not logged")
	}
}

// A request frame stays untouched while it is retained, or awaited by a Pending, however many others follow.
func TestServer_BodyIsKeptUntilReplied(t *testing.T) {
	type kept struct {
		r    *Request
		want string
	}
	var held []kept
	_, address := startTCP(t, dispatcherFunc(func(r *Request) Reply {
		body := string(r.Body)
		if r.Header.CorrelationID%2 == 0 && r.Header.CorrelationID < 20 {
			r.Retain()
			held = append(held, kept{r, body})
		}
		if body == "check" {
			for _, k := range held {
				if string(k.r.Body) != k.want {
					return Now(answer(r, fmt.Sprintf("body is %q, was %q", k.r.Body, k.want)))
				}
			}
			return Now(answer(r, "intact"))
		}
		return Now(answer(r, ""))
	}), Limits{})
	c := dial(t, address)
	for i := range int32(200) {
		c.send(i, fmt.Sprint("body ", i))
		c.expect(i, "")
	}
	c.send(1000, "check")
	c.expect(1000, "intact")
}

// File ranges of every size are sent as they are in the file, among bytes, over sendfile and over a connection without it.
func TestServer_FileSegments(t *testing.T) {
	name := filepath.Join(t.TempDir(), "segment")
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(i * 7 >> 3)
	}
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	done := make(chan struct{}, 100)
	d := dispatcherFunc(func(r *Request) Reply {
		response := answer(r, "head")
		for _, size := range []int64{0, 1, 1000, sendfileBytes - 1, sendfileBytes, 100_000, 1 << 20} {
			response.Segments = append(response.Segments, Segment{Source: file, Offset: size, Length: size}, Segment{Bytes: []byte("between")},
				Segment{Bytes: content[:5000]})
		}
		response.Done = func() { done <- struct{}{} }
		return Now(response)
	})
	want := "head"
	for _, size := range []int{0, 1, 1000, sendfileBytes - 1, sendfileBytes, 100_000, 1 << 20} {
		want += string(content[size:2*size]) + "between" + string(content[:5000])
	}

	check := func(t *testing.T, c client) {
		for i := range int32(3) {
			go c.send(i, "")
			c.expect(i, want)
			<-done
		}
	}
	t.Run("tcp", func(t *testing.T) {
		_, address := startTCP(t, d, Limits{})
		check(t, dial(t, address))
	})
	t.Run("pipe", func(t *testing.T) {
		ends := newPipeListener()
		s := New(Options{Dispatcher: d, Listeners: []ListenerConfig{{Name: "PIPE", Listeners: []net.Listener{ends}}}})
		s.Serve()
		defer s.Shutdown(context.Background())
		c := client{t, ends.dial()}
		defer c.Close()
		check(t, c)
	})
}

// A file that is shorter than promised closes the connection: the size of the answer is sent already.
func TestServer_TruncatedFileClosesConnection(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "segment")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.Write(make([]byte, 100_000))
	for _, length := range []int64{200_000, 100_001} {
		_, address := startTCP(t, dispatcherFunc(func(r *Request) Reply {
			response := answer(r, "")
			response.Segments = []Segment{{Source: file, Offset: 1, Length: length}}
			return Now(response)
		}), Limits{})
		c := dial(t, address)
		c.send(1, "")
		if n, err := io.Copy(io.Discard, c); err != nil || n != 8+99_999 {
			t.Errorf("length %d: received %d bytes, %v; want %d and a closed connection", length, n, err, 8+99_999)
		}
	}
}

// Dropped answers are finished too: whatever happens, Done is called once for each response.
func TestServer_DoneIsCalledForDroppedAnswers(t *testing.T) {
	var pendings []*Pending
	var requests []*Request
	arrived := make(chan struct{}, 10)
	s, address := startTCP(t, dispatcherFunc(func(r *Request) Reply {
		p := r.Pending()
		pendings, requests = append(pendings, p), append(requests, r)
		arrived <- struct{}{}
		return Later(p)
	}), Limits{})
	c := dial(t, address)
	for i := range int32(3) {
		c.send(i, "")
		<-arrived
	}
	var mu sync.Mutex
	calls := map[int]int{}
	complete := func(i int) {
		response := answer(requests[i], "")
		response.Done = func() {
			mu.Lock()
			defer mu.Unlock()
			calls[i]++
		}
		pendings[i].Complete(response)
	}
	complete(1) // waits for the first, and is dropped with the connection
	c.Close()
	<-requests[0].Conn.Context().Done()
	complete(0)
	complete(2)
	complete(2)
	waitUntil(t, "the connection to end", func() bool { return s.Connections() == 0 })
	mu.Lock()
	defer mu.Unlock()
	if calls[0] != 1 || calls[1] != 1 || calls[2] != 2 {
		t.Errorf("Done calls: %v, want one for each response", calls)
	}
	if used := s.budget.used.Load(); used != 0 {
		t.Errorf("%d bytes of the budget are still taken", used)
	}
}

// waitUntil gives other goroutines and the kernel time to get somewhere.
func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatal("waited in vain for ", what)
		case <-tick.C:
		}
	}
}

// pipeListener hands out in-memory connections, so that a server can run on fake time.
type pipeListener struct {
	ends   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{ends: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) dial() net.Conn {
	near, far := net.Pipe()
	l.ends <- far
	return near
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case end := <-l.ends:
		return end, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
