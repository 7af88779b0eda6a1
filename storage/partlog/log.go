// Package partlog is one partition's log: a chain of segments with the state that goes with it, which is the log start offset, the log end
// offset, the recovery point, the leader epochs and the producers.
//
// Everything that changes a log may be called by one caller at a time per log; a mutex inside makes sure of it, so that background work (Flush, Retain,
// ExpireProducers) needs no further care. Reading takes no lock and runs beside all of it: readers work on an immutable list of
// segments and on published sizes.
package partlog

import (
	"sluice/protocol/record"
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
	options Options
}

// Open opens the log in a folder, which may be empty or missing. After an unclean stop the segments from the recovery point on are scanned and
// the log is cut at the first bad batch. The error is a *Fault.
func Open(o Options) (*Log, error) { panic("not written yet") }

// AppendInfo is the result of an append.
type AppendInfo struct {
	BaseOffset      int64
	LastOffset      int64 // inclusive
	LogAppendTimeMs int64 // of a topic with LogAppendTime, and of a duplicate the time of its first append; else record.NoTimestamp
	LogStartOffset  int64
	MaxTimestampMs  int64 // record.NoTimestamp if there is none
	Duplicate       bool  // nothing was appended; the offsets are those of the first append
	Rolled          bool  // a new segment was begun
}

// AppendAsLeader appends one batch. It stamps the next offset and the epoch into b, and the time nowMs if the topic has LogAppendTime, and writes b as it
// then is. b may be reused as soon as it returns. The batch has been validated (record.Validate) before.
// Errors: *TooLarge, those of package producer, *Fault, ErrClosed.
func (l *Log) AppendAsLeader(b record.Batch, epoch record.LeaderEpoch, o Origin, nowMs int64) (AppendInfo, error) {
	panic("not written yet")
}

// AppendMarker is AppendAsLeader for an end-transaction marker of a coordinator with a transaction version (2 and later: each transaction has its own
// producer epoch, KIP-890).
func (l *Log) AppendMarker(b record.Batch, epoch record.LeaderEpoch, transactionVersion int16, nowMs int64) (AppendInfo, error) {
	panic("not written yet")
}

// AppendAsFollower appends batches as another replica sent them, with their offsets and epochs. A batch cut short at the end is ignored.
// Errors: *record.Corrupt, *UnexpectedOffset, *TooLarge, *Fault, ErrClosed.
func (l *Log) AppendAsFollower(batches []byte, nowMs int64) (AppendInfo, error) {
	panic("not written yet")
}

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
}

// Close gives the file back. A Slice must be closed once, when its bytes have been sent; closing an empty one does nothing.
func (s *Slice) Close() { panic("not written yet") }

// Read finds the bytes of the batches from the one that holds fetchOffset on. They begin with a whole batch, which may start before fetchOffset, and may end inside
// one, as Kafka's do; batches that reach upTo (exclusive) or beyond are left out. With atLeastOne the first batch comes whole even if it has more than maxBytes.
// Errors: *OffsetOutOfRange, *Fault, ErrClosed.
func (l *Log) Read(fetchOffset int64, maxBytes int, atLeastOne bool, upTo int64) (Slice, error) {
	panic("not written yet")
}

// AbortedTransaction is a transaction whose records a read_committed consumer leaves out.
type AbortedTransaction struct {
	ProducerID  record.ProducerID
	FirstOffset int64
}

// AbortedTransactions lists the aborted transactions with records between from and upTo (exclusive), in the order of their markers.
func (l *Log) AbortedTransactions(from, upTo int64) ([]AbortedTransaction, error) {
	panic("not written yet")
}

// LogStartOffset is the first offset that can be read.
func (l *Log) LogStartOffset() int64 { panic("not written yet") }

// LogEndOffset is the next offset to be written.
func (l *Log) LogEndOffset() int64 { panic("not written yet") }

// RecoveryPoint is the first offset not known to be flushed.
func (l *Log) RecoveryPoint() int64 { panic("not written yet") }

// SizeBytes is the size of all segments.
func (l *Log) SizeBytes() int64 { panic("not written yet") }

// LastStableOffset is the smaller of the high watermark and the first offset of the oldest transaction that is open, or was ended by a marker
// at or above the high watermark (exclusive). High watermarks may only grow from call to call while the log is not truncated.
func (l *Log) LastStableOffset(highWatermark int64) int64 { panic("not written yet") }

// TimestampOffset is a record found by time.
type TimestampOffset struct {
	TimestampMs int64
	Offset      int64
	LeaderEpoch record.LeaderEpoch
}

// OffsetForTimestamp finds the first record with that timestamp or a later one, in ms since 1970, below upTo (exclusive).
func (l *Log) OffsetForTimestamp(timestampMs, upTo int64) (TimestampOffset, bool, error) {
	panic("not written yet")
}

// OffsetOfMaxTimestamp finds the first record with the largest timestamp of the log, if it is below upTo (exclusive).
func (l *Log) OffsetOfMaxTimestamp(upTo int64) (TimestampOffset, bool, error) {
	panic("not written yet")
}

// LatestEpoch is the epoch of the last leader, record.NoLeaderEpoch if there was none.
func (l *Log) LatestEpoch() record.LeaderEpoch { panic("not written yet") }

// EpochForOffset is the epoch of the leader that appended, or is to append, the offset; record.NoLeaderEpoch if that is not known.
func (l *Log) EpochForOffset(offset int64) record.LeaderEpoch { panic("not written yet") }

// EndOffsetForEpoch answers OffsetForLeaderEpoch: the largest known epoch up to e, and the offset (exclusive) at which it ended. Both are -1 if e is unknown.
func (l *Log) EndOffsetForEpoch(e record.LeaderEpoch) (record.LeaderEpoch, int64) {
	panic("not written yet")
}

// AssignEpochStart notes that the leader of epoch e appends from startOffset on. It is on the disk before what it appends counts as flushed.
func (l *Log) AssignEpochStart(e record.LeaderEpoch, startOffset int64) { panic("not written yet") }

// TruncateTo removes everything from offset on. If it is inside a batch, the whole batch goes and the log end offset is offset all the same. The caller writes the
// recovery point to its checkpoint file before the next append.
func (l *Log) TruncateTo(offset int64) error { panic("not written yet") }

// TruncateFullyAndStartAt removes everything; the log starts and ends at offset.
func (l *Log) TruncateFullyAndStartAt(offset int64) error { panic("not written yet") }

// AdvanceLogStartOffset raises the log start offset; a smaller or equal one changes nothing. Above the log end offset it fails with *OffsetOutOfRange. Segments
// below it go with the next Retain. The caller checks the high watermark and writes the checkpoint file.
func (l *Log) AdvanceLogStartOffset(offset int64) error { panic("not written yet") }

// Roll begins a new segment, unless the active one is empty.
func (l *Log) Roll(nowMs int64) error { panic("not written yet") }

// Retain deletes the segments whose time, size or offsets are past what the config keeps, as long as they are below the high watermark, and removes files of
// segments deleted FileDeleteDelayMs ago. It returns how many segments it deleted. The log start offset may have changed.
func (l *Log) Retain(nowMs, highWatermark int64) (int, error) { panic("not written yet") }

// Flush makes everything durable that was appended before the call, and raises the recovery point.
func (l *Log) Flush() error { panic("not written yet") }

// FlushDue says whether the log has unflushed records and FlushMs have passed since the last flush.
func (l *Log) FlushDue(nowMs int64) bool { panic("not written yet") }

// SetConfig changes the config for all that follows.
func (l *Log) SetConfig(c *Config) { panic("not written yet") }

// ActiveProducers lists the producers that are remembered, by id.
func (l *Log) ActiveProducers(nowMs int64) []producer.State { panic("not written yet") }

// ExpireProducers forgets producers without an open transaction that were last seen ProducerIDExpirationMs ago.
func (l *Log) ExpireProducers(nowMs int64) { panic("not written yet") }

// Close flushes, writes the producer snapshot and closes all files. The recovery point then is the log end offset.
func (l *Log) Close() error { panic("not written yet") }
