package txn

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/broker/coordinator/machine"
)

// ErrNeedProducerID is returned by an operation that cannot go on without a producer id which nobody has had. It changed nothing, and is to
// be run again with one.
var ErrNeedProducerID = errors.New("a new producer id is needed")

// An InitRequest is InitProducerId with a transactional id.
type InitRequest struct {
	TransactionalID string
	TimeoutMs       int32
	Current         *machine.Producer // what the producer has and wants to keep (KIP-360); nil: nothing
	NewProducerID   int64             // one to give out, or -1: see ErrNeedProducerID
}

// An Outcome answers a parked InitProducerID or EndTxn.
type Outcome struct {
	Producer machine.Producer // as it is to go on
	Err      error            // a *kerr.Error, or nil
}

// InitProducerID makes the caller the one producer of the transactional id: with an epoch above all before, or, once these are used up, with
// a new producer id. A transaction that is open is aborted first, and the caller told to try again once that is done; all later answers than
// an error come as an Outcome for the token.
func (m *Machine) InitProducerID(nowMs int64, req InitRequest, token machine.Token) (machine.Effects, error) {
	if req.TimeoutMs <= 0 || req.TimeoutMs > m.config().MaxTimeoutMs {
		return machine.Effects{}, kerr.InvalidTransactionTimeout
	}
	t := m.transactions[req.TransactionalID]
	if t == nil {
		return m.initNew(nowMs, req, token)
	}
	switch {
	case t.status.deciding():
		return machine.Effects{}, kerr.ConcurrentTransactions
	case req.Current != nil && !t.belongsTo(*req.Current):
		return machine.Effects{}, kerr.ProducerFenced
	case t.status == Ongoing:
		next, err := m.fence(nowMs, t, req.NewProducerID)
		if err != nil {
			return machine.Effects{}, err
		}
		return m.decide(t.id, next, &completion{token: token, outcome: Outcome{Err: kerr.ConcurrentTransactions}}), nil
	}
	next, err := t.initialized(nowMs, req)
	if err != nil {
		return machine.Effects{}, err
	}
	return m.given(t.id, next, token), nil
}

// belongsTo says whether the producer id is this one's. A producer that was given a new one when its epochs were used up may not have heard of
// that: then it comes with the old one.
func (s *state) belongsTo(p machine.Producer) bool {
	return p.ID == s.producerID || p.ID == s.prevProducerID && p.Epoch >= lastUsableEpoch
}

// initNew is InitProducerID for a transactional id that is new, or was forgotten.
func (m *Machine) initNew(nowMs int64, req InitRequest, token machine.Token) (machine.Effects, error) {
	if req.NewProducerID < 0 {
		return machine.Effects{}, ErrNeedProducerID
	}
	return m.given(req.TransactionalID, &state{
		producerID: req.NewProducerID, prevProducerID: req.NewProducerID, nextProducerID: noProducerID,
		epoch: 0, lastEpoch: noProducerEpoch, timeoutMs: req.TimeoutMs, status: Empty, startMs: noTimestamp, updatedMs: nowMs,
	}, token), nil
}

func (m *Machine) given(id string, next *state, token machine.Token) machine.Effects {
	return machine.Effects{
		Records: []machine.Record{m.record(id, next)},
		Answers: []machine.Answer{{Token: token, Response: Outcome{Producer: next.identity()}}},
	}
}

// initialized is the state of an idle transactional id with a producer that begins, or goes on after an error.
func (s *state) initialized(nowMs int64, req InitRequest) (*state, error) {
	next := s.change()
	next.status, next.partitions, next.startMs = Empty, nil, noTimestamp
	next.timeoutMs, next.updatedMs = req.TimeoutMs, nowMs
	current := req.Current
	switch {
	case s.exhausted() && (current == nil || current.Epoch == s.epoch):
		if req.NewProducerID < 0 {
			return nil, ErrNeedProducerID
		}
		next.producerID, next.epoch, next.lastEpoch = req.NewProducerID, 0, noProducerEpoch
		if current != nil {
			next.lastEpoch = s.epoch
		}
	case current == nil:
		next.epoch, next.lastEpoch = s.epoch+1, noProducerEpoch
	case current.Epoch == s.epoch:
		next.epoch, next.lastEpoch = s.epoch+1, s.epoch
	case current.Epoch == s.lastEpoch:
		// It has asked before, and the answer was lost: it gets the same.
	default:
		return nil, kerr.ProducerFenced
	}
	return next, nil
}
