package group

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/logrecord"
	"sluice/protocol/record"
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
	return logrecord.AppendOffsetCommitKey(dst, r.group, r.topic, r.partition)
}

func (r *offsetRecord) AppendValue(dst []byte) ([]byte, bool) {
	if r.offset == nil {
		return dst, true
	}
	return logrecord.AppendOffsetCommitValue(dst, kmsg.OffsetCommitValue{
		Offset:          r.offset.offset,
		LeaderEpoch:     r.offset.leaderEpoch,
		Metadata:        r.offset.metadata,
		CommitTimestamp: r.offset.committedAtMs,
		ExpireTimestamp: r.offset.expiresAtMs,
		TopicID:         r.offset.topicID,
	}), false
}

// A groupMetadataRecord says what a classic group is. A nil value is the tombstone.
type groupMetadataRecord struct {
	group string
	value *kmsg.GroupMetadataValue
}

func (r *groupMetadataRecord) AppendKey(dst []byte) []byte {
	return logrecord.AppendGroupMetadataKey(dst, r.group)
}

func (r *groupMetadataRecord) AppendValue(dst []byte) ([]byte, bool) {
	if r.value == nil {
		return dst, true
	}
	return logrecord.AppendGroupMetadataValue(dst, *r.value), false
}

// groupRecord is the group with its members. assignment replaces what the members have; nil keeps it.
func groupRecord(g *classicGroup, assignment map[string][]byte) *groupMetadataRecord {
	v := kmsg.NewGroupMetadataValue()
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
	k, err := logrecord.ParseGroupKey(key)
	if err != nil {
		return nil, err
	}
	switch {
	case k.IsOffsetCommit():
		r := &offsetRecord{group: k.Group, topic: k.Topic, partition: k.Partition}
		if value != nil {
			if r.offset, err = parseOffset(value); err != nil {
				return nil, fmt.Errorf("group %q, offset for %s-%d: %w", k.Group, k.Topic, k.Partition, err)
			}
		}
		return r, nil
	case k.Known():
		r := &groupMetadataRecord{group: k.Group}
		if value != nil {
			if r.value, err = parseGroup(value); err != nil {
				return nil, fmt.Errorf("group %q: %w", k.Group, err)
			}
		}
		return r, nil
	}
	return nil, fmt.Errorf("%w: %d", machine.ErrUnknownRecord, k.Type)
}

func parseOffset(value []byte) (*committedOffset, error) {
	v, err := logrecord.ParseOffsetCommitValue(value)
	if err != nil {
		return nil, err
	}
	return &committedOffset{
		offset:        v.Offset,
		leaderEpoch:   v.LeaderEpoch,
		metadata:      v.Metadata,
		committedAtMs: v.CommitTimestamp,
		expiresAtMs:   v.ExpireTimestamp,
		topicID:       v.TopicID,
	}, nil
}

// parseGroup reads a group, and refuses one whose members could not be held together.
func parseGroup(value []byte) (*kmsg.GroupMetadataValue, error) {
	v, err := logrecord.ParseGroupMetadataValue(value)
	if err != nil {
		return nil, err
	}
	if len(v.Members) > 0 && v.Protocol == nil {
		return nil, fmt.Errorf("%d members without a protocol", len(v.Members))
	}
	ids, instances := map[string]bool{}, map[string]bool{}
	for _, m := range v.Members {
		if m.MemberID == "" || ids[m.MemberID] {
			return nil, fmt.Errorf("member id %q is empty or taken", m.MemberID)
		}
		ids[m.MemberID] = true
		if m.InstanceID == nil {
			continue
		}
		if instances[*m.InstanceID] {
			return nil, fmt.Errorf("instance id %q is taken", *m.InstanceID)
		}
		instances[*m.InstanceID] = true
	}
	return &v, nil
}
