// Package compact compacts logs as Apache Kafka does: of each key only the newest record stays, at its offset. plan.go decides what is to be
// compacted, clean.go does it, segment by segment, beside readers and the writer of the log.
package compact

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"sluice/protocol/record"
	"sluice/storage/partlog"
	"sluice/storage/segment"
	"sluice/storage/vfs"
)

// Cleaner compacts one log at a time. Its memory is kept from log to log; Release frees it.
type Cleaner struct {
	// Pace is told how many bytes were read or are about to be written, and returns when it is time to go on. Its error ends the compaction.
	Pace func(bytes int) error
	// BufferBytes is how much is read at once, and about how much is written at once; a larger batch takes more.
	BufferBytes int

	filter  record.Filter
	in, out []byte
	stats   Stats
}

// Task is one log to be compacted.
type Task struct {
	Log                *partlog.Log
	Candidate          Candidate
	HighWatermark      int64
	NowMs              int64 // ms since 1970; delete horizons count from here
	DeleteRetentionMs  int64
	SegmentBytes       int     // segment.bytes: as many segments become one as fit it
	IndexBytes         int     // segment.index.bytes, likewise
	IndexIntervalBytes int     // index.interval.bytes
	MapBytes           int64   // memory for the offset map, at most
	LoadFactor         float64 // how full that memory may get, below 1
}

// Stats count what a compaction did.
type Stats struct {
	IndexedBytes   int64 // read to learn the newest offsets
	ReadBytes      int64 // of segments that were rewritten
	WrittenBytes   int64 // of the segments in their place
	ReadRecords    int64
	KeptRecords    int64
	NoKeyRecords   int64 // dropped because they have no key, which a compacted topic refuses
	SegmentsBefore int
	SegmentsAfter  int
	MapUtilization float64 // 0 to 1
}

// Uncleanable means that a log cannot be compacted because of what is in it. It will not be better the next time.
type Uncleanable struct {
	SegmentBaseOffset int64
	Position          int64 // of the batch in the segment's file
	Err               error
}

func (e *Uncleanable) Error() string {
	return fmt.Sprintf("segment %d cannot be compacted, at byte %d: %v", e.SegmentBaseOffset, e.Position, e.Err)
}

// Unwrap gives the cause.
func (e *Uncleanable) Unwrap() error { return e.Err }

// Release frees the memory that is kept between compactions.
func (c *Cleaner) Release() {
	c.filter, c.in, c.out = record.Filter{}, nil, nil
}

// Clean compacts a log and returns up to which offset (exclusive) it is clean: the candidate's first uncleanable offset, or less if the keys
// of the dirty part did not fit the map. Errors: *Uncleanable, partlog.ErrChanged when the log was truncated or segments deleted meanwhile,
// *partlog.Fault, those of Pace. After an error the log is what it was, or some of its segments have been compacted.
func (c *Cleaner) Clean(t Task) (cleanedTo int64, stats Stats, err error) {
	c.stats = Stats{}
	c.in = resize(c.in, max(c.BufferBytes, minBufferBytes))
	run := t.Log.StartCleaning()
	segments := run.Segments(t.Candidate.FirstUncleanableOffset)
	m, err := c.index(run, segments, t)
	if err != nil {
		return 0, c.stats, err
	}
	cleanedTo = m.last + 1
	c.stats.MapUtilization = m.utilization()
	for len(segments) > 0 && segments[len(segments)-1].BaseOffset() >= cleanedTo {
		segments = segments[:len(segments)-1]
	}
	w := &rewriter{cleaner: c, task: t, run: run, offsets: m, txns: newTransactions()}
	for _, g := range groups(describe(segments), t.Candidate.FirstUncleanableOffset, limits{int64(t.SegmentBytes), int64(t.IndexBytes)}) {
		next := t.Candidate.FirstUncleanableOffset
		if g.to < len(segments) {
			next = segments[g.to].BaseOffset()
		}
		if err := w.rewrite(segments[g.from:g.to], next); err != nil {
			return 0, c.stats, err
		}
	}
	c.filter.Shrink(maxKeptBytes)
	return cleanedTo, c.stats, nil
}

const (
	minBufferBytes = 4096
	maxKeptBytes   = 1 << 20
)

// StateOf looks at a log. cleanedTo is up to where it was compacted, -1 if it never was.
func StateOf(log *partlog.Log, highWatermark, cleanedTo int64) State {
	segments, active := log.Closed()
	return State{
		LogStartOffset: log.LogStartOffset(), LogEndOffset: log.LogEndOffset(), LastStableOffset: log.LastStableOffset(highWatermark),
		CleanedTo: cleanedTo, Segments: describe(segments), ActiveBaseOffset: active,
	}
}

// describe gives what deciding needs of segments that are not active.
func describe(segments []*segment.Segment) []Segment {
	facts := make([]Segment, len(segments))
	for i, s := range segments {
		offsetBytes, timeBytes := s.IndexBytes()
		facts[i] = Segment{
			BaseOffset: s.BaseOffset(), Bytes: s.Size(), OffsetIndexBytes: offsetBytes, TimeIndexBytes: timeBytes,
			FirstTimestampMs: s.FirstTimestamp, LargestTimestampMs: s.LargestTimestamp,
		}
	}
	return facts
}

// index learns the newest offset of each key in the dirty segments.
func (c *Cleaner) index(run *partlog.Cleaning, segments []*segment.Segment, t Task) (*offsetMap, error) {
	start, end := t.Candidate.FirstDirtyOffset, t.Candidate.FirstUncleanableOffset
	m := newOffsetMap(mapSize(t.MapBytes, t.LoadFactor, end-start))
	first := max(len(segments)-1, 0)
	for first > 0 && segments[first].BaseOffset() > start {
		first--
	}
	txns := newTransactions()
	aborted, err := run.Aborted(start, end)
	if err != nil {
		return nil, failed(run, nil, err)
	}
	txns.add(aborted)
	for i := first; i < len(segments); i++ {
		next := end
		if i+1 < len(segments) {
			next = segments[i+1].BaseOffset()
		}
		full, err := c.indexSegment(run, segments[i], start, m, txns)
		if err != nil {
			return nil, failed(run, segments[i], err)
		}
		if full {
			break
		}
		m.last = next - 1
	}
	return m, nil
}

var errStop = errors.New("no more is wanted")

// indexSegment reports whether the map has become full before the end of the segment.
func (c *Cleaner) indexSegment(run *partlog.Cleaning, s *segment.Segment, start int64, m *offsetMap, txns *transactions) (full bool, err error) {
	position := int64(0)
	if s.BaseOffset() < start {
		at, ok, err := s.Find(start)
		if err != nil {
			return false, run.Fault(err)
		}
		if !ok {
			return false, nil
		}
		position = at.Position
	}
	err = c.batches(run, s, position, &c.stats.IndexedBytes, func(b record.Batch) error {
		switch {
		case b.IsControl():
			if _, err := txns.control(b); err != nil {
				return &badBatch{err: err}
			}
		case !txns.records(b):
			if err := c.filter.Each(b, func(v record.View) bool {
				if v.Key == nil || v.Offset < start {
					return true
				}
				full = !m.put(v.Key, v.Offset)
				return !full
			}); err != nil {
				return &badBatch{err: err}
			}
			if full {
				return errStop
			}
		}
		if last := b.LastOffset(); last >= start {
			m.last = last
		}
		return nil
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return full, err
}

// batches reads a segment from a position on and calls f with each batch, which is whole and has the right checksum. Errors of f that are
// about the batch are *badBatch.
func (c *Cleaner) batches(run *partlog.Cleaning, s *segment.Segment, position int64, read *int64, f func(record.Batch) error) error {
	size := s.Size()
	if position >= size {
		return nil
	}
	file, err := s.AcquireLog()
	if err != nil {
		return run.Fault(err)
	}
	defer s.ReleaseLog()
	next := s.BaseOffset()
	for position < size {
		chunk := c.in[:min(int64(len(c.in)), size-position)]
		if err := readFull(file, chunk, position); err != nil {
			return run.Fault(err)
		}
		used := 0
		for {
			b, _, err := record.Split(chunk[used:])
			var corrupt *record.Corrupt
			if errors.As(err, &corrupt) && corrupt.Incomplete {
				break
			}
			if err == nil {
				err = sound(b, next, s.BaseOffset())
			}
			if err != nil {
				return &badBatch{position + int64(used), err}
			}
			next = b.NextOffset()
			if err := f(b); err != nil {
				var bad *badBatch
				if errors.As(err, &bad) {
					bad.position = position + int64(used)
				}
				return err
			}
			used += len(b)
		}
		if used == 0 {
			if err := c.grow(chunk, size-position); err != nil {
				return &badBatch{position, err}
			}
			continue
		}
		position += int64(used)
		*read += int64(used)
		if err := c.Pace(used); err != nil {
			return err
		}
	}
	return nil
}

// badBatch is an error that is about what is in a log, and not about the disk.
type badBatch struct {
	position int64 // in the segment's file
	err      error
}

func (b *badBatch) Error() string { return b.err.Error() }
func (b *badBatch) Unwrap() error { return b.err }

// sound checks what the rewriting relies on. Above all a batch that was damaged on the disk must not get a new checksum.
func sound(b record.Batch, next, segmentBase int64) error {
	switch {
	case b.LastOffsetDelta() < 0 || b.BaseOffset() < next:
		return &record.Corrupt{Reason: "offsets are out of order"}
	case b.LastOffset()-segmentBase > math.MaxInt32:
		return &record.Corrupt{Reason: "offset does not fit the segment"}
	case !b.ValidCRC():
		return &record.Corrupt{Reason: "checksum does not match"}
	}
	return nil
}

// grow makes room for the batch that chunk begins with, of which left bytes are in the file.
func (c *Cleaner) grow(chunk []byte, left int64) error {
	if int64(len(chunk)) == left {
		return &record.Corrupt{Reason: "batch is cut short"}
	}
	need := record.SizeOf(chunk)
	if need > left {
		return &record.Corrupt{Reason: "batch is larger than what is left of the segment"}
	}
	c.in = make([]byte, need)
	return nil
}

func readFull(f vfs.File, b []byte, position int64) error {
	n, err := f.ReadAt(b, position)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// resize gives back a buffer of that size: the same one if it has it.
func resize(b []byte, size int) []byte {
	if len(b) == size {
		return b
	}
	return make([]byte, size)
}

// failed explains an error of reading or writing: the log may have changed meanwhile, or its content is bad.
func failed(run *partlog.Cleaning, s *segment.Segment, err error) error {
	if run.Changed() || s != nil && s.Deleted() && errors.Is(err, os.ErrNotExist) {
		return partlog.ErrChanged
	}
	var bad *badBatch
	if s != nil && errors.As(err, &bad) {
		return &Uncleanable{SegmentBaseOffset: s.BaseOffset(), Position: bad.position, Err: bad.err}
	}
	return err
}
