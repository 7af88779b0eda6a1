package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

// Heartbeat keeps a member's session alive. The error is what the member is told: kerr.RebalanceInProgress when it has to join again.
func (m *Machine) Heartbeat(nowMs int64, req *kmsg.HeartbeatRequest) (machine.Effects, error) {
	o := m.begin(nowMs)
	g := m.groups[req.Group]
	if g == nil {
		return o.effects, kerr.UnknownMemberID
	}
	if err := g.validateMember(req.MemberID, req.InstanceID); err != nil {
		return o.effects, err
	}
	if req.Generation != g.generation {
		return o.effects, kerr.IllegalGeneration
	}
	member := g.byID[req.MemberID]
	o.restartHeartbeat(member, member.sessionTimeoutMs)
	if g.state == statePreparingRebalance {
		return o.effects, kerr.RebalanceInProgress
	}
	return o.effects, nil
}

// restartHeartbeat lets a member's session run for timeoutMs from now.
func (o *op) restartHeartbeat(member *member, timeoutMs int32) {
	o.timers.schedule(&member.heartbeat, o.nowMs+int64(timeoutMs))
}

// expireHeartbeat removes a member whose session ran out, unless it waits at a barrier: then it is us who are late.
func (o *op) expireHeartbeat(g *classicGroup, member *member) {
	if member.hasSatisfiedHeartbeat() {
		return
	}
	o.removeMember(g, member, kerr.UnknownMemberID)
	switch g.state {
	case stateStable, stateCompletingRebalance:
		o.rebalanceOrCompleteJoin(g)
	case statePreparingRebalance:
		if g.hasAllMembersJoined() {
			o.completeJoin(g)
		}
	}
}
