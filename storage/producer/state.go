// Package producer remembers, for one partition, what each idempotent or transactional producer appended last: the window of sequence
// numbers by which repeated batches are found, the epochs that fence old incarnations, and the transactions that are open.
package producer

import "sluice/protocol/record"

// State describes one producer for DescribeProducers.
type State struct {
	ProducerID            record.ProducerID
	ProducerEpoch         record.ProducerEpoch
	LastSequence          int32 // record.NoSequence if there is no batch in the window
	LastTimestampMs       int64 // of the last batch or marker
	CoordinatorEpoch      int32 // of the last end-transaction marker; -1 if there was none
	CurrentTxnFirstOffset int64 // -1 if no transaction is open
}
