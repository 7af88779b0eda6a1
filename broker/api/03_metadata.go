package api

// Metadata (key 3): brokers, topics, partitions and their leaders, for clients to find out whom to talk to.
//
// Versions 0–13: 1 adds the controller, racks and internal topics, and tells all topics (null) from none (empty), which 0 cannot; 2 the
// cluster id; 3 the throttle time; 4 lets the client forbid the creation of topics; 5 offline replicas; 6 tells a leader without this
// listener from one that is gone; 7 leader epochs; 8 authorized operations; 9 is flexible; 10 topic ids in the response (KIP-516); 11
// drops the cluster's operations; 12 topics by id; 13 an error of the whole (KIP-1102).
//
// A topic that does not exist and may be created is created before the answer is given, and the answer names its leader.
//
// Differs from Apache Kafka: there the first answer is UNKNOWN_TOPIC_OR_PARTITION and the client asks again. Topics are answered in the
// order of the request, or by name, there in the order of a hash map. Topics named twice are answered once, as there. The controller
// named is the active one if it is a broker, there any live broker.

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/protocol/uuid"
	"sluice/replication/metadata"
)

func (h *Handlers) metadata(c *Context, request *kmsg.MetadataRequest) Reply {
	if !validMetadataRequest(request) {
		return Respond(metadataError(request, kerr.InvalidRequest))
	}
	if namesNothing(request) {
		return Respond(metadataError(request, kerr.UnknownServerError))
	}
	mayCreate := h.Config().AutoCreateTopicsEnable && (request.Version < 4 || request.AllowAutoTopicCreation)
	if mayCreate {
		if missing := h.missingTopics(request); len(missing) > 0 {
			return c.beside(func() kmsg.Response {
				h.createMissing(c, missing)
				return h.metadataResponse(c, request)
			})
		}
	}
	return Respond(h.metadataResponse(c, request))
}

func validMetadataRequest(request *kmsg.MetadataRequest) bool {
	for i := range request.Topics {
		t := &request.Topics[i]
		if request.Version < 12 && (t.Topic == nil || t.TopicID != [16]byte{}) {
			return false
		}
	}
	return true
}

// namesNothing reports whether some topic of a request that does not go by ids has no name: Kafka fails at that, and so do we.
func namesNothing(request *kmsg.MetadataRequest) bool {
	return !asksByID(request) && slices.ContainsFunc(request.Topics, func(t kmsg.MetadataRequestTopic) bool { return t.Topic == nil })
}

// metadataError answers every topic of a request with the same error.
func metadataError(request *kmsg.MetadataRequest, code *kerr.Error) *kmsg.MetadataResponse {
	response := kmsg.NewPtrMetadataResponse()
	response.ErrorCode = code.Code
	for i := range request.Topics {
		name := request.Topics[i].Topic
		if name == nil {
			name = new(string)
		}
		t := kmsg.NewMetadataResponseTopic()
		t.ErrorCode, t.Topic, t.TopicID = code.Code, name, request.Topics[i].TopicID
		response.Topics = append(response.Topics, t)
	}
	return response
}

// asksByID reports whether the request names topics by their ids; names beside them are not looked at.
func asksByID(request *kmsg.MetadataRequest) bool {
	for i := range request.Topics {
		if request.Topics[i].TopicID != [16]byte{} {
			return true
		}
	}
	return false
}

// missingTopics are the topics that a request names, that could exist and do not.
func (h *Handlers) missingTopics(request *kmsg.MetadataRequest) []string {
	if len(request.Topics) == 0 || asksByID(request) {
		return nil
	}
	image := h.Controller.Image()
	var missing []string
	for i := range request.Topics {
		name := request.Topics[i].Topic
		if name == nil || metadata.ValidateTopicName(*name) != nil {
			continue
		}
		if _, exists := image.Topic(*name); !exists {
			missing = append(missing, *name)
		}
	}
	return missing
}

// createMissing creates topics with the broker's defaults, or an internal topic as its coordinator wants it. Whatever goes wrong is the
// log's business: the client learns that there is no such topic, and asks again.
func (h *Handlers) createMissing(c *Context, names []string) {
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Version = request.MaxVersion()
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			request.Topics = append(request.Topics, newTopic(name, h.Config()))
		}
	}
	response, err := h.do(c, h.Config().RequestTimeoutMs, metadata.CreateTopics(request))
	if err != nil {
		h.Log.Warn("topics were not created automatically", zap.Strings("topics", firstNames(names)), zap.Int("count", len(names)), zap.Error(err))
		return
	}
	var created, failed []string
	var first *kmsg.CreateTopicsResponseTopic
	topics := response.(*kmsg.CreateTopicsResponse).Topics
	for i := range topics {
		switch t := &topics[i]; t.ErrorCode {
		case 0:
			created = append(created, t.Topic)
		case kerr.TopicAlreadyExists.Code: // by another client, at the same moment
		default:
			if failed = append(failed, t.Topic); first == nil {
				first = t
			}
		}
	}
	// One line for a request, however many topics it names.
	if created != nil {
		h.Log.Info("topics created automatically", zap.Strings("topics", firstNames(created)), zap.Int("count", len(created)), zap.String("client", c.ClientID))
	}
	if first != nil {
		h.Log.Warn("topics were not created automatically", zap.Strings("topics", firstNames(failed)), zap.Int("count", len(failed)), zap.String("client", c.ClientID),
			zap.NamedError("first", kerr.ErrorForCode(first.ErrorCode)), zap.Stringp("reason", first.ErrorMessage))
	}
}

// firstNames are as many names as fit a line of the log.
func firstNames(names []string) []string { return names[:min(len(names), 10)] }

func (h *Handlers) metadataResponse(c *Context, request *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	m := metadataAnswer{clusterView: h.clusterView(c), version: request.Version}
	response := kmsg.NewPtrMetadataResponse()
	for b := range m.image.Brokers() {
		if host, port, ok := m.endpoint(b); ok && !b.Fenced {
			out := kmsg.MetadataResponseBroker{NodeID: int32(b.ID), Host: host, Port: port}
			if b.Rack != "" {
				out.Rack = &b.Rack
			}
			response.Brokers = append(response.Brokers, out)
		}
	}
	clusterID := m.image.ClusterID()
	response.ClusterID = &clusterID
	response.ControllerID = m.controller()
	response.AuthorizedOperations = operationsNotAsked
	if request.IncludeClusterAuthorizedOperations {
		response.AuthorizedOperations = clusterOperations
	}
	m.operations = operationsNotAsked
	if request.IncludeTopicAuthorizedOperations {
		m.operations = topicOperations
	}

	switch {
	case request.Topics == nil || request.Version == 0 && len(request.Topics) == 0:
		m.reserve(m.image.TopicCount())
		for t := range m.image.Topics() {
			m.add(t)
		}
	case asksByID(request):
		m.addByID(request)
	default:
		m.addByName(request)
	}
	response.Topics = m.topics
	return response
}

// metadataAnswer gathers the topics of one response.
type metadataAnswer struct {
	clusterView
	version    int16
	operations int32 // what to answer as the authorized operations of a topic
	topics     []kmsg.MetadataResponseTopic
	ids        []int32 // not used yet: the replica lists of partitions are cut off it
}

func (m *metadataAnswer) reserve(topics int) {
	m.topics = make([]kmsg.MetadataResponseTopic, 0, topics)
}

func (m *metadataAnswer) addByID(request *kmsg.MetadataRequest) {
	seen := make(map[uuid.UUID]bool, len(request.Topics))
	for i := range request.Topics {
		id := uuid.UUID(request.Topics[i].TopicID)
		if id.IsZero() || seen[id] {
			continue
		}
		seen[id] = true
		if t, exists := m.image.TopicByID(id); exists {
			m.add(t)
			continue
		}
		m.topics = append(m.topics, kmsg.MetadataResponseTopic{ErrorCode: kerr.UnknownTopicID.Code, TopicID: id, AuthorizedOperations: operationsNotAsked})
	}
}

func (m *metadataAnswer) addByName(request *kmsg.MetadataRequest) {
	m.reserve(len(request.Topics))
	seen := make(map[string]bool, len(request.Topics))
	for i := range request.Topics {
		name := request.Topics[i].Topic
		if seen[*name] {
			continue
		}
		seen[*name] = true
		if t, exists := m.image.Topic(*name); exists {
			m.add(t)
			continue
		}
		code := kerr.UnknownTopicOrPartition.Code
		if metadata.ValidateTopicName(*name) != nil {
			code = kerr.InvalidTopicException.Code
		}
		m.topics = append(m.topics, kmsg.MetadataResponseTopic{ErrorCode: code, Topic: name, IsInternal: isInternalTopic(*name), AuthorizedOperations: m.operations})
	}
}

func (m *metadataAnswer) add(t *metadata.Topic) {
	out := kmsg.MetadataResponseTopic{
		Topic: &t.Name, TopicID: t.ID, IsInternal: isInternalTopic(t.Name), AuthorizedOperations: m.operations,
		Partitions: make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions)),
	}
	for i := range t.Partitions {
		p, answer := &t.Partitions[i], &out.Partitions[i]
		answer.Partition, answer.Leader, answer.LeaderEpoch = int32(i), int32(p.Leader), int32(p.LeaderEpoch)
		answer.Replicas, answer.ISR, answer.OfflineReplicas = m.list(p.Replicas), m.list(p.ISR), m.offlineReplicas(p)
		if reachable, registered := m.leader(p.Leader); !reachable {
			answer.Leader, answer.ErrorCode = -1, kerr.LeaderNotAvailable.Code
			if registered && m.version >= 6 {
				answer.ErrorCode = kerr.ListenerNotFound.Code
			}
		} else if len(answer.Replicas) < len(p.Replicas) || len(answer.ISR) < len(p.ISR) {
			answer.ErrorCode = kerr.ReplicaNotAvailable.Code
		}
	}
	m.topics = append(m.topics, out)
}

// list writes broker ids as the response has them. Clients of version 0 expect every broker that they are told of to be alive.
func (m *metadataAnswer) list(brokers []metadata.BrokerID) []int32 {
	out := m.cut(len(brokers))
	for _, id := range brokers {
		if m.version > 0 || m.alive(id) {
			out = append(out, int32(id))
		}
	}
	return out
}

func (m *metadataAnswer) offlineReplicas(p *metadata.Partition) []int32 {
	var out []int32
	for i := range p.Replicas {
		if m.offline(p, i) {
			out = append(out, int32(p.Replicas[i]))
		}
	}
	return out
}

// idsPerCut is how many broker ids are allocated together: a response about many partitions has many lists of few ids.
const idsPerCut = 1024

// cut returns an empty list with room for n ids.
func (m *metadataAnswer) cut(n int) []int32 {
	if n > len(m.ids) {
		m.ids = make([]int32, max(n, idsPerCut))
	}
	out := m.ids[:0:n]
	m.ids = m.ids[n:]
	return out
}
