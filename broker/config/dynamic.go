package config

import (
	"errors"
	"maps"
	"slices"
)

// perListenerOnly are the keys that may change only for one listener, by its prefix.
var perListenerOnly = []string{
	"ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location", "ssl.keystore.password",
	"ssl.keystore.type", "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type",
}

// fixedAtStart are the keys that Kafka lets change at run time and this version does not: listeners are opened at start.
var fixedAtStart = []string{"listeners", "listener.security.protocol.map"}

// clusterWideListenerKeys are those keys of a listener that may have a default for the whole cluster.
var clusterWideListenerKeys = []string{"max.connections", "max.connection.creation.rate", "num.network.threads"}

// CheckDynamic checks all dynamic configs of this broker (perBroker) or of all brokers as they would be after a change. The error is
// an *Invalid.
func (b *Broker) CheckDynamic(configs map[string]string, perBroker bool) error {
	if err := checkDynamic(configs, perBroker); err != nil {
		return err
	}
	l := b.layers
	if perBroker {
		l.own = configs
	} else {
		l.cluster = configs
	}
	l.set = maps.Clone(l.static)
	overrideDynamic(l.set, l.cluster)
	overrideDynamic(l.set, l.own)
	_, problems := build(l)
	if len(problems) == 0 {
		return nil
	}
	var first *KeyError
	errors.As(problems[0], &first)
	return &Invalid{Key: first.Key, Message: first.Key + ": " + first.Message}
}

// UsableDynamic returns those of a broker's (perBroker) or all brokers' stored dynamic configs that are in force: the valid ones.
func (b *Broker) UsableDynamic(stored map[string]string, perBroker bool) map[string]string {
	var passedOver []Warning
	return usable(stored, perBroker, &passedOver)
}

// checkDynamic checks each config for itself.
func checkDynamic(configs map[string]string, perBroker bool) error {
	refuse := func(keys []string, message string) error {
		if len(keys) == 0 {
			return nil
		}
		slices.Sort(keys)
		return &Invalid{Key: keys[0], Message: message + ": " + javaList(keys)}
	}
	var readOnly, unprefixed, perBrokerOnly []string
	for key := range configs {
		row := brokerTable.byName[key]
		_, base, forListener := splitListenerKey(key)
		switch {
		case row != nil && row.Update == ReadOnly:
			readOnly = append(readOnly, key)
		case row != nil && slices.Contains(perListenerOnly, key):
			unprefixed = append(unprefixed, key)
		}
		if row != nil && row.Update == PerBroker || row == nil && forListener && !slices.Contains(clusterWideListenerKeys, base) {
			perBrokerOnly = append(perBrokerOnly, key)
		}
	}
	if err := refuse(readOnly, "Cannot update these configs dynamically"); err != nil {
		return err
	}
	if err := refuse(unprefixed, "These security configs can be dynamically updated only per-listener using the listener prefix"); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		if row := brokerRow(key); row != nil && row.Update != ReadOnly {
			if _, why := row.parseDynamic(configs[key]); why != nil {
				return why
			}
		}
	}
	for _, key := range fixedAtStart {
		if _, set := configs[key]; set && perBroker {
			return &Invalid{Key: key, Message: key + " cannot be changed while the broker runs in this version"}
		}
	}
	if !perBroker {
		return refuse(perBrokerOnly, "Cannot update these configs at default cluster level, broker id must be specified")
	}
	return nil
}

// ListConfig reports whether the table knows a broker config, whether values can be appended to it, and its default.
func ListConfig(key string) (known, isList bool, defaultValue string) {
	row := brokerTable.byName[key]
	if row == nil {
		return false, false, ""
	}
	return true, row.Type == List, row.Default
}

// IsSensitive reports whether the value of a broker config must not be shown: it is a password, or nobody knows what it is.
func IsSensitive(key string) bool {
	row := brokerRow(key)
	return row == nil || row.Type == Password
}
