package group

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

// benchGroup is a stable group of n members, and what they would send.
func benchGroup(b *testing.B, n int) (m *Machine, heartbeats []*kmsg.HeartbeatRequest) {
	b.Helper()
	cfg := &Config{MaxSize: n, OffsetMetadataMaxSize: 4096, OffsetsRetentionCheckMs: 600_000, OffsetsRetentionMs: 1 << 40, MaxBatchBytes: 1 << 30}
	m = New(func() *Config { return cfg })
	v := kmsg.NewGroupMetadataValue()
	protocol := "range"
	v.Protocol, v.ProtocolType, v.Generation = &protocol, "consumer", 1
	for i := range n {
		id := fmt.Sprint("member-", i)
		v.Members = append(v.Members, kmsg.GroupMetadataValueMember{MemberID: id, SessionTimeoutMillis: 45_000, Subscription: subscription(topicA)})
		heartbeats = append(heartbeats, &kmsg.HeartbeatRequest{Group: "g", MemberID: id, Generation: 1})
	}
	m.Replay(0, machine.NoProducer, &groupMetadataRecord{group: "g", value: &v})
	m.Loaded(0)
	return m, heartbeats
}

func BenchmarkHeartbeat(b *testing.B) {
	m, heartbeats := benchGroup(b, 1000)
	b.ReportAllocs()
	now := int64(0)
	for i := 0; b.Loop(); i++ {
		if i%1000 == 0 {
			now += 3000
		}
		if _, err := m.Heartbeat(now, heartbeats[i%1000]); err != nil {
			b.Fatal(err)
		}
		m.Deadline()
	}
}

func BenchmarkCommit(b *testing.B) {
	m, heartbeats := benchGroup(b, 1000)
	b.ReportAllocs()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation, req.RetentionTimeMillis = 8, "g", 1, -1
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topicA, TopicID: idA, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: 1, Offset: 2}}}}
	var buf []byte
	for i := 0; b.Loop(); i++ {
		req.MemberID = heartbeats[i%1000].MemberID
		_, e, err := m.CommitOffsets(1, req)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range e.Records {
			buf = r.AppendKey(buf[:0])
			buf, _ = r.AppendValue(buf)
			m.Replay(int64(i), machine.NoProducer, r)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	r := &offsetRecord{group: "group", topic: "topic", offset: &committedOffset{offset: 1, expiresAtMs: neverExpires, topicID: idA}}
	value, _ := r.AppendValue(nil)
	var keys [][]byte
	for i := range int32(1000) {
		r.partition = i
		keys = append(keys, r.AppendKey(nil))
	}
	m := New(func() *Config { return &Config{} })
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		parsed, err := m.Parse(keys[i%1000], value)
		if err != nil {
			b.Fatal(err)
		}
		m.Replay(int64(i), machine.NoProducer, parsed)
	}
}
