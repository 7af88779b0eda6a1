package group

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// The key versions of __consumer_offsets, which are the types of its records.
const (
	keyLegacyOffsetCommit = 0 // differs from 1 in nothing but the number
	keyOffsetCommit       = 1
	keyGroupMetadata      = 2
)

// The value versions that Kafka 4.4 writes: the newest that Kafka 3 could read in full, tagged fields aside.
const (
	valueOffsetCommit           = 4
	valueOffsetCommitWithExpiry = 1 // the only version with an expiry, which only OffsetCommit v2 to v4 asks for
	valueGroupMetadata          = 3
)

// recordOverhead is more than a batch of one record takes beside key and value: its header, and the record's lengths, delta and attributes.
const recordOverhead = record.HeaderBytes + 32

// An offsetRecord says what a group has committed for one partition. A nil offset is the tombstone.
type offsetRecord struct {
	group, topic string
	partition    int32
	offset       *committedOffset
}

func (r *offsetRecord) AppendKey(dst []byte) []byte {
	k := kmsg.OffsetCommitKey{Version: keyOffsetCommit, Group: r.group, Topic: r.topic, Partition: r.partition}
	return k.AppendTo(dst)
}

func (r *offsetRecord) AppendValue(dst []byte) ([]byte, bool) {
	if r.offset == nil {
		return dst, true
	}
	v := kmsg.OffsetCommitValue{
		Version:         valueOffsetCommit,
		Offset:          r.offset.offset,
		LeaderEpoch:     r.offset.leaderEpoch,
		Metadata:        r.offset.metadata,
		CommitTimestamp: r.offset.committedAtMs,
		ExpireTimestamp: r.offset.expiresAtMs,
		TopicID:         r.offset.topicID,
	}
	if r.offset.expiresAtMs != neverExpires {
		v.Version = valueOffsetCommitWithExpiry
	}
	return v.AppendTo(dst), false
}

// A groupMetadataRecord says what a classic group is. A nil value is the tombstone.
type groupMetadataRecord struct {
	group string
	value *kmsg.GroupMetadataValue
}

func (r *groupMetadataRecord) AppendKey(dst []byte) []byte {
	k := kmsg.GroupMetadataKey{Version: keyGroupMetadata, Group: r.group}
	return k.AppendTo(dst)
}

func (r *groupMetadataRecord) AppendValue(dst []byte) ([]byte, bool) {
	if r.value == nil {
		return dst, true
	}
	return r.value.AppendTo(dst), false
}

// groupRecord is the group with its members. assignment replaces what the members have; nil keeps it.
func groupRecord(g *classicGroup, assignment map[string][]byte) *groupMetadataRecord {
	v := kmsg.NewGroupMetadataValue()
	v.Version = valueGroupMetadata
	v.ProtocolType = g.protocolType
	v.Generation = g.generation
	v.Protocol = g.protocol
	if g.leader != "" {
		leader := g.leader
		v.Leader = &leader
	}
	v.CurrentStateTimestamp = g.stateSinceMs
	v.Members = make([]kmsg.GroupMetadataValueMember, len(g.members))
	for i, m := range g.members {
		assigned := m.assignment
		if assignment != nil {
			assigned = assignment[m.id]
		}
		v.Members[i] = kmsg.GroupMetadataValueMember{
			MemberID:               m.id,
			InstanceID:             m.instanceID,
			ClientID:               m.clientID,
			ClientHost:             m.clientHost,
			RebalanceTimeoutMillis: m.rebalanceTimeoutMs,
			SessionTimeoutMillis:   m.sessionTimeoutMs,
			Subscription:           m.metadata(*g.protocol),
			Assignment:             assigned,
		}
	}
	return &groupMetadataRecord{group: g.id, value: &v}
}

// emptyGroupRecord is a group that has just come to be.
func emptyGroupRecord(g *classicGroup) *groupMetadataRecord {
	v := kmsg.NewGroupMetadataValue()
	v.Version = valueGroupMetadata
	v.CurrentStateTimestamp = g.stateSinceMs
	return &groupMetadataRecord{group: g.id, value: &v}
}

// fits reports whether a record can be appended at all, in a batch of its own.
func (o *op) fits(r machine.Record) bool {
	value, _ := r.AppendValue(r.AppendKey(nil))
	return len(value)+recordOverhead <= o.cfg.MaxBatchBytes
}

// Parse decodes a record of the log. The result holds no slice of key or value.
func (m *Machine) Parse(key, value []byte) (machine.Record, error) {
	if len(key) < 2 {
		return nil, fmt.Errorf("key of %d bytes", len(key))
	}
	switch version := int16(binary.BigEndian.Uint16(key)); version {
	case keyLegacyOffsetCommit, keyOffsetCommit:
		return parseOffset(key, value)
	case keyGroupMetadata:
		return parseGroup(key, value)
	default:
		return nil, fmt.Errorf("%w: %d", machine.ErrUnknownRecord, version)
	}
}

func parseOffset(key, value []byte) (machine.Record, error) {
	var k kmsg.OffsetCommitKey
	if err := k.ReadFrom(key); err != nil {
		return nil, fmt.Errorf("key of an offset: %w", err)
	}
	r := &offsetRecord{group: k.Group, topic: k.Topic, partition: k.Partition}
	if value == nil {
		return r, nil
	}
	if err := checkValueVersion(value, 4); err != nil {
		return nil, fmt.Errorf("offset of group %q for %s-%d: %w", k.Group, k.Topic, k.Partition, err)
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(value); err != nil {
		return nil, fmt.Errorf("offset of group %q for %s-%d: %w", k.Group, k.Topic, k.Partition, err)
	}
	r.offset = &committedOffset{
		offset:        v.Offset,
		leaderEpoch:   v.LeaderEpoch,
		metadata:      v.Metadata,
		committedAtMs: v.CommitTimestamp,
		expiresAtMs:   neverExpires,
		topicID:       v.TopicID,
	}
	if v.Version == valueOffsetCommitWithExpiry {
		r.offset.expiresAtMs = v.ExpireTimestamp
	}
	if v.Version < 3 {
		r.offset.leaderEpoch = noLeaderEpoch
	}
	return r, nil
}

func parseGroup(key, value []byte) (machine.Record, error) {
	var k kmsg.GroupMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return nil, fmt.Errorf("key of a group: %w", err)
	}
	r := &groupMetadataRecord{group: k.Group}
	if value == nil {
		return r, nil
	}
	if err := checkValueVersion(value, 4); err != nil {
		return nil, fmt.Errorf("group %q: %w", k.Group, err)
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		return nil, fmt.Errorf("group %q: %w", k.Group, err)
	}
	if err := checkMembers(&v); err != nil {
		return nil, fmt.Errorf("group %q: %w", k.Group, err)
	}
	for i := range v.Members {
		v.Members[i].Subscription = cloneNonNil(v.Members[i].Subscription)
		v.Members[i].Assignment = cloneNonNil(v.Members[i].Assignment)
	}
	r.value = &v
	return r, nil
}

func checkValueVersion(value []byte, newest int16) error {
	if len(value) < 2 {
		return fmt.Errorf("value of %d bytes", len(value))
	}
	if v := int16(binary.BigEndian.Uint16(value)); v < 0 || v > newest {
		return fmt.Errorf("value of unknown version %d", v)
	}
	return nil
}

// checkMembers refuses a group whose members could not be held together.
func checkMembers(v *kmsg.GroupMetadataValue) error {
	if len(v.Members) == 0 {
		return nil
	}
	if v.Protocol == nil {
		return fmt.Errorf("%d members without a protocol", len(v.Members))
	}
	ids, instances := map[string]bool{}, map[string]bool{}
	for _, m := range v.Members {
		if m.MemberID == "" || ids[m.MemberID] {
			return fmt.Errorf("member id %q is empty or taken", m.MemberID)
		}
		ids[m.MemberID] = true
		if m.InstanceID == nil {
			continue
		}
		if instances[*m.InstanceID] {
			return fmt.Errorf("instance id %q is taken", *m.InstanceID)
		}
		instances[*m.InstanceID] = true
	}
	return nil
}
