package txn

import (
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/broker/coordinator/machine"
)

// An EndRequest commits or aborts a producer's transaction.
type EndRequest struct {
	TransactionalID string
	Producer        machine.Producer
	Commit          bool
	V2              bool  // the client understands version 2 of transactions: it takes the epoch of its next one from the answer
	NewProducerID   int64 // one to give out, or -1: see ErrNeedProducerID
}

// EndTxn decides the producer's transaction. Answers other than errors come as an Outcome for the token: once the decision is committed and
// all markers are written, or have been under way for long enough.
func (m *Machine) EndTxn(nowMs int64, req EndRequest, token machine.Token) (machine.Effects, error) {
	t := m.transactions[req.TransactionalID]
	if t == nil {
		return machine.Effects{}, kerr.InvalidProducerIDMapping
	}
	var next *state
	var err error
	if req.V2 {
		next, err = t.endV2(nowMs, req)
	} else {
		next, err = t.endV1(nowMs, req)
	}
	switch {
	case err != nil:
		return machine.Effects{}, err
	case next == nil: // it has been ended in this way before
		return machine.Effects{Answers: []machine.Answer{{Token: token, Response: Outcome{Producer: t.identity()}}}}, nil
	}
	return m.decide(t.id, next, &completion{token: token, outcome: Outcome{Producer: next.completed(nowMs).identity()}}), nil
}

// endV1 is the decided state for a client that knows nothing of version 2; nil when there is nothing to be done.
func (t *transaction) endV1(nowMs int64, req EndRequest) (*state, error) {
	switch {
	case t.producerID != req.Producer.ID:
		return nil, kerr.InvalidProducerIDMapping
	case t.epoch != req.Producer.Epoch:
		return nil, kerr.ProducerFenced
	case t.status.deciding():
		return nil, kerr.ConcurrentTransactions
	case t.status == Ongoing:
		next := t.decided(nowMs, req.Commit)
		next.clientVersion, next.nextProducerID = 0, noProducerID
		return next, nil
	case t.status == CompleteCommit && req.Commit, t.status == CompleteAbort && !req.Commit:
		return nil, nil
	}
	return nil, kerr.InvalidTxnState
}

// endV2 is the decided state for a client of version 2; nil when the request has been carried out before. There each end of a transaction
// takes an epoch, by which one that is sent again is told from the next.
func (t *transaction) endV2(nowMs int64, req EndRequest) (*state, error) {
	rotated := t.prevProducerID == req.Producer.ID && req.Producer.Epoch == lastUsableEpoch && t.epoch == 0
	again := rotated || int32(t.epoch) == int32(req.Producer.Epoch)+1
	switch {
	case t.status.deciding():
		return nil, kerr.ConcurrentTransactions
	case t.producerID != req.Producer.ID && !rotated:
		return nil, kerr.InvalidProducerIDMapping
	case t.epoch != req.Producer.Epoch && (!again || t.status == Ongoing || t.status == Empty):
		return nil, kerr.ProducerFenced
	case t.status == Ongoing:
		return t.endAndBump(nowMs, req.Commit, req.NewProducerID)
	case again && (t.status == CompleteCommit && req.Commit || t.status == CompleteAbort && !req.Commit):
		return nil, nil
	case again || req.Commit:
		return nil, kerr.InvalidTxnState
	}
	// The client aborts without knowing that nothing of its transaction has come here. The epoch fences what may still be under way.
	next, err := t.endAndBump(nowMs, false, req.NewProducerID)
	if err == nil {
		next.startMs, next.partitions = nowMs, nil
	}
	return next, err
}

func (t *transaction) decided(nowMs int64, commit bool) *state {
	next := t.change()
	next.status, next.updatedMs = PrepareAbort, nowMs
	if commit {
		next.status = PrepareCommit
	}
	return next
}

// endAndBump is the decided state with the epoch of the next transaction, or with a new producer id to come when epochs are used up.
func (t *transaction) endAndBump(nowMs int64, commit bool, newProducerID int64) (*state, error) {
	next := t.decided(nowMs, commit)
	next.nextProducerID = noProducerID
	if t.exhausted() {
		if newProducerID < 0 {
			return nil, ErrNeedProducerID
		}
		next.nextProducerID = newProducerID
	}
	if t.epoch < math.MaxInt16 {
		next.epoch++
	}
	next.lastEpoch = t.epoch
	next.clientVersion = TransactionsV2
	return next, nil
}

// fence is the state that aborts an open transaction in place of its producer, which cannot go on with its epoch.
func (m *Machine) fence(nowMs int64, t *transaction, newProducerID int64) (*state, error) {
	if m.config().Version >= TransactionsV2 {
		return t.endAndBump(nowMs, false, newProducerID)
	}
	next := t.decided(nowMs, false)
	if t.epoch < math.MaxInt16 {
		next.epoch++
	}
	next.lastEpoch, next.clientVersion, next.nextProducerID = noProducerEpoch, 0, noProducerID
	return next, nil
}

// retryProducerIDMs is how long a transaction that is to be aborted waits for a producer id before it asks again.
const retryProducerIDMs = 1_000

// timeOut aborts a transaction that has been open for longer than its producer said.
func (m *Machine) timeOut(nowMs int64, t *transaction) machine.Effects {
	next, err := m.fence(nowMs, t, noProducerID)
	if err != nil {
		m.timers.schedule(&t.timer, nowMs+retryProducerIDMs)
		m.outside.FetchProducerID(t.id)
		return machine.Effects{}
	}
	return m.decide(t.id, next, &completion{})
}

// AbortTimedOut goes on where Outside.FetchProducerID was asked for a producer id.
func (m *Machine) AbortTimedOut(nowMs int64, transactionalID string, newProducerID int64) (machine.Effects, error) {
	t := m.transactions[transactionalID]
	if t == nil || t.status != Ongoing || t.startMs+int64(t.timeoutMs) >= nowMs {
		return machine.Effects{}, nil // decided meanwhile
	}
	next, err := m.fence(nowMs, t, newProducerID)
	if err != nil {
		return machine.Effects{}, err
	}
	return m.decide(t.id, next, &completion{}), nil
}
