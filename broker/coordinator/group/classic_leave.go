package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

// LeaveGroup removes members, each by its member id, or by its instance id alone as an administrator does.
func (m *Machine) LeaveGroup(nowMs int64, groupID string, leaving []kmsg.LeaveGroupRequestMember) ([]kmsg.LeaveGroupResponseMember, machine.Effects) {
	o := m.begin(nowMs)
	g := m.groups[groupID]
	results := make([]kmsg.LeaveGroupResponseMember, len(leaving))
	left := false
	for i, l := range leaving {
		results[i] = kmsg.LeaveGroupResponseMember{MemberID: l.MemberID, InstanceID: l.InstanceID}
		err := error(kerr.UnknownMemberID)
		if g != nil {
			err = o.leave(g, l)
		}
		results[i].ErrorCode = codeOf(err)
		left = left || err == nil
	}
	if left {
		switch g.state {
		case stateStable, stateCompletingRebalance:
			o.rebalanceOrCompleteJoin(g)
		case statePreparingRebalance:
			o.completeJoinIfAllJoined(g)
		}
	}
	return results, o.effects
}

func (o *op) leave(g *classicGroup, l kmsg.LeaveGroupRequestMember) error {
	memberID := l.MemberID
	if memberID == "" {
		if l.InstanceID == nil {
			return kerr.UnknownMemberID
		}
		owner, ok := g.static[*l.InstanceID]
		if !ok {
			return kerr.UnknownMemberID
		}
		memberID = owner
	} else if g.pendingJoin[memberID] != nil {
		o.removePending(g, memberID)
		return nil
	}
	if err := g.validateMember(memberID, l.InstanceID); err != nil {
		return err
	}
	o.removeMember(g, g.byID[memberID], kerr.UnknownMemberID)
	return nil
}
