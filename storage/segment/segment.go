// Package segment is one piece of a partition's log: a file of record batches with an index from offsets to positions, one from
// timestamps to offsets and one of aborted transactions. The formats are Apache Kafka's.
//
// A segment has one writer. Readers run beside it without locks: what they use is published by atomic stores after it has been written.
// Nothing is on the disk before the first append.
package segment

import (
	"errors"
	"math"
	"os"
	"path"
	"sync/atomic"

	"sluice/internal/assert"
	"sluice/protocol/record"
	"sluice/storage/vfs"
)

// Options say where a segment is.
type Options struct {
	FS         vfs.FS
	Dir        string
	BaseOffset int64
	Handles    *Handles
	CreatedMs  int64 // counts for rolling by time as long as no record has a timestamp
	JitterMs   int64 // taken off the time after which it rolls
}

// Segment is one segment.
type Segment struct {
	fs         vfs.FS
	dir        string
	handles    *Handles
	baseOffset int64

	log     handle
	offsets offsetIndex
	times   timeIndex
	txns    txnIndex

	size       atomic.Int64
	nextOffset atomic.Int64 // after the last batch, the base offset if there is none; unknownEnd in a segment that was loaded and not scanned
	recent     atomic.Pointer[recentBatches]
	deleted    atomic.Bool  // the files have their names for deletion
	deletedAs  string       // what was added to them; set before deleted is
	stage      atomic.Int32 // stageDone but for what compaction makes
	rebuilding atomic.Bool  // the index files have names for work in progress
	suspect    atomic.Bool  // a reader found that the offset index does not fit the log

	// The largest timestamp and the last offset of the first batch that has it. Of a loaded segment it is read from the time index when
	// first wanted.
	maxKnown       atomic.Bool
	maxTimestampMs atomic.Int64
	maxOffset      atomic.Int64

	// Of the writer.
	created     bool // the log file exists
	names       int  // counts the files that were created
	namesSynced int  // names, when the directory was synced last
	createdMs   int64
	jitterMs    int64
	firstKnown  bool
	firstMs     int64     // maximum timestamp of the first batch
	lastIndexed int64     // position of the last batch in the offset index
	lastTime    timeEntry // of the time index
}

const unknownEnd = -1

// New makes an empty segment, without a file.
func New(o Options) *Segment {
	s := &Segment{fs: o.FS, dir: o.Dir, handles: o.Handles, baseOffset: o.BaseOffset, createdMs: o.CreatedMs, jitterMs: o.JitterMs}
	s.log.owner, s.offsets.handle.owner, s.times.handle.owner, s.txns.handle.owner = s, s, s, s
	s.log.kind, s.offsets.handle.kind, s.times.handle.kind, s.txns.handle.kind = logFile, offsetFile, timeFile, txnFile
	s.offsets.entryBytes, s.times.entryBytes = offsetEntryBytes, timeEntryBytes
	s.nextOffset.Store(o.BaseOffset)
	s.setMax(record.NoTimestamp, o.BaseOffset)
	s.lastTime = timeEntry{timestampMs: record.NoTimestamp}
	return s
}

// path is the name of one of the segment's files as it is now.
func (s *Segment) path(kind fileKind) string {
	name := AppendFileName(nil, s.baseOffset, suffixes[kind])
	switch {
	case s.deleted.Load():
		name = append(name, s.deletedAs...)
	case s.stage.Load() != stageDone:
		name = append(name, stageSuffixes[s.stage.Load()]...)
	case s.rebuilding.Load() && (kind == offsetFile || kind == timeFile):
		name = append(name, CleanedSuffix...)
	}
	return path.Join(s.dir, string(name))
}

// BaseOffset is the smallest offset that the segment may hold.
func (s *Segment) BaseOffset() int64 { return s.baseOffset }

// Size is the number of bytes of batches.
func (s *Segment) Size() int64 { return s.size.Load() }

// NextOffset is the offset after the last batch, the base offset if there is none. It is known of new segments and after LoadEnd, Recover
// and TruncateTo.
func (s *Segment) NextOffset() int64 {
	n := s.nextOffset.Load()
	assert.That(n != unknownEnd, "end of a segment has not been loaded")
	return n
}

func (s *Segment) setMax(timestampMs, offset int64) {
	s.maxOffset.Store(offset)
	s.maxTimestampMs.Store(timestampMs)
	s.maxKnown.Store(true)
}

// MaxTimestamp is the largest timestamp of the segment's records, record.NoTimestamp if none has one, and the last offset of the first
// batch that has it.
func (s *Segment) MaxTimestamp() (TimestampOffset, error) {
	if !s.maxKnown.Load() {
		last, err := s.times.last()
		if err != nil {
			return TimestampOffset{}, err
		}
		s.setMax(last.timestampMs, s.baseOffset+last.relative)
	}
	for {
		t := TimestampOffset{s.maxTimestampMs.Load(), s.maxOffset.Load()}
		if s.maxTimestampMs.Load() == t.TimestampMs {
			return t, nil
		}
	}
}

// LargestTimestamp is what the age of a segment is judged by: its largest timestamp or, if no record has one, when the file was last
// modified. In ms since 1970.
func (s *Segment) LargestTimestamp() (int64, error) {
	t, err := s.MaxTimestamp()
	if err != nil || t.TimestampMs >= 0 {
		return t.TimestampMs, err
	}
	if !s.created {
		return s.createdMs, nil
	}
	stat, err := s.fs.Stat(s.path(logFile))
	if err != nil {
		return 0, err
	}
	return stat.ModTime().UnixMilli(), nil
}

// fits says whether an offset can be written relative to the base offset.
func (s *Segment) fits(offset int64) bool {
	return offset >= s.baseOffset && offset-s.baseOffset <= math.MaxInt32
}

// RollQuery is what decides whether a segment takes more batches.
type RollQuery struct {
	SegmentBytes   int
	SegmentMs      int64
	IndexBytes     int
	BatchBytes     int   // of what is to be appended
	MaxTimestampMs int64 // of it
	LastOffset     int64 // of it, inclusive
	NowMs          int64
}

// ShouldRoll says whether a new segment has to be begun before the append.
func (s *Segment) ShouldRoll(q RollQuery) (bool, error) {
	size := s.size.Load()
	if size > int64(q.SegmentBytes)-int64(q.BatchBytes) || !s.fits(q.LastOffset) ||
		s.offsets.entries() >= q.IndexBytes/offsetEntryBytes || s.times.entries() >= q.IndexBytes/timeEntryBytes-1 {
		return true, nil
	}
	if size == 0 {
		return false, nil
	}
	first, err := s.firstTimestamp()
	if err != nil {
		return false, err
	}
	waited := q.NowMs - s.createdMs
	if first >= 0 {
		waited = q.MaxTimestampMs - first
	}
	return waited > q.SegmentMs-s.jitterMs, nil
}

// firstTimestamp is the maximum timestamp of the first batch of a segment that is not empty.
func (s *Segment) firstTimestamp() (int64, error) {
	if s.firstKnown {
		return s.firstMs, nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return 0, err
	}
	defer s.log.release()
	sc := newScanner(f, 0, s.size.Load())
	defer sc.free()
	b, _, err := sc.next()
	if err != nil {
		return 0, err
	}
	s.firstMs, s.firstKnown = b.MaxTimestamp(), true
	return s.firstMs, nil
}

// Append writes whole batches, which were checked before and follow in offset on what the segment has, in one write. After an error the end
// of the file is unknown.
func (s *Segment) Append(batches []byte, indexIntervalBytes int) error {
	f, err := s.openForAppend()
	if err != nil {
		return err
	}
	defer s.log.release()
	position := s.size.Load()
	if _, err := f.WriteAt(batches, position); err != nil {
		return err
	}
	next := int64(0)
	for rest := batches; len(rest) > 0; {
		var b record.Batch
		b, rest, err = record.Split(rest)
		assert.That(err == nil, "appended batch is not whole")
		assert.That(s.fits(b.LastOffset()), "appended offset does not fit the segment")
		if err := s.index(b, position, len(b), indexIntervalBytes); err != nil {
			return err
		}
		position += int64(len(b))
		next = b.NextOffset()
	}
	s.size.Store(position)
	s.nextOffset.Store(next)
	return nil
}

func (s *Segment) openForAppend() (vfs.File, error) {
	if s.recent.Load() == nil {
		s.recent.Store(new(recentBatches))
	}
	if s.created {
		return s.log.acquire()
	}
	f, err := s.log.acquireWith(os.O_RDWR | os.O_CREATE | os.O_TRUNC)
	if err == nil {
		s.created = true
		s.names++
	}
	return f, err
}

// index notes a batch that is at a position: in the largest timestamp, in both indexes if enough bytes came since the last entry, and among
// the recent ones.
func (s *Segment) index(b record.Batch, position int64, size, intervalBytes int) error {
	last := b.LastOffset()
	if position == 0 {
		s.firstMs, s.firstKnown = b.MaxTimestamp(), true
	}
	if t := b.MaxTimestamp(); t > s.maxTimestampMs.Load() {
		s.setMax(t, last)
	}
	if position-s.lastIndexed > int64(intervalBytes) {
		if err := s.offsets.add(offsetEntry{last - s.baseOffset, position}); err != nil {
			return err
		}
		s.lastIndexed = position
		if err := s.indexTime(); err != nil {
			return err
		}
	}
	if r := s.recent.Load(); r != nil {
		r.note(Location{b.BaseOffset(), last + 1, position, int64(size)})
	}
	return nil
}

// indexTime adds the largest timestamp to the time index, if it has grown since the last entry.
func (s *Segment) indexTime() error {
	t := s.maxTimestampMs.Load()
	if t <= s.lastTime.timestampMs {
		return nil
	}
	e := timeEntry{t, s.maxOffset.Load() - s.baseOffset}
	if err := s.times.add(e); err != nil {
		return err
	}
	s.lastTime = e
	return nil
}

// Finish completes the indexes, when no more is to be appended, and writes them to their files.
func (s *Segment) Finish() error {
	if !s.created {
		return nil
	}
	if err := s.indexTime(); err != nil {
		return err
	}
	return s.Spill()
}

// Spill writes what is in memory of the indexes to their files and frees it.
func (s *Segment) Spill() error {
	if !s.created {
		return nil
	}
	if !s.offsets.written || !s.times.written {
		s.names++
	}
	if err := s.offsets.spill(); err != nil {
		return err
	}
	return s.times.spill()
}

// Idle frees the memory that a segment needs only while it is written to.
func (s *Segment) Idle() error {
	s.recent.Store(nil)
	s.offsets.fences.Store(nil)
	s.times.fences.Store(nil)
	return s.Spill()
}

// AppendAborted adds a transaction that a marker in this segment has aborted.
func (s *Segment) AppendAborted(t AbortedTxn) error {
	if !s.txns.written {
		s.names++
	}
	return s.txns.append(t)
}

// Aborted calls f with the aborted transactions of the segment, in the order of their markers, until it returns false.
func (s *Segment) Aborted(f func(AbortedTxn) bool) error { return s.txns.each(f) }

// Names counts the files that were created. While it is not what NamesSynced was told last, a crash may lose some, until the directory is
// synced.
func (s *Segment) Names() int { return s.names }

// NamesUnsynced says whether a crash may lose files.
func (s *Segment) NamesUnsynced() bool { return s.names != s.namesSynced }

// LogNameUnsynced says whether a crash may lose the log file.
func (s *Segment) LogNameUnsynced() bool { return s.names > 0 && s.namesSynced == 0 }

// NamesSynced notes that the directory has been synced after Names gave names.
func (s *Segment) NamesSynced(names int) { s.namesSynced = max(s.namesSynced, names) }

// SyncLog makes the batches durable that are in the segment when it is called. It may run beside the writer. The file must exist.
func (s *Segment) SyncLog() error {
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer s.log.release()
	return f.Sync()
}

// SyncIndexes makes the indexes durable after Finish; the writer must not append meanwhile.
func (s *Segment) SyncIndexes() error {
	if err := s.offsets.sync(); err != nil {
		return err
	}
	if err := s.times.sync(); err != nil {
		return err
	}
	return s.txns.sync()
}

// IndexesUnsynced says whether index files have changed since SyncIndexes.
func (s *Segment) IndexesUnsynced() bool {
	return s.offsets.unsynced || s.times.unsynced || s.txns.unsynced
}

// Create makes the log file of an empty segment. Append does so by itself.
func (s *Segment) Create() error {
	if s.created {
		return nil
	}
	if _, err := s.openForAppend(); err != nil {
		return err
	}
	s.log.release()
	return nil
}

// Created says whether the segment has files.
func (s *Segment) Created() bool { return s.created }

// Deleted says whether the files have been given up by MarkDeleted.
func (s *Segment) Deleted() bool { return s.deleted.Load() }

// Suspect says whether a reader found that the offset index does not fit the log. Rebuilt makes it good.
func (s *Segment) Suspect() bool { return s.suspect.Load() }

// each calls f for each file that exists.
func (s *Segment) each(f func(h *handle) error) error {
	exists := [fileKinds]bool{s.created, s.offsets.written, s.times.written, s.txns.written}
	for kind, h := range s.handlesOf() {
		if !exists[kind] {
			continue
		}
		if err := f(h); err != nil {
			return err
		}
	}
	return nil
}

// MarkDeleted renames the files so that they are not found any more after a restart. Readers go on, until Remove.
func (s *Segment) MarkDeleted() error {
	names := []*Segment{s}
	holdNames(names)
	defer releaseNames(names)
	return s.markDeletedHeld(DeletedSuffix)
}

func (s *Segment) markDeletedHeld(suffix string) error {
	if s.deleted.Load() {
		return nil
	}
	if err := s.each(func(h *handle) error {
		name := s.path(h.kind)
		return s.fs.Rename(name, name+suffix)
	}); err != nil {
		return err
	}
	s.deletedAs = suffix
	s.deleted.Store(true)
	return nil
}

// Remove removes the files, after MarkDeleted. Readers that have the log file open keep it until they are done. Files that are gone already
// are no error: a segment with the same base offset may have been deleted later and removed earlier.
func (s *Segment) Remove() error {
	s.Close()
	return s.each(func(h *handle) error {
		if err := s.fs.Remove(s.path(h.kind)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
}

// Close closes the files as soon as nobody uses them.
func (s *Segment) Close() {
	for _, h := range s.handlesOf() {
		h.close()
	}
}
