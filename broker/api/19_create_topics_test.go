package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// V25: what is wrong with a new topic gets Kafka's code, and the other topics of the request are created all the same.
func TestV25_CreateTopicsAnswers(t *testing.T) {
	h := adminHandlers(t, map[string]string{"num.partitions": "4"})
	w := serveOn(t, h, "PLAINTEXT")()
	w.mustCreate(topicRequest("existing", 1, 1), topicRequest("a.b", 1, 1))
	assigned := func(name string, partitions map[int32][]int32) kmsg.CreateTopicsRequestTopic {
		topic := topicRequest(name, -1, -1)
		for id, replicas := range partitions {
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Partition, a.Replicas = id, replicas
			topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
		}
		return topic
	}
	request := createTopics(
		topicRequest("rf-3", 1, 3),
		topicRequest("no-partitions", 0, 1),
		topicRequest("defaults", -1, -1),
		topicRequest("existing", 1, 1),
		topicRequest("bad-policy", 1, 1, "cleanup.policy", "compactt"),
		topicRequest("bad-key", 1, 1, "no.such.key", "1"),
		topicRequest("", 1, 1), topicRequest(".", 1, 1), topicRequest("..", 1, 1), topicRequest(strings.Repeat("x", 250), 1, 1), topicRequest("a b", 1, 1),
		topicRequest("a_b", 1, 1),
		topicRequest("twice", 1, 1), topicRequest("twice", 1, 1),
		assigned("gap", map[int32][]int32{0: {1}, 2: {1}}),
		assigned("unknown-broker", map[int32][]int32{0: {9}}),
		assigned("assigned", map[int32][]int32{0: {1}, 1: {1}}),
		topicRequest("fine", 2, 1, "cleanup.policy", "compact"),
	)
	want := []string{
		"rf-3 38 0", "no-partitions 37 0", "defaults 0 4", "existing 36 0", "bad-policy 40 0", "bad-key 40 0",
		" 17 0", ". 17 0", ".. 17 0", strings.Repeat("x", 250) + " 17 0", "a b 17 0", "a_b 17 0", "twice 42 0", "gap 39 0", "unknown-broker 39 0",
		"assigned 0 2", "fine 0 2",
	}
	var got []string
	for _, topic := range ask[*kmsg.CreateTopicsResponse](w, request).Topics {
		partitions := topic.NumPartitions
		if topic.ErrorCode != 0 {
			partitions = 0
			if nullable(topic.ErrorMessage) == `\N` {
				t.Errorf("%s: no message", topic.Topic)
			}
		} else if topic.TopicID == noID || topic.ReplicationFactor != 1 || len(topic.Configs) != 37 {
			t.Errorf("%s: %+v", topic.Topic, topic)
		}
		got = append(got, fmt.Sprint(topic.Topic, " ", topic.ErrorCode, " ", partitions))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := h.Controller.Image().TopicCount(); n != 5 {
		t.Errorf("%d topics, want existing, a.b, defaults, assigned and fine", n)
	}
}

// V25: validate_only tells whether a topic could be created, and creates nothing; in every version.
func TestV25_ValidateOnly(t *testing.T) {
	h := adminHandlers(t, nil)
	w := serveOn(t, h, "PLAINTEXT")()
	w.mustCreate(topicRequest("existing", 1, 1))
	for version := int16(2); version <= 7; version++ {
		request := createTopics(topicRequest("new", 1, 1), topicRequest("existing", 1, 1))
		request.Version, request.ValidateOnly = version, true
		got := ask[*kmsg.CreateTopicsResponse](w, request).Topics
		if got[0].ErrorCode != 0 || got[1].ErrorCode != 36 {
			t.Errorf("version %d: %+v", version, got)
		}
	}
	if n := h.Controller.Image().TopicCount(); n != 1 {
		t.Errorf("%d topics after validating only", n)
	}
}

// V25: three nodes take an even number of replicas.
func TestV25_EvenReplicationFactor(t *testing.T) {
	w := serveOn(t, adminHandlers(t, nil, remoteBroker(1, false), remoteBroker(2, false), remoteBroker(3, false)), "PLAINTEXT")()
	w.mustCreate(topicRequest("two", 5, 2))
}

// Topics are deleted by name or id, unless deletion is switched off.
func TestDeleteTopics(t *testing.T) {
	h := adminHandlers(t, nil)
	w := serveOn(t, h, "PLAINTEXT")()
	w.mustCreate(topicRequest("a", 1, 1), topicRequest("b", 1, 1))
	b, _ := h.Controller.Image().Topic("b")
	old := kmsg.NewPtrDeleteTopicsRequest()
	old.Version, old.TopicNames, old.TimeoutMillis = 1, []string{"a", "none"}, 10_000
	got := ask[*kmsg.DeleteTopicsResponse](w, old).Topics
	if nullable(got[0].Topic) != "a" || got[0].ErrorCode != 0 || got[1].ErrorCode != 3 {
		t.Errorf("%+v", got)
	}
	byID := kmsg.NewPtrDeleteTopicsRequest()
	byID.Version, byID.TimeoutMillis = 6, 10_000
	byID.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: b.ID}, {TopicID: [16]byte{1}}, {}}
	got = ask[*kmsg.DeleteTopicsResponse](w, byID).Topics
	if nullable(got[0].Topic) != "b" || got[0].ErrorCode != 0 || got[1].ErrorCode != 100 || got[2].ErrorCode != 42 {
		t.Errorf("%+v", got)
	}
	if n := h.Controller.Image().TopicCount(); n != 0 {
		t.Errorf("%d topics left", n)
	}

	w = serveOn(t, adminHandlers(t, map[string]string{"delete.topic.enable": "false"}), "PLAINTEXT")()
	for version, code := range map[int16]int16{1: 42, 3: 73, 6: 73} {
		request := kmsg.NewPtrDeleteTopicsRequest()
		request.Version, request.TopicNames = version, []string{"a"}
		name := "a"
		request.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
		if got := ask[*kmsg.DeleteTopicsResponse](w, request).Topics; len(got) != 1 || got[0].ErrorCode != code {
			t.Errorf("version %d: %+v", version, got)
		}
	}
}

// Partitions are added, never taken away.
func TestCreatePartitions(t *testing.T) {
	h := adminHandlers(t, nil)
	w := serveOn(t, h, "PLAINTEXT")()
	w.mustCreate(topicRequest("a", 2, 1), topicRequest("b", 2, 1))
	for version := int16(0); version <= 3; version++ {
		request := kmsg.NewPtrCreatePartitionsRequest()
		request.Version, request.TimeoutMillis = version, 10_000
		for name, count := range map[string]int32{"a": 3 + int32(version), "b": 1, "none": 3} {
			topic := kmsg.NewCreatePartitionsRequestTopic()
			topic.Topic, topic.Count = name, count
			request.Topics = append(request.Topics, topic)
		}
		for _, topic := range ask[*kmsg.CreatePartitionsResponse](w, request).Topics {
			if want := map[string]int16{"a": 0, "b": 37, "none": 3}[topic.Topic]; topic.ErrorCode != want {
				t.Errorf("version %d, %s: %d %s, want %d", version, topic.Topic, topic.ErrorCode, nullable(topic.ErrorMessage), want)
			}
		}
	}
	if topic, _ := h.Controller.Image().Topic("a"); len(topic.Partitions) != 6 {
		t.Errorf("%d partitions", len(topic.Partitions))
	}
}

// A controller that does not answer in time is a time-out for each topic, and the connection goes on.
func TestCreateTopics_TimesOut(t *testing.T) {
	w := serveOn(t, adminHandlers(t, nil), "PLAINTEXT")()
	request := createTopics(topicRequest("late", 1, 1), topicRequest("later", 1, 1))
	request.TimeoutMillis = -1
	got := ask[*kmsg.CreateTopicsResponse](w, request).Topics
	if len(got) != 2 || got[0].ErrorCode != 7 || got[1].ErrorCode != 7 {
		t.Errorf("%+v", got)
	}
	w.mustCreate(topicRequest("late", 1, 1))
}
