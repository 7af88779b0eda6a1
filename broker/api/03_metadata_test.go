package api

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
)

// V04: fifty connections that ask for the same fresh topic at once get one topic, led when the first answer arrives.
func TestV04_FirstMetadataCreatesTheTopic(t *testing.T) {
	h := adminHandlers(t, map[string]string{"num.partitions": "3"})
	dial := serveOn(t, h, "PLAINTEXT")
	const clients = 50
	answers := make([]*kmsg.MetadataResponse, clients)
	var all sync.WaitGroup
	for i := range clients {
		w := dial()
		all.Go(func() {
			request := metadataRequest(12, "fresh")
			request.AllowAutoTopicCreation = true
			answers[i] = ask[*kmsg.MetadataResponse](w, request)
		})
	}
	all.Wait()
	for _, answer := range answers {
		topic := answer.Topics[0]
		if topic.ErrorCode != 0 || len(topic.Partitions) != 3 || topic.TopicID == noID || topic.TopicID != answers[0].Topics[0].TopicID {
			t.Fatalf("%+v", topic)
		}
		for _, p := range topic.Partitions {
			if p.Leader != 1 || p.ErrorCode != 0 {
				t.Fatalf("%+v", p)
			}
		}
	}
	if n := h.Controller.Image().TopicCount(); n != 1 {
		t.Errorf("%d topics", n)
	}
}

// V04 (c): once CreateTopics has answered, another connection finds the topic and its leader.
func TestV04_CreatedTopicIsThere(t *testing.T) {
	dial := serveOn(t, adminHandlers(t, nil), "PLAINTEXT")
	dial().mustCreate(topicRequest("made", 1, 1))
	topic := ask[*kmsg.MetadataResponse](dial(), metadataRequest(9, "made")).Topics[0]
	if topic.ErrorCode != 0 || topic.Partitions[0].Leader != 1 {
		t.Errorf("%+v", topic)
	}
}

// Topics are created only where both the client and the broker want it.
func TestMetadata_AutoCreation(t *testing.T) {
	for _, c := range []struct {
		version      int16
		allow        bool
		brokerAllows string
		name         string
		want         *kerr.Error
	}{
		{3, false, "true", "old-clients-cannot-forbid", nil},
		{4, true, "true", "allowed", nil},
		{4, false, "true", "forbidden-by-client", kerr.UnknownTopicOrPartition},
		{12, true, "false", "forbidden-by-broker", kerr.UnknownTopicOrPartition},
		{12, true, "true", "not a name", kerr.InvalidTopicException},
		{12, false, "true", "..", kerr.InvalidTopicException},
	} {
		h := adminHandlers(t, map[string]string{"auto.create.topics.enable": c.brokerAllows})
		request := metadataRequest(c.version, c.name)
		request.AllowAutoTopicCreation = c.allow
		got := ask[*kmsg.MetadataResponse](serveOn(t, h, "PLAINTEXT")(), request).Topics[0]
		if want := kerr.ErrorForCode(got.ErrorCode); c.want == nil && want != nil || c.want != nil && want != c.want || *got.Topic != c.name {
			t.Errorf("%s: %v", c.name, want)
		}
	}
}

// Internal topics that are asked for get the shape their coordinators want.
func TestMetadata_CreatesInternalTopicsAsConfigured(t *testing.T) {
	h := adminHandlers(t, map[string]string{"offsets.topic.num.partitions": "7", "offsets.topic.segment.bytes": "2097152"})
	request := metadataRequest(12, consumerOffsetsTopic)
	request.AllowAutoTopicCreation = true
	got := ask[*kmsg.MetadataResponse](serveOn(t, h, "PLAINTEXT")(), request).Topics[0]
	if got.ErrorCode != 0 || !got.IsInternal || len(got.Partitions) != 7 {
		t.Errorf("%+v", got)
	}
	if c := h.TopicConfig(consumerOffsetsTopic); !c.CleanupPolicyCompact || c.CleanupPolicyDelete || c.SegmentBytes != 2097152 || c.CompressionType != "producer" {
		t.Errorf("%+v", c)
	}
}

// Null asks for all topics and an empty list for none; version 0 has only the empty list, for all.
func TestMetadata_NullAndEmpty(t *testing.T) {
	dial := serveOn(t, adminHandlers(t, nil), "PLAINTEXT")
	w := dial()
	w.mustCreate(topicRequest("b", 1, 1), topicRequest("a", 1, 1))
	for _, c := range []struct {
		version int16
		topics  []kmsg.MetadataRequestTopic
		want    []string
	}{
		{0, []kmsg.MetadataRequestTopic{}, []string{"a", "b"}},
		{1, nil, []string{"a", "b"}},
		{1, []kmsg.MetadataRequestTopic{}, nil},
		{12, nil, []string{"a", "b"}},
		{12, []kmsg.MetadataRequestTopic{}, nil},
		{13, metadataRequest(13, "b", "a", "b").Topics, []string{"b", "a"}},
	} {
		request := metadataRequest(c.version)
		request.Topics = c.topics
		var got []string
		for _, topic := range ask[*kmsg.MetadataResponse](w, request).Topics {
			got = append(got, *topic.Topic)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("version %d, %v: %s", c.version, c.topics, diff)
		}
	}
}

// Every version carries what it has: controller, cluster id, ids, operations.
func TestMetadata_EveryVersion(t *testing.T) {
	w := serveOn(t, adminHandlers(t, nil), "PLAINTEXT")()
	w.mustCreate(topicRequest("a", 1, 1))
	for version := int16(0); version <= 13; version++ {
		request := metadataRequest(version, "a")
		asked := ask[*kmsg.MetadataResponse](w, request)
		topic := asked.Topics[0]
		p := topic.Partitions[0]
		if len(asked.Brokers) != 1 || asked.Brokers[0].NodeID != 1 || *topic.Topic != "a" || p.Leader != 1 || !cmp.Equal(p.Replicas, []int32{1}) || !cmp.Equal(p.ISR, []int32{1}) {
			t.Errorf("version %d: %+v", version, asked)
		}
		if version >= 1 && asked.ControllerID != 1 || version >= 2 && nullable(asked.ClusterID) != "cluster-1" || version >= 10 && topic.TopicID == noID {
			t.Errorf("version %d: %+v", version, asked)
		}
		if version < 8 {
			continue
		}
		if topic.AuthorizedOperations != math.MinInt32 || version <= 10 && asked.AuthorizedOperations != math.MinInt32 {
			t.Errorf("version %d: operations that were not asked for: %+v", version, asked)
		}
		request.IncludeTopicAuthorizedOperations, request.IncludeClusterAuthorizedOperations = true, true
		asked = ask[*kmsg.MetadataResponse](w, request)
		if asked.Topics[0].AuthorizedOperations != 3576 || version <= 10 && asked.AuthorizedOperations != 8096 {
			t.Errorf("version %d: %d %d", version, asked.Topics[0].AuthorizedOperations, asked.AuthorizedOperations)
		}
	}
}

// Topics can be named by id from version 12 on.
func TestMetadata_ByID(t *testing.T) {
	h := adminHandlers(t, nil)
	w := serveOn(t, h, "PLAINTEXT")()
	w.mustCreate(topicRequest("a", 1, 1))
	topic, _ := h.Controller.Image().Topic("a")
	request := metadataRequest(12)
	for _, id := range [][16]byte{topic.ID, {15: 99}, topic.ID} {
		named := kmsg.NewMetadataRequestTopic()
		named.TopicID = id
		request.Topics = append(request.Topics, named)
	}
	got := ask[*kmsg.MetadataResponse](w, request).Topics
	if len(got) != 2 || nullable(got[0].Topic) != "a" || got[0].ErrorCode != 0 || got[1].ErrorCode != kerr.UnknownTopicID.Code || got[1].Topic != nil || got[1].TopicID != [16]byte{15: 99} {
		t.Errorf("%+v", got)
	}
	request.Version = 11
	for _, topic := range ask[*kmsg.MetadataResponse](w, request).Topics {
		if topic.ErrorCode != kerr.InvalidRequest.Code {
			t.Errorf("version 11: %+v", topic)
		}
	}
}

// V05: whoever comes in by a listener is told that listener's address, and the same node id everywhere.
func TestV05_EachListenerItsAddress(t *testing.T) {
	h := adminHandlers(t, nil, remoteBroker(1, false, "PLAINTEXT", "INTERNAL"), remoteBroker(2, false, "PLAINTEXT", "INTERNAL"))
	for listener, want := range map[string][]string{
		"PLAINTEXT": {"1 localhost:9092", "2 host2:9092"},
		"INTERNAL":  {"1 kafka:19092", "2 host2:9093"},
	} {
		w := serveOn(t, h, listener)()
		for version := int16(0); version <= 13; version++ {
			answer := ask[*kmsg.MetadataResponse](w, metadataRequest(version))
			var got []string
			for _, b := range answer.Brokers {
				got = append(got, fmt.Sprintf("%d %s:%d", b.NodeID, b.Host, b.Port))
			}
			if diff := cmp.Diff(want, got); diff != "" || version >= 1 && answer.ControllerID != 1 {
				t.Errorf("%s, Metadata %d: %s, controller %d", listener, version, diff, answer.ControllerID)
			}
		}
		for version := int16(0); version <= 2; version++ {
			request := kmsg.NewPtrDescribeClusterRequest()
			request.Version, request.EndpointType = version, 1
			answer := ask[*kmsg.DescribeClusterResponse](w, request)
			var got []string
			for _, b := range answer.Brokers {
				got = append(got, fmt.Sprintf("%d %s:%d", b.NodeID, b.Host, b.Port))
			}
			if diff := cmp.Diff(want, got); diff != "" || answer.ControllerID != 1 || answer.ClusterID != "cluster-1" {
				t.Errorf("%s, DescribeCluster %d: %s, %+v", listener, version, diff, answer)
			}
		}
	}
}

// Fenced brokers, and leaders without the client's listener, are told apart as Kafka does.
func TestMetadata_UnreachableBrokers(t *testing.T) {
	h := adminHandlers(t, nil, remoteBroker(1, false, "PLAINTEXT"), remoteBroker(2, false, "INTERNAL"), remoteBroker(3, false, "PLAINTEXT"))
	w := serveOn(t, h, "PLAINTEXT")()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", -1, -1
	for i, replicas := range [][]int32{{1, 2}, {2, 1}, {3, 1}} {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), replicas
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
	}
	w.mustCreate(topic)
	machine := h.Controller.(*clusterOfOne).machine
	if err := machine.Replay(machine.NextOffset(), &logrecord.BrokerRegistrationChangeRecord{BrokerID: 3, BrokerEpoch: 3, Fenced: 1}); err != nil {
		t.Fatal(err)
	}
	machine.Publish(1)
	for version, want := range map[int16][]string{
		0: {"0 9 leader 1 [1] [1] []", "1 5 leader -1 [1] [1] []", "2 9 leader 3 [1] [1] []"},
		5: {"0 0 leader 1 [1 2] [1 2] [2]", "1 5 leader -1 [2 1] [2 1] [2]", "2 0 leader 3 [3 1] [3 1] [3]"},
		6: {"0 0 leader 1 [1 2] [1 2] [2]", "1 72 leader -1 [2 1] [2 1] [2]", "2 0 leader 3 [3 1] [3 1] [3]"},
	} {
		answer := ask[*kmsg.MetadataResponse](w, metadataRequest(version, "t"))
		var got []string
		for _, p := range answer.Topics[0].Partitions {
			got = append(got, fmt.Sprint(p.Partition, " ", p.ErrorCode, " leader ", p.Leader, " ", p.Replicas, " ", p.ISR, " ", p.OfflineReplicas))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("version %d: %s", version, diff)
		}
		if len(answer.Brokers) != 1 || answer.Brokers[0].NodeID != 1 {
			t.Errorf("version %d: %+v", version, answer.Brokers)
		}
	}
	request := kmsg.NewPtrDescribeClusterRequest()
	request.Version, request.EndpointType, request.IncludeFencedBrokers = 2, 1, true
	if got := ask[*kmsg.DescribeClusterResponse](w, request).Brokers; len(got) != 2 || got[0].IsFenced || !got[1].IsFenced {
		t.Errorf("%+v", got)
	}
}

// BenchmarkMetadata answers for all of 1,000 topics of 3 partitions.
func BenchmarkMetadata(b *testing.B) {
	h := adminHandlers(b, nil)
	w := serveOn(b, h, "PLAINTEXT")()
	for i := range 1000 {
		w.mustCreate(topicRequest(fmt.Sprint("topic-", i), 3, 1))
	}
	request := metadataRequest(12)
	c := &Context{Listener: "PLAINTEXT", handlers: h, Version: 12}
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		response := h.metadataResponse(c, request)
		response.SetVersion(12)
		out = response.AppendTo(out[:0])
	}
}
