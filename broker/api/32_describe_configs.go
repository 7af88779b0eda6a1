package api

// DescribeConfigs (key 32): the configs of topics, brokers, groups, client metrics subscriptions, and log levels.
//
// Versions 1–4: 2 as 1; 3 adds the type, and on request the documentation; 4 is flexible. No keys, or null, means all of them.
//
// A broker without a name stands for the cluster-wide dynamic configs. The values of passwords, and of keys that nobody knows, are never
// answered. Synonyms are in the order in which they count.
//
// Differs from Apache Kafka: configs are sorted by name, there in the order of a hash map; the documentation is our own; there is one
// logger, root.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/config"
	"sluice/replication/metadata"
)

func (h *Handlers) describeConfigs(c *Context, request *kmsg.DescribeConfigsRequest) Reply {
	response := kmsg.NewPtrDescribeConfigsResponse()
	for i := range request.Resources {
		in := &request.Resources[i]
		if !describable(in.ResourceType) {
			return Respond(describeConfigsError(request, kerr.InvalidRequest.Description))
		}
	}
	var size answerSize
	for i := range request.Resources {
		in := &request.Resources[i]
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = in.ResourceType, in.ResourceName
		entries, rejected := h.describeResource(in)
		out.ErrorMessage = new(string) // empty rather than null, as Kafka has it here
		if rejected != nil {
			out.ErrorCode, out.ErrorMessage = rejected.Code, &rejected.Message
		}
		out.Configs = make([]kmsg.DescribeConfigsResponseResourceConfig, len(entries))
		for j := range entries {
			out.Configs[j] = describedConfig(&entries[j], request)
			size.add(describedConfigBytes(&out.Configs[j]))
		}
		if size.over() {
			return answerTooLarge()
		}
		response.Resources = append(response.Resources, out)
	}
	return Respond(response)
}

func describable(t kmsg.ConfigResourceType) bool {
	switch metadata.ResourceType(t) {
	case metadata.TopicResource, metadata.BrokerResource, metadata.BrokerLoggerResource, metadata.ClientMetricsResource, metadata.GroupResource:
		return true
	}
	return false
}

func describeConfigsError(request *kmsg.DescribeConfigsRequest, message string) kmsg.Response {
	response := kmsg.NewPtrDescribeConfigsResponse()
	for i := range request.Resources {
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = request.Resources[i].ResourceType, request.Resources[i].ResourceName
		out.ErrorCode, out.ErrorMessage = kerr.InvalidRequest.Code, &message
		response.Resources = append(response.Resources, out)
	}
	return response
}

func invalidRequest(format string, args ...any) *metadata.Error {
	return &metadata.Error{Code: kerr.InvalidRequest.Code, Message: fmt.Sprintf(format, args...)}
}

// describeResource finds the configs of one resource.
func (h *Handlers) describeResource(in *kmsg.DescribeConfigsRequestResource) ([]config.Entry, *metadata.Error) {
	snapshot, image, name, wanted := h.Config(), h.Controller.Image(), in.ResourceName, config.Wanted(in.ConfigNames)
	own := image.Configs(metadata.ConfigResource{Type: metadata.ResourceType(in.ResourceType), Name: name})
	switch metadata.ResourceType(in.ResourceType) {
	case metadata.TopicResource:
		if rejected := metadata.ValidateTopicName(name); rejected != nil {
			return nil, rejected
		}
		if _, exists := image.Topic(name); !exists {
			return nil, &metadata.Error{Code: kerr.UnknownTopicOrPartition.Code}
		}
		return snapshot.DescribeTopic(own, wanted), nil
	case metadata.BrokerResource:
		if name == "" {
			return snapshot.DescribeClusterDefault(wanted), nil
		}
		if rejected := h.checkBrokerName(name, "Unexpected broker id, expected %d or empty string, but received %s"); rejected != nil {
			return nil, rejected
		}
		return snapshot.DescribeBroker(wanted), nil
	case metadata.BrokerLoggerResource:
		if name == "" {
			return nil, invalidRequest("Broker id must not be empty")
		}
		if rejected := h.checkBrokerName(name, "Unexpected broker id, expected %d but received %s"); rejected != nil {
			return nil, rejected
		}
		return h.describeLoggers(in.ConfigNames), nil
	case metadata.ClientMetricsResource:
		if name == "" {
			return nil, invalidRequest("Client metrics subscription name must not be empty")
		}
		return snapshot.DescribeClientMetrics(own, wanted), nil
	default:
		if name == "" {
			return nil, invalidRequest("Group name must not be empty")
		}
		return snapshot.DescribeGroup(own, wanted), nil
	}
}

// checkBrokerName refuses the name of a resource that is not this broker's id; other is the message for the id of another.
func (h *Handlers) checkBrokerName(name, other string) *metadata.Error {
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return invalidRequest("Broker id must be an integer, but it is: %s", name)
	}
	if metadata.BrokerID(id) != h.NodeID {
		return invalidRequest(other, h.NodeID, name)
	}
	return nil
}

func (h *Handlers) describeLoggers(names []string) []config.Entry {
	if h.LogLevels == nil {
		return nil
	}
	levels := h.LogLevels.Levels()
	var entries []config.Entry
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		if len(names) == 0 || slices.Contains(names, name) {
			level := levels[name]
			entries = append(entries, config.Entry{Name: name, Value: &level, Source: config.SourceBrokerLogger})
		}
	}
	return entries
}

func describedConfig(e *config.Entry, request *kmsg.DescribeConfigsRequest) kmsg.DescribeConfigsResponseResourceConfig {
	out := kmsg.DescribeConfigsResponseResourceConfig{
		Name: e.Name, Value: e.Value, ReadOnly: e.ReadOnly, IsSensitive: e.Sensitive,
		Source: kmsg.ConfigSource(e.Source), ConfigType: kmsg.ConfigType(e.Type),
	}
	if request.IncludeDocumentation && e.Source != config.SourceBrokerLogger && e.Doc != "" {
		out.Documentation = &e.Doc
	}
	if request.IncludeSynonyms {
		for _, s := range e.Synonyms {
			out.ConfigSynonyms = append(out.ConfigSynonyms, kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{
				Name: s.Name, Value: s.Value, Source: kmsg.ConfigSource(s.Source),
			})
		}
	}
	return out
}
