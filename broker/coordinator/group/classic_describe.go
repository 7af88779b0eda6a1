package group

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// classicType is the group type of ListGroups v5.
const classicType = "classic"

// firstDescribeNotFound is the version of DescribeGroups from which on a group that does not exist is an error, not only dead.
const firstDescribeNotFound = 6

// DescribeGroup tells all about one group.
func (m *Machine) DescribeGroup(id string, version int16) kmsg.DescribeGroupsResponseGroup {
	d := kmsg.NewDescribeGroupsResponseGroup()
	d.Group = id
	g := m.groups[id]
	if g == nil {
		d.State = stateDead
		if version >= firstDescribeNotFound {
			message := "Group " + id + " not found."
			d.ErrorCode, d.ErrorMessage = kerr.GroupIDNotFound.Code, &message
		}
		return d
	}
	d.State, d.ProtocolType = g.state.String(), g.protocolType
	if g.state == stateStable {
		d.Protocol = *g.protocol
	}
	d.Members = make([]kmsg.DescribeGroupsResponseGroupMember, len(g.members))
	for i, member := range g.members {
		d.Members[i] = kmsg.DescribeGroupsResponseGroupMember{
			MemberID:         member.id,
			InstanceID:       member.instanceID,
			ClientID:         member.clientID,
			ClientHost:       member.clientHost,
			ProtocolMetadata: []byte{},
			MemberAssignment: member.assignment,
		}
		if g.state == stateStable {
			d.Members[i].ProtocolMetadata = member.metadata(*g.protocol)
		}
	}
	return d
}

// ListGroups lists groups by id, ascending. Empty filters let all through; states are compared without regard to case.
func (m *Machine) ListGroups(states, types []string) []kmsg.ListGroupsResponseGroup {
	var list []kmsg.ListGroupsResponseGroup
	if !isIn(classicType, types) {
		return nil
	}
	for _, id := range sortedKeys(m.groups) {
		if g := m.groups[id]; isIn(g.state.String(), states) {
			list = append(list, kmsg.ListGroupsResponseGroup{
				Group:        id,
				ProtocolType: g.protocolType,
				GroupState:   g.state.String(),
				GroupType:    classicType,
			})
		}
	}
	return list
}

// isIn reports whether a filter lets a name through.
func isIn(name string, filter []string) bool {
	for _, f := range filter {
		if strings.EqualFold(strings.TrimSpace(f), name) {
			return true
		}
	}
	return len(filter) == 0
}
