package api

// IncrementalAlterConfigs (key 44): sets, deletes, appends to and subtracts from single configs of topics, brokers, groups, client metrics
// subscriptions, and log levels.
//
// Versions 0–1: 1 is flexible.
//
// As Apache Kafka: a refused config changes nothing of its resource, other resources of the request are altered all the same. Topics'
// bad values are INVALID_CONFIG, brokers' are INVALID_REQUEST. A broker config that is not in the table is taken, for plugins' sake.

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/metadata"
)

func (h *Handlers) incrementalAlterConfigs(c *Context, request *kmsg.IncrementalAlterConfigsRequest) Reply {
	a := alteration{incremental: true, validateOnly: request.ValidateOnly}
	for _, in := range request.Resources {
		r := alteredResource{ConfigResource: metadata.ConfigResource{Type: metadata.ResourceType(in.ResourceType), Name: in.ResourceName}}
		for _, e := range in.Configs {
			r.edits = append(r.edits, configEdit{name: e.Name, op: e.Op, value: e.Value})
		}
		a.resources = append(a.resources, r)
	}
	verdicts := h.judge(&a)

	left := *request
	left.Resources = nil
	for i, v := range verdicts {
		if v == nil {
			left.Resources = append(left.Resources, request.Resources[i])
		}
	}
	answer := func(changed []kmsg.IncrementalAlterConfigsResponseResource, err error) kmsg.Response {
		response := kmsg.NewPtrIncrementalAlterConfigsResponse()
		for i, v := range verdicts {
			out := kmsg.NewIncrementalAlterConfigsResponseResource()
			out.ResourceType, out.ResourceName = request.Resources[i].ResourceType, request.Resources[i].ResourceName
			switch {
			case v != nil:
				out.ErrorCode, out.ErrorMessage = v.answer()
			case err != nil:
				out.ErrorCode, out.ErrorMessage = c.errorFor(err)
			default: // the controller answers each resource in the order of its request
				out, changed = changed[0], changed[1:]
			}
			response.Resources = append(response.Resources, out)
		}
		return response
	}
	if len(left.Resources) == 0 {
		return Respond(answer(nil, nil))
	}
	if hasUnknownOperation(left.Resources) {
		return Respond(answer(nil, &metadata.Error{Code: kerr.UnknownServerError.Code}))
	}
	return c.beside(func() kmsg.Response {
		response, err := h.do(c, h.Config().RequestTimeoutMs, metadata.IncrementalAlterConfigs(&left))
		if err != nil {
			return answer(nil, err)
		}
		return answer(response.(*kmsg.IncrementalAlterConfigsResponse).Resources, nil)
	})
}

// hasUnknownOperation says whether a request is of the kind that Kafka's controller fails at as a whole.
func hasUnknownOperation(resources []kmsg.IncrementalAlterConfigsRequestResource) bool {
	for i := range resources {
		for _, c := range resources[i].Configs {
			if c.Op < kmsg.IncrementalAlterConfigOpSet || c.Op > kmsg.IncrementalAlterConfigOpSubtract {
				return true
			}
		}
	}
	return false
}
