// Package producer remembers, for one partition, what each idempotent or transactional producer appended last: the window of sequence
// numbers by which repeated batches are found, the epochs that fence old incarnations, and the transactions that are open.
package producer

import (
	"cmp"
	"errors"
	"slices"
	"sync/atomic"

	"sluice/protocol/record"
)

// State describes one producer for DescribeProducers.
type State struct {
	ProducerID            record.ProducerID
	ProducerEpoch         record.ProducerEpoch
	LastSequence          int32 // record.NoSequence if there is no batch in the window
	LastTimestampMs       int64 // of the last batch or marker
	CoordinatorEpoch      int32 // of the last end-transaction marker; -1 if there was none
	CurrentTxnFirstOffset int64 // -1 if no transaction is open
}

// entry is what is known of one producer.
type entry struct {
	window           window
	lastTimestampMs  int64
	txnFirstOffset   int64 // noTxn if no transaction is open
	lastMarkerOffset int64 // of the last end-transaction marker that was seen since the log was opened; noTxn if none was
	coordinatorEpoch int32
	epoch            record.ProducerEpoch
}

const (
	noTxn              = -1
	noCoordinatorEpoch = -1
)

func newEntry() *entry {
	return &entry{epoch: record.NoProducerEpoch, coordinatorEpoch: noCoordinatorEpoch, txnFirstOffset: noTxn, lastMarkerOffset: noTxn, lastTimestampMs: record.NoTimestamp}
}

// enter begins another epoch, if it is one: the sequences of the last one do not matter any more.
func (e *entry) enter(epoch record.ProducerEpoch) {
	if e.epoch != epoch {
		e.window.clear()
		e.epoch = epoch
	}
}

func (e *entry) expired(nowMs, expirationMs int64) bool {
	return e.txnFirstOffset == noTxn && nowMs-e.lastTimestampMs >= expirationMs
}

// Table is the state of all producers of one log up to EndOffset. One caller at a time uses it, but LastStableOffset may be called beside.
type Table struct {
	producers map[record.ProducerID]*entry // nil as long as there is none
	txns      transactions
	end       int64
	seen      atomic.Int64 // the largest high watermark that LastStableOffset was asked for
}

// EndOffset is the offset (exclusive) up to which the table knows the log.
func (t *Table) EndOffset() int64 { return t.end }

// SetEndOffset notes that the log up to offset (exclusive) has been taken in.
func (t *Table) SetEndOffset(offset int64) { t.end = offset }

// Len is the number of producers.
func (t *Table) Len() int { return len(t.producers) }

// Reset forgets all; the table stands at offset.
func (t *Table) Reset(offset int64) {
	t.producers, t.end = nil, offset
	t.txns.open, t.txns.ended = nil, nil
	t.txns.publish()
	t.seen.Store(0)
}

// Duplicate is a batch that was appended before.
type Duplicate struct {
	FirstOffset int64
	LastOffset  int64 // inclusive
	TimestampMs int64 // its maximum
}

// Update is what a batch does to the table. The zero value does nothing.
type Update struct {
	id          record.ProducerID
	has         bool // the batch has a producer id
	epoch       record.ProducerEpoch
	batch       appended
	txn         bool // the batch belongs to a transaction
	marker      bool // the batch is an end-transaction marker, and these say more:
	commit      bool
	coordinator int32
}

// errNotMarker is the cause when a control batch of a producer is no end-transaction marker.
var errNotMarker = errors.New("control batch of a producer is no end-transaction marker")

// Prepare decides about a batch that is about to be appended, with the offset that it will have, and changes nothing. A batch of a Client
// that was appended before is a duplicate. transactionVersion matters for markers: from 2 on each transaction has its own producer epoch.
//
// Of Replication nothing is refused but bytes that make no sense: the leader has decided.
func (t *Table) Prepare(b record.Batch, origin record.Origin, transactionVersion int16) (u Update, d Duplicate, duplicate bool, err error) {
	if !b.HasProducerID() {
		return Update{}, Duplicate{}, false, nil
	}
	u = Update{id: b.ProducerID(), has: true, epoch: b.ProducerEpoch(), txn: b.IsTransactional()}
	u.batch = appended{lastOffset: b.LastOffset(), timestampMs: b.MaxTimestamp(), lastSeq: b.LastSequence(), offsetDelta: b.LastOffsetDelta()}
	e := t.producers[u.id]
	if b.IsControl() {
		if u, err = readMarker(u, b); err != nil {
			return Update{}, Duplicate{}, false, err
		}
		if origin != record.Replication && e != nil {
			err = checkMarker(e, u, transactionVersion)
		}
		return u, Duplicate{}, false, err
	}
	if origin == record.Replication || e == nil {
		return u, Duplicate{}, false, nil
	}
	if origin == record.Client && e.epoch == u.epoch {
		if a, ok := e.window.find(b.BaseSequence(), u.batch.lastSeq); ok {
			return Update{}, Duplicate{a.firstOffset(), a.lastOffset, a.timestampMs}, true, nil
		}
	}
	return u, Duplicate{}, false, checkBatch(e, u, b.BaseSequence(), origin)
}

// checkBatch holds a batch of records against what is known of its producer.
func checkBatch(e *entry, u Update, baseSequence int32, origin record.Origin) error {
	offset := u.batch.firstOffset()
	if u.epoch < e.epoch {
		return &InvalidProducerEpoch{ProducerID: u.id, Epoch: u.epoch, CurrentEpoch: e.epoch, Offset: offset}
	}
	if origin == record.Client && e.epoch != record.NoProducerEpoch {
		expected := baseSequence == 0 // in a new epoch
		if u.epoch == e.epoch {
			expected = follows(e.window.lastSeq(), baseSequence)
		}
		if !expected {
			return &OutOfOrderSequence{ProducerID: u.id, Epoch: u.epoch, Offset: offset, BaseSequence: baseSequence, LastSequence: e.window.lastSeq(), CurrentEpoch: e.epoch}
		}
	}
	if e.txnFirstOffset != noTxn && !u.txn {
		return &InvalidTxnState{ProducerID: u.id, Offset: offset}
	}
	return nil
}

// checkMarker holds an end-transaction marker against what is known of its producer.
func checkMarker(e *entry, u Update, transactionVersion int16) error {
	fenced := u.epoch < e.epoch
	if transactionVersion >= 2 && u.epoch == e.epoch {
		// The marker's epoch is one above that of the transaction's batches, unless the marker is sent once more or epochs are used up.
		fenced = e.txnFirstOffset != noTxn && u.epoch != lastProducerEpoch
	}
	if fenced {
		return &InvalidProducerEpoch{ProducerID: u.id, Epoch: u.epoch, CurrentEpoch: e.epoch, Offset: u.batch.firstOffset()}
	}
	if e.coordinatorEpoch > u.coordinator {
		return &CoordinatorFenced{ProducerID: u.id, Offset: u.batch.firstOffset(), Epoch: u.coordinator, CurrentEpoch: e.coordinatorEpoch}
	}
	return nil
}

const lastProducerEpoch record.ProducerEpoch = 1<<15 - 1

// readMarker adds what the end-transaction marker in the batch says.
func readMarker(u Update, b record.Batch) (Update, error) {
	for r, err := range b.Records(0) {
		if err != nil {
			return Update{}, err
		}
		c, err := record.ParseControl(r)
		if err != nil {
			return Update{}, err
		}
		m, ok := c.(record.EndTxnMarker)
		if !ok {
			return Update{}, errNotMarker
		}
		u.marker, u.commit, u.coordinator, u.batch.timestampMs = true, m.Commit, m.CoordinatorEpoch, r.TimestampMs
		return u, nil
	}
	return Update{}, errNotMarker
}

// Completed is a transaction that a marker has ended.
type Completed struct {
	ProducerID       record.ProducerID
	FirstOffset      int64
	LastOffset       int64 // of the marker, inclusive
	Aborted          bool
	LastStableOffset int64 // with the marker appended and, as far as this log knows, replicated
}

// Apply takes in a batch that has been appended. ended is true if it is a marker that has ended a transaction.
func (t *Table) Apply(u Update) (c Completed, ended bool) {
	if !u.has {
		return Completed{}, false
	}
	e := t.producers[u.id]
	if e == nil {
		if t.producers == nil {
			t.producers = make(map[record.ProducerID]*entry)
		}
		e = newEntry()
		t.producers[u.id] = e
	}
	if len(t.txns.ended) > 0 {
		t.txns.forget(t.seen.Load())
	}
	e.enter(u.epoch)
	e.lastTimestampMs = u.batch.timestampMs
	if u.marker {
		e.coordinatorEpoch, e.lastMarkerOffset = u.coordinator, u.batch.lastOffset
		if e.txnFirstOffset == noTxn {
			return Completed{}, false
		}
		c = Completed{ProducerID: u.id, FirstOffset: e.txnFirstOffset, LastOffset: u.batch.lastOffset, Aborted: !u.commit}
		e.txnFirstOffset = noTxn
		c.LastStableOffset = t.txns.end(c.FirstOffset, c.LastOffset, t.seen.Load())
		return c, true
	}
	e.window.add(u.batch)
	if u.txn && e.txnFirstOffset == noTxn {
		e.txnFirstOffset = u.batch.firstOffset()
		t.txns.begin(e.txnFirstOffset)
	}
	return Completed{}, false
}

// LastStableOffset is the smaller of the high watermark and the first offset of the oldest transaction that is open, or whose marker is
// at or above the high watermark.
func (t *Table) LastStableOffset(highWatermark int64) int64 {
	for {
		seen := t.seen.Load()
		if seen >= highWatermark || t.seen.CompareAndSwap(seen, highWatermark) {
			return min(highWatermark, t.txns.firstUnstable(highWatermark))
		}
	}
}

// Active lists the producers by id.
func (t *Table) Active() []State {
	states := make([]State, 0, len(t.producers))
	for id, e := range t.producers {
		states = append(states, State{id, e.epoch, e.window.lastSeq(), e.lastTimestampMs, e.coordinatorEpoch, e.txnFirstOffset})
	}
	slices.SortFunc(states, func(a, b State) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	return states
}

// Expire forgets the producers without an open transaction that were last seen expirationMs ago or earlier.
func (t *Table) Expire(nowMs, expirationMs int64) {
	for id, e := range t.producers {
		if e.expired(nowMs, expirationMs) {
			delete(t.producers, id)
		}
	}
}

// HasOpenTransaction says whether the producer, in that epoch, has a transaction open here.
func (t *Table) HasOpenTransaction(id record.ProducerID, epoch record.ProducerEpoch) bool {
	e := t.producers[id]
	return e != nil && e.txnFirstOffset != noTxn && e.epoch == epoch
}

// CheckVerified holds a batch of a transaction, with the offset that it will have, against what its coordinator said. In a transaction that is
// open here it is welcome.
func (t *Table) CheckVerified(b record.Batch, origin record.Origin, v record.Verification) error {
	id, epoch := b.ProducerID(), b.ProducerEpoch()
	e := t.producers[id]
	if e != nil && e.txnFirstOffset != noTxn && e.epoch == epoch {
		return nil
	}
	switch {
	case e != nil && epoch < e.epoch:
		return &InvalidProducerEpoch{ProducerID: id, Epoch: epoch, CurrentEpoch: e.epoch, Offset: b.BaseOffset()}
	case v.Required && (v.AsOf < 0 || !v.V2 && e != nil && e.lastMarkerOffset >= v.AsOf):
		return &InvalidTxnState{ProducerID: id, Offset: b.BaseOffset(), Unverified: true}
	case v.V2 && origin == record.Client && e == nil && b.BaseSequence() != 0:
		return &OutOfOrderSequence{
			ProducerID: id, Epoch: epoch, Offset: b.BaseOffset(), BaseSequence: b.BaseSequence(), LastSequence: record.NoSequence, CurrentEpoch: epoch,
		}
	}
	return nil
}

// Fenced is the error for a producer whose epoch is below the last one that was seen of it, else nil.
func (t *Table) Fenced(id record.ProducerID, epoch record.ProducerEpoch) error {
	if e := t.producers[id]; e != nil && epoch < e.epoch {
		return &InvalidProducerEpoch{ProducerID: id, Epoch: epoch, CurrentEpoch: e.epoch, Offset: t.end}
	}
	return nil
}
