package partlog

import (
	"math"
	"slices"

	"sluice/storage/segment"
)

// makeRoom begins a new segment if the active one does not take the run.
func (l *Log) makeRoom(c *Config, r run) (rolled bool, err error) {
	active := l.last()
	should, err := active.ShouldRoll(segment.RollQuery{
		SegmentBytes: c.SegmentBytes, SegmentMs: c.SegmentMs, IndexBytes: c.SegmentIndexBytes,
		BatchBytes: r.bytes, MaxTimestampMs: r.maxTimestampMs, LastOffset: r.last, NowMs: l.nowMs,
	})
	if !should || err != nil {
		return false, err
	}
	// A segment begins where the one before ends, also if what is appended begins later, as after compaction of the leader's log: so the
	// recovery sees when the end of a segment has been lost.
	base := active.NextOffset()
	if r.last-base > math.MaxInt32 {
		base = r.first
	}
	return l.roll(base)
}

// roll closes the active segment and begins one at base. If the active one is empty, the new one takes its place.
func (l *Log) roll(base int64) (bool, error) {
	segments := l.list()
	active := l.last()
	if active.Size() == 0 {
		if active.BaseOffset() == base {
			return false, nil
		}
		if err := l.discard(active); err != nil {
			return false, err
		}
		l.publish(append(slices.Clone(segments[:len(segments)-1]), l.newSegment(base)))
		return true, nil
	}
	if err := active.Finish(); err != nil {
		return false, err
	}
	if active.LogNameUnsynced() {
		// No segment is ever on the disk without the one before it.
		if err := l.syncDir(); err != nil {
			return false, err
		}
		active.NamesSynced(active.Names())
	}
	if l.recoveryPoint.Load() >= base {
		// After a crash this segment would not be scanned, so its indexes must be whole before the next one is there. Else flushing it
		// takes care of that.
		if err := active.SyncIndexes(); err != nil {
			return false, err
		}
	}
	l.producers.SetEndOffset(base)
	if err := l.snapshots.Take(&l.producers); err != nil {
		return false, err
	}
	l.rolled = append(l.rolled, active)
	l.publish(append(slices.Clone(segments), l.newSegment(base)))
	return true, nil
}

// wantsPreparing says, once the active segment is half full, that prepareRoll is due: it does away from the writer what rolling would have
// to wait for.
func (l *Log) wantsPreparing() bool {
	active := l.last()
	if l.background == nil || l.preparing || !active.LogNameUnsynced() || active.Size() < int64(l.config.Load().SegmentBytes)/2 {
		return false
	}
	l.preparing = true
	return true
}

// prepareRoll makes the name of the active segment's log durable.
func (l *Log) prepareRoll() {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	active := l.last()
	names, err := active.Names(), l.writable()
	l.mu.Unlock()
	if err == nil {
		err = l.fs.SyncDir(l.dir)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.preparing = false
	if err == nil {
		active.NamesSynced(names) // otherwise rolling does it, and meets the error
	}
}

func (l *Log) newSegment(base int64) *segment.Segment { return segment.New(l.segmentOptions(base)) }

func (l *Log) segmentOptions(base int64) segment.Options {
	return segment.Options{FS: l.fs, Dir: l.dir, BaseOffset: base, Handles: l.handles, CreatedMs: l.nowMs, JitterMs: l.jitter(base)}
}

// jitter is a random time below the smaller of segment.jitter.ms and segment.ms.
func (l *Log) jitter(base int64) int64 {
	c := l.config.Load()
	below := min(c.SegmentJitterMs, c.SegmentMs)
	if below <= 0 {
		return 0
	}
	x := l.jitterSeed + uint64(base)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int64((x ^ x>>31) % uint64(below))
}

// Roll begins a new segment, unless the active one is empty.
func (l *Log) Roll(nowMs int64) error {
	l.mu.Lock()
	rolled, err := l.rollNow(nowMs)
	l.mu.Unlock()
	if err != nil || !rolled {
		return err
	}
	return l.flushRolled()
}

func (l *Log) rollNow(nowMs int64) (bool, error) {
	if err := l.writable(); err != nil {
		return false, err
	}
	l.at(nowMs)
	active := l.last()
	if active.Size() == 0 {
		return false, nil
	}
	rolled, err := l.roll(active.NextOffset())
	if err != nil {
		return false, l.failed("roll", err)
	}
	return rolled, nil
}
