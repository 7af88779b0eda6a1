package partlog

import (
	"sluice/protocol/record"
	"sluice/storage/segment"
	"sluice/storage/vfs"
)

// Slice is a range of a segment's file. Bytes is 0 if there is nothing between the fetch offset and the bound.
type Slice struct {
	File        vfs.File // nil if Bytes is 0
	Position    int64    // of the first byte in File
	Bytes       int64
	FetchOffset int64
	// FirstBatchBytes is the size of the first batch. If it is more than Bytes, the caller's limit did not allow even that one.
	FirstBatchBytes int64
	LogStartOffset  int64
	LogEndOffset    int64 // exclusive

	segment *segment.Segment // to be released
	bound   int64            // the offset before which all of the segment is
}

// Close gives the file back. A Slice must be closed once, when its bytes have been sent; closing an empty one does nothing.
func (s *Slice) Close() {
	if s.segment != nil {
		s.segment.ReleaseLog()
		s.segment, s.File = nil, nil
	}
}

// Read finds the bytes of the batches from the one that holds fetchOffset on. They begin with a whole batch, which may start before
// fetchOffset, and may end inside one, as Kafka's do; batches that reach upTo (exclusive) or beyond are left out. With atLeastOne the first
// batch comes whole even if it has more than maxBytes. Errors: *OffsetOutOfRange, *Fault, ErrClosed.
func (l *Log) Read(fetchOffset int64, maxBytes int, atLeastOne bool, upTo int64) (Slice, error) {
	for {
		truncations := l.truncations.Load()
		s, err := l.read(fetchOffset, maxBytes, atLeastOne, upTo)
		if err == nil {
			return s, nil
		}
		if err = l.readFailed("read", err, truncations, fetchOffset); err != nil {
			return Slice{}, err
		}
	}
}

// readFailed explains an error of reading: nil means that the log was being truncated, and that reading may succeed now.
func (l *Log) readFailed(op string, err error, truncations, offset int64) error {
	switch err.(type) {
	case *OffsetOutOfRange:
		return err
	}
	if l.closed.Load() {
		return ErrClosed
	}
	if offset < l.start.Load() {
		return l.outOfRange(offset) // deleted meanwhile
	}
	if truncations != l.truncations.Load() {
		return nil
	}
	return &Fault{Op: op, Path: l.dir, Err: err}
}

func (l *Log) read(fetchOffset int64, maxBytes int, atLeastOne bool, upTo int64) (Slice, error) {
	s := Slice{FetchOffset: fetchOffset, LogEndOffset: l.end.Load(), LogStartOffset: l.start.Load()}
	if fetchOffset < s.LogStartOffset || fetchOffset > s.LogEndOffset {
		return Slice{}, l.outOfRange(fetchOffset)
	}
	upTo = min(upTo, s.LogEndOffset)
	if fetchOffset >= upTo || maxBytes <= 0 && !atLeastOne {
		return s, nil
	}
	if l.closed.Load() {
		return Slice{}, ErrClosed
	}
	segments := l.list()
	for i := max(floor(segments, fetchOffset), 0); i < len(segments) && segments[i].BaseOffset() < upTo; i++ {
		from := segments[i]
		at, ok, err := from.Find(fetchOffset)
		if err != nil {
			return Slice{}, err
		}
		if !ok {
			continue // what was there is gone, or it is a gap at the end of the segment
		}
		if at.NextOffset > upTo {
			return s, nil
		}
		s.FirstBatchBytes = at.Bytes
		most := max(int64(maxBytes), 0)
		if atLeastOne {
			most = max(most, at.Bytes)
		}
		s.bound = s.LogEndOffset
		if i+1 < len(segments) {
			s.bound = segments[i+1].BaseOffset()
		}
		size := from.Size()
		if upTo < s.bound || i+1 == len(segments) {
			// The size of the active segment may have grown past the log end offset.
			if size, err = from.FindEnd(upTo, at.Position+most); err != nil {
				return Slice{}, err
			}
		}
		if s.Bytes = min(most, size-at.Position); s.Bytes <= 0 {
			s.Bytes = 0
			return s, nil
		}
		if s.File, err = from.AcquireLog(); err != nil {
			return Slice{}, err
		}
		s.Position, s.segment = at.Position, from
		return s, nil
	}
	return s, nil
}

// AbortedTransaction is a transaction whose records a read_committed consumer leaves out.
type AbortedTransaction struct {
	ProducerID  record.ProducerID
	FirstOffset int64
}

// AbortedTransactions lists the aborted transactions with records between from and upTo (exclusive), in the order of their markers.
func (l *Log) AbortedTransactions(from, upTo int64) ([]AbortedTransaction, error) {
	for {
		truncations := l.truncations.Load()
		aborted, err := l.aborted(from, upTo)
		if err == nil {
			return aborted, nil
		}
		if err = l.readFailed("read aborted transactions", err, truncations, from); err != nil {
			return nil, err
		}
	}
}

func (l *Log) aborted(from, upTo int64) ([]AbortedTransaction, error) {
	var aborted []AbortedTransaction
	segments := l.list()
	for i := max(floor(segments, from), 0); i < len(segments); i++ {
		done := false
		err := segments[i].Aborted(func(t segment.AbortedTxn) bool {
			if t.LastOffset >= from && t.FirstOffset < upTo {
				aborted = append(aborted, AbortedTransaction{t.ProducerID, t.FirstOffset})
			}
			done = t.LastStableOffset >= upTo
			return !done
		})
		if err != nil || done {
			return aborted, err
		}
	}
	return aborted, nil
}

// UpperBound is an offset (exclusive) that bounds the batches of the slice from above, for AbortedTransactions. It is found by the index,
// so it may be some batches too far. To be called before Close.
func (s *Slice) UpperBound() (int64, error) {
	if s.segment == nil {
		return s.FetchOffset, nil
	}
	offset, ok, err := s.segment.UpperBound(s.Position + s.Bytes)
	if err != nil {
		return 0, err
	}
	if !ok {
		return s.bound, nil
	}
	return offset, nil
}

// TimestampOffset is a record found by time.
type TimestampOffset struct {
	TimestampMs int64
	Offset      int64
	LeaderEpoch record.LeaderEpoch
}

// OffsetForTimestamp finds the first record with that timestamp or a later one, in ms since 1970, below upTo (exclusive).
func (l *Log) OffsetForTimestamp(timestampMs, upTo int64) (TimestampOffset, bool, error) {
	return l.findByTime(upTo, func(segments []*segment.Segment) (segment.Found, bool, error) {
		start, most := l.start.Load(), l.config.Load().MaxDecompressed
		for i := max(floor(segments, start), 0); i < len(segments); i++ {
			largest, err := segments[i].MaxTimestamp()
			if err != nil {
				return segment.Found{}, false, err
			}
			if largest.TimestampMs < timestampMs {
				continue
			}
			if found, ok, err := segments[i].FindTimestamp(timestampMs, start, most); ok || err != nil {
				return found, ok, err
			}
		}
		return segment.Found{}, false, nil
	})
}

// OffsetOfMaxTimestamp finds the first record with the largest timestamp of the log, if it is below upTo (exclusive).
func (l *Log) OffsetOfMaxTimestamp(upTo int64) (TimestampOffset, bool, error) {
	return l.findByTime(upTo, func(segments []*segment.Segment) (segment.Found, bool, error) {
		var newest *segment.Segment
		largest := record.NoTimestamp
		for _, s := range segments {
			t, err := s.MaxTimestamp()
			if err != nil {
				return segment.Found{}, false, err
			}
			if t.TimestampMs > largest {
				newest, largest = s, t.TimestampMs
			}
		}
		if newest == nil {
			return segment.Found{}, false, nil
		}
		return newest.FindMaxTimestamp(l.config.Load().MaxDecompressed)
	})
}

func (l *Log) findByTime(upTo int64, find func([]*segment.Segment) (segment.Found, bool, error)) (TimestampOffset, bool, error) {
	for {
		if l.closed.Load() {
			return TimestampOffset{}, false, ErrClosed
		}
		truncations, start, segments := l.truncations.Load(), l.start.Load(), l.segments.Load()
		found, ok, err := find(*segments)
		if err == nil {
			return TimestampOffset{found.TimestampMs, found.Offset, found.LeaderEpoch}, ok && found.Offset < upTo, nil
		}
		if start != l.start.Load() || segments != l.segments.Load() {
			continue // a segment has been deleted meanwhile
		}
		if err = l.readFailed("search by time", err, truncations, start); err != nil {
			return TimestampOffset{}, false, err
		}
	}
}
