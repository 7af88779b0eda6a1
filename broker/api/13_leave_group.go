// LeaveGroup, versions 0 to 5.
//
//	1: throttle time. 3: several members, by member id or instance id (KIP-345). 4: flexible. 5: reasons (KIP-800).
//
// Differences from Apache Kafka: a SyncGroup of the leaving member that still waits is answered with UNKNOWN_MEMBER_ID; Kafka never
// answers it.
package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
)

// firstLeaveManyMembers is the version of LeaveGroup that names several members.
const firstLeaveManyMembers = 3

func (h *Handlers) leaveGroup(c *Context, request *kmsg.LeaveGroupRequest) Reply {
	response := request.ResponseKind().(*kmsg.LeaveGroupResponse)
	if request.Group == "" {
		response.ErrorCode = kerr.InvalidGroupID.Code
		return Respond(response)
	}
	leaving := request.Members
	if c.Version < firstLeaveManyMembers {
		leaving = []kmsg.LeaveGroupRequestMember{{MemberID: request.MemberID}}
	}
	reply, complete := c.Pending()
	var results []kmsg.LeaveGroupResponseMember
	h.submitGroup(request.Group, func(m *group.Machine, nowMs int64) (effects machine.Effects, err error) {
		results, effects = m.LeaveGroup(nowMs, request.Group, leaving)
		return effects, nil
	}, func(err error) {
		switch {
		case err != nil:
			response.ErrorCode = c.code(err)
		case c.Version < firstLeaveManyMembers:
			response.ErrorCode = results[0].ErrorCode
		default:
			response.Members = results
		}
		complete(response)
	})
	return reply
}
