package config

// DevProfile returns the settings of `sluice` without a properties file: one node that is its own controller, internal topics with
// one replica, and no waiting for members that will not come.
func DevProfile() map[string]string {
	return map[string]string{
		"node.id":       "1",
		"process.roles": "broker,controller",
		"listeners":     "PLAINTEXT://localhost:9092",

		"group.initial.rebalance.delay.ms": "0",

		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
	}
}
