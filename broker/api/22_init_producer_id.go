package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/broker/coordinator/txn"
)

// InitProducerId, versions 0 to 5. Version 6 (KIP-939) is not stable in Kafka 4.4, which does not name it either.
//
//	2  flexible
//	3  producer id and epoch, to keep them (KIP-360)
//	4  PRODUCER_FENCED
//	5  TRANSACTION_ABORTABLE (KIP-890)
//
// An idempotent producer gets an id that nobody has had before, with epoch 0. Ids come in blocks from the controller, see producer_ids.go. A
// transactional one gets what its coordinator has for its transactional id, with an epoch that fences all before.
//
// Where we differ from Apache Kafka: when a transaction is open, Kafka answers CONCURRENT_TRANSACTIONS as soon as its abort is decided, we when
// the abort is complete, so that the client's next attempt succeeds.

// firstInitFenced is the version of InitProducerId with PRODUCER_FENCED.
const firstInitFenced = 4

func (h *Handlers) initProducerID(c *Context, request *kmsg.InitProducerIDRequest) Reply {
	const noProducerID, noProducerEpoch = -1, -1
	if (request.ProducerID == noProducerID) != (request.ProducerEpoch == noProducerEpoch) {
		return Respond(initProducerIDError(kerr.InvalidRequest.Code))
	}
	if request.TransactionalID != nil {
		if *request.TransactionalID == "" {
			return Respond(initProducerIDError(kerr.InvalidRequest.Code))
		}
		return h.initTransactional(c, request)
	}
	if id, ok := h.producerIDs.take(); ok {
		return Respond(initProducerIDOf(machine.Producer{ID: id}))
	}
	reply, complete := c.Pending()
	h.producerIDs.await(func(id int64, err error) {
		if err != nil {
			// Clients try again after this one; it is what Kafka answers when it has no block at hand.
			complete(initProducerIDError(kerr.CoordinatorLoadInProgress.Code))
			return
		}
		complete(initProducerIDOf(machine.Producer{ID: id}))
	})
	return reply
}

func (h *Handlers) initTransactional(c *Context, request *kmsg.InitProducerIDRequest) Reply {
	init := txn.InitRequest{TransactionalID: *request.TransactionalID, TimeoutMs: request.TransactionTimeoutMillis}
	if request.ProducerID >= 0 {
		init.Current = &machine.Producer{ID: request.ProducerID, Epoch: request.ProducerEpoch}
	}
	reply, complete := c.Pending()
	h.parkTransaction(init.TransactionalID, func(m *txn.Machine, nowMs int64, t machine.Token, newProducerID int64) (machine.Effects, error) {
		with := init
		with.NewProducerID = newProducerID
		return m.InitProducerID(nowMs, with, t)
	}, func(p machine.Producer, err error) {
		if err != nil {
			complete(initProducerIDError(c.code(unfenced(err, c.Version >= firstInitFenced))))
			return
		}
		complete(initProducerIDOf(p))
	})
	return reply
}

func initProducerIDOf(p machine.Producer) *kmsg.InitProducerIDResponse {
	response := kmsg.NewPtrInitProducerIDResponse()
	response.ProducerID, response.ProducerEpoch = p.ID, p.Epoch
	return response
}

func initProducerIDError(code int16) *kmsg.InitProducerIDResponse {
	response := kmsg.NewPtrInitProducerIDResponse()
	response.ErrorCode, response.ProducerID, response.ProducerEpoch = code, -1, -1
	return response
}
