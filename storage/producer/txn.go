package producer

import (
	"cmp"
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

// end takes note of a marker and returns the last stable offset with it, if it counts as replicated. Markers below the high watermark are forgotten.
func (x *transactions) end(firstOffset, lastOffset, highWatermark int64) int64 {
	if i, found := slices.BinarySearch(x.open, firstOffset); found {
		x.open = slices.Delete(x.open, i, i+1)
	}
	// Readers of what was published see the slice with its old length: adding to it is no change to them.
	x.ended = append(x.ended[x.replicated(highWatermark):], endedTxn{firstOffset, lastOffset})
	x.publish()
	if len(x.open) > 0 {
		return x.open[0]
	}
	return lastOffset + 1
}

// replicated counts the markers below the high watermark, which are the first ones.
func (x *transactions) replicated(highWatermark int64) int { return countBelow(x.ended, highWatermark) }

func countBelow(ended []endedTxn, offset int64) int {
	i, _ := slices.BinarySearchFunc(ended, offset, func(e endedTxn, offset int64) int { return cmp.Compare(e.lastOffset, offset) })
	return i
}

// forget gives up the markers below the high watermark once these are many: after a log with many transactions was opened.
func (x *transactions) forget(highWatermark int64) {
	const many = 64
	if n := x.replicated(highWatermark); n > many {
		x.ended = slices.Clone(x.ended[n:])
		x.publish()
	}
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
	for _, e := range u.ended[countBelow(u.ended, highWatermark):] {
		first = min(first, e.firstOffset)
	}
	return first
}
