package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// InitProducerId, versions 0 to 5. Version 6 (KIP-939) is not stable in Kafka 4.4, which does not name it either.
//
//	2  flexible
//	3  producer id and epoch, to keep them (KIP-360)
//	4  PRODUCER_FENCED
//	5  TRANSACTION_ABORTABLE (KIP-890)
//
// An idempotent producer gets an id that nobody has had before, with epoch 0. Ids come in blocks from the controller, see producer_ids.go.
//
// Where we differ from Apache Kafka: transactions are not served yet. A transactional id is answered with UNSUPPORTED_VERSION, the code that
// Kafka uses for what is switched off in a broker, and not with one that clients retry for ever.

func (h *Handlers) initProducerID(c *Context, request *kmsg.InitProducerIDRequest) Reply {
	const noProducerID, noProducerEpoch = -1, -1
	if (request.ProducerID == noProducerID) != (request.ProducerEpoch == noProducerEpoch) {
		return Respond(initProducerIDError(kerr.InvalidRequest))
	}
	if request.TransactionalID != nil {
		if *request.TransactionalID == "" {
			return Respond(initProducerIDError(kerr.InvalidRequest))
		}
		return Respond(initProducerIDError(kerr.UnsupportedVersion))
	}
	if id, ok := h.producerIDs.take(); ok {
		return Respond(initProducerIDOf(id))
	}
	reply, complete := c.Pending()
	h.producerIDs.await(func(id int64, err error) {
		if err != nil {
			// Clients try again after this one; it is what Kafka answers when it has no block at hand.
			complete(initProducerIDError(kerr.CoordinatorLoadInProgress))
			return
		}
		complete(initProducerIDOf(id))
	})
	return reply
}

func initProducerIDOf(id int64) *kmsg.InitProducerIDResponse {
	response := kmsg.NewPtrInitProducerIDResponse()
	response.ProducerID, response.ProducerEpoch = id, 0
	return response
}

func initProducerIDError(err *kerr.Error) *kmsg.InitProducerIDResponse {
	response := kmsg.NewPtrInitProducerIDResponse()
	response.ErrorCode, response.ProducerID, response.ProducerEpoch = err.Code, -1, -1
	return response
}
