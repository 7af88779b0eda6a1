package api

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/config"
)

// newTopic is the request to create a topic that somebody has used before it exists: with the defaults of the cluster, or an internal
// topic with the shape and configs that its coordinator wants.
func newTopic(name string, b *config.Broker) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic = name
	set := func(key, value string) {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = key, &value
		t.Configs = append(t.Configs, c)
	}
	switch name {
	case consumerOffsetsTopic:
		t.NumPartitions, t.ReplicationFactor = b.OffsetsTopicNumPartitions, b.OffsetsTopicReplicationFactor
		set("compression.type", "producer")
		set("cleanup.policy", "compact")
		set("segment.bytes", strconv.Itoa(b.OffsetsTopicSegmentBytes))
	case transactionStateTopic:
		t.NumPartitions, t.ReplicationFactor = b.TransactionStateLogNumPartitions, b.TransactionStateLogReplicationFactor
		set("compression.type", "uncompressed")
		set("cleanup.policy", "compact")
		set("min.insync.replicas", strconv.Itoa(b.TransactionStateLogMinISR))
		set("segment.bytes", strconv.Itoa(b.TransactionStateLogSegmentBytes))
		set("unclean.leader.election.enable", "false")
	case shareStateTopic:
		t.NumPartitions, t.ReplicationFactor = b.ShareCoordinatorStateTopicNumPartitions, b.ShareCoordinatorStateTopicReplicationFactor
		set("compression.type", "producer")
		set("cleanup.policy", "delete")
		set("min.insync.replicas", strconv.Itoa(b.ShareCoordinatorStateTopicMinISR))
		set("segment.bytes", strconv.Itoa(b.ShareCoordinatorStateTopicSegmentBytes))
		set("retention.ms", "-1")
	default:
		t.NumPartitions, t.ReplicationFactor = b.NumPartitions, b.DefaultReplicationFactor
	}
	return t
}
