package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/broker/coordinator/machine"
	"sluice/broker/coordinator/txn"
)

// Transactions runs operations on the machines of the transaction coordinator, one for each partition of __transaction_state that this node
// leads.
type Transactions interface {
	// Submit runs op and calls done once what it wrote is committed, in the order of submission; see coordinator.Runtime.
	Submit(partition int32, op func(m *txn.Machine, nowMs int64) (machine.Effects, error), done func(error))
	// Park is Submit for a request that a later operation may answer, under the token given to op.
	Park(partition int32, op func(m *txn.Machine, nowMs int64, t machine.Token) (machine.Effects, error), done func(response any, err error))
	// Partitions are the partitions of which this node is the coordinator, ascending.
	Partitions() []int32
}

// transactionPartition is the partition of __transaction_state that holds a transactional id. Before the topic exists it is where the id will
// be.
func (h *Handlers) transactionPartition(transactionalID string) int32 {
	partitions := h.Config().TransactionStateLogNumPartitions
	if t, ok := h.Controller.Image().Topic(txn.Topic); ok {
		partitions = int32(len(t.Partitions))
	}
	return machine.PartitionFor(transactionalID, partitions)
}

// submitTransaction runs op on the machine that holds a transactional id. done gets the error as a client is told it.
func (h *Handlers) submitTransaction(transactionalID string, op func(m *txn.Machine, nowMs int64) (machine.Effects, error), done func(error)) {
	h.Transactions.Submit(h.transactionPartition(transactionalID), op, func(err error) { done(txn.OperationError(err)) })
}

// parkTransaction is submitTransaction for what ends with an Outcome. op is given a new producer id if it turns out to need one, else -1.
func (h *Handlers) parkTransaction(transactionalID string, op func(m *txn.Machine, nowMs int64, t machine.Token, newProducerID int64) (machine.Effects, error), done func(machine.Producer, error)) {
	const none = -1
	var run func(newProducerID int64)
	finish := func(response any, err error) {
		switch outcome, _ := response.(txn.Outcome); {
		case errors.Is(err, txn.ErrNeedProducerID):
			h.producerIDs.await(func(id int64, err error) {
				if err != nil {
					done(machine.NoProducer, kerr.CoordinatorLoadInProgress) // as Kafka, when it has no id at hand
					return
				}
				run(id)
			})
		case err != nil:
			done(machine.NoProducer, txn.OperationError(err))
		case outcome.Err != nil:
			done(machine.NoProducer, outcome.Err)
		default:
			done(outcome.Producer, nil)
		}
	}
	run = func(newProducerID int64) {
		h.Transactions.Park(h.transactionPartition(transactionalID), func(m *txn.Machine, nowMs int64, t machine.Token) (machine.Effects, error) {
			return op(m, nowMs, t, newProducerID)
		}, finish)
	}
	run(none)
}

// ProducerID calls f with a producer id that nobody has had, or with what kept the controller from giving one.
func (h *Handlers) ProducerID(f func(id int64, err error)) { h.producerIDs.await(f) }

// unfenced replaces PRODUCER_FENCED for clients that do not know it yet.
func unfenced(err error, knowsFenced bool) error {
	if !knowsFenced && errors.Is(err, kerr.ProducerFenced) {
		return kerr.InvalidProducerEpoch
	}
	return err
}
