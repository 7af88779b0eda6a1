package segment

import (
	"errors"

	"sluice/protocol/record"
	"sluice/storage/vfs"
)

// AcquireLog gives the log file to a reader until ReleaseLog.
func (s *Segment) AcquireLog() (vfs.File, error) { return s.log.acquire() }

// ReleaseLog ends what AcquireLog began.
func (s *Segment) ReleaseLog() { s.log.release() }

// Find locates the first batch that ends after offset, the one that holds it if there is one. ok is false if the segment has none.
func (s *Segment) Find(offset int64) (at Location, ok bool, err error) {
	if r := s.recent.Load(); r != nil {
		if at, ok := r.find(offset); ok {
			return at, true, nil
		}
	}
	at, _, ok, err = s.scanTo(offset)
	return at, ok, err
}

// FindEnd returns the position after the last batch that ends at or before offset (exclusive). It need not be searched for beyond a
// position at which the caller stops anyway: from there on any position is as good.
func (s *Segment) FindEnd(offset, enough int64) (position int64, err error) {
	if r := s.recent.Load(); r != nil {
		if position, ok := r.end(offset); ok {
			return position, nil
		}
	}
	if offset-s.baseOffset <= 0 {
		return 0, nil
	}
	e, found, err := s.offsets.lookup(offset - 1 - s.baseOffset)
	if err != nil {
		return 0, err
	}
	if found && e.position >= enough {
		return e.position, nil // it starts with a batch that ends before offset
	}
	_, end, _, err := s.scanTo(offset)
	return end, err
}

// scanTo finds with the index and then batch by batch the first batch that ends after offset, and the position where those end that do not.
func (s *Segment) scanTo(offset int64) (at Location, end int64, ok bool, err error) {
	size := s.size.Load() // first: what comes later is not wanted
	if size == 0 {
		return Location{}, 0, false, nil
	}
	start, err := s.indexed(offset)
	if err != nil {
		return Location{}, 0, false, err
	}
	f, err := s.log.acquire()
	if err != nil {
		return Location{}, 0, false, err
	}
	defer s.log.release()
	sc := newScanner(f, start.position, size)
	defer sc.free()
	if start.position > 0 {
		_, first, err := sc.next()
		if err != nil && !notBatch(err) {
			return Location{}, 0, false, err
		}
		if err != nil || first.NextOffset != s.baseOffset+start.relative+1 {
			// The index does not fit the log: go through the whole of it and let the writer know.
			s.suspect.Store(true)
			sc.position = 0
		} else if first.NextOffset > offset {
			return first, first.Position, true, nil
		}
	}
	for {
		_, at, err := sc.next()
		if errors.Is(err, errEnd) {
			return Location{}, sc.position, false, nil
		}
		if err != nil {
			return Location{}, 0, false, err
		}
		if at.NextOffset > offset {
			return at, at.Position, true, nil
		}
	}
}

// notBatch says whether an error of a scanner means that there is no whole batch at a position.
func notBatch(err error) bool {
	var bad *record.Corrupt
	return errors.Is(err, errEnd) || errors.As(err, &bad)
}

// indexed is the last entry of the offset index at or below offset; its position is 0 if there is none.
func (s *Segment) indexed(offset int64) (offsetEntry, error) {
	e, _, err := s.offsets.lookup(offset - s.baseOffset)
	if err != nil {
		return offsetEntry{}, err
	}
	if e.position < 0 || e.position >= s.size.Load() {
		s.suspect.Store(true)
		return offsetEntry{}, nil
	}
	return e, nil
}

// UpperBound is an offset that all batches up to the position end before (exclusive), found by the index alone. ok is false if the index
// does not reach that far.
func (s *Segment) UpperBound(position int64) (offset int64, ok bool, err error) {
	var buf [offsetEntryBytes]byte
	n, err := s.offsets.search(positionKey, position-1, false, buf[:])
	if err != nil || n+1 >= s.offsets.entries() {
		return 0, false, err
	}
	e, err := s.offsets.entry(n + 1)
	return s.baseOffset + e.relative, err == nil, err
}

// Found is a record found by its timestamp.
type Found struct {
	TimestampMs int64
	Offset      int64
	LeaderEpoch record.LeaderEpoch // of its batch
}

// FindTimestamp finds the first record at or after startOffset whose timestamp is timestampMs or later.
func (s *Segment) FindTimestamp(timestampMs, startOffset int64, maxDecompressedBytes int) (found Found, ok bool, err error) {
	e, _, err := s.times.lookup(timestampMs)
	if err != nil {
		return Found{}, false, err
	}
	from := max(startOffset, s.baseOffset+e.relative)
	err = s.eachFrom(from, func(header record.Batch, at Location, load func() (record.Batch, error)) (bool, error) {
		if header.MaxTimestamp() < timestampMs || at.NextOffset <= startOffset {
			return true, nil
		}
		b, err := load()
		if err != nil {
			return false, err
		}
		for r, err := range b.Records(maxDecompressedBytes) {
			if err != nil {
				return false, err
			}
			if r.TimestampMs >= timestampMs && r.Offset >= startOffset {
				found, ok = Found{r.TimestampMs, r.Offset, header.LeaderEpoch()}, true
				return false, nil
			}
		}
		return true, nil
	})
	return found, ok, err
}

// FindMaxTimestamp finds the first record that has the segment's largest timestamp.
func (s *Segment) FindMaxTimestamp(maxDecompressedBytes int) (found Found, ok bool, err error) {
	t, err := s.MaxTimestamp()
	if err != nil || t.TimestampMs < 0 {
		return Found{}, false, err
	}
	err = s.eachFrom(t.Offset, func(header record.Batch, at Location, load func() (record.Batch, error)) (bool, error) {
		if header.MaxTimestamp() != t.TimestampMs {
			return true, nil
		}
		b, err := load()
		if err != nil {
			return false, err
		}
		for r, err := range b.Records(maxDecompressedBytes) {
			if err != nil {
				return false, err
			}
			if r.TimestampMs == t.TimestampMs {
				found, ok = Found{r.TimestampMs, r.Offset, header.LeaderEpoch()}, true
				return false, nil
			}
		}
		return true, nil
	})
	return found, ok, err
}

// eachFrom calls f for the batches from the one that the index has at or before offset on, until it returns false. load reads the whole batch.
func (s *Segment) eachFrom(offset int64, f func(header record.Batch, at Location, load func() (record.Batch, error)) (bool, error)) error {
	size := s.size.Load()
	if size == 0 {
		return nil
	}
	start, err := s.indexed(offset)
	if err != nil {
		return err
	}
	file, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer s.log.release()
	sc := newScanner(file, start.position, size)
	defer sc.free()
	for {
		header, at, err := sc.next()
		if start.position > 0 && (notBatch(err) || err == nil && at.NextOffset != s.baseOffset+start.relative+1) {
			s.suspect.Store(true)
			sc.position, start = 0, offsetEntry{}
			continue
		}
		start = offsetEntry{} // only the first batch is compared
		if errors.Is(err, errEnd) {
			return nil
		}
		if err != nil {
			return err
		}
		more, err := f(header, at, func() (record.Batch, error) {
			b := make(record.Batch, at.Bytes) // no more than the file has
			return b, readFull(file, b, at.Position)
		})
		if !more || err != nil {
			return err
		}
	}
}
