package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

// A JoinRequest is a JoinGroup request and what the machine needs of its surroundings.
type JoinRequest struct {
	*kmsg.JoinGroupRequest
	ClientID   string
	ClientHost string // as Kafka prints it: "/127.0.0.1"
	RandomUUID string // what a new member id ends with
}

// firstJoinNeedsID is the version of JoinGroup from which on a new member is first given an id, and joins with it.
const firstJoinNeedsID = 4

// firstSkipAssignment is the version of JoinGroup from which on a static member that leads is told to keep the present assignment.
const firstSkipAssignment = 9

// JoinGroup adds or updates a member, and keeps the request's metadata, which nobody may change any more. The response, a
// *kmsg.JoinGroupResponse, comes as an Answer.
func (m *Machine) JoinGroup(nowMs int64, req *JoinRequest, t machine.Token) (machine.Effects, error) {
	o := m.begin(nowMs)
	g := m.groups[req.Group]
	isNewGroup := g == nil
	if isNewGroup {
		if req.MemberID != "" {
			o.answer(t, joinError(req.MemberID, kerr.UnknownMemberID))
			return o.effects, nil
		}
		g = newClassicGroup(req.Group, nowMs)
		m.groups[req.Group] = g
	}
	var err error
	switch {
	case !o.acceptsJoin(g, req.MemberID):
		if member := g.byID[req.MemberID]; member != nil {
			o.removeMember(g, member, kerr.GroupMaxSizeReached)
		} else {
			o.removePending(g, req.MemberID)
		}
		o.answer(t, joinError("", kerr.GroupMaxSizeReached))
	case req.MemberID == "":
		o.joinNew(g, req, t)
	default:
		err = o.joinExisting(g, req, t)
	}
	if isNewGroup && len(o.effects.Records) == 0 {
		// From here on the group exists for a coordinator that takes over, too.
		o.writeLive(emptyGroupRecord(g))
	}
	return o.effects, err
}

// acceptsJoin applies group.max.size. While members gather, those that are back first are in.
func (o *op) acceptsJoin(g *classicGroup, memberID string) bool {
	member := g.byID[memberID]
	switch g.state {
	case stateEmpty:
		return true
	case statePreparingRebalance:
		return member != nil && member.join != 0 || g.awaitingJoin < o.cfg.MaxSize
	default:
		return member != nil || len(g.members) < o.cfg.MaxSize
	}
}

// joinNew is JoinGroup without a member id.
func (o *op) joinNew(g *classicGroup, req *JoinRequest, t machine.Token) {
	if !g.supports(req.ProtocolType, req.Protocols) {
		o.answer(t, joinError("", kerr.InconsistentGroupProtocol))
		return
	}
	if req.InstanceID != nil {
		id := *req.InstanceID + "-" + req.RandomUUID
		if owner, ok := g.static[*req.InstanceID]; ok {
			o.replaceStatic(g, g.byID[owner], req, id, t)
		} else {
			o.addMember(g, req, id, t)
		}
		return
	}
	id := req.ClientID + "-" + req.RandomUUID
	if req.Version < firstJoinNeedsID {
		o.addMember(g, req, id, t)
		return
	}
	for len(g.pendingJoin) >= maxPendingMembers {
		o.removePending(g, g.pendingOrder[0])
		g.pendingOrder = g.pendingOrder[1:]
	}
	pending := &timer{kind: pendingMemberTimer, group: g, memberID: id}
	g.addPending(id, pending)
	o.timers.schedule(pending, o.nowMs+int64(req.SessionTimeoutMillis))
	o.answer(t, joinError(id, kerr.MemberIDRequired))
}

// joinExisting is JoinGroup with a member id: a first join with the id that was asked for, or a member that joins again.
func (o *op) joinExisting(g *classicGroup, req *JoinRequest, t machine.Token) error {
	if !g.supports(req.ProtocolType, req.Protocols) {
		o.answer(t, joinError(req.MemberID, kerr.InconsistentGroupProtocol))
		return nil
	}
	if g.pendingJoin[req.MemberID] != nil {
		if req.InstanceID != nil {
			return kerr.UnknownServerError // ids are handed out to dynamic members only
		}
		o.addMember(g, req, req.MemberID, t)
		return nil
	}
	if err := g.validateMember(req.MemberID, req.InstanceID); err != nil {
		o.answer(t, joinError(req.MemberID, err))
		return nil
	}
	member := g.byID[req.MemberID]
	switch g.state {
	case statePreparingRebalance:
		o.updateMember(g, member, req, t)
		o.rebalanceOrCompleteJoin(g)
	case stateCompletingRebalance:
		if member.offers(req.Protocols) {
			// The answer to its last JoinGroup got lost.
			o.answer(t, g.joinResponse(member))
			return nil
		}
		o.updateMember(g, member, req, t)
		o.rebalanceOrCompleteJoin(g)
	case stateStable:
		if !g.isLeader(member) && member.offers(req.Protocols) {
			o.answer(t, g.joinResponse(member))
			return nil
		}
		// The leader joins again when it has seen topics change, others when their own subscription did.
		o.updateMember(g, member, req, t)
		o.rebalanceOrCompleteJoin(g)
	default:
		o.answer(t, joinError(req.MemberID, kerr.UnknownMemberID))
	}
	return nil
}

// addMember takes in a new member, which then waits at the join barrier.
func (o *op) addMember(g *classicGroup, req *JoinRequest, id string, t machine.Token) {
	o.removePending(g, id)
	if g.state == statePreparingRebalance && g.previousState == stateEmpty {
		g.newMemberAdded = true
	}
	member := &member{
		id:                 id,
		instanceID:         req.InstanceID,
		clientID:           req.ClientID,
		clientHost:         req.ClientHost,
		rebalanceTimeoutMs: req.RebalanceTimeoutMillis,
		sessionTimeoutMs:   req.SessionTimeoutMillis,
		protocols:          keepProtocols(req.Protocols),
		assignment:         []byte{},
		join:               t,
		isNew:              true,
	}
	g.add(member, req.ProtocolType)
	o.restartHeartbeat(member, NewMemberJoinTimeoutMs)
	o.rebalanceOrCompleteJoin(g)
}

// updateMember notes what a member says when it joins again, and has it wait at the join barrier.
func (o *op) updateMember(g *classicGroup, member *member, req *JoinRequest, t machine.Token) {
	g.count(member, -1)
	member.protocols = keepProtocols(req.Protocols)
	g.count(member, 1)
	member.rebalanceTimeoutMs = req.RebalanceTimeoutMillis
	member.sessionTimeoutMs = req.SessionTimeoutMillis
	if member.join == 0 {
		g.awaitingJoin++
	}
	// The member gave up on its earlier request, on another connection. Kafka leaves that one unanswered.
	o.answer(member.join, joinError(member.id, kerr.RebalanceInProgress))
	member.join = t
}

// replaceStatic gives a static member's place to its new incarnation, under a new member id. As long as that does not change the chosen
// protocol, the generation and all assignments stay.
func (o *op) replaceStatic(g *classicGroup, old *member, req *JoinRequest, id string, t machine.Token) {
	previousLeader := g.leader
	o.answerJoin(g, old, joinError(old.id, kerr.FencedInstanceID))
	o.answerSync(old, syncError(kerr.FencedInstanceID))
	o.timers.cancel(&old.heartbeat)

	replaced := *old
	member := &replaced
	member.id = id
	member.isNew = false
	member.heartbeat = timer{kind: heartbeatTimer, group: g, member: member}
	for i := range g.members {
		if g.members[i] == old {
			g.members[i] = member
		}
	}
	delete(g.byID, old.id)
	g.byID[id] = member
	g.static[*req.InstanceID] = id
	if g.leader == old.id {
		g.leader = id
	}
	g.clearPendingSync(member)
	// Kafka goes on with the session timeout that the predecessor gave, until the first heartbeat.
	o.restartHeartbeat(member, member.sessionTimeoutMs)
	o.updateMember(g, member, req, t)

	switch g.state {
	case stateStable:
		if *g.protocol != g.selectProtocol() {
			o.rebalanceOrCompleteJoin(g)
			return
		}
		record := groupRecord(g, nil)
		if !o.fits(record) {
			o.rebalanceOrCompleteJoin(g)
			return
		}
		g.computeSubscribed() // as a coordinator that takes over will; Kafka leaves it until then
		o.writeLive(record)
		o.effects.Settled = o.settleStatic(g, member, req.Version, previousLeader)
	case stateCompletingRebalance:
		o.prepareRebalance(g)
	default:
		o.completeJoinIfAllJoined(g)
	}
}

// settleStatic answers the JoinGroup of a replaced static member once its new member id is committed. When that takes too long, the
// answer says so, but the new id stays: the record may still be committed, and the member comes again anyway.
func (o *op) settleStatic(g *classicGroup, member *member, version int16, previousLeader string) func(int64, error) machine.Effects {
	m, t, generation := o.Machine, member.join, g.generation
	return func(nowMs int64, err error) machine.Effects {
		o := m.begin(nowMs)
		if g.byID[member.id] != member || member.join != t {
			return o.effects // replaced again, or gone
		}
		if err != nil {
			response := joinError("", OperationError(err))
			response.Generation, response.Protocol, response.ProtocolType, response.LeaderID = g.generation, g.protocol, g.typeOrNil(), previousLeader
			o.answerJoin(g, member, response)
			o.restartHeartbeat(member, member.sessionTimeoutMs)
			return o.effects
		}
		if g.state != stateStable || g.generation != generation {
			return o.effects // a rebalance has begun: the member waits for it like all others
		}
		response := g.joinResponse(member)
		if version >= firstSkipAssignment {
			response.SkipAssignment = g.isLeader(member)
		} else {
			// Without a way to say "keep the assignment" the new leader must not believe that it leads: it would assign anew.
			response.LeaderID, response.Members = previousLeader, nil
		}
		o.answerJoin(g, member, response)
		o.restartHeartbeat(member, member.sessionTimeoutMs)
		return o.effects
	}
}

// joinResponse tells a member of this generation; the leader also who else there is.
func (g *classicGroup) joinResponse(member *member) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupResponse()
	r.MemberID = member.id
	r.Generation = g.generation
	r.ProtocolType = g.typeOrNil()
	r.Protocol = g.protocol
	r.LeaderID = g.leader
	if g.isLeader(member) {
		r.Members = g.joinMembers()
	}
	return r
}

func joinError(memberID string, err error) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupResponse()
	r.MemberID = memberID
	r.ErrorCode = codeOf(err)
	return r
}

// answerJoin answers a member that waits at the join barrier.
func (o *op) answerJoin(g *classicGroup, member *member, response *kmsg.JoinGroupResponse) {
	if member.join != 0 {
		o.answer(member.join, response)
		member.join = 0
		g.awaitingJoin--
	}
}

// removePending forgets a member id that was handed out.
func (o *op) removePending(g *classicGroup, memberID string) {
	if t := g.pendingJoin[memberID]; t != nil {
		o.timers.cancel(t)
		delete(g.pendingJoin, memberID)
	}
}

// removeMember takes a member out of the group and lets go of what it waits for.
func (o *op) removeMember(g *classicGroup, member *member, err error) {
	o.timers.cancel(&member.heartbeat)
	o.answerJoin(g, member, joinError("", err))
	o.answerSync(member, syncError(err))
	g.drop(member)
}

func (o *op) expirePendingMember(g *classicGroup, memberID string) {
	delete(g.pendingJoin, memberID)
	if g.state == statePreparingRebalance && g.hasAllMembersJoined() {
		o.completeJoin(g)
	}
}
