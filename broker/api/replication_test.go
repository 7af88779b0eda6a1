package api_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
)

// createOnThree makes a topic with one partition on brokers 1, 2 and 3, led by this one. The others are the test's.
func (w *partitionsWorld) createOnThree(name string, configs ...string) {
	w.t.Helper()
	for _, id := range []int32{2, 3} {
		w.replay(&logrecord.RegisterBrokerRecord{
			BrokerID: id, BrokerEpoch: w.machine.NextOffset(), EndPoints: []logrecord.Endpoint{{Name: "PLAINTEXT", Host: "other", Port: 9090 + uint16(id)}},
		})
	}
	w.create(name, 0, configs...)
	p := logrecord.NewPartitionRecord()
	p.PartitionID, p.TopicID, p.Replicas, p.ISR, p.Leader, p.LeaderEpoch, p.PartitionEpoch = 0, w.topicIDs[name], []int32{1, 2, 3}, []int32{1, 2, 3}, 1, 0, 0
	p.Directories = []uuid.UUID{uuid.UnassignedDirectory, uuid.UnassignedDirectory, uuid.UnassignedDirectory}
	w.apply(p)
}

// follow fetches as another replica that has everything up to an offset.
func (c *client) follow(broker int32, offset, logStart int64) kmsg.FetchResponseTopicPartition {
	c.w.t.Helper()
	q := fetchRequest(12, "t", uuid.UUID{}, offset)
	q.ReplicaID = broker
	q.Topics[0].Partitions[0].CurrentLeaderEpoch, q.Topics[0].Partitions[0].LogStartOffset = 0, logStart
	return ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions[0]
}

// shrink takes replicas out of the ISR.
func (w *partitionsWorld) shrink(isr ...int32) {
	w.t.Helper()
	change := logrecord.NewPartitionChangeRecord()
	change.PartitionID, change.TopicID, change.ISR = 0, w.topicIDs["t"], isr
	w.apply(change)
}

func TestProduce_WaitsForTheReplicasInSync(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.createOnThree("t", "min.insync.replicas", "2")
		producer, follower, consumer := w.dial(), w.dial(), w.dial()
		q := produceRequest(10, -1, "t", newBatch(w.t, "a", "b"))
		produce := func() { producer.send(q); synctest.Wait() }
		answer := func(wantCode int16, wantOffset int64) kmsg.ProduceResponseTopicPartition {
			w.t.Helper()
			p := await[*kmsg.ProduceResponse](producer, q).Topics[0].Partitions[0]
			if p.ErrorCode != wantCode || p.BaseOffset != wantOffset {
				w.t.Errorf("code %d, offset %d; want %d, %d", p.ErrorCode, p.BaseOffset, wantCode, wantOffset)
			}
			return p
		}
		produce()
		// A consumer sees nothing that is not committed; a follower sees it.
		if p := ask[*kmsg.FetchResponse](consumer, fetchRequest(12, "t", uuid.UUID{}, 0)).Topics[0].Partitions[0]; p.HighWatermark != 0 || len(p.RecordBatches) != 0 {
			w.t.Errorf("a consumer sees %+v", p)
		}
		if p := follower.follow(2, 0, 0); p.ErrorCode != 0 || len(p.RecordBatches) == 0 || p.HighWatermark != 0 {
			w.t.Errorf("a follower sees %+v", p)
		}
		follower.follow(2, 2, 0)
		if w.waiting.Len() != 1 {
			w.t.Fatal("the produce request does not wait for broker 3")
		}
		waiting := fetchRequest(12, "t", uuid.UUID{}, 0)
		waiting.MaxWaitMillis = 60_000
		consumer.send(waiting)
		synctest.Wait()
		start := time.Now()
		follower.follow(3, 2, 0) // commits: wakes the producer and the consumer
		answer(0, 0)
		if p := await[*kmsg.FetchResponse](consumer, waiting).Topics[0].Partitions[0]; p.HighWatermark != 2 || len(p.RecordBatches) == 0 {
			w.t.Errorf("the consumer got %+v", p)
		}
		if waited := time.Since(start); waited != 0 {
			w.t.Errorf("the wake-up took %v", waited)
		}
		// Not in time.
		start = time.Now()
		produce()
		answer(kerr.RequestTimedOut.Code, 2)
		if waited := time.Since(start); waited != time.Second {
			w.t.Errorf("timed out after %v, want 1 s", waited)
		}
		// Too few replicas, before the append and after it.
		produce()
		follower.follow(2, 6, 0)
		w.shrink(1)
		answer(kerr.RequestTimedOut.Code, 4) // nothing is committed below the minimum
		produce()
		answer(kerr.NotEnoughReplicas.Code, -1)
		// The leader changes while a request waits: the client is told where to go.
		w.shrink(1, 2, 3)
		produce()
		change := logrecord.NewPartitionChangeRecord()
		change.PartitionID, change.TopicID, change.Leader = 0, w.topicIDs["t"], 2
		w.apply(change)
		response := await[*kmsg.ProduceResponse](producer, q)
		p := response.Topics[0].Partitions[0]
		if p.ErrorCode != kerr.NotLeaderForPartition.Code || p.CurrentLeader.LeaderID != 2 || p.CurrentLeader.LeaderEpoch != 1 ||
			len(response.Brokers) != 1 || response.Brokers[0].Host != "other" || response.Brokers[0].Port != 9092 {
			w.t.Errorf("%+v, brokers %+v", p, response.Brokers)
		}
		// And so is whoever comes now, in the versions that can say it.
		for _, version := range []int16{9, 10} {
			q.SetVersion(version)
			response := ask[*kmsg.ProduceResponse](producer, q)
			if p := response.Topics[0].Partitions[0]; p.ErrorCode != kerr.NotLeaderForPartition.Code || (len(response.Brokers) == 1) != (version >= 10) {
				w.t.Errorf("version %d: %+v, brokers %+v", version, p, response.Brokers)
			}
		}
		for _, version := range []int16{15, 16} {
			response := ask[*kmsg.FetchResponse](consumer, fetchRequest(version, "t", w.topicIDs["t"], 0))
			if p := response.Topics[0].Partitions[0]; p.ErrorCode != kerr.NotLeaderForPartition.Code || (p.CurrentLeader.LeaderID == 2 && len(response.Brokers) == 1) != (version >= 16) {
				w.t.Errorf("fetch version %d: %+v, brokers %+v", version, p, response.Brokers)
			}
		}
	})
}

func TestDeleteRecords_WaitsForTheFollowers(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.createOnThree("t")
		admin, follower := w.dial(), w.dial()
		producing := produceRequest(9, 1, "t", newBatch(w.t, "a", "b", "c"))
		ask[*kmsg.ProduceResponse](admin, producing)
		follower.follow(2, 3, 0)
		follower.follow(3, 3, 0)
		remove := kmsg.NewPtrDeleteRecordsRequest()
		remove.SetVersion(2)
		remove.TimeoutMillis = 5000
		remove.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: "t", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 0, Offset: 2}}}}
		admin.send(remove)
		synctest.Wait()
		if w.waiting.Len() != 1 {
			w.t.Fatal("the request does not wait")
		}
		follower.follow(2, 3, 2)
		follower.follow(3, 3, 2)
		if p := await[*kmsg.DeleteRecordsResponse](admin, remove).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.LowWatermark != 2 {
			w.t.Errorf("%+v", p)
		}
		remove.Topics[0].Partitions[0].Offset = 3
		start := time.Now()
		if p := ask[*kmsg.DeleteRecordsResponse](admin, remove).Topics[0].Partitions[0]; p.ErrorCode != kerr.RequestTimedOut.Code || time.Since(start) != 5*time.Second {
			w.t.Errorf("%+v after %v", p, time.Since(start))
		}
	})
}
