package partlog

import (
	"errors"
	"os"
	"slices"

	"sluice/storage/segment"
)

// Flush makes everything durable that was appended before the call, and raises the recovery point.
func (l *Log) Flush() error { return l.flushTo(l.end.Load()) }

// FlushDue says whether the log has unflushed records and FlushMs have passed since the last flush.
func (l *Log) FlushDue(nowMs int64) bool {
	return l.end.Load() > l.recoveryPoint.Load() && nowMs-l.lastFlushMs.Load() >= l.config.Load().FlushMs
}

// flushRolled flushes segments that have been closed, now or later.
func (l *Log) flushRolled() error {
	base := l.last().BaseOffset()
	if l.background == nil {
		return l.flushTo(base)
	}
	l.background(func() {
		// What fails is remembered: the next append fails with it. After Close or Discard there is nothing to do.
		_ = l.flushTo(base)
	})
	return nil
}

// flushTo makes everything below an offset (exclusive) durable. Appends go on meanwhile.
func (l *Log) flushTo(offset int64) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	err := l.writable()
	var f flush
	if err == nil {
		if err = l.epochs.Save(l.end.Load()); err != nil {
			err = l.failed("flush", err)
		}
		f = l.collect(offset)
	}
	nowMs := l.nowMs
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if err := l.sync(f); err != nil {
		return l.failed("flush", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.synced(f)
	l.flushed(offset)
	l.lastFlushMs.Store(nowMs)
	return nil
}

// flushed raises the recovery point. It does not go beyond the last batch: if the log was truncated inside one, the log end offset falls
// back to there when the log is opened the next time, and what is appended then has not been flushed.
func (l *Log) flushed(offset int64) {
	l.recoveryPoint.Store(max(l.recoveryPoint.Load(), min(offset, l.last().NextOffset())))
}

// flush is what has to be synced.
type flush struct {
	rolled    []*segment.Segment
	active    *segment.Segment // nil if it need not be
	names     []namedSegment
	snapshots []int64
}

// namedSegment is a segment that a crash may lose files of, and how many it has had.
type namedSegment struct {
	segment *segment.Segment
	names   int
}

// collect takes what has to be synced so that all below an offset is durable. It holds mu.
func (l *Log) collect(offset int64) flush {
	f := flush{rolled: l.rolled, snapshots: l.snapshots.Unsynced()}
	l.rolled = nil
	// The active segment's indexes are left out: they are made anew if the log is not closed.
	if active := l.last(); active.Created() && active.BaseOffset() < offset && offset > l.recoveryPoint.Load() && !slices.Contains(f.rolled, active) {
		f.active = active
	}
	for _, s := range append(slices.Clone(f.rolled), f.active) {
		if s != nil && s.NamesUnsynced() {
			f.names = append(f.names, namedSegment{s, s.Names()})
		}
	}
	return f
}

// sync syncs what was collected. It holds flushing. If it fails the log is at fault, so nothing has to be put back.
func (l *Log) sync(f flush) error {
	for _, s := range f.rolled {
		if err := gone(s.SyncLog(), s); err != nil {
			return err
		}
		if err := gone(s.SyncIndexes(), s); err != nil {
			return err
		}
	}
	if f.active != nil {
		if err := gone(f.active.SyncLog(), f.active); err != nil {
			return err
		}
	}
	if err := l.snapshots.Sync(f.snapshots); err != nil {
		return err
	}
	if len(f.names) == 0 && len(f.snapshots) == 0 {
		return nil
	}
	return l.fs.SyncDir(l.dir)
}

// synced notes what sync has done. It holds mu.
func (l *Log) synced(f flush) {
	for _, s := range f.names {
		s.segment.NamesSynced(s.names)
	}
}

// gone leaves out the error that a file does not exist of a segment that has been deleted meanwhile.
func gone(err error, s *segment.Segment) error {
	if errors.Is(err, os.ErrNotExist) && s.Deleted() {
		return nil
	}
	return err
}
