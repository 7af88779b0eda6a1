// Package metadata is the cluster's controller as a pure machine. Operations read its state and return the records that would change it and
// the response to give once these are committed; only Replay changes state. The same records build the immutable Image that the rest of
// the node reads. Records, their order and the error messages are Apache Kafka 4.4's.
package metadata

import (
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/internal/assert"
	"sluice/protocol/logrecord"
)

// Settings are what the machine needs to know of the node that it runs on.
type Settings struct {
	ClusterID                string
	NodeID                   BrokerID
	Voters                   []BrokerID // of the metadata quorum
	DefaultReplicationFactor int16      // default.replication.factor
	DefaultPartitions        int32      // num.partitions
	MinInSyncReplicas        int32      // min.insync.replicas, as configured on the node
	UncleanLeaderElection    bool       // unclean.leader.election.enable, as configured on the node
	SessionTimeoutMs         int64      // broker.session.timeout.ms
	Features                 []Feature
	Configs                  ConfigValidator
	Random                   io.Reader // topic ids and where placement starts
}

// A Result is what an operation wants. Nothing has happened yet.
type Result struct {
	Records  []logrecord.ClusterRecord
	Response kmsg.Response
	// Splittable tells that a crash may leave the first of the records without the others: each is right by itself. They may then be appended
	// as several batches.
	Splittable bool
	session    *contact // what a heartbeat or registration tells of a broker
}

// An Op is one controller operation. It reads the machine and must not change it. An error rejects the request as a whole, and is an *Error
// when it is the requester's fault; errors of single items are in the response.
type Op func(m *Machine, nowMs int64) (Result, error)

// A Machine is the controller's state and the rules by which it changes. It is not safe for concurrent use; published images are.
type Machine struct {
	settings Settings
	random   random

	next      state
	edit      *edit // owns what was changed since the last publish
	owned     map[*Topic]struct{}
	touched   touched
	offset    int64 // of the last record replayed, -1 when there was none
	published *Image

	// transaction holds the state as it was at a BeginTransactionRecord whose end has not been replayed.
	transaction *transaction

	sessions map[BrokerID]*session
}

// A transaction is a series of records of which readers see all or nothing.
type transaction struct {
	before      state
	startOffset int64
}

// NewMachine returns a machine that has seen no record.
func NewMachine(s Settings) *Machine {
	empty := state{clusterID: s.ClusterID, nextProducerID: -1}
	return &Machine{
		settings:  s,
		random:    random{s.Random},
		next:      empty,
		edit:      new(edit),
		owned:     map[*Topic]struct{}{},
		touched:   newTouched(),
		offset:    -1,
		published: &Image{state: empty, offset: -1, controllerID: NoBroker},
		sessions:  map[BrokerID]*session{},
	}
}

// Image is the last published image.
func (m *Machine) Image() *Image { return m.published }

// NextOffset is the offset that the next record gets.
func (m *Machine) NextOffset() int64 { return m.offset + 1 }

// Plan runs op; nothing changes yet.
func (m *Machine) Plan(op Op, nowMs int64) (Result, error) {
	r, err := op(m, nowMs)
	if err != nil {
		return Result{}, err
	}
	return r, nil
}

// Accept makes a planned result part of the state: its records are replayed at NextOffset and following, where they are the caller's to append.
// No other record may have been replayed in between.
func (m *Machine) Accept(r Result) {
	for i, record := range r.Records {
		err := m.Replay(m.offset+1, record)
		assert.That(err == nil, "record %d of an operation, %+v, does not fit the state it was made from: %v", i, record, err)
	}
	if r.session != nil {
		m.touchSession(r.session)
	}
}

// ReplaySnapshot applies one record of a snapshot of the log up to endOffset, exclusive. The machine must not have replayed anything else.
func (m *Machine) ReplaySnapshot(endOffset int64, record logrecord.ClusterRecord) error {
	if err := m.replay(endOffset-1, record); err != nil {
		return fmt.Errorf("metadata record %T of the snapshot at offset %d: %w", record, endOffset, err)
	}
	return nil
}

// SkipTo tells that the offsets up to the given one, inclusive, hold no records for the machine: control records of the quorum.
func (m *Machine) SkipTo(offset int64) { m.offset = max(m.offset, offset) }

// Publish freezes the state after all records replayed so far, but for those of a transaction that has not ended, and returns what changed
// since the last call.
func (m *Machine) Publish(controllerID BrokerID) *Delta {
	visible := m.next
	if m.transaction != nil {
		visible = m.transaction.before
	}
	next := &Image{state: visible, offset: m.offset, controllerID: controllerID}
	d := m.touched.delta(m.published, next)
	m.published = next
	m.seal()
	if m.transaction == nil {
		m.touched = newTouched()
	}
	return d
}

// seal ends the present edit: from here on everything it made is shared and gets copied before a change.
func (m *Machine) seal() {
	m.edit = new(edit)
	if len(m.owned) > 0 {
		m.owned = map[*Topic]struct{}{}
	}
}

// Replay applies one record of the metadata log. A record that does not fit the state is an error: the log is not one of this cluster, or damaged.
func (m *Machine) Replay(offset int64, record logrecord.ClusterRecord) error {
	if offset <= m.offset {
		return fmt.Errorf("metadata record at offset %d after one at offset %d", offset, m.offset)
	}
	if err := m.replay(offset, record); err != nil {
		return fmt.Errorf("metadata record %T at offset %d: %w", record, offset, err)
	}
	m.offset = offset
	return nil
}

func (m *Machine) replay(offset int64, record logrecord.ClusterRecord) error {
	switch r := record.(type) {
	case *logrecord.TopicRecord:
		return m.replayTopic(r)
	case *logrecord.RemoveTopicRecord:
		return m.replayRemoveTopic(r)
	case *logrecord.PartitionRecord:
		return m.replayPartition(r)
	case *logrecord.PartitionChangeRecord:
		return m.replayPartitionChange(r)
	case *logrecord.ClearELRRecord:
		return m.replayClearELR(r)
	case *logrecord.ConfigRecord:
		return m.replayConfig(r)
	case *logrecord.FeatureLevelRecord:
		return m.replayFeature(r)
	case *logrecord.ProducerIDsRecord:
		return m.replayProducerIDs(r)
	case *logrecord.RegisterBrokerRecord:
		return m.replayRegisterBroker(offset, r)
	case *logrecord.UnregisterBrokerRecord:
		return m.replayUnregisterBroker(r)
	case *logrecord.BrokerRegistrationChangeRecord:
		return m.replayBrokerChange(r)
	case *logrecord.FenceBrokerRecord:
		return m.replayBrokerChange(&logrecord.BrokerRegistrationChangeRecord{BrokerID: r.ID, BrokerEpoch: r.Epoch, Fenced: fence})
	case *logrecord.UnfenceBrokerRecord:
		return m.replayBrokerChange(&logrecord.BrokerRegistrationChangeRecord{BrokerID: r.ID, BrokerEpoch: r.Epoch, Fenced: unfence})
	case *logrecord.RegisterControllerRecord:
		return m.replayRegisterController(r)
	case *logrecord.UnregisterControllerRecord:
		return m.replayUnregisterController(r)
	case *logrecord.AccessControlEntryRecord:
		return m.replayACL(r)
	case *logrecord.RemoveAccessControlEntryRecord:
		return m.replayRemoveACL(r)
	case *logrecord.UserScramCredentialRecord:
		return m.replayScram(r)
	case *logrecord.RemoveUserScramCredentialRecord:
		return m.replayRemoveScram(r)
	case *logrecord.ClientQuotaRecord:
		return m.replayQuota(r)
	case *logrecord.DelegationTokenRecord:
		return m.replayToken(r)
	case *logrecord.RemoveDelegationTokenRecord:
		return m.replayRemoveToken(r)
	case *logrecord.BeginTransactionRecord:
		return m.beginTransaction(offset)
	case *logrecord.EndTransactionRecord:
		return m.endTransaction()
	case *logrecord.AbortTransactionRecord:
		return m.abortTransaction()
	case *logrecord.NoOpRecord, *logrecord.ZkMigrationStateRecord:
		return nil // nothing of the state: the one fills idle time, the other belongs to migrations from ZooKeeper, all over since Kafka 4.0
	}
	return fmt.Errorf("unknown type %d", record.Key())
}

func (m *Machine) beginTransaction(offset int64) error {
	if m.transaction != nil {
		return fmt.Errorf("a transaction begun at offset %d has not ended", m.transaction.startOffset)
	}
	m.transaction = &transaction{before: m.next, startOffset: offset}
	m.seal()
	return nil
}

func (m *Machine) endTransaction() error {
	if m.transaction == nil {
		return fmt.Errorf("no transaction is open")
	}
	m.transaction = nil
	return nil
}

func (m *Machine) abortTransaction() error {
	if m.transaction == nil {
		return fmt.Errorf("no transaction is open")
	}
	m.next = m.transaction.before
	m.transaction = nil
	m.seal()
	return nil
}
