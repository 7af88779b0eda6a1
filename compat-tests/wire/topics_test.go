package wire

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

// TestV04_TopicMadeByItsFirstUse: Metadata creates it, once, and a moment later it has a leader; what CreateTopics has answered serves at once.
func TestV04_TopicMadeByItsFirstUse(t *testing.T) {
	address := broker(t)
	topic := fresh("v04")
	var wait sync.WaitGroup
	ids := make([][16]byte, 50)
	for i := range ids {
		c := sluicetest.Dial(t, address)
		wait.Go(func() {
			deadline := time.Now().Add(10 * time.Second)
			for {
				got := metadata(c, 12, true, topic).Topics[0]
				if got.ErrorCode == none && len(got.Partitions) > 0 && got.Partitions[0].Leader >= 0 {
					ids[i] = got.TopicID
					break
				}
				if got.ErrorCode != none && got.ErrorCode != unknownTopicOrPartition && got.ErrorCode != leaderNotAvailable {
					t.Errorf("error %d", got.ErrorCode)
					return
				}
				if time.Now().After(deadline) {
					t.Errorf("no leader: %+v", got)
					return
				}
			}
			if got := produce(c, topic, 0, batch(t, plain(), values(1000, strconv.Itoa(i))...)); got.ErrorCode != none {
				t.Errorf("produce: error %d", got.ErrorCode)
			}
		})
	}
	wait.Wait()
	for _, id := range ids {
		if id != ids[0] || id == ([16]byte{}) {
			t.Fatalf("topics of several ids: %x, %x", ids[0], id)
		}
	}
	c := sluicetest.Dial(t, address)
	if end := listOffset(c, topic, 0, latest).Offset; end != 50 {
		t.Errorf("%d of 50 records", end)
	}
	if got := metadata(c, 12, false, fresh("v04-not")).Topics[0]; got.ErrorCode != unknownTopicOrPartition {
		t.Errorf("without auto-creation: error %d", got.ErrorCode)
	}
	if got := metadata(c, 12, true, "a b").Topics[0]; got.ErrorCode != invalidTopic {
		t.Errorf("an invalid name: error %d, want %d", got.ErrorCode, invalidTopic)
	}
}

// TestV05_AdvertisedAddressOfTheListenerUsed: whoever came through a listener is told of that listener's address, everywhere.
func TestV05_AdvertisedAddressOfTheListenerUsed(t *testing.T) {
	internal, external := sluicetest.FreeAddress(t), sluicetest.FreeAddress(t)
	p := own(t, "--set", "listeners=INTERNAL://"+internal+",EXTERNAL://"+external,
		"--set", "advertised.listeners=INTERNAL://kafka:19092,EXTERNAL://localhost:29002",
		"--set", "listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT", "--set", "inter.broker.listener.name=INTERNAL")
	clusterID := ""
	check := func() {
		for address, want := range map[string]string{internal: "kafka:19092", external: "localhost:29002"} {
			c := sluicetest.Dial(t, address)
			for version := int16(1); version <= 13; version++ {
				resp := sluicetest.Ask[*kmsg.MetadataResponse](c, kmsg.NewPtrMetadataRequest(), version)
				if len(resp.Brokers) != 1 {
					t.Fatalf("%d brokers", len(resp.Brokers))
				}
				b := resp.Brokers[0]
				if got := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))); got != want || b.NodeID != 1 || resp.ControllerID != 1 {
					t.Errorf("Metadata v%d through %s: broker %d at %s, controller %d; want 1 at %s", version, address, b.NodeID, got, resp.ControllerID, want)
				}
				if version >= 2 {
					if resp.ClusterID == nil || *resp.ClusterID == "" || clusterID != "" && *resp.ClusterID != clusterID {
						t.Errorf("cluster id %v, before %s", resp.ClusterID, clusterID)
					} else {
						clusterID = *resp.ClusterID
					}
				}
			}
			coordinator := kmsg.NewPtrFindCoordinatorRequest()
			coordinator.CoordinatorKeys = []string{"v05"}
			for range 50 {
				found := sluicetest.Ask[*kmsg.FindCoordinatorResponse](c, coordinator, 4).Coordinators[0]
				if found.ErrorCode == none {
					if got := net.JoinHostPort(found.Host, strconv.Itoa(int(found.Port))); got != want || found.NodeID != 1 {
						t.Errorf("coordinator %d at %s", found.NodeID, got)
					}
					break
				}
			}
			cluster := sluicetest.Ask[*kmsg.DescribeClusterResponse](c, kmsg.NewPtrDescribeClusterRequest(), 1)
			if got := net.JoinHostPort(cluster.Brokers[0].Host, strconv.Itoa(int(cluster.Brokers[0].Port))); got != want || cluster.ClusterID != clusterID {
				t.Errorf("DescribeCluster: %s, cluster %s", got, cluster.ClusterID)
			}
		}
	}
	check()
	p.Restart()
	check()
}

func createRequest(version int16, topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 10_000, topics
	req.SetVersion(version)
	return req
}

func newTopic(name string, partitions int32, replicas int16) kmsg.CreateTopicsRequestTopic {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, replicas
	return topic
}

// TestV25_CreateTopicsAnswers: each bad topic gets its own code, the good ones beside it are created.
func TestV25_CreateTopicsAnswers(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	exists := fresh("v25")
	createTopic(t, c, exists, 1)
	badConfig := newTopic(fresh("v25-config"), 1, 1)
	policy := "compactt"
	badConfig.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "cleanup.policy", Value: &policy}}
	dotted := fresh("v25") + ".b"
	createTopic(t, c, dotted, 1)
	assigned := func(partitions ...[]int32) kmsg.CreateTopicsRequestTopic {
		topic := newTopic(fresh("v25-assigned"), -1, -1)
		for _, p := range partitions {
			topic.ReplicaAssignment = append(topic.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: p[0], Replicas: p[1:]})
		}
		return topic
	}
	for _, test := range []struct {
		name  string
		topic kmsg.CreateTopicsRequestTopic
		want  int16
	}{
		{"three replicas on one node", newTopic(fresh("v25"), 1, 3), invalidReplicationFactor},
		{"no partitions", newTopic(fresh("v25"), 0, 1), invalidPartitions},
		{"defaults", newTopic(fresh("v25"), -1, -1), none},
		{"exists", newTopic(exists, 1, 1), topicAlreadyExists},
		{"bad config", badConfig, invalidConfig},
		{"empty name", newTopic("", 1, 1), invalidTopic},
		{"dot", newTopic(".", 1, 1), invalidTopic},
		{"dots", newTopic("..", 1, 1), invalidTopic},
		{"250 characters", newTopic(strings.Repeat("x", 250), 1, 1), invalidTopic},
		{"a space", newTopic("a b", 1, 1), invalidTopic},
		{"dot and underscore clash", newTopic(strings.Replace(dotted, ".", "_", 1), 1, 1), invalidTopic},
		{"assignment with a gap", assigned([]int32{0, 1}, []int32{2, 1}), invalidReplicaAssignment},
		{"assignment to an unknown broker", assigned([]int32{0, 99}), invalidReplicaAssignment},
		{"assignment", assigned([]int32{0, 1}, []int32{1, 1}), none},
	} {
		t.Run(test.name, func(t *testing.T) {
			good := newTopic(fresh("v25-good"), 3, 1)
			resp := sluicetest.Ask[*kmsg.CreateTopicsResponse](c, createRequest(7, test.topic, good), 7)
			got := map[string]kmsg.CreateTopicsResponseTopic{}
			for _, r := range resp.Topics {
				got[r.Topic] = r
			}
			if r := got[test.topic.Topic]; r.ErrorCode != test.want {
				message := "no message"
				if r.ErrorMessage != nil {
					message = *r.ErrorMessage
				}
				t.Errorf("error %d (%s), want %d", r.ErrorCode, message, test.want)
			}
			if r := got[good.Topic]; r.ErrorCode != none || r.NumPartitions != 3 || r.ReplicationFactor != 1 || len(r.Configs) == 0 || r.TopicID == ([16]byte{}) {
				t.Errorf("the topic beside it: error %d, %d partitions, %d replicas, %d configs", r.ErrorCode, r.NumPartitions, r.ReplicationFactor, len(r.Configs))
			}
		})
	}

	for name, want := range map[string]int16{fresh("v25-only"): none, exists: topicAlreadyExists} {
		req := createRequest(7, newTopic(name, 1, 1))
		req.ValidateOnly = true
		if resp := sluicetest.Ask[*kmsg.CreateTopicsResponse](c, req, 7); resp.Topics[0].ErrorCode != want {
			t.Errorf("validate only: error %d, want %d", resp.Topics[0].ErrorCode, want)
		}
		if want == none {
			if got := metadata(c, 12, false, name).Topics[0]; got.ErrorCode != unknownTopicOrPartition {
				t.Errorf("validated and created: error %d", got.ErrorCode)
			}
		}
	}

	twice := fresh("v25-twice")
	resp := sluicetest.Ask[*kmsg.CreateTopicsResponse](c, createRequest(7, newTopic(twice, 1, 1), newTopic(twice, 1, 1)), 7)
	for _, r := range resp.Topics {
		if r.ErrorCode != invalidRequest {
			t.Errorf("a name twice: error %d, want %d", r.ErrorCode, invalidRequest)
		}
	}
}

func describe(c *sluicetest.Raw, kind kmsg.ConfigResourceType, name string, version int16, details bool, keys ...string) kmsg.DescribeConfigsResponseResource {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms, req.IncludeDocumentation = details, details
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kind, name, keys
	req.Resources = append(req.Resources, r)
	return sluicetest.Ask[*kmsg.DescribeConfigsResponse](c, req, version).Resources[0]
}

// TestV26_ConfigsDescribedAndAltered: every key, typed, with its source and synonyms; a bad alter is refused by code and changes nothing.
func TestV26_ConfigsDescribedAndAltered(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	topic := fresh("v26")
	createTopic(t, c, topic, 1, "retention.ms", "3600000")
	for version := int16(1); version <= 4; version++ {
		all := describe(c, kmsg.ConfigResourceTypeTopic, topic, version, true)
		byName := map[string]kmsg.DescribeConfigsResponseResourceConfig{}
		for _, config := range all.Configs {
			byName[config.Name] = config
		}
		if all.ErrorCode != none || len(byName) < 30 {
			t.Fatalf("v%d: error %d, %d keys", version, all.ErrorCode, len(byName))
		}
		for key, want := range map[string]struct {
			value  string
			source kmsg.ConfigSource
			kind   kmsg.ConfigType
		}{
			"retention.ms":              {"3600000", kmsg.ConfigSourceDynamicTopicConfig, kmsg.ConfigTypeLong},
			"cleanup.policy":            {"delete", kmsg.ConfigSourceDefaultConfig, kmsg.ConfigTypeList},
			"max.message.bytes":         {"1048588", kmsg.ConfigSourceDefaultConfig, kmsg.ConfigTypeInt},
			"preallocate":               {"false", kmsg.ConfigSourceDefaultConfig, kmsg.ConfigTypeBoolean},
			"compression.type":          {"producer", kmsg.ConfigSourceDefaultConfig, kmsg.ConfigTypeString},
			"segment.bytes":             {"1073741824", kmsg.ConfigSourceDefaultConfig, kmsg.ConfigTypeInt},
			"flush.messages":            {"9223372036854775807", kmsg.ConfigSourceDefaultConfig, kmsg.ConfigTypeLong},
			"min.cleanable.dirty.ratio": {"0.5", kmsg.ConfigSourceDefaultConfig, kmsg.ConfigTypeDouble},
		} {
			got, ok := byName[key]
			if !ok || got.Value == nil || *got.Value != want.value || got.Source != want.source || got.ReadOnly || got.IsSensitive {
				t.Errorf("v%d %s: %+v", version, key, got)
			}
			if version >= 3 && got.ConfigType != want.kind {
				t.Errorf("v%d %s: type %v, want %v", version, key, got.ConfigType, want.kind)
			}
			if version >= 3 && (got.Documentation == nil || *got.Documentation == "") {
				t.Errorf("v%d %s: no documentation", version, key)
			}
		}
		synonyms := byName["retention.ms"].ConfigSynonyms
		if len(synonyms) == 0 || synonyms[0].Name != "retention.ms" || synonyms[0].Source != kmsg.ConfigSourceDynamicTopicConfig {
			t.Errorf("v%d: synonyms of retention.ms %+v", version, synonyms)
		}
	}
	if some := describe(c, kmsg.ConfigResourceTypeTopic, topic, 4, false, "retention.ms", "cleanup.policy"); len(some.Configs) != 2 || some.Configs[0].Documentation != nil || len(some.Configs[0].ConfigSynonyms) != 0 {
		t.Errorf("two keys: %+v", some)
	}
	brokerConfigs := describe(c, kmsg.ConfigResourceTypeBroker, "1", 4, true)
	have := map[string]kmsg.DescribeConfigsResponseResourceConfig{}
	for _, config := range brokerConfigs.Configs {
		have[config.Name] = config
		if config.IsSensitive && config.Value != nil {
			t.Errorf("%s is sensitive and shown", config.Name)
		}
	}
	for _, key := range []string{"auto.create.topics.enable", "log.retention.ms", "message.max.bytes", "num.partitions", "log.dirs", "node.id"} {
		if _, ok := have[key]; !ok {
			t.Errorf("the broker does not describe %s", key)
		}
	}
	if got := describe(c, kmsg.ConfigResourceTypeTopic, fresh("v26-not"), 4, false); got.ErrorCode != unknownTopicOrPartition {
		t.Errorf("an unknown topic: error %d", got.ErrorCode)
	}

	for key, value := range map[string]string{"cleanup.policy": "compactt", "compression.type": "SNAPPY", "no.such.key": "1", "retention.ms": "soon"} {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		r.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: key, Op: kmsg.IncrementalAlterConfigOpSet, Value: &value}}
		req.Resources = append(req.Resources, r)
		got := sluicetest.Ask[*kmsg.IncrementalAlterConfigsResponse](c, req, 1).Resources[0]
		if got.ErrorCode != invalidConfig || got.ErrorMessage == nil || *got.ErrorMessage == "" {
			t.Errorf("%s=%s: error %d, want %d with a message", key, value, got.ErrorCode, invalidConfig)
		}
	}
	after := describe(c, kmsg.ConfigResourceTypeTopic, topic, 4, false, "cleanup.policy", "retention.ms")
	if got := fmt.Sprint(*after.Configs[0].Value, *after.Configs[1].Value); got != "delete 3600000" && got != "delete3600000" && got != "3600000delete" && got != "3600000 delete" {
		t.Errorf("after refused alters: %s", got)
	}
}
