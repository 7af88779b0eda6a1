package segment

import (
	"strings"

	"sluice/protocol/record"
)

// Files is what a directory listing says about a segment: the sizes of its files in bytes, -1 for one that does not exist.
type Files struct {
	Log, Offsets, Times, Txns int64
}

// Load makes a segment of files. It reads nothing; Check, LoadEnd and Recover do.
func Load(o Options, files Files) *Segment {
	s := New(o)
	s.created = true
	s.size.Store(files.Log)
	s.nextOffset.Store(unknownEnd)
	s.maxKnown.Store(false)
	if files.Offsets >= 0 {
		s.offsets.written = true
		s.offsets.tail.Store(&indexTail{onDisk: int(files.Offsets / offsetEntryBytes)})
	}
	if files.Times >= 0 {
		s.times.written = true
		s.times.tail.Store(&indexTail{onDisk: int(files.Times / timeEntryBytes)})
	}
	s.txns.written = files.Txns >= 0
	s.txns.entries.Store(max(files.Txns, 0) / txnEntryBytes)
	return s
}

// Check says what is wrong with the index files, as far as a few reads can show; "" if nothing is. Rebuilt makes it good.
func (s *Segment) Check(files Files) (problem string, err error) {
	switch {
	case files.Offsets < 0:
		return "offset index missing", nil
	case files.Times < 0:
		return "time index missing", nil
	case files.Offsets%offsetEntryBytes != 0:
		return "offset index cut short", nil
	case files.Times%timeEntryBytes != 0:
		return "time index cut short", nil
	case files.Txns > 0 && files.Txns%txnEntryBytes != 0:
		return "transaction index cut short", nil
	}
	if problem, err = s.checkOffsets(); problem != "" || err != nil {
		return problem, err
	}
	return s.checkTimes()
}

// checkOffsets compares the last entry with the log.
func (s *Segment) checkOffsets() (string, error) {
	n := s.offsets.entries()
	if n == 0 {
		return "", nil
	}
	last, err := s.offsets.entry(n - 1)
	if err != nil {
		return "", err
	}
	first, err := s.offsets.entry(0)
	if err != nil {
		return "", err
	}
	const corrupt = "offset index corrupt"
	if first.relative < 0 || first.position <= 0 || n > 1 && (last.relative <= first.relative || last.position <= first.position) {
		return corrupt, nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return "", err
	}
	defer s.log.release()
	sc := newScanner(f, last.position, s.size.Load())
	defer sc.free()
	_, at, err := sc.next()
	if notBatch(err) {
		return corrupt, nil
	}
	if err != nil {
		return "", err
	}
	if at.NextOffset != s.baseOffset+last.relative+1 {
		return corrupt, nil
	}
	return "", nil
}

func (s *Segment) checkTimes() (string, error) {
	n := s.times.entries()
	if n == 0 {
		return "", nil
	}
	first, err := s.times.entry(0)
	if err != nil {
		return "", err
	}
	last, err := s.times.entry(n - 1)
	if err != nil {
		return "", err
	}
	if first.relative < 0 || first.timestampMs < 0 || n > 1 && (last.timestampMs <= first.timestampMs || last.relative < first.relative) {
		return "time index corrupt", nil
	}
	s.lastTime = last
	return "", nil
}

// LoadEnd finds the end of a segment that was closed, by walking from the last index entry, so that it can be appended to. rest is the
// number of bytes after the last whole batch, which should be 0.
func (s *Segment) LoadEnd(indexIntervalBytes int) (rest int64, err error) {
	last, err := s.times.last()
	if err != nil {
		return 0, err
	}
	s.lastTime = last
	s.setMax(last.timestampMs, s.baseOffset+last.relative)
	var start offsetEntry
	if n := s.offsets.entries(); n > 0 {
		if start, err = s.offsets.entry(n - 1); err != nil {
			return 0, err
		}
	}
	s.lastIndexed = start.position
	s.recent.Store(new(recentBatches))
	next, position, err := s.walk(start.position, indexIntervalBytes)
	if err != nil {
		return 0, err
	}
	rest = s.size.Load() - position
	s.nextOffset.Store(next)
	return rest, nil
}

// walk indexes the batches from a position on and returns the offset and position after the last one.
func (s *Segment) walk(position int64, indexIntervalBytes int) (next, end int64, err error) {
	f, err := s.log.acquire()
	if err != nil {
		return 0, 0, err
	}
	defer s.log.release()
	sc := newScanner(f, position, s.size.Load())
	defer sc.free()
	next = s.baseOffset
	for {
		b, at, err := sc.next()
		switch {
		case notBatch(err):
			return next, sc.position, nil
		case err != nil:
			return 0, 0, err
		case at.BaseOffset < next || !s.fits(at.NextOffset-1):
			return next, at.Position, nil
		}
		if err := s.index(b, at.Position, int(at.Bytes), indexIntervalBytes); err != nil {
			return 0, 0, err
		}
		next = at.NextOffset
	}
}

// Rebuilt makes the offset index and the time index anew from the headers of the batches, without checking those, and returns a segment
// that takes the place of this one, which is to be closed. The files are replaced when they are whole and durable. The writer must not
// append meanwhile.
func (s *Segment) Rebuilt(indexIntervalBytes int) (*Segment, error) {
	n := New(Options{FS: s.fs, Dir: s.dir, BaseOffset: s.baseOffset, Handles: s.handles, CreatedMs: s.createdMs, JitterMs: s.jitterMs})
	n.created, n.names, n.namesSynced = true, s.names, s.namesSynced
	n.size.Store(s.size.Load())
	n.txns.written, n.txns.unsynced = s.txns.written, s.txns.unsynced
	n.txns.entries.Store(s.txns.entries.Load())
	n.rebuilding.Store(true)
	if err := n.rebuild(indexIntervalBytes); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (s *Segment) rebuild(indexIntervalBytes int) error {
	if err := s.resetIndexes(); err != nil {
		return err
	}
	next, _, err := s.walk(0, indexIntervalBytes)
	if err != nil {
		return err
	}
	s.nextOffset.Store(next)
	if err := s.Finish(); err != nil {
		return err
	}
	if err := s.SyncIndexes(); err != nil {
		return err
	}
	for _, h := range []*handle{&s.offsets.handle, &s.times.handle} {
		h.close()
		h.doomed.Store(false)
		name := s.path(h.kind)
		if err := s.fs.Rename(name, strings.TrimSuffix(name, CleanedSuffix)); err != nil {
			return err
		}
	}
	s.rebuilding.Store(false)
	return nil
}

func (s *Segment) resetIndexes() error {
	s.lastIndexed, s.lastTime = 0, timeEntry{timestampMs: record.NoTimestamp}
	s.setMax(record.NoTimestamp, s.baseOffset)
	s.firstKnown = false
	if s.recent.Load() != nil {
		s.recent.Store(new(recentBatches))
	}
	s.names++
	if err := s.offsets.reset(); err != nil {
		return err
	}
	return s.times.reset()
}

// TruncateTo removes the batches that end after offset, and everything about them from the indexes, and syncs the log file.
func (s *Segment) TruncateTo(offset int64, indexIntervalBytes int) error {
	if !s.created {
		return nil
	}
	_, end, _, err := s.scanTo(offset)
	if err != nil {
		return err
	}
	return s.cut(offset, end, indexIntervalBytes)
}

// cut shortens the log to size bytes, which is where the batches end that end at or before offset.
func (s *Segment) cut(offset, size int64, indexIntervalBytes int) error {
	s.recent.Store(nil)
	s.nextOffset.Store(unknownEnd)
	s.size.Store(size)
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer s.log.release()
	if err := f.Truncate(size); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	relative := offset - s.baseOffset
	if err := s.offsets.truncateTo(relative); err != nil {
		return err
	}
	if err := s.times.truncateTo(relative); err != nil {
		return err
	}
	if err := s.txns.truncateTo(offset); err != nil {
		return err
	}
	if size == 0 {
		s.firstKnown = false
	}
	_, err = s.LoadEnd(indexIntervalBytes)
	return err
}
