package api

import (
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// WriteDoc writes docs/APIS.md: the rows of the table by key, and the keys of Kafka that have none.
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
		if _, ok := kafka440[int16(key)]; ok && table[key] == nil {
			missing = append(missing, fmt.Sprintf("%s (%d)", kmsg.NameForKey(int16(key)), key))
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nOf Apache Kafka 4.4.0's, these are not served and not advertised: %s.\n", strings.Join(missing, ", "))
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

// kafka440 is what a broker of Apache Kafka 4.4.0 advertises on a client listener: key to lowest and highest version.
var kafka440 = map[int16][2]int16{
	0: {0, 13}, 1: {4, 18}, 2: {1, 11}, 3: {0, 13}, 8: {2, 10}, 9: {1, 10}, 10: {0, 6}, 11: {0, 9}, 12: {0, 4}, 13: {0, 5}, 14: {0, 5},
	15: {0, 6}, 16: {0, 5}, 17: {0, 1}, 18: {0, 5}, 19: {2, 7}, 20: {1, 6}, 21: {0, 2}, 22: {0, 5}, 23: {2, 4}, 24: {0, 5}, 25: {0, 4},
	26: {0, 5}, 27: {1, 2}, 28: {0, 6}, 29: {1, 3}, 30: {1, 3}, 31: {1, 3}, 32: {1, 4}, 33: {0, 2}, 34: {1, 2}, 35: {1, 5}, 36: {0, 2},
	37: {0, 3}, 38: {1, 3}, 39: {1, 2}, 40: {1, 2}, 41: {1, 3}, 42: {0, 3}, 43: {0, 2}, 44: {0, 1}, 45: {0, 1}, 46: {0, 0}, 47: {0, 0},
	48: {0, 1}, 49: {0, 1}, 50: {0, 0}, 51: {0, 0}, 55: {0, 2}, 57: {0, 2}, 60: {0, 2}, 61: {0, 0}, 64: {0, 0}, 65: {0, 0}, 66: {0, 2},
	68: {0, 1}, 69: {0, 1}, 74: {0, 1}, 75: {0, 0}, 76: {1, 1}, 77: {1, 1}, 78: {1, 2}, 79: {1, 2}, 80: {0, 1}, 81: {0, 0}, 83: {0, 0},
	84: {0, 0}, 85: {0, 1}, 86: {0, 0}, 87: {0, 1}, 88: {0, 1}, 89: {0, 1}, 90: {0, 1}, 91: {0, 0}, 92: {0, 0}, 93: {0, 0},
}
