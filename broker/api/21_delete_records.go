package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/delayed"
	"sluice/protocol/record"
)

// DeleteRecords, versions 0 to 2.
//
//	2  flexible
//
// Moves the log start of partitions up to an offset, -1 meaning the high watermark, and answers when every live replica has done so, with
// the low watermark: the smallest log start among them. Nothing above the high watermark can be deleted, nothing of internal topics, and
// nothing of topics whose cleanup.policy has no delete (POLICY_VIOLATION).
//
// Where we differ from Apache Kafka: where logs start is on the disk before the answer; there it is written once a minute, and after a crash
// deleted records come back.
//
// KIPs: 107.

// RecordDeleter is what DeleteRecords needs of a replica.
type RecordDeleter interface {
	// DeleteRecords returns the low watermark and the offset that it must reach.
	DeleteRecords(offset int64) (lowWatermark, wanted int64, err error)
	LowWatermark() (int64, error)
}

func (h *Handlers) deleteRecords(c *Context, request *kmsg.DeleteRecordsRequest) Reply {
	d := &deletion{context: c, response: kmsg.NewPtrDeleteRecordsResponse()}
	topics := lastNamed(request)
	d.response.Topics = make([]kmsg.DeleteRecordsResponseTopic, len(topics))
	for i := range topics {
		asked, answered := &topics[i], &d.response.Topics[i]
		answered.Topic = asked.Topic
		answered.Partitions = make([]kmsg.DeleteRecordsResponseTopicPartition, len(asked.Partitions))
		for j := range asked.Partitions {
			q, a := &asked.Partitions[j], &answered.Partitions[j]
			a.Default()
			a.Partition, a.LowWatermark = q.Partition, record.NoOffset
			if err := h.deleteRecordsOf(d, asked.Topic, q, a); err != nil {
				a.ErrorCode = c.code(err)
			}
		}
	}
	if d.moved {
		h.Replicas.SaveLogStartOffsets() // once for all partitions of the request
	}
	if len(d.waiting) == 0 {
		return Respond(d.response)
	}
	reply, complete := c.Pending()
	d.complete = complete
	keys := make([]delayed.Key, len(d.waiting))
	for i := range d.waiting {
		keys[i] = delayed.Key(d.waiting[i].replica.Serial())
	}
	h.Waiting.Park(c, d, keys, milliseconds(request.TimeoutMillis))
	return reply
}

// lastNamed is what a request asks for: of a partition that it names more than once, what it says last, and no topic without partitions.
func lastNamed(request *kmsg.DeleteRecordsRequest) []kmsg.DeleteRecordsRequestTopic {
	type place struct{ topic, partition int }
	var topics []kmsg.DeleteRecordsRequestTopic
	topicAt, at := map[string]int{}, map[topicPartition]place{}
	for i := range request.Topics {
		t := &request.Topics[i]
		for _, p := range t.Partitions {
			key := topicPartition{t.Topic, p.Partition}
			if known, ok := at[key]; ok {
				topics[known.topic].Partitions[known.partition] = p
				continue
			}
			n, ok := topicAt[t.Topic]
			if !ok {
				n = len(topics)
				topicAt[t.Topic] = n
				topics = append(topics, kmsg.DeleteRecordsRequestTopic{Topic: t.Topic})
			}
			at[key] = place{n, len(topics[n].Partitions)}
			topics[n].Partitions = append(topics[n].Partitions, p)
		}
	}
	return topics
}

func (h *Handlers) deleteRecordsOf(d *deletion, topic string, q *kmsg.DeleteRecordsRequestTopicPartition, a *kmsg.DeleteRecordsResponseTopicPartition) error {
	replica, err := h.Replicas.Get(topic, q.Partition)
	if err != nil {
		return err
	}
	if isInternalTopic(topic) {
		return kerr.InvalidTopicException
	}
	low, wanted, err := replica.DeleteRecords(q.Offset)
	if err != nil {
		return err
	}
	a.LowWatermark = low
	d.moved = true
	if low < wanted {
		d.waiting = append(d.waiting, deleting{replica: replica, wanted: wanted, answer: a})
	}
	return nil
}

// deletion is a DeleteRecords request that waits for the low watermark.
type deletion struct {
	context  *Context
	response *kmsg.DeleteRecordsResponse
	moved    bool // some log starts elsewhere now
	waiting  []deleting
	complete func(kmsg.Response)
}

type deleting struct {
	replica Replica
	wanted  int64
	answer  *kmsg.DeleteRecordsResponseTopicPartition
	settled bool
}

// Ready implements delayed.Operation.
func (d *deletion) Ready(delayed.Key) bool {
	open := 0
	for i := range d.waiting {
		w := &d.waiting[i]
		if w.settled {
			continue
		}
		low, err := w.replica.LowWatermark()
		switch {
		case err != nil:
			w.answer.LowWatermark, w.answer.ErrorCode, w.settled = record.NoOffset, d.context.code(err), true
		case low >= w.wanted:
			w.answer.LowWatermark, w.settled = low, true
		default:
			open++
		}
	}
	return open == 0
}

// Finish implements delayed.Operation.
func (d *deletion) Finish(delayed.Outcome) {
	for i := range d.waiting {
		if w := &d.waiting[i]; !w.settled {
			w.answer.ErrorCode = kerr.RequestTimedOut.Code
		}
	}
	d.complete(d.response)
}
