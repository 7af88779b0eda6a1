package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/broker/coordinator/machine"
	"sluice/broker/coordinator/txn"
	"sluice/protocol/record"
)

// verification is what the log is to be told about a batch of a transaction. Clients of version 2 leave it to us to add partitions to their
// transactions; for others it may be switched off that they are checked.
func (h *Handlers) verification(v2 bool, asOf int64) record.Verification {
	return record.Verification{Required: v2 || h.Config().TransactionPartitionVerification, AsOf: asOf, V2: v2}
}

// A joining is one partition that is to be part of a transaction. A topic without a name stands for none.
type joining struct {
	topic     string
	partition int32
	err       error // of this partition, when the others are part of the transaction
}

// join adds partitions to a transaction of version 2 as they are written to, and makes sure that they are part of one of version 1. Without
// partitions it waits until what was asked before is done.
func (h *Handlers) join(transactionalID string, p machine.Producer, asks []*joining, v2 bool, done func(error)) {
	if transactionalID == "" {
		done(kerr.InvalidRequest)
		return
	}
	h.submitTransaction(transactionalID, func(m *txn.Machine, nowMs int64) (machine.Effects, error) {
		if !v2 || len(asks) == 0 {
			for _, a := range asks {
				a.err = m.VerifyPartition(transactionalID, p, a.topic, a.partition)
			}
			return machine.Effects{}, nil
		}
		partitions := make([]txn.TopicPartitions, len(asks))
		for i, a := range asks {
			partitions[i] = txn.TopicPartitions{Topic: a.topic, Partitions: []int32{a.partition}}
		}
		return m.AddPartitions(nowMs, txn.AddRequest{TransactionalID: transactionalID, Producer: p, Partitions: partitions, Version: txn.TransactionsV2})
	}, done)
}

// joinError is what a client that writes in a transaction is told when the transaction's coordinator refused.
func joinError(err error, knowsAbortable bool) error {
	switch {
	case errors.Is(err, kerr.ProducerFenced):
		return kerr.InvalidProducerEpoch
	case errors.Is(err, kerr.TransactionAbortable) && !knowsAbortable:
		return kerr.InvalidTxnState
	}
	return err
}
