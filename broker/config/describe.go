package config

import (
	"maps"
	"slices"
)

// Where a value comes from, as DescribeConfigs numbers it.
const (
	SourceTopic          int8 = 1
	SourceDynamicBroker  int8 = 2
	SourceDynamicDefault int8 = 3
	SourceStatic         int8 = 4
	SourceDefault        int8 = 5
	SourceBrokerLogger   int8 = 6
	SourceClientMetrics  int8 = 7
	SourceGroup          int8 = 8
)

// Entry is one config as DescribeConfigs shows it.
type Entry struct {
	Name      string
	Value     *string // nil when there is none, or when it must not be shown
	Source    int8
	ReadOnly  bool
	Sensitive bool
	Type      Type           // 0 when the table does not know the key
	Synonyms  []SynonymEntry // in the order in which they count, the one that holds first
	Doc       string
}

// SynonymEntry is one place that gives, or would give, a value.
type SynonymEntry struct {
	Name   string
	Value  *string
	Source int8
}

// Wanted says which keys a description is about: all when it is empty.
type Wanted []string

func (w Wanted) includes(key string) bool { return len(w) == 0 || slices.Contains(w, key) }

// DescribeTopic shows the configs of a topic with the given overrides, by name.
func (b *Broker) DescribeTopic(overrides map[string]string, wanted Wanted) []Entry {
	return b.describeOwned(topicTable, overrides, SourceTopic, wanted)
}

// DescribeGroup shows the configs of a group with the given overrides, by name.
func (b *Broker) DescribeGroup(overrides map[string]string, wanted Wanted) []Entry {
	entries := b.describeOwned(groupTable, overrides, SourceGroup, wanted)
	for i, e := range entries {
		// A group's config without a broker key names its own default, a topic's does not: so it is in Kafka.
		if row := groupTable.byName[e.Name]; row.Synonyms == nil && !row.NoDefault {
			entries[i].Synonyms = append(e.Synonyms, SynonymEntry{row.Name, row.format(row.defaultValue()), SourceDefault})
		}
	}
	return entries
}

// DescribeClientMetrics shows the configs of a client metrics subscription, by name.
func (b *Broker) DescribeClientMetrics(overrides map[string]string, wanted Wanted) []Entry {
	return b.describeOwned(clientMetricsTable, overrides, SourceClientMetrics, wanted)
}

// describeOwned shows the configs of a resource that has values of its own and falls back to the broker's.
func (b *Broker) describeOwned(t *table, overrides map[string]string, source int8, wanted Wanted) []Entry {
	entries := make([]Entry, 0, len(t.rows))
	for _, row := range t.rows {
		text, own := overrides[row.Name]
		if row.Internal && !own || !wanted.includes(row.Name) {
			continue
		}
		v := b.inherited(row)
		if own {
			if parsed, why := row.parse(text); why == nil {
				v = parsed
			}
		}
		e := Entry{Name: row.Name, Type: row.Type, Sensitive: row.Type == Password, Doc: row.Doc, Source: SourceDefault}
		if !e.Sensitive {
			e.Value = row.format(v)
		}
		if own {
			e.Synonyms = append(e.Synonyms, SynonymEntry{row.Name, e.Value, source})
		}
		if row.Synonyms != nil {
			e.Synonyms = append(e.Synonyms, b.synonyms(row.Synonyms[0].Name)...)
		}
		if len(e.Synonyms) > 0 {
			e.Source = e.Synonyms[0].Source
		}
		entries = append(entries, e)
	}
	return entries
}

// DescribeBroker shows this broker's configs, by name.
func (b *Broker) DescribeBroker(wanted Wanted) []Entry {
	var keys []string
	for _, row := range brokerTable.rows {
		if _, set := b.layers.set[row.Name]; set || !row.Internal && !row.DynamicOnly {
			keys = append(keys, row.Name)
		}
	}
	for key := range b.layers.set {
		if brokerTable.byName[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	entries := make([]Entry, 0, len(keys))
	for _, key := range keys {
		if wanted.includes(key) {
			entries = append(entries, b.brokerEntry(key, b.brokerValue(key)))
		}
	}
	return entries
}

func (b *Broker) brokerValue(key string) *string {
	row := brokerTable.byName[key]
	if row == nil {
		text := b.layers.set[key]
		return &text
	}
	return row.format(b.values.byKey[key])
}

// DescribeClusterDefault shows the dynamic configs that hold for all brokers, by name; only those that are set.
func (b *Broker) DescribeClusterDefault(wanted Wanted) []Entry {
	entries := make([]Entry, 0, len(b.layers.cluster))
	for _, key := range slices.Sorted(maps.Keys(b.layers.cluster)) {
		if !wanted.includes(key) {
			continue
		}
		text := b.layers.cluster[key]
		e := b.brokerEntry(key, &text)
		e.Synonyms = slices.DeleteFunc(e.Synonyms, func(s SynonymEntry) bool { return s.Source != SourceDynamicDefault })
		if e.Source = SourceDefault; len(e.Synonyms) > 0 {
			e.Source = e.Synonyms[0].Source
		}
		entries = append(entries, e)
	}
	return entries
}

func (b *Broker) brokerEntry(key string, text *string) Entry {
	e := Entry{Name: key, Sensitive: IsSensitive(key), ReadOnly: true, Source: SourceDefault, Synonyms: b.synonyms(key)}
	if row := brokerRow(key); row != nil {
		e.Type, e.Doc = row.Type, row.Doc
		e.ReadOnly = row.Name != key || row.Update == ReadOnly
	}
	if !e.Sensitive {
		e.Value = text
	}
	if len(e.Synonyms) > 0 {
		e.Source = e.Synonyms[0].Source
	}
	return e
}

// synonyms are the places that give a value for a broker key, the strongest first. As in Kafka the list begins with the first place
// that names the key itself: a value of log.retention.hours alone is no synonym of log.retention.ms.
func (b *Broker) synonyms(key string) []SynonymEntry {
	var all []SynonymEntry
	names := brokerSynonyms(key)
	add := func(name string, text string, source int8) {
		s := SynonymEntry{Name: name, Source: source}
		if !IsSensitive(key) {
			s.Value = &text
		}
		all = append(all, s)
	}
	for _, layer := range []struct {
		values map[string]string
		source int8
	}{{b.layers.own, SourceDynamicBroker}, {b.layers.cluster, SourceDynamicDefault}, {b.layers.static, SourceStatic}} {
		for _, name := range names {
			if text, ok := layer.values[name]; ok {
				add(name, text, layer.source)
			}
		}
	}
	for _, name := range names {
		if row := brokerTable.byName[name]; row != nil && !row.NoDefault && !row.Required && !row.DynamicOnly {
			add(name, *row.format(row.defaultValue()), SourceDefault)
		}
	}
	for i, s := range all {
		if s.Name == key {
			return all[i:]
		}
	}
	return nil
}
