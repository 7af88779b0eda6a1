package config

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// load loads a profile-only configuration with the given settings over it.
func load(t *testing.T, settings map[string]string) *Broker {
	t.Helper()
	b, _, err := Load(Sources{Profile: DevProfile(), File: settings})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The table is Kafka's, line by line: names, types, defaults, ranges and what may change at run time.
func TestTable_IsKafkas(t *testing.T) {
	file, err := os.Open("testdata/kafka-4.4.0.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tables := map[string]*table{"broker": brokerTable, "topic": topicTable, "group": groupTable, "client-metrics": clientMetricsTable}
	seen := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		want := strings.Split(lines.Text(), "\t")
		row := tables[want[0]].byName[want[1]]
		if row == nil {
			t.Errorf("%s %s is missing", want[0], want[1])
			continue
		}
		seen[want[0]]++
		if got := row.Type.String(); got != want[2] {
			t.Errorf("%s: type %s, want %s", row.Name, got, want[2])
		}
		byDefault := row.Default
		if row.NoDefault {
			byDefault = `\N`
		} else if row.Required {
			byDefault = `\R`
		}
		if byDefault != want[3] {
			t.Errorf("%s: default %q, want %q", row.Name, byDefault, want[3])
		}
		if got := row.accepts(); got != want[4] {
			t.Errorf("%s: accepts %q, want %q", row.Name, got, want[4])
		}
		if want[0] == "broker" && row.Update.String() != want[5] {
			t.Errorf("%s: update %s, want %s", row.Name, row.Update, want[5])
		}
		if row.Internal != (want[6] == "internal") {
			t.Errorf("%s: internal %v", row.Name, row.Internal)
		}
	}
	for name, table := range tables {
		if len(table.rows) != seen[name] || len(table.byName) != len(table.rows) {
			t.Errorf("%s: %d rows of %d names, Kafka has %d", name, len(table.rows), len(table.byName), seen[name])
		}
	}
}

// Every row has words of its own, a default that it accepts itself, and synonyms that exist.
func TestTable_IsConsistent(t *testing.T) {
	for _, table := range []*table{brokerTable, topicTable, groupTable, clientMetricsTable} {
		for _, row := range table.rows {
			if !strings.HasSuffix(row.Doc, ".") && !strings.HasSuffix(row.Doc, "TRACE.") {
				t.Errorf("%s: the documentation is no sentence: %q", row.Name, row.Doc)
			}
			if v := row.defaultValue(); !v.null && *row.format(v) != row.Default {
				t.Errorf("%s: default %q is not in canonical form, %q", row.Name, row.Default, *row.format(v))
			}
			for _, s := range row.Synonyms {
				if brokerTable.byName[s.Name] == nil {
					t.Errorf("%s: synonym %s does not exist", row.Name, s.Name)
				}
			}
		}
	}
}
