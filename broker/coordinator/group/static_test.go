package group

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// V21: a static member that comes back under the same subscription gets a new member id, and everything else stays.
func TestV21_RestartKeepsTheAssignment(t *testing.T) {
	h := newHarness(t)
	ms, generation := h.stable(who{client: "A", instance: "a"}, who{client: "B", instance: "b"})
	old := ms[1]
	h.sleep(5000)
	h.heartbeat(ms[0], generation)
	r := h.joined(h.join(who{client: "B2", instance: "b", sessionMs: 30_000}))
	if r.ErrorCode != 0 || r.Generation != generation || r.MemberID == old.id || r.LeaderID != ms[0].id || len(r.Members) != 0 || r.SkipAssignment {
		t.Fatalf("%+v", r)
	}
	h.wantState("g", "Stable")
	b := who{id: r.MemberID, instance: "b"}
	if got := string(h.synced(h.sync(b, generation, nil)).MemberAssignment); got != "for B" {
		t.Errorf("assignment %q", got)
	}

	// The old incarnation is fenced, everywhere.
	h.wantErr(h.heartbeat(old, generation), kerr.FencedInstanceID)
	h.wantCode(h.synced(h.sync(old, generation, nil)).ErrorCode, kerr.FencedInstanceID)
	_, err := h.commitOffset(commit{w: old, generation: generation})
	h.wantErr(err, kerr.FencedInstanceID)
	h.wantCode(h.joined(h.join(old)).ErrorCode, kerr.FencedInstanceID)
	h.wantCode(h.leave(old)[0], kerr.FencedInstanceID)
	// Without the instance id it is just unknown.
	h.wantErr(h.heartbeat(who{id: old.id}, generation), kerr.UnknownMemberID)

	d := h.m.DescribeGroup("g", 6)
	if d.Members[1].ClientID != "B" || *d.Members[1].InstanceID != "b" {
		t.Errorf("describe: %+v", d.Members[1])
	}

	// The slot lives as long as the new session timeout says, from the first heartbeat on.
	h.wantErr(h.heartbeat(b, generation), nil)
	h.sleep(9000)
	h.heartbeat(ms[0], generation)
	h.sleep(9000)
	h.heartbeat(ms[0], generation)
	h.wantState("g", "Stable")
	h.sleep(9000)
	h.heartbeat(ms[0], generation)
	h.sleep(3000)
	h.wantState("g", "PreparingRebalance")
}

// V21: a leader that comes back is told to keep the assignment, from version 9 on with the member list; before, it is told that its
// former self leads, so that it does not assign.
func TestV21_RestartOfTheLeader(t *testing.T) {
	for _, version := range []int16{8, 9} {
		h := newHarness(t)
		ms, generation := h.stable(who{client: "A", instance: "a"}, who{client: "B", instance: "b"})
		r := h.joined(h.join(who{client: "A", instance: "a", version: version}))
		if r.ErrorCode != 0 || r.Generation != generation {
			t.Fatalf("v%d: %+v", version, r)
		}
		if version == 9 && (r.LeaderID != r.MemberID || !r.SkipAssignment || len(r.Members) != 2) {
			t.Errorf("v9: %+v", r)
		}
		if version == 8 && (r.LeaderID != ms[0].id || r.SkipAssignment || len(r.Members) != 0) {
			t.Errorf("v8: %+v", r)
		}
	}
}

// V21: coming back with another subscription is a rebalance only where it changes the chosen protocol.
func TestV21_RestartWithAnotherProtocol(t *testing.T) {
	h := newHarness(t)
	h.stable(who{instance: "a", protocols: []string{"range", "sticky"}}, who{instance: "b", protocols: []string{"range", "sticky"}})
	h.waits(h.join(who{instance: "b", protocols: []string{"sticky"}}))
	h.wantState("g", "PreparingRebalance")

	h = newHarness(t)
	_, generation := h.stable(who{instance: "a"}, who{instance: "b"})
	if r := h.joined(h.join(who{instance: "b", topics: []string{topicB}})); r.Generation != generation {
		t.Errorf("%+v", r)
	}
	if !h.m.groups["g"].isSubscribedTo(topicA) {
		t.Error("no longer subscribed to a topic that a member reads")
	}
}

// V21: a return during CompletingRebalance starts another rebalance.
func TestV21_ReturnWhileCompletingRebalances(t *testing.T) {
	h := newHarness(t)
	joinA, joinB := h.join(who{instance: "a"}), h.join(who{instance: "b"})
	h.sleep(6000)
	a := who{id: h.joined(joinA).MemberID, instance: "a"}
	h.joined(joinB)
	syncA := h.sync(who{id: h.joined(joinB).MemberID, instance: "b"}, 1, nil)
	h.waits(syncA)
	again := h.join(who{instance: "b"})
	h.wantCode(h.synced(syncA).ErrorCode, kerr.FencedInstanceID)
	h.waits(again)
	h.wantState("g", "PreparingRebalance")
	h.join(a)
	if r := h.joined(again); r.Generation != 2 {
		t.Errorf("%+v", r)
	}
}

// V21: a second process with the same instance id takes the place of the first, also of one that waits at the barrier.
func TestV21_SecondProcessFencesTheFirst(t *testing.T) {
	h := newHarness(t)
	first := h.join(who{instance: "a"})
	second := h.join(who{instance: "a"})
	h.wantCode(h.joined(first).ErrorCode, kerr.FencedInstanceID)
	h.waits(second)
	h.sleep(6000)
	if r := h.joined(second); r.ErrorCode != 0 || len(r.Members) != 1 {
		t.Errorf("%+v", r)
	}
}

// V21: an administrator removes a static member by its instance id alone.
func TestV21_RemoveByInstanceID(t *testing.T) {
	h := newHarness(t)
	h.stable(who{instance: "a"}, who{instance: "b"})
	codes := h.leave(who{instance: "b"}, who{instance: "nobody"})
	if fmt.Sprint(codes) != fmt.Sprint([]int16{0, kerr.UnknownMemberID.Code}) {
		t.Errorf("codes %v", codes)
	}
	h.wantState("g", "PreparingRebalance")
	if n := len(h.m.DescribeGroup("g", 6).Members); n != 1 {
		t.Errorf("%d members", n)
	}
}

// V21: a static member keeps its slot while it is away during a rebalance, until its session ends.
func TestV21_SlotIsKeptUntilTheSessionEnds(t *testing.T) {
	h := newHarness(t)
	ms, _ := h.stable(who{client: "A", timeoutMs: 5000}, who{client: "B", instance: "b", timeoutMs: 5000, sessionMs: 30_000})
	joinA := h.join(ms[0])
	h.sleep(5000)
	if r := h.joined(joinA); r.ErrorCode != 0 || len(r.Members) != 2 {
		t.Fatalf("%+v", r)
	}
}

// A group of static members that are all away waits for one of them to lead.
func TestStatic_NobodyCameBackToLead(t *testing.T) {
	h := newHarness(t)
	ms, _ := h.stable(who{client: "A", instance: "a", timeoutMs: 5000, sessionMs: 60_000}, who{client: "B", timeoutMs: 5000, sessionMs: 60_000})
	h.leave(ms[1])
	h.sleep(20_000)
	h.wantState("g", "PreparingRebalance")
	if r := h.joined(h.join(who{client: "A", instance: "a"})); r.ErrorCode != 0 || r.LeaderID != r.MemberID {
		t.Errorf("%+v", r)
	}
}

// The new member id is given out only once it is committed.
func TestStatic_AnswerWaitsForCommit(t *testing.T) {
	h := newHarness(t)
	_, generation := h.stable(who{instance: "a"}, who{instance: "b"})
	h.holdCommits = true
	first := h.join(who{instance: "b"})
	h.waits(first)
	second := h.join(who{instance: "b"})
	h.commit(nil)
	h.wantCode(h.joined(first).ErrorCode, kerr.FencedInstanceID)
	if r := h.joined(second); r.ErrorCode != 0 || r.Generation != generation {
		t.Errorf("%+v", r)
	}

	h.holdCommits = true
	third := h.join(who{instance: "b"})
	h.commit(kerr.RequestTimedOut)
	h.wantCode(h.joined(third).ErrorCode, kerr.CoordinatorNotAvailable)

	// A rebalance that began in between: the member is part of it.
	h.holdCommits = true
	fourth := h.join(who{instance: "b"})
	h.join(who{instance: "c"})
	h.commit(nil)
	h.waits(fourth)
}

// V21: a restarted coordinator still knows its static members.
func TestV21_StaticMembersSurviveAReload(t *testing.T) {
	h := newHarness(t)
	ms, generation := h.stable(who{client: "A", instance: "a"})
	h.reload()
	h.wantErr(h.heartbeat(ms[0], generation), nil)
	r := h.joined(h.join(who{client: "A", instance: "a"}))
	if r.ErrorCode != 0 || r.Generation != generation || r.MemberID == ms[0].id {
		t.Errorf("%+v", r)
	}
	h.wantErr(h.heartbeat(ms[0], generation), kerr.FencedInstanceID)
}
