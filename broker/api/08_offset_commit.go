// OffsetCommit, versions 2 to 10.
//
//	2: retention_time_ms, for this commit only. 3: throttle time. 5: retention_time_ms is gone (KIP-211). 6: leader epochs (KIP-320).
//	7: group_instance_id (KIP-345). 8: flexible. 9: GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-848). 10: topic ids (KIP-848).
//
// Offsets of topics and partitions that exist are committed in one batch, all or none. A commit with generation -1 and no member id
// comes from a consumer that assigns partitions itself, and is taken while the group is empty. The id of the topic is stored in every
// version, so that a topic made anew under the same name does not inherit the commit.
//
// Differences from Apache Kafka: results are in the order of the request; Kafka puts topics that it refuses in front.
package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
)

// firstCommitByTopicID is the version of OffsetCommit that names topics by id.
const firstCommitByTopicID = 10

func (h *Handlers) offsetCommit(c *Context, request *kmsg.OffsetCommitRequest) Reply {
	response := request.ResponseKind().(*kmsg.OffsetCommitResponse)
	response.Topics = make([]kmsg.OffsetCommitResponseTopic, 0, len(request.Topics))
	known := *request
	known.Topics = nil
	var places [][]*kmsg.OffsetCommitResponseTopicPartition // of known.Topics, in response
	image := h.Controller.Image()
	for _, t := range request.Topics {
		if len(t.Partitions) == 0 {
			continue
		}
		results := make([]kmsg.OffsetCommitResponseTopicPartition, len(t.Partitions))
		response.Topics = append(response.Topics, kmsg.OffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID, Partitions: results})
		if c.Version >= firstCommitByTopicID {
			t.Topic = h.topicName(t.TopicID)
		}
		topic, exists := image.Topic(t.Topic)
		asked := t.Partitions
		t.Partitions = nil
		var place []*kmsg.OffsetCommitResponseTopicPartition
		for j, p := range asked {
			results[j].Partition = p.Partition
			switch {
			case !exists && c.Version >= firstCommitByTopicID:
				results[j].ErrorCode = kerr.UnknownTopicID.Code
			case !exists || p.Partition < 0 || int(p.Partition) >= len(topic.Partitions):
				results[j].ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				t.Partitions = append(t.Partitions, p)
				place = append(place, &results[j])
			}
		}
		if len(t.Partitions) > 0 {
			t.TopicID = topic.ID
			known.Topics = append(known.Topics, t)
			places = append(places, place)
		}
	}
	if len(known.Topics) == 0 {
		return Respond(response)
	}
	reply, complete := c.Pending()
	var committed *kmsg.OffsetCommitResponse
	h.submitGroup(known.Group, func(m *group.Machine, nowMs int64) (effects machine.Effects, err error) {
		committed, effects, err = m.CommitOffsets(nowMs, &known)
		return effects, err
	}, func(err error) {
		for i, place := range places {
			for j, result := range place {
				if err != nil {
					result.ErrorCode = c.code(err)
				} else {
					result.ErrorCode = committed.Topics[i].Partitions[j].ErrorCode
				}
			}
		}
		complete(response)
	})
	return reply
}
