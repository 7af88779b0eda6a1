package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// onPipe runs f with a server on in-memory connections and fake time.
func onPipe(t *testing.T, d Dispatcher, limits Limits, f func(t *testing.T, s *Server, dial func() client)) {
	synctest.Test(t, func(t *testing.T) {
		ends := newPipeListener()
		s := New(Options{Dispatcher: d, Limits: limits, Listeners: []ListenerConfig{{Name: "PIPE", Listeners: []net.Listener{ends}}}})
		s.Serve()
		defer func() {
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error("shutdown:", err)
			}
		}()
		var ours []net.Conn
		defer func() {
			for _, c := range ours {
				c.Close()
			}
		}()
		f(t, s, func() client {
			c := client{t, ends.dial()}
			ours = append(ours, c)
			return c
		})
	})
}

// V33: lengths that no client sends, and what other protocols say first, close the connection at once; nobody else notices.
func TestV33_ForeignBytes(t *testing.T) {
	_, address := startTCP(t, echo, Limits{})
	good := dial(t, address)
	hello := &recordingConn{}
	tls.Client(hello, &tls.Config{InsecureSkipVerify: true}).Handshake()
	for name, sent := range map[string][]byte{
		"HTTP":                  []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"TLS hello":             hello.sent.Bytes(),
		"length -1":             {0xff, 0xff, 0xff, 0xff},
		"length 0":              {0, 0, 0, 0},
		"length 2147483647":     {0x7f, 0xff, 0xff, 0xff},
		"length of minimum":     {0x80, 0, 0, 0},
		"above the bound":       binary.BigEndian.AppendUint32(nil, 100<<20+1),
		"header cut short":      {0, 0, 0, 7, 0, 3, 0, 1, 0, 0, 0},
		"client id too long":    {0, 0, 0, 12, 0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xff, 'a', 'b'},
		"header varint too big": {0, 0, 0, 15, 0, 3, 0, 12, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			bad := dial(t, address)
			bad.Write(sent)
			bad.expectClosed()
			good.send(1, name)
			good.expect(1, name)
		})
	}
}

// Requests that came before a frame that cannot be are answered before the connection is closed, those that wait included.
func TestServer_AnswersBeforeABadFrame(t *testing.T) {
	d := dispatcherFunc(func(r *Request) Reply {
		if string(r.Body) == "later" {
			p := r.Pending()
			time.AfterFunc(time.Second, func() { p.Complete(answer(r, "later")) })
			return Later(p)
		}
		return echo(r)
	})
	onPipe(t, d, Limits{}, func(t *testing.T, s *Server, dial func() client) {
		c := dial()
		go c.Write(bytes.Join([][]byte{requestBytes(1, "a"), requestBytes(2, "later"), requestBytes(3, "b"), {0xff, 0xff, 0xff, 0xff}}, nil))
		c.expect(1, "a")
		c.expect(2, "later")
		c.expect(3, "b")
		c.expectClosed()
	})
}

// recordingConn keeps what is written and has nothing to read.
type recordingConn struct {
	net.Conn
	sent bytes.Buffer
}

func (r *recordingConn) Write(b []byte) (int, error) { return r.sent.Write(b) }
func (r *recordingConn) Read([]byte) (int, error)    { return 0, io.EOF }

// V33: 2000 sockets that send half a frame and fall silent cost about as much as idle ones, and others are served as ever.
func TestV33_HalfFramesCostLittle(t *testing.T) {
	const sockets = 2000
	raiseFileLimit(t, 2*sockets+200)
	s, address := startTCP(t, echo, Limits{})
	before := memoryInUse()
	for i := range sockets {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.Write(binary.BigEndian.AppendUint32(nil, 100<<20)) // the largest frame there is
		if i%2 == 0 {
			conn.Write(make([]byte, 1000))
		}
	}
	waitUntil(t, "the connections", func() bool { return s.Connections() == sockets })
	c := dial(t, address)
	c.send(1, "served")
	c.expect(1, "served")
	each := (memoryInUse() - before) / sockets
	t.Logf("%d bytes a connection, the client's end in the same process included", each)
	if each > 14<<10 {
		t.Errorf("a half frame costs %d bytes", each)
	}
}

func memoryInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// A claimed length costs memory only as its bytes arrive.
func TestServer_LargeFrameGrowsWithWhatArrives(t *testing.T) {
	onPipe(t, echo, Limits{}, func(t *testing.T, s *Server, dial func() client) {
		c := dial()
		c.Write(requestBytes(1, string(make([]byte, 90<<20)))[:100_000])
		synctest.Wait()
		if used := s.budget.used.Load(); used > growth*100_000+readBufferBytes {
			t.Errorf("%d bytes are taken for 100000 that arrived", used)
		}
	})
}

// A connection without traffic is closed after the idle time, and so is one that stopped in the middle of a frame.
func TestServer_IdleTime(t *testing.T) {
	for name, sent := range map[string][]byte{"idle": nil, "half a length": {0, 0}, "half a frame": {0, 0, 1, 0, 1}, "half a large frame": {0, 100, 0, 0, 1}} {
		t.Run(name, func(t *testing.T) {
			onPipe(t, echo, Limits{IdleTimeout: 10 * time.Minute}, func(t *testing.T, s *Server, dial func() client) {
				c := dial()
				start := time.Now()
				c.send(1, "x")
				c.expect(1, "x")
				time.Sleep(9 * time.Minute) // fake time
				c.send(2, "y")
				c.expect(2, "y")
				c.Write(sent)
				c.expectClosed()
				if after := time.Since(start); after < 19*time.Minute || after > 20*time.Minute {
					t.Errorf("closed after %v, want 19 minutes and at most a sixteenth of ten more", after)
				}
			})
		})
	}
}

// A client that awaits its answer is not idle.
func TestServer_WaitingForAnAnswerIsNotIdle(t *testing.T) {
	d := dispatcherFunc(func(r *Request) Reply {
		p := r.Pending()
		time.AfterFunc(time.Hour, func() { p.Complete(answer(r, "at last")) })
		return Later(p)
	})
	onPipe(t, d, Limits{IdleTimeout: time.Minute}, func(t *testing.T, s *Server, dial func() client) {
		c := dial()
		c.send(1, "")
		c.expect(1, "at last")
		start := time.Now()
		c.expectClosed()
		if after := time.Since(start); after < time.Minute || after > 2*time.Minute {
			t.Errorf("closed %v after the answer", after)
		}
	})
}

// A client that never reads costs its own connection only: it is not read beyond the bounds, and cut off when nothing was taken for the
// write timeout.
func TestServer_ClientThatNeverReads(t *testing.T) {
	var dispatched atomic.Int64
	d := dispatcherFunc(func(r *Request) Reply {
		dispatched.Add(1)
		return Now(answer(r, string(make([]byte, 100_000))))
	})
	onPipe(t, d, Limits{WriteTimeout: time.Minute, ResponseBytesPerConnection: 1 << 20}, func(t *testing.T, s *Server, dial func() client) {
		stuck, good := dial(), dial()
		start := time.Now()
		for i := range int32(1000) {
			if _, err := stuck.Write(requestBytes(i, "")); err != nil {
				break
			}
		}
		if after := time.Since(start); after < time.Minute || after > 2*time.Minute {
			t.Errorf("cut off after %v", after)
		}
		if n := dispatched.Load(); n > 12 {
			t.Errorf("%d requests were taken from a client that does not read", n)
		}
		good.send(1, "")
		good.receive()
		synctest.Wait()
		if used := s.budget.used.Load(); used != 0 {
			t.Errorf("%d bytes of the budget are still taken", used)
		}
	})
}

// A slow client that takes some bytes now and then is not cut off in the middle of a large answer.
func TestServer_SlowReaderIsServed(t *testing.T) {
	d := dispatcherFunc(func(r *Request) Reply { return Now(answer(r, string(make([]byte, 1<<20)))) })
	onPipe(t, d, Limits{WriteTimeout: time.Minute, IdleTimeout: time.Hour}, func(t *testing.T, s *Server, dial func() client) {
		c := dial()
		c.send(1, "")
		read := 0
		buffer := make([]byte, 100_000)
		for read < 8+1<<20 {
			time.Sleep(50 * time.Second) // fake time
			n, err := c.Read(buffer)
			if err != nil {
				t.Fatalf("after %d bytes: %v", read, err)
			}
			read += n
		}
	})
}

// No more requests of a connection are in flight than the bound says; the next is read when one is answered.
func TestServer_InFlightBound(t *testing.T) {
	pendings := make(chan func(), 100)
	d := dispatcherFunc(func(r *Request) Reply {
		p := r.Pending()
		pendings <- func() { p.Complete(answer(r, "")) }
		return Later(p)
	})
	onPipe(t, d, Limits{InFlight: 5}, func(t *testing.T, s *Server, dial func() client) {
		c := dial()
		go func() {
			for i := range int32(8) {
				c.Write(requestBytes(i, ""))
			}
		}()
		synctest.Wait()
		if n := len(pendings); n != 5 {
			t.Fatalf("%d requests in flight, want 5", n)
		}
		for i := range int32(8) {
			(<-pendings)()
			c.expect(i, "")
		}
	})
}

// When requests in memory reach the bound over all connections, none is read until some are answered.
func TestServer_QueuedBytesBound(t *testing.T) {
	pendings := make(chan func(), 100)
	d := dispatcherFunc(func(r *Request) Reply {
		p := r.Pending()
		pendings <- func() { p.Complete(answer(r, "")) }
		return Later(p)
	})
	onPipe(t, d, Limits{QueuedBytes: 100_000}, func(t *testing.T, s *Server, dial func() client) {
		body := string(make([]byte, 60_000))
		clients := []client{dial(), dial(), dial(), dial()}
		for _, c := range clients {
			go c.Write(requestBytes(1, body))
			synctest.Wait()
		}
		if n := len(pendings); n != 2 {
			t.Fatalf("%d requests were read, want 2: the second passes the bound", n)
		}
		for range clients {
			(<-pendings)()
			synctest.Wait()
		}
		for _, c := range clients {
			go c.expect(1, "")
		}
		synctest.Wait()
		if used := s.budget.used.Load(); used != 0 {
			t.Errorf("%d bytes of the budget are still taken", used)
		}
	})
}

// A throttled client gets its answer at once and is then not read for the throttle time; what it sent meanwhile waits.
func TestServer_ThrottleMutesTheConnection(t *testing.T) {
	d := dispatcherFunc(func(r *Request) Reply {
		response := answer(r, "")
		if string(r.Body) == "throttled" {
			response.ThrottleMs = 5000
		}
		return Now(response)
	})
	onPipe(t, d, Limits{}, func(t *testing.T, s *Server, dial func() client) {
		c, other := dial(), dial()
		start := time.Now()
		go c.Write(append(requestBytes(1, "throttled"), requestBytes(2, "next")...))
		c.expect(1, "")
		if after := time.Since(start); after != 0 {
			t.Errorf("the throttled answer came after %v", after)
		}
		other.send(1, "")
		other.expect(1, "")
		if after := time.Since(start); after != 0 {
			t.Errorf("another client waited %v", after)
		}
		c.expect(2, "")
		if after := time.Since(start); after != 5*time.Second {
			t.Errorf("the next answer came after %v, want 5s", after)
		}
		go c.send(3, "throttled")
		c.expect(3, "")
	})
}

// Beyond the bound of its address a connection is closed; the others go on, and a freed place can be taken again.
func TestV33_ConnectionsPerAddress(t *testing.T) {
	s, address := startTCP(t, echo, Limits{ConnectionsPerIP: 3})
	var open []client
	for range 3 {
		open = append(open, dial(t, address))
	}
	waitUntil(t, "three connections", func() bool { return s.Connections() == 3 })
	dial(t, address).expectClosed()
	for i, c := range open {
		c.send(int32(i), "x")
		c.expect(int32(i), "x")
	}
	open[0].Close()
	waitUntil(t, "a free place", func() bool { return s.Connections() == 2 })
	c := dial(t, address)
	c.send(1, "x")
	c.expect(1, "x")

	for _, limits := range []Limits{{ConnectionsPerIP: 100, ConnectionsPerIPOverrides: map[string]int{"127.0.0.1": 0}}, {ConnectionsPerIP: -1}} {
		s.SetLimits(limits)
		dial(t, address).expectClosed()
	}
	s.SetLimits(Limits{ConnectionsPerIP: -1, ConnectionsPerIPOverrides: map[string]int{"127.0.0.1": 10}})
	c = dial(t, address)
	c.send(1, "x")
	c.expect(1, "x")
}

// Beyond the bound over all, new connections wait until one ends.
func TestServer_MaxConnections(t *testing.T) {
	onPipe(t, echo, Limits{Connections: 2}, func(t *testing.T, s *Server, dial func() client) {
		first, _ := dial(), dial()
		third := dial()
		go third.send(1, "x")
		synctest.Wait()
		if n := s.Connections(); n != 2 {
			t.Fatalf("%d connections, want 2", n)
		}
		first.Close()
		third.expect(1, "x")
	})
}

// Connections above the creation rate are served, later.
func TestServer_ConnectionCreationRate(t *testing.T) {
	onPipe(t, echo, Limits{ConnectionCreationPerSecond: 10}, func(t *testing.T, s *Server, dial func() client) {
		start := time.Now()
		for range 40 {
			c := dial()
			c.send(1, "x")
			c.expect(1, "x")
		}
		if after := time.Since(start); after < 2900*time.Millisecond || after > 3100*time.Millisecond {
			t.Errorf("40 connections took %v, want 3s: ten at once, then ten a second", after)
		}
	})
}

// A stop lets what is in flight be answered, takes nothing new, and cuts off what does not end in time.
func TestServer_Shutdown(t *testing.T) {
	d := dispatcherFunc(func(r *Request) Reply {
		wait, _ := strconv.Atoi(string(r.Body))
		p := r.Pending()
		time.AfterFunc(time.Duration(wait)*time.Second, func() { p.Complete(answer(r, "done")) })
		return Later(p)
	})
	for name, test := range map[string]struct {
		patience time.Duration
		want     error
	}{"finishes": {time.Minute, nil}, "is cut off": {time.Second, context.DeadlineExceeded}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ends := newPipeListener()
				s := New(Options{Dispatcher: d, Listeners: []ListenerConfig{{Name: "PIPE", Listeners: []net.Listener{ends}}}})
				s.Serve()
				busy, idle := client{t, ends.dial()}, client{t, ends.dial()}
				busy.send(1, "10")
				synctest.Wait()
				ctx, cancel := context.WithTimeout(context.Background(), test.patience)
				defer cancel()
				stopped := make(chan error)
				go func() { stopped <- s.Shutdown(ctx) }()
				idle.expectClosed()
				if test.want == nil {
					busy.expect(1, "done")
				}
				busy.expectClosed()
				if err := <-stopped; !errors.Is(err, test.want) {
					t.Errorf("shutdown says %v, want %v", err, test.want)
				}
				time.Sleep(time.Minute) // fake time: let the late completion find the connection gone
			})
		})
	}
}

// A second server on the same address is told so in words.
func TestServer_AddressInUse(t *testing.T) {
	_, address := startTCP(t, echo, Limits{})
	s := New(Options{Dispatcher: echo, Listeners: []ListenerConfig{{Name: "EXTERNAL", Addresses: []string{"127.0.0.1:0", address}}}})
	err := s.Listen()
	var inUse *AddressInUse
	if !errors.As(err, &inUse) || inUse.Listener != "EXTERNAL" || inUse.Address != address {
		t.Errorf("error %v, want AddressInUse of %s", err, address)
	}
}

// A listener with several addresses and port 0 has one port.
func TestServer_OnePortForAllAddressesOfAListener(t *testing.T) {
	s := New(Options{Dispatcher: echo, Listeners: []ListenerConfig{{Name: "PLAINTEXT", Addresses: []string{"127.0.0.1:0", "127.0.0.2:0"}}}})
	if err := s.Listen(); err != nil {
		t.Skip("no second loopback address here:", err)
	}
	defer s.Shutdown(context.Background())
	addrs := s.Addrs("PLAINTEXT")
	if a, b := addrs[0].(*net.TCPAddr), addrs[1].(*net.TCPAddr); a.Port != b.Port || a.IP.Equal(b.IP) {
		t.Errorf("addresses %v", addrs)
	}
}

// A cap for clients that have not logged in holds until they have.
func TestServer_PreLoginFrameCap(t *testing.T) {
	d := dispatcherFunc(func(r *Request) Reply {
		if string(r.Body) == "login" {
			r.Conn.LoggedIn()
		}
		return Now(answer(r, ""))
	})
	s := New(Options{Dispatcher: d, Listeners: []ListenerConfig{{Name: "SASL", Addresses: []string{"127.0.0.1:0"}, PreLoginFrameBytes: 1000}}})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	s.Serve()
	defer s.Shutdown(context.Background())
	address := s.Addrs("SASL")[0].String()
	large := string(make([]byte, 2000))
	refused := dial(t, address)
	refused.send(1, large)
	refused.expectClosed()
	c := dial(t, address)
	c.send(1, "login")
	c.expect(1, "")
	c.send(2, large)
	c.expect(2, "")
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, size := range []int{100, 10_000, 1 << 20} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			d := dispatcherFunc(func(r *Request) Reply { return Now(answer(r, "ok")) })
			_, address := startTCP(b, d, Limits{})
			c := dial(b, address)
			c.SetDeadline(time.Time{})
			request := requestBytes(1, string(make([]byte, size)))
			reply := make([]byte, 10)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				c.Write(request)
				io.ReadFull(c, reply)
			}
		})
	}
}

func BenchmarkPipelined(b *testing.B) {
	d := dispatcherFunc(func(r *Request) Reply { return Now(answer(r, "ok")) })
	_, address := startTCP(b, d, Limits{})
	c := dial(b, address)
	c.SetDeadline(time.Time{})
	const depth = 20
	requests := bytes.Repeat(requestBytes(1, "hello"), depth)
	replies := make([]byte, 10*depth)
	b.ReportAllocs()
	for b.Loop() {
		c.Write(requests)
		io.ReadFull(c, replies)
	}
}

func BenchmarkSendfile(b *testing.B) {
	file, err := os.CreateTemp(b.TempDir(), "segment")
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	file.Write(make([]byte, 1<<20))
	d := dispatcherFunc(func(r *Request) Reply {
		response := answer(r, "ok")
		response.Segments = []Segment{{Source: file, Length: 1 << 20}}
		return Now(response)
	})
	_, address := startTCP(b, d, Limits{})
	c := dial(b, address)
	c.SetDeadline(time.Time{})
	request := requestBytes(1, "")
	reply := make([]byte, 10+1<<20)
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		c.Write(request)
		io.ReadFull(c, reply)
	}
}

// A peer that comes again and again with nonsense does not fill the disk with our log.
func TestClose_LogsFewReasonsASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		ends := newPipeListener()
		s := New(Options{Dispatcher: echo, Log: zap.New(core), Listeners: []ListenerConfig{{Name: "PIPE", Listeners: []net.Listener{ends}}}})
		s.Serve()
		attack := func() {
			for range 3 * endingsPerSecond {
				c := ends.dial()
				c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
				c.Close()
			}
			synctest.Wait()
		}
		attack()
		if n := logs.FilterMessage("closing a connection").Len(); n != endingsPerSecond {
			t.Errorf("%d lines, want %d", n, endingsPerSecond)
		}
		time.Sleep(2 * time.Second) // of the bubble
		attack()
		if n := logs.FilterMessage("closing a connection").Len(); n != 2*endingsPerSecond {
			t.Errorf("%d lines after a pause, want %d", n, 2*endingsPerSecond)
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
