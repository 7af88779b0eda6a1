package wire

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

// groupVersions are the versions in which a test of groups speaks.
type groupVersions struct{ join, sync, heartbeat, leave, describe, commit int16 }

var (
	firstGroupVersions  = groupVersions{join: 0, sync: 0, heartbeat: 0, leave: 0, describe: 0, commit: 2}
	staticGroupVersions = groupVersions{join: 5, sync: 3, heartbeat: 3, leave: 3, describe: 4, commit: 7} // the first that know instance ids
	lastGroupVersions   = groupVersions{join: 9, sync: 5, heartbeat: 4, leave: 5, describe: 6, commit: 9}
)

// A member is one member of a group, as one process of an application is. It has a connection of its own.
type member struct {
	*sluicetest.Raw
	t                      *testing.T
	v                      groupVersions
	group                  string
	instance               *string
	protocols              []string
	subscribed             []string // topics
	sessionMs, rebalanceMs int32

	id         string // what the broker has given
	generation int32
	leads      bool
}

// memberOf is a member that has not joined yet. All members of a group support "range".
func memberOf(t *testing.T, address, group string, v groupVersions) *member {
	t.Helper()
	m := &member{Raw: sluicetest.Dial(t, address), t: t, v: v, group: group, protocols: []string{"range"}, sessionMs: 10_000, rebalanceMs: 30_000}
	waitForCoordinator(t, m.Raw, group)
	return m
}

// static is memberOf for a member whose slot is the instance's.
func static(t *testing.T, address, group, instance string, v groupVersions) *member {
	t.Helper()
	m := memberOf(t, address, group, v)
	m.instance = &instance
	return m
}

// waitForCoordinator waits until the broker coordinates a group. Before the first group there is no topic to keep groups in.
func waitForCoordinator(t *testing.T, c *sluicetest.Raw, group string) {
	t.Helper()
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKeys = []string{group}
	sluicetest.Until(t, 20*time.Second, "a coordinator", func() bool {
		if sluicetest.Ask[*kmsg.FindCoordinatorResponse](c, find, 4).Coordinators[0].ErrorCode != none {
			return false
		}
		code := describeGroup(c, group, 0).ErrorCode
		return code != coordinatorLoading && code != coordinatorNotAvailable && code != notCoordinator
	})
}

func describeGroup(c *sluicetest.Raw, group string, version int16) kmsg.DescribeGroupsResponseGroup {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	return sluicetest.Ask[*kmsg.DescribeGroupsResponse](c, req, version).Groups[0]
}

func (m *member) joinRequest() *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.ProtocolType = m.group, m.id, m.instance, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = m.sessionMs, m.rebalanceMs
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = m.subscribed
	for _, name := range m.protocols {
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = name, subscription.AppendTo(nil)
		req.Protocols = append(req.Protocols, p)
	}
	return req
}

// sendJoin asks to join, and does not wait. A member without an id is given one first, where the version has it so.
func (m *member) sendJoin() {
	m.t.Helper()
	if m.id == "" && m.instance == nil && m.v.join >= 4 {
		resp := sluicetest.Ask[*kmsg.JoinGroupResponse](m.Raw, m.joinRequest(), m.v.join)
		if resp.ErrorCode != memberIDRequired || resp.MemberID == "" {
			m.t.Fatalf("a first join got error %d and id %q, not %d and an id", resp.ErrorCode, resp.MemberID, memberIDRequired)
		}
		m.id = resp.MemberID
	}
	m.Send(m.joinRequest(), m.v.join)
}

// joined receives the answer to sendJoin, which must be a success.
func (m *member) joined() *kmsg.JoinGroupResponse {
	m.t.Helper()
	resp := m.Receive().(*kmsg.JoinGroupResponse)
	if resp.ErrorCode != none {
		m.t.Fatalf("join: error %d", resp.ErrorCode)
	}
	m.id, m.generation, m.leads = resp.MemberID, resp.Generation, resp.LeaderID == resp.MemberID
	return resp
}

func (m *member) join() *kmsg.JoinGroupResponse {
	m.t.Helper()
	m.sendJoin()
	return m.joined()
}

// sendSync sends what the member would after its join: the leader gives each of members what the function says, a follower waits.
func (m *member) sendSync(members []kmsg.JoinGroupResponseMember) {
	m.t.Helper()
	m.Send(m.syncRequest(members), m.v.sync)
}

func (m *member) syncRequest(members []kmsg.JoinGroupResponseMember) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = m.group, m.id, m.instance, m.generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	for _, other := range members {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = other.MemberID, assignmentOf(other.MemberID)
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	return req
}

// assignmentOf is what the leaders of these tests assign to a member. The broker does not look into it.
func assignmentOf(memberID string) []byte { return []byte("work of " + memberID) }

// synced receives the answer to sendSync, which must be the member's own assignment.
func (m *member) synced() {
	m.t.Helper()
	resp := m.Receive().(*kmsg.SyncGroupResponse)
	if resp.ErrorCode != none || string(resp.MemberAssignment) != string(assignmentOf(m.id)) {
		m.t.Fatalf("sync of %s: error %d, assignment %q", m.id, resp.ErrorCode, resp.MemberAssignment)
	}
	if m.v.sync >= 5 && (resp.ProtocolType == nil || *resp.ProtocolType != "consumer" || resp.Protocol == nil || *resp.Protocol != "range") {
		m.t.Errorf("sync: protocol type %v, protocol %v", resp.ProtocolType, resp.Protocol)
	}
}

func (m *member) heartbeat() int16 {
	m.t.Helper()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = m.group, m.id, m.instance, m.generation
	return sluicetest.Ask[*kmsg.HeartbeatResponse](m.Raw, req, m.v.heartbeat).ErrorCode
}

// awaitRebalance sends heartbeats until the broker says that the group is being joined anew.
func (m *member) awaitRebalance() {
	m.t.Helper()
	sluicetest.Until(m.t, 5*time.Second, "REBALANCE_IN_PROGRESS", func() bool { return m.heartbeat() == rebalanceInProgress })
}

// leave returns the group's error, or the member's where the version has one.
func (m *member) leave() int16 {
	m.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.group, m.id
	one := kmsg.NewLeaveGroupRequestMember()
	one.MemberID, one.InstanceID = m.id, m.instance
	req.Members = append(req.Members, one)
	resp := sluicetest.Ask[*kmsg.LeaveGroupResponse](m.Raw, req, m.v.leave)
	if resp.ErrorCode == none && m.v.leave >= 3 {
		return resp.Members[0].ErrorCode
	}
	return resp.ErrorCode
}

// form makes members one group and lets it come to rest: the first member joins, then each of the others with all before it joining again.
func form(t *testing.T, members ...*member) {
	t.Helper()
	for i := range members {
		in := members[:i+1]
		members[i].sendJoin()
		for _, m := range in[:i] {
			m.awaitRebalance()
			m.sendJoin()
		}
		settle(t, in...)
	}
}

// settle receives the answers to joins of one generation, checks that it is one, and syncs, the followers first.
func settle(t *testing.T, members ...*member) {
	t.Helper()
	var all []kmsg.JoinGroupResponseMember
	var leader *member
	for _, m := range members {
		resp := m.joined()
		if m.generation != members[0].generation {
			t.Fatalf("generations %d and %d of one group", members[0].generation, m.generation)
		}
		if resp.Protocol == nil || *resp.Protocol != "range" || m.v.join >= 7 && (resp.ProtocolType == nil || *resp.ProtocolType != "consumer") {
			t.Fatalf("protocol %v of type %v", resp.Protocol, resp.ProtocolType)
		}
		switch {
		case m.leads && leader != nil:
			t.Fatal("two members lead")
		case m.leads:
			leader, all = m, resp.Members
		case len(resp.Members) > 0:
			t.Fatal("a follower was told who the members are")
		}
	}
	if leader == nil {
		t.Fatal("nobody leads")
	}
	var want, got []string
	for _, m := range members {
		want = append(want, m.id)
	}
	for _, m := range all {
		got = append(got, m.MemberID)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("the leader was told of members %v, joined have %v", got, want)
	}
	for _, m := range members {
		if m != leader {
			m.sendSync(nil)
		}
	}
	leader.sendSync(all)
	for _, m := range members {
		m.synced()
	}
}
