package partition

import (
	"fmt"

	"sluice/protocol/record"
)

// NotLeader says that this broker does not lead the partition. LeaderID is -1 when nobody is known to.
type NotLeader struct {
	LeaderID    BrokerID
	LeaderEpoch record.LeaderEpoch
}

func (e *NotLeader) Error() string {
	return fmt.Sprintf("this broker does not lead the partition: leader %d in epoch %d", e.LeaderID, e.LeaderEpoch)
}

// Unknown says that this broker has no replica of the partition, or that the partition does not exist.
type Unknown struct {
	Topic     string
	Partition int32
}

func (e *Unknown) Error() string {
	return fmt.Sprintf("no replica of %s-%d here", e.Topic, e.Partition)
}

// FencedLeaderEpoch says that the asker works from an older leader epoch than the current one.
type FencedLeaderEpoch struct{ Requested, Current record.LeaderEpoch }

func (e *FencedLeaderEpoch) Error() string {
	return fmt.Sprintf("leader epoch %d is older than the current %d", e.Requested, e.Current)
}

// UnknownLeaderEpoch says that the asker works from a leader epoch that this broker has not heard of yet.
type UnknownLeaderEpoch struct{ Requested, Current record.LeaderEpoch }

func (e *UnknownLeaderEpoch) Error() string {
	return fmt.Sprintf("leader epoch %d is newer than the current %d", e.Requested, e.Current)
}

// NotEnoughReplicas says that fewer replicas are in sync than the topic asks for before it takes an acks=all write.
// Appended tells whether the records are in the leader's log all the same.
type NotEnoughReplicas struct {
	InSync, Minimum int
	Appended        bool
}

func (e *NotEnoughReplicas) Error() string {
	if e.Appended {
		return fmt.Sprintf("appended, but then only %d replicas were in sync of the %d that are asked for", e.InSync, e.Minimum)
	}
	return fmt.Sprintf("%d replicas are in sync of the %d that are asked for", e.InSync, e.Minimum)
}

// StorageOffline says that the log directory of the partition has failed.
type StorageOffline struct {
	Dir string
	Err error
}

func (e *StorageOffline) Error() string {
	return fmt.Sprintf("log directory %s is offline: %v", e.Dir, e.Err)
}
func (e *StorageOffline) Unwrap() error { return e.Err }

// StorageFull says that a write failed for want of space. The log directory stays in use: reading goes on, and so does writing once there
// is space again.
type StorageFull struct {
	Dir string
	Err error
}

func (e *StorageFull) Error() string {
	return fmt.Sprintf("log directory %s is full: %v", e.Dir, e.Err)
}
func (e *StorageFull) Unwrap() error { return e.Err }

// DeletionRefused says that the topic's cleanup.policy does not let records be deleted on request.
type DeletionRefused struct{ Topic string }

func (e *DeletionRefused) Error() string {
	return fmt.Sprintf("records of %s cannot be deleted: its cleanup.policy has no delete", e.Topic)
}

// OffsetOutOfRange says that an offset is not one that the asker may read or delete up to. LogStartOffset is inclusive,
// UpTo exclusive.
type OffsetOutOfRange struct{ Requested, LogStartOffset, UpTo int64 }

func (e *OffsetOutOfRange) Error() string {
	return fmt.Sprintf("offset %d is outside of %d..%d", e.Requested, e.LogStartOffset, e.UpTo)
}

// OffsetNotAvailable says that a new leader does not know yet which offsets are committed; asking again helps.
type OffsetNotAvailable struct{ HighWatermark, EpochStartOffset int64 }

func (e *OffsetNotAvailable) Error() string {
	return fmt.Sprintf("the high watermark %d has not reached the start %d of this leader's epoch", e.HighWatermark, e.EpochStartOffset)
}
