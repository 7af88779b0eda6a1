package config

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes docs/CONFIG.md: the whole table, for people.
func WriteMarkdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, `# Configuration

Every config of Apache Kafka 4.4 has the same name, default and meaning here. This page is made from the table in `+"`broker/config`"+`; do not edit it.

A setting comes from, the first that has it: `+"`--set key=value`"+` and other flags, an environment variable (`+"`KAFKA_LOG_RETENTION_MS`"+` is
`+"`log.retention.ms`"+`; two underscores stand for one, three for a dash), the properties file, the dev profile (without a file only), the default.
Dynamic configs, set by a client while the broker runs, come before all of these.

**Change** says how a broker config can be altered while the broker runs: not at all (restart), for one broker, or for one or all (cluster).
A config marked *no effect* is accepted and shown, but changes nothing, for the reason given.

## Dev profile

Without a properties file these differ from Kafka's defaults:

| key | value |
|---|---|
`)
	profile := DevProfile()
	for _, row := range brokerTable.rows {
		if text, ok := profile[row.Name]; ok {
			fmt.Fprintf(out, "| `%s` | `%s` |\n", row.Name, text)
		}
	}
	for _, s := range brokerSections {
		fmt.Fprintf(out, "\n## %s\n\n| key | type | default | accepts | change | |\n|---|---|---|---|---|---|\n", s.title)
		for i := range s.rows {
			row := &s.rows[i]
			change := map[Update]string{ReadOnly: "restart", PerBroker: "one broker", ClusterWide: "cluster"}[row.Update]
			fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s | %s |\n", row.Name, strings.ToLower(row.Type.String()), row.shownDefault(), cell(row.accepts()), change, row.remarks())
		}
	}
	for _, r := range []struct {
		title, intro string
		t            *table
	}{
		{"Topics", "Set with CreateTopics and AlterConfigs on a topic. Where a broker config is named, it is the default for topics that have no value of their own.", topicTable},
		{"Group resources", "Set with AlterConfigs on a group.", groupTable},
		{"Client metrics subscriptions", "Set with AlterConfigs on a subscription.", clientMetricsTable},
	} {
		fmt.Fprintf(out, "\n## %s\n\n%s\n\n| key | type | default | accepts | broker config | |\n|---|---|---|---|---|---|\n", r.title, r.intro)
		for _, row := range r.t.rows {
			var brokerKeys []string
			for _, s := range row.Synonyms {
				brokerKeys = append(brokerKeys, "`"+s.Name+"`")
			}
			fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s | %s |\n", row.Name, strings.ToLower(row.Type.String()), row.shownDefault(), cell(row.accepts()), strings.Join(brokerKeys, ", "), row.remarks())
		}
	}
	return out.Flush()
}

func (r *Row) shownDefault() string {
	switch {
	case r.Required:
		return "*required*"
	case r.NoDefault:
		return "*none*"
	case r.Default == "":
		return "*empty*"
	}
	return "`" + r.Default + "`"
}

func (r *Row) accepts() string {
	if r.Valid == nil {
		return ""
	}
	return r.Valid.String()
}

func (r *Row) remarks() string {
	s := r.Doc
	if r.Ignored != "" {
		s += " *No effect: " + r.Ignored + ".*"
	}
	if r.Internal {
		s += " *Internal.*"
	}
	return cell(s)
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
