// DescribeGroups, versions 0 to 6.
//
//	1: throttle time. 3: authorized operations (KIP-430). 4: group_instance_id (KIP-345). 5: flexible. 6: GROUP_ID_NOT_FOUND with a
//	message; before, a group that does not exist is Dead (KIP-1043).
//
// Differences from Apache Kafka: results are in the order of the request; Kafka sorts them by partition.
package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
)

func (h *Handlers) describeGroups(c *Context, request *kmsg.DescribeGroupsRequest) Reply {
	reply, complete := c.PendingReply()
	var size answerSize
	results := make([]kmsg.DescribeGroupsResponseGroup, len(request.Groups))
	all := newCountdown(len(results), func() {
		if size.over() {
			complete(answerTooLarge())
			return
		}
		response := request.ResponseKind().(*kmsg.DescribeGroupsResponse)
		response.Groups = results
		complete(Respond(response))
	})
	for i, id := range request.Groups {
		h.submitGroup(id, func(m *group.Machine, nowMs int64) (machine.Effects, error) {
			if !size.over() {
				results[i] = m.DescribeGroup(id, c.Version)
				size.add(describedGroupBytes(&results[i]))
			}
			return machine.Effects{}, nil
		}, func(err error) {
			switch {
			case err != nil:
				results[i] = kmsg.NewDescribeGroupsResponseGroup()
				results[i].Group, results[i].ErrorCode = id, c.code(err)
			case request.IncludeAuthorizedOperations && results[i].ErrorCode == 0:
				results[i].AuthorizedOperations = groupOperations
			}
			all.done()
		})
	}
	return reply
}
