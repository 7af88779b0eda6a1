package logrecord

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The types of records in __consumer_offsets that this package knows: the version at the start of a key tells them apart.
// 3 and above belong to the newer group protocols.
const (
	KeyOffsetCommitLegacy int16 = 0 // the key is as that of 1; Kafka before 0.9 wrote it
	KeyOffsetCommit       int16 = 1
	KeyGroupMetadata      int16 = 2
)

const (
	// maxOffsetCommitValue and maxGroupMetadataValue are the newest versions of the values.
	maxOffsetCommitValue  int16 = 4
	maxGroupMetadataValue int16 = 4
	// expiringOffsetCommitValue is the one version that has an expiry.
	expiringOffsetCommitValue int16 = 1
	// writtenGroupMetadataValue is what Kafka 4.4 writes: nothing in version 4 is worth a downgrade that fails.
	writtenGroupMetadataValue int16 = 3
)

// GroupKey is the key of a record in __consumer_offsets.
type GroupKey struct {
	Type      int16 // one of the Key… constants, or one that this package does not know: then nothing else is set
	Group     string
	Topic     string // offset commits only
	Partition int32  // offset commits only
}

// Known says whether this package can parse the value that belongs to the key.
func (k GroupKey) Known() bool { return k.Type >= KeyOffsetCommitLegacy && k.Type <= KeyGroupMetadata }

// IsOffsetCommit says whether the record is a committed offset.
func (k GroupKey) IsOffsetCommit() bool {
	return k.Type == KeyOffsetCommit || k.Type == KeyOffsetCommitLegacy
}

// ParseGroupKey reads the key of a record in __consumer_offsets. A type from the future is no error; see GroupKey.Known.
// The result shares no memory with key. A null value beside it is a tombstone: it deletes what the key names.
func ParseGroupKey(key []byte) (GroupKey, error) {
	if len(key) < 2 {
		return GroupKey{}, fmt.Errorf("group record key of %d bytes", len(key))
	}
	k := GroupKey{Type: int16(binary.BigEndian.Uint16(key))}
	switch k.Type {
	case KeyOffsetCommit, KeyOffsetCommitLegacy:
		var v kmsg.OffsetCommitKey
		if err := v.ReadFrom(key); err != nil {
			return GroupKey{}, fmt.Errorf("group record key of type %d: %w", k.Type, err)
		}
		k.Group, k.Topic, k.Partition = v.Group, v.Topic, v.Partition
	case KeyGroupMetadata:
		var v kmsg.GroupMetadataKey
		if err := v.ReadFrom(key); err != nil {
			return GroupKey{}, fmt.Errorf("group record key of type %d: %w", k.Type, err)
		}
		k.Group = v.Group
	}
	return k, nil
}

// AppendOffsetCommitKey appends the key of a group's committed offset of one partition.
func AppendOffsetCommitKey(dst []byte, group, topic string, partition int32) []byte {
	k := kmsg.OffsetCommitKey{Version: KeyOffsetCommit, Group: group, Topic: topic, Partition: partition}
	return k.AppendTo(dst)
}

// AppendGroupMetadataKey appends the key of a classic group's state.
func AppendGroupMetadataKey(dst []byte, group string) []byte {
	k := kmsg.GroupMetadataKey{Version: KeyGroupMetadata, Group: group}
	return k.AppendTo(dst)
}

// ParseOffsetCommitValue reads a committed offset, in any version. Fields that the version lacks have Kafka's defaults:
// -1 for the leader epoch and for the expiry. The result shares no memory with value.
func ParseOffsetCommitValue(value []byte) (kmsg.OffsetCommitValue, error) {
	var v kmsg.OffsetCommitValue
	if err := checkValueVersion(value, maxOffsetCommitValue); err != nil {
		return v, fmt.Errorf("offset commit value: %w", err)
	}
	if err := v.ReadFrom(value); err != nil {
		return v, fmt.Errorf("offset commit value of version %d: %w", v.Version, err)
	}
	if v.Version < 3 {
		v.LeaderEpoch = -1
	}
	if v.Version != expiringOffsetCommitValue {
		v.ExpireTimestamp = -1
	}
	return v, nil
}

// AppendOffsetCommitValue appends a committed offset, in the version that Kafka chooses for its fields (v.Version is
// ignored): 1 with an expiry (ExpireTimestamp above 0), otherwise 4, the one with a topic id.
func AppendOffsetCommitValue(dst []byte, v kmsg.OffsetCommitValue) []byte {
	v.Version = maxOffsetCommitValue
	if v.ExpireTimestamp > 0 {
		v.Version = expiringOffsetCommitValue
	}
	return v.AppendTo(dst)
}

// ParseGroupMetadataValue reads the state of a classic group, in any version. Fields that the version lacks have Kafka's
// defaults: -1 for the time of the last state change, and for a rebalance timeout. Members' subscriptions and
// assignments are copies: the result shares no memory with value.
func ParseGroupMetadataValue(value []byte) (kmsg.GroupMetadataValue, error) {
	var v kmsg.GroupMetadataValue
	if err := checkValueVersion(value, maxGroupMetadataValue); err != nil {
		return v, fmt.Errorf("group metadata value: %w", err)
	}
	if err := v.ReadFrom(value); err != nil {
		return v, fmt.Errorf("group metadata value of version %d: %w", v.Version, err)
	}
	if v.Version < 2 {
		v.CurrentStateTimestamp = -1
	}
	for i := range v.Members {
		m := &v.Members[i]
		if v.Version < 1 {
			m.RebalanceTimeoutMillis = -1
		}
		m.Subscription = bytes.Clone(m.Subscription)
		m.Assignment = bytes.Clone(m.Assignment)
	}
	return v, nil
}

// AppendGroupMetadataValue appends the state of a classic group in the version that Kafka writes, 3 (v.Version is ignored).
func AppendGroupMetadataValue(dst []byte, v kmsg.GroupMetadataValue) []byte {
	v.Version = writtenGroupMetadataValue
	return v.AppendTo(dst)
}

func checkValueVersion(value []byte, max int16) error {
	if len(value) < 2 {
		return fmt.Errorf("%d bytes are too few for a version", len(value))
	}
	if version := int16(binary.BigEndian.Uint16(value)); version < 0 || version > max {
		return fmt.Errorf("unknown version %d", version)
	}
	return nil
}
