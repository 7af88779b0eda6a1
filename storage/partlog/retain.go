package partlog

import (
	"errors"
	"os"
	"slices"

	"sluice/storage/segment"
)

// Retain deletes the segments whose time, size or offsets are past what the config keeps, as long as they are below the high watermark, and
// removes files of segments deleted FileDeleteDelayMs ago. It also mends indexes that readers found damaged, and frees the memory of a log
// that nothing was appended to since the last time. It returns how many segments it deleted. The log start offset may have changed.
func (l *Log) Retain(nowMs, highWatermark int64) (int, error) {
	l.flushing.Lock()
	l.mu.Lock()
	deleted, rolled, err := l.retain(nowMs, highWatermark)
	l.mu.Unlock()
	l.flushing.Unlock()
	if err != nil || !rolled {
		return deleted, err
	}
	return deleted, l.flushRolled()
}

func (l *Log) retain(nowMs, highWatermark int64) (deleted int, rolled bool, err error) {
	if err := l.writable(); err != nil {
		return 0, false, err
	}
	l.at(nowMs)
	c := l.config.Load()
	conditions := []func(*Config) deletable{l.belowStart, l.beyondSize, l.beyondTime}
	if !c.Delete {
		conditions = conditions[:1]
	}
	for _, condition := range conditions {
		n, r, err := l.deleteOldest(highWatermark, condition(c))
		deleted, rolled = deleted+n, rolled || r
		if err != nil {
			return deleted, rolled, l.failed("delete old segments", err)
		}
	}
	if err := l.removeDoomed(false); err != nil {
		return deleted, rolled, l.failed("remove deleted segments", err)
	}
	if err := l.tidy(c); err != nil {
		return deleted, rolled, l.failed("write indexes", err)
	}
	return deleted, rolled, nil
}

// deletable says whether a segment may go, given the offset at which the next one begins.
type deletable func(s *segment.Segment, next int64) (bool, error)

func none(*segment.Segment, int64) (bool, error) { return false, nil }

// belowStart: segments of which nothing can be read any more. The active one stays.
func (l *Log) belowStart(*Config) deletable {
	start, active := l.start.Load(), l.last()
	return func(s *segment.Segment, next int64) (bool, error) { return s != active && next <= start, nil }
}

// beyondSize: as many as can go without the log becoming smaller than RetentionBytes.
func (l *Log) beyondSize(c *Config) deletable {
	surplus := l.SizeBytes() - c.RetentionBytes
	if c.RetentionBytes < 0 || surplus < 0 {
		return none
	}
	return func(s *segment.Segment, _ int64) (bool, error) {
		if surplus < s.Size() {
			return false, nil
		}
		surplus -= s.Size()
		return true, nil
	}
}

// beyondTime: those whose newest record is older than RetentionMs.
func (l *Log) beyondTime(c *Config) deletable {
	if c.RetentionMs < 0 {
		return none
	}
	return func(s *segment.Segment, _ int64) (bool, error) {
		if s.Size() == 0 {
			return true, nil // nothing was left of it by compaction
		}
		newest, err := s.LargestTimestamp()
		return l.nowMs-newest > c.RetentionMs, err
	}
}

// deleteOldest deletes segments from the oldest on as long as they are below the high watermark and the condition holds. The active segment
// is closed first if it is among them.
func (l *Log) deleteOldest(highWatermark int64, condition deletable) (deleted int, rolled bool, err error) {
	segments := l.list()
	for deleted < len(segments) {
		s := segments[deleted]
		next := l.end.Load()
		if deleted+1 < len(segments) {
			next = segments[deleted+1].BaseOffset()
		} else if s.Size() == 0 {
			break
		}
		if highWatermark < next {
			break
		}
		if ok, err := condition(s, next); err != nil || !ok {
			if err != nil {
				return 0, false, err
			}
			break
		}
		deleted++
	}
	if deleted == 0 {
		return 0, false, nil
	}
	if deleted == len(segments) {
		// At the log end offset, which must outlive a restart.
		if rolled, err = l.roll(l.end.Load()); err != nil {
			return 0, rolled, err
		}
		if err := l.keepEnd(); err != nil {
			return 0, rolled, err
		}
		segments = l.list()
	}
	l.advanceStart(segments[deleted].BaseOffset())
	l.publish(slices.Clone(segments[deleted:]))
	for i, s := range segments[:deleted] {
		if l.renamed {
			// The older ones are gone for good before the next goes: a crash leaves no hole.
			if err := l.syncDir(); err != nil {
				return i, rolled, err
			}
		}
		if err := l.discard(s); err != nil {
			return i, rolled, err
		}
	}
	return deleted, rolled, nil
}

// keepEnd puts the empty active segment on the disk, as the log end offset is in its name.
func (l *Log) keepEnd() error {
	if err := l.last().Create(); err != nil {
		return err
	}
	if err := l.syncDir(); err != nil {
		return err
	}
	l.last().NamesSynced(l.last().Names())
	return nil
}

// removeDoomed removes the files whose time has come, or all.
func (l *Log) removeDoomed(all bool) error {
	for len(l.doomed) > 0 && (all || l.doomed[0].atMs <= l.nowMs) {
		d := l.doomed[0]
		l.doomed[0] = doomed{}
		l.doomed = l.doomed[1:]
		if d.segment != nil {
			if err := d.segment.Remove(); err != nil {
				return err
			}
		} else if err := l.fs.Remove(d.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if len(l.doomed) == 0 {
		l.doomed = nil
	}
	return nil
}

// tidy mends damaged indexes, and spills those of a log that is not written to.
func (l *Log) tidy(c *Config) error {
	for i, s := range l.list() {
		if !s.Suspect() {
			continue
		}
		rebuilt, err := s.Rebuilt(c.IndexIntervalBytes)
		if err != nil {
			return err
		}
		segments := slices.Clone(l.list())
		segments[i] = rebuilt
		l.publish(segments)
		if at := slices.Index(l.rolled, s); at >= 0 {
			l.rolled = slices.Clone(l.rolled)
			l.rolled[at] = rebuilt
		}
		s.Close()
	}
	if l.busy {
		l.busy = false
		return nil
	}
	for _, s := range l.list() {
		if err := s.Idle(); err != nil {
			return err
		}
	}
	return nil
}
