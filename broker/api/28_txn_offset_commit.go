// TxnOffsetCommit, versions 0 to 6.
//
//	1: like 0. 2: leader epochs. 3: flexible; member id, instance id and generation (KIP-447). 4: TRANSACTION_ABORTABLE (KIP-890). 5: adds
//	the group to the transaction, as AddOffsetsToTxn does (version 2 of transactions, KIP-890). 6: topic ids instead of names, and
//	GROUP_ID_NOT_FOUND (KIP-1319).
//
// The offsets are stored as pending, and count with the commit of the transaction. Its coordinator is asked first whether the group is part
// of the transaction, unless that is known from earlier offsets in it.
//
// Differences from Apache Kafka: results are in the order of the request; Kafka puts topics that it refuses in front.
package api

import (
	"cmp"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// Versions of TxnOffsetCommit.
const (
	firstOffsetsLoading   = 2 // whose clients know COORDINATOR_LOAD_IN_PROGRESS
	firstOffsetsAbortable = 4 // with TRANSACTION_ABORTABLE
	firstOffsetsV2        = 5 // of version 2 of transactions
	firstOffsetsTopicID   = 6 // that names topics by id
)

func (h *Handlers) txnOffsetCommit(c *Context, request *kmsg.TxnOffsetCommitRequest) Reply {
	response := request.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
	response.Topics = make([]kmsg.TxnOffsetCommitResponseTopic, 0, len(request.Topics))
	known := *request
	known.Topics = nil
	var places [][]*kmsg.TxnOffsetCommitResponseTopicPartition // of known.Topics, in response
	image := h.Controller.Image()
	for _, t := range request.Topics {
		if len(t.Partitions) == 0 {
			continue
		}
		results := make([]kmsg.TxnOffsetCommitResponseTopicPartition, len(t.Partitions))
		response.Topics = append(response.Topics, kmsg.TxnOffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID, Partitions: results})
		byID := c.Version >= firstOffsetsTopicID
		if byID {
			t.Topic = h.topicName(t.TopicID)
		}
		topic, exists := image.Topic(t.Topic)
		asked := t.Partitions
		t.Partitions = nil
		var place []*kmsg.TxnOffsetCommitResponseTopicPartition
		for j, p := range asked {
			results[j].Partition = p.Partition
			switch {
			case !exists && byID:
				results[j].ErrorCode = kerr.UnknownTopicID.Code
			case !exists || p.Partition < 0 || int(p.Partition) >= len(topic.Partitions):
				results[j].ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				t.Partitions = append(t.Partitions, p)
				place = append(place, &results[j])
			}
		}
		if len(t.Partitions) > 0 {
			t.TopicID = topic.ID
			known.Topics = append(known.Topics, t)
			places = append(places, place)
		}
	}
	if len(known.Topics) == 0 {
		return Respond(response)
	}
	reply, complete := c.Pending()
	h.commitInTransaction(c.Version, &known, func(committed *kmsg.TxnOffsetCommitResponse, err error) {
		if c.Version < firstOffsetsLoading && errors.Is(err, kerr.CoordinatorLoadInProgress) {
			err = kerr.CoordinatorNotAvailable
		}
		for i, place := range places {
			for j, result := range place {
				if err != nil {
					result.ErrorCode = c.code(err)
				} else {
					result.ErrorCode = committed.Topics[i].Partitions[j].ErrorCode
				}
			}
		}
		complete(response)
	})
	return reply
}

// commitInTransaction sees to it that the group is part of the transaction, and stores the offsets.
func (h *Handlers) commitInTransaction(version int16, request *kmsg.TxnOffsetCommitRequest, done func(*kmsg.TxnOffsetCommitResponse, error)) {
	if request.Group == "" {
		done(nil, kerr.InvalidGroupID)
		return
	}
	index := h.groupPartition(request.Group)
	replica, err := h.Replicas.Get(group.Topic, index)
	if err != nil {
		done(nil, group.OperationError(KafkaError(err)))
		return
	}
	producer := machine.Producer{ID: request.ProducerID, Epoch: request.ProducerEpoch}
	open, asOf, err := replica.OpenTransaction(record.ProducerID(producer.ID), record.ProducerEpoch(producer.Epoch))
	if err != nil {
		done(nil, group.OperationError(KafkaError(err)))
		return
	}
	v := h.verification(version >= firstOffsetsV2, record.NoOffset)
	store := func() {
		var committed *kmsg.TxnOffsetCommitResponse
		h.submitGroup(request.Group, func(m *group.Machine, nowMs int64) (effects machine.Effects, err error) {
			committed, effects, err = m.CommitTransactionalOffsets(nowMs, request, v)
			return effects, err
		}, func(err error) { done(committed, err) })
	}
	if open || !v.Required {
		store()
		return
	}
	v.AsOf = asOf
	ask := &joining{topic: group.Topic, partition: index}
	h.join(request.TransactionalID, producer, []*joining{ask}, v.V2, func(err error) {
		if err = cmp.Or(err, ask.err); err != nil {
			done(nil, group.OperationError(joinError(err, version >= firstOffsetsAbortable)))
			return
		}
		store()
	})
}
