package api

// ListConfigResources (key 74): the names of what DescribeConfigs can describe.
//
// Versions 0–1: 0 is ListClientMetricsResources (KIP-714), 1 takes the types wanted, none for all (KIP-1142).
//
// As Apache Kafka: groups and client metrics subscriptions are there when they have configs of their own, topics and brokers all.

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/metadata"
)

func (h *Handlers) listConfigResources(c *Context, request *kmsg.ListConfigResourcesRequest) Reply {
	response := kmsg.NewPtrListConfigResourcesResponse()
	served := []int8{int8(metadata.GroupResource), int8(metadata.ClientMetricsResource), int8(metadata.BrokerLoggerResource), int8(metadata.BrokerResource), int8(metadata.TopicResource)}
	wanted := request.ResourceTypes
	if request.Version == 0 {
		served = []int8{int8(metadata.ClientMetricsResource)}
		wanted = nil
	}
	for _, t := range wanted {
		if !slices.Contains(served, t) {
			response.ErrorCode = kerr.UnsupportedVersion.Code
			return Respond(response)
		}
	}
	add := func(t metadata.ResourceType, name string) {
		out := kmsg.NewListConfigResourcesResponseConfigResource()
		out.Type, out.Name = int8(t), name
		response.ConfigResources = append(response.ConfigResources, out)
	}
	v := h.clusterView(c)
	for _, t := range served {
		if len(wanted) > 0 && !slices.Contains(wanted, t) {
			continue
		}
		switch kind := metadata.ResourceType(t); kind {
		case metadata.GroupResource, metadata.ClientMetricsResource:
			for r := range v.image.ConfigResources() {
				if r.Type == kind {
					add(kind, r.Name)
				}
			}
		case metadata.BrokerLoggerResource, metadata.BrokerResource:
			for b := range v.image.Brokers() {
				if v.hasListener(b) {
					add(kind, strconv.Itoa(int(b.ID)))
				}
			}
		default:
			for topic := range v.image.Topics() {
				add(kind, topic.Name)
			}
		}
	}
	return Respond(response)
}
