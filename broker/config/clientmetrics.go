package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/replication/metadata"
)

// The bounds of interval.ms of a client metrics subscription, both included.
const (
	clientMetricsIntervalMsMin = 100
	clientMetricsIntervalMsMax = 3_600_000
)

// clientMetricsParameters are what a client metrics subscription may match clients by.
var clientMetricsParameters = []string{"client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address", "client_source_port"}

// ValidateClientMetricsConfigs checks one client metrics subscription.
func (v Validator) ValidateClientMetricsConfigs(name string, configs map[string]string) error {
	badRequest := func(format string, args ...any) error {
		return &metadata.Error{Code: kerr.InvalidRequest.Code, Message: fmt.Sprintf(format, args...)}
	}
	if name == "" {
		return badRequest("Subscription name can't be empty")
	}
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		if clientMetricsTable.byName[key] == nil {
			return badRequest("Unknown client metrics configuration: %s", key)
		}
	}
	parsed, err := parseAll(clientMetricsTable, configs, "client metrics")
	if err != nil {
		return err
	}
	if interval, ok := parsed["interval.ms"]; ok && (interval.number < clientMetricsIntervalMsMin || interval.number > clientMetricsIntervalMsMax) {
		return badRequest("Invalid value %d for interval.ms, interval must be between 100 and 3600000 (1 hour)", interval.number)
	}
	for _, pattern := range parsed["match"].list {
		parameter, expression, ok := strings.Cut(pattern, "=")
		_, syntax := regexp.Compile(strings.TrimSpace(expression))
		if !ok || expression == "" || strings.Contains(expression, "=") || syntax != nil || !slices.Contains(clientMetricsParameters, strings.TrimSpace(parameter)) {
			return &Invalid{Key: "match", Message: "Illegal client matching pattern: " + pattern}
		}
	}
	return nil
}
