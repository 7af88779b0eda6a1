// Package config holds THE table of configs: every broker, topic, group and client-metrics config of Kafka 4.4 with its type,
// default, range and how it may be changed. Loading, DescribeConfigs, the checks of AlterConfigs and docs/CONFIG.md are all computed from it.
package config
