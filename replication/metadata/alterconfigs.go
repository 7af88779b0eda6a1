package metadata

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
)

// IncrementalAlterConfigs changes single configs of resources. The response is a *kmsg.IncrementalAlterConfigsResponse with one answer a
// resource, in the order of the request.
func IncrementalAlterConfigs(req *kmsg.IncrementalAlterConfigsRequest) Op {
	return func(m *Machine, _ int64) (Result, error) {
		resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
		alter := newAlteration(len(req.Resources))
		for i := range req.Resources {
			alter.count(ConfigResource{ResourceType(req.Resources[i].ResourceType), req.Resources[i].ResourceName})
		}
		for _, in := range req.Resources {
			r := ConfigResource{ResourceType(in.ResourceType), in.ResourceName}
			rejected, answered := alter.run(m, r, func() ([]configEdit, *Error) { return m.incrementalEdits(r, in.Configs) })
			if answered {
				continue
			}
			out := kmsg.NewIncrementalAlterConfigsResponseResource()
			out.ResourceType, out.ResourceName = in.ResourceType, in.ResourceName
			if rejected != nil {
				out.ErrorCode, out.ErrorMessage = rejected.Code, rejected.message()
			}
			resp.Resources = append(resp.Resources, out)
		}
		records, err := alter.finish(m, req.ValidateOnly)
		return Result{Records: records, Response: resp}, err
	}
}

// AlterConfigs replaces all configs of resources. The response is a *kmsg.AlterConfigsResponse with one answer a resource, in the order of
// the request.
func AlterConfigs(req *kmsg.AlterConfigsRequest) Op {
	return func(m *Machine, _ int64) (Result, error) {
		resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
		alter := newAlteration(len(req.Resources))
		for i := range req.Resources {
			alter.count(ConfigResource{ResourceType(req.Resources[i].ResourceType), req.Resources[i].ResourceName})
		}
		for _, in := range req.Resources {
			r := ConfigResource{ResourceType(in.ResourceType), in.ResourceName}
			rejected, answered := alter.run(m, r, func() ([]configEdit, *Error) { return m.replacement(r, in.Configs), nil })
			if answered {
				continue
			}
			out := kmsg.NewAlterConfigsResponseResource()
			out.ResourceType, out.ResourceName = in.ResourceType, in.ResourceName
			if rejected != nil {
				out.ErrorCode, out.ErrorMessage = rejected.Code, rejected.message()
			}
			resp.Resources = append(resp.Resources, out)
		}
		records, err := alter.finish(m, req.ValidateOnly)
		return Result{Records: records, Response: resp}, err
	}
}

// replacement sets what the request names and removes what it does not.
func (m *Machine) replacement(r ConfigResource, configs []kmsg.AlterConfigsRequestResourceConfig) []configEdit {
	before := m.next.configsOf(r)
	wanted := map[string]*string{}
	var edits []configEdit
	for _, c := range configs {
		wanted[c.Name] = c.Value
	}
	for _, c := range configs {
		value, pending := wanted[c.Name]
		if !pending {
			continue // named before
		}
		now, set := before[c.Name]
		if unchanged := set == (value != nil) && (value == nil || *value == now); !unchanged || r.Type == BrokerResource {
			edits = append(edits, configEdit{c.Name, value})
		}
		delete(wanted, c.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if !slices.ContainsFunc(configs, func(c kmsg.AlterConfigsRequestResourceConfig) bool { return c.Name == name }) {
			edits = append(edits, configEdit{name, nil})
		}
	}
	return edits
}

// An alteration collects the records of a request that changes the configs of several resources.
type alteration struct {
	named    map[ConfigResource]int
	answered map[ConfigResource]bool
	records  []logrecord.ClusterRecord
}

func newAlteration(resources int) *alteration {
	return &alteration{named: make(map[ConfigResource]int, resources), answered: map[ConfigResource]bool{}}
}

func (a *alteration) count(r ConfigResource) { a.named[r]++ }

// run works on one resource of the request. A resource that is named more than once is rejected, and answered once.
func (a *alteration) run(m *Machine, r ConfigResource, edits func() ([]configEdit, *Error)) (rejected *Error, answered bool) {
	if !knownResource(r.Type) {
		return reject(kerr.UnsupportedVersion, "Unknown resource type %d.", int8(r.Type)), false
	}
	if a.answered[r] {
		return nil, true
	}
	a.answered[r] = true
	if a.named[r] > 1 {
		return reject(kerr.InvalidRequest, "Duplicate resource."), false
	}
	changes, rejected := edits()
	if rejected != nil {
		return rejected, false
	}
	records, rejected := m.alterConfigs(r, changes, false)
	a.records = append(a.records, records...)
	return rejected, false
}

func (a *alteration) finish(m *Machine, validateOnly bool) ([]logrecord.ClusterRecord, error) {
	records := append(a.records, m.clearELRsFor(a.records)...)
	switch {
	case len(records) > maxRecordsPerOp:
		return nil, errTooLarge
	case validateOnly:
		return nil, nil
	}
	return records, nil
}
