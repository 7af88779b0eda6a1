// FindCoordinator, versions 0 to 6.
//
//	1: key type, throttle time, error message. 3: flexible. 4: several keys (KIP-699). 5: TRANSACTION_ABORTABLE (KIP-890). 6: share groups
//	(KIP-932).
//
// Groups (key type 0) are answered with the leader of their partition of __consumer_offsets, transactional ids (key type 1) with that of theirs
// of __transaction_state. The first request creates the topic.
//
// Differences from Apache Kafka: Kafka answers the request that creates the topic with COORDINATOR_NOT_AVAILABLE, and the client has to
// ask again; we answer when the topic is there. Share groups are not served yet: key type 2 is INVALID_REQUEST, as unknown ones are, so that
// clients fail at once instead of waiting for a coordinator.
package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
	"sluice/broker/coordinator/txn"
	"sluice/replication/metadata"
)

const (
	coordinatorOfGroup       = 0
	coordinatorOfTransaction = 1
	firstFindManyCoordinator = 4 // the version of FindCoordinator with several keys
	noNodeID                 = -1
)

func (h *Handlers) findCoordinator(c *Context, request *kmsg.FindCoordinatorRequest) Reply {
	topic := coordinatorTopic(request.CoordinatorType)
	if topic == "" {
		return Respond(h.coordinators(c, request, topic, kerr.InvalidRequest))
	}
	none := c.Version >= firstFindManyCoordinator && len(request.CoordinatorKeys) == 0
	if _, exists := h.Controller.Image().Topic(topic); exists || none {
		return Respond(h.coordinators(c, request, topic, nil))
	}
	return c.beside(func() kmsg.Response { return h.coordinators(c, request, topic, h.createCoordinatorTopic(c, topic)) })
}

// coordinatorTopic is the topic that holds what a type of coordinators knows; empty for types that are not served.
func coordinatorTopic(coordinatorType int8) string {
	switch coordinatorType {
	case coordinatorOfGroup:
		return group.Topic
	case coordinatorOfTransaction:
		return txn.Topic
	}
	return ""
}

// createCoordinatorTopic makes an internal topic. That somebody else has done so meanwhile is as good.
func (h *Handlers) createCoordinatorTopic(c *Context, name string) error {
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Version = request.MaxVersion()
	request.Topics = []kmsg.CreateTopicsRequestTopic{newTopic(name, h.Config())}
	response, err := h.do(c, h.Config().RequestTimeoutMs, metadata.CreateTopics(request))
	if err == nil {
		result := &response.(*kmsg.CreateTopicsResponse).Topics[0]
		if err = kerr.ErrorForCode(result.ErrorCode); err == nil || result.ErrorCode == kerr.TopicAlreadyExists.Code {
			return nil
		}
		if result.ErrorMessage != nil {
			h.Log.Warn("cannot create the topic of a coordinator; its replication factor (offsets.topic.replication.factor, transaction.state.log.replication.factor) must not exceed the number of brokers",
				zap.String("topic", name), zap.String("reason", *result.ErrorMessage), zap.Error(err))
			return kerr.CoordinatorNotAvailable
		}
	}
	h.Log.Warn("cannot create the topic of a coordinator", zap.String("topic", name), zap.Error(err))
	return kerr.CoordinatorNotAvailable
}

// coordinators answers each key with its coordinator, or all with an error.
func (h *Handlers) coordinators(c *Context, request *kmsg.FindCoordinatorRequest, topic string, failed error) *kmsg.FindCoordinatorResponse {
	view := h.clusterView(c)
	response := request.ResponseKind().(*kmsg.FindCoordinatorResponse)
	if c.Version < firstFindManyCoordinator {
		found := h.coordinator(c, &view, topic, request.CoordinatorKey, failed)
		response.NodeID, response.Host, response.Port = found.NodeID, found.Host, found.Port
		response.ErrorCode, response.ErrorMessage = found.ErrorCode, found.ErrorMessage
		if found.ErrorCode == 0 {
			none := "NONE" // so says Kafka in these versions
			response.ErrorMessage = &none
		}
		return response
	}
	response.Coordinators = make([]kmsg.FindCoordinatorResponseCoordinator, len(request.CoordinatorKeys))
	for i, key := range request.CoordinatorKeys {
		response.Coordinators[i] = h.coordinator(c, &view, topic, key, failed)
		response.Coordinators[i].Key = key
	}
	return response
}

// coordinator finds the coordinator of a group or transactional id.
func (h *Handlers) coordinator(c *Context, view *clusterView, topicName, key string, failed error) kmsg.FindCoordinatorResponseCoordinator {
	found := kmsg.FindCoordinatorResponseCoordinator{NodeID: noNodeID, Port: noNodeID, ErrorMessage: new(string)}
	if failed != nil {
		found.ErrorCode, found.ErrorMessage = c.errorFor(failed)
		return found
	}
	if topic, ok := view.image.Topic(topicName); ok {
		leader := topic.Partitions[machine.PartitionFor(key, int32(len(topic.Partitions)))].Leader
		if b, known := view.image.Broker(leader); known && !b.Fenced {
			if host, port, reached := view.endpoint(b); reached {
				found.NodeID, found.Host, found.Port = int32(leader), host, port
				return found
			}
		}
	}
	found.ErrorCode, found.ErrorMessage = c.errorFor(kerr.CoordinatorNotAvailable)
	return found
}
