package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/metadata"
	"sluice/storage/producer"
)

// DescribeProducers, version 0 (KIP-664): the idempotent and transactional producers that a partition's leader remembers, with their epochs,
// last sequences and open transactions.
//
// Where we differ from Apache Kafka: producers are listed by id; there, in no order.

// ProducerLister is what DescribeProducers needs of a replica.
type ProducerLister interface {
	ActiveProducers(nowMs int64) ([]producer.State, error)
}

func (h *Handlers) describeProducers(c *Context, request *kmsg.DescribeProducersRequest) Reply {
	image := h.Controller.Image()
	response := kmsg.NewPtrDescribeProducersResponse()
	var size answerSize
	response.Topics = make([]kmsg.DescribeProducersResponseTopic, len(request.Topics))
	for i := range request.Topics {
		asked, answered := &request.Topics[i], &response.Topics[i]
		answered.Topic = asked.Topic
		answered.Partitions = make([]kmsg.DescribeProducersResponseTopicPartition, len(asked.Partitions))
		code, message := h.topicError(image, asked.Topic)
		for j, index := range asked.Partitions {
			a := &answered.Partitions[j]
			a.Default()
			a.Partition = index
			if code != 0 {
				a.ErrorCode, a.ErrorMessage = code, message
				continue
			}
			producers, err := h.activeProducers(asked.Topic, index, c.NowMs)
			a.ErrorCode = c.code(err)
			if !size.add(elementBytes * (1 + len(producers))) {
				return answerTooLarge()
			}
			a.ActiveProducers = describeEach(producers)
		}
	}
	return Respond(response)
}

// topicError is what is wrong with a topic as a whole, 0 if nothing is.
func (h *Handlers) topicError(image *metadata.Image, topic string) (code int16, message *string) {
	if err := metadata.ValidateTopicName(topic); err != nil {
		return err.Code, &err.Message
	}
	if _, ok := image.Topic(topic); !ok {
		return kerr.UnknownTopicOrPartition.Code, &kerr.UnknownTopicOrPartition.Description
	}
	return 0, nil
}

func (h *Handlers) activeProducers(topic string, index int32, nowMs int64) ([]producer.State, error) {
	replica, err := h.Replicas.Get(topic, index)
	if err != nil {
		return nil, err
	}
	return replica.ActiveProducers(nowMs)
}

func describeEach(producers []producer.State) []kmsg.DescribeProducersResponseTopicPartitionActiveProducer {
	described := make([]kmsg.DescribeProducersResponseTopicPartitionActiveProducer, len(producers))
	for i, p := range producers {
		d := &described[i]
		d.Default()
		d.ProducerID, d.ProducerEpoch, d.LastSequence = int64(p.ProducerID), int32(p.ProducerEpoch), p.LastSequence
		d.LastTimestamp, d.CoordinatorEpoch, d.CurrentTxnStartOffset = p.LastTimestampMs, p.CoordinatorEpoch, p.CurrentTxnFirstOffset
	}
	return described
}
