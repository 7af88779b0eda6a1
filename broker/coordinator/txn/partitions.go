package txn

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/broker/coordinator/machine"
)

// An AddRequest adds partitions to a producer's transaction, which begins with them if none is open.
type AddRequest struct {
	TransactionalID string
	Producer        machine.Producer
	Partitions      []TopicPartitions
	Version         int16 // of transactions, as the client understands them
}

// AddPartitions adds partitions to the transaction. It is committed when the operation is.
func (m *Machine) AddPartitions(nowMs int64, req AddRequest) (machine.Effects, error) {
	t := m.transactions[req.TransactionalID]
	if err := t.check(req.Producer); err != nil {
		return machine.Effects{}, err
	}
	if t.status == Ongoing && t.partitions.containsAll(req.Partitions) {
		return machine.Effects{}, nil
	}
	next := t.change()
	if t.status != Ongoing {
		next.partitions, next.startMs = nil, nowMs
	}
	next.status, next.updatedMs, next.clientVersion = Ongoing, nowMs, req.Version
	next.partitions = next.partitions.With(req.Partitions...)
	return machine.Effects{Records: []machine.Record{m.record(t.id, next)}}, nil
}

// check says why a producer may not work on its transaction now.
func (t *transaction) check(p machine.Producer) error {
	switch {
	case t == nil:
		return kerr.InvalidProducerIDMapping
	case t.status.deciding():
		return kerr.ConcurrentTransactions
	case t.producerID != p.ID:
		return kerr.InvalidProducerIDMapping
	case t.epoch != p.Epoch:
		return kerr.ProducerFenced
	}
	return nil
}

// VerifyPartition says whether a partition is part of the producer's transaction: nil, TRANSACTION_ABORTABLE when it is not, or why that
// cannot be said.
func (m *Machine) VerifyPartition(transactionalID string, p machine.Producer, topic string, partition int32) error {
	t := m.transactions[transactionalID]
	switch {
	case t == nil || t.producerID != p.ID:
		return kerr.InvalidProducerIDMapping
	case t.epoch != p.Epoch:
		return kerr.ProducerFenced
	case t.status.deciding():
		return kerr.ConcurrentTransactions
	case t.status != Ongoing || !t.partitions.Contains(topic, partition):
		return kerr.TransactionAbortable
	}
	return nil
}
