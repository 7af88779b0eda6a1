// Heartbeat, versions 0 to 4.
//
//	1: throttle time. 3: group_instance_id (KIP-345). 4: flexible.
//
// REBALANCE_IN_PROGRESS asks the member to join again. While the coordinator is loading the member is told that all is well, so that it
// keeps its place (as Kafka does).
//
// Differences from Apache Kafka: none.
package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
)

func (h *Handlers) heartbeat(c *Context, request *kmsg.HeartbeatRequest) Reply {
	response := request.ResponseKind().(*kmsg.HeartbeatResponse)
	if request.Group == "" {
		response.ErrorCode = kerr.InvalidGroupID.Code
		return Respond(response)
	}
	reply, complete := c.Pending()
	h.submitGroup(request.Group, func(m *group.Machine, nowMs int64) (machine.Effects, error) {
		return m.Heartbeat(nowMs, request)
	}, func(err error) {
		if !errors.Is(err, kerr.CoordinatorLoadInProgress) {
			response.ErrorCode = c.code(err)
		}
		complete(response)
	})
	return reply
}
