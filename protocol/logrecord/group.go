package logrecord

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/internal/assert"
)

// The types of records in __consumer_offsets that this package knows: the version at the start of a key tells them apart.
// 3 and above belong to the newer group protocols.
const (
	KeyOffsetCommitLegacy int16 = 0 // the key is as that of 1; Kafka before 0.9 wrote it
	KeyOffsetCommit       int16 = 1
	KeyGroupMetadata      int16 = 2
)

// Newest versions of the values, and the ones that are written: Kafka 4.4 writes the oldest version that holds all fields,
// so that an older broker can read the log after a downgrade.
const (
	maxOffsetCommitValue   int16 = 4
	maxGroupMetadataValue  int16 = 4
	offsetCommitWritten    int16 = 3
	offsetCommitExpires    int16 = 1
	offsetCommitHasTopicID int16 = 4
	groupMetadataWritten   int16 = 3
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
// -1 for the leader epoch and the expiry.
func ParseOffsetCommitValue(value []byte) (kmsg.OffsetCommitValue, error) {
	panic("not written yet")
}

// AppendOffsetCommitValue appends a committed offset, in the version that Kafka chooses for its fields (v.Version is
// ignored): 1 with an expiry (ExpireTimestamp other than -1), 4 with a topic id, otherwise 3.
func AppendOffsetCommitValue(dst []byte, v kmsg.OffsetCommitValue) []byte {
	panic("not written yet")
}

// ParseGroupMetadataValue reads the state of a classic group, in any version. Fields that the version lacks have Kafka's
// defaults: -1 for the rebalance timeout and the state timestamp.
func ParseGroupMetadataValue(value []byte) (kmsg.GroupMetadataValue, error) {
	panic("not written yet")
}

// AppendGroupMetadataValue appends the state of a classic group in the version that Kafka writes (v.Version is ignored).
func AppendGroupMetadataValue(dst []byte, v kmsg.GroupMetadataValue) []byte {
	assert.That(groupMetadataWritten <= maxGroupMetadataValue, "group metadata version")
	panic("not written yet")
}
