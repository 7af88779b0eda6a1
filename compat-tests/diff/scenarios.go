package diff

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// subjects is the list of APIs whose fields are taken to their bounds.
func subjects() []subject {
	return slices.Concat(recordSubjects, groupSubjects, transactionSubjects, adminSubjects)
}

// scenarios is THE list: everything that is asked of both brokers at the versions that both serve.
func scenarios() []Scenario {
	var all []Scenario
	seen := map[string]bool{}
	for _, sub := range subjects() {
		for _, version := range testedVersions(sub.key) {
			s := sub.scenario(version)
			for i := 2; seen[s.Name]; i++ {
				s.Name = fmt.Sprintf("bounds/%s v%d, form %d", sub.key.Name(), version, i)
			}
			seen[s.Name] = true
			all = append(all, s)
		}
	}
	all = append(all, frames()...)
	for _, story := range stories() {
		if !slices.ContainsFunc(story.Needs, func(k kmsg.Key) bool { return !servedBySluice(int16(k)) }) {
			all = append(all, story)
		}
	}
	return all
}

// unasked are the keys of APIs that both brokers serve and no subject is about.
func unasked() []int16 {
	var keys []int16
	for _, key := range sortedKeys() {
		if len(testedVersions(kmsg.Key(key))) > 0 && !slices.ContainsFunc(subjects(), func(s subject) bool { return int16(s.key) == key }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// stories are the scenarios of many steps.
func stories() []Scenario {
	return slices.Concat(produceStories(), fetchStories(), groupStories(), transactionStories(), adminStories())
}
