package diff

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func adminStories() []Scenario {
	list := []Scenario{
		{Name: "metadata/topics are created when asked for", Steps: autoCreate},
		{Name: "metadata/ids", Steps: metadataByID},
		{Name: "topics/create", Steps: createStory},
		{Name: "topics/partitions", Steps: partitionsStory},
		{Name: "topics/delete", Steps: deleteStory},
		{Name: "topics/described by pages", Steps: describedByPages},
		{Name: "configs/topic configs", Steps: topicConfigs},
		{Name: "configs/incremental", Steps: incremental},
		{Name: "configs/the broker's", Steps: brokerConfigs, Alone: true},
	}
	for _, half := range []string{"first", "second"} {
		list = append(list, Scenario{Name: "configs/values, " + half + " half", Steps: func(r *Run) { configValues(r, half == "second") }})
	}
	return list
}

func autoCreate(r *Run) {
	for _, v := range testedVersions(kmsg.Metadata) {
		for _, create := range []bool{false, true} {
			name := r.name(fmt.Sprintf("auto-%d-%v", v, create))
			// Apache Kafka answers the first request before it has made the topic, Sluice after: only what comes then is compared.
			r.exchange(v, same(metadata(create, name)))
			askSettled[*kmsg.MetadataResponse](r, fmt.Sprintf("then, create %v", create), 12, same(metadata(false, name)))
		}
		for _, bad := range []string{"", ".", "..", strings.Repeat("a", 250), "a b"} {
			ask[*kmsg.MetadataResponse](r, "a bad name "+bad, v, same(metadata(true, bad)))
		}
	}
}

func metadataByID(r *Run) {
	r.topic(r.name("t"), 2)
	r.topic(r.name("u"), 1)
	for _, v := range testedVersions(kmsg.Metadata) {
		ask[*kmsg.MetadataResponse](r, "two, one of them twice", v, same(metadata(false, r.name("u"), r.name("t"), r.name("u"))))
		ask[*kmsg.MetadataResponse](r, "all", v, same(kmsg.NewPtrMetadataRequest()))
		none := kmsg.NewPtrMetadataRequest()
		none.Topics = []kmsg.MetadataRequestTopic{}
		ask[*kmsg.MetadataResponse](r, "none", v, same(none))
		if v < 12 {
			continue
		}
		for _, named := range []bool{false, true} {
			ask[*kmsg.MetadataResponse](r, fmt.Sprintf("by id, named %v", named), v, func(s *side) kmsg.Request {
				req := kmsg.NewPtrMetadataRequest()
				for _, id := range [][16]byte{idOf(s, r.name("u")), {8}, idOf(s, r.name("t"))} {
					t := kmsg.NewMetadataRequestTopic()
					t.TopicID = id
					if named {
						t.Topic = pointer(r.name("t"))
					}
					req.Topics = append(req.Topics, t)
				}
				return req
			})
		}
	}
}

func createStory(r *Run) {
	topic := func(name string, partitions int32, replicas int16, configs ...string) kmsg.CreateTopicsRequestTopic {
		return createTopics(name, partitions, replicas, configs...).Topics[0]
	}
	assigned := func(name string, partitions map[int32][]int32) kmsg.CreateTopicsRequestTopic {
		t := topic(name, -1, -1)
		for p := int32(0); p < 10; p++ {
			if replicas, ok := partitions[p]; ok {
				a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
				a.Partition, a.Replicas = p, replicas
				t.ReplicaAssignment = append(t.ReplicaAssignment, a)
			}
		}
		return t
	}
	for _, v := range testedVersions(kmsg.CreateTopics) {
		at := func(what string) string { return r.name(fmt.Sprintf("%s-%d", what, v)) }
		for _, only := range []bool{true, false} {
			req := kmsg.NewPtrCreateTopicsRequest()
			req.TimeoutMillis, req.ValidateOnly = 10_000, only
			req.Topics = append(req.Topics,
				topic(at("plain"), 2, 1),
				topic(at("defaults"), -1, -1),
				topic(at("configured"), 1, 1, "retention.ms", "1000", "cleanup.policy", "compact"),
				topic(at("unknown-config"), 1, 1, "no.such.config", "1"),
				topic(at("bad-value"), 1, 1, "retention.ms", "soon"),
				topic(at("twice"), 1, 1), topic(at("twice"), 1, 1),
				topic(at("configs-twice"), 1, 1, "retention.ms", "1", "retention.ms", "2"),
				topic(at("replicas"), 1, 3),
				topic("__consumer_offsets", 1, 1),
				topic(at("a.b"), 1, 1),
				topic(at("a_b"), 1, 1), // differs from the one before in what metrics cannot tell apart
				assigned(at("assigned"), map[int32][]int32{0: {1}, 1: {1}}),
				assigned(at("gap"), map[int32][]int32{0: {1}, 2: {1}}),
				assigned(at("not-from-0"), map[int32][]int32{1: {1}}),
				assigned(at("double"), map[int32][]int32{0: {1, 1}}),
				assigned(at("no-replica"), map[int32][]int32{0: {}}),
				assigned(at("unknown-broker"), map[int32][]int32{0: {7}}),
				assigned(at("negative-broker"), map[int32][]int32{0: {-1}}),
				assigned(at("uneven"), map[int32][]int32{0: {1}, 1: {1, 2}}))
			both := assigned(at("both"), map[int32][]int32{0: {1}})
			both.NumPartitions = 1
			req.Topics = append(req.Topics, both)
			null := topic(at("null-value"), 1, 1)
			null.Configs = append(null.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: "retention.ms"})
			req.Topics = append(req.Topics, null)
			ask[*kmsg.CreateTopicsResponse](r, fmt.Sprintf("validate %v", only), v, same(req))
			ask[*kmsg.CreateTopicsResponse](r, fmt.Sprintf("again, validate %v", only), v, same(req))
			askSettled[*kmsg.MetadataResponse](r, fmt.Sprintf("made after validate %v, create v%d", only, v), 12,
				same(metadata(false, at("plain"), at("defaults"), at("configured"), at("assigned"), at("a.b"), at("a_b"))))
		}
	}
}

func partitionsStory(r *Run) {
	for _, v := range testedVersions(kmsg.CreatePartitions) {
		t := r.name(fmt.Sprintf("t%d", v))
		r.topic(t, 2)
		for _, only := range []bool{true, false} {
			for _, count := range []int32{-1, 0, 1, 2, 3} {
				for _, assignment := range [][][]int32{nil, {}, {{1}}, {{1}, {1}}, {{}}, {{7}}, {{1, 1}}} {
					req := kmsg.NewPtrCreatePartitionsRequest()
					req.TimeoutMillis, req.ValidateOnly = 10_000, only
					one := kmsg.NewCreatePartitionsRequestTopic()
					one.Topic, one.Count = t, count
					if assignment != nil {
						one.Assignment = []kmsg.CreatePartitionsRequestTopicAssignment{}
					}
					for _, replicas := range assignment {
						a := kmsg.NewCreatePartitionsRequestTopicAssignment()
						a.Replicas = replicas
						one.Assignment = append(one.Assignment, a)
					}
					req.Topics = append(req.Topics, one)
					if count == 3 && !only && assignment == nil {
						other := one
						other.Topic = r.name("nobody")
						req.Topics = append(req.Topics, other)
					}
					ask[*kmsg.CreatePartitionsResponse](r, fmt.Sprintf("to %d, assigned %v, validate %v", count, assignment, only), v, same(req))
				}
			}
		}
		askSettled[*kmsg.MetadataResponse](r, fmt.Sprintf("afterwards, v%d", v), 12, same(metadata(false, t)))
	}
}

func deleteStory(r *Run) {
	for _, v := range testedVersions(kmsg.DeleteTopics) {
		t, u := r.name(fmt.Sprintf("t%d", v)), r.name(fmt.Sprintf("u%d", v))
		r.topic(t, 1)
		r.topic(u, 1)
		ask[*kmsg.DeleteTopicsResponse](r, "several", v, func(s *side) kmsg.Request {
			req := kmsg.NewPtrDeleteTopicsRequest()
			req.TimeoutMillis = 10_000
			req.TopicNames = []string{t, r.name("nobody"), "", "a b"}
			add := func(name *string, id [16]byte) {
				one := kmsg.NewDeleteTopicsRequestTopic()
				one.Topic, one.TopicID = name, id
				req.Topics = append(req.Topics, one)
			}
			add(pointer(t), [16]byte{})
			add(pointer(r.name("nobody")), [16]byte{})
			add(nil, idOf(s, u))
			add(nil, [16]byte{3})
			return req
		})
		askSettled[*kmsg.MetadataResponse](r, fmt.Sprintf("afterwards, delete v%d", v), 12, same(metadata(false, t, u)))
		ask[*kmsg.DeleteTopicsResponse](r, "once more", v, func(s *side) kmsg.Request {
			req := kmsg.NewPtrDeleteTopicsRequest()
			req.TimeoutMillis, req.TopicNames = 10_000, []string{t}
			one := kmsg.NewDeleteTopicsRequestTopic()
			one.TopicID = idOf(s, u)
			req.Topics = append(req.Topics, one)
			return req
		})
		r.topic(t, 2)
		ask[*kmsg.MetadataResponse](r, fmt.Sprintf("its successor, delete v%d", v), 12, same(metadata(false, t)))
		ask[*kmsg.ProduceResponse](r, "into the successor", 9, func(s *side) kmsg.Request { return produce(t, [16]byte{}, -1, 1, batch(plain(), "a")) })
	}
}

func describedByPages(r *Run) {
	names := []string{r.name("c"), r.name("a"), r.name("b"), r.name("nobody")}
	r.topic(names[0], 3)
	r.topic(names[1], 2)
	r.topic(names[2], 4)
	for _, limit := range []int32{-1, 0, 1, 2, 3, 5, 9, 10, 2000} {
		for _, cursor := range []*kmsg.DescribeTopicPartitionsRequestCursor{nil, {Topic: names[2], Partition: 0}, {Topic: names[2], Partition: 2}, {Topic: names[2], Partition: 9},
			{Topic: names[2], Partition: -1}, {Topic: names[3], Partition: 0}, {Topic: "", Partition: 0}, {Topic: "zzz", Partition: 0}} {
			req := kmsg.NewPtrDescribeTopicPartitionsRequest()
			for _, name := range names {
				t := kmsg.NewDescribeTopicPartitionsRequestTopic()
				t.Topic = name
				req.Topics = append(req.Topics, t)
			}
			req.ResponsePartitionLimit, req.Cursor = limit, cursor
			at := "the beginning"
			if cursor != nil {
				at = fmt.Sprintf("%s %d", strings.TrimPrefix(cursor.Topic, r.prefix), cursor.Partition)
			}
			ask[*kmsg.DescribeTopicPartitionsResponse](r, fmt.Sprintf("%d from %s", limit, at), 0, same(req))
		}
	}
}

// topicConfigs describes all configs of topics, with where each value comes from.
func topicConfigs(r *Run) {
	r.topic(r.name("t"), 1, "retention.ms", "1000000", "segment.bytes", "2000000")
	for _, v := range testedVersions(kmsg.DescribeConfigs) {
		for _, name := range []string{r.name("t"), "__consumer_offsets", r.name("nobody"), "", "a b"} {
			req := describeConfigs(kmsg.ConfigResourceTypeTopic, name)
			req.IncludeSynonyms = true
			ask[*kmsg.DescribeConfigsResponse](r, "topic "+strings.TrimPrefix(name, r.prefix), v, same(req))
		}
	}
}

// incremental alters one topic's configs by each operation.
func incremental(r *Run) {
	r.topic(r.name("t"), 1)
	type op struct {
		name  string
		op    kmsg.IncrementalAlterConfigOp
		value *string
	}
	const set, del, app, sub = kmsg.IncrementalAlterConfigOpSet, kmsg.IncrementalAlterConfigOpDelete, kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract
	for _, v := range testedVersions(kmsg.IncrementalAlterConfigs) {
		for i, ops := range [][]op{
			{{"retention.ms", set, pointer("5000")}},
			{{"retention.ms", set, pointer("5000")}},
			{{"cleanup.policy", app, pointer("compact")}},
			{{"cleanup.policy", app, pointer("compact")}},
			{{"cleanup.policy", sub, pointer("delete")}},
			{{"cleanup.policy", sub, pointer("compact")}},
			{{"cleanup.policy", app, pointer("delete,compact")}},
			{{"cleanup.policy", app, pointer("")}},
			{{"cleanup.policy", app, pointer("nonsense")}},
			{{"cleanup.policy", app, nil}},
			{{"retention.ms", app, pointer("1")}},
			{{"retention.ms", sub, pointer("1")}},
			{{"retention.ms", set, nil}},
			{{"retention.ms", del, nil}},
			{{"retention.ms", del, pointer("ignored")}},
			{{"segment.ms", del, nil}},
			{{"retention.ms", set, pointer("1")}, {"retention.ms", set, pointer("2")}},
			{{"retention.ms", set, pointer("1")}, {"retention.ms", del, nil}},
			{{"retention.ms", set, pointer("7000")}, {"segment.bytes", set, pointer("nonsense")}},
			{{"no.such.config", set, pointer("1")}},
			{{"no.such.config", del, nil}},
			{{"", set, pointer("1")}},
			{{"retention.ms", set, pointer("")}},
			{{"retention.ms", set, pointer(" 9000 ")}},
			{{"cleanup.policy", set, pointer("compact, delete")}},
			{{"leader.replication.throttled.replicas", app, pointer("0:1")}},
			{{"leader.replication.throttled.replicas", set, pointer("*")}},
			{{"follower.replication.throttled.replicas", set, pointer("nonsense")}},
			{{"min.insync.replicas", set, pointer("2")}, {"unclean.leader.election.enable", set, pointer("true")}},
			{{"remote.storage.enable", set, pointer("true")}},
			{{"min.insync.replicas", del, nil}, {"unclean.leader.election.enable", del, nil}},
		} {
			for _, only := range []bool{true, false} {
				req := kmsg.NewPtrIncrementalAlterConfigsRequest()
				req.ValidateOnly = only
				resource := kmsg.NewIncrementalAlterConfigsRequestResource()
				resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, r.name("t")
				var said []string
				for _, o := range ops {
					c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
					c.Name, c.Op, c.Value = o.name, o.op, o.value
					resource.Configs = append(resource.Configs, c)
					said = append(said, fmt.Sprintf("%s %s %s", o.op, o.name, text(o.value)))
				}
				req.Resources = append(req.Resources, resource)
				step := fmt.Sprintf("%d: %s, validate %v", i, strings.Join(said, ", "), only)
				ask[*kmsg.IncrementalAlterConfigsResponse](r, step, v, same(req))
				askSettled[*kmsg.DescribeConfigsResponse](r, step+", then described", 4, same(describeConfigs(kmsg.ConfigResourceTypeTopic, r.name("t"))))
			}
		}
	}
	for _, kind := range []kmsg.ConfigResourceType{kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger, 16, 32, 0, 99} {
		for _, name := range []string{"", "1", "2", "x", r.name("nobody")} {
			resource := kmsg.NewIncrementalAlterConfigsRequestResource()
			resource.ResourceType, resource.ResourceName = kind, name
			c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			c.Name, c.Op, c.Value = "log.cleaner.threads", set, pointer("2")
			resource.Configs = append(resource.Configs, c)
			req := kmsg.NewPtrIncrementalAlterConfigsRequest()
			req.ValidateOnly = true
			req.Resources = append(req.Resources, resource)
			ask[*kmsg.IncrementalAlterConfigsResponse](r, fmt.Sprintf("resource %d %s", kind, strings.TrimPrefix(name, r.prefix)), 1, same(req))
			described := describeConfigs(kind, name)
			described.Resources[0].ConfigNames = []string{"log.cleaner.threads"}
			ask[*kmsg.DescribeConfigsResponse](r, fmt.Sprintf("described %d %s", kind, strings.TrimPrefix(name, r.prefix)), 4, same(described))
		}
	}
}

// brokerConfigs changes configs of the broker and of all brokers, and describes them.
func brokerConfigs(r *Run) {
	describe := func(step, name string) {
		req := describeConfigs(kmsg.ConfigResourceTypeBroker, name)
		req.IncludeSynonyms = true
		askSettled[*kmsg.DescribeConfigsResponse](r, step+", described "+name, 4, same(req))
	}
	alter := func(step, name, config string, op kmsg.IncrementalAlterConfigOp, value *string) {
		resource := kmsg.NewIncrementalAlterConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeBroker, name
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = config, op, value
		resource.Configs = append(resource.Configs, c)
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.Resources = append(req.Resources, resource)
		ask[*kmsg.IncrementalAlterConfigsResponse](r, step, 1, same(req))
	}
	describe("before", "1")
	describe("before", "")
	alter("for all", "", "message.max.bytes", kmsg.IncrementalAlterConfigOpSet, pointer("2000000"))
	alter("for one", "1", "log.retention.ms", kmsg.IncrementalAlterConfigOpSet, pointer("123456789"))
	alter("read only", "1", "node.id", kmsg.IncrementalAlterConfigOpSet, pointer("7"))
	alter("a bad value", "1", "log.retention.ms", kmsg.IncrementalAlterConfigOpSet, pointer("nonsense"))
	alter("an unknown config", "1", "no.such.config", kmsg.IncrementalAlterConfigOpSet, pointer("1"))
	alter("another broker", "2", "log.retention.ms", kmsg.IncrementalAlterConfigOpSet, pointer("1"))
	alter("of one only, for all", "", "log.dirs", kmsg.IncrementalAlterConfigOpSet, pointer("/x"))
	describe("after", "1")
	describe("after", "")
	r.topic(r.name("t"), 1)
	req := describeConfigs(kmsg.ConfigResourceTypeTopic, r.name("t"), "retention.ms", "max.message.bytes")
	req.IncludeSynonyms = true
	askSettled[*kmsg.DescribeConfigsResponse](r, "a topic's", 4, same(req))
	alter("for all, taken back", "", "message.max.bytes", kmsg.IncrementalAlterConfigOpDelete, nil)
	alter("for one, taken back", "1", "log.retention.ms", kmsg.IncrementalAlterConfigOpDelete, nil)
	describe("at last", "1")
}

// topicConfigNames are all configs that a topic can have.
var topicConfigNames = []string{
	"cleanup.policy", "compression.gzip.level", "compression.lz4.level", "compression.type", "compression.zstd.level", "delete.retention.ms",
	"file.delete.delay.ms", "flush.messages", "flush.ms", "follower.replication.throttled.replicas", "index.interval.bytes",
	"internal.segment.bytes", "leader.replication.throttled.replicas", "local.retention.bytes", "local.retention.ms", "max.compaction.lag.ms",
	"max.message.bytes", "message.downconversion.enable", "message.format.version", "message.timestamp.after.max.ms", "message.timestamp.before.max.ms",
	"message.timestamp.difference.max.ms", "message.timestamp.type", "min.cleanable.dirty.ratio", "min.compaction.lag.ms", "min.insync.replicas",
	"preallocate", "remote.copy.lag.bytes", "remote.copy.lag.ms", "remote.log.copy.disable", "remote.log.delete.on.disable", "remote.storage.enable", "retention.bytes", "retention.ms",
	"segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms", "unclean.leader.election.enable",
	"errors.deadletterqueue.group.enable", "diskless.enable",
}

// configValues tries values of every kind for every topic config, without creating the topics.
func configValues(r *Run, second bool) {
	values := []string{"", "-1", "-2", "0", "1", "13", "1048576", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
		"0.5", "1.5", "-0.5", "1e3", "NaN", "true", "TRUE", "false", "yes", "compact", "delete", "compact,delete", "delete,compact", "compact,compact",
		"Compact", ",", "gzip", "zstd", "producer", "uncompressed", "none", "CreateTime", "LogAppendTime", "createtime", "*", "0:1", "0:1,1:1", "0", "a:b", " 1", "0x10", "1_000", "1L"}
	for i, name := range topicConfigNames {
		if (i%2 == 1) != second {
			continue
		}
		for _, value := range values {
			req := createTopics(r.name("t"), 1, 1, name, value)
			req.ValidateOnly = true
			ask[*kmsg.CreateTopicsResponse](r, fmt.Sprintf("%s=%s", name, value), 7, same(req))
		}
	}
}
