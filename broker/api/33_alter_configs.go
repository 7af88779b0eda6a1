package api

// AlterConfigs (key 33): replaces all configs of a resource by those of the request. Clients use IncrementalAlterConfigs where they can.
//
// Versions 0–2: 1 as 0; 2 is flexible.
//
// As Apache Kafka: refused configs change nothing of their resource, other resources of the request are altered all the same.

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/metadata"
)

func (h *Handlers) alterConfigs(c *Context, request *kmsg.AlterConfigsRequest) Reply {
	a := alteration{validateOnly: request.ValidateOnly}
	for _, in := range request.Resources {
		r := alteredResource{ConfigResource: metadata.ConfigResource{Type: metadata.ResourceType(in.ResourceType), Name: in.ResourceName}}
		for _, e := range in.Configs {
			r.edits = append(r.edits, configEdit{name: e.Name, value: e.Value})
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
	answer := func(changed []kmsg.AlterConfigsResponseResource, err error) kmsg.Response {
		response := kmsg.NewPtrAlterConfigsResponse()
		for i, v := range verdicts {
			out := kmsg.NewAlterConfigsResponseResource()
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
	return c.beside(func() kmsg.Response {
		response, err := h.do(c, h.Config().RequestTimeoutMs, metadata.AlterConfigs(&left))
		if err != nil {
			return answer(nil, err)
		}
		return answer(response.(*kmsg.AlterConfigsResponse).Resources, nil)
	})
}
