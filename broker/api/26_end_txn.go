// EndTxn, versions 0 to 5.
//
//	1: like 0. 2: PRODUCER_FENCED. 3: flexible. 4: TRANSACTION_ABORTABLE (KIP-890). 5: the producer's next epoch in the answer, or its next
//	producer id when epochs are used up: version 2 of transactions (KIP-890).
//
// Differences from Apache Kafka: Kafka answers when the decision is committed, and the producer's next request may meet
// CONCURRENT_TRANSACTIONS until all markers are written. We answer when they are, or have been under way for a second.
package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/broker/coordinator/txn"
)

const (
	firstEndFenced = 2 // the version of EndTxn with PRODUCER_FENCED
	firstEndV2     = 5 // the version of clients that know version 2 of transactions
)

func (h *Handlers) endTxn(c *Context, request *kmsg.EndTxnRequest) Reply {
	response := request.ResponseKind().(*kmsg.EndTxnResponse)
	response.ProducerID, response.ProducerEpoch = machine.NoProducer.ID, machine.NoProducer.Epoch
	if request.TransactionalID == "" {
		response.ErrorCode = kerr.InvalidRequest.Code
		return Respond(response)
	}
	end := txn.EndRequest{
		TransactionalID: request.TransactionalID,
		Producer:        machine.Producer{ID: request.ProducerID, Epoch: request.ProducerEpoch},
		Commit:          request.Commit,
		V2:              c.Version >= firstEndV2,
	}
	reply, complete := c.Pending()
	h.parkTransaction(end.TransactionalID, func(m *txn.Machine, nowMs int64, t machine.Token, newProducerID int64) (machine.Effects, error) {
		with := end
		with.NewProducerID = newProducerID
		return m.EndTxn(nowMs, with, t)
	}, func(p machine.Producer, err error) {
		response.ErrorCode = c.code(unfenced(err, c.Version >= firstEndFenced))
		response.ProducerID, response.ProducerEpoch = p.ID, p.Epoch
		complete(response)
	})
	return reply
}
