package server

import (
	"errors"
	"time"
)

// A client that sends half a large frame and no more holds its memory until it counts as idle. A few of them could use up the budget and
// make everybody else wait for ten minutes. So, while others wait for memory, frames that arrive too slowly are given up.
const (
	shedInterval = time.Second
	shedBytes    = 64 << 10 // that a frame must grow by in an interval, while others wait
)

var errSlowFrame = errors.New("its request arrives too slowly while others wait for memory (queued.max.request.bytes)")

// awaitMemory waits until the budget has something left, or gone reports true.
func (s *Server) awaitMemory(gone func() bool) {
	if s.budget.exhausted() && s.shedding.CompareAndSwap(false, true) {
		s.wait.Go(s.shed)
	}
	s.budget.await(gone)
}

// shed runs while the budget is exhausted and closes the connections whose frame does not get on.
func (s *Server) shed() {
	for {
		before := map[*Conn]int64{}
		s.eachConn(func(c *Conn) {
			if c.arriving.held.Load() > readBufferBytes {
				before[c] = c.arriving.bytes.Load()
			}
		})
		if !s.pause(shedInterval) {
			return // the server stops, and nobody waits any longer
		}
		if s.budget.exhausted() {
			for c, was := range before {
				if c.arriving.held.Load() > 0 && c.arriving.bytes.Load()-was < shedBytes {
					c.close(errSlowFrame)
				}
			}
			continue
		}
		s.shedding.Store(false)
		// Whoever began to wait before the line above has left the work to this goroutine.
		if !s.budget.exhausted() || !s.shedding.CompareAndSwap(false, true) {
			return
		}
	}
}
