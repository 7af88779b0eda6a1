package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Limits bound what clients can make the server hold. A zero field takes the default named beside it.
type Limits struct {
	FrameBytes                  int            // one request frame, inclusive; socket.request.max.bytes; 104857600
	InFlight                    int            // requests of one connection that are not answered yet; beyond it the connection is not read; 128
	ResponseBytesPerConnection  int            // answers of one connection waiting to be written, file ranges not counted; beyond it the connection is not read; 1 MiB
	QueuedBytes                 int64          // request frames and answers in memory, over all connections; queued.max.request.bytes; 512 MiB
	Connections                 int            // over all listeners; max.connections; no bound
	ConnectionsPerIP            int            // max.connections.per.ip; no bound; negative: only addresses with an override may connect
	ConnectionsPerIPOverrides   map[string]int // textual IP address to bound; max.connections.per.ip.overrides
	ConnectionCreationPerSecond int            // accepted connections a second; max.connection.creation.rate; no bound
	IdleTimeout                 time.Duration  // without a byte read or a reply owed; connections.max.idle.ms; 10 minutes
	WriteTimeout                time.Duration  // without a byte of a reply being taken; IdleTimeout
}

func (l Limits) withDefaults() *Limits {
	if l.FrameBytes <= 0 {
		l.FrameBytes = 100 << 20
	}
	if l.InFlight <= 0 {
		l.InFlight = 128
	}
	if l.ResponseBytesPerConnection <= 0 {
		l.ResponseBytesPerConnection = 1 << 20
	}
	if l.QueuedBytes <= 0 {
		l.QueuedBytes = 512 << 20
	}
	if l.IdleTimeout <= 0 {
		l.IdleTimeout = 10 * time.Minute
	}
	if l.WriteTimeout <= 0 {
		l.WriteTimeout = l.IdleTimeout
	}
	return &l
}

// ListenerConfig describes one named listener.
type ListenerConfig struct {
	Name      string
	Addresses []string       // host:port to bind; with port 0 in several, all get the port of the first
	Listeners []net.Listener // already bound ones, beside Addresses
	TLS       *tls.Config    // nil: plaintext

	PreLoginFrameBytes int // cap on frames until Conn.LoggedIn is called; 0 where clients need not log in
	SendBufferBytes    int // of the system, for each connection; socket.send.buffer.bytes; 0 leaves it to the system
	ReceiveBufferBytes int // likewise; socket.receive.buffer.bytes
}

// Options are what a Server is made of.
type Options struct {
	Dispatcher Dispatcher
	Listeners  []ListenerConfig
	Limits     Limits
	Log        *zap.Logger
	Observer   Observer // may be nil
}

// Observer hears what the server does; it must not block.
type Observer interface {
	ConnectionOpened(listener string)
	ConnectionClosed(listener string)
	// ConnectionRefused says that an accepted socket was closed at once because of a limit.
	ConnectionRefused(listener string)
	// RequestFinished says that a request is over: its answer is written or dropped, or it has none.
	RequestFinished(key int16, t Timing)
}

// Timing says where the time of one request went.
type Timing struct {
	Local  time.Duration // in the Dispatcher
	Remote time.Duration // from there until a Pending was completed; 0 for answers that were ready at once
	Send   time.Duration // from the complete answer until it was written, the wait for earlier answers included
	Bytes  int           // size of the request frame
}

// Server owns the listeners and the connections.
type Server struct {
	dispatcher Dispatcher
	log        *zap.Logger
	endings    *zap.Logger // why connections end; loses lines beyond endingsPerSecond
	observer   Observer
	limits     atomic.Pointer[Limits]
	budget     budget
	shedding   atomic.Bool
	admission  admission
	listeners  []*listener
	draining   atomic.Bool
	stop       chan struct{} // closed when accepting ends
	wait       sync.WaitGroup
	open       struct {
		sync.Mutex
		conns map[*Conn]struct{}
	}
}

type listener struct {
	config ListenerConfig
	bound  []net.Listener
}

// endingsPerSecond bounds what peers can make the broker log: a port scanner, or a client that tries for ever what is not served.
const endingsPerSecond = 10

// New makes a server that listens nowhere yet.
func New(o Options) *Server {
	s := &Server{dispatcher: o.Dispatcher, log: o.Log, observer: o.Observer, stop: make(chan struct{})}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	if s.observer == nil {
		s.observer = nobody{}
	}
	s.endings = s.log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Second, endingsPerSecond, 0)
	}))
	s.budget.init()
	s.admission.init()
	s.SetLimits(o.Limits)
	s.open.conns = map[*Conn]struct{}{}
	for _, config := range o.Listeners {
		s.listeners = append(s.listeners, &listener{config: config, bound: config.Listeners})
	}
	return s
}

// SetLimits changes the limits; open connections follow with their next request.
func (s *Server) SetLimits(l Limits) {
	limits := l.withDefaults()
	s.limits.Store(limits)
	s.budget.setLimit(limits.QueuedBytes)
	s.admission.limitsChanged()
}

// AddressInUse says that a listener's address is taken, most often by another broker.
type AddressInUse struct {
	Listener, Address string
	Err               error
}

func (a *AddressInUse) Error() string {
	return fmt.Sprintf("listener %s: %s is in use by another program", a.Listener, a.Address)
}

func (a *AddressInUse) Unwrap() error { return a.Err }

// Listen binds every address. Connections queue up in the system until Serve. On an error nothing stays bound.
func (s *Server) Listen() error {
	for _, l := range s.listeners {
		port := ""
		for _, address := range l.config.Addresses {
			host, wanted, err := net.SplitHostPort(address)
			if err != nil {
				s.closeListeners()
				return fmt.Errorf("listener %s: %w", l.config.Name, err)
			}
			if wanted == "0" && port != "" {
				address = net.JoinHostPort(host, port)
			}
			bound, err := net.Listen("tcp", address)
			if err != nil {
				s.closeListeners()
				if errors.Is(err, syscall.EADDRINUSE) {
					return &AddressInUse{Listener: l.config.Name, Address: address, Err: err}
				}
				return fmt.Errorf("listener %s: cannot listen on %s: %w", l.config.Name, address, err)
			}
			if tcp, ok := bound.Addr().(*net.TCPAddr); ok && port == "" {
				port = strconv.Itoa(tcp.Port)
			}
			l.bound = append(l.bound, bound)
		}
	}
	return nil
}

// Addrs are the addresses that the named listener is bound to.
func (s *Server) Addrs(name string) []net.Addr {
	var addrs []net.Addr
	for _, l := range s.listeners {
		if l.config.Name == name {
			for _, bound := range l.bound {
				addrs = append(addrs, bound.Addr())
			}
		}
	}
	return addrs
}

// Serve begins to accept connections, and returns.
func (s *Server) Serve() {
	for _, l := range s.listeners {
		for _, bound := range l.bound {
			s.wait.Add(1)
			go func() {
				defer s.wait.Done()
				s.acceptLoop(l, bound)
			}()
		}
	}
}

// Drain stops accepting and reading. Each connection is closed once every request that was read from it is answered.
func (s *Server) Drain() {
	if s.draining.CompareAndSwap(false, true) {
		close(s.stop)
		s.closeListeners()
		s.admission.limitsChanged() // wakes acceptors that wait for a slot
		s.eachConn((*Conn).drain)
	}
}

// Shutdown drains and waits until the connections are closed. When ctx ends first the remaining ones are cut off and its error is returned.
// It returns when no goroutine of the server is left.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	done := make(chan struct{})
	go func() {
		s.wait.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.eachConn(func(c *Conn) { c.close(errDraining) })
	<-done
	return ctx.Err()
}

func (s *Server) closeListeners() {
	for _, l := range s.listeners {
		for _, bound := range l.bound {
			bound.Close()
		}
	}
}

// eachConn calls f for every open connection; those added afterwards see draining by themselves.
func (s *Server) eachConn(f func(*Conn)) {
	s.open.Lock()
	conns := make([]*Conn, 0, len(s.open.conns))
	for c := range s.open.conns {
		conns = append(conns, c)
	}
	s.open.Unlock()
	for _, c := range conns {
		f(c)
	}
}

// Connections is the number of open connections.
func (s *Server) Connections() int {
	s.open.Lock()
	defer s.open.Unlock()
	return len(s.open.conns)
}

type nobody struct{}

func (nobody) ConnectionOpened(string)       {}
func (nobody) ConnectionClosed(string)       {}
func (nobody) ConnectionRefused(string)      {}
func (nobody) RequestFinished(int16, Timing) {}
