package producer

import (
	"math"

	"sluice/protocol/record"
)

// WindowBatches is how many of a producer's last batches are remembered: as many as an idempotent producer may have in flight.
const WindowBatches = 5

// appended is one batch in the window.
type appended struct {
	lastOffset  int64 // inclusive
	timestampMs int64 // the batch's maximum
	lastSeq     int32 // inclusive
	offsetDelta int32 // last offset - first offset; the sequences differ by as much
}

func (a appended) firstOffset() int64 { return a.lastOffset - int64(a.offsetDelta) }

// firstSeq goes back from the last sequence; MaxInt32 precedes 0.
func (a appended) firstSeq() int32 {
	if a.lastSeq >= a.offsetDelta {
		return a.lastSeq - a.offsetDelta
	}
	return math.MaxInt32 - (a.offsetDelta - a.lastSeq) + 1
}

// window is the last batches of one producer in one epoch, oldest first.
type window struct {
	batches [WindowBatches]appended
	start   uint8
	count   uint8
}

func (w *window) add(a appended) {
	if w.count < WindowBatches {
		w.batches[(w.start+w.count)%WindowBatches] = a
		w.count++
		return
	}
	w.batches[w.start] = a
	w.start = (w.start + 1) % WindowBatches
}

func (w *window) clear() { w.start, w.count = 0, 0 }

// last is the newest batch; ok is false if there is none.
func (w *window) last() (a appended, ok bool) {
	if w.count == 0 {
		return appended{}, false
	}
	return w.batches[(w.start+w.count-1)%WindowBatches], true
}

// lastSeq is the last sequence, or record.NoSequence.
func (w *window) lastSeq() int32 {
	if a, ok := w.last(); ok {
		return a.lastSeq
	}
	return record.NoSequence
}

// find looks for a batch with exactly these sequences.
func (w *window) find(firstSeq, lastSeq int32) (appended, bool) {
	for i := range w.count {
		if a := w.batches[(w.start+i)%WindowBatches]; a.lastSeq == lastSeq && a.firstSeq() == firstSeq {
			return a, true
		}
	}
	return appended{}, false
}

// follows says whether a sequence is the one after last; 0 follows MaxInt32.
func follows(last, next int32) bool {
	return int64(next) == int64(last)+1 || next == 0 && last == math.MaxInt32
}
