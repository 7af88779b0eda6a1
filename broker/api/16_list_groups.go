// ListGroups, versions 0 to 5.
//
//	1: throttle time. 3: flexible. 4: states, and a filter by them (KIP-518). 5: types, and a filter by them (KIP-848).
//
// It lists the groups of which this node is the coordinator: clients ask all brokers.
//
// Differences from Apache Kafka: none.
package api

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
)

func (h *Handlers) listGroups(c *Context, request *kmsg.ListGroupsRequest) Reply {
	reply, complete := c.Pending()
	partitions := h.Groups.Partitions()
	listed := make([][]kmsg.ListGroupsResponseGroup, len(partitions))
	failed := make([]error, len(partitions))
	all := newCountdown(len(partitions), func() {
		response := request.ResponseKind().(*kmsg.ListGroupsResponse)
		if i := slices.IndexFunc(failed, func(err error) bool { return err != nil }); i >= 0 {
			response.ErrorCode = c.code(failed[i])
		} else {
			response.Groups = slices.Concat(listed...)
		}
		complete(response)
	})
	for i, partition := range partitions {
		h.Groups.Submit(partition, func(m *group.Machine, nowMs int64) (machine.Effects, error) {
			listed[i] = m.ListGroups(request.StatesFilter, request.TypesFilter)
			return machine.Effects{}, nil
		}, func(err error) {
			if err = group.OperationError(err); errors.Is(err, kerr.NotCoordinator) {
				listed[i] = nil // it has moved; its new coordinator lists it
			} else {
				failed[i] = err
			}
			all.done()
		})
	}
	return reply
}
