package wire

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

// TestV21_StaticMembers: a member with an instance id keeps its place over a restart of its process, and the process before it is fenced.
func TestV21_StaticMembers(t *testing.T) {
	address := broker(t)
	if c := sluicetest.Dial(t, address); metadata(c, 12, false, v21Topic).Topics[0].ErrorCode != none {
		createTopic(t, c, v21Topic, 1)
	}
	for name, v := range map[string]groupVersions{"first versions": staticGroupVersions, "last versions": lastGroupVersions} {
		for _, test := range []struct {
			name string
			run  func(*testing.T, string, groupVersions)
		}{
			{"a follower returns", staticFollowerReturns},
			{"the leader returns", staticLeaderReturns},
			{"a member returns before the leader has synced", staticReturnsBeforeSync},
			{"a member returns with another subscription", staticReturnsChanged},
			{"an administrator removes a member", staticRemoved},
			{"a member stays away", staticStaysAway},
		} {
			t.Run(name+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				test.run(t, address, v)
			})
		}
	}
}

// v21Topic is there to commit offsets of.
const v21Topic = "v21-commits"

// staticPair is a group at rest of a, who leads, and b.
func staticPair(t *testing.T, address string, v groupVersions) (a, b *member) {
	t.Helper()
	group := fresh("v21")
	a, b = static(t, address, group, "a", v), static(t, address, group, "b", v)
	form(t, a, b)
	if !a.leads || b.leads {
		t.Fatal("the first member does not lead")
	}
	return a, b
}

// again is the same member in a new process.
func (m *member) again() *member {
	m.t.Helper()
	next := *m
	next.Raw, next.id, next.generation, next.leads = sluicetest.Dial(m.t, m.RemoteAddr().String()), "", 0, false
	return &next
}

// wantFenced checks that the process before the present one is told so, whatever it asks.
func (m *member) wantFenced() {
	m.t.Helper()
	if code := m.heartbeat(); code != fencedInstanceID {
		m.t.Errorf("heartbeat with the old id: error %d, want %d", code, fencedInstanceID)
	}
	if code := sluicetest.Ask[*kmsg.SyncGroupResponse](m.Raw, m.syncRequest(nil), m.v.sync).ErrorCode; code != fencedInstanceID {
		m.t.Errorf("sync with the old id: error %d, want %d", code, fencedInstanceID)
	}
	if code := sluicetest.Ask[*kmsg.JoinGroupResponse](m.Raw, m.joinRequest(), m.v.join).ErrorCode; code != fencedInstanceID {
		m.t.Errorf("join with the old id: error %d, want %d", code, fencedInstanceID)
	}
	if code := m.commit(v21Topic, 5); code != fencedInstanceID {
		m.t.Errorf("commit with the old id: error %d, want %d", code, fencedInstanceID)
	}
	if code := m.leave(); code != fencedInstanceID {
		m.t.Errorf("leave with the old id: error %d, want %d", code, fencedInstanceID)
	}
}

// commit commits an offset of partition 0 as a member, and returns the partition's error.
func (m *member) commit(topic string, offset int64) int16 {
	m.t.Helper()
	req := commitRequest(m.group, topic, [16]byte{}, offset, -1)
	req.MemberID, req.InstanceID, req.Generation = m.id, m.instance, m.generation
	return sluicetest.Ask[*kmsg.OffsetCommitResponse](m.Raw, req, m.v.commit).Topics[0].Partitions[0].ErrorCode
}

func staticFollowerReturns(t *testing.T, address string, v groupVersions) {
	a, b := staticPair(t, address, v)
	generation := b.generation
	returned := b.again()
	returned.ClientID = "the-next-process"
	returned.sessionMs = 20_000
	start := time.Now()
	resp := returned.join()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("the join took %v", took)
	}
	if returned.id == b.id || returned.id == "" || returned.generation != generation || returned.leads || len(resp.Members) > 0 || resp.LeaderID != a.id {
		t.Errorf("id %q after %q, generation %d after %d, leader %q, %d members", returned.id, b.id, returned.generation, generation, resp.LeaderID, len(resp.Members))
	}
	// The assignment is that of the slot: nobody has synced anew.
	got := sluicetest.Ask[*kmsg.SyncGroupResponse](returned.Raw, returned.syncRequest(nil), v.sync)
	if got.ErrorCode != none || string(got.MemberAssignment) != string(assignmentOf(b.id)) {
		t.Errorf("sync: error %d, assignment %q, want %q", got.ErrorCode, got.MemberAssignment, assignmentOf(b.id))
	}
	for _, m := range []*member{a, returned} {
		if code := m.heartbeat(); code != none {
			t.Errorf("heartbeat: error %d, there must be no rebalance", code)
		}
	}
	if code := returned.commit(v21Topic, 5); code != none {
		t.Errorf("commit with the new id: error %d", code)
	}
	b.wantFenced()

	described := describeGroup(a.Raw, a.group, v.describe)
	if described.State != "Stable" || len(described.Members) != 2 {
		t.Fatalf("state %s, %d members", described.State, len(described.Members))
	}
	for _, m := range described.Members {
		if m.InstanceID == nil || *m.InstanceID != "a" && *m.InstanceID != "b" {
			t.Errorf("a member of instance %v", m.InstanceID)
		} else if *m.InstanceID == "b" && (m.MemberID != returned.id || m.ClientID != b.ClientID) {
			// The client id is that of the slot's first process, in Apache Kafka 4.4.0 too.
			t.Errorf("the returned member is described as %s of client %s", m.MemberID, m.ClientID)
		}
	}
}

func staticLeaderReturns(t *testing.T, address string, v groupVersions) {
	a, b := staticPair(t, address, v)
	returned := a.again()
	resp := returned.join()
	if returned.id == a.id || returned.generation != a.generation {
		t.Errorf("id %q after %q, generation %d after %d", returned.id, a.id, returned.generation, a.generation)
	}
	if v.join >= 9 {
		// It leads, and is told not to assign.
		if !returned.leads || !resp.SkipAssignment || len(resp.Members) != 2 {
			t.Errorf("leads %v, skips the assignment %v, %d members", returned.leads, resp.SkipAssignment, len(resp.Members))
		}
	} else if resp.LeaderID != a.id || len(resp.Members) > 0 {
		// A version without that field names the old id as the leader, so that the member does not assign.
		t.Errorf("leader %q, want the old id %q; %d members", resp.LeaderID, a.id, len(resp.Members))
	}
	got := sluicetest.Ask[*kmsg.SyncGroupResponse](returned.Raw, returned.syncRequest(nil), v.sync)
	if got.ErrorCode != none || string(got.MemberAssignment) != string(assignmentOf(a.id)) {
		t.Errorf("sync: error %d, assignment %q", got.ErrorCode, got.MemberAssignment)
	}
	for _, m := range []*member{returned, b} {
		if code := m.heartbeat(); code != none {
			t.Errorf("heartbeat: error %d, there must be no rebalance", code)
		}
	}
	a.wantFenced()
}

func staticReturnsBeforeSync(t *testing.T, address string, v groupVersions) {
	group := fresh("v21")
	a, b := static(t, address, group, "a", v), static(t, address, group, "b", v)
	form(t, a)
	b.sendJoin()
	a.awaitRebalance()
	a.sendJoin()
	a.joined()
	b.joined()
	generation := a.generation
	b.sendSync(nil)
	b.WantSilence(200 * time.Millisecond)

	returned := b.again()
	returned.sendJoin()
	a.awaitRebalance()
	if got := b.Receive().(*kmsg.SyncGroupResponse); got.ErrorCode != fencedInstanceID {
		t.Errorf("the sync of the process before: error %d, want %d", got.ErrorCode, fencedInstanceID)
	}
	a.sendJoin()
	settle(t, a, returned)
	if a.generation != generation+1 {
		t.Errorf("generation %d after %d", a.generation, generation)
	}
	b.wantFenced()
}

// staticReturnsChanged: a return is no reason to rebalance while the group goes on with the protocol that it has, whatever the subscription.
func staticReturnsChanged(t *testing.T, address string, v groupVersions) {
	group := fresh("v21")
	a, b := static(t, address, group, "a", v), static(t, address, group, "b", v)
	a.protocols, b.protocols = []string{"range", "roundrobin"}, []string{"range", "roundrobin"}
	form(t, a, b)
	same := b.again()
	same.subscribed = []string{"another"}
	same.join()
	for _, m := range []*member{a, same} {
		if code := m.heartbeat(); code != none || m.generation != b.generation {
			t.Errorf("after a return with another subscription: error %d, generation %d after %d", code, m.generation, b.generation)
		}
	}
	changed := same.again()
	changed.protocols = []string{"roundrobin"}
	changed.sendJoin()
	a.awaitRebalance()
	changed.WantSilence(200 * time.Millisecond)
	a.sendJoin()
	for _, m := range []*member{a, changed} {
		if resp := m.joined(); resp.Protocol == nil || *resp.Protocol != "roundrobin" || m.generation != b.generation+1 {
			t.Errorf("protocol %v, generation %d after %d", resp.Protocol, m.generation, b.generation)
		}
	}
}

func staticRemoved(t *testing.T, address string, v groupVersions) {
	a, b := staticPair(t, address, v)
	admin := a.again()
	for instance, want := range map[string]int16{"b": none, "nobody": unknownMemberID} {
		admin.instance = &instance
		if code := admin.leave(); code != want {
			t.Errorf("removing instance %s: error %d, want %d", instance, code, want)
		}
	}
	a.awaitRebalance()
	a.sendJoin()
	settle(t, a)
	if code := b.heartbeat(); code != unknownMemberID {
		t.Errorf("heartbeat of the removed member: error %d, want %d", code, unknownMemberID)
	}
}

func staticStaysAway(t *testing.T, address string, v groupVersions) {
	group := fresh("v21")
	a, b := static(t, address, group, "a", v), static(t, address, group, "b", v)
	a.sessionMs, b.sessionMs = 30_000, 6000
	form(t, a, b)
	start := time.Now()
	if code := b.heartbeat(); code != none {
		t.Fatalf("heartbeat: error %d", code)
	}
	b.Close()
	if got := describeGroup(a.Raw, group, v.describe); got.State != "Stable" || len(got.Members) != 2 {
		t.Errorf("after its connection has ended: state %s, %d members", got.State, len(got.Members))
	}
	sluicetest.Until(t, 15*time.Second, "a rebalance without the member", func() bool { return a.heartbeat() == rebalanceInProgress })
	if took := time.Since(start); took < 5900*time.Millisecond {
		t.Errorf("the place was kept for %v, the session timeout is 6 s", took)
	}
	a.sendJoin()
	settle(t, a)
}
