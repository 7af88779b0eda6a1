package metadata

import (
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
)

// Whatever records a log holds, replaying them and running operations on what they lead to ends in answers or errors.
func FuzzReplay(f *testing.F) {
	m := newCluster(f, 1, 2)
	topic, _ := m.Image().Topic("topic-000000")
	add := func(records ...logrecord.ClusterRecord) {
		var seed []byte
		for _, r := range records {
			value := logrecord.AppendCluster(nil, r, r.MaxVersion())
			seed = binary.AppendUvarint(seed, uint64(len(value)))
			seed = append(seed, value...)
		}
		f.Add(seed)
	}
	add(BootstrapRecords(allFeatures)...)
	add(&logrecord.TopicRecord{Name: "a.b", TopicID: testID('t', 1)}, &logrecord.PartitionRecord{TopicID: testID('t', 1), Replicas: []int32{1, 2}, ISR: []int32{1}, Leader: 1})
	add(&logrecord.PartitionChangeRecord{TopicID: topic.ID, PartitionID: 1, ISR: []int32{}, Leader: -1, LeaderRecoveryState: -1, EligibleLeaderReplicas: []int32{1}})
	add(&logrecord.TopicRecord{Name: "empty", TopicID: testID('t', 2)}, &logrecord.ClearELRRecord{})
	add(new(logrecord.BeginTransactionRecord), &logrecord.RemoveTopicRecord{TopicID: topic.ID}, new(logrecord.AbortTransactionRecord))
	add(&logrecord.RegisterBrokerRecord{BrokerID: 2, BrokerEpoch: 9, LogDirs: nil}, &logrecord.BrokerRegistrationChangeRecord{BrokerID: 2, BrokerEpoch: 9, Fenced: -1})
	f.Fuzz(func(t *testing.T, log []byte) {
		m := newCluster(t, 1, 2)
		for len(log) > 0 {
			size, n := binary.Uvarint(log)
			if n <= 0 || size > uint64(len(log)-n) {
				break
			}
			value := log[n : n+int(size)]
			log = log[n+int(size):]
			record, err := logrecord.ParseCluster(value)
			if err != nil {
				continue
			}
			if err := m.Replay(m.NextOffset(), record); err != nil {
				continue
			}
		}
		m.Publish(1)
		elect := kmsg.NewElectLeadersRequest()
		elect.Version = 2
		grow := kmsg.NewCreatePartitionsRequest()
		for topic := range m.Image().Topics() {
			one := kmsg.NewCreatePartitionsRequestTopic()
			one.Topic, one.Count = topic.Name, int32(len(topic.Partitions)+1)
			grow.Topics = append(grow.Topics, one)
		}
		for _, op := range []Op{newTopic("another", 2), ElectLeaders(&elect), CreatePartitions(&grow)} {
			r, err := m.Plan(op, 1)
			if err != nil {
				continue
			}
			m.Accept(r)
		}
		for id, b := range m.next.brokers.all() {
			for _, shutdown := range []bool{false, true} {
				beat := kmsg.NewBrokerHeartbeatRequest()
				beat.BrokerID, beat.BrokerEpoch, beat.WantFence, beat.WantShutdown = int32(id), int64(b.Epoch), !shutdown, shutdown
				if r, err := m.Plan(BrokerHeartbeat(&beat), 1); err == nil {
					m.Accept(r)
				}
			}
		}
		m.Publish(1)
	})
}
