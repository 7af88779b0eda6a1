package txn

import "container/heap"

// A timer belongs to a transaction or the machine, which embed it: no look-up, no allocation.
type timer struct {
	atMs        int64
	index       int          // 1 + its index in the heap, 0 when it is not scheduled
	transaction *transaction // nil for the machine's own
}

type timerHeap struct{ h heapSlice }

// schedule sets or moves a timer.
func (t *timerHeap) schedule(x *timer, atMs int64) {
	x.atMs = atMs
	if x.index == 0 {
		heap.Push(&t.h, x)
	} else {
		heap.Fix(&t.h, x.index-1)
	}
}

func (t *timerHeap) cancel(x *timer) {
	if x.index != 0 {
		heap.Remove(&t.h, x.index-1)
	}
}

func (t *timerHeap) deadline() (atMs int64, ok bool) {
	if len(t.h) == 0 {
		return 0, false
	}
	return t.h[0].atMs, true
}

// popDue removes and returns the first timer that is due, nil when none is.
func (t *timerHeap) popDue(nowMs int64) *timer {
	if len(t.h) == 0 || t.h[0].atMs > nowMs {
		return nil
	}
	return heap.Pop(&t.h).(*timer)
}

// shift moves all timers.
func (t *timerHeap) shift(byMs int64) {
	for _, x := range t.h {
		x.atMs += byMs
	}
}

type heapSlice []*timer

func (h heapSlice) Len() int           { return len(h) }
func (h heapSlice) Less(i, j int) bool { return h[i].atMs < h[j].atMs }
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
