package replica

import (
	"slices"
	"sync"
	"sync/atomic"
)

// listeners are functions that are told each new high watermark. Few replicas have any: for the others telling is one atomic load.
type listeners struct {
	some atomic.Bool
	mu   struct {
		sync.Mutex
		told  int64
		calls []*func(int64)
	}
}

func (l *listeners) add(f func(int64)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := &f
	l.mu.calls = append(slices.Clip(l.mu.calls), entry)
	l.some.Store(true)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		// A new slice: the old one may be walked right now.
		l.mu.calls = slices.DeleteFunc(slices.Clone(l.mu.calls), func(e *func(int64)) bool { return e == entry })
		l.some.Store(len(l.mu.calls) > 0)
	}
}

// tell hands on the present value if it is new. Values are told in ascending order even when several writers tell at once; one of them
// may tell for another.
func (l *listeners) tell(highWatermark *atomic.Int64) {
	if !l.some.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := highWatermark.Load()
	if now <= l.mu.told {
		return
	}
	l.mu.told = now
	for _, f := range l.mu.calls {
		(*f)(now)
	}
}
