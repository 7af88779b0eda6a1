package api

// DescribeTopicPartitions (key 75): partitions with their eligible leaders (KIP-966), in pages.
//
// Version 0. No topics means all of them. At most as many partitions are answered as the request and max.request.partition.size.limit
// allow, at least one; the cursor of the answer says where the next request goes on.
//
// As Apache Kafka.

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/metadata"
)

func (h *Handlers) describeTopicPartitions(c *Context, request *kmsg.DescribeTopicPartitionsRequest) Reply {
	cursor := request.Cursor
	from := ""
	if cursor != nil {
		from = cursor.Topic
	}
	p := partitionPage{
		clusterView: h.clusterView(c),
		response:    kmsg.NewPtrDescribeTopicPartitionsResponse(),
		cursor:      cursor,
		left:        max(min(int64(h.Config().MaxRequestPartitionSizeLimit), int64(request.ResponsePartitionLimit)), 1),
	}
	all := len(request.Topics) == 0
	names := make([]string, 0, len(request.Topics))
	for i := range request.Topics {
		if name := request.Topics[i].Topic; name >= from {
			names = append(names, name)
		}
	}
	if cursor != nil && (cursor.Partition < 0 || !all && !slices.Contains(names, cursor.Topic)) {
		return Respond(describeTopicPartitionsError(request, kerr.InvalidRequest))
	}
	if all {
		for t := range p.image.TopicsFrom(from) {
			if !p.add(t.Name, t) {
				break
			}
		}
		return Respond(p.response)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		t, _ := p.image.Topic(name)
		if !p.add(name, t) {
			break
		}
	}
	return Respond(p.response)
}

func describeTopicPartitionsError(request *kmsg.DescribeTopicPartitionsRequest, code *kerr.Error) kmsg.Response {
	response := kmsg.NewPtrDescribeTopicPartitionsResponse()
	for i := range request.Topics {
		t := kmsg.NewDescribeTopicPartitionsResponseTopic()
		t.ErrorCode, t.Topic = code.Code, &request.Topics[i].Topic
		response.Topics = append(response.Topics, t)
	}
	return response
}

// partitionPage fills one answer up to its limit.
type partitionPage struct {
	clusterView
	response *kmsg.DescribeTopicPartitionsResponse
	cursor   *kmsg.DescribeTopicPartitionsRequestCursor // where to begin; nil: at the start
	left     int64                                      // partitions that still fit
}

// add answers for a topic, nil when there is none of that name. It is false when the answer is full.
func (p *partitionPage) add(name string, t *metadata.Topic) bool {
	if p.left == 0 {
		p.goOnAt(name, 0)
		return false
	}
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.IsInternal, out.AuthorizedOperations = &name, isInternalTopic(name), topicOperations
	if t == nil {
		out.ErrorCode = kerr.UnknownTopicOrPartition.Code
		if metadata.ValidateTopicName(name) != nil {
			out.ErrorCode = kerr.InvalidTopicException.Code
		}
		p.response.Topics = append(p.response.Topics, out)
		return true
	}
	out.TopicID = t.ID
	begin := int64(0)
	if p.cursor != nil && p.cursor.Topic == name {
		begin = min(int64(p.cursor.Partition), int64(len(t.Partitions)))
	}
	end := min(begin+p.left, int64(len(t.Partitions)))
	for i := begin; i < end; i++ {
		out.Partitions = append(out.Partitions, p.partition(int32(i), &t.Partitions[i]))
	}
	p.left -= end - begin
	p.response.Topics = append(p.response.Topics, out)
	if end < int64(len(t.Partitions)) {
		p.goOnAt(name, int32(end))
		return false
	}
	return true
}

func (p *partitionPage) goOnAt(topic string, partition int32) {
	next := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	next.Topic, next.Partition = topic, partition
	p.response.NextCursor = &next
}

func (p *partitionPage) partition(id int32, in *metadata.Partition) kmsg.DescribeTopicPartitionsResponseTopicPartition {
	out := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	out.Partition, out.LeaderID, out.LeaderEpoch = id, -1, int32(in.LeaderEpoch)
	if reachable, _ := p.leader(in.Leader); reachable {
		out.LeaderID = int32(in.Leader)
	}
	out.Replicas, out.ISR = numbers(in.Replicas), numbers(in.ISR)
	out.EligibleLeaderReplicas, out.LastKnownELR = numbers(in.ELR), numbers(in.LastKnownELR)
	for i := range in.Replicas {
		if p.offline(in, i) {
			out.OfflineReplicas = append(out.OfflineReplicas, int32(in.Replicas[i]))
		}
	}
	return out
}

// numbers writes broker ids as responses have them: empty, never null.
func numbers(brokers []metadata.BrokerID) []int32 {
	out := make([]int32, len(brokers))
	for i, id := range brokers {
		out[i] = int32(id)
	}
	return out
}
