package config

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shown writes entries in the form of testdata/describe-4.4.0.txt.
func shown(entries []Entry) []string {
	text := func(s *string) string {
		if s == nil {
			return `\N`
		}
		return *s
	}
	var lines []string
	for _, e := range entries {
		line := fmt.Sprintf("%s\t%s\tsrc=%d ro=%v sens=%v type=%d", e.Name, text(e.Value), e.Source, e.ReadOnly, e.Sensitive, e.Type)
		for _, s := range e.Synonyms {
			line += fmt.Sprintf(" [%s=%s %d]", s.Name, text(s.Value), s.Source)
		}
		lines = append(lines, line)
	}
	return lines
}

func fromFile(t *testing.T, name string) *Broker {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	settings, err := ParseProperties(file)
	if err != nil {
		t.Fatal(err)
	}
	b, warnings, err := Load(Sources{File: settings})
	if err != nil || warnings != nil {
		t.Fatal(err, warnings)
	}
	return b
}

// V26: names, values, types, sources, read-only, sensitivity and synonyms are those that a running Apache Kafka 4.4.0 gives.
func TestV26_DescriptionsAreKafkas(t *testing.T) {
	b := fromFile(t, "testdata/describe.properties")
	b, _ = b.WithDynamic(map[string]string{"min.insync.replicas": "1"}, nil) // as Kafka sets it with eligible leader replicas on
	got := map[string][]string{
		"topic":          shown(b.DescribeTopic(map[string]string{"retention.ms": "1000"}, nil)),
		"broker":         shown(b.DescribeBroker(nil)),
		"cluster":        shown(b.DescribeClusterDefault(nil)),
		"group":          shown(b.DescribeGroup(nil, nil)),
		"client-metrics": shown(b.DescribeClientMetrics(nil, nil)),
	}
	golden, err := os.ReadFile("testdata/describe-4.4.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, golden2, _ := strings.Cut(string(golden), "\n== ")
	for _, section := range strings.Split(golden2, "\n== ") {
		title, body, _ := strings.Cut(section, "\n")
		if diff := cmp.Diff(strings.Split(strings.TrimSuffix(body, "\n"), "\n"), got[title]); diff != "" {
			t.Errorf("%s (-Kafka +Sluice):\n%s", title, diff)
		}
	}
}

// Synonyms come in the order in which they count, and begin with the key itself.
func TestDescribe_SynonymsInPrecedence(t *testing.T) {
	b := load(t, map[string]string{"log.retention.hours": "24", "log.roll.ms": "5000"})
	b, warnings := b.WithDynamic(map[string]string{"log.retention.ms": "3000"}, map[string]string{"log.retention.ms": "2000"})
	if warnings != nil {
		t.Fatal(warnings)
	}
	got := shown(b.DescribeTopic(map[string]string{"retention.ms": "1000"}, Wanted{"retention.ms", "segment.ms"}))
	want := []string{
		"retention.ms\t1000\tsrc=1 ro=false sens=false type=5 [retention.ms=1000 1] [log.retention.ms=2000 2] [log.retention.ms=3000 3] [log.retention.hours=24 4] [log.retention.hours=168 5]",
		"segment.ms\t5000\tsrc=4 ro=false sens=false type=5 [log.roll.ms=5000 4] [log.roll.hours=168 5]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = shown(b.DescribeTopic(nil, Wanted{"retention.ms"}))
	if !strings.HasPrefix(got[0], "retention.ms\t2000\tsrc=2 ") {
		t.Error("without an override the broker's own dynamic value counts, got", got[0])
	}
}

// Nobody sees passwords, nor keys that may be passwords for all the table knows.
func TestDescribe_HidesSecrets(t *testing.T) {
	b := load(t, map[string]string{
		"ssl.keystore.password": "s3cret", "listener.name.external.ssl.key.password": "s3cret", "some.plugin.key": "s3cret",
		"listener.name.external.sasl.enabled.mechanisms": "PLAIN",
	})
	seen := map[string]Entry{}
	for _, e := range b.DescribeBroker(nil) {
		seen[e.Name] = e
		if line := strings.Join(shown([]Entry{e}), ""); strings.Contains(line, "s3cret") {
			t.Error("shown:", line)
		}
	}
	for _, key := range []string{"ssl.keystore.password", "listener.name.external.ssl.key.password", "some.plugin.key"} {
		if e, ok := seen[key]; !ok || !e.Sensitive || e.Source != SourceStatic {
			t.Errorf("%s: %+v", key, e)
		}
	}
	if e := seen["listener.name.external.sasl.enabled.mechanisms"]; e.Type != List || e.Value == nil || *e.Value != "PLAIN" {
		t.Errorf("a listener's own value: %+v", e)
	}
}

// Internal configs are shown only where they are set.
func TestDescribe_InternalOnlyWhenSet(t *testing.T) {
	names := func(b *Broker) map[string]bool {
		m := map[string]bool{}
		for _, e := range b.DescribeBroker(nil) {
			m[e.Name] = true
		}
		return m
	}
	const key = "log.initial.task.delay.ms"
	if names(load(t, nil))[key] {
		t.Error(key, "is shown without being set")
	}
	if !names(load(t, map[string]string{key: "1"}))[key] {
		t.Error(key, "is not shown when it is set")
	}
}

// The answer of CreateTopics names the source of every config.
func TestEffectiveTopicConfigs(t *testing.T) {
	b := load(t, map[string]string{"log.retention.hours": "2"})
	got := map[string]string{}
	for _, c := range b.Validator().EffectiveTopicConfigs(map[string]string{"segment.ms": "7"}, map[string]string{"message.max.bytes": "8"}, map[string]string{"log.cleanup.policy": "compact"}) {
		got[c.Name] = fmt.Sprint(*c.Value, " ", c.Source)
	}
	want := map[string]string{"segment.ms": "7 1", "max.message.bytes": "8 2", "cleanup.policy": "compact 3", "retention.ms": "7200000 4", "segment.bytes": "1073741824 5"}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %q, want %q", key, got[key], value)
		}
	}
	if len(got) != len(topicTable.rows)-1 {
		t.Errorf("%d configs, want all %d but the internal one: %v", len(got), len(topicTable.rows), maps.Keys(got))
	}
}
