package diff

import (
	"cmp"
	"slices"
	"sync"
)

// found is one difference with the step that showed it.
type found struct {
	scenario, step string
	difference
}

// report collects what the scenarios found.
type report struct {
	mu      sync.Mutex
	found   []found
	steps   int            // answers compared
	answers map[string]int // by outcome
	silent  map[string]int // by scenario: steps that no broker answered
}

func newReport() *report { return &report{answers: map[string]int{}, silent: map[string]int{}} }

func (r *report) add(scenario, step string, differences []difference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps++
	for _, d := range differences {
		r.found = append(r.found, found{scenario, step, d})
	}
}

func (r *report) count(answers [2]answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[answers[0].outcome.String()]++
}

func (r *report) countSilent(scenario string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent[scenario]++
}

// of gives the differences of one scenario, in the order of its steps.
func (r *report) of(scenario string) []found {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []found
	for _, f := range r.found {
		if f.scenario == scenario {
			list = append(list, f)
		}
	}
	return list
}

// slowest names the scenarios with the most unanswered steps: each costs its whole limit.
func (r *report) slowest() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for name := range r.silent {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(r.silent[b], r.silent[a]) })
	return names
}
