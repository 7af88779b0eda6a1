package config

import "io"

// Sources are the places that keys come from. Where several name the same key the first of Overrides, Env, File and Profile wins.
type Sources struct {
	Overrides map[string]string // --set and flags: an unknown key here is an error
	Env       map[string]string // as FromEnv returns it
	File      map[string]string // as ParseProperties returns it
	Profile   map[string]string // as Profile returns it; reported as defaults would be
}

// Warning is something odd about a source that does not keep the broker from starting.
type Warning struct {
	Key     string
	Source  string // "--set", "environment", "properties file", "profile", "dynamic"
	Message string // a whole sentence
}

// Load merges the sources, checks every value and the rules between them, and returns the snapshot.
func Load(sources Sources) (*Broker, []Warning, error) { panic("not written yet") }

// Topic returns the snapshot of a topic with the given overrides (which were validated when they were set).
func (b *Broker) Topic(overrides map[string]string) *Topic { panic("not written yet") }

// WithDynamic returns a snapshot in which the cluster-wide dynamic configs and then this broker's own lie over the loaded
// values. A stored value that is no longer valid is left out and reported.
func (b *Broker) WithDynamic(cluster, own map[string]string) (*Broker, []Warning) {
	panic("not written yet")
}

// ParseProperties reads a Java .properties file.
func ParseProperties(r io.Reader) (map[string]string, error) { panic("not written yet") }

// FromEnv maps KAFKA_* environment variables ("NAME=value") to keys as the apache/kafka image does.
func FromEnv(environ []string) map[string]string { panic("not written yet") }

// DevProfile returns the values that `sluice` without a properties file runs with.
func DevProfile() map[string]string { panic("not written yet") }

// WriteMarkdown writes docs/CONFIG.md.
func WriteMarkdown(w io.Writer) error { panic("not written yet") }
