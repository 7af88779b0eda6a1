package partlog

import (
	"slices"

	"sluice/storage/segment"
)

// TruncateTo removes everything from offset on. If it is inside a batch, the whole batch goes and the log end offset is offset all the
// same. The caller writes the recovery point to its checkpoint file before the next append.
func (l *Log) TruncateTo(offset int64) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writable(); err != nil {
		return err
	}
	if offset < 0 {
		return l.outOfRange(offset)
	}
	l.noteTruncation(offset)
	l.truncations.Add(1)
	defer l.truncations.Add(1)
	if err := l.truncateTo(offset); err != nil {
		return l.failed("truncate", err)
	}
	return nil
}

func (l *Log) truncateTo(offset int64) error {
	if offset >= l.end.Load() {
		return l.epochs.TruncateFromEnd(l.end.Load())
	}
	segments := l.list()
	i := floor(segments, offset)
	if i < 0 {
		return l.startOver(offset)
	}
	l.end.Store(offset)
	l.recoveryPoint.Store(min(l.recoveryPoint.Load(), offset))
	l.start.Store(min(l.start.Load(), offset))
	l.publish(slices.Clone(segments[:i+1]))
	if err := l.discardFromEnd(segments[i+1:]); err != nil {
		return err
	}
	active := segments[i]
	l.rolled = slices.DeleteFunc(l.rolled, func(s *segment.Segment) bool { return s == active })
	if err := active.TruncateTo(offset, l.config.Load().IndexIntervalBytes); err != nil {
		return err
	}
	l.recoveryPoint.Store(min(l.recoveryPoint.Load(), active.NextOffset()))
	if err := l.epochs.TruncateFromEnd(offset); err != nil {
		return err
	}
	if err := l.rebuildProducers(offset); err != nil {
		return err
	}
	return l.syncDir()
}

// discard deletes a segment: its files are renamed now and removed later. The list of segments is not touched.
func (l *Log) discard(s *segment.Segment) error {
	if i := slices.Index(l.rolled, s); i >= 0 {
		l.rolled = slices.Delete(slices.Clone(l.rolled), i, i+1)
	}
	if !s.Created() {
		return nil
	}
	if err := s.MarkDeleted(); err != nil {
		return err
	}
	l.renamed = true
	atMs := l.nowMs + l.config.Load().FileDeleteDelayMs
	l.doomed = append(l.doomed, doomed{atMs: atMs, segment: s})
	snapshot, err := l.snapshots.MarkDeleted(s.BaseOffset())
	if snapshot != "" && err == nil {
		l.doomed = append(l.doomed, doomed{atMs: atMs, path: snapshot})
	}
	return err
}

// syncDir makes names durable. It holds mu.
func (l *Log) syncDir() error {
	err := l.fs.SyncDir(l.dir)
	if err == nil {
		l.renamed = false
	}
	return err
}

// discardFromEnd deletes the last segments of the log, the newest first, so that a crash leaves no hole.
func (l *Log) discardFromEnd(segments []*segment.Segment) error {
	for _, s := range slices.Backward(segments) {
		if !s.Created() {
			continue
		}
		if err := l.discard(s); err != nil {
			return err
		}
		if err := l.syncDir(); err != nil {
			return err
		}
	}
	return nil
}

// TruncateFullyAndStartAt removes everything; the log starts and ends at offset.
func (l *Log) TruncateFullyAndStartAt(offset int64) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writable(); err != nil {
		return err
	}
	if offset < 0 {
		return l.outOfRange(offset)
	}
	l.noteTruncation(offset)
	l.truncations.Add(1)
	defer l.truncations.Add(1)
	if err := l.startOver(offset); err != nil {
		return l.failed("truncate", err)
	}
	return nil
}

func (l *Log) startOver(offset int64) error {
	old := l.list()
	l.end.Store(offset)
	l.start.Store(offset)
	l.recoveryPoint.Store(offset)
	l.publish([]*segment.Segment{l.newSegment(offset)})
	if err := l.discardFromEnd(old); err != nil {
		return err
	}
	if err := l.epochs.Clear(); err != nil {
		return err
	}
	for _, at := range slices.Clone(l.snapshots.Offsets()) {
		if err := l.snapshots.Remove(at); err != nil {
			return err
		}
	}
	l.producers.Reset(offset)
	return l.keepEnd()
}

// rebuildProducers makes the producers' state as it is at offset, from the newest snapshot at or before it and the batches after that.
func (l *Log) rebuildProducers(offset int64) error {
	start := l.start.Load()
	for _, at := range slices.Clone(l.snapshots.Offsets()) {
		if at > offset || at <= start {
			if err := l.snapshots.Remove(at); err != nil {
				return err
			}
		}
	}
	if l.producers.EndOffset() == offset {
		return nil
	}
	return l.loadProducers(offset)
}

// loadProducers loads the newest snapshot at or before offset and replays the batches from there to offset.
func (l *Log) loadProducers(offset int64) error {
	ok, err := l.snapshots.LoadLatest(&l.producers, offset, l.nowMs, l.expirationMs.Load())
	if err != nil {
		return err
	}
	from := l.producers.EndOffset()
	if !ok {
		from = l.start.Load()
	}
	if err := l.replayProducers(from, offset); err != nil {
		return err
	}
	l.producers.SetEndOffset(offset)
	return nil
}

// replayProducers takes in the batches from an offset to another (exclusive).
func (l *Log) replayProducers(from, to int64) error {
	segments := l.list()
	for i := max(floor(segments, from), 0); i < len(segments) && segments[i].BaseOffset() < to; i++ {
		if err := segments[i].Visit(from, l.replayVisitor(to)); err != nil {
			return err
		}
	}
	return nil
}
