package segment

import "sync/atomic"

// recentBatches remembers where the last few batches of the active segment are, so that a reader at the end of the log, which most are,
// needs neither index nor disk to find its place. The writer overwrites the oldest slot; readers look without a lock and see when a slot
// changed under them.
type recentBatches struct {
	count atomic.Int64 // of batches ever noted
	slots [recentSlots]recentSlot
}

const recentSlots = 32

// recentSlot is one batch. base is -1 while the writer is at it.
type recentSlot struct {
	base, next, place atomic.Int64 // place: position<<32 | size
}

// Location is a batch in a segment's file.
type Location struct {
	BaseOffset int64
	NextOffset int64 // exclusive
	Position   int64
	Bytes      int64 // of the whole batch
}

func (r *recentBatches) note(l Location) {
	n := r.count.Load()
	s := &r.slots[n%recentSlots]
	s.base.Store(-1)
	s.next.Store(l.NextOffset)
	s.place.Store(l.Position<<32 | l.Bytes)
	s.base.Store(l.BaseOffset)
	r.count.Store(n + 1)
}

// get reads the i-th batch ever noted; ok is false if it has been or is being overwritten.
func (r *recentBatches) get(i int64) (l Location, ok bool) {
	s := &r.slots[i%recentSlots]
	base := s.base.Load()
	l = Location{BaseOffset: base, NextOffset: s.next.Load()}
	place := s.place.Load()
	l.Position, l.Bytes = place>>32, place&0xffffffff
	return l, base >= 0 && s.base.Load() == base
}

// find returns the first batch that ends after offset, if it is surely known.
func (r *recentBatches) find(offset int64) (l Location, ok bool) {
	count := r.count.Load()
	var after Location
	for i := count - 1; i >= max(0, count-recentSlots); i-- {
		b, ok := r.get(i)
		if !ok || after.Bytes > 0 && b.NextOffset > after.BaseOffset {
			return Location{}, false // overwritten, by a newer batch
		}
		if b.NextOffset <= offset {
			return after, after.Bytes > 0
		}
		if b.BaseOffset <= offset {
			return b, true
		}
		after = b
	}
	return Location{}, false
}

// end returns the position after the last batch that ends at or before offset, if it is surely known.
func (r *recentBatches) end(offset int64) (position int64, ok bool) {
	count := r.count.Load()
	newer := int64(-1)
	for i := count - 1; i >= max(0, count-recentSlots); i-- {
		b, ok := r.get(i)
		if !ok || newer >= 0 && b.NextOffset > newer {
			return 0, false
		}
		if b.NextOffset <= offset {
			return b.Position + b.Bytes, true
		}
		newer = b.BaseOffset
	}
	return 0, false
}
