package record

import (
	"sync"
	"time"
)

// stall notices that records are on their way and none is acknowledged. The client's own limit counts from a record's timestamp, which may be
// years ago when records are copied.
type stall struct {
	mu      sync.Mutex
	limit   time.Duration
	timer   *time.Timer
	waiting int
}

// newStall calls happened, once at most, when nothing was acknowledged for limit while something was on its way.
func newStall(limit time.Duration, happened func()) *stall {
	s := &stall{limit: limit, timer: time.AfterFunc(limit, happened)}
	s.timer.Stop()
	return s
}

// sent counts a record that is on its way.
func (s *stall) sent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting++; s.waiting == 1 {
		s.timer.Reset(s.limit)
	}
}

// answered counts one that was acknowledged or refused.
func (s *stall) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting--; s.waiting == 0 {
		s.timer.Stop()
	} else {
		s.timer.Reset(s.limit)
	}
}
