package diff

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The bounds of the APIs about topics, configs and the cluster.

func nth(r *Run, n int) string { return r.name(fmt.Sprintf("t%d", n)) }

const (
	timeRace     = "whether the change is made within so few milliseconds is chance"
	neverAnswers = "Apache Kafka fails while it makes the answer, and never sends one"
)

var timeRaces = map[string]string{"TimeoutMillis = 1": timeRace, "TimeoutMillis = 5": timeRace}

// lookAtTopic compares what metadata and the topic's configs say of topic n.
func lookAtTopic(r *Run, step string, version int16, n int) {
	askSettled[*kmsg.MetadataResponse](r, step+", then its metadata", 12, same(metadata(false, nth(r, n))))
	askSettled[*kmsg.DescribeConfigsResponse](r, step+", then its configs", 4, same(describeConfigs(kmsg.ConfigResourceTypeTopic, nth(r, n), "cleanup.policy", "retention.ms", "segment.bytes")))
}

var adminSubjects = []subject{
	{
		key:     kmsg.Metadata,
		prepare: func(r *Run) { r.topic(r.name("t"), 3) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := metadata(false, r.name("t"))
			req.IncludeClusterAuthorizedOperations, req.IncludeTopicAuthorizedOperations = true, true
			return req
		},
		skip: map[string]string{
			"Topics[].Topic = 249 letters":     "versions below 4 create it, as all scenarios' topic: story metadata/topics are created when asked for",
			"Topics[].Topic = an unknown name": "the same",
			"AllowAutoTopicCreation":           "the same",
		},
	},
	{
		key: kmsg.CreateTopics,
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			return createTopics(nth(r, n), 2, 1, "retention.ms", "1000000", "cleanup.policy", "compact")
		},
		after: lookAtTopic,
		skip:  timeRaces,
	},
	{
		key: kmsg.CreateTopics, // with an assignment
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := createTopics(nth(r, n), -1, -1)
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Replicas = []int32{1}
			req.Topics[0].ReplicaAssignment = append(req.Topics[0].ReplicaAssignment, a)
			return req
		},
		after: lookAtTopic,
		skip:  timeRaces,
	},
	{
		key:  kmsg.DeleteTopics,
		each: func(r *Run, version int16, n int) { r.topic(nth(r, n), 1) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrDeleteTopicsRequest()
			req.TimeoutMillis = 10_000
			req.TopicNames = []string{nth(r, n)}
			t := kmsg.NewDeleteTopicsRequestTopic()
			t.Topic = pointer(nth(r, n))
			req.Topics = append(req.Topics, t)
			return req
		},
		after: func(r *Run, step string, version int16, n int) {
			askSettled[*kmsg.MetadataResponse](r, step+", then its metadata", 12, same(metadata(false, nth(r, n))))
		},
		skip: timeRaces,
	},
	{
		key:  kmsg.CreatePartitions,
		each: func(r *Run, version int16, n int) { r.topic(nth(r, n), 1) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrCreatePartitionsRequest()
			req.TimeoutMillis = 10_000
			t := kmsg.NewCreatePartitionsRequestTopic()
			t.Topic, t.Count = nth(r, n), 2
			a := kmsg.NewCreatePartitionsRequestTopicAssignment()
			a.Replicas = []int32{1}
			t.Assignment = append(t.Assignment, a)
			req.Topics = append(req.Topics, t)
			return req
		},
		after: func(r *Run, step string, version int16, n int) {
			askSettled[*kmsg.MetadataResponse](r, step+", then its metadata", 12, same(metadata(false, nth(r, n))))
		},
		skip: map[string]string{
			"TimeoutMillis = 1":    timeRace,
			"TimeoutMillis = 5":    timeRace,
			"Topics[].Count = max": "Apache Kafka would try to make two thousand million partitions",
		},
	},
	{
		key:     kmsg.DescribeConfigs,
		prepare: func(r *Run) { r.topic(r.name("t"), 1, "retention.ms", "1000000") },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := describeConfigs(kmsg.ConfigResourceTypeTopic, r.name("t"), "retention.ms", "cleanup.policy")
			req.IncludeSynonyms, req.IncludeDocumentation = true, true
			return req
		},
	},
	{
		key:  kmsg.AlterConfigs,
		each: func(r *Run, version int16, n int) { r.topic(nth(r, n), 1, "retention.ms", "1000000") },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrAlterConfigsRequest()
			resource := kmsg.NewAlterConfigsRequestResource()
			resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, nth(r, n)
			c := kmsg.NewAlterConfigsRequestResourceConfig()
			c.Name, c.Value = "cleanup.policy", pointer("compact")
			resource.Configs = append(resource.Configs, c)
			req.Resources = append(req.Resources, resource)
			return req
		},
		after: lookAtTopic,
		skip: map[string]string{
			"Resources = the first twice":           neverAnswers,
			"Resources[].ResourceName = empty text": "not of the topic",
		},
	},
	{
		key:  kmsg.IncrementalAlterConfigs,
		each: func(r *Run, version int16, n int) { r.topic(nth(r, n), 1, "retention.ms", "1000000") },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrIncrementalAlterConfigsRequest()
			resource := kmsg.NewIncrementalAlterConfigsRequestResource()
			resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, nth(r, n)
			c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			c.Name, c.Value = "cleanup.policy", pointer("compact")
			resource.Configs = append(resource.Configs, c)
			req.Resources = append(req.Resources, resource)
			return req
		},
		after: lookAtTopic,
	},
	{
		key: kmsg.DescribeLogDirs,
		prepare: func(r *Run) {
			r.topic(r.name("t"), 2)
			r.fill(r.name("t"), 0, "a", "b")
		},
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrDescribeLogDirsRequest()
			t := kmsg.NewDescribeLogDirsRequestTopic()
			t.Topic, t.Partitions = r.name("t"), []int32{0, 1}
			req.Topics = append(req.Topics, t)
			return req
		},
	},
	{
		key: kmsg.ApiVersions,
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrApiVersionsRequest()
			req.ClientSoftwareName, req.ClientSoftwareVersion = "diff", "1.0"
			req.NodeID = -1
			return req
		},
	},
	{
		key: kmsg.DescribeCluster,
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrDescribeClusterRequest()
			req.IncludeClusterAuthorizedOperations, req.EndpointType = true, 1
			return req
		},
	},
	{
		key:     kmsg.ListConfigResources,
		prepare: func(r *Run) { r.topic(r.name("t"), 1, "retention.ms", "1000000") },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrListConfigResourcesRequest()
			req.ResourceTypes = []int8{2}
			return req
		},
	},
	{
		key:     kmsg.DescribeTopicPartitions,
		alone:   true, // asked for all topics it counts those of other scenarios
		prepare: func(r *Run) { r.topic(r.name("t"), 3); r.topic(r.name("u"), 2) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrDescribeTopicPartitionsRequest()
			for _, name := range []string{r.name("t"), r.name("u")} {
				t := kmsg.NewDescribeTopicPartitionsRequestTopic()
				t.Topic = name
				req.Topics = append(req.Topics, t)
			}
			req.ResponsePartitionLimit = 100
			cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
			cursor.Topic = r.name("t")
			req.Cursor = &cursor
			return req
		},
	},
}

func describeConfigs(kind kmsg.ConfigResourceType, name string, keys ...string) *kmsg.DescribeConfigsRequest {
	req := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName, resource.ConfigNames = kind, name, keys
	req.Resources = append(req.Resources, resource)
	return req
}
