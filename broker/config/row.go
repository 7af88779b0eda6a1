package config

import (
	"slices"
	"strings"
)

// Type is what a config's text is read as. The numbers are those of DescribeConfigs.
type Type int8

// Kafka's config types.
const (
	Boolean  Type = 1
	String   Type = 2
	Int      Type = 3 // 32 bit
	Short    Type = 4 // 16 bit
	Long     Type = 5 // 64 bit
	Double   Type = 6
	List     Type = 7 // comma-separated
	Class    Type = 8 // a Java class name, kept as text
	Password Type = 9 // never shown
)

func (t Type) String() string {
	return [...]string{"", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"}[t]
}

// bits is the width of an integer type.
func (t Type) bits() int {
	switch t {
	case Short:
		return 16
	case Int:
		return 32
	default:
		return 64
	}
}

// Update says how a broker config may be changed while the broker runs.
type Update uint8

// The update modes of broker configs.
const (
	ReadOnly    Update = iota // only by a restart
	PerBroker                 // for one broker at a time
	ClusterWide               // for one broker, or for all as a default
)

func (u Update) String() string { return [...]string{"read-only", "per-broker", "cluster-wide"}[u] }

// Row is everything there is to say about one config.
type Row struct {
	Name        string
	Type        Type
	Default     string // in canonical form
	NoDefault   bool   // null unless set
	Required    bool   // must be set
	Valid       Valid  // what is accepted beyond the type; nil accepts all
	Update      Update // broker configs only
	DynamicOnly bool   // a broker config that no file may hold, only AlterConfigs
	Internal    bool   // shown by DescribeConfigs only when it is set
	// Synonyms are the broker keys that give the value, the first that is set wins. A row of another resource falls back to them;
	// in a row of a broker they include the row itself.
	Synonyms []Synonym
	Ignored  string // why the value changes nothing; empty when it does something
	Doc      string
}

// Synonym is a broker key for the same setting, perhaps at another unit.
type Synonym struct {
	Name   string
	Factor int64 // what its value is multiplied with to get the unit of the setting; 1 leaves text as it is
}

func same(name string) []Synonym { return []Synonym{{name, 1}} }

const (
	minuteMs = 60_000
	hourMs   = 60 * minuteMs
)

var (
	logRetentionSynonyms  = []Synonym{{"log.retention.ms", 1}, {"log.retention.minutes", minuteMs}, {"log.retention.hours", hourMs}}
	logRollSynonyms       = []Synonym{{"log.roll.ms", 1}, {"log.roll.hours", hourMs}}
	logRollJitterSynonyms = []Synonym{{"log.roll.jitter.ms", 1}, {"log.roll.jitter.hours", hourMs}}
	logFlushSynonyms      = []Synonym{{"log.flush.interval.ms", 1}, {"log.flush.scheduler.interval.ms", 1}}
)

// Reasons why keys are accepted but change nothing.
const (
	singleNode        = "a cluster has one node in this version"
	goScheduled       = "Go's scheduler shares the processors; there are no thread pools to size"
	javaPlugin        = "Java classes cannot be loaded"
	javaMetrics       = "metrics are served to Prometheus on the admin port"
	waitListsAreExact = "waiting requests are removed when they are answered"
	tieredStorage     = "there is no tiered storage"
	controllerMetrics = "metrics of the controller are served to Prometheus on the admin port"
	kerberos          = "Kerberos is not supported"
	systemBuffers     = "the operating system sizes the buffers and queues of sockets"
	boundedByBytes    = "waiting requests are bounded in bytes over all connections, and in number on each connection"
	filesGrow         = "files grow as they are written"
	metadataLogKept   = "the metadata log is kept whole in this version"
)

func notServed(what string) string { return what + ": not served by this version" }

// section is a part of the table with a heading of docs/CONFIG.md.
type section struct {
	title string
	rows  []Row
}

var brokerSections = []section{
	{"Node", nodeRows},
	{"Listeners, sockets and connections", networkRows},
	{"Logs", logRows},
	{"Fetching and waiting requests", fetchRows},
	{"Replication", replicationRows},
	{"Metadata quorum", raftRows},
	{"Groups and committed offsets", groupRows},
	{"Transactions", transactionRows},
	{"Share groups", shareRows},
	{"Streams groups", streamsRows},
	{"Security", securityRows},
	{"Quotas", quotaRows},
	{"Metrics", metricsRows},
	{"Tiered storage", remoteRows},
}

// table is all rows of one kind of resource, by name.
type table struct {
	rows   []*Row // by name, ascending
	byName map[string]*Row
}

func newTable(sections ...section) *table {
	t := &table{byName: make(map[string]*Row)}
	for _, s := range sections {
		for i := range s.rows {
			row := &s.rows[i]
			t.rows = append(t.rows, row)
			t.byName[row.Name] = row
		}
	}
	slices.SortFunc(t.rows, func(a, b *Row) int { return strings.Compare(a.Name, b.Name) })
	return t
}

var (
	brokerTable        = newTable(brokerSections...)
	topicTable         = newTable(section{rows: topicRows})
	groupTable         = newTable(section{rows: groupResourceRows})
	clientMetricsTable = newTable(section{rows: clientMetricsRows})
)

// listenerPrefix begins a broker key that holds for one listener only: listener.name.LISTENER.KEY.
const listenerPrefix = "listener.name."

// mechanismKeys may follow a SASL mechanism inside a listener key: listener.name.LISTENER.MECHANISM.KEY.
var mechanismKeys = []string{
	"sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class", "sasl.server.callback.handler.class", "connections.max.reauth.ms",
}

// splitListenerKey returns the key behind a listener prefix as it was written, and without a mechanism in front.
func splitListenerKey(key string) (rest, base string, ok bool) {
	after, found := strings.CutPrefix(key, listenerPrefix)
	if !found {
		return "", "", false
	}
	_, rest, found = strings.Cut(after, ".")
	if !found {
		return "", "", false
	}
	for _, m := range mechanismKeys {
		if strings.HasSuffix(rest, m) {
			return rest, m, true
		}
	}
	return rest, rest, true
}

// brokerRow finds the row of a broker key; a key for one listener has the row of the key that it overrides.
func brokerRow(key string) *Row {
	if row := brokerTable.byName[key]; row != nil {
		return row
	}
	if _, base, ok := splitListenerKey(key); ok {
		return brokerTable.byName[base]
	}
	return nil
}

// brokerSynonyms are the keys under which a broker key's value may have been set, the strongest first.
func brokerSynonyms(key string) []string {
	if row := brokerTable.byName[key]; row != nil {
		if row.Synonyms == nil {
			return []string{key}
		}
		names := make([]string, len(row.Synonyms))
		for i, s := range row.Synonyms {
			names[i] = s.Name
		}
		return names
	}
	if _, base, ok := splitListenerKey(key); ok {
		return []string{key, base}
	}
	return []string{key}
}
