// Package txn is the transaction coordinator as a pure machine: producer ids and epochs of transactional ids, the partitions of their
// transactions, the decision to commit or abort, and the end markers that carry it out, with the states, error codes and records of Apache
// Kafka 4.4 in both of its protocols (version 2 of transactions is KIP-890). One Machine holds the transactional ids of one partition of
// __transaction_state.
//
// State changes only when records are replayed, so that a later operation sees what an earlier one decided before that is committed. Kafka
// answers CONCURRENT_TRANSACTIONS in that time; here the later one simply waits, as its reply is sent once its own records are committed.
//
// What is not in the records is in memory only: who waits for the end of a transaction, which markers are still to be written (all of them
// after a restart: a partition takes a marker twice without harm), timers, and the epoch that the producer had before its last one.
package txn

import (
	"sluice/broker/coordinator/machine"
)

// Topic is the internal topic that holds the state of transactional ids.
const Topic = "__transaction_state"

// TransactionsV2 is the level of the feature transaction.version from which on each transaction has a producer epoch of its own (KIP-890).
const TransactionsV2 = 2

// Config is what a machine needs to know of the broker's configuration and of the cluster.
type Config struct {
	MaxTimeoutMs        int32 // transaction.max.timeout.ms
	IDExpirationMs      int64 // transactional.id.expiration.ms
	IDExpirationCheckMs int64 // transaction.remove.expired.transaction.cleanup.interval.ms
	Version             int16 // finalized level of the feature transaction.version
}

// Outside is what a machine asks for that is not a record. Its methods return at once, and may be called within any operation.
type Outside interface {
	// WriteMarkers has the end markers of a decided transaction written. What became of them comes back with Machine.MarkersWritten.
	WriteMarkers(m Markers)
	// FetchProducerID gets a producer id for a transactional id whose transaction has run out of time and its epochs of numbers. It comes
	// back with Machine.AbortTimedOut.
	FetchProducerID(transactionalID string)
}

// Machine holds the transactional ids of one partition of __transaction_state.
type Machine struct {
	config  func() *Config
	outside Outside

	transactions map[string]*transaction
	timers       timerHeap
	expiry       timer // the next look for transactional ids to forget
	attempt      uint64
}

// New returns a machine without transactional ids. config is asked anew by each operation.
func New(config func() *Config, outside Outside) *Machine {
	return &Machine{config: config, outside: outside, transactions: map[string]*transaction{}}
}

// Loaded carries on with transactions that were decided before: their markers are written once more. Those that are open have their timers.
func (m *Machine) Loaded(nowMs int64) machine.Effects {
	m.timers.schedule(&m.expiry, nowMs+m.config().IDExpirationCheckMs)
	m.attempt = uint64(nowMs) << 20 // so that what an earlier machine of this partition asked for is not taken for an answer to this one
	var decided []string
	for _, id := range sortedKeys(m.transactions) {
		if m.transactions[id].status.deciding() {
			decided = append(decided, id)
		}
	}
	if len(decided) == 0 {
		return machine.Effects{}
	}
	return machine.Effects{Settled: func(nowMs int64, err error) machine.Effects { return m.resume(nowMs, decided, err) }}
}

// resume writes the markers of transactions that the log had decided, now that it is certain that the decisions are committed.
func (m *Machine) resume(nowMs int64, decided []string, err error) machine.Effects {
	if err != nil { // not yet
		return machine.Effects{Settled: func(nowMs int64, err error) machine.Effects { return m.resume(nowMs, decided, err) }}
	}
	var effects machine.Effects
	effects.Splittable = true
	for _, id := range decided {
		if t := m.transactions[id]; t != nil && t.status.deciding() && t.completion == nil {
			effects.Records = append(effects.Records, m.complete(nowMs, t, &completion{}).Records...)
		}
	}
	return effects
}

// Deadline is when Expire wants to be called next, in ms since the epoch.
func (m *Machine) Deadline() (atMs int64, ok bool) { return m.timers.deadline() }

// Expire runs one timer that is due; false when none is.
func (m *Machine) Expire(nowMs int64) (machine.Effects, bool) {
	t := m.timers.popDue(nowMs)
	switch {
	case t == nil:
		return machine.Effects{}, false
	case t == &m.expiry:
		return m.expireIDs(nowMs), true
	case t.transaction.completion != nil:
		return m.carryOn(nowMs, t.transaction), true
	case t.transaction.status == Ongoing:
		return m.timeOut(nowMs, t.transaction), true
	}
	return machine.Effects{}, true
}

// ClockMoved moves all timers by as much as the clock was set.
func (m *Machine) ClockMoved(byMs int64) { m.timers.shift(byMs) }

// expireIDs forgets transactional ids that have not been used for long enough.
func (m *Machine) expireIDs(nowMs int64) machine.Effects {
	cfg := m.config()
	m.timers.schedule(&m.expiry, nowMs+cfg.IDExpirationCheckMs)
	var expired []string
	for id, t := range m.transactions {
		if t.status.idle() && t.updatedMs <= nowMs-cfg.IDExpirationMs {
			expired = append(expired, id)
		}
	}
	effects := machine.Effects{Splittable: true}
	for _, id := range sorted(expired) {
		effects.Records = append(effects.Records, &stateRecord{id: id})
	}
	return effects
}
