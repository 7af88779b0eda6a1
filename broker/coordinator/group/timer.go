package group

import "container/heap"

type timerKind uint8

const (
	heartbeatTimer     timerKind = iota // a member's session
	pendingMemberTimer                  // a member id was handed out, its owner has not joined
	initialJoinTimer                    // a group's first rebalance gathers members
	joinTimer                           // the join barrier
	syncTimer                           // members that have joined have not sent SyncGroup
	retentionTimer                      // look for expired offsets
)

// A timer belongs to a member, a group or the machine, which embed it: no look-up, no allocation. It is reset far more often than it
// fires (with each heartbeat), so that moving it later only notes the new time and leaves its place in the heap.
type timer struct {
	atMs   int64 // when it is due
	keyMs  int64 // its place in the heap, not after atMs
	index  int   // 1 + its index in the heap, 0 when it is not scheduled
	kind   timerKind
	group  *classicGroup
	member *member // of a heartbeatTimer

	memberID             string // of a pendingMemberTimer
	delayMs, remainingMs int64  // of an initialJoinTimer
}

type timerHeap struct{ h heapSlice }

// schedule sets or moves a timer.
func (t *timerHeap) schedule(x *timer, atMs int64) {
	x.atMs = atMs
	switch {
	case x.index == 0:
		x.keyMs = atMs
		heap.Push(&t.h, x)
	case atMs < x.keyMs:
		x.keyMs = atMs
		heap.Fix(&t.h, x.index-1)
	}
}

func (t *timerHeap) cancel(x *timer) {
	if x.index != 0 {
		heap.Remove(&t.h, x.index-1)
	}
}

// settle moves timers that were reset since to their places until the first one is where it belongs.
func (t *timerHeap) settle() {
	for len(t.h) > 0 && t.h[0].keyMs < t.h[0].atMs {
		t.h[0].keyMs = t.h[0].atMs
		heap.Fix(&t.h, 0)
	}
}

func (t *timerHeap) deadline() (atMs int64, ok bool) {
	t.settle()
	if len(t.h) == 0 {
		return 0, false
	}
	return t.h[0].atMs, true
}

// popDue removes and returns the first timer that is due, nil when none is.
func (t *timerHeap) popDue(nowMs int64) *timer {
	t.settle()
	if len(t.h) == 0 || t.h[0].atMs > nowMs {
		return nil
	}
	return heap.Pop(&t.h).(*timer)
}

// shift moves all timers.
func (t *timerHeap) shift(byMs int64) {
	for _, x := range t.h {
		x.atMs += byMs
		x.keyMs += byMs
	}
}

type heapSlice []*timer

func (h heapSlice) Len() int           { return len(h) }
func (h heapSlice) Less(i, j int) bool { return h[i].keyMs < h[j].keyMs }
func (h heapSlice) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *heapSlice) Push(x any) {
	t := x.(*timer)
	*h = append(*h, t)
	t.index = len(*h)
}

func (h *heapSlice) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = 0
	return t
}
