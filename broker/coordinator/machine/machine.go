// Package machine is the contract between a coordinator's runtime and its state machines (group, transaction, share): what an operation
// asks for, and what the runtime does with it. It holds plain types only, so that machines stay pure.
//
// An operation reads a machine and returns Effects. The runtime then encodes the records, replays them into the machine, appends them to
// the partition's log and, once they are committed, sends the answers and calls Settled. When an append fails, the runtime drops the
// machine and loads a new one from the log: nothing is ever rolled back.
package machine

import (
	"errors"

	"sluice/protocol/record"
)

// ErrUnknownRecord is what a machine's Parse returns for a key of a type that it does not know: left by a newer version, and skipped.
var ErrUnknownRecord = errors.New("record of an unknown type")

// A Record is one record of a coordinator's log. The machine that made or parsed it knows its type; the runtime only needs the bytes.
type Record interface {
	// AppendKey appends the encoded key.
	AppendKey(dst []byte) []byte
	// AppendValue appends the encoded value. A tombstone appends nothing and returns true.
	AppendValue(dst []byte) (value []byte, tombstone bool)
}

// A Producer is the writer of a batch: for offsets that are part of a transaction its producer, otherwise NoProducer.
type Producer struct {
	ID    int64
	Epoch int16
}

// NoProducer is the writer of every batch that is not part of a transaction.
var NoProducer = Producer{ID: -1, Epoch: -1}

// A Transaction is the one that records are part of.
type Transaction struct {
	Producer     Producer
	Verification record.Verification // what the transaction's coordinator said about it
}

// A Token stands for a parked request: one that a later operation will answer. Zero is no token.
type Token uint64

// An Answer is the response to a parked request. Its type is that of the request's response.
type Answer struct {
	Token    Token
	Response any
}

// Effects are what an operation wants to happen. The zero value wants nothing: the reply of the operation waits for what is already
// written to be committed, and no more.
type Effects struct {
	// Records are appended in order. All of them or none, in one batch, unless Splittable.
	Records []Record
	// Splittable says that the records may be spread over several batches, of which a crash may leave only the first: for clean-ups.
	Splittable bool
	// Live says that the machine's state already is what the records say: they are logged but not replayed. It is for state which is
	// richer than its records, as a classic group's members are.
	Live bool
	// Transaction, when not nil, makes the records part of it: they are appended in a batch of their own, by its producer, and replayed once
	// they are in the log. Where the log refuses them, nothing has happened.
	Transaction *Transaction
	// Answers decide parked requests. They are sent when all that was written up to here is committed.
	Answers []Answer
	// Settled, when not nil, is called as an operation of its own once the records are committed (err nil), or not committed in time.
	// It is not called when the machine is dropped.
	Settled func(nowMs int64, err error) Effects
}
