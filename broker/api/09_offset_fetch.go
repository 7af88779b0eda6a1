// OffsetFetch, versions 1 to 10.
//
//	2: null topics ask for all, error code of the group. 3: throttle time. 5: leader epochs (KIP-320). 6: flexible. 7: require_stable
//	(KIP-447). 8: several groups (KIP-709). 9: member id and epoch of consumer groups (KIP-848). 10: topic ids.
//
// Partitions without a commit have offset -1 and no error, also when there is no such group.
//
// Differences from Apache Kafka: without require_stable Kafka answers from the last committed state at once, we wait until what is
// already written is committed; the answer is the newer one. In all versions a commit of a topic that was deleted and made anew is not
// given out, in Kafka only from version 10 on. Results are in the order of the request; Kafka puts unknown topics at the end.
package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
)

const (
	firstFetchGroupError   = 2  // the version of OffsetFetch from which on a group has an error code of its own
	firstFetchManyGroups   = 8  // the version of OffsetFetch with several groups
	firstFetchByTopicID    = 10 // the version of OffsetFetch that names topics by id
	noCommittedOffset      = -1
	noCommittedLeaderEpoch = -1
)

func (h *Handlers) offsetFetch(c *Context, request *kmsg.OffsetFetchRequest) Reply {
	groups := request.Groups
	if c.Version < firstFetchManyGroups {
		groups = []kmsg.OffsetFetchRequestGroup{oneGroup(request)}
	}
	reply, complete := c.PendingReply()
	var size answerSize
	results := make([]kmsg.OffsetFetchResponseGroup, len(groups))
	all := newCountdown(len(groups), func() {
		if size.over() {
			complete(answerTooLarge())
			return
		}
		response := request.ResponseKind().(*kmsg.OffsetFetchResponse)
		response.Groups = results
		if c.Version < firstFetchManyGroups {
			onlyGroup(response, &results[0])
		}
		complete(Respond(response))
	})
	for i := range groups {
		h.fetchOffsets(c, groups[i], request.RequireStable, func(result kmsg.OffsetFetchResponseGroup) {
			if size.add(fetchedOffsetsBytes(&result)) {
				results[i] = result
			}
			all.done()
		})
	}
	return reply
}

func (h *Handlers) fetchOffsets(c *Context, asked kmsg.OffsetFetchRequestGroup, requireStable bool, done func(kmsg.OffsetFetchResponseGroup)) {
	var unknown []int // indexes of topics that do not exist
	if asked.Topics != nil {
		asked.Topics = append([]kmsg.OffsetFetchRequestGroupTopic{}, asked.Topics...)
	}
	image := h.Controller.Image()
	for i := range asked.Topics {
		t := &asked.Topics[i]
		if c.Version >= firstFetchByTopicID {
			if t.Topic = h.topicName(t.TopicID); t.Topic == "" {
				unknown = append(unknown, i)
			}
		} else if topic, ok := image.Topic(t.Topic); ok {
			t.TopicID = topic.ID
		}
	}
	var fetched kmsg.OffsetFetchResponseGroup
	h.submitGroup(asked.Group, func(m *group.Machine, nowMs int64) (machine.Effects, error) {
		fetched = m.FetchOffsets(&asked, requireStable)
		return machine.Effects{}, nil
	}, func(err error) {
		switch {
		case err != nil && c.Version < firstFetchGroupError:
			fetched = kmsg.OffsetFetchResponseGroup{Group: asked.Group}
			for _, t := range asked.Topics {
				fetched.Topics = append(fetched.Topics, failedTopic(t, c.code(err)))
			}
		case err != nil:
			fetched = kmsg.OffsetFetchResponseGroup{Group: asked.Group, ErrorCode: c.code(err)}
		default:
			for _, i := range unknown {
				fetched.Topics[i] = failedTopic(asked.Topics[i], kerr.UnknownTopicID.Code)
			}
			if asked.Topics == nil && c.Version >= firstFetchByTopicID {
				h.nameByID(&fetched)
			}
		}
		done(fetched)
	})
}

// nameByID gives all topics their ids. Those that do not exist any more have none and are left out.
func (h *Handlers) nameByID(g *kmsg.OffsetFetchResponseGroup) {
	image := h.Controller.Image()
	kept := g.Topics[:0]
	for _, t := range g.Topics {
		if topic, ok := image.Topic(t.Topic); ok {
			t.TopicID = topic.ID
			kept = append(kept, t)
		}
	}
	g.Topics = kept
}

// failedTopic answers each partition of a topic with an error.
func failedTopic(t kmsg.OffsetFetchRequestGroupTopic, code int16) kmsg.OffsetFetchResponseGroupTopic {
	failed := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic, TopicID: t.TopicID}
	metadata := ""
	for _, p := range t.Partitions {
		failed.Partitions = append(failed.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition{
			Partition: p, Offset: noCommittedOffset, LeaderEpoch: noCommittedLeaderEpoch, Metadata: &metadata, ErrorCode: code,
		})
	}
	return failed
}

// oneGroup is the group of a request of the versions that know only one.
func oneGroup(request *kmsg.OffsetFetchRequest) kmsg.OffsetFetchRequestGroup {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = request.Group
	if request.Topics != nil {
		g.Topics = make([]kmsg.OffsetFetchRequestGroupTopic, len(request.Topics))
		for i, t := range request.Topics {
			g.Topics[i] = kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions}
		}
	}
	return g
}

// onlyGroup moves the result to where these versions have it.
func onlyGroup(response *kmsg.OffsetFetchResponse, g *kmsg.OffsetFetchResponseGroup) {
	response.Groups = nil
	response.ErrorCode = g.ErrorCode
	response.Topics = make([]kmsg.OffsetFetchResponseTopic, len(g.Topics))
	for i, t := range g.Topics {
		partitions := make([]kmsg.OffsetFetchResponseTopicPartition, len(t.Partitions))
		for j, p := range t.Partitions {
			partitions[j] = kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
			}
		}
		response.Topics[i] = kmsg.OffsetFetchResponseTopic{Topic: t.Topic, Partitions: partitions}
	}
}
