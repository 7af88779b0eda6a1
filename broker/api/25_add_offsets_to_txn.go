// AddOffsetsToTxn, versions 0 to 4.
//
//	1: like 0. 2: PRODUCER_FENCED. 3: flexible. 4: TRANSACTION_ABORTABLE (KIP-890).
//
// Clients of version 1 of transactions say with it that offsets of a group will be part of the transaction: it adds the group's partition of
// __consumer_offsets.
//
// Differences from Apache Kafka: none.
package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
	"sluice/broker/coordinator/txn"
)

func (h *Handlers) addOffsetsToTxn(c *Context, request *kmsg.AddOffsetsToTxnRequest) Reply {
	response := request.ResponseKind().(*kmsg.AddOffsetsToTxnResponse)
	if request.TransactionalID == "" {
		response.ErrorCode = kerr.InvalidRequest.Code
		return Respond(response)
	}
	add := txn.AddRequest{
		TransactionalID: request.TransactionalID,
		Producer:        machine.Producer{ID: request.ProducerID, Epoch: request.ProducerEpoch},
		Partitions:      []txn.TopicPartitions{{Topic: group.Topic, Partitions: []int32{h.groupPartition(request.Group)}}},
	}
	reply, complete := c.Pending()
	h.submitTransaction(add.TransactionalID, func(m *txn.Machine, nowMs int64) (machine.Effects, error) {
		return m.AddPartitions(nowMs, add)
	}, func(err error) {
		response.ErrorCode = c.code(unfenced(err, c.Version >= firstAddFenced))
		complete(response)
	})
	return reply
}
