package metadata

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
)

// newCluster returns a machine with one broker and a number of topics.
func newCluster(t testing.TB, topics, partitions int) *Machine {
	t.Helper()
	h := newHarness(nil)
	m := NewMachine(h.settings())
	accept(t, m, ActivationRecords(BootstrapRecords(allFeatures)))
	register := kmsg.NewBrokerRegistrationRequest()
	register.Version, register.BrokerID, register.ClusterID, register.IncarnationID = 4, 1, "test-cluster", testID('i', 1)
	register.LogDirs = append(register.LogDirs, testID('d', 1))
	for _, f := range allFeatures {
		feature := kmsg.NewBrokerRegistrationRequestFeature()
		feature.Name, feature.MinSupportedVersion, feature.MaxSupportedVersion = f.Name, f.Min, f.Max
		register.Features = append(register.Features, feature)
	}
	accept(t, m, RegisterBroker(&register))
	beat := kmsg.NewBrokerHeartbeatRequest()
	b, _ := m.Image().Broker(1)
	beat.BrokerID, beat.BrokerEpoch, beat.CurrentMetadataOffset = 1, int64(b.Epoch), m.offset
	accept(t, m, BrokerHeartbeat(&beat))
	for i := range topics {
		accept(t, m, newTopic(fmt.Sprintf("topic-%06d", i), partitions))
	}
	return m
}

func newTopic(name string, partitions int) Op {
	req := kmsg.NewCreateTopicsRequest()
	req.Version = 7
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, int32(partitions), 1
	req.Topics = append(req.Topics, topic)
	return CreateTopics(&req)
}

func accept(t testing.TB, m *Machine, op Op) *Delta {
	t.Helper()
	r, err := m.Plan(op, 1)
	if err != nil {
		t.Fatal(err)
	}
	m.Accept(r)
	return m.Publish(1)
}

// An image that was published does not change with those after it.
func TestImage_IsImmutable(t *testing.T) {
	m := newCluster(t, 50, 3)
	before := m.Image()
	shown := printImage(before)
	accept(t, m, newTopic("another", 2))
	topic, _ := before.Topic("topic-000007")
	if err := m.Replay(m.NextOffset(), &logrecord.PartitionChangeRecord{PartitionID: 1, TopicID: topic.ID, ISR: []int32{}, Leader: -1, LeaderRecoveryState: -1}); err != nil {
		t.Fatal(err)
	}
	if err := m.Replay(m.NextOffset(), &logrecord.RemoveTopicRecord{TopicID: topic.ID}); err != nil {
		t.Fatal(err)
	}
	value := "1"
	if err := m.Replay(m.NextOffset(), &logrecord.ConfigRecord{ResourceType: 4, Name: "a", Value: &value}); err != nil {
		t.Fatal(err)
	}
	m.Publish(1)
	if after := printImage(before); after != shown {
		t.Fatalf("%s\nbecame\n%s", shown, after)
	}
}

// A transaction shows in the image at its end, or not at all.
func TestImage_Transactions(t *testing.T) {
	m := newCluster(t, 3, 1)
	topic, _ := m.Image().Topic("topic-000001")
	replay := func(records ...logrecord.ClusterRecord) *Delta {
		t.Helper()
		for _, r := range records {
			if err := m.Replay(m.NextOffset(), r); err != nil {
				t.Fatal(err)
			}
		}
		return m.Publish(1)
	}
	remove := &logrecord.RemoveTopicRecord{TopicID: topic.ID}
	if d := replay(new(logrecord.BeginTransactionRecord), remove); d.Next.TopicCount() != 3 || len(d.TopicsDeleted) != 0 {
		t.Fatalf("%d topics within a transaction", d.Next.TopicCount())
	}
	if d := replay(new(logrecord.AbortTransactionRecord)); d.Next.TopicCount() != 3 || len(d.TopicsDeleted)+len(d.TopicsChanged) != 0 {
		t.Fatalf("%d topics after an abort", d.Next.TopicCount())
	}
	replay(new(logrecord.BeginTransactionRecord), remove)
	if d := replay(new(logrecord.EndTransactionRecord)); d.Next.TopicCount() != 2 || len(d.TopicsDeleted) != 1 {
		t.Fatalf("%d topics after the end", d.Next.TopicCount())
	}
	if m.OpenTransaction() != -1 {
		t.Fatal("a transaction is open")
	}
	replay(new(logrecord.BeginTransactionRecord))
	if open := m.OpenTransaction(); open != m.NextOffset()-1 {
		t.Fatalf("a transaction is open since %d", open)
	}
	// The next active controller ends it.
	accept(t, m, ActivationRecords(nil))
	if m.OpenTransaction() != -1 {
		t.Fatal("a transaction is open")
	}
}

// Records that do not fit the state are errors, never a panic or a guess.
func TestReplay_Refuses(t *testing.T) {
	for name, r := range map[string]logrecord.ClusterRecord{
		"topic twice":           &logrecord.TopicRecord{Name: "topic-000001", TopicID: testID('x', 1)},
		"unknown topic":         &logrecord.RemoveTopicRecord{TopicID: testID('x', 1)},
		"partition of nothing":  &logrecord.PartitionRecord{TopicID: testID('x', 1)},
		"change of nothing":     &logrecord.PartitionChangeRecord{TopicID: testID('x', 1)},
		"unknown broker":        &logrecord.UnregisterBrokerRecord{BrokerID: 7},
		"old broker epoch":      &logrecord.BrokerRegistrationChangeRecord{BrokerID: 1, BrokerEpoch: -5, Fenced: 1},
		"unknown controller":    &logrecord.UnregisterControllerRecord{ControllerID: 7},
		"unknown feature":       &logrecord.FeatureLevelRecord{Name: "a.feature", FeatureLevel: 1},
		"feature too high":      &logrecord.FeatureLevelRecord{Name: FeatureMetadataVersion, FeatureLevel: 99},
		"end of no transaction": new(logrecord.EndTransactionRecord),
		"producer ids again":    &logrecord.ProducerIDsRecord{NextProducerID: -1},
		"unknown ACL":           &logrecord.RemoveAccessControlEntryRecord{ID: testID('x', 1)},
		"unknown ELR topic":     &logrecord.ClearELRRecord{TopicName: "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newCluster(t, 3, 1)
			shown := printImage(m.Image())
			if err := m.Replay(m.NextOffset(), r); err == nil {
				t.Fatal("accepted")
			}
			m.Publish(1)
			if after := printImage(m.Image()); after != shown {
				t.Fatalf("%s\nbecame\n%s", shown, after)
			}
		})
	}
	m := newCluster(t, 3, 1)
	topic, _ := m.Image().Topic("topic-000001")
	for _, r := range []logrecord.ClusterRecord{
		&logrecord.PartitionRecord{TopicID: topic.ID, PartitionID: 5},
		&logrecord.PartitionRecord{TopicID: topic.ID, PartitionID: -1},
		&logrecord.PartitionRecord{TopicID: topic.ID, PartitionID: 1, Replicas: []int32{1, 2}, Directories: topic.Partitions[0].Directories},
		&logrecord.PartitionChangeRecord{TopicID: topic.ID, PartitionID: 1},
		&logrecord.PartitionChangeRecord{TopicID: topic.ID, PartitionID: -1},
		&logrecord.PartitionChangeRecord{TopicID: topic.ID, Replicas: []int32{1, 2}, LeaderRecoveryState: -1, Leader: -2},
	} {
		if err := m.Replay(m.NextOffset(), r); err == nil {
			t.Fatalf("%+v was accepted", r)
		}
	}
	if err := m.Replay(m.offset, new(logrecord.NoOpRecord)); err == nil {
		t.Fatal("an offset was replayed twice")
	}
}

// A partition costs well under a kilobyte.
func TestImage_MemoryPerPartition(t *testing.T) {
	for _, c := range []struct{ topics, partitions int }{{2000, 1}, {10, 1000}} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := newCluster(t, c.topics, c.partitions)
		runtime.GC()
		runtime.ReadMemStats(&after)
		each := int64(after.HeapAlloc-before.HeapAlloc) / int64(c.topics*c.partitions)
		t.Logf("%d topics of %d partitions: %d bytes a partition", c.topics, c.partitions, each)
		if each > 1024 {
			t.Errorf("%d topics of %d partitions: %d bytes a partition", c.topics, c.partitions, each)
		}
		runtime.KeepAlive(m)
	}
}

func BenchmarkCreateTopic(b *testing.B) {
	for _, topics := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("among=%d", topics), func(b *testing.B) {
			m := newCluster(b, topics, 1)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				accept(b, m, newTopic(fmt.Sprintf("new-%d", i), 1))
			}
		})
	}
}

func BenchmarkImageTopic(b *testing.B) {
	m := newCluster(b, 10_000, 1)
	i := m.Image()
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		if _, found := i.Topic([]string{"topic-000001", "topic-005000", "topic-009999"}[n%3]); !found {
			b.Fatal()
		}
	}
}

// Finding all partitions of the only broker among 20,000.
func BenchmarkFence(b *testing.B) {
	m := newCluster(b, 20, 1000)
	broker, _ := m.Image().Broker(1)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if n := len(m.fenceBroker(broker)); n != 20_001 {
			b.Fatal(n)
		}
	}
}

func BenchmarkImageTopicByID(b *testing.B) {
	m := newCluster(b, 10_000, 1)
	i := m.Image()
	topic, _ := i.Topic("topic-005000")
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, found := i.TopicByID(topic.ID); !found {
			b.Fatal()
		}
	}
}
