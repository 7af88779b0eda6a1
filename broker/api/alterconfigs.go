package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/config"
	"sluice/replication/metadata"
)

// LogLevels lets clients see and set how much is logged.
type LogLevels interface {
	// Levels are the loggers and their levels: FATAL, ERROR, WARN, INFO, DEBUG or TRACE.
	Levels() map[string]string
	// Set changes a logger's level; an empty level goes back to the configured one.
	Set(logger, level string)
}

// Both requests that alter configs are answered in two steps, as in Apache Kafka. The broker that takes the request refuses what only it
// can judge: the shape of the request, and the dynamic configs of a broker, which must fit that broker's own settings. What is left goes
// to the controller in one operation.

// alteredResource is one resource of a request to alter configs.
type alteredResource struct {
	metadata.ConfigResource
	edits []configEdit
}

// configEdit is what is to become of one config.
type configEdit struct {
	name  string
	op    kmsg.IncrementalAlterConfigOp
	value *string
}

// alteration is a request to alter configs.
type alteration struct {
	resources    []alteredResource
	incremental  bool // single configs; otherwise all configs of each resource are replaced
	validateOnly bool
}

// judge returns for each resource whether it is settled here: rejected, or (for a logger) done. A nil entry is for the controller.
func (h *Handlers) judge(a *alteration) []*verdict {
	named := make(map[metadata.ConfigResource]int, len(a.resources))
	for i := range a.resources {
		named[a.resources[i].ConfigResource]++
	}
	verdicts := make([]*verdict, len(a.resources))
	for i := range a.resources {
		r := &a.resources[i]
		if named[r.ConfigResource] > 1 {
			verdicts[i] = &verdict{invalidRequest("Each resource must appear at most once.")}
			continue
		}
		rejected := r.checkShape(a.incremental)
		if rejected == nil {
			switch r.Type {
			case metadata.TopicResource, metadata.ClientMetricsResource, metadata.GroupResource:
				continue
			case metadata.BrokerResource:
				if rejected = h.checkBrokerConfigs(r, a.incremental); rejected == nil {
					continue
				}
			case metadata.BrokerLoggerResource:
				if a.incremental {
					rejected = h.alterLoggers(r, a.validateOnly)
					break
				}
				fallthrough
			default:
				rejected = invalidRequest("Unknown resource type %d", int8(r.Type))
			}
		}
		verdicts[i] = &verdict{rejected}
	}
	return verdicts
}

// verdict is the answer for one resource; rejected is nil when all is well.
type verdict struct{ rejected *metadata.Error }

func (v *verdict) answer() (code int16, message *string) {
	if v.rejected == nil {
		return 0, nil
	}
	return v.rejected.Code, &v.rejected.Message
}

func (r *alteredResource) checkShape(incremental bool) *metadata.Error {
	seen := make(map[string]bool, len(r.edits))
	var null []string
	for _, e := range r.edits {
		if seen[e.name] {
			return invalidRequest("Error due to duplicate config keys")
		}
		seen[e.name] = true
		if e.value == nil && !(incremental && e.op == kmsg.IncrementalAlterConfigOpDelete) {
			null = append(null, e.name)
		}
	}
	if null != nil {
		return invalidRequest("Null value not supported for : %s", strings.Join(null, ", "))
	}
	return nil
}

// checkBrokerConfigs checks what the dynamic configs of a broker, or of all brokers, are to become.
func (h *Handlers) checkBrokerConfigs(r *alteredResource, incremental bool) *metadata.Error {
	perBroker := r.Name != ""
	if perBroker {
		id, err := strconv.ParseInt(r.Name, 10, 32)
		if err != nil {
			return invalidRequest("Node id must be an integer, but it is: %s", r.Name)
		}
		if metadata.BrokerID(id) != h.NodeID {
			return invalidRequest("Unexpected broker id, expected %d, but received %s", h.NodeID, r.Name)
		}
	}
	configs := make(map[string]string)
	if incremental {
		maps.Copy(configs, h.Config().UsableDynamic(h.Controller.Image().Configs(r.ConfigResource), perBroker))
	}
	for _, e := range r.edits {
		if !incremental {
			configs[e.name] = *e.value
			continue
		}
		if rejected := e.apply(configs); rejected != nil {
			return rejected
		}
	}
	if err := h.Config().CheckDynamic(configs, perBroker); err != nil {
		return invalidRequest("%s", err)
	}
	return nil
}

// apply makes the edit in a set of broker configs.
func (e *configEdit) apply(configs map[string]string) *metadata.Error {
	switch e.op {
	case kmsg.IncrementalAlterConfigOpSet:
		configs[e.name] = *e.value
		return nil
	case kmsg.IncrementalAlterConfigOpDelete:
		delete(configs, e.name)
		return nil
	case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
	default:
		return invalidRequest("Unknown operations type %d", int8(e.op))
	}
	known, isList, now := config.ListConfig(e.name)
	if !known {
		return &metadata.Error{Code: kerr.InvalidConfig.Code, Message: "Unknown config name: " + e.name}
	}
	if !isList {
		verb := map[kmsg.IncrementalAlterConfigOp]string{kmsg.IncrementalAlterConfigOpAppend: "append", kmsg.IncrementalAlterConfigOpSubtract: "subtract"}[e.op]
		return &metadata.Error{Code: kerr.InvalidConfig.Code, Message: "Config value " + verb + " is not allowed for config key: " + e.name}
	}
	if set, ok := configs[e.name]; ok {
		now = set
	}
	members := slices.DeleteFunc(strings.Split(now, ","), func(s string) bool { return s == "" })
	for _, member := range strings.Split(*e.value, ",") {
		at := slices.Index(members, member)
		switch {
		case e.op == kmsg.IncrementalAlterConfigOpAppend && at < 0:
			members = append(members, member)
		case e.op == kmsg.IncrementalAlterConfigOpSubtract && at >= 0:
			members = slices.Delete(members, at, at+1)
		}
	}
	configs[e.name] = strings.Join(members, ",")
	return nil
}

// rootLogger is the logger whose level cannot be taken away.
const rootLogger = "root"

// alterLoggers sets log levels, all or none of those that the request names.
func (h *Handlers) alterLoggers(r *alteredResource, validateOnly bool) *metadata.Error {
	id, err := strconv.ParseInt(r.Name, 10, 32)
	if err != nil {
		return invalidRequest("Node id must be an integer, but it is: %s", r.Name)
	}
	if metadata.BrokerID(id) != h.NodeID {
		return invalidRequest("Unexpected node id. Expected %d, but received %d", h.NodeID, id)
	}
	var levels map[string]string
	if h.LogLevels != nil {
		levels = h.LogLevels.Levels()
	}
	for _, e := range r.edits {
		if rejected := e.checkLogLevel(levels); rejected != nil {
			return rejected
		}
	}
	for _, e := range r.edits {
		if validateOnly {
			break
		}
		level := ""
		if e.op == kmsg.IncrementalAlterConfigOpSet {
			level = *e.value
		}
		h.LogLevels.Set(e.name, level)
	}
	return nil
}

func (e *configEdit) checkLogLevel(levels map[string]string) *metadata.Error {
	badConfig := func(message string) *metadata.Error {
		return &metadata.Error{Code: kerr.InvalidConfig.Code, Message: message}
	}
	_, exists := levels[e.name]
	switch e.op {
	case kmsg.IncrementalAlterConfigOpSet:
		if !exists {
			return badConfig("Logger " + e.name + " does not exist!")
		}
		if !slices.Contains([]string{"DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"}, *e.value) {
			return badConfig("Cannot set the log level of " + e.name + " to " + *e.value + " as it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN")
		}
	case kmsg.IncrementalAlterConfigOpDelete:
		if !exists {
			return badConfig("Logger " + e.name + " does not exist!")
		}
		if e.name == rootLogger {
			return invalidRequest("Removing the log level of the root logger is not allowed")
		}
	case kmsg.IncrementalAlterConfigOpAppend:
		return invalidRequest("APPEND operation is not allowed for the BROKER_LOGGER resource")
	case kmsg.IncrementalAlterConfigOpSubtract:
		return invalidRequest("SUBTRACT operation is not allowed for the BROKER_LOGGER resource")
	default:
		return invalidRequest("Unknown operation type %d is not allowed for the BROKER_LOGGER resource", int8(e.op))
	}
	return nil
}
