package metadata

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
)

// Configs that the machine itself has to know.
const (
	configMinInSyncReplicas = "min.insync.replicas"
	configUncleanElection   = "unclean.leader.election.enable"
	configCordonedLogDirs   = "cordoned.log.dirs"
)

// maxConfigValue is the longest value of a config, in UTF-16 units as Kafka counts.
const maxConfigValue = 32767

func (m *Machine) replayConfig(r *logrecord.ConfigRecord) error {
	key := ConfigResource{ResourceType(r.ResourceType), r.ResourceName}.key()
	before, _ := m.next.configs.get(key)
	next := maps.Clone(before)
	if next == nil {
		next = map[string]string{}
	}
	if r.Value == nil {
		delete(next, r.Name)
	} else {
		next[r.Name] = *r.Value
	}
	if len(next) == 0 {
		m.next.configs.remove(m.edit, key)
	} else {
		m.next.configs.put(m.edit, key, next)
	}
	m.touched.configs[key] = struct{}{}
	return nil
}

func (s *state) configsOf(r ConfigResource) map[string]string {
	c, _ := s.configs.get(r.key())
	return c
}

func (m *Machine) nodeConfigs() map[string]string {
	return m.next.configsOf(ConfigResource{BrokerResource, strconv.Itoa(int(m.settings.NodeID))})
}

func (m *Machine) clusterConfigs() map[string]string {
	return m.next.configsOf(ConfigResource{BrokerResource, ""})
}

// topicConfig returns the dynamic value that holds for a topic: its own, this node's, or the cluster's.
func (m *Machine) topicConfig(topic, name string) (string, bool) {
	for _, configs := range []map[string]string{m.next.configsOf(ConfigResource{TopicResource, topic}), m.nodeConfigs(), m.clusterConfigs()} {
		if value, set := configs[name]; set {
			return value, true
		}
	}
	return "", false
}

func (m *Machine) minInSyncReplicas(topic string) int32 {
	if value, set := m.topicConfig(topic, configMinInSyncReplicas); set {
		if n, err := strconv.ParseInt(value, 10, 32); err == nil {
			return int32(n)
		}
	}
	return m.settings.MinInSyncReplicas
}

func (m *Machine) uncleanElection(topic string) bool {
	if value, set := m.topicConfig(topic, configUncleanElection); set {
		return strings.EqualFold(value, "true")
	}
	return m.settings.UncleanLeaderElection
}

// A configEdit is one config of a resource after a change; a nil value removes it.
type configEdit struct {
	name  string
	value *string
}

// alterConfigs checks a change of one resource and returns its records. created tells that the resource comes into being with it.
func (m *Machine) alterConfigs(r ConfigResource, edits []configEdit, created bool) ([]logrecord.ClusterRecord, *Error) {
	before := m.next.configsOf(r)
	after := maps.Clone(before)
	if after == nil {
		after = map[string]string{}
	}
	var records []logrecord.ClusterRecord
	for _, e := range edits {
		if rejected := m.checkEdit(r, e); rejected != nil {
			return nil, rejected
		}
		if e.value == nil {
			delete(after, e.name)
		} else {
			after[e.name] = *e.value
		}
		records = append(records, &logrecord.ConfigRecord{ResourceType: int8(r.Type), ResourceName: r.Name, Name: e.name, Value: e.value})
	}
	if rejected := m.validateConfigs(r, after); rejected != nil {
		return nil, rejected
	}
	if !created {
		if rejected := m.exists(r); rejected != nil {
			return nil, rejected
		}
	}
	return records, nil
}

// checkEdit refuses what no configuration table can know of: the state of the cluster forbids it.
func (m *Machine) checkEdit(r ConfigResource, e configEdit) *Error {
	if r.Type == BrokerResource && e.name == configMinInSyncReplicas && m.next.elrEnabled() {
		if r.Name != "" {
			return reject(kerr.InvalidConfig, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
		}
		if e.value == nil {
			return reject(kerr.InvalidConfig, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")
		}
	}
	if r.Type == BrokerResource && e.name == configCordonedLogDirs && m.next.metadataVersion() < levelCordoned {
		return reject(kerr.InvalidConfig, "The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= 4.3-IV0")
	}
	if e.value != nil && len(*e.value) > maxConfigValue && len(utf16.Encode([]rune(*e.value))) > maxConfigValue {
		return reject(kerr.InvalidConfig, "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.")
	}
	return nil
}

func (m *Machine) validateConfigs(r ConfigResource, configs map[string]string) *Error {
	var err error
	switch r.Type {
	case TopicResource:
		if r.Name == "" {
			return reject(kerr.InvalidRequest, "Default topic resources are not allowed.")
		}
		if rejected := ValidateTopicName(r.Name); rejected != nil {
			return rejected
		}
		err = m.settings.Configs.ValidateTopicConfigs(configs)
	case BrokerResource:
		// Which broker configs may change, and to what, is checked by the broker that takes the request.
		return validateBrokerName(r.Name)
	case ClientMetricsResource:
		err = m.settings.Configs.ValidateClientMetricsConfigs(r.Name, configs)
	case GroupResource:
		if r.Name == "" {
			return reject(kerr.InvalidRequest, "Default group resources are not allowed.")
		}
		err = m.settings.Configs.ValidateGroupConfigs(configs)
	default:
		return reject(kerr.InvalidRequest, "Unknown resource type %s", r.Type)
	}
	return invalidConfig(err)
}

func invalidConfig(err error) *Error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	return &Error{kerr.InvalidConfig.Code, err.Error()}
}

func validateBrokerName(name string) *Error {
	if name == "" {
		return nil
	}
	switch id, err := strconv.ParseInt(name, 10, 32); {
	case err != nil:
		return reject(kerr.InvalidRequest, "Unable to parse broker name as a base 10 number.")
	case id < 0:
		return reject(kerr.InvalidRequest, "Invalid negative broker ID.")
	}
	return nil
}

// exists checks that there is a topic or node to configure; groups and client metrics subscriptions need no other existence than their configs.
func (m *Machine) exists(r ConfigResource) *Error {
	switch r.Type {
	case TopicResource:
		if _, found := m.next.topics.get(r.Name); !found {
			return reject(kerr.UnknownTopicOrPartition, "The topic '%s' does not exist.", r.Name)
		}
	case BrokerResource:
		if r.Name == "" {
			return nil
		}
		n, err := strconv.ParseInt(r.Name, 10, 32)
		if err != nil {
			return reject(kerr.InvalidRequest, "Invalid broker name %s", r.Name)
		}
		id := BrokerID(n)
		_, broker := m.next.brokers.get(id)
		_, controller := m.next.controllers.get(id)
		if !broker && !controller && !slices.Contains(m.settings.Voters, id) {
			return reject(kerr.BrokerIDNotRegistered, "No node with id %d found.", id)
		}
	}
	return nil
}

// clearELRsFor follows changes of min.insync.replicas: which replicas were eligible was decided by the old value.
func (m *Machine) clearELRsFor(records []logrecord.ClusterRecord) (cleared []logrecord.ClusterRecord) {
	if !m.next.elrEnabled() {
		return nil
	}
	for _, r := range records {
		c, ok := r.(*logrecord.ConfigRecord)
		switch {
		case !ok || c.Name != configMinInSyncReplicas:
		case ResourceType(c.ResourceType) == TopicResource:
			cleared = append(cleared, &logrecord.ClearELRRecord{TopicName: c.ResourceName})
		default:
			cleared = append(cleared, &logrecord.ClearELRRecord{})
		}
	}
	return cleared
}

// incrementalEdits works out what SET, DELETE, APPEND and SUBTRACT lead to.
func (m *Machine) incrementalEdits(r ConfigResource, ops []kmsg.IncrementalAlterConfigsRequestResourceConfig) ([]configEdit, *Error) {
	before := m.next.configsOf(r)
	var edits []configEdit
	at := map[string]int{} // a config that is named twice counts as its last operation says
	for i, op := range ops {
		at[op.Name] = i
	}
	for i, op := range ops {
		if at[op.Name] != i {
			continue
		}
		value, rejected := m.applyOp(r, op, before)
		if rejected != nil {
			return nil, rejected
		}
		now, set := before[op.Name]
		if unchanged := set == (value != nil) && (value == nil || *value == now); unchanged && r.Type != BrokerResource {
			continue
		}
		edits = append(edits, configEdit{op.Name, value})
	}
	return edits, nil
}

func (m *Machine) applyOp(r ConfigResource, op kmsg.IncrementalAlterConfigsRequestResourceConfig, before map[string]string) (*string, *Error) {
	switch op.Op {
	case kmsg.IncrementalAlterConfigOpSet:
		return op.Value, nil
	case kmsg.IncrementalAlterConfigOpDelete:
		return nil, nil
	case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
	default:
		return nil, reject(kerr.InvalidRequest, "Unknown operation type %d for config %s", op.Op, op.Name)
	}
	isList, standard := m.settings.Configs.ListConfig(r.Type, op.Name)
	if !isList {
		return nil, reject(kerr.InvalidConfig, "Can't %s to key %s because its type is not LIST.", op.Op, op.Name)
	}
	if op.Value == nil {
		return nil, reject(kerr.InvalidRequest, "Null value not supported for %s of config %s", op.Op, op.Name)
	}
	now, set := before[op.Name]
	if !set {
		now = standard
	}
	parts := slices.DeleteFunc(strings.Split(now, ","), func(s string) bool { return s == "" })
	for _, value := range strings.Split(*op.Value, ",") {
		i := slices.Index(parts, value)
		switch {
		case op.Op == kmsg.IncrementalAlterConfigOpAppend && i < 0:
			parts = append(parts, value)
		case op.Op == kmsg.IncrementalAlterConfigOpSubtract && i >= 0:
			parts = slices.Delete(parts, i, i+1)
		}
	}
	joined := strings.Join(parts, ",")
	return &joined, nil
}

func (t ResourceType) String() string {
	switch t {
	case TopicResource:
		return "TOPIC"
	case BrokerResource:
		return "BROKER"
	case BrokerLoggerResource:
		return "BROKER_LOGGER"
	case ClientMetricsResource:
		return "CLIENT_METRICS"
	case GroupResource:
		return "GROUP"
	}
	return "UNKNOWN"
}

// knownResource reports whether requests may name the type at all.
func knownResource(t ResourceType) bool { return t.String() != "UNKNOWN" }
