package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/partition"
)

// DescribeLogDirs, versions 1 to 5.
//
//	2  flexible
//	3  error of the request as a whole
//	4  size of the volume and what is left of it (KIP-827)
//	5  whether a directory is closed for new replicas (KIP-1066)
//
// Lists the broker's log directories, and of each the replicas that the request asks for; all if it names no topics.
//
// Where we differ from Apache Kafka: sizes that the system does not tell are -1. No directory can be closed for new replicas yet.

func (h *Handlers) describeLogDirs(c *Context, request *kmsg.DescribeLogDirsRequest) Reply {
	response := kmsg.NewPtrDescribeLogDirsResponse()
	asked := askedLogDirs(request)
	for _, dir := range h.Replicas.LogDirs() {
		d := kmsg.NewDescribeLogDirsResponseDir()
		d.Dir = dir.Path
		if dir.Err != nil {
			d.ErrorCode = c.code(dir.Err)
		} else {
			d.TotalBytes, d.UsableBytes = dir.TotalBytes, dir.UsableBytes
			d.Topics = describeReplicas(dir.Replicas, asked)
		}
		response.Dirs = append(response.Dirs, d)
	}
	return Respond(response)
}

// askedLogDirs are the partitions that the request names; nil for all.
func askedLogDirs(request *kmsg.DescribeLogDirsRequest) map[topicPartition]bool {
	if request.Topics == nil {
		return nil
	}
	asked := map[topicPartition]bool{}
	for i := range request.Topics {
		for _, index := range request.Topics[i].Partitions {
			asked[topicPartition{request.Topics[i].Topic, index}] = true
		}
	}
	return asked
}

// describeReplicas groups replicas, which are ordered by topic, under their topics.
func describeReplicas(replicas []partition.LogDirReplica, asked map[topicPartition]bool) []kmsg.DescribeLogDirsResponseDirTopic {
	var topics []kmsg.DescribeLogDirsResponseDirTopic
	for _, r := range replicas {
		if asked != nil && !asked[topicPartition{r.Topic, r.Partition}] {
			continue
		}
		if len(topics) == 0 || topics[len(topics)-1].Topic != r.Topic {
			t := kmsg.NewDescribeLogDirsResponseDirTopic()
			t.Topic = r.Topic
			topics = append(topics, t)
		}
		p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		p.Partition, p.Size, p.OffsetLag, p.IsFuture = r.Partition, r.SizeBytes, r.OffsetLag, r.IsFuture
		last := &topics[len(topics)-1]
		last.Partitions = append(last.Partitions, p)
	}
	return topics
}
