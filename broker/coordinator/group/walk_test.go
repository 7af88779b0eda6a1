package group

import (
	"fmt"
	"testing"
)

func TestWalk(t *testing.T) {
	h := newHarness(t)
	h.stable(who{group: "b", client: "A"}, who{group: "b", client: "B"})
	h.mustCommit(commit{w: who{group: "a"}, generation: -1, topic: topicB, offset: 3})
	h.mustCommit(commit{w: who{group: "a"}, generation: -1, partition: 1, offset: 2})
	h.mustCommit(commit{w: who{group: "a"}, generation: -1, offset: 1})
	var groups, commits string
	for s := range h.m.Summaries() {
		groups += fmt.Sprintf("%s %s %d; ", s.Group, s.State, s.Members)
	}
	for c := range h.m.Commits() {
		commits += fmt.Sprintf("%s %s-%d %d; ", c.Group, c.Topic, c.Partition, c.Offset)
	}
	if want := "a Empty 0; b Stable 2; "; groups != want {
		t.Errorf("groups %s, want %s", groups, want)
	}
	if want := "a a-0 1; a a-1 2; a b-0 3; "; commits != want {
		t.Errorf("commits %s, want %s", commits, want)
	}
	for range h.m.Summaries() {
		break
	}
	for range h.m.Commits() {
		break
	}
}
