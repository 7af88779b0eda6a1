package server

import (
	"sync"
	"sync/atomic"
)

// budget counts the bytes that requests and answers hold over all connections. Its limit is soft: who finds something left may take what
// it needs, so that a request larger than what is left is not shut out; at twice the limit a request that is still arriving is given up,
// or many half requests could wait for each other for ever.
type budget struct {
	limit   atomic.Int64
	used    atomic.Int64
	waiting struct {
		sync.Mutex
		count atomic.Int64 // changes under the lock only
		freed sync.Cond
	}
}

func (b *budget) init() { b.waiting.freed.L = &b.waiting }

func (b *budget) setLimit(limit int64) {
	b.limit.Store(limit)
	b.wake()
}

func (b *budget) exhausted() bool { return b.used.Load() >= b.limit.Load() }

// await waits until less than the limit is used, or gone reports true. Whoever makes gone true calls wake.
func (b *budget) await(gone func() bool) {
	if !b.exhausted() {
		return
	}
	b.waiting.Lock()
	defer b.waiting.Unlock()
	b.waiting.count.Add(1)
	for b.exhausted() && !gone() {
		b.waiting.freed.Wait()
	}
	b.waiting.count.Add(-1)
}

func (b *budget) wake() {
	if b.waiting.count.Load() > 0 {
		b.waiting.Lock()
		b.waiting.freed.Broadcast()
		b.waiting.Unlock()
	}
}

// take adds n bytes, and reports whether the sum is bearable.
func (b *budget) take(n int) bool { return b.used.Add(int64(n)) < 2*b.limit.Load() }

func (b *budget) release(n int) {
	if b.used.Add(-int64(n)) < b.limit.Load() {
		b.wake()
	}
}
