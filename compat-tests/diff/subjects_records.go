package diff

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The bounds of the APIs that write and read records.

const badShard = "Apache Kafka divides session ids among its caches, computes an index beyond them, and fails with an unknown error"

var recordSubjects = []subject{
	{
		key:     kmsg.Produce,
		prepare: func(r *Run) { r.topic(r.name("t"), 2) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			return produce(r.name("t"), idOf(s, r.name("t")), -1, 0, batch(plain(), "a", "b"))
		},
		after: lookAtEnds,
		skip: map[string]string{
			"Topics[].Partitions[].Records = null": neverAnswers,
			"Acks = 0":                             "no answer is the right one: story produce/acks 0",
		},
	},
	{
		key: kmsg.Fetch,
		prepare: func(r *Run) {
			r.topic(r.name("t"), 2)
			r.fill(r.name("t"), 0, "a", "b", "c")
			r.fill(r.name("t"), 0, "d")
		},
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := fetch(r.name("t"), idOf(s, r.name("t")), 0, 0)
			forgotten := kmsg.NewFetchRequestForgottenTopic()
			forgotten.Topic, forgotten.TopicID, forgotten.Partitions = r.name("t"), idOf(s, r.name("t")), []int32{1}
			req.ForgottenTopics = append(req.ForgottenTopics, forgotten)
			return req
		},
		skip: map[string]string{
			"SessionID = min": badShard,
			"SessionID = max": badShard,
		},
		since: map[string]int16{"ReplicaState.ID": 15, "ReplicaState.Epoch": 15, "Topics[].Partitions[].ReplicaDirectoryID": 17, "Topics[].Partitions[].HighWatermark": 18},
	},
	{
		key: kmsg.ListOffsets,
		prepare: func(r *Run) {
			r.topic(r.name("t"), 2)
			r.fill(r.name("t"), 0, "a", "b", "c")
		},
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			return listOffsets(r.name("t"), baseTime+1, 0)
		},
		after: func(r *Run, step string, version int16, n int) {
			if n != 1 {
				return
			}
			for _, special := range []int64{-1, -2, -3, -4, -5, -6, -7, -100, baseTime, baseTime + 3, 0} {
				ask[*kmsg.ListOffsetsResponse](r, fmt.Sprintf("time %d", special), version, same(listOffsets(r.name("t"), special, 0)))
				ask[*kmsg.ListOffsetsResponse](r, fmt.Sprintf("time %d of an empty partition", special), version, same(listOffsets(r.name("t"), special, 1)))
			}
		},
	},
	{
		key: kmsg.OffsetForLeaderEpoch,
		prepare: func(r *Run) {
			r.topic(r.name("t"), 2)
			r.fill(r.name("t"), 0, "a", "b", "c")
		},
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			req.ReplicaID = -1
			t := kmsg.NewOffsetForLeaderEpochRequestTopic()
			t.Topic = r.name("t")
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.CurrentLeaderEpoch, p.LeaderEpoch = 0, 0
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			return req
		},
	},
	{
		key: kmsg.DeleteRecords,
		prepare: func(r *Run) {
			r.topic(r.name("t"), 2)
			r.fill(r.name("t"), 0, "a", "b", "c")
		},
		each: func(r *Run, version int16, n int) { r.fill(r.name("t"), 0, "more") },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrDeleteRecordsRequest()
			req.TimeoutMillis = 5000
			t := kmsg.NewDeleteRecordsRequestTopic()
			t.Topic = r.name("t")
			p := kmsg.NewDeleteRecordsRequestTopicPartition()
			p.Offset = int64(n)
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			return req
		},
		after: lookAtEnds,
	},
	{
		key: kmsg.InitProducerID,
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrInitProducerIDRequest()
			req.TransactionTimeoutMillis = 60_000
			req.ProducerID, req.ProducerEpoch = -1, -1
			return req
		},
	},
	{
		key: kmsg.DescribeProducers,
		prepare: func(r *Run) {
			r.topic(r.name("t"), 2)
			r.producerID("producer")
			ask[*kmsg.ProduceResponse](r, "fill", 9, func(s *side) kmsg.Request {
				return produce(r.name("t"), [16]byte{}, -1, 0, batch(from(get[int64](s, "producer"), 0, 0), "a", "b"))
			})
		},
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrDescribeProducersRequest()
			t := kmsg.NewDescribeProducersRequestTopic()
			t.Topic, t.Partitions = r.name("t"), []int32{0, 1}
			req.Topics = append(req.Topics, t)
			return req
		},
	},
}

// producerID asks for a producer id and keeps it under a name.
func (r *Run) producerID(name string) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch = -1, -1
	ask(r, "producer id", 4, same(req), func(s *side, resp *kmsg.InitProducerIDResponse) { s.keep(name, resp.ProducerID) })
}

// lookAtEnds compares where partition 0 of the topic begins and ends.
func lookAtEnds(r *Run, step string, version int16, n int) {
	ask[*kmsg.ListOffsetsResponse](r, step+", then its start", 7, same(listOffsets(r.name("t"), -2, 0)))
	ask[*kmsg.ListOffsetsResponse](r, step+", then its end", 7, same(listOffsets(r.name("t"), -1, 0)))
}
