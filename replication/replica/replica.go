package replica

import (
	"sluice/protocol/record"
	"sluice/protocol/uuid"
	"sluice/replication/partition"
	"sluice/storage/partlog"
	"sluice/storage/producer"
)

// Replica is this broker's copy of one partition. All methods may be called from any goroutine.
type Replica struct{}

// Serial identifies the replica in this process; a topic that is deleted and created again has another.
func (r *Replica) Serial() uint64 { panic("not written yet") }

// Topic is the topic's name.
func (r *Replica) Topic() string { panic("not written yet") }

// TopicID is the topic's id.
func (r *Replica) TopicID() uuid.UUID { panic("not written yet") }

// Index is the partition's number.
func (r *Replica) Index() int32 { panic("not written yet") }

// Leader returns the leader's id and epoch, partition.NoBroker when there is none.
func (r *Replica) Leader() (partition.BrokerID, record.LeaderEpoch) { panic("not written yet") }

// Append appends one validated batch as the leader. It returns once the batch is in the log (and flushed, where the topic says so before
// the acknowledgement); whether it is committed shows in the result's high watermark. b is patched in place and free again on return.
func (r *Replica) Append(b record.Batch, q partition.AppendQuery, origin partlog.Origin, nowMs int64) (partition.AppendResult, error) {
	panic("not written yet")
}

// Read finds the batches that q asks for. The slice must be closed.
func (r *Replica) Read(q partition.ReadQuery) (partition.ReadResult, partlog.Slice, error) {
	panic("not written yet")
}

// HighWatermark is the end of what is committed, exclusive.
func (r *Replica) HighWatermark() int64 { panic("not written yet") }

// LastStableOffset is the end of what read_committed readers see, exclusive.
func (r *Replica) LastStableOffset() int64 { panic("not written yet") }

// LogStartOffset is the first offset of the log, inclusive.
func (r *Replica) LogStartOffset() int64 { panic("not written yet") }

// LogEndOffset is the offset of the next record, exclusive end of the log.
func (r *Replica) LogEndOffset() int64 { panic("not written yet") }

// AbortedTransactions lists the aborted transactions that touch the offsets from (inclusive) to upTo (exclusive).
func (r *Replica) AbortedTransactions(from, upTo int64) []partlog.AbortedTransaction {
	panic("not written yet")
}

// ListOffset answers a search by time, or one of the special timestamps of ListOffsets (-1, -2, -3, -4, -5).
func (r *Replica) ListOffset(timestampMs int64, isolation partition.Isolation, leaderEpoch record.LeaderEpoch) (partition.TimestampOffset, error) {
	panic("not written yet")
}

// EndOffsetForEpoch returns the largest epoch of the log that is not above epoch, and where it ends.
func (r *Replica) EndOffsetForEpoch(leaderEpoch, epoch record.LeaderEpoch) (partition.EpochEnd, error) {
	panic("not written yet")
}

// DeleteRecords moves the log start to offset, -1 meaning the high watermark, and returns the low watermark of all replicas in sync,
// and the offset that this must reach.
func (r *Replica) DeleteRecords(offset, nowMs int64) (lowWatermark, wanted int64, err error) {
	panic("not written yet")
}

// LowWatermark is the smallest log start offset of the live replicas.
func (r *Replica) LowWatermark() int64 { panic("not written yet") }

// ActiveProducers lists the producers whose sequences the log remembers, by id.
func (r *Replica) ActiveProducers(nowMs int64) ([]producer.State, error) { panic("not written yet") }

// OnCommit calls f with each new high watermark, in the goroutine that moved it, until stop is called. f must not block nor append.
func (r *Replica) OnCommit(f func(highWatermark int64)) (stop func()) { panic("not written yet") }
