package broker

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"go.uber.org/zap"

	"sluice/broker/config"
)

// Config says how to run one broker. The zero value with Dev and Ephemeral set is a broker in memory on localhost:9092.
//
// A setting is taken from the first of these that has it: Overrides (and Listen and DataDir, which stand for listeners and log.dirs),
// Environment, Properties, the dev profile, Kafka's default.
type Config struct {
	// Dev selects the profile of a laptop: one node that formats an empty data directory by itself, internal topics with one replica, no
	// rebalance delay. Without it Kafka's defaults hold, and the directories must have been formatted.
	Dev bool
	// Properties are the settings of a server.properties.
	Properties map[string]string
	// Environment is read for KAFKA_ variables, as os.Environ returns it.
	Environment []string
	// Overrides are Kafka broker configs by key; an unknown key is refused.
	Overrides map[string]string

	// DataDir replaces log.dirs when it is not empty.
	DataDir string
	// DefaultDataDir is the dev profile's log.dirs: it holds where nothing else names a directory.
	DefaultDataDir string
	// Ephemeral keeps everything in memory. Nothing is read from or written to a disk.
	Ephemeral bool
	// Listen, HOST:PORT, replaces the listeners for clients by one for plaintext. Port 0 takes a free one.
	Listen string
	// Admin is where metrics and health are served, HOST:PORT. Empty or "off": nowhere.
	Admin string

	// Version is what the broker calls itself.
	Version string
	// Log gets few lines at info level, and no payloads. May be nil.
	Log *zap.Logger
	// LogLevel, when it is what Log obeys, can be seen and set by clients as the logger "root" of the resource BROKER_LOGGER. May be nil.
	LogLevel *zap.AtomicLevel
}

// load merges the sources and checks them. Warnings go to the log.
func (c Config) load() (*config.Broker, error) {
	sources := config.Sources{Overrides: maps.Clone(c.Overrides), Env: config.FromEnv(c.Environment), File: c.Properties}
	if sources.Overrides == nil {
		sources.Overrides = map[string]string{}
	}
	if c.Dev {
		sources.Profile = config.DevProfile()
		if c.DefaultDataDir != "" {
			sources.Profile["log.dirs"] = c.DefaultDataDir
		}
	}
	if dir := cmp.Or(c.DataDir, c.DefaultDataDir); strings.Contains(dir, ",") {
		return nil, fmt.Errorf("the data directory %s has a comma in its name, which separates directories in log.dirs: choose another", dir)
	}
	if c.DataDir != "" {
		for _, key := range []string{"log.dirs", "log.dir"} {
			if _, given := sources.Overrides[key]; given {
				return nil, fmt.Errorf("both a data directory and %s are given: leave one of them out", key)
			}
		}
		sources.Overrides["log.dirs"] = c.DataDir
	}
	if c.Listen != "" {
		if _, given := sources.Overrides["listeners"]; given {
			return nil, errors.New("both a listen address and listeners are given: leave one of them out")
		}
		sources.Overrides["listeners"] = c.clientListener(sources)
	}
	if class := setting(sources, "authorizer.class.name"); class != "" {
		return nil, fmt.Errorf("authorizer.class.name=%s: there is no authorizer yet, and a broker that was meant to check access must not run open: take the setting out to run without one", class)
	}
	loaded, warnings, err := config.Load(sources)
	for _, w := range warnings {
		c.Log.Warn("configuration", zap.String("key", w.Key), zap.String("source", w.Source), zap.String("problem", w.Message))
	}
	return loaded, err
}

// setting is what the strongest source that has the key says; empty if none has it.
func setting(sources config.Sources, key string) string {
	for _, source := range []map[string]string{sources.Overrides, sources.Env, sources.File, sources.Profile} {
		if value, ok := source[key]; ok {
			return value
		}
	}
	return ""
}

// clientListener is the listeners setting that has Listen in place of what the other sources give for clients.
func (c Config) clientListener(sources config.Sources) string {
	find := func(key string) string { return setting(sources, key) }
	listeners := []string{"PLAINTEXT://" + c.Listen}
	for name := range strings.SplitSeq(find("controller.listener.names"), ",") {
		for listener := range strings.SplitSeq(find("listeners"), ",") {
			if listener = strings.TrimSpace(listener); name != "" && strings.HasPrefix(strings.ToUpper(listener), strings.ToUpper(strings.TrimSpace(name))+"://") {
				listeners = append(listeners, listener)
			}
		}
	}
	return strings.Join(listeners, ",")
}

// checkServed refuses what this program does not do yet, so that nobody believes in a cluster that is none.
func checkServed(c *config.Broker) error {
	switch {
	case !c.IsBroker || !c.IsController:
		return fmt.Errorf("process.roles=%s: a node has both roles, broker,controller, for now", strings.Join(c.ProcessRoles, ","))
	case len(c.ControllerQuorumVoters) > 1:
		return fmt.Errorf("controller.quorum.voters names %d voters: a quorum has one, this node, for now", len(c.ControllerQuorumVoters))
	case len(c.ControllerQuorumBootstrapServers) > 1:
		return fmt.Errorf("controller.quorum.bootstrap.servers names %d servers: a quorum has one voter, this node, for now", len(c.ControllerQuorumBootstrapServers))
	case len(c.ControllerQuorumVoters) == 1 && c.ControllerQuorumVoters[0].NodeID != c.NodeID:
		return fmt.Errorf("controller.quorum.voters names node %d, but node.id is %d", c.ControllerQuorumVoters[0].NodeID, c.NodeID)
	}
	for _, l := range c.Listeners {
		if l.SecurityProtocol != config.Plaintext && !l.Controller {
			return fmt.Errorf("listener %s: security protocol %s is not served yet; PLAINTEXT is", l.Name, l.SecurityProtocol)
		}
	}
	return nil
}
