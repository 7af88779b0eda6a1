package api

// DescribeCluster (key 60): the brokers and the cluster id.
//
// Versions 0–2: 1 asks for brokers or controllers (KIP-919), this listener answers for brokers; 2 may ask for fenced brokers too (KIP-1073).
//
// Differs from Apache Kafka: the controller named is the active one if it is a broker, there any live broker.

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kinds of endpoints that DescribeCluster can ask for.
const (
	brokerEndpoints     int8 = 1
	controllerEndpoints int8 = 2
)

func (h *Handlers) describeCluster(c *Context, request *kmsg.DescribeClusterRequest) Reply {
	response := kmsg.NewPtrDescribeClusterResponse()
	refuse := func(code *kerr.Error, format string, args ...any) Reply {
		if request.Version == 0 {
			code = kerr.InvalidRequest
		}
		message := fmt.Sprintf(format, args...)
		response.ErrorCode, response.ErrorMessage = code.Code, &message
		return Respond(response)
	}
	switch {
	case request.Version == 0 || request.EndpointType == brokerEndpoints:
	case request.EndpointType == controllerEndpoints:
		return refuse(kerr.MismatchedEndpointType, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER")
	default:
		return refuse(kerr.UnsupportedEndpointType, "Unsupported endpoint type %d", request.EndpointType)
	}
	v := h.clusterView(c)
	response.EndpointType = brokerEndpoints
	response.ClusterID = v.image.ClusterID()
	response.ControllerID = v.controller()
	response.ClusterAuthorizedOperations = operationsNotAsked
	if request.IncludeClusterAuthorizedOperations {
		response.ClusterAuthorizedOperations = clusterOperations
	}
	for b := range v.image.Brokers() {
		host, port, ok := v.endpoint(b)
		if !ok || b.Fenced && !request.IncludeFencedBrokers {
			continue
		}
		out := kmsg.NewDescribeClusterResponseBroker()
		out.NodeID, out.Host, out.Port, out.IsFenced = int32(b.ID), host, port, b.Fenced
		if b.Rack != "" {
			out.Rack = &b.Rack
		}
		response.Brokers = append(response.Brokers, out)
	}
	return Respond(response)
}
