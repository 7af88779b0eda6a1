// DeleteGroups, versions 0 to 3.
//
//	1: throttle time. 2: flexible. 3: error messages, of which classic groups have none.
//
// A group without members is deleted with its offsets. A group named twice is deleted, and answered, once.
//
// Differences from Apache Kafka: results are in the order of the request; Kafka sorts them by partition.
package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
)

func (h *Handlers) deleteGroups(c *Context, request *kmsg.DeleteGroupsRequest) Reply {
	reply, complete := c.Pending()
	ids := distinct(request.Groups)
	results := make([]kmsg.DeleteGroupsResponseGroup, len(ids))
	all := newCountdown(len(ids), func() {
		response := request.ResponseKind().(*kmsg.DeleteGroupsResponse)
		response.Groups = results
		complete(response)
	})
	for i, id := range ids {
		h.submitGroup(id, func(m *group.Machine, nowMs int64) (machine.Effects, error) {
			deleted, effects := m.DeleteGroups(nowMs, ids[i:i+1])
			results[i] = deleted[0]
			return effects, nil
		}, func(err error) {
			if err != nil {
				results[i] = kmsg.DeleteGroupsResponseGroup{Group: id, ErrorCode: c.code(err)}
			}
			all.done()
		})
	}
	return reply
}

// distinct returns the names without those that came before.
func distinct(names []string) []string {
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}
