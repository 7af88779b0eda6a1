package config

// Validator checks configs that a client wants to set. It implements the interface that replication/metadata declares.
type Validator struct{}

// Invalid says why a config was refused; Message is the text a client sees (Kafka's).
type Invalid struct {
	Key     string
	Message string
}

func (e *Invalid) Error() string { return e.Message }

// ValidateTopicConfigs checks all overrides of a topic together.
func (Validator) ValidateTopicConfigs(overrides map[string]string) error { panic("not written yet") }

// ValidateBrokerConfigs checks the dynamic configs of one broker (perBroker) or of the whole cluster.
func (Validator) ValidateBrokerConfigs(configs map[string]string, perBroker bool) error {
	panic("not written yet")
}
