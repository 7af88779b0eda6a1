package server

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"
)

// acceptRetry is the pause after a failed accept, as when the process is out of file descriptors.
const acceptRetry = 50 * time.Millisecond

func (s *Server) acceptLoop(l *listener, bound net.Listener) {
	for {
		socket, err := bound.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || s.draining.Load() {
				return
			}
			s.log.Warn("cannot accept a connection", zap.String("listener", l.config.Name), zap.Error(err))
			if !s.pause(acceptRetry) {
				return
			}
			continue
		}
		ip := remoteIP(socket)
		switch s.admission.admit(ip, s) {
		case admitted:
		case tooManyOfAddress:
			s.observer.ConnectionRefused(l.config.Name)
			s.log.Debug("too many connections from one address", zap.String("listener", l.config.Name), zap.String("address", ip))
			socket.Close()
			continue
		case stopped:
			socket.Close()
			return
		}
		if wait := s.admission.creationDelay(time.Now(), s.limits.Load().ConnectionCreationPerSecond); wait > 0 && !s.pause(wait) {
			s.admission.release(ip)
			socket.Close()
			return
		}
		s.start(l, socket, ip)
	}
}

// pause waits, and is false when the server stops meanwhile.
func (s *Server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stop:
		return false
	}
}

// start serves one accepted socket.
func (s *Server) start(l *listener, socket net.Conn, ip string) {
	if tcp, ok := socket.(*net.TCPConn); ok {
		// Failing, the system's own sizes stay.
		if l.config.SendBufferBytes > 0 {
			tcp.SetWriteBuffer(l.config.SendBufferBytes)
		}
		if l.config.ReceiveBufferBytes > 0 {
			tcp.SetReadBuffer(l.config.ReceiveBufferBytes)
		}
	}
	if l.config.TLS != nil {
		socket = tls.Server(socket, l.config.TLS)
	}
	c := newConn(s, &l.config, socket)
	s.open.Lock()
	s.open.conns[c] = struct{}{}
	s.open.Unlock()
	s.observer.ConnectionOpened(l.config.Name)
	s.wait.Add(1)
	go func() {
		defer s.wait.Done()
		c.serve()
		s.open.Lock()
		delete(s.open.conns, c)
		s.open.Unlock()
		s.admission.release(ip)
		s.observer.ConnectionClosed(l.config.Name)
	}()
}

func remoteIP(socket net.Conn) string {
	switch addr := socket.RemoteAddr().(type) {
	case *net.TCPAddr:
		return addr.IP.String()
	case nil:
		return ""
	default:
		return addr.String()
	}
}

// admission counts connections. Beyond the total the acceptors wait, each with the socket it has accepted, and further clients queue in
// the system's backlog; beyond the bound of its address a connection is closed; beyond the creation rate the acceptors slow down. All as
// in Apache Kafka.
type admission struct {
	mu      sync.Mutex
	changed sync.Cond
	total   int
	perIP   map[string]int
	nextAt  time.Time // when the next connection may be created, under a creation rate
}

type verdict int

const (
	admitted verdict = iota
	tooManyOfAddress
	stopped
)

func (a *admission) init() {
	a.changed.L = &a.mu
	a.perIP = map[string]int{}
}

// admit waits until one more connection may exist and counts it, unless its address has its share or the server stops.
func (a *admission) admit(ip string, s *Server) verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		if s.draining.Load() {
			return stopped
		}
		limits := s.limits.Load()
		if limit := limits.connectionsFrom(ip); limit >= 0 && a.perIP[ip] >= limit {
			return tooManyOfAddress
		}
		if limits.Connections <= 0 || a.total < limits.Connections {
			a.total++
			a.perIP[ip]++
			return admitted
		}
		a.changed.Wait()
	}
}

// connectionsFrom is how many connections one address may have; -1 for no bound.
func (l *Limits) connectionsFrom(ip string) int {
	if own, ok := l.ConnectionsPerIPOverrides[ip]; ok {
		return max(own, 0)
	}
	if l.ConnectionsPerIP == 0 {
		return -1
	}
	return max(l.ConnectionsPerIP, 0)
}

func (a *admission) release(ip string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total--
	if a.perIP[ip]--; a.perIP[ip] == 0 {
		delete(a.perIP, ip)
	}
	a.changed.Broadcast()
}

func (a *admission) limitsChanged() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed.Broadcast()
}

// creationBurst is how many connections may come at once after a quiet time, in seconds of the rate.
const creationBurst = time.Second

// creationDelay books one connection creation and says how long it must wait.
func (a *admission) creationDelay(now time.Time, perSecond int) time.Duration {
	if perSecond <= 0 {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if earliest := now.Add(-creationBurst); a.nextAt.Before(earliest) {
		a.nextAt = earliest
	}
	a.nextAt = a.nextAt.Add(time.Second / time.Duration(perSecond))
	return a.nextAt.Sub(now)
}
