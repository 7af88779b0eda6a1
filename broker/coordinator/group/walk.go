package group

import (
	"iter"
	"maps"
	"slices"
)

// A Summary is what metrics tell of a group.
type Summary struct {
	Group, State string
	Members      int
}

// Summaries yields all groups, by id.
func (m *Machine) Summaries() iter.Seq[Summary] {
	return func(yield func(Summary) bool) {
		for _, id := range sortedKeys(m.groups) {
			if g := m.groups[id]; !yield(Summary{Group: id, State: g.state.String(), Members: len(g.members)}) {
				return
			}
		}
	}
}

// A Committed is the next offset that a group reads in one partition.
type Committed struct {
	Group, Topic string
	Partition    int32
	Offset       int64
}

// Commits yields all committed offsets, by group, topic and partition.
func (m *Machine) Commits() iter.Seq[Committed] {
	return func(yield func(Committed) bool) {
		for _, group := range sortedKeys(m.offsets.byGroup) {
			topics := m.offsets.byGroup[group]
			for _, topic := range sortedKeys(topics) {
				for _, partition := range slices.Sorted(maps.Keys(topics[topic])) {
					if !yield(Committed{Group: group, Topic: topic, Partition: partition, Offset: topics[topic][partition].offset}) {
						return
					}
				}
			}
		}
	}
}
