package diff

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// excuse is one entry of differences.md: where two answers may differ, and why.
type excuse struct {
	id                    string
	scenario, step, field string // patterns: * is any text
	kafka, sluice         string
	reason                string

	mu   sync.Mutex
	used int
}

// differencesFile holds the entries as a table: id, scenario, step, field, Apache Kafka, Sluice, reason.
const differencesFile = "../differences.md"

func readExcuses(file string) ([]*excuse, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []*excuse
	for number, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "| D") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if len(cells) != 7 {
			return nil, fmt.Errorf("%s:%d: %d cells, want 7", file, number+1, len(cells))
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		e := &excuse{id: cells[0], scenario: cells[1], step: cells[2], field: cells[3], kafka: cells[4], sluice: cells[5], reason: cells[6]}
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", file, number+1, e.id, err)
		}
		list = append(list, e)
	}
	return list, nil
}

// check refuses an entry that would excuse what nothing excuses.
func (e *excuse) check() error {
	switch {
	case e.reason == "":
		return fmt.Errorf("no reason")
	case strings.HasSuffix(e.field, "ErrorCode"), strings.HasSuffix(e.field, "*"):
		return fmt.Errorf("a wrong error code is never excused, and %q could be one", e.field)
	case e.field == "outcome":
		return fmt.Errorf("an answer instead of none, or none instead of an answer, is never excused")
	}
	return nil
}

// covers says whether the entry excuses a difference, and counts it.
func (e *excuse) covers(f found) bool {
	if !matches(e.scenario, f.scenario) || !matches(e.step, f.step) || !matches(e.field, f.path) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used++
	return true
}

// matches compares with a pattern in which * is any text.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
