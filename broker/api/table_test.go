package api

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

var statedVersions = regexp.MustCompile(`(?m)^//.*?\b[Vv]ersions? (\d+)(?:(?: to |–)(\d+))?`)

// The comment of a handler's file, which has the number of its key, states the versions that its row serves.
func TestRows_HandlerFilesStateTheirVersions(t *testing.T) {
	for _, row := range rows {
		text, err := os.ReadFile(row.file())
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		stated := statedVersions.FindStringSubmatch(string(text))
		if stated == nil {
			t.Errorf("%s does not say which versions it serves, %d to %d", row.file(), row.min, row.max)
			continue
		}
		first, last := stated[1], stated[2]
		if last == "" {
			last = first
		}
		if first != strconv.Itoa(int(row.min)) || last != strconv.Itoa(int(row.max)) {
			t.Errorf("%s says versions %s to %s, its row %d to %d", row.file(), first, last, row.min, row.max)
		}
	}
}
