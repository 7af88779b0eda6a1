package txn

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/broker/coordinator/machine"
)

// Bounds of a completion.
const (
	answerWaitMs = 1_000 // how long the answer to EndTxn waits for markers; past that the producer's next request may meet CONCURRENT_TRANSACTIONS
	retryFirstMs = 20    // between the first two attempts to write markers; doubled with each further one
	retryMostMs  = 1_000
)

// A completion is the way of a decided transaction to its end.
type completion struct {
	token      machine.Token // who waits for it; 0: nobody (any more)
	outcome    Outcome       // what they are told
	unmarked   Partitions    // without a marker as far as is known
	attempt    uint64        // names the last request to write markers
	answerAtMs int64
	retryAtMs  int64 // 0: markers are being written
	backoffMs  int64
}

// Markers are the end markers of one transaction.
type Markers struct {
	TransactionalID string
	Attempt         uint64 // to be given back to MarkersWritten
	Producer        machine.Producer
	Commit          bool
	Version         int16 // of transactions
	Partitions      Partitions
}

// decide has the decision logged. Markers follow once it is committed.
func (m *Machine) decide(id string, next *state, c *completion) machine.Effects {
	return machine.Effects{
		Records: []machine.Record{m.record(id, next)},
		Settled: func(nowMs int64, err error) machine.Effects { return m.settled(nowMs, id, next, c, err) },
	}
}

func (m *Machine) settled(nowMs int64, id string, decided *state, c *completion, err error) machine.Effects {
	t := m.transactions[id]
	if t == nil || t.state != decided {
		return machine.Effects{} // the machine has been loaded anew from a log that says otherwise
	}
	if err != nil {
		// The decision may be committed later, and is not to be forgotten until then.
		answers := c.answer(Outcome{Err: OperationError(err)})
		return machine.Effects{
			Answers: answers,
			Settled: func(nowMs int64, err error) machine.Effects { return m.settled(nowMs, id, decided, c, err) },
		}
	}
	return m.complete(nowMs, t, c)
}

// complete writes the markers of a decided transaction.
func (m *Machine) complete(nowMs int64, t *transaction, c *completion) machine.Effects {
	t.completion = c
	c.unmarked = t.partitions
	c.answerAtMs, c.backoffMs = nowMs+answerWaitMs, retryFirstMs
	if len(c.unmarked) == 0 {
		return m.finish(nowMs, t)
	}
	m.timers.schedule(&t.timer, c.answerAtMs)
	m.writeMarkers(t)
	return machine.Effects{}
}

func (m *Machine) writeMarkers(t *transaction) {
	m.attempt++
	t.completion.attempt, t.completion.retryAtMs = m.attempt, 0
	m.outside.WriteMarkers(Markers{
		TransactionalID: t.id, Attempt: m.attempt, Producer: t.identity(), Commit: t.status == PrepareCommit,
		Version: t.clientVersion, Partitions: t.completion.unmarked,
	})
}

// MarkersWritten takes note of an attempt to write markers: all are written, or can never be, but for those that are left to try again.
func (m *Machine) MarkersWritten(nowMs int64, transactionalID string, attempt uint64, left Partitions) machine.Effects {
	t := m.transactions[transactionalID]
	if t == nil || t.completion == nil || t.completion.attempt != attempt {
		return machine.Effects{}
	}
	c := t.completion
	c.unmarked = left
	if len(left) == 0 {
		return m.finish(nowMs, t)
	}
	c.retryAtMs = nowMs + c.backoffMs
	c.backoffMs = min(2*c.backoffMs, retryMostMs)
	m.scheduleCompletion(t)
	return machine.Effects{}
}

// scheduleCompletion sets the timer to what comes next, if there is anything but markers to wait for.
func (m *Machine) scheduleCompletion(t *transaction) {
	c := t.completion
	switch {
	case c.token != 0 && (c.retryAtMs == 0 || c.answerAtMs < c.retryAtMs):
		m.timers.schedule(&t.timer, c.answerAtMs)
	case c.retryAtMs != 0:
		m.timers.schedule(&t.timer, c.retryAtMs)
	default:
		m.timers.cancel(&t.timer)
	}
}

// carryOn is the timer of a completion.
func (m *Machine) carryOn(nowMs int64, t *transaction) machine.Effects {
	var effects machine.Effects
	c := t.completion
	if c.answerAtMs <= nowMs {
		effects.Answers = c.answer(c.outcome)
	}
	if c.retryAtMs != 0 && c.retryAtMs <= nowMs {
		m.writeMarkers(t)
	}
	m.scheduleCompletion(t)
	return effects
}

// finish ends a transaction whose markers are written.
func (m *Machine) finish(nowMs int64, t *transaction) machine.Effects {
	return machine.Effects{
		Answers: t.completion.answer(t.completion.outcome),
		Records: []machine.Record{m.record(t.id, t.completed(nowMs))},
	}
}

// completed is the state after a decided one.
func (s *state) completed(nowMs int64) *state {
	next := s.change()
	next.status = CompleteAbort
	if s.status == PrepareCommit {
		next.status = CompleteCommit
	}
	if s.clientVersion >= TransactionsV2 && s.nextProducerID != noProducerID {
		next.producerID, next.epoch = s.nextProducerID, 0
	}
	next.nextProducerID, next.partitions, next.updatedMs = noProducerID, nil, nowMs
	return next
}

// answer tells who waits, once.
func (c *completion) answer(o Outcome) []machine.Answer {
	if c.token == 0 {
		return nil
	}
	answers := []machine.Answer{{Token: c.token, Response: o}}
	c.token = 0
	return answers
}

// OperationError is what a client is told when the coordinator's log, and not the machine, failed an operation: the codes that a producer
// would get are replaced by those that a transactional producer understands from its coordinator. All others stay.
func OperationError(err error) error {
	switch err {
	case kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut:
		return kerr.CoordinatorNotAvailable
	case kerr.NotLeaderForPartition, kerr.KafkaStorageError:
		return kerr.NotCoordinator
	case kerr.MessageTooLarge, kerr.RecordListTooLarge:
		return kerr.UnknownServerError
	}
	return err
}
