package producer

import (
	"fmt"

	"sluice/protocol/record"
)

// OutOfOrderSequence refuses a batch that does not follow the producer's last one: Kafka's OUT_OF_ORDER_SEQUENCE_NUMBER (45).
type OutOfOrderSequence struct {
	ProducerID   record.ProducerID
	Epoch        record.ProducerEpoch // of the refused batch
	Offset       int64                // that the batch would have had
	BaseSequence int32                // of the refused batch
	LastSequence int32                // known before it; record.NoSequence if none is
	CurrentEpoch record.ProducerEpoch // known before it
}

func (e *OutOfOrderSequence) Error() string {
	if e.Epoch != e.CurrentEpoch {
		return fmt.Sprintf("producer %d began epoch %d with sequence %d at offset %d; a new epoch begins with 0 (last epoch %d)",
			e.ProducerID, e.Epoch, e.BaseSequence, e.Offset, e.CurrentEpoch)
	}
	return fmt.Sprintf("producer %d epoch %d sent sequence %d at offset %d after sequence %d", e.ProducerID, e.Epoch, e.BaseSequence, e.Offset, e.LastSequence)
}

// InvalidProducerEpoch refuses a batch of a fenced producer: Kafka's INVALID_PRODUCER_EPOCH (47).
type InvalidProducerEpoch struct {
	ProducerID   record.ProducerID
	Epoch        record.ProducerEpoch // of the refused batch
	CurrentEpoch record.ProducerEpoch
	Offset       int64 // that the batch would have had
}

func (e *InvalidProducerEpoch) Error() string {
	return fmt.Sprintf("producer %d at offset %d has epoch %d, the last seen is %d", e.ProducerID, e.Offset, e.Epoch, e.CurrentEpoch)
}

// InvalidTxnState refuses a batch outside a transaction of a producer that has one open, or one of a transaction that its coordinator does not
// know the partition to be part of: Kafka's INVALID_TXN_STATE (48).
type InvalidTxnState struct {
	ProducerID record.ProducerID
	Offset     int64 // that the batch would have had
	Unverified bool  // the second of the two
}

func (e *InvalidTxnState) Error() string {
	if e.Unverified {
		return fmt.Sprintf("producer %d sent a batch at offset %d of a transaction that the partition is not known to be part of", e.ProducerID, e.Offset)
	}
	return fmt.Sprintf("producer %d has an open transaction and sent a batch outside it at offset %d", e.ProducerID, e.Offset)
}

// CoordinatorFenced refuses an end-transaction marker of a former transaction coordinator: Kafka's TRANSACTION_COORDINATOR_FENCED (52).
type CoordinatorFenced struct {
	ProducerID   record.ProducerID
	Offset       int64 // that the marker would have had
	Epoch        int32 // coordinator epoch of the refused marker
	CurrentEpoch int32
}

func (e *CoordinatorFenced) Error() string {
	return fmt.Sprintf("marker for producer %d at offset %d has coordinator epoch %d, the last seen is %d", e.ProducerID, e.Offset, e.Epoch, e.CurrentEpoch)
}
