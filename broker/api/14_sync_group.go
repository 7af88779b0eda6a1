// SyncGroup, versions 0 to 5.
//
//	1: throttle time. 3: group_instance_id (KIP-345). 4: flexible. 5: protocol type and name, which must be there (KIP-559).
//
// The answer is held until the leader's assignment is committed.
//
// Differences from Apache Kafka: a member that sends SyncGroup again while its first one waits has the first one answered with
// REBALANCE_IN_PROGRESS; Kafka never answers it.
package api

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
)

// firstSyncWithProtocol is the version of SyncGroup that names the protocol.
const firstSyncWithProtocol = 5

func (h *Handlers) syncGroup(c *Context, request *kmsg.SyncGroupRequest) Reply {
	failed := func(err error) *kmsg.SyncGroupResponse {
		response := request.ResponseKind().(*kmsg.SyncGroupResponse)
		response.ErrorCode = c.code(err)
		return response
	}
	if c.Version >= firstSyncWithProtocol && (request.ProtocolType == nil || request.Protocol == nil) {
		return Respond(failed(kerr.InconsistentGroupProtocol))
	}
	if request.Group == "" {
		return Respond(failed(kerr.InvalidGroupID))
	}
	for i := range request.GroupAssignment {
		request.GroupAssignment[i].MemberAssignment = bytes.Clone(request.GroupAssignment[i].MemberAssignment)
	}
	c.Request.Release() // the answer may take minutes
	reply, complete := c.Pending()
	h.parkGroup(request.Group, func(m *group.Machine, nowMs int64, t machine.Token) (machine.Effects, error) {
		return m.SyncGroup(nowMs, request, t)
	}, func(answer any, err error) {
		if err != nil {
			complete(failed(err))
			return
		}
		complete(answer.(*kmsg.SyncGroupResponse))
	})
	return reply
}
