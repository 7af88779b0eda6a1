package diff

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// excuse is one entry of differences.md: where two answers may differ, and why.
type excuse struct {
	id                    string
	scenario, step, field string // patterns: * is any text
	refusal               string // the error code that Sluice refuses with what Apache Kafka takes; empty for any other difference
	reason                string

	mu   sync.Mutex
	used int
}

// differencesFile holds the entries as two tables: D… has id, scenario, step, field, Apache Kafka, Sluice, reason; R…, refusals, has id, scenario, step,
// field, code, reason.
const differencesFile = "../differences.md"

func readExcuses(file string) ([]*excuse, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []*excuse
	for number, line := range strings.Split(string(text), "\n") {
		refusal := strings.HasPrefix(line, "| R")
		if !refusal && !strings.HasPrefix(line, "| D") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if want := map[bool]int{false: 7, true: 6}[refusal]; len(cells) != want {
			return nil, fmt.Errorf("%s:%d: %d cells, want %d", file, number+1, len(cells), want)
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		e := &excuse{id: cells[0], scenario: cells[1], step: cells[2], field: cells[3], reason: cells[len(cells)-1]}
		if refusal {
			e.refusal = cells[4]
		}
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
		return errors.New("no reason")
	case e.refusal != "":
		if !strings.Contains(e.reason, "decision ") && !strings.HasPrefix(e.reason, "The same") {
			return errors.New("a refusal needs a page in docs/decisions")
		}
		return nil
	case strings.HasSuffix(e.field, "ErrorCode"), strings.HasSuffix(e.field, "*"):
		return fmt.Errorf("a wrong error code is never excused, and %q could be one", e.field)
	case e.field == "outcome":
		return errors.New("an answer instead of none, or none instead of an answer, is never excused")
	}
	return nil
}

// covers says whether the entry excuses a difference, and counts it.
func (e *excuse) covers(f found) bool {
	if !matches(e.scenario, f.scenario) || !matches(e.step, f.step) || !matches(e.field, f.path) {
		return false
	}
	// Of a refusal the code must be what the entry says, and Apache Kafka's none.
	if e.refusal != "" && strings.HasSuffix(f.path, "ErrorCode") && (f.values[0] != "0" || f.values[1] != e.refusal) {
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
