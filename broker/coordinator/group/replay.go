package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/internal/assert"
)

// Replay applies one record.
func (m *Machine) Replay(offset int64, p machine.Producer, r machine.Record) {
	switch r := r.(type) {
	case *offsetRecord:
		m.replayOffset(offset, p, r)
	case *groupMetadataRecord:
		m.removeGroup(r.group)
		if r.value != nil {
			m.groups[r.group] = loadedGroup(r.group, r.value)
		}
	default:
		assert.That(false, "replay of a %T", r)
	}
}

func (m *Machine) replayOffset(offset int64, p machine.Producer, r *offsetRecord) {
	if r.offset == nil {
		m.offsets.remove(r.group, r.topic, r.partition)
		return
	}
	if m.groups[r.group] == nil {
		// A group that was never joined. Its state has no age of its own; that of the commit is as good, and the same for all who replay.
		m.groups[r.group] = newClassicGroup(r.group, r.offset.committedAtMs)
	}
	c := *r.offset
	c.recordOffset = offset
	if p.ID < 0 {
		m.offsets.put(r.group, r.topic, r.partition, &c)
		return
	}
	m.offsets.putPending(p.ID, r.group, r.topic, r.partition, &c)
}

// ReplayEndTxn applies the end of a producer's transaction: its offsets count from now on, or never.
func (m *Machine) ReplayEndTxn(p machine.Producer, commit bool) {
	m.offsets.endTransaction(p.ID, commit)
}

// loadedGroup is a group as the log has it: at rest.
func loadedGroup(id string, v *kmsg.GroupMetadataValue) *classicGroup {
	g := newClassicGroup(id, v.CurrentStateTimestamp)
	g.generation = v.Generation
	g.protocolType = v.ProtocolType
	g.protocol = v.Protocol
	for _, l := range v.Members {
		rebalanceTimeoutMs := l.RebalanceTimeoutMillis
		if rebalanceTimeoutMs == -1 {
			rebalanceTimeoutMs = l.SessionTimeoutMillis // of a version that had none
		}
		assignment := l.Assignment
		if assignment == nil {
			assignment = []byte{}
		}
		g.add(&member{
			id:                 l.MemberID,
			instanceID:         l.InstanceID,
			clientID:           l.ClientID,
			clientHost:         l.ClientHost,
			rebalanceTimeoutMs: rebalanceTimeoutMs,
			sessionTimeoutMs:   l.SessionTimeoutMillis,
			protocols:          []protocol{{name: *v.Protocol, metadata: l.Subscription}},
			assignment:         assignment,
		}, v.ProtocolType)
	}
	if len(g.members) > 0 {
		g.state = stateStable
	}
	if v.Leader != nil && g.byID[*v.Leader] != nil {
		g.leader = *v.Leader
	}
	g.computeSubscribed()
	return g
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
