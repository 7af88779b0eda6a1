package producer

import (
	"math"
	"slices"
	"sync/atomic"
)

// transactions are those that keep the last stable offset down: open ones, and ended ones of which the marker may not be replicated yet.
// Readers use what was published last.
type transactions struct {
	open      []int64 // first offsets, ascending
	ended     []endedTxn
	published atomic.Pointer[unstable]
}

// endedTxn is in the order of markers.
type endedTxn struct {
	firstOffset int64
	lastOffset  int64 // of the marker
}

// unstable is an immutable picture of transactions.
type unstable struct {
	firstOpen int64 // math.MaxInt64 if none is open
	ended     []endedTxn
}

func (x *transactions) begin(firstOffset int64) {
	i, _ := slices.BinarySearch(x.open, firstOffset)
	x.open = slices.Insert(x.open, i, firstOffset)
	x.publish()
}

// end takes note of a marker and returns the last stable offset with it, if it counts as replicated. Markers below the high watermark are
// forgotten.
func (x *transactions) end(firstOffset, lastOffset, highWatermark int64) int64 {
	if i, found := slices.BinarySearch(x.open, firstOffset); found {
		x.open = slices.Delete(x.open, i, i+1)
	}
	i := 0
	for i < len(x.ended) && x.ended[i].lastOffset < highWatermark {
		i++
	}
	x.ended = append(slices.Clone(x.ended[i:]), endedTxn{firstOffset, lastOffset})
	x.publish()
	if len(x.open) > 0 {
		return x.open[0]
	}
	return lastOffset + 1
}

func (x *transactions) publish() {
	u := &unstable{firstOpen: math.MaxInt64, ended: x.ended}
	if len(x.open) > 0 {
		u.firstOpen = x.open[0]
	}
	x.published.Store(u)
}

// firstUnstable is the first offset of a transaction that is not decided below the high watermark; math.MaxInt64 if there is none.
func (x *transactions) firstUnstable(highWatermark int64) int64 {
	u := x.published.Load()
	if u == nil {
		return math.MaxInt64
	}
	first := u.firstOpen
	for _, e := range u.ended {
		if e.lastOffset >= highWatermark {
			first = min(first, e.firstOffset)
		}
	}
	return first
}
