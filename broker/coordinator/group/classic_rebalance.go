package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
)

// rebalanceOrCompleteJoin starts a rebalance, or goes on with the one that gathers members already.
func (o *op) rebalanceOrCompleteJoin(g *classicGroup) {
	if g.canRebalance() {
		o.prepareRebalance(g)
		return
	}
	o.completeJoinIfAllJoined(g)
}

// prepareRebalance opens the join barrier. The first rebalance of an empty group stays open for a while, as members tend to start together.
func (o *op) prepareRebalance(g *classicGroup) {
	if g.state == stateCompletingRebalance {
		o.abandonAssignment(g, kerr.RebalanceInProgress)
	}
	g.clearAllPendingSync()
	o.timers.cancel(&g.sync)

	initial := g.state == stateEmpty
	g.transitionTo(statePreparingRebalance, o.nowMs)
	if initial {
		delay := int64(o.cfg.InitialRebalanceDelayMs)
		o.extendInitialJoin(g, delay, max(int64(g.rebalanceTimeoutMs())-delay, 0))
		return
	}
	if g.hasAllMembersJoined() {
		o.completeJoin(g)
		return
	}
	o.startJoinTimer(g)
}

func (o *op) startJoinTimer(g *classicGroup) {
	o.timers.cancel(&g.join)
	g.join.kind = joinTimer
	o.timers.schedule(&g.join, o.nowMs+int64(g.rebalanceTimeoutMs()))
}

// extendInitialJoin keeps the first barrier open for delayMs; remainingMs is how much longer it may stay open after that.
func (o *op) extendInitialJoin(g *classicGroup, delayMs, remainingMs int64) {
	o.timers.cancel(&g.join)
	g.join.kind, g.join.delayMs, g.join.remainingMs = initialJoinTimer, delayMs, remainingMs
	o.timers.schedule(&g.join, o.nowMs+delayMs)
}

// extendOrCompleteInitialJoin closes the first barrier unless a member has come since it was last looked at.
func (o *op) extendOrCompleteInitialJoin(g *classicGroup, delayMs, remainingMs int64) {
	if !g.newMemberAdded || remainingMs == 0 {
		o.completeJoin(g)
		return
	}
	g.newMemberAdded = false
	o.extendInitialJoin(g, min(int64(o.cfg.InitialRebalanceDelayMs), remainingMs), max(remainingMs-delayMs, 0))
}

// completeJoinIfAllJoined closes the barrier early when nobody is missing; the first barrier waits for its time.
func (o *op) completeJoinIfAllJoined(g *classicGroup) {
	if g.state == statePreparingRebalance && g.previousState != stateEmpty && g.hasAllMembersJoined() {
		o.completeJoin(g)
	}
}

// completeJoin closes the join barrier: who is not back is out, but for static members, and all others get the new generation.
func (o *op) completeJoin(g *classicGroup) {
	o.timers.cancel(&g.join)
	for i := 0; i < len(g.members); {
		if member := g.members[i]; member.join == 0 && member.instanceID == nil {
			o.removeMember(g, member, kerr.UnknownMemberID)
			continue
		}
		i++
	}
	if !g.electJoinedLeader() && len(g.members) > 0 {
		o.startJoinTimer(g) // only absent static members: one of them has to come and lead
		return
	}
	g.nextGeneration(o.nowMs)
	if g.state == stateEmpty {
		o.writeLive(groupRecord(g, nil))
		return
	}
	for _, member := range g.members {
		o.answerJoin(g, member, g.joinResponse(member))
		o.restartHeartbeat(member, member.sessionTimeoutMs)
		member.isNew = false
		g.setPendingSync(member)
	}
	o.timers.schedule(&g.sync, o.nowMs+int64(g.rebalanceTimeoutMs()))
}
