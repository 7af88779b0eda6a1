package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/replication/metadata"
)

// Validator checks the configs that a client wants to set; it is the controller's view of the table (metadata.ConfigValidator).
// Apache Kafka's controller knows the static configs of its own node only, and so does this one.
type Validator struct{ broker *Broker }

var _ metadata.ConfigValidator = Validator{}

// Validator returns the validator that goes with a snapshot; only its static configs count.
func (b *Broker) Validator() Validator { return Validator{b} }

// Invalid says why a value is refused. Message is the text that clients get, the same as Apache Kafka's.
type Invalid struct {
	Key     string
	Message string
}

func (e *Invalid) Error() string { return e.Message }

// ValidateTopicConfigs checks all overrides of a topic together.
func (v Validator) ValidateTopicConfigs(configs map[string]string) error {
	parsed, err := parseAll(topicTable, configs, "topic")
	if err != nil {
		return err
	}
	get := func(key string) value {
		if own, ok := parsed[key]; ok {
			return own
		}
		return v.broker.inherited(topicTable.byName[key])
	}
	if low, high := get("min.compaction.lag.ms").number, get("max.compaction.lag.ms").number; low > high {
		return &Invalid{Key: "min.compaction.lag.ms", Message: fmt.Sprintf("conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", low, high)}
	}
	if get("remote.storage.enable").number == 1 {
		return &Invalid{Key: "remote.storage.enable", Message: "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."}
	}
	return nil
}

// parseAll reads configs of a resource other than a broker; each must be in the table.
func parseAll(t *table, configs map[string]string, kind string) (map[string]value, error) {
	keys := slices.Sorted(maps.Keys(configs))
	for _, key := range keys {
		if t.byName[key] == nil {
			return nil, &Invalid{Key: key, Message: "Unknown " + kind + " config name: " + key}
		}
	}
	parsed := make(map[string]value, len(configs))
	for _, key := range keys {
		one, why := t.byName[key].parse(configs[key])
		if why != nil {
			return nil, why
		}
		parsed[key] = one
	}
	return parsed, nil
}

// groupBounds are the broker keys between which a group's own value must lie; empty for no bound.
var groupBounds = []struct{ key, low, high string }{
	{"consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
	{"consumer.session.timeout.ms", "group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
	{"consumer.assignment.interval.ms", "group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"},
	{"share.heartbeat.interval.ms", "group.share.min.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"},
	{"share.session.timeout.ms", "group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"},
	{"share.record.lock.duration.ms", "group.share.min.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"},
	{"share.delivery.count.limit", "group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"},
	{"share.partition.max.record.locks", "group.share.min.partition.max.record.locks", "group.share.max.partition.max.record.locks"},
	{"share.assignment.interval.ms", "group.share.min.assignment.interval.ms", "group.share.max.assignment.interval.ms"},
	{"streams.heartbeat.interval.ms", "group.streams.min.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"},
	{"streams.session.timeout.ms", "group.streams.min.session.timeout.ms", "group.streams.max.session.timeout.ms"},
	{"streams.num.standby.replicas", "", "group.streams.max.standby.replicas"},
	{"streams.assignment.interval.ms", "group.streams.min.assignment.interval.ms", "group.streams.max.assignment.interval.ms"},
	{"streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms", ""},
	{"streams.num.warmup.replicas", "", "group.streams.max.warmup.replicas"},
}

// ValidateGroupConfigs checks the configs of one group.
func (v Validator) ValidateGroupConfigs(configs map[string]string) error {
	if tags := commaBetween.Split(strings.TrimSpace(configs["streams.rack.aware.assignment.tags"]), -1); len(tags) > 1 {
		if slices.Sort(tags); len(slices.Compact(slices.Clone(tags))) != len(tags) {
			return &Invalid{Key: "streams.rack.aware.assignment.tags", Message: "streams.rack.aware.assignment.tags must not contain duplicate tag keys."}
		}
	}
	parsed, err := parseAll(groupTable, configs, "group")
	if err != nil {
		return err
	}
	own := v.broker.values
	for _, bound := range groupBounds {
		given, ok := parsed[bound.key]
		if !ok {
			continue
		}
		var why string
		switch {
		case bound.low == "" && given.number > own.int64(bound.high):
			why = fmt.Sprintf("%s must be less than or equal to %d", bound.key, own.int64(bound.high))
		case bound.high == "" && given.number < own.int64(bound.low):
			why = fmt.Sprintf("%s must be greater than or equal to %d", bound.key, own.int64(bound.low))
		case bound.low != "" && bound.high != "" && (given.number < own.int64(bound.low) || given.number > own.int64(bound.high)):
			why = fmt.Sprintf("%s must be in the range %d to %d inclusive.", bound.key, own.int64(bound.low), own.int64(bound.high))
		}
		if why != "" {
			return &Invalid{Key: bound.key, Message: why}
		}
	}
	if assignor, ok := parsed["streams.assignor.name"]; ok {
		if known := own.list("group.streams.assignors"); !slices.Contains(known, assignor.text) {
			return &Invalid{Key: "streams.assignor.name", Message: fmt.Sprintf("streams.assignor.name '%s' is not a registered task assignor. Registered assignors are: %s.", assignor.text, javaList(known))}
		}
	}
	for _, protocol := range []string{"consumer", "share", "streams"} {
		sessionKey, heartbeatKey := protocol+".session.timeout.ms", protocol+".heartbeat.interval.ms"
		session, sessionGiven := parsed[sessionKey]
		heartbeat, heartbeatGiven := parsed[heartbeatKey]
		if !sessionGiven && !heartbeatGiven {
			continue
		}
		if !sessionGiven {
			session = v.broker.inherited(groupTable.byName[sessionKey])
		}
		if !heartbeatGiven {
			heartbeat = v.broker.inherited(groupTable.byName[heartbeatKey])
		}
		if session.number <= heartbeat.number {
			return &Invalid{Key: sessionKey, Message: sessionKey + " must be greater than " + heartbeatKey}
		}
	}
	if strings.HasPrefix(parsed["errors.deadletterqueue.topic.name"].text, "__") {
		return &Invalid{Key: "errors.deadletterqueue.topic.name", Message: "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'"}
	}
	return nil
}

// ListConfig reports whether the config is a list, to which values can be appended, and its default, "" when it has none.
func (v Validator) ListConfig(t metadata.ResourceType, name string) (isList bool, defaultValue string) {
	var row *Row
	switch t {
	case metadata.TopicResource:
		row = topicTable.byName[name]
	case metadata.BrokerResource:
		row = brokerTable.byName[name]
	}
	if row == nil || row.Type != List {
		return false, ""
	}
	return true, row.Default
}

// EffectiveTopicConfigs returns every config of a topic for the CreateTopics response, sorted by name.
func (v Validator) EffectiveTopicConfigs(topic, broker, cluster map[string]string) []metadata.TopicConfig {
	configs := make([]metadata.TopicConfig, 0, len(topicTable.rows))
	for _, row := range topicTable.rows {
		if _, own := topic[row.Name]; row.Internal && !own {
			continue
		}
		text, source := v.effective(row, topic, broker, cluster)
		c := metadata.TopicConfig{Name: row.Name, Source: source, Sensitive: row.Type == Password}
		if !c.Sensitive {
			c.Value = text
		}
		configs = append(configs, c)
	}
	return configs
}

func (v Validator) effective(row *Row, topic, broker, cluster map[string]string) (text *string, source int8) {
	if own, ok := topic[row.Name]; ok {
		return &own, SourceTopic
	}
	for _, layer := range []struct {
		values map[string]string
		source int8
	}{{broker, SourceDynamicBroker}, {cluster, SourceDynamicDefault}, {v.broker.layers.static, SourceStatic}} {
		for _, s := range row.Synonyms {
			if text, ok := layer.values[s.Name]; ok {
				if s.Factor == 1 {
					return &text, layer.source
				}
				if n, why := brokerTable.byName[s.Name].parse(text); why == nil {
					n.number *= s.Factor
					return row.format(n), layer.source
				}
			}
		}
	}
	return row.format(row.defaultValue()), SourceDefault
}
