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
	reply, complete := c.Pending()
	results := make([]kmsg.DescribeGroupsResponseGroup, len(request.Groups))
	all := newCountdown(len(results), func() {
		response := request.ResponseKind().(*kmsg.DescribeGroupsResponse)
		response.Groups = results
		complete(response)
	})
	for i, id := range request.Groups {
		h.submitGroup(id, func(m *group.Machine, nowMs int64) (machine.Effects, error) {
			results[i] = m.DescribeGroup(id, c.Version)
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
