package txn

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/internal/assert"
	"sluice/protocol/logrecord"
)

// A stateRecord says what state a transactional id is in. A nil state is the tombstone.
type stateRecord struct {
	id      string
	state   *state
	version int16 // of the record's value
}

// record has the state logged, in the version of the value that fits the cluster's version of transactions.
func (m *Machine) record(id string, s *state) machine.Record {
	r := &stateRecord{id: id, state: s}
	if m.config().Version >= 1 {
		r.version = 1
	}
	return r
}

func (r *stateRecord) AppendKey(dst []byte) []byte { return logrecord.AppendTransactionKey(dst, r.id) }

func (r *stateRecord) AppendValue(dst []byte) ([]byte, bool) {
	if r.state == nil {
		return dst, true
	}
	s := r.state
	v := kmsg.NewTxnMetadataValue()
	v.Version = r.version
	v.ProducerID, v.ProducerEpoch = s.producerID, s.epoch
	v.PreviousProducerID, v.NextProducerID = s.prevProducerID, s.nextProducerID
	v.ClientTransactionVersion = s.clientVersion
	v.TimeoutMillis = s.timeoutMs
	v.State = kmsg.TransactionState(s.status)
	v.StartTimestamp, v.LastUpdateTimestamp = s.startMs, s.updatedMs
	if s.status != Empty { // then the list is null
		v.Topics = make([]kmsg.TxnMetadataValueTopic, len(s.partitions))
		for i, t := range s.partitions {
			v.Topics[i].Topic, v.Topics[i].Partitions = t.Topic, t.Partitions
		}
	}
	return logrecord.AppendTransactionValue(dst, v), false
}

// Parse decodes a record of the log. The result holds no slice of key or value.
func (m *Machine) Parse(key, value []byte) (machine.Record, error) {
	k, err := logrecord.ParseTransactionKey(key)
	if err != nil {
		return nil, err
	}
	if !k.Known() {
		return nil, fmt.Errorf("%w: %d", machine.ErrUnknownRecord, k.Type)
	}
	r := &stateRecord{id: k.TransactionalID}
	if value == nil {
		return r, nil
	}
	v, err := logrecord.ParseTransactionValue(value)
	if err == nil {
		r.state, err = parseState(&v)
	}
	if err != nil {
		return nil, fmt.Errorf("transactional id %q: %w", k.TransactionalID, err)
	}
	r.version = v.Version
	return r, nil
}

// parseState takes a record's state in, and refuses one that no coordinator can have written.
func parseState(v *kmsg.TxnMetadataValue) (*state, error) {
	s := &state{
		producerID: v.ProducerID, prevProducerID: v.PreviousProducerID, nextProducerID: v.NextProducerID,
		epoch: v.ProducerEpoch, lastEpoch: noProducerEpoch, clientVersion: v.ClientTransactionVersion,
		timeoutMs: v.TimeoutMillis, status: Status(v.State), startMs: v.StartTimestamp, updatedMs: v.LastUpdateTimestamp,
	}
	if s.status < Empty || s.status > CompleteAbort {
		return nil, fmt.Errorf("state %d, which is never written", v.State)
	}
	if s.producerID < 0 || s.epoch < 0 {
		return nil, fmt.Errorf("producer id %d, epoch %d", s.producerID, s.epoch)
	}
	if s.status == Empty {
		return s, nil
	}
	topics := make([]TopicPartitions, len(v.Topics))
	for i, t := range v.Topics {
		topics[i] = TopicPartitions{Topic: t.Topic, Partitions: t.Partitions}
	}
	s.partitions = s.partitions.With(topics...)
	return s, nil
}

// Replay applies one record.
func (m *Machine) Replay(_ int64, _ machine.Producer, r machine.Record) {
	record, ok := r.(*stateRecord)
	assert.That(ok, "replay of a %T", r)
	t := m.transactions[record.id]
	if record.state == nil {
		if t != nil {
			m.timers.cancel(&t.timer)
			delete(m.transactions, record.id)
		}
		return
	}
	if t == nil {
		t = &transaction{id: record.id}
		t.timer.transaction = t
		m.transactions[record.id] = t
	}
	t.state = record.state
	t.completion = nil
	if t.status == Ongoing {
		m.timers.schedule(&t.timer, t.startMs+int64(t.timeoutMs)+1)
	} else {
		m.timers.cancel(&t.timer)
	}
}

// ReplayEndTxn does nothing: no transaction writes to the log of transactions.
func (m *Machine) ReplayEndTxn(machine.Producer, bool) {}
