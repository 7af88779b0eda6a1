// Package group is the group coordinator as a pure machine: the classic group protocol (join and sync barriers, static members, timeouts)
// and committed offsets, with the states, error codes and records of Apache Kafka 4.4. One Machine holds the groups of one partition of
// __consumer_offsets.
//
// Offsets change only when their records are replayed. A classic group is richer than its records: who waits at a barrier, who is about
// to join, what protocols a member offers besides the chosen one, and all timers live in memory only, as in Kafka, and change as
// operations run. Its GroupMetadata records are therefore written "live" (machine.Effects.Live): they say what a new coordinator has to
// start from. In the states Stable and Empty a machine loaded from the log has the same groups as the one that wrote it.
package group

import (
	"sluice/broker/coordinator/machine"
)

// Topic is the internal topic that holds groups and offsets.
const Topic = "__consumer_offsets"

// NewMemberJoinTimeoutMs is how long a new member's first JoinGroup may wait at the join barrier (Kafka's constant, five minutes).
const NewMemberJoinTimeoutMs = 300_000

// maxPendingMembers bounds how many member ids one group remembers of members that have not joined yet; a further one takes the place of the
// oldest, whose owner has to ask again. Kafka has no such bound. A group must not be closed to newcomers by somebody who only asks for ids.
const maxPendingMembers = 10_000

// Config is what a machine needs to know of the broker's configuration.
type Config struct {
	InitialRebalanceDelayMs int32 // group.initial.rebalance.delay.ms
	MaxSize                 int   // group.max.size
	OffsetMetadataMaxSize   int   // offset.metadata.max.bytes, counted in UTF-16 code units as Kafka does
	OffsetsRetentionMs      int64 // offsets.retention.minutes, in ms
	OffsetsRetentionCheckMs int64 // offsets.retention.check.interval.ms
	MaxBatchBytes           int   // max.message.bytes of the topic: the most that one group's record can take
}

// Machine holds the groups and offsets of one partition of __consumer_offsets.
type Machine struct {
	config func() *Config

	groups  map[string]*classicGroup
	offsets offsetStore
	timers  timerHeap

	retention timer // the next look for expired offsets
}

// New returns a machine without groups. config is asked anew by each operation.
func New(config func() *Config) *Machine {
	return &Machine{
		config:    config,
		groups:    map[string]*classicGroup{},
		offsets:   newOffsetStore(),
		retention: timer{kind: retentionTimer},
	}
}

// An op is one operation under way: what it sees of the world, and the effects that it has gathered.
type op struct {
	*Machine
	cfg     *Config
	nowMs   int64
	effects machine.Effects
}

func (m *Machine) begin(nowMs int64) *op { return &op{Machine: m, cfg: m.config(), nowMs: nowMs} }

// answer decides a parked request. A zero token is one that nobody waits for.
func (o *op) answer(t machine.Token, response any) {
	if t != 0 {
		o.effects.Answers = append(o.effects.Answers, machine.Answer{Token: t, Response: response})
	}
}

// writeLive has a record logged that the machine's state already reflects.
func (o *op) writeLive(r machine.Record) {
	o.effects.Records = append(o.effects.Records, r)
	o.effects.Live = true
}

// Loaded starts the timers of what the log held. A group that outgrew group.max.size is made to rebalance, so that it can shrink.
func (m *Machine) Loaded(nowMs int64) machine.Effects {
	o := m.begin(nowMs)
	for _, id := range sortedKeys(m.groups) {
		g := m.groups[id]
		for _, member := range g.members {
			o.restartHeartbeat(member, member.sessionTimeoutMs)
		}
		if len(g.members) > o.cfg.MaxSize {
			o.prepareRebalance(g)
		}
	}
	o.timers.schedule(&m.retention, nowMs+o.cfg.OffsetsRetentionCheckMs)
	return o.effects
}

// Deadline is when Expire wants to be called next, in ms since the epoch.
func (m *Machine) Deadline() (atMs int64, ok bool) { return m.timers.deadline() }

// Expire runs one timer that is due; false when none is.
func (m *Machine) Expire(nowMs int64) (machine.Effects, bool) {
	t := m.timers.popDue(nowMs)
	if t == nil {
		return machine.Effects{}, false
	}
	o := m.begin(nowMs)
	switch t.kind {
	case heartbeatTimer:
		o.expireHeartbeat(t.group, t.member)
	case pendingMemberTimer:
		o.expirePendingMember(t.group, t.memberID)
	case initialJoinTimer:
		o.extendOrCompleteInitialJoin(t.group, t.delayMs, t.remainingMs)
	case joinTimer:
		o.completeJoin(t.group)
	case syncTimer:
		o.expirePendingSync(t.group)
	case retentionTimer:
		o.expireOffsets()
		o.timers.schedule(t, nowMs+o.cfg.OffsetsRetentionCheckMs)
	}
	return o.effects, true
}

// ClockMoved moves all timers by as much as the clock was set. What was committed when stays as it was said.
func (m *Machine) ClockMoved(byMs int64) { m.timers.shift(byMs) }

// removeGroup forgets a group and its timers. Its offsets are removed by records of their own.
func (m *Machine) removeGroup(id string) {
	g := m.groups[id]
	if g == nil {
		return
	}
	for _, member := range g.members {
		m.timers.cancel(&member.heartbeat)
	}
	for _, t := range g.pendingJoin {
		m.timers.cancel(t)
	}
	m.timers.cancel(&g.join)
	m.timers.cancel(&g.sync)
	delete(m.groups, id)
}
