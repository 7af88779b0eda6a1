package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/record"
	"sluice/replication/partition"
)

// ListOffsets, versions 1 to 11.
//
//	1   one offset with its timestamp
//	2   isolation level
//	4   current leader epoch, and the leader epoch of the offset (KIP-320)
//	5   OFFSET_NOT_AVAILABLE (older versions see LEADER_NOT_AVAILABLE in its place)
//	6   flexible
//	7   -3, the record with the largest timestamp (KIP-734)
//	8   -4, the first offset on the leader's own disk (KIP-405): without tiered storage the log start
//	9   -5, the last tiered offset (KIP-1005): without tiered storage none
//	10  timeout, for tiered storage
//	11  -6, the first offset that waits to be tiered (KIP-1023): without tiered storage none
//
// A search by time finds the record, not its batch: the smallest offset with that timestamp or a later one, below the high watermark (with
// read_committed below the last stable offset). Nothing found is offset -1 with timestamp -1 and no error.
//
// Where we differ from Apache Kafka: nowhere that is known.

// OffsetFinder is what ListOffsets needs of a replica.
type OffsetFinder interface {
	ListOffset(timestampMs int64, isolation partition.Isolation, leaderEpoch record.LeaderEpoch) (partition.TimestampOffset, error)
}

func (h *Handlers) listOffsets(c *Context, request *kmsg.ListOffsetsRequest) Reply {
	isolation := partition.ReadUncommitted
	switch {
	case request.IsolationLevel < int8(partition.ReadUncommitted) || request.IsolationLevel > int8(partition.ReadCommitted):
		return Respond(refusedListOffsets(request))
	case request.ReplicaID != consumer:
		isolation = partition.ReadLogEnd
	case request.IsolationLevel == int8(partition.ReadCommitted):
		isolation = partition.ReadCommitted
	}
	told, twice := map[topicPartition]bool{}, listedTwice(request)
	response := kmsg.NewPtrListOffsetsResponse()
	response.Topics = make([]kmsg.ListOffsetsResponseTopic, 0, len(request.Topics))
	for i := range request.Topics {
		asked := &request.Topics[i]
		answered := kmsg.ListOffsetsResponseTopic{Topic: asked.Topic, Partitions: make([]kmsg.ListOffsetsResponseTopicPartition, 0, len(asked.Partitions))}
		for j := range asked.Partitions {
			q := &asked.Partitions[j]
			key := topicPartition{asked.Topic, q.Partition}
			if twice[key] && told[key] {
				continue
			}
			told[key] = true
			answered.Partitions = append(answered.Partitions, kmsg.NewListOffsetsResponseTopicPartition())
			a := &answered.Partitions[len(answered.Partitions)-1]
			a.Partition = q.Partition
			found := partition.TimestampOffset{Offset: record.NoOffset, TimestampMs: record.NoTimestamp, LeaderEpoch: record.NoLeaderEpoch}
			var err error
			switch {
			case twice[key]:
				err = kerr.InvalidRequest
			case !servesTimestamp(q.Timestamp, c.Version):
				err = kerr.UnsupportedVersion
			default:
				found, err = h.listOffset(asked.Topic, q, isolation, found)
			}
			a.ErrorCode = c.code(err)
			if a.ErrorCode == kerr.OffsetNotAvailable.Code && c.Version < 5 {
				a.ErrorCode = kerr.LeaderNotAvailable.Code
			}
			a.Timestamp, a.Offset, a.LeaderEpoch = found.TimestampMs, found.Offset, int32(found.LeaderEpoch)
		}
		if len(answered.Partitions) > 0 {
			response.Topics = append(response.Topics, answered)
		}
	}
	return Respond(response)
}

// refusedListOffsets answers a request whose isolation level is none.
func refusedListOffsets(request *kmsg.ListOffsetsRequest) *kmsg.ListOffsetsResponse {
	response := kmsg.NewPtrListOffsetsResponse()
	response.Topics = make([]kmsg.ListOffsetsResponseTopic, len(request.Topics))
	for i := range request.Topics {
		asked, answered := &request.Topics[i], &response.Topics[i]
		answered.Topic = asked.Topic
		answered.Partitions = make([]kmsg.ListOffsetsResponseTopicPartition, len(asked.Partitions))
		for j := range asked.Partitions {
			a := &answered.Partitions[j]
			a.Default()
			a.Partition, a.ErrorCode = asked.Partitions[j].Partition, kerr.UnknownServerError.Code
		}
	}
	return response
}

func (h *Handlers) listOffset(topic string, q *kmsg.ListOffsetsRequestTopicPartition, isolation partition.Isolation, none partition.TimestampOffset) (partition.TimestampOffset, error) {
	replica, err := h.Replicas.Get(topic, q.Partition)
	if err != nil {
		return none, err
	}
	found, err := replica.ListOffset(q.Timestamp, isolation, record.LeaderEpoch(q.CurrentLeaderEpoch))
	if err != nil {
		return none, err
	}
	return found, nil
}

type topicPartition struct {
	topic string
	index int32
}

// listedTwice finds the partitions that the request names more than once.
func listedTwice(request *kmsg.ListOffsetsRequest) map[topicPartition]bool {
	seen, twice := map[topicPartition]bool{}, map[topicPartition]bool(nil)
	for i := range request.Topics {
		t := &request.Topics[i]
		for j := range t.Partitions {
			key := topicPartition{t.Topic, t.Partitions[j].Partition}
			if seen[key] {
				if twice == nil {
					twice = map[topicPartition]bool{}
				}
				twice[key] = true
			}
			seen[key] = true
		}
	}
	return twice
}

// specialTimestamps are the negative ones that mean something, each with the version that brought it.
var specialTimestamps = map[int64]int16{-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}

func servesTimestamp(timestampMs int64, version int16) bool {
	since, special := specialTimestamps[timestampMs]
	return timestampMs >= 0 || special && version >= since
}
