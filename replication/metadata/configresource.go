package metadata

// ResourceType tells the kinds of resources with configs apart, with Kafka's ids.
type ResourceType int8

// The kinds of resources that the metadata log keeps configs for.
const (
	TopicResource         ResourceType = 2
	BrokerResource        ResourceType = 4
	BrokerLoggerResource  ResourceType = 8 // never stored: log levels live in the node
	ClientMetricsResource ResourceType = 16
	GroupResource         ResourceType = 32
)

// A ConfigResource is something that has configs. A BrokerResource without a name is the cluster-wide default of all brokers.
type ConfigResource struct {
	Type ResourceType
	Name string
}

// A ConfigValidator knows which values the config table allows. The maps hold all values that the resource itself would have after the change.
// An error's text goes to the client as it is; the code is INVALID_CONFIG unless the error is an *Error.
type ConfigValidator interface {
	// ValidateTopicConfigs checks the overrides of one topic.
	ValidateTopicConfigs(configs map[string]string) error
	// ValidateGroupConfigs checks the configs of one group.
	ValidateGroupConfigs(configs map[string]string) error
	// ValidateClientMetricsConfigs checks one client metrics subscription.
	ValidateClientMetricsConfigs(name string, configs map[string]string) error
	// ListConfig reports whether the config is a list, to which values can be appended, and its default, "" when it has none.
	ListConfig(t ResourceType, name string) (isList bool, defaultValue string)
	// EffectiveTopicConfigs returns every config of a topic for the CreateTopics response, sorted by name, given the overrides of the topic, of
	// the node and of the cluster.
	EffectiveTopicConfigs(topic, broker, cluster map[string]string) []TopicConfig
}

// A TopicConfig is the value that a topic config has in effect.
type TopicConfig struct {
	Name      string
	Value     *string
	Source    int8 // as in DescribeConfigs: 1 topic, 2 broker, 3 cluster default, 4 static, 5 default
	ReadOnly  bool
	Sensitive bool
}

// configKey orders resources by type, then name.
type configKey string

func (r ConfigResource) key() configKey { return configKey([]byte{byte(r.Type)}) + configKey(r.Name) }

func (k configKey) resource() ConfigResource {
	return ConfigResource{Type: ResourceType(k[0]), Name: string(k[1:])}
}
