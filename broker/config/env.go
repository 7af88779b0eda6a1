package config

import (
	"regexp"
	"strings"
)

// notConfigs are KAFKA_ variables that the apache/kafka image has for the JVM and its logging.
var notConfigs = map[string]bool{
	"KAFKA_VERSION":              true,
	"KAFKA_HEAP_OPTS":            true,
	"KAFKA_LOG4J_OPTS":           true,
	"KAFKA_OPTS":                 true,
	"KAFKA_JMX_OPTS":             true,
	"KAFKA_JVM_PERFORMANCE_OPTS": true,
	"KAFKA_GC_LOG_OPTS":          true,
	"KAFKA_LOG4J_ROOT_LOGLEVEL":  true,
	"KAFKA_LOG4J_LOGGERS":        true,
	"KAFKA_TOOLS_LOG4J_LOGLEVEL": true,
	"KAFKA_JMX_HOSTNAME":         true,
	"KAFKA_JMX_PORT":             true,
}

var advertisedHost = regexp.MustCompile(`://(\[[^\]]*\]|[^:,]*):`)

// FromEnv maps the KAFKA_ variables among environ ("NAME=value") to keys as the apache/kafka image does: KAFKA_NODE_ID is node.id;
// two underscores stand for one, three for a dash. As there, listeners is made of advertised.listeners when only that is given.
func FromEnv(environ []string) map[string]string {
	values := make(map[string]string)
	for _, variable := range environ {
		name, text, ok := strings.Cut(variable, "=")
		rest, ours := strings.CutPrefix(name, "KAFKA_")
		if !ok || !ours || rest == "" || notConfigs[name] {
			continue
		}
		values[envKey(rest)] = text
	}
	if advertised := values["advertised.listeners"]; advertised != "" && values["listeners"] == "" && values["process.roles"] != "controller" {
		values["listeners"] = advertisedHost.ReplaceAllString(advertised, "://0.0.0.0:")
	}
	return values
}

func envKey(name string) string {
	return strings.NewReplacer("___", "-", "__", "_", "_", ".").Replace(strings.ToLower(name))
}
