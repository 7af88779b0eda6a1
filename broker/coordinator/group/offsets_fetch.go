package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FetchOffsets returns what a group has committed: for the topics of the request, which carry names and may carry ids, or for all when
// these are nil. Partitions without a commit, all of them when there is no such group, have offset -1. With requireStable a partition
// for which a transaction has a commit pending is reported as such.
func (m *Machine) FetchOffsets(req *kmsg.OffsetFetchRequestGroup, requireStable bool) kmsg.OffsetFetchResponseGroup {
	resp := kmsg.OffsetFetchResponseGroup{Group: req.Group, Topics: []kmsg.OffsetFetchResponseGroupTopic{}}
	var offsets byTopic
	if m.groups[req.Group] != nil {
		offsets = m.offsets.byGroup[req.Group]
	}
	describe := func(topic string, partition int32, c *committedOffset) kmsg.OffsetFetchResponseGroupTopicPartition {
		none := ""
		p := kmsg.OffsetFetchResponseGroupTopicPartition{Partition: partition, Offset: -1, LeaderEpoch: noLeaderEpoch, Metadata: &none}
		switch {
		case requireStable && m.groups[req.Group] != nil && m.offsets.isOpen(req.Group, topic, partition):
			p.ErrorCode = kerr.UnstableOffsetCommit.Code
		case c != nil:
			p.Offset, p.LeaderEpoch, p.Metadata = c.offset, c.leaderEpoch, &c.metadata
		}
		return p
	}
	if req.Topics == nil {
		for _, topic := range sortedKeys(offsets) {
			t := kmsg.OffsetFetchResponseGroupTopic{Topic: topic}
			for _, partition := range slices.Sorted(maps.Keys(offsets[topic])) {
				t.Partitions = append(t.Partitions, describe(topic, partition, offsets[topic][partition]))
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp
	}
	for _, asked := range req.Topics {
		t := kmsg.OffsetFetchResponseGroupTopic{
			Topic:      asked.Topic,
			TopicID:    asked.TopicID,
			Partitions: make([]kmsg.OffsetFetchResponseGroupTopicPartition, 0, len(asked.Partitions)),
		}
		for _, partition := range asked.Partitions {
			c := offsets[asked.Topic][partition]
			if c != nil && differs(c.topicID, asked.TopicID) {
				c = nil // committed for a topic of that name which was deleted
			}
			t.Partitions = append(t.Partitions, describe(asked.Topic, partition, c))
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// differs reports whether two topic ids are known and not the same.
func differs(a, b [16]byte) bool {
	var unknown [16]byte
	return a != unknown && b != unknown && a != b
}
