package group

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

// V20 (a): a member joins while another is between heartbeats. The newcomer is held until the other is back.
func TestV20a_JoinWaitsForKnownMembers(t *testing.T) {
	h := newHarness(t)
	ms, generation := h.stable(who{client: "A"})
	a := ms[0]
	b := who{client: "B"}
	b.id = h.newID(b)
	joinB := h.join(b)
	h.waits(joinB)
	h.wantState("g", "PreparingRebalance")
	h.wantErr(h.heartbeat(a, generation), kerr.RebalanceInProgress)
	h.wantCode(h.synced(h.sync(a, generation, nil)).ErrorCode, kerr.RebalanceInProgress)
	joinA := h.join(a)
	rA, rB := h.joined(joinA), h.joined(joinB)
	if rA.Generation != generation+1 || rB.Generation != generation+1 {
		t.Fatalf("generations %d and %d, want %d", rA.Generation, rB.Generation, generation+1)
	}
	if rA.LeaderID != a.id || rB.LeaderID != a.id || len(rA.Members) != 2 || len(rB.Members) != 0 {
		t.Fatalf("one leader, and only it knows the members: %+v %+v", rA, rB)
	}
}

// V20 (b): members that start together end up in one generation, thanks to the initial delay, which each newcomer extends up to the
// rebalance timeout.
func TestV20b_InitialDelayGathersMembers(t *testing.T) {
	h := newHarness(t)
	var tokens []machine.Token
	for i := range 3 {
		tokens = append(tokens, h.join(who{client: fmt.Sprint(i), old: true}))
		h.sleep(1000)
	}
	h.waits(tokens...)
	h.sleep(3000)
	for _, token := range tokens {
		if r := h.joined(token); r.Generation != 1 {
			t.Errorf("generation %d, want 1", r.Generation)
		}
	}

	// Newcomers keep the barrier open, but not beyond the rebalance timeout.
	h = newHarness(t)
	first := h.join(who{old: true, timeoutMs: 10_000})
	for range 9 {
		h.sleep(1000)
		h.join(who{old: true, timeoutMs: 10_000})
		h.waits(first)
	}
	h.sleep(1000)
	h.wantCode(h.joined(first).ErrorCode, nil)
}

func TestJoin_NoInitialDelayAnswersAtOnce(t *testing.T) {
	h := newHarness(t)
	h.cfg.InitialRebalanceDelayMs = 0
	w := who{}
	w.id = h.newID(w)
	token := h.join(w)
	h.sleep(0)
	if r := h.joined(token); r.Generation != 1 || r.LeaderID != w.id {
		t.Fatalf("%+v", r)
	}
}

// V20 (c): a member leaves while the group prepares; the join ends at once when the rest are in.
func TestV20c_LeaveDuringJoinCompletesIt(t *testing.T) {
	h := newHarness(t)
	ms, _ := h.stable(who{client: "A"}, who{client: "B"}, who{client: "C"})
	joinA := h.join(ms[0])
	joinB := h.join(ms[1])
	h.waits(joinA, joinB)
	h.wantCode(h.leave(ms[2])[0], nil)
	if r := h.joined(joinA); r.ErrorCode != 0 || len(r.Members) != 2 {
		t.Fatalf("%+v", r)
	}
	h.wantCode(h.joined(joinB).ErrorCode, nil)
}

// V20 (d): a follower that syncs before the leader waits for the assignment.
func TestV20d_FollowerSyncWaitsForLeader(t *testing.T) {
	h := newHarness(t)
	joinA, joinB := h.join(who{old: true, client: "A"}), h.join(who{old: true, client: "B"})
	h.sleep(6000)
	a, b := who{id: h.joined(joinA).MemberID}, who{id: h.joined(joinB).MemberID}
	syncB := h.sync(b, 1, nil)
	h.waits(syncB)
	h.wantErr(h.heartbeat(b, 1), nil)
	syncA := h.sync(a, 1, map[string]string{a.id: "for A", b.id: "for B", "nobody": "nothing"})
	if got := string(h.synced(syncB).MemberAssignment); got != "for B" {
		t.Errorf("B got %q", got)
	}
	if got := string(h.synced(syncA).MemberAssignment); got != "for A" {
		t.Errorf("A got %q", got)
	}
	h.wantState("g", "Stable")
}

// V20 (e): a member that stops answering during a rebalance is dropped after the rebalance timeout, even though its session is longer.
func TestV20e_SilentMemberIsDroppedAfterRebalanceTimeout(t *testing.T) {
	h := newHarness(t)
	ms, _ := h.stable(who{client: "A", sessionMs: 60_000, timeoutMs: 20_000}, who{client: "B", sessionMs: 60_000, timeoutMs: 20_000})
	joinA := h.join(ms[0])
	h.sleep(19_999)
	h.waits(joinA)
	h.sleep(1)
	if r := h.joined(joinA); r.ErrorCode != 0 || len(r.Members) != 1 {
		t.Fatalf("%+v", r)
	}
	h.wantErr(h.heartbeat(ms[1], 2), kerr.UnknownMemberID)
}

// A member that joined but never sends SyncGroup is dropped after the rebalance timeout, and the rest rebalance.
func TestSync_MissingMemberIsDropped(t *testing.T) {
	h := newHarness(t)
	joinA, joinB := h.join(who{old: true, timeoutMs: 8000, sessionMs: 60_000}), h.join(who{old: true, timeoutMs: 8000, sessionMs: 60_000})
	h.sleep(6000)
	a, b := who{id: h.joined(joinA).MemberID}, who{id: h.joined(joinB).MemberID}
	h.wantCode(h.synced(h.sync(a, 1, map[string]string{a.id: "x"})).ErrorCode, nil)
	h.sleep(8000)
	h.wantState("g", "PreparingRebalance")
	h.wantErr(h.heartbeat(b, 1), kerr.UnknownMemberID)
	h.wantErr(h.heartbeat(a, 1), kerr.RebalanceInProgress)
}

// V20 (g): a member with a protocol that nobody shares, or of another type, is refused.
func TestV20g_InconsistentProtocol(t *testing.T) {
	h := newHarness(t)
	h.wantCode(h.joined(h.join(who{old: true, kind: " ", protocols: []string{}})).ErrorCode, kerr.InconsistentGroupProtocol)
	ms, _ := h.stable(who{protocols: []string{"range", "roundrobin"}})
	h.wantCode(h.joined(h.join(who{old: true, protocols: []string{"sticky"}})).ErrorCode, kerr.InconsistentGroupProtocol)
	h.wantCode(h.joined(h.join(who{old: true, kind: "connect"})).ErrorCode, kerr.InconsistentGroupProtocol)
	h.wantCode(h.joined(h.join(who{id: ms[0].id, protocols: []string{}})).ErrorCode, kerr.InconsistentGroupProtocol)
	h.wantState("g", "Stable")

	// SyncGroup that names another protocol.
	req := kmsg.NewPtrSyncGroupRequest()
	other := "roundrobin"
	req.Group, req.MemberID, req.Generation, req.Protocol = "g", ms[0].id, 1, &other
	e, _ := h.m.SyncGroup(h.nowMs, req, 999)
	h.apply(e)
	h.wantCode(h.synced(999).ErrorCode, kerr.InconsistentGroupProtocol)
}

func TestJoin_ProtocolIsVotedFor(t *testing.T) {
	h := newHarness(t)
	h.join(who{old: true, protocols: []string{"range", "roundrobin", "sticky"}})
	h.join(who{old: true, protocols: []string{"sticky", "roundrobin"}})
	token := h.join(who{old: true, protocols: []string{"roundrobin", "sticky"}})
	h.sleep(6000)
	// sticky and roundrobin are common; the first two vote for roundrobin and sticky, the third for roundrobin.
	if r := h.joined(token); *r.Protocol != "roundrobin" {
		t.Errorf("protocol %s", *r.Protocol)
	}
}

func TestJoin_FirstJoinGetsAnID(t *testing.T) {
	h := newHarness(t)
	r := h.joined(h.join(who{client: "consumer-1"}))
	h.wantCode(r.ErrorCode, kerr.MemberIDRequired)
	if r.MemberID != "consumer-1-uuid-1" || r.Generation != -1 {
		t.Errorf("%+v", r)
	}
	h.wantState("g", "Empty")

	// The id is good for one session timeout.
	h.sleep(10_000)
	h.wantCode(h.joined(h.join(who{id: r.MemberID})).ErrorCode, kerr.UnknownMemberID)

	h.wantCode(h.joined(h.join(who{group: "other", id: "made up"})).ErrorCode, kerr.UnknownMemberID)
	h.wantState("other", "Dead")
}

func TestJoin_PendingMemberHoldsTheBarrierUntilItJoinsOrExpires(t *testing.T) {
	h := newHarness(t)
	ms, _ := h.stable(who{client: "A"})
	h.newID(who{client: "B", sessionMs: 20_000})
	h.sleep(5000)
	h.heartbeat(ms[0], 1)
	joinA := h.join(ms[0])
	h.waits(joinA)
	h.sleep(15_000)
	h.wantCode(h.joined(joinA).ErrorCode, nil)
}

func TestJoin_RejoinWithoutChangeGetsThePresentGeneration(t *testing.T) {
	h := newHarness(t)
	ms, generation := h.stable(who{client: "A"}, who{client: "B"})
	r := h.joined(h.join(ms[1])) // the follower
	if r.ErrorCode != 0 || r.Generation != generation || len(r.Members) != 0 {
		t.Fatalf("%+v", r)
	}
	h.wantState("g", "Stable")
	b := ms[1]
	b.topics = []string{topicB}
	h.waits(h.join(b))
	h.wantState("g", "PreparingRebalance")
}

func TestJoin_LeaderRejoinRebalances(t *testing.T) {
	h := newHarness(t)
	ms, _ := h.stable(who{client: "A"}, who{client: "B"})
	h.waits(h.join(ms[0]))
	h.wantState("g", "PreparingRebalance")
}

func TestJoin_LostAnswerIsRepeatedWhileSyncing(t *testing.T) {
	h := newHarness(t)
	joinA := h.join(who{old: true})
	h.sleep(3000)
	a := who{id: h.joined(joinA).MemberID}
	if r := h.joined(h.join(a)); r.Generation != 1 || len(r.Members) != 1 {
		t.Fatalf("%+v", r)
	}
	h.wantState("g", "CompletingRebalance")
}

func TestJoin_SupersededRequestIsAnswered(t *testing.T) {
	h := newHarness(t)
	ms, _ := h.stable(who{client: "A"}, who{client: "B"})
	first := h.join(ms[0])
	second := h.join(ms[0])
	h.wantCode(h.joined(first).ErrorCode, kerr.RebalanceInProgress)
	h.waits(second)
	h.join(ms[1])
	h.wantCode(h.joined(second).ErrorCode, nil)
}

func TestJoin_GroupMaxSize(t *testing.T) {
	h := newHarness(t)
	h.cfg.MaxSize = 2
	h.stable(who{client: "A"}, who{client: "B"})
	h.wantCode(h.joined(h.join(who{old: true})).ErrorCode, kerr.GroupMaxSizeReached)
	h.wantState("g", "Stable")

	// A group that is over the limit after a change of config has to shrink when it is loaded.
	h.cfg.MaxSize = 1
	h.reload()
	h.wantState("g", "PreparingRebalance")
}

// TestJoin_PendingMembersAreBounded asks for more ids than a group remembers: the oldest is forgotten, newcomers are let in.
func TestJoin_PendingMembersAreBounded(t *testing.T) {
	h := newHarness(t)
	first, second := h.newID(who{}), h.newID(who{})
	for range maxPendingMembers - 1 {
		if _, err := h.m.JoinGroup(h.nowMs, who{}.request(h), 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(h.m.groups["g"].pendingJoin); got != maxPendingMembers {
		t.Errorf("%d pending members", got)
	}
	h.wantCode(h.joined(h.join(who{id: first})).ErrorCode, kerr.UnknownMemberID)
	if h.m.groups["g"].pendingJoin[second] == nil {
		t.Error("the second oldest was forgotten too")
	}
	last := h.newID(who{})
	if h.m.groups["g"].pendingJoin[last] == nil {
		t.Error("the newest is not remembered")
	}
	h.sleep(10_000)
	if got := len(h.m.groups["g"].pendingJoin); got != 0 {
		t.Errorf("%d pending members after their session time-out", got)
	}
}

func TestJoin_DuplicateProtocolNames(t *testing.T) {
	h := newHarness(t)
	token := h.join(who{old: true, protocols: []string{"range", "range"}})
	h.sleep(3000)
	h.wantCode(h.joined(token).ErrorCode, nil)
}

func TestHeartbeat_SessionTimeout(t *testing.T) {
	h := newHarness(t)
	ms, generation := h.stable(who{client: "A"}, who{client: "B"})
	h.sleep(9_999)
	h.wantErr(h.heartbeat(ms[0], generation), nil)
	h.sleep(1)
	h.wantState("g", "PreparingRebalance")
	h.wantErr(h.heartbeat(ms[1], generation), kerr.UnknownMemberID)
	h.sleep(9_998)
	h.wantState("g", "PreparingRebalance")
	h.sleep(1)
	h.wantState("g", "Empty")
}

func TestHeartbeat_Refused(t *testing.T) {
	h := newHarness(t)
	ms, generation := h.stable(who{client: "A"})
	h.wantErr(h.heartbeat(who{group: "none", id: "x"}, 1), kerr.UnknownMemberID)
	h.wantErr(h.heartbeat(who{id: "x"}, generation), kerr.UnknownMemberID)
	h.wantErr(h.heartbeat(ms[0], generation-1), kerr.IllegalGeneration)
	h.wantErr(h.heartbeat(who{id: ms[0].id, instance: "i"}, generation), kerr.UnknownMemberID)
}

func TestHeartbeat_NotNeededWhileWaiting(t *testing.T) {
	h := newHarness(t)
	ms, _ := h.stable(who{client: "A"}, who{client: "B", sessionMs: 50_000})
	joinA := h.join(ms[0])
	h.sleep(40_000)
	h.waits(joinA)
	h.join(ms[1])
	h.wantCode(h.joined(joinA).ErrorCode, nil)
}

func TestHeartbeat_NewMemberThatWaitsTooLongIsDropped(t *testing.T) {
	h := newHarness(t)
	ms, _ := h.stable(who{client: "A", timeoutMs: 600_000, sessionMs: 600_000})
	joinB := h.join(who{old: true, client: "B", timeoutMs: 600_000})
	h.sleep(NewMemberJoinTimeoutMs)
	h.wantCode(h.joined(joinB).ErrorCode, kerr.UnknownMemberID)
	h.wantErr(h.heartbeat(ms[0], 1), kerr.RebalanceInProgress)
}

// A clock that is set does not end sessions.
func TestHeartbeat_ClockIsSet(t *testing.T) {
	for _, by := range []int64{3600_000, -3600_000} {
		h := newHarness(t)
		ms, generation := h.stable(who{client: "A"})
		h.sleep(5000)
		h.nowMs += by
		h.m.ClockMoved(by)
		h.sleep(4999)
		h.wantErr(h.heartbeat(ms[0], generation), nil)
		h.sleep(10_000)
		h.wantState("g", "Empty")
	}
}

func TestLeave(t *testing.T) {
	h := newHarness(t)
	ms, _ := h.stable(who{client: "A"}, who{client: "B"})
	codes := h.leave(who{id: "x"}, ms[1], who{instance: "i"}, who{})
	unknown := kerr.UnknownMemberID.Code
	if fmt.Sprint(codes) != fmt.Sprint([]int16{unknown, 0, unknown, unknown}) {
		t.Errorf("codes %v", codes)
	}
	h.wantState("g", "PreparingRebalance")
	h.wantCode(h.leave(ms[0])[0], nil)
	h.wantState("g", "Empty")
	h.wantCode(h.leave(who{group: "none", id: "x"})[0], kerr.UnknownMemberID)

	id := h.newID(who{})
	h.wantCode(h.leave(who{id: id})[0], nil)
	h.wantCode(h.joined(h.join(who{id: id})).ErrorCode, kerr.UnknownMemberID)
}

func TestLeave_LeaderIsReplaced(t *testing.T) {
	h := newHarness(t)
	ms, generation := h.stable(who{client: "A"}, who{client: "B"})
	h.leave(ms[0])
	if r := h.joined(h.join(ms[1])); r.LeaderID != ms[1].id || r.Generation != generation+1 || len(r.Members) != 1 {
		t.Fatalf("%+v", r)
	}
}

func TestLeave_AnswersWaitingSync(t *testing.T) {
	h := newHarness(t)
	h.join(who{old: true})
	joinB := h.join(who{old: true})
	h.sleep(6000)
	b := who{id: h.joined(joinB).MemberID}
	syncB := h.sync(b, 1, nil)
	h.waits(syncB)
	h.leave(b)
	h.wantCode(h.synced(syncB).ErrorCode, kerr.UnknownMemberID)
}

func TestSync_AbandonedByRebalance(t *testing.T) {
	h := newHarness(t)
	joinA, joinB := h.join(who{old: true}), h.join(who{old: true})
	h.sleep(6000)
	b := who{id: h.joined(joinB).MemberID}
	syncB := h.sync(b, 1, nil)
	h.join(who{old: true})
	h.wantCode(h.synced(syncB).ErrorCode, kerr.RebalanceInProgress)
	h.wantErr(h.heartbeat(who{id: h.joined(joinA).MemberID}, 1), kerr.RebalanceInProgress)
	h.wantCode(h.synced(h.sync(b, 0, nil)).ErrorCode, kerr.IllegalGeneration)
	h.wantCode(h.synced(h.sync(who{id: "x"}, 1, nil)).ErrorCode, kerr.UnknownMemberID)
	h.wantCode(h.synced(h.sync(who{group: "none", id: "x"}, 1, nil)).ErrorCode, kerr.UnknownMemberID)
}

// The assignment is given out only once it is committed; a rebalance that comes first wins.
func TestSync_AnswersAfterCommit(t *testing.T) {
	prepare := func() (*harness, who, machine.Token) {
		h := newHarness(t)
		joinA := h.join(who{old: true})
		h.sleep(3000)
		a := who{id: h.joined(joinA).MemberID}
		h.holdCommits = true
		return h, a, h.sync(a, 1, map[string]string{a.id: "x"})
	}
	h, _, syncA := prepare()
	h.waits(syncA)
	h.wantState("g", "CompletingRebalance")
	h.commit(nil)
	h.wantCode(h.synced(syncA).ErrorCode, nil)
	h.wantState("g", "Stable")

	h, _, syncA = prepare()
	h.commit(kerr.RequestTimedOut)
	h.wantCode(h.synced(syncA).ErrorCode, kerr.CoordinatorNotAvailable)
	h.wantState("g", "PreparingRebalance")

	h, _, syncA = prepare()
	joinB := h.join(who{old: true})
	h.commit(nil)
	h.wantCode(h.synced(syncA).ErrorCode, kerr.RebalanceInProgress)
	h.waits(joinB)
	h.wantState("g", "PreparingRebalance")
}

func TestSync_AssignmentTooLargeForTheLog(t *testing.T) {
	h := newHarness(t)
	h.cfg.MaxBatchBytes = 2000
	joinA := h.join(who{old: true})
	h.sleep(3000)
	a := who{id: h.joined(joinA).MemberID}
	h.wantCode(h.synced(h.sync(a, 1, map[string]string{a.id: string(make([]byte, 2000))})).ErrorCode, kerr.UnknownServerError)
	h.wantState("g", "PreparingRebalance")
	if r := h.joined(h.join(a)); r.Generation != 2 {
		t.Errorf("%+v", r)
	}
}

// A member that is back after the coordinator moved goes on as if nothing had happened.
func TestReload_StableGroupGoesOn(t *testing.T) {
	h := newHarness(t)
	ms, generation := h.stable(who{client: "A"}, who{client: "B"})
	h.reload()
	h.wantState("g", "Stable")
	h.wantErr(h.heartbeat(ms[0], generation), nil)
	if got := string(h.synced(h.sync(ms[1], generation, nil)).MemberAssignment); got != "for B" {
		t.Errorf("assignment %q", got)
	}
	h.sleep(10_000)
	h.wantState("g", "Empty")
}

func TestDescribe(t *testing.T) {
	h := newHarness(t)
	ms, _ := h.stable(who{client: "A", instance: "i1"})
	d := h.m.DescribeGroup("g", 6)
	if d.ErrorCode != 0 || d.State != "Stable" || d.ProtocolType != "consumer" || d.Protocol != "range" || len(d.Members) != 1 {
		t.Fatalf("%+v", d)
	}
	m := d.Members[0]
	if m.MemberID != ms[0].id || *m.InstanceID != "i1" || m.ClientID != "A" || m.ClientHost != "/127.0.0.1" || string(m.MemberAssignment) != "for A" || len(m.ProtocolMetadata) == 0 {
		t.Errorf("%+v", m)
	}
	h.join(who{old: true})
	if d := h.m.DescribeGroup("g", 6); d.State != "PreparingRebalance" || d.Protocol != "" || len(d.Members) != 2 || len(d.Members[0].ProtocolMetadata) != 0 {
		t.Errorf("%+v", d)
	}
	if d := h.m.DescribeGroup("none", 5); d.ErrorCode != 0 || d.State != "Dead" {
		t.Errorf("%+v", d)
	}
	if d := h.m.DescribeGroup("none", 6); d.ErrorCode != kerr.GroupIDNotFound.Code || d.State != "Dead" || *d.ErrorMessage != "Group none not found." {
		t.Errorf("%+v", d)
	}
}

func TestList(t *testing.T) {
	h := newHarness(t)
	h.stable(who{group: "b"})
	h.newID(who{group: "a", kind: "connect"})
	h.mustCommit(commit{w: who{group: "c"}, generation: -1})
	names := func(states, types []string) (s string) {
		for _, g := range h.m.ListGroups(states, types) {
			s += fmt.Sprintf("%s:%s:%s:%s ", g.Group, g.ProtocolType, g.GroupState, g.GroupType)
		}
		return s
	}
	const a, b, c = "a::Empty:classic ", "b:consumer:Stable:classic ", "c::Empty:classic "
	for _, test := range []struct {
		states, types []string
		want          string
	}{
		{nil, nil, a + b + c},
		{[]string{"stable"}, nil, b},
		{[]string{"EMPTY", " Stable "}, nil, a + b + c},
		{[]string{"Assigning"}, nil, ""},
		{nil, []string{"Classic"}, a + b + c},
		{nil, []string{"consumer"}, ""},
		{nil, []string{"consumer", "classic"}, a + b + c},
	} {
		if got := names(test.states, test.types); got != test.want {
			t.Errorf("states %q, types %q: %s, want %s", test.states, test.types, got, test.want)
		}
	}
}
