package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/record"
	"sluice/replication/partition"
)

// OffsetForLeaderEpoch, versions 2 to 4.
//
//	2  current leader epoch
//	3  replica id
//	4  flexible
//
// Tells where a leader epoch ends in the leader's log, so that whoever has read or replicated in that epoch can find out whether its
// records are still there: the largest epoch up to the one asked for, and the end of it (exclusive). -1 and -1 when the log knows of none.
//
// Where we differ from Apache Kafka: nowhere that is known.
//
// KIPs: 101, 279, 320.

// EpochFinder is what OffsetForLeaderEpoch needs of a replica.
type EpochFinder interface {
	EndOffsetForEpoch(leaderEpoch, epoch record.LeaderEpoch) (partition.EpochEnd, error)
}

func (h *Handlers) offsetForLeaderEpoch(c *Context, request *kmsg.OffsetForLeaderEpochRequest) Reply {
	response := kmsg.NewPtrOffsetForLeaderEpochResponse()
	response.Topics = make([]kmsg.OffsetForLeaderEpochResponseTopic, len(request.Topics))
	for i := range request.Topics {
		asked, answered := &request.Topics[i], &response.Topics[i]
		answered.Topic = asked.Topic
		answered.Partitions = make([]kmsg.OffsetForLeaderEpochResponseTopicPartition, len(asked.Partitions))
		for j := range asked.Partitions {
			q, a := &asked.Partitions[j], &answered.Partitions[j]
			a.Default()
			a.Partition = q.Partition
			end, err := h.endOfEpoch(asked.Topic, q)
			a.ErrorCode = c.code(err)
			a.LeaderEpoch, a.EndOffset = int32(end.LeaderEpoch), end.EndOffset
		}
	}
	return Respond(response)
}

func (h *Handlers) endOfEpoch(topic string, q *kmsg.OffsetForLeaderEpochRequestTopicPartition) (partition.EpochEnd, error) {
	unknown := partition.EpochEnd{LeaderEpoch: record.NoLeaderEpoch, EndOffset: record.NoOffset}
	replica, err := h.Replicas.Get(topic, q.Partition)
	if err != nil {
		return unknown, err
	}
	end, err := replica.EndOffsetForEpoch(record.LeaderEpoch(q.CurrentLeaderEpoch), record.LeaderEpoch(q.LeaderEpoch))
	if err != nil {
		return unknown, err
	}
	return end, nil
}
