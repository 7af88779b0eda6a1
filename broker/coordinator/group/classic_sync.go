package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

// SyncGroup asks for a member's assignment; the leader brings everyone's, which the machine keeps: nobody may change these bytes any more.
// The response, a *kmsg.SyncGroupResponse, comes as an Answer.
func (m *Machine) SyncGroup(nowMs int64, req *kmsg.SyncGroupRequest, t machine.Token) (machine.Effects, error) {
	o := m.begin(nowMs)
	g := m.groups[req.Group]
	if g == nil || g.state == stateEmpty {
		o.answer(t, syncError(kerr.UnknownMemberID))
		return o.effects, nil
	}
	if err := g.validateSync(req); err != nil {
		o.answer(t, syncError(err))
		return o.effects, nil
	}
	member := g.byID[req.MemberID]
	switch g.state {
	case statePreparingRebalance:
		o.answer(t, syncError(kerr.RebalanceInProgress))
	case stateCompletingRebalance:
		// The member gave up on its earlier request, on another connection. Kafka leaves that one unanswered.
		o.answerSync(member, syncError(kerr.RebalanceInProgress))
		member.sync = t
		o.arrivedAtSync(g, member)
		if g.isLeader(member) && g.stored != g.generation {
			o.storeAssignment(g, req.GroupAssignment)
		}
	case stateStable:
		o.arrivedAtSync(g, member)
		o.answer(t, g.syncResponse(member))
	}
	return o.effects, nil
}

func (g *classicGroup) validateSync(req *kmsg.SyncGroupRequest) error {
	if err := g.validateMember(req.MemberID, req.InstanceID); err != nil {
		return err
	}
	if req.Generation != g.generation {
		return kerr.IllegalGeneration
	}
	differs := func(a, b *string) bool { return a != nil && b != nil && *a != *b }
	if differs(req.ProtocolType, g.typeOrNil()) || differs(req.Protocol, g.protocol) {
		return kerr.InconsistentGroupProtocol
	}
	return nil
}

// arrivedAtSync notes that a member of this generation has sent SyncGroup.
func (o *op) arrivedAtSync(g *classicGroup, member *member) {
	g.clearPendingSync(member)
	if g.pendingSync == 0 {
		o.timers.cancel(&g.sync)
	}
}

// storeAssignment logs what the leader decided. Members learn of it once it is committed: until then the group can still rebalance.
func (o *op) storeAssignment(g *classicGroup, decided []kmsg.SyncGroupRequestGroupAssignment) {
	assignment := make(map[string][]byte, len(decided))
	for _, a := range decided {
		if g.byID[a.MemberID] != nil {
			assignment[a.MemberID] = a.MemberAssignment
		}
	}
	record := groupRecord(g, assignment)
	if !o.fits(record) {
		o.abandonAssignment(g, kerr.UnknownServerError)
		o.rebalanceOrCompleteJoin(g)
		return
	}
	o.writeLive(record)
	g.stored = g.generation // a leader that asks again gets what it said first; in Kafka the log and the members may then differ
	m, generation := o.Machine, g.generation
	o.effects.Settled = func(nowMs int64, err error) machine.Effects {
		o := m.begin(nowMs)
		if m.groups[g.id] != g || g.state != stateCompletingRebalance || g.generation != generation {
			return o.effects
		}
		if err != nil {
			o.abandonAssignment(g, OperationError(err))
			o.rebalanceOrCompleteJoin(g)
			return o.effects
		}
		for _, member := range g.members {
			member.assignment = assignment[member.id]
			if member.assignment == nil {
				member.assignment = []byte{}
			}
			o.releaseSync(g, member, g.syncResponse(member))
		}
		g.transitionTo(stateStable, nowMs)
		return o.effects
	}
}

// abandonAssignment lets go of all that wait for the assignment of this generation.
func (o *op) abandonAssignment(g *classicGroup, err error) {
	for _, member := range g.members {
		member.assignment = []byte{}
		o.releaseSync(g, member, syncError(err))
	}
}

// releaseSync answers a member at the sync barrier; its session starts anew.
func (o *op) releaseSync(g *classicGroup, member *member, response *kmsg.SyncGroupResponse) {
	if member.sync != 0 {
		o.answerSync(member, response)
		o.restartHeartbeat(member, member.sessionTimeoutMs)
	}
}

func (o *op) answerSync(member *member, response *kmsg.SyncGroupResponse) {
	if member.sync != 0 {
		o.answer(member.sync, response)
		member.sync = 0
	}
}

func (g *classicGroup) syncResponse(member *member) *kmsg.SyncGroupResponse {
	r := kmsg.NewPtrSyncGroupResponse()
	r.ProtocolType = g.typeOrNil()
	r.Protocol = g.protocol
	r.MemberAssignment = member.assignment
	return r
}

func syncError(err error) *kmsg.SyncGroupResponse {
	r := kmsg.NewPtrSyncGroupResponse()
	r.ErrorCode = codeOf(err)
	r.MemberAssignment = []byte{}
	return r
}

// expirePendingSync removes the members that have joined this generation but have not asked for their assignment in time.
func (o *op) expirePendingSync(g *classicGroup) {
	if g.state != stateCompletingRebalance && g.state != stateStable || g.pendingSync == 0 {
		return
	}
	for i := 0; i < len(g.members); {
		if member := g.members[i]; member.pendingSync {
			o.removeMember(g, member, kerr.UnknownMemberID)
			continue
		}
		i++
	}
	o.prepareRebalance(g)
}
