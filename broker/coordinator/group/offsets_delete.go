package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

// DeleteOffsets deletes committed offsets of topics that no member reads. The response has the topics of the request, in order.
func (m *Machine) DeleteOffsets(nowMs int64, req *kmsg.OffsetDeleteRequest) (*kmsg.OffsetDeleteResponse, machine.Effects, error) {
	o := m.begin(nowMs)
	g := m.groups[req.Group]
	if g == nil {
		return nil, o.effects, kerr.GroupIDNotFound
	}
	if g.state != stateEmpty && !g.usesConsumerProtocol() {
		return nil, o.effects, kerr.NonEmptyGroup // what its members read is not known
	}
	resp := kmsg.NewPtrOffsetDeleteResponse()
	resp.Topics = make([]kmsg.OffsetDeleteResponseTopic, len(req.Topics))
	for i, t := range req.Topics {
		partitions := make([]kmsg.OffsetDeleteResponseTopicPartition, len(t.Partitions))
		subscribed := g.isSubscribedTo(t.Topic)
		for j, p := range t.Partitions {
			partitions[j].Partition = p.Partition
			switch {
			case subscribed:
				partitions[j].ErrorCode = kerr.GroupSubscribedToTopic.Code
			case m.offsets.get(req.Group, t.Topic, p.Partition) != nil || m.offsets.isOpen(req.Group, t.Topic, p.Partition):
				o.forgetOffset(req.Group, t.Topic, p.Partition)
			}
		}
		resp.Topics[i] = kmsg.OffsetDeleteResponseTopic{Topic: t.Topic, Partitions: partitions}
	}
	return resp, o.effects, nil
}

// DeleteGroups deletes groups without members, and their offsets. The results are in the order of the request.
func (m *Machine) DeleteGroups(nowMs int64, ids []string) ([]kmsg.DeleteGroupsResponseGroup, machine.Effects) {
	o := m.begin(nowMs)
	results := make([]kmsg.DeleteGroupsResponseGroup, len(ids))
	for i, id := range ids {
		results[i].Group = id
		switch g := m.groups[id]; {
		case g == nil:
			results[i].ErrorCode = kerr.GroupIDNotFound.Code
		case g.state != stateEmpty:
			results[i].ErrorCode = kerr.NonEmptyGroup.Code
		default:
			o.forgetAllOffsets(id)
			o.effects.Records = append(o.effects.Records, &groupMetadataRecord{group: id})
		}
	}
	return results, o.effects
}

// A DeletedTopic is one that is gone.
type DeletedTopic struct {
	Name string
	ID   [16]byte
}

// TopicsDeleted forgets what groups have committed for deleted topics, so that one made anew under the same name starts without.
func (m *Machine) TopicsDeleted(nowMs int64, deleted []DeletedTopic) machine.Effects {
	o := m.begin(nowMs)
	o.effects.Splittable = true
	of := func(d DeletedTopic, c *committedOffset) bool { return !differs(c.topicID, d.ID) }
	for _, group := range sortedKeys(m.offsets.byGroup) {
		for _, d := range deleted {
			partitions := m.offsets.byGroup[group][d.Name]
			for _, partition := range slices.Sorted(maps.Keys(partitions)) {
				if of(d, partitions[partition]) {
					o.forgetOffset(group, d.Name, partition)
				}
			}
		}
	}
	for _, producerID := range slices.Sorted(maps.Keys(m.offsets.pending)) {
		for _, key := range slices.SortedFunc(maps.Keys(m.offsets.pending[producerID]), comparePartitions) {
			c := m.offsets.pending[producerID][key]
			if slices.ContainsFunc(deleted, func(d DeletedTopic) bool { return d.Name == key.topic && of(d, c) }) {
				o.forgetOffset(key.group, key.topic, key.partition)
			}
		}
	}
	return o.effects
}

// forgetOffset has a tombstone logged.
func (o *op) forgetOffset(group, topic string, partition int32) {
	o.effects.Records = append(o.effects.Records, &offsetRecord{group: group, topic: topic, partition: partition})
}

// forgetAllOffsets has tombstones logged for all that a group has committed or would commit with open transactions.
func (o *op) forgetAllOffsets(group string) {
	topics := o.offsets.byGroup[group]
	for _, topic := range sortedKeys(topics) {
		for _, partition := range slices.Sorted(maps.Keys(topics[topic])) {
			o.forgetOffset(group, topic, partition)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(o.offsets.open[group]), comparePartitions) {
		if topics[key.topic][key.partition] == nil {
			o.forgetOffset(group, key.topic, key.partition)
		}
	}
}
