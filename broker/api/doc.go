package api

import (
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// WriteDoc writes docs/APIS.md: the rows of the table by key, and the keys that have none.
func WriteDoc(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# APIs\n\n")
	b.WriteString("Generated from `broker/api/table.go`; do not edit. Each version named is served whole. What a version brings, and where an\n")
	b.WriteString("answer differs from Apache Kafka's, stands at the top of the handler's file.\n\n")
	b.WriteString("| key | API | versions | handler |\n|---:|---|---|---|\n")
	table := indexRows(rows)
	for _, row := range table {
		if row == nil {
			continue
		}
		versions := fmt.Sprintf("%d–%d", row.min, row.max)
		if row.advertisedMin < row.min {
			versions += fmt.Sprintf(" (advertised from %d)", row.advertisedMin)
		}
		fmt.Fprintf(&b, "| %d | %s | %s | `broker/api/%s` |\n", row.key, row.name, versions, row.file())
	}
	var missing []string
	for key := range table {
		if table[key] == nil && kmsg.RequestForKey(int16(key)) != nil {
			missing = append(missing, fmt.Sprintf("%s (%d)", kmsg.NameForKey(int16(key)), key))
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nNot served, and not advertised: %s.\n", strings.Join(missing, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// file is the name of the handler's file: the key in two digits and the name in snake case.
func (r *row) file() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%02d", r.key)
	for i, letter := range r.name {
		upper := letter >= 'A' && letter <= 'Z'
		if upper && (i == 0 || !strings.HasPrefix(r.name[i-1:], "ID")) {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(letter)))
	}
	return b.String() + ".go"
}
