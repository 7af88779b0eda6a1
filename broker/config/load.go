package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Sources are the places that settings come from. Where several give the same setting the first of Overrides, Env, File and Profile
// wins, also when it names the setting by another of its keys (log.retention.hours over log.retention.ms).
type Sources struct {
	Overrides map[string]string // --set and flags: an unknown key here is an error
	Env       map[string]string // as FromEnv returns it
	File      map[string]string // as ParseProperties returns it
	Profile   map[string]string // as DevProfile returns it
}

// Names of sources in warnings and errors.
const (
	sourceOverrides = "--set"
	sourceEnv       = "the environment"
	sourceFile      = "the properties file"
	sourceProfile   = "the dev profile"
	sourceDynamic   = "the dynamic configs"
)

// Warning is something odd about a source that does not keep the broker from starting.
type Warning struct {
	Key     string
	Source  string // such as "the environment"
	Message string // a sentence without Key and Source
}

// KeyError says why one key keeps the broker from starting.
type KeyError struct {
	Key     string
	Value   string // empty for sensitive keys
	Source  string // empty when the key was not given at all
	Message string
}

func (e *KeyError) Error() string {
	switch {
	case e.Source == "":
		return fmt.Sprintf("%s: %s", e.Key, e.Message)
	case e.Value == "":
		return fmt.Sprintf("%s (from %s): %s", e.Key, e.Source, e.Message)
	default:
		return fmt.Sprintf("%s=%s (from %s): %s", e.Key, e.Value, e.Source, e.Message)
	}
}

// layers are the texts that a snapshot was made from.
type layers struct {
	static  map[string]string // all sources, merged
	origin  map[string]string // the source of each key of static
	cluster map[string]string // dynamic, for all brokers
	own     map[string]string // dynamic, for this broker
	set     map[string]string // static, cluster and own, merged: what is in force
}

// Load merges the sources, checks every value and the rules between them, and returns the snapshot. Its error joins one *KeyError
// for each key that is wrong.
func Load(sources Sources) (*Broker, []Warning, error) {
	l := layers{static: make(map[string]string), origin: make(map[string]string)}
	var warnings []Warning
	var errs []error
	for _, s := range []struct {
		name   string
		values map[string]string
	}{{sourceProfile, sources.Profile}, {sourceFile, sources.File}, {sourceEnv, sources.Env}, {sourceOverrides, sources.Overrides}} {
		for _, key := range slices.Sorted(maps.Keys(s.values)) {
			row := brokerRow(key)
			switch {
			case row == nil && s.name == sourceOverrides:
				errs = append(errs, &KeyError{Key: key, Source: s.name, Message: unknownKey(key)})
				continue
			case row == nil && !pluginKey(key):
				warnings = append(warnings, Warning{Key: key, Source: s.name, Message: unknownKey(key)})
			case row != nil && row.Ignored != "" && s.name != sourceProfile && changesDefault(row, s.values[key]):
				warnings = append(warnings, Warning{Key: key, Source: s.name, Message: "has no effect: " + row.Ignored})
			}
		}
		override(l.static, s.values, func(removed string) { delete(l.origin, removed) })
		for key := range s.values {
			if _, kept := l.static[key]; kept {
				l.origin[key] = s.name
			}
		}
	}
	for _, pair := range [][2]string{{"node.id", "broker.id"}, {"broker.id", "node.id"}} {
		text, given := l.static[pair[0]]
		if _, has := l.static[pair[1]]; given && !has {
			l.static[pair[1]], l.origin[pair[1]] = text, l.origin[pair[0]]
		}
	}
	l.set = l.static
	b, problems := build(l)
	errs = append(errs, problems...)
	if len(errs) > 0 {
		return nil, warnings, errors.Join(errs...)
	}
	return b, append(warnings, b.oddities()...), nil
}

func changesDefault(row *Row, text string) bool {
	v, why := row.parse(text)
	if why != nil {
		return false // reported as an error
	}
	given, byDefault := row.format(v), row.format(row.defaultValue())
	return byDefault == nil || *given != *byDefault
}

// override lays the values of a stronger source over those of weaker ones: every key of a setting goes when one of them is set.
func override(values, stronger map[string]string, removed func(key string)) {
	for key := range stronger {
		for _, other := range family(key) {
			if _, both := stronger[other]; !both {
				delete(values, other)
				removed(other)
			}
		}
	}
	maps.Copy(values, stronger)
}

// family is the keys that give the same setting as key does, key itself among them.
func family(key string) []string {
	switch key {
	case "node.id", "broker.id":
		return []string{"node.id", "broker.id"}
	case "log.dirs", "log.dir":
		return []string{"log.dirs", "log.dir"}
	}
	if row := brokerTable.byName[key]; row != nil && row.Synonyms != nil {
		return brokerSynonyms(key)
	}
	return []string{key}
}

// WithDynamic returns a snapshot in which the cluster-wide dynamic configs and then this broker's own lie over the loaded values.
// A stored value that is not valid, or not for a key that may change, is left out and reported.
func (b *Broker) WithDynamic(cluster, own map[string]string) (*Broker, []Warning) {
	l := b.layers
	var warnings []Warning
	l.cluster = usable(cluster, false, &warnings)
	l.own = usable(own, true, &warnings)
	for {
		l.set = maps.Clone(l.static)
		overrideDynamic(l.set, l.cluster)
		overrideDynamic(l.set, l.own)
		next, problems := build(l)
		if len(problems) == 0 {
			return next, warnings
		}
		// Values that are valid alone break a rule together: leave out what the first broken rule names, and look again.
		var bad *KeyError
		errors.As(problems[0], &bad)
		_, isOwn := l.own[bad.Key]
		_, isCluster := l.cluster[bad.Key]
		warnings = append(warnings, Warning{Key: bad.Key, Source: sourceDynamic, Message: bad.Message})
		switch {
		case isOwn:
			delete(l.own, bad.Key)
		case isCluster:
			delete(l.cluster, bad.Key)
		default: // the rule names a static key that the dynamic ones conflict with: stay with what has worked
			return b, warnings
		}
	}
}

func overrideDynamic(values, stronger map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(stronger)) {
		for _, other := range brokerSynonyms(key) {
			if other != key && strings.HasPrefix(key, listenerPrefix) {
				continue // a listener's own value does not replace the common one
			}
			delete(values, other)
		}
		values[key] = stronger[key]
	}
}

func usable(stored map[string]string, perBroker bool, warnings *[]Warning) map[string]string {
	kept := make(map[string]string, len(stored))
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		err := checkDynamic(map[string]string{key: stored[key]}, perBroker)
		if err != nil {
			*warnings = append(*warnings, Warning{Key: key, Source: sourceDynamic, Message: err.Error()})
			continue
		}
		kept[key] = stored[key]
	}
	return kept
}

// pluginKey reports whether the key is one of a plugin's that Kafka hands on unread.
func pluginKey(key string) bool {
	return strings.HasPrefix(key, "config.providers.") || strings.HasPrefix(key, "rsm.config.") || strings.HasPrefix(key, "rlmm.config.")
}
