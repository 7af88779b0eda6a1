// OffsetDelete, version 0 (KIP-496).
//
// Deletes committed offsets of topics that no member of the group is subscribed to. A group whose members are not consumers must be
// empty, as what they read is not known.
//
// Differences from Apache Kafka: results are in the order of the request; Kafka puts topics that it refuses in front.
package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
)

func (h *Handlers) offsetDelete(c *Context, request *kmsg.OffsetDeleteRequest) Reply {
	response := request.ResponseKind().(*kmsg.OffsetDeleteResponse)
	if request.Group == "" {
		response.ErrorCode = kerr.InvalidGroupID.Code
		return Respond(response)
	}
	known := *request
	known.Topics = nil
	topics := make([]kmsg.OffsetDeleteResponseTopic, 0, len(request.Topics))
	var places [][]*kmsg.OffsetDeleteResponseTopicPartition // of known.Topics, in topics
	image := h.Controller.Image()
	for _, t := range request.Topics {
		if len(t.Partitions) == 0 {
			continue
		}
		results := make([]kmsg.OffsetDeleteResponseTopicPartition, len(t.Partitions))
		topics = append(topics, kmsg.OffsetDeleteResponseTopic{Topic: t.Topic, Partitions: results})
		topic, exists := image.Topic(t.Topic)
		asked := t.Partitions
		t.Partitions = nil
		var place []*kmsg.OffsetDeleteResponseTopicPartition
		for j, p := range asked {
			results[j].Partition = p.Partition
			if !exists || p.Partition < 0 || int(p.Partition) >= len(topic.Partitions) {
				results[j].ErrorCode = kerr.UnknownTopicOrPartition.Code
				continue
			}
			t.Partitions = append(t.Partitions, p)
			place = append(place, &results[j])
		}
		if len(t.Partitions) > 0 {
			known.Topics = append(known.Topics, t)
			places = append(places, place)
		}
	}
	reply, complete := c.Pending()
	var deleted *kmsg.OffsetDeleteResponse
	h.submitGroup(known.Group, func(m *group.Machine, nowMs int64) (effects machine.Effects, err error) {
		deleted, effects, err = m.DeleteOffsets(nowMs, &known)
		return effects, err
	}, func(err error) {
		if err != nil {
			response.ErrorCode = c.code(err)
			complete(response)
			return
		}
		for i, place := range places {
			for j, result := range place {
				result.ErrorCode = deleted.Topics[i].Partitions[j].ErrorCode
			}
		}
		response.Topics = topics
		complete(response)
	})
	return reply
}
