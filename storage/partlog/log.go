// Package partlog is one partition's log: a chain of segments with the state that goes with it, which is the log start offset, the log end
// offset, the recovery point, the leader epochs and the producers.
//
// Everything that changes a log may be called by one caller at a time per log; a mutex inside makes sure of it, so that background work
// (Flush, Retain, ExpireProducers) needs no further care. Reading takes no lock and runs beside all of it: readers work on an immutable
// list of segments and on published sizes.
package partlog

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"sluice/protocol/record"
	"sluice/storage/epoch"
	"sluice/storage/producer"
	"sluice/storage/segment"
	"sluice/storage/vfs"
)

// Origin says who appends: it decides what is checked.
type Origin = record.Origin

// The origins.
const (
	Client      = record.Client      // a Produce request
	Coordinator = record.Coordinator // this broker itself: group and transaction state, end-transaction markers
	Replication = record.Replication // the leader's log
)

// Options say which log to open and how.
type Options struct {
	FS     vfs.FS
	Dir    string  // the partition's folder; created if it is missing
	Config *Config // nil = DefaultConfig

	LogStartOffset int64 // from log-start-offset-checkpoint; 0 if it has no entry
	RecoveryPoint  int64 // from recovery-point-offset-checkpoint; 0 if it has no entry
	CleanedTo      int64 // from cleaner-offset-checkpoint; 0 if it has no entry: below it segments need not reach to the next one
	CleanShutdown  bool  // the log was closed before: nothing is scanned

	ProducerIDExpirationMs int64 // producer.id.expiration.ms; 0 = one day
	NowMs                  int64
	JitterSeed             uint64         // makes the jitter of segment.jitter.ms
	Progress               func(Recovery) // called while unflushed segments are scanned and when something was repaired; may be nil

	// Handles is shared by all logs of the process; nil = one for all logs that have none.
	Handles *segment.Handles
	// Background runs a function once, later and away from the caller, as a goroutine or a queue does. It is used to flush a segment that
	// has just been closed, which takes long if the segment is large, so that appends do not wait. nil: they wait.
	Background func(func())
}

// Recovery reports what Open does to a log that was not closed, or whose files are damaged.
type Recovery struct {
	Dir             string
	SegmentBase     int64  // base offset of the segment that has been dealt with
	SegmentsLeft    int    // that are still to be scanned
	TruncatedBytes  int64  // cut off the end of this segment: torn or corrupt
	SegmentsDropped int    // after this one, because of the truncation
	Repaired        string // what else was wrong, as in "offset index missing, rebuilt"; empty if nothing
}

// Log is one partition's log.
type Log struct {
	fs           vfs.FS
	dir          string
	handles      *segment.Handles
	background   func(func())
	progress     func(Recovery)
	jitterSeed   uint64
	cleanedTo    int64 // when it was opened
	expirationMs atomic.Int64
	config       atomic.Pointer[Config]

	// What readers use. The segments are in order, at least one, and the list is replaced, never modified. The last one is the active segment.
	segments      atomic.Pointer[[]*segment.Segment]
	start         atomic.Int64 // log start offset
	end           atomic.Int64 // log end offset
	recoveryPoint atomic.Int64
	truncations   atomic.Int64 // counts them, before and after: a reader that failed looks whether it was for that
	fault         atomic.Pointer[Fault]
	closed        atomic.Bool
	lastFlushMs   atomic.Int64
	epochs        *epoch.Cache // readers may read it

	// flushing is held by whoever syncs files or removes what may be being synced. It is taken before mu.
	flushing sync.Mutex

	mu        sync.Mutex // guards all below, and is held to change what is above
	producers producer.Table
	snapshots *producer.Snapshots
	rolled    []*segment.Segment // closed segments that have not been synced whole
	doomed    []doomed           // files to be removed, oldest first
	nowMs     int64              // the latest time seen
	renamed   bool               // segments were deleted since the directory was synced
	preparing bool               // prepareRoll is under way
	busy      bool               // something was appended since the last Retain
	// The lowest offset that the log was truncated to since Truncated was called, if it was.
	truncatedTo    int64
	truncatedSince bool
}

// doomed is a file, or the files of a segment, that have been renamed and wait for their removal.
type doomed struct {
	atMs    int64
	segment *segment.Segment // nil if it is
	path    string           // a single file
}

// list is the segments as they are now.
func (l *Log) list() []*segment.Segment { return *l.segments.Load() }

// publish replaces the list of segments.
func (l *Log) publish(segments []*segment.Segment) { l.segments.Store(&segments) }

// last is the active segment.
func (l *Log) last() *segment.Segment {
	segments := l.list()
	return segments[len(segments)-1]
}

// floor is the index of the last segment that begins at or before offset; -1 if all begin later.
func floor(segments []*segment.Segment, offset int64) int {
	// Most readers are at the end.
	if n := len(segments) - 1; segments[n].BaseOffset() <= offset {
		return n
	}
	i, found := slices.BinarySearchFunc(segments, offset, func(s *segment.Segment, offset int64) int {
		switch base := s.BaseOffset(); {
		case base < offset:
			return -1
		case base > offset:
			return 1
		}
		return 0
	})
	if found {
		return i
	}
	return i - 1
}

// LogStartOffset is the first offset that can be read.
func (l *Log) LogStartOffset() int64 { return l.start.Load() }

// LogEndOffset is the next offset to be written.
func (l *Log) LogEndOffset() int64 { return l.end.Load() }

// RecoveryPoint is the first offset not known to be flushed.
func (l *Log) RecoveryPoint() int64 { return l.recoveryPoint.Load() }

// SizeBytes is the size of all segments.
func (l *Log) SizeBytes() int64 {
	size := int64(0)
	for _, s := range l.list() {
		size += s.Size()
	}
	return size
}

// Segments is the number of segments.
func (l *Log) Segments() int { return len(l.list()) }

// LastStableOffset is the smaller of the high watermark and the first offset of the oldest transaction that is open, or was ended by a marker
// at or above the high watermark (exclusive). High watermarks may only grow from call to call while the log is not truncated.
func (l *Log) LastStableOffset(highWatermark int64) int64 {
	return min(highWatermark, max(l.producers.LastStableOffset(highWatermark), l.start.Load()))
}

// LatestEpoch is the epoch of the last leader, record.NoLeaderEpoch if there was none.
func (l *Log) LatestEpoch() record.LeaderEpoch { return l.epochs.LatestEpoch() }

// EpochForOffset is the epoch of the leader that appended, or is to append, the offset; record.NoLeaderEpoch if that is not known.
func (l *Log) EpochForOffset(offset int64) record.LeaderEpoch { return l.epochs.ForOffset(offset) }

// EndOffsetForEpoch answers OffsetForLeaderEpoch: the largest known epoch up to e, and the offset (exclusive) at which it ended. Both are
// -1 if e is unknown.
func (l *Log) EndOffsetForEpoch(e record.LeaderEpoch) (record.LeaderEpoch, int64) {
	return l.epochs.EndOffsetFor(e, l.end.Load())
}

// AssignEpochStart notes that the leader of epoch e appends from startOffset on. It is on the disk before what it appends counts as flushed.
func (l *Log) AssignEpochStart(e record.LeaderEpoch, startOffset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs.Assign(e, startOffset)
}

// SetConfig changes the config for all that follows.
func (l *Log) SetConfig(c *Config) { l.config.Store(c) }

// SetProducerIDExpiration changes producer.id.expiration.ms.
func (l *Log) SetProducerIDExpiration(ms int64) { l.expirationMs.Store(ms) }

// ActiveProducers lists the producers that are remembered, by id. Those that have expired at nowMs are left out.
func (l *Log) ActiveProducers(nowMs int64) []producer.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.producers.Expire(nowMs, l.expirationMs.Load())
	return l.producers.Active()
}

// ExpireProducers forgets producers without an open transaction that were last seen ProducerIDExpirationMs ago.
func (l *Log) ExpireProducers(nowMs int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.producers.Expire(nowMs, l.expirationMs.Load())
}

// OpenTransaction says whether the producer, in that epoch, has a transaction open in this log. If not, asOf is the log end offset for a
// record.Verification. The error is a *producer.InvalidProducerEpoch for an epoch that is over.
func (l *Log) OpenTransaction(id record.ProducerID, e record.ProducerEpoch) (open bool, asOf int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.HasOpenTransaction(id, e), l.end.Load(), l.producers.Fenced(id, e)
}

// AdvanceLogStartOffset raises the log start offset; a smaller or equal one changes nothing. Above the log end offset it fails with
// *OffsetOutOfRange. Segments below it go with the next Retain. The caller checks the high watermark and writes the checkpoint file.
func (l *Log) AdvanceLogStartOffset(offset int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writable(); err != nil {
		return err
	}
	if offset > l.end.Load() {
		return l.outOfRange(offset)
	}
	l.advanceStart(offset)
	return nil
}

func (l *Log) advanceStart(offset int64) {
	if offset <= l.start.Load() {
		return
	}
	// The recovery point stays: the log end offset must not fall back after a crash, even if nothing below it can be read.
	l.start.Store(offset)
	l.epochs.TruncateFromStart(offset)
}

func (l *Log) outOfRange(offset int64) error {
	return &OffsetOutOfRange{Requested: offset, LogStartOffset: l.start.Load(), LogEndOffset: l.end.Load()}
}

// writable says why the log may not be changed.
func (l *Log) writable() error {
	if l.closed.Load() {
		return ErrClosed
	}
	if f := l.fault.Load(); f != nil {
		return f
	}
	return nil
}

// at notes the time.
func (l *Log) at(nowMs int64) { l.nowMs = max(l.nowMs, nowMs) }

// failed makes a fault of an error of writing: from now on nothing is written any more.
func (l *Log) failed(op string, err error) error {
	var f *Fault
	if !errors.As(err, &f) {
		f = &Fault{Op: op, Path: l.dir, Err: err}
	}
	l.fault.CompareAndSwap(nil, f)
	return f
}

// Close flushes, writes the producer snapshot and closes all files. The recovery point then is the end of the last batch. Closing again does nothing.
func (l *Log) Close() error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return nil
	}
	err := l.writable()
	if err == nil {
		if err = l.finish(); err != nil {
			err = l.failed("close", err)
		}
	}
	l.closeFiles()
	return err
}

// finish brings everything to the disk. It holds both locks.
func (l *Log) finish() error {
	if err := l.removeDoomed(true); err != nil {
		return err
	}
	active := l.last()
	if err := active.Finish(); err != nil {
		return err
	}
	end := l.end.Load()
	if active.Created() {
		l.producers.SetEndOffset(end)
		if err := l.snapshots.Take(&l.producers); err != nil {
			return err
		}
		if end > l.recoveryPoint.Load() || active.IndexesUnsynced() {
			l.rolled = append(l.rolled, active) // its indexes count from now on
		}
	}
	if err := l.sync(l.collect(end)); err != nil {
		return err
	}
	l.flushed(end)
	return l.epochs.Save(l.end.Load())
}

// Discard closes all files and writes nothing, as the partition has been deleted. Readers that have a Slice keep it.
func (l *Log) Discard() {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed.Load() {
		l.closeFiles()
	}
}

func (l *Log) closeFiles() {
	l.closed.Store(true)
	for _, s := range l.list() {
		s.Close()
	}
	for _, d := range l.doomed {
		if d.segment != nil {
			d.segment.Close()
		}
	}
}
