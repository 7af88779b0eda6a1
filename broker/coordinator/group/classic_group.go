package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/internal/assert"
)

// consumerProtocolType is the protocol type of consumers, whose metadata the coordinator can read.
const consumerProtocolType = "consumer"

type groupState uint8

const (
	stateEmpty groupState = iota
	statePreparingRebalance
	stateCompletingRebalance
	stateStable
)

var stateNames = [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}

func (s groupState) String() string { return stateNames[s] }

// stateDead is what a group that does not exist is described as.
const stateDead = "Dead"

// validFrom[s] are the states from which a group moves to s.
var validFrom = [...][]groupState{
	stateEmpty:               {statePreparingRebalance},
	statePreparingRebalance:  {stateStable, stateCompletingRebalance, stateEmpty},
	stateCompletingRebalance: {statePreparingRebalance},
	stateStable:              {stateCompletingRebalance},
}

// noStateTimestamp stands for "never changed state", as in the log.
const noStateTimestamp = -1

// A classicGroup is one group of the classic protocol, or one that only has offsets.
type classicGroup struct {
	id            string
	state         groupState
	previousState groupState // before state; stateEmpty in statePreparingRebalance marks the initial rebalance
	stateSinceMs  int64      // noStateTimestamp when not known
	generation    int32
	protocolType  string  // empty: none, the group has never had members
	protocol      *string // chosen for this generation; nil: none
	leader        string  // member id; empty: none

	members      []*member // in the order of their joining
	byID         map[string]*member
	static       map[string]string // group.instance.id to member id
	pendingJoin  map[string]*timer // member ids handed out to members that have not joined yet
	pendingOrder []string          // the ids of pendingJoin, oldest first, and some that have joined or expired since
	awaitingJoin int               // members that wait at the join barrier
	pendingSync  int               // members of this generation that have not sent SyncGroup yet
	offered      map[string]int    // by protocol name: how many members offer it

	// subscribed are the topics of all members, nil when they are not known: another protocol type, or metadata that cannot be read.
	subscribed map[string]struct{}

	newMemberAdded bool  // since the initial rebalance was last extended
	stored         int32 // the last generation whose assignment was logged, committed or not

	join, sync timer
}

func newClassicGroup(id string, nowMs int64) *classicGroup {
	g := &classicGroup{
		id:           id,
		stateSinceMs: nowMs,
		byID:         map[string]*member{},
		static:       map[string]string{},
		pendingJoin:  map[string]*timer{},
		offered:      map[string]int{},
	}
	g.join = timer{kind: joinTimer, group: g}
	g.sync = timer{kind: syncTimer, group: g}
	return g
}

func (g *classicGroup) transitionTo(s groupState, nowMs int64) {
	assert.That(slices.Contains(validFrom[s], g.state), "group %q moves from %v to %v", g.id, g.state, s)
	g.previousState, g.state, g.stateSinceMs = g.state, s, nowMs
}

func (g *classicGroup) canRebalance() bool {
	return slices.Contains(validFrom[statePreparingRebalance], g.state)
}

func (g *classicGroup) isLeader(m *member) bool { return g.leader == m.id }

func (g *classicGroup) hasAllMembersJoined() bool {
	return len(g.members) == g.awaitingJoin && len(g.pendingJoin) == 0
}

// rebalanceTimeoutMs is the longest of all members'.
func (g *classicGroup) rebalanceTimeoutMs() int32 {
	var longest int32
	for _, m := range g.members {
		longest = max(longest, m.rebalanceTimeoutMs)
	}
	return longest
}

// usesConsumerProtocol reports whether the members are consumers.
func (g *classicGroup) usesConsumerProtocol() bool { return g.protocolType == consumerProtocolType }

// add takes in a member; the first one decides the protocol type and leads.
func (g *classicGroup) add(m *member, protocolType string) {
	if m.instanceID != nil {
		_, taken := g.static[*m.instanceID]
		assert.That(!taken, "group %q has two members with instance id %q", g.id, *m.instanceID)
		g.static[*m.instanceID] = m.id
	}
	if len(g.members) == 0 {
		g.protocolType = protocolType
	}
	assert.That(g.protocolType == protocolType, "group %q of type %q takes a member of type %q", g.id, g.protocolType, protocolType)
	if g.leader == "" {
		g.leader = m.id
	}
	m.heartbeat = timer{kind: heartbeatTimer, group: g, member: m}
	g.members = append(g.members, m)
	g.byID[m.id] = m
	g.count(m, 1)
	if m.join != 0 {
		g.awaitingJoin++
	}
}

// count adds n to the number of members behind each protocol that m offers.
func (g *classicGroup) count(m *member, n int) {
	for _, p := range m.protocols {
		if g.offered[p.name] += n; g.offered[p.name] == 0 {
			delete(g.offered, p.name)
		}
	}
}

// drop takes a member out of the books of the group. What it waits for and its timer are the caller's.
func (g *classicGroup) drop(m *member) {
	i := slices.Index(g.members, m)
	assert.That(i >= 0, "group %q drops a member that it has not", g.id)
	g.members = slices.Delete(g.members, i, i+1)
	delete(g.byID, m.id)
	g.count(m, -1)
	if m.join != 0 {
		g.awaitingJoin--
	}
	g.clearPendingSync(m)
	if m.instanceID != nil {
		delete(g.static, *m.instanceID)
	}
	if g.leader == m.id {
		g.leader = ""
		if len(g.members) > 0 {
			g.leader = g.members[0].id
		}
	}
}

func (g *classicGroup) setPendingSync(m *member) {
	if !m.pendingSync {
		m.pendingSync = true
		g.pendingSync++
	}
}

func (g *classicGroup) clearPendingSync(m *member) {
	if m.pendingSync {
		m.pendingSync = false
		g.pendingSync--
	}
}

func (g *classicGroup) clearAllPendingSync() {
	for _, m := range g.members {
		g.clearPendingSync(m)
	}
}

// electJoinedLeader makes sure that the leader is one of those at the barrier; false when nobody is.
func (g *classicGroup) electJoinedLeader() bool {
	if g.leader == "" {
		return false
	}
	if g.byID[g.leader].join != 0 {
		return true
	}
	for _, m := range g.members {
		if m.join != 0 {
			g.leader = m.id
			return true
		}
	}
	return false
}

// supports reports whether a member with these protocols can take part: in an empty group any, otherwise one that offers a protocol
// which all others have.
func (g *classicGroup) supports(protocolType string, protocols []kmsg.JoinGroupRequestProtocol) bool {
	if g.state == stateEmpty {
		return protocolType != "" && len(protocols) > 0
	}
	return g.protocolType == protocolType && slices.ContainsFunc(protocols, func(p kmsg.JoinGroupRequestProtocol) bool {
		return g.offered[p.Name] == len(g.members)
	})
}

// selectProtocol lets each member vote for the first protocol in its list that all members offer, and returns the winner.
func (g *classicGroup) selectProtocol() string {
	var names []string // in the order of their first vote
	votes := map[string]int{}
	for _, m := range g.members {
		i := slices.IndexFunc(m.protocols, func(p protocol) bool { return g.offered[p.name] == len(g.members) })
		assert.That(i >= 0, "member %q of group %q offers no protocol that all have", m.id, g.id)
		name := m.protocols[i].name
		if votes[name]++; votes[name] == 1 {
			names = append(names, name)
		}
	}
	return javaMapMax(names, votes)
}

// javaMapMax returns the name with the most votes; of several the one that comes first in a Java HashMap, which is where Kafka counts
// votes, so that both choose the same protocol.
func javaMapMax(names []string, votes map[string]int) string {
	capacity := 16
	for len(names) > capacity*3/4 {
		capacity *= 2
	}
	bucket := func(name string) int {
		h := uint32(machine.JavaHash(name))
		return int((h ^ h>>16) & uint32(capacity-1))
	}
	best := names[0]
	for _, name := range names[1:] {
		if votes[name] > votes[best] || votes[name] == votes[best] && bucket(name) < bucket(best) {
			best = name
		}
	}
	return best
}

// nextGeneration closes the join barrier: a new generation with its protocol, or an empty group.
func (g *classicGroup) nextGeneration(nowMs int64) {
	g.generation++
	g.protocol = nil
	next := stateEmpty
	if len(g.members) > 0 {
		selected := g.selectProtocol()
		g.protocol, next = &selected, stateCompletingRebalance
	}
	g.computeSubscribed()
	g.transitionTo(next, nowMs)
	g.clearAllPendingSync()
}

// computeSubscribed reads the topics that the members subscribe to out of their metadata.
func (g *classicGroup) computeSubscribed() {
	g.subscribed = nil
	if !g.usesConsumerProtocol() {
		return
	}
	if len(g.members) > 0 && g.protocol == nil {
		return
	}
	all := map[string]struct{}{}
	for _, m := range g.members {
		topics, ok := subscribedTopics(m.metadata(*g.protocol))
		if !ok {
			return
		}
		for _, t := range topics {
			all[t] = struct{}{}
		}
	}
	g.subscribed = all
}

// isSubscribedTo reports whether a member reads the topic. Where the members' metadata says nothing, consumers are taken to read all.
func (g *classicGroup) isSubscribedTo(topic string) bool {
	if g.subscribed == nil {
		return g.usesConsumerProtocol()
	}
	_, ok := g.subscribed[topic]
	return ok
}

// validateMember checks that a request comes from a member, and under an instance id from its present owner.
func (g *classicGroup) validateMember(memberID string, instanceID *string) error {
	if instanceID != nil {
		owner, ok := g.static[*instanceID]
		if !ok {
			return kerr.UnknownMemberID
		}
		if owner != memberID {
			return kerr.FencedInstanceID
		}
	}
	if g.byID[memberID] == nil {
		return kerr.UnknownMemberID
	}
	return nil
}

// joinMembers is the member list that only the leader gets.
func (g *classicGroup) joinMembers() []kmsg.JoinGroupResponseMember {
	list := make([]kmsg.JoinGroupResponseMember, len(g.members))
	for i, m := range g.members {
		list[i] = kmsg.JoinGroupResponseMember{MemberID: m.id, InstanceID: m.instanceID, ProtocolMetadata: m.metadata(*g.protocol)}
	}
	return list
}

// typeOrNil is the protocol type as responses carry it.
func (g *classicGroup) typeOrNil() *string {
	if g.protocolType == "" {
		return nil
	}
	t := g.protocolType // responses outlive this state of the group
	return &t
}

// addPending remembers a member id that is handed out.
func (g *classicGroup) addPending(id string, t *timer) {
	g.pendingJoin[id] = t
	if len(g.pendingOrder) >= 2*len(g.pendingJoin)+16 {
		g.pendingOrder = slices.DeleteFunc(g.pendingOrder, func(id string) bool { return g.pendingJoin[id] == nil })
	}
	g.pendingOrder = append(g.pendingOrder, id)
}
