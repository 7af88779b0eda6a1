// Package partition decides, for one partition, what its leader may answer: who is in sync, how far the log is committed, which
// leader epoch an asker must hold. It keeps no records and does no I/O; package replica drives it beside a log.
package partition

import "sluice/protocol/record"

// BrokerID names a broker of the cluster; NoBroker none.
type BrokerID int32

// NoBroker stands where no broker is known.
const NoBroker BrokerID = -1

// Epoch counts the changes of one partition's registration in the cluster's metadata.
type Epoch int32

// Isolation says how far a reader may see.
type Isolation int8

const (
	// ReadUncommitted sees up to the high watermark.
	ReadUncommitted Isolation = 0
	// ReadCommitted sees up to the last stable offset.
	ReadCommitted Isolation = 1
	// ReadLogEnd sees all: replicas only.
	ReadLogEnd Isolation = 2
)

// AppendQuery asks for one batch to be appended by the leader.
type AppendQuery struct {
	// RequiredAcks as in the Produce request: -1, 0 or 1. With -1 the in-sync replicas must be as many as the topic asks for.
	RequiredAcks int16
	// LeaderEpoch that the asker holds the leader to; record.NoLeaderEpoch for any.
	LeaderEpoch record.LeaderEpoch
	// Verification is for batches of transactions.
	Verification record.Verification
}

// AppendResult is what became of an appended batch.
type AppendResult struct {
	// BaseOffset and LastOffset of the batch in the log, both inclusive.
	BaseOffset, LastOffset int64
	// LogAppendTimeMs is set on topics that stamp records themselves, else record.NoTimestamp.
	LogAppendTimeMs int64
	// LogStartOffset is the first offset of the log, inclusive.
	LogStartOffset int64
	// LeaderEpoch in which the batch was appended, or found.
	LeaderEpoch record.LeaderEpoch
	// HighWatermark after the append, exclusive. The batch is committed once it exceeds LastOffset.
	HighWatermark int64
	// Duplicate tells that the batch had been appended before; the offsets are those of then.
	Duplicate bool
}

// ReadQuery asks for the batches from an offset on.
type ReadQuery struct {
	// Offset of the first record wanted, inclusive.
	Offset int64
	// MaxBytes bounds what is returned; with AtLeastOne the first batch comes whole even when it is larger.
	MaxBytes   int
	AtLeastOne bool
	// LeaderEpoch that the asker believes in; record.NoLeaderEpoch to skip the check.
	LeaderEpoch record.LeaderEpoch
	// LastFetchedEpoch is the leader epoch of the asker's last record, to find out whether its log has diverged; record.NoLeaderEpoch to skip.
	LastFetchedEpoch record.LeaderEpoch
	Isolation        Isolation
	// Follower is set when another replica asks: it shows how far that one is. Its LeaderEndOffset is filled in by the reader.
	Follower *FollowerFetch
}

// ReadResult is what a leader tells along with the batches.
type ReadResult struct {
	// HighWatermark and LastStableOffset are exclusive, LogStartOffset inclusive.
	HighWatermark, LastStableOffset, LogStartOffset int64
	LeaderEpoch                                     record.LeaderEpoch
	// Diverging is set when the asker's last epoch is not one of this log at that offset: it must truncate.
	Diverging *EpochEnd
}

// EpochEnd is a leader epoch and the offset at which it ends, exclusive. Unknown: record.NoLeaderEpoch and record.NoOffset.
type EpochEnd struct {
	LeaderEpoch record.LeaderEpoch
	EndOffset   int64
}

// TimestampOffset is the answer to a search by time. Nothing found: record.NoOffset, record.NoTimestamp, record.NoLeaderEpoch.
type TimestampOffset struct {
	Offset      int64
	TimestampMs int64
	LeaderEpoch record.LeaderEpoch
}

// LogDir describes one log directory and the replicas in it.
type LogDir struct {
	Path string
	// Err is set when the directory is offline.
	Err error
	// TotalBytes and UsableBytes of its volume, -1 when unknown.
	TotalBytes, UsableBytes int64
	Replicas                []LogDirReplica
}

// LogDirReplica describes one replica in a log directory.
type LogDirReplica struct {
	Topic     string
	Partition int32
	SizeBytes int64
	// OffsetLag is how far the log end trails the high watermark.
	OffsetLag int64
	IsFuture  bool
}
