package wire

import (
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

// TestV20_JoinAndSyncBarriers: one generation at a time, with one leader, that nobody is told of before all are in.
func TestV20_JoinAndSyncBarriers(t *testing.T) {
	address := broker(t)
	for name, v := range map[string]groupVersions{"first versions": firstGroupVersions, "last versions": lastGroupVersions} {
		for _, test := range []struct {
			name string
			run  func(*testing.T, string, groupVersions)
		}{
			{"a member joins a group at rest", joinBetweenHeartbeats},
			{"three members start together", startTogether},
			{"a member leaves while the group prepares", leaveWhilePreparing},
			{"a follower syncs first", followerSyncsFirst},
			{"a member does not rejoin", memberDoesNotRejoin},
			{"a protocol that nobody shares", foreignProtocol},
		} {
			t.Run(name+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				test.run(t, address, v)
			})
		}
	}
	t.Run("no rebalance timeout is the session timeout", func(t *testing.T) {
		t.Parallel()
		missingRebalanceTimeout(t, address)
	})
}

func joinBetweenHeartbeats(t *testing.T, address string, v groupVersions) {
	group := fresh("v20a")
	a, b := memberOf(t, address, group, v), memberOf(t, address, group, v)
	form(t, a)
	first := a.generation
	if code := a.heartbeat(); code != none {
		t.Fatalf("heartbeat at rest: error %d", code)
	}
	b.sendJoin()
	a.awaitRebalance()
	b.WantSilence(300 * time.Millisecond)
	if code := sluicetest.Ask[*kmsg.SyncGroupResponse](a.Raw, a.syncRequest(nil), v.sync).ErrorCode; code != rebalanceInProgress {
		t.Errorf("sync while the group prepares: error %d, want %d", code, rebalanceInProgress)
	}
	a.sendJoin()
	settle(t, a, b)
	if a.generation != first+1 {
		t.Errorf("generation %d after %d", a.generation, first)
	}
	if !a.leads {
		t.Error("the leader changed though it was there")
	}
	for _, m := range []*member{a, b} {
		if code := m.heartbeat(); code != none {
			t.Errorf("heartbeat at rest: error %d", code)
		}
	}
	a.generation = first
	if code := a.heartbeat(); code != illegalGeneration {
		t.Errorf("heartbeat of the last generation: error %d, want %d", code, illegalGeneration)
	}
	stranger := memberOf(t, address, group, v)
	stranger.id, stranger.generation = "nobody", b.generation
	if code := stranger.heartbeat(); code != unknownMemberID {
		t.Errorf("heartbeat of a stranger: error %d, want %d", code, unknownMemberID)
	}
	if code := stranger.leave(); code != unknownMemberID {
		t.Errorf("a stranger leaves: error %d, want %d", code, unknownMemberID)
	}
	stranger.Send(stranger.joinRequest(), v.join)
	if code := stranger.Receive().(*kmsg.JoinGroupResponse).ErrorCode; code != unknownMemberID {
		t.Errorf("a stranger joins with an id: error %d, want %d", code, unknownMemberID)
	}
}

// startTogether lets each member do what a consumer does, until all are in one generation at rest.
func startTogether(t *testing.T, address string, v groupVersions) {
	group := fresh("v20b")
	members := make([]*member, 3)
	for i := range members {
		members[i] = memberOf(t, address, group, v)
	}
	leaders := make(map[int32]string) // by generation
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, m := range members {
		wait.Go(func() {
			for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
				resp := m.join()
				mu.Lock()
				if known, ok := leaders[m.generation]; ok && known != resp.LeaderID {
					t.Errorf("generation %d has leaders %s and %s", m.generation, known, resp.LeaderID)
				}
				leaders[m.generation] = resp.LeaderID
				mu.Unlock()
				all := resp.Members
				answer := sluicetest.Ask[*kmsg.SyncGroupResponse](m.Raw, m.syncRequest(all), v.sync)
				if answer.ErrorCode == none && string(answer.MemberAssignment) != string(assignmentOf(m.id)) {
					t.Errorf("assignment %q of %s", answer.MemberAssignment, m.id)
				}
				for answer.ErrorCode == none && time.Now().Before(deadline) {
					if m.heartbeat() == rebalanceInProgress {
						break
					}
					if got := describeGroup(m.Raw, group, v.describe); got.State == "Stable" && len(got.Members) == len(members) {
						return
					}
				}
			}
			t.Error("the group did not come to rest within 20 s")
		})
	}
	wait.Wait()
	for _, m := range members {
		if m.generation != members[0].generation || m.leads != (leaders[m.generation] == m.id) {
			t.Errorf("member %s is in generation %d, another in %d", m.id, m.generation, members[0].generation)
		}
	}
}

func leaveWhilePreparing(t *testing.T, address string, v groupVersions) {
	group := fresh("v20c")
	a, b, c, d := memberOf(t, address, group, v), memberOf(t, address, group, v), memberOf(t, address, group, v), memberOf(t, address, group, v)
	form(t, a, b, c)
	d.sendJoin()
	for _, m := range []*member{a, b} {
		m.awaitRebalance()
		m.sendJoin()
	}
	d.WantSilence(200 * time.Millisecond)
	if code := c.leave(); code != none {
		t.Fatalf("leave: error %d", code)
	}
	start := time.Now()
	settle(t, a, b, d)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the join ended %v after the last missing member had left", took)
	}
}

func followerSyncsFirst(t *testing.T, address string, v groupVersions) {
	group := fresh("v20d")
	a, b := memberOf(t, address, group, v), memberOf(t, address, group, v)
	form(t, a)
	b.sendJoin()
	a.awaitRebalance()
	a.sendJoin()
	all := a.joined().Members
	b.joined()
	b.sendSync(nil)
	b.WantSilence(300 * time.Millisecond)
	if got := describeGroup(a.Raw, group, v.describe); got.State != "CompletingRebalance" {
		t.Errorf("state %s", got.State)
	}
	a.sendSync(all)
	a.synced()
	b.synced()
	// Who asks again is told again.
	b.sendSync(nil)
	b.synced()
}

func memberDoesNotRejoin(t *testing.T, address string, v groupVersions) {
	group := fresh("v20e")
	a, b, c := memberOf(t, address, group, v), memberOf(t, address, group, v), memberOf(t, address, group, v)
	const timeout = 2 * time.Second
	for _, m := range []*member{a, b, c} {
		m.rebalanceMs, m.sessionMs = int32(timeout.Milliseconds()), 6000
		if v.join == 0 {
			m.rebalanceMs = m.sessionMs
		}
	}
	want := time.Duration(a.rebalanceMs) * time.Millisecond
	form(t, a, b)
	start := time.Now()
	c.sendJoin()
	a.awaitRebalance()
	a.sendJoin()
	settle(t, a, c)
	if took := time.Since(start); took < want-100*time.Millisecond || took > want+4*time.Second {
		t.Errorf("the join ended after %v, the rebalance timeout is %v", took, want)
	}
	if code := b.heartbeat(); code != unknownMemberID {
		t.Errorf("heartbeat of the member that did not rejoin: error %d, want %d", code, unknownMemberID)
	}
}

// missingRebalanceTimeout: version 0 has no such field. The member goes on sending heartbeats, or its session would end at the same time.
func missingRebalanceTimeout(t *testing.T, address string) {
	group := fresh("v20f")
	v := firstGroupVersions
	a, b := memberOf(t, address, group, v), memberOf(t, address, group, v)
	a.sessionMs, b.sessionMs = 6000, 6000
	form(t, a)
	start := time.Now()
	b.sendJoin()
	sluicetest.Until(t, 15*time.Second, "the member that does not rejoin is dropped", func() bool { return a.heartbeat() == unknownMemberID })
	settle(t, b)
	if took := time.Since(start); took < 5500*time.Millisecond || took > 9*time.Second {
		t.Errorf("the join ended after %v, the session timeout is 6 s", took)
	}
}

func foreignProtocol(t *testing.T, address string, v groupVersions) {
	group := fresh("v20g")
	a := memberOf(t, address, group, v)
	a.protocols = []string{"range", "roundrobin"}
	form(t, a)
	refused := func(what string, want int16, change func(*kmsg.JoinGroupRequest)) {
		t.Helper()
		b := memberOf(t, address, group, v)
		req := b.joinRequest()
		change(req)
		if code := sluicetest.Ask[*kmsg.JoinGroupResponse](b.Raw, req, v.join).ErrorCode; code != want {
			t.Errorf("%s: error %d, want %d", what, code, want)
		}
	}
	refused("another protocol", inconsistentProtocol, func(r *kmsg.JoinGroupRequest) { r.Protocols[0].Name = "sticky" })
	refused("another protocol type", inconsistentProtocol, func(r *kmsg.JoinGroupRequest) { r.ProtocolType = "connect" })
	refused("no protocol type", inconsistentProtocol, func(r *kmsg.JoinGroupRequest) { r.ProtocolType = "" })
	refused("no protocol", inconsistentProtocol, func(r *kmsg.JoinGroupRequest) { r.Protocols = nil })
	refused("a short session", invalidSessionTimeout, func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 5999 })
	refused("a long session", invalidSessionTimeout, func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 1_800_001 })
	refused("no group", invalidGroupID, func(r *kmsg.JoinGroupRequest) { r.Group = "" })
	if code := a.heartbeat(); code != none {
		t.Errorf("a refused join disturbed the group: error %d", code)
	}
}

// TestV20_InitialRebalanceDelay: an empty group waits for others, so that members that start together have one generation.
func TestV20_InitialRebalanceDelay(t *testing.T) {
	p := own(t, "--set", "group.initial.rebalance.delay.ms=700")
	for _, v := range []groupVersions{firstGroupVersions, lastGroupVersions} {
		group := fresh("v20-delay")
		members := make([]*member, 3)
		for i := range members {
			members[i] = memberOf(t, p.Address, group, v)
		}
		start := time.Now()
		for _, m := range members {
			m.sendJoin()
		}
		settle(t, members...)
		if took := time.Since(start); took < 650*time.Millisecond || took > 5*time.Second {
			t.Errorf("the join took %v", took)
		}
		if members[0].generation != 1 {
			t.Errorf("generation %d", members[0].generation)
		}
	}
}
