package diff

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func groupStories() []Scenario {
	var list []Scenario
	for _, v := range testedVersions(kmsg.JoinGroup) {
		list = append(list, Scenario{Name: fmt.Sprintf("groups/two members, join v%d", v), Steps: func(r *Run) { twoMembers(r, v) }})
		if v >= 5 {
			list = append(list, Scenario{Name: fmt.Sprintf("groups/static members, join v%d", v), Steps: func(r *Run) { staticMembers(r, v) }})
		}
		list = append(list, Scenario{Name: fmt.Sprintf("groups/protocols, join v%d", v), Steps: func(r *Run) { protocols(r, v) }})
	}
	for _, v := range testedVersions(kmsg.OffsetCommit) {
		list = append(list, Scenario{Name: fmt.Sprintf("groups/offsets, commit v%d", v), Steps: func(r *Run) { offsets(r, v) }})
	}
	for _, v := range testedVersions(kmsg.DescribeGroups) {
		list = append(list, Scenario{Name: fmt.Sprintf("groups/states, describe v%d", v), Steps: func(r *Run) { states(r, v) }})
	}
	return append(list,
		Scenario{Name: "groups/the group without a name", Alone: true, Steps: namelessGroup},
		Scenario{Name: "groups/deletion", Steps: groupDeletion},
		Scenario{Name: "groups/session ends", Steps: sessionEnds},
		Scenario{Name: "groups/topic is deleted", Steps: topicOfGroupDeleted})
}

// nearest is the version of another API of the group protocol that came with a version of JoinGroup, as far as both brokers serve it.
func nearest(key kmsg.Key, v int16) int16 {
	all := testedVersions(key)
	return min(max(v, all[0]), all[len(all)-1])
}

// subscription is a consumer's, version 0: the coordinator reads the topics from it.
func subscription(topics ...string) []byte {
	b := []byte{0, 0}
	b = binary.BigEndian.AppendUint32(b, uint32(len(topics)))
	for _, t := range topics {
		b = binary.BigEndian.AppendUint16(b, uint16(len(t)))
		b = append(b, t...)
	}
	return append(b, 0xff, 0xff, 0xff, 0xff)
}

// enter joins as a dynamic member, with the detour over the id that the broker gives from version 4 on.
func enter(r *Run, v int16, group string, m member) {
	at := r.connection(m.name)
	if v >= 4 {
		ask(at, m.name+" joins without an id", v, func(s *side) kmsg.Request { return m.join(s, group) }, m.keepMember)
	}
}

func twoMembers(r *Run, v int16) {
	g := r.name("g")
	r.topic(r.name("t"), 2)
	a, b, c := member{name: "a"}, member{name: "b"}, member{name: "c"}
	sync, beat, leave := nearest(kmsg.SyncGroup, v), nearest(kmsg.Heartbeat, v), nearest(kmsg.LeaveGroup, v)
	generation := func(s *side, m member) int32 { return get[int32](s, m.name+" generation") }
	describe := func(step string) {
		ask[*kmsg.DescribeGroupsResponse](r, step, 6, same(describeGroups(g)))
	}
	ra, rb, rc := r.connection("a"), r.connection("b"), r.connection("c")

	enter(r, v, g, a)
	ask(ra, "a joins", v, func(s *side) kmsg.Request { return a.join(s, g) }, a.keepMember)
	describe("before a has synced")
	ask[*kmsg.HeartbeatResponse](ra, "a beats before it has synced", beat, func(s *side) kmsg.Request { return a.heartbeat(s, g, generation(s, a)) })
	ask[*kmsg.OffsetCommitResponse](ra, "a commits before it has synced", 8, func(s *side) kmsg.Request {
		return commit(s, g, &a, generation(s, a), r.name("t"), 5)
	})
	ask[*kmsg.SyncGroupResponse](ra, "a syncs with a wrong generation", sync, func(s *side) kmsg.Request { return a.sync(s, g, 99, a) })
	ask[*kmsg.SyncGroupResponse](ra, "a syncs", sync, func(s *side) kmsg.Request { return a.sync(s, g, generation(s, a), a) })
	ask[*kmsg.SyncGroupResponse](ra, "a syncs again", sync, func(s *side) kmsg.Request { return a.sync(s, g, generation(s, a), a) })
	describe("a alone")
	for _, wrong := range []int32{-1, 0, 2, 99} {
		ask[*kmsg.HeartbeatResponse](ra, fmt.Sprintf("a beats in generation %d", wrong), beat, func(s *side) kmsg.Request { return a.heartbeat(s, g, wrong) })
		ask[*kmsg.OffsetCommitResponse](ra, fmt.Sprintf("a commits in generation %d", wrong), 8, func(s *side) kmsg.Request {
			return commit(s, g, &a, wrong, r.name("t"), 5)
		})
	}
	ask[*kmsg.HeartbeatResponse](ra, "a beats", beat, func(s *side) kmsg.Request { return a.heartbeat(s, g, generation(s, a)) })
	ask[*kmsg.OffsetCommitResponse](ra, "a commits", 8, func(s *side) kmsg.Request { return commit(s, g, &a, generation(s, a), r.name("t"), 7) })

	// b comes in: a learns it from its heartbeat, and joins again.
	enter(r, v, g, b)
	rb.send(v, func(s *side) kmsg.Request { return b.join(s, g) })
	r.until("a has to join again", func(s *side) bool {
		resp, ok := s.once("poll", a.heartbeat(s, g, generation(s, a)), 4).(*kmsg.HeartbeatResponse)
		return ok && resp.ErrorCode == 27
	})
	describe("b has joined")
	ask[*kmsg.HeartbeatResponse](ra, "a beats while b joins", beat, func(s *side) kmsg.Request { return a.heartbeat(s, g, generation(s, a)) })
	ask[*kmsg.OffsetCommitResponse](ra, "a commits while b joins", 8, func(s *side) kmsg.Request { return commit(s, g, &a, generation(s, a), r.name("t"), 8) })
	ask[*kmsg.SyncGroupResponse](ra, "a syncs while b joins", sync, func(s *side) kmsg.Request { return a.sync(s, g, generation(s, a), a) })
	ask(ra, "a joins again", v, func(s *side) kmsg.Request { return a.join(s, g) }, a.keepMember)
	take(rb, "b is in", b.keepMember)
	rb.send(sync, func(s *side) kmsg.Request { return b.sync(s, g, generation(s, b)) })
	describe("b has synced")
	ask[*kmsg.SyncGroupResponse](ra, "a syncs for both", sync, func(s *side) kmsg.Request { return a.sync(s, g, generation(s, a), a, b) })
	take[*kmsg.SyncGroupResponse](rb, "b gets its assignment")
	describe("both")
	ask[*kmsg.JoinGroupResponse](rb, "b joins again as it is", v, func(s *side) kmsg.Request { return b.join(s, g) })

	// A member that nobody knows, and a third that does not come back with its id.
	stranger := member{name: "stranger"}
	r.both(func(_ int, s *side) { s.keep("stranger", "stranger-00000000-0000-0000-0000-000000000000") })
	ask[*kmsg.JoinGroupResponse](rc, "a stranger joins", v, func(s *side) kmsg.Request { return stranger.join(s, g) })
	ask[*kmsg.HeartbeatResponse](rc, "a stranger beats", beat, func(s *side) kmsg.Request { return stranger.heartbeat(s, g, 2) })
	ask[*kmsg.SyncGroupResponse](rc, "a stranger syncs", sync, func(s *side) kmsg.Request { return stranger.sync(s, g, 2) })
	ask[*kmsg.OffsetCommitResponse](rc, "a stranger commits", 8, func(s *side) kmsg.Request { return commit(s, g, &stranger, 2, r.name("t"), 5) })
	ask[*kmsg.OffsetCommitResponse](rc, "nobody commits", 8, func(s *side) kmsg.Request { return commit(s, g, nil, -1, r.name("t"), 5) })
	enter(r, v, g, c)
	describe("c has an id only")

	leaving := func(s *side, m member) *kmsg.LeaveGroupRequest {
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Group, req.MemberID = g, m.id(s)
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID = m.id(s)
		req.Members = append(req.Members, one)
		return req
	}
	ask[*kmsg.LeaveGroupResponse](rc, "a stranger leaves", leave, func(s *side) kmsg.Request { return leaving(s, stranger) })
	if v >= 4 {
		ask[*kmsg.LeaveGroupResponse](rc, "c leaves", leave, func(s *side) kmsg.Request { return leaving(s, c) })
	}
	ask[*kmsg.LeaveGroupResponse](rb, "b leaves", leave, func(s *side) kmsg.Request { return leaving(s, b) })
	ask[*kmsg.LeaveGroupResponse](rb, "b leaves again", leave, func(s *side) kmsg.Request { return leaving(s, b) })
	ask[*kmsg.HeartbeatResponse](ra, "a beats after b left", beat, func(s *side) kmsg.Request { return a.heartbeat(s, g, generation(s, a)) })
	ask(ra, "a joins for the third time", v, func(s *side) kmsg.Request { return a.join(s, g) }, a.keepMember)
	ask[*kmsg.SyncGroupResponse](ra, "a syncs for the third time", sync, func(s *side) kmsg.Request { return a.sync(s, g, generation(s, a), a) })
	ask[*kmsg.LeaveGroupResponse](ra, "a leaves", leave, func(s *side) kmsg.Request { return leaving(s, a) })
	describe("all gone")
	ask[*kmsg.HeartbeatResponse](ra, "a beats in the empty group", beat, func(s *side) kmsg.Request { return a.heartbeat(s, g, generation(s, a)) })
	ask[*kmsg.SyncGroupResponse](ra, "a syncs in the empty group", sync, func(s *side) kmsg.Request { return a.sync(s, g, generation(s, a), a) })
	ask[*kmsg.OffsetFetchResponse](ra, "what was committed", 7, same(offsetFetch(g, r.name("t"))))
	ask[*kmsg.OffsetCommitResponse](rc, "nobody commits to the empty group", 8, func(s *side) kmsg.Request { return commit(s, g, nil, -1, r.name("t"), 9) })
	enter(r, v, g, c)
	ask(rc, "c joins the empty group", v, func(s *side) kmsg.Request { return c.join(s, g) }, c.keepMember)
}

// until waits for something on both brokers without comparing.
func (r *Run) until(what string, holds func(s *side) bool) {
	r.both(func(_ int, s *side) {
		deadline := time.Now().Add(setupLimit)
		for !holds(s) {
			if time.Now().After(deadline) {
				r.t.Errorf("%s: never: %s", s.name, what)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// once sends one request and returns the answer, or nil.
func (s *side) once(connection string, req kmsg.Request, version int16) kmsg.Response {
	req.SetVersion(version)
	c := s.conn(connection)
	c.send(appendFrame(req, 0), req.ResponseKind())
	return c.receive(setupLimit).response
}

func staticMembers(r *Run, v int16) {
	g := r.name("g")
	r.topic(r.name("t"), 2)
	sync, beat, leave := nearest(kmsg.SyncGroup, v), nearest(kmsg.Heartbeat, v), nearest(kmsg.LeaveGroup, v)
	a, b := member{name: "a", instance: "first"}, member{name: "b", instance: "second"}
	old := member{name: "old", instance: "first"}
	ra, rb := r.connection("a"), r.connection("b")
	generation := func(s *side, m member) int32 { return get[int32](s, m.name+" generation") }
	describe := func(step string) { ask[*kmsg.DescribeGroupsResponse](r, step, 6, same(describeGroups(g))) }

	ask(ra, "a joins", v, func(s *side) kmsg.Request { return a.join(s, g) }, a.keepMember)
	ask[*kmsg.SyncGroupResponse](ra, "a syncs", sync, func(s *side) kmsg.Request { return a.sync(s, g, generation(s, a), a) })
	describe("a alone")
	rb.send(v, func(s *side) kmsg.Request { return b.join(s, g) })
	r.until("a has to join again", func(s *side) bool {
		resp, ok := s.once("poll", a.heartbeat(s, g, generation(s, a)), 4).(*kmsg.HeartbeatResponse)
		return ok && resp.ErrorCode == 27
	})
	ask(ra, "a joins again", v, func(s *side) kmsg.Request { return a.join(s, g) }, a.keepMember)
	take(rb, "b is in", b.keepMember)
	rb.send(sync, func(s *side) kmsg.Request { return b.sync(s, g, generation(s, b)) })
	ask[*kmsg.SyncGroupResponse](ra, "a syncs for both", sync, func(s *side) kmsg.Request { return a.sync(s, g, generation(s, a), a, b) })
	take[*kmsg.SyncGroupResponse](rb, "b gets its assignment")
	describe("both")

	// b comes back as a follower: nothing changes but its id.
	r.both(func(_ int, s *side) { s.keep("old", b.id(s)); s.keep("b", "") })
	old.instance = "second"
	ask(rb, "b comes back without its id", v, func(s *side) kmsg.Request { return b.join(s, g) }, b.keepMember)
	describe("b is back")
	ask[*kmsg.SyncGroupResponse](rb, "b syncs", sync, func(s *side) kmsg.Request { return b.sync(s, g, generation(s, b)) })
	ask[*kmsg.HeartbeatResponse](rb, "b beats", beat, func(s *side) kmsg.Request { return b.heartbeat(s, g, generation(s, b)) })
	fenced := r.connection("fenced")
	ask[*kmsg.HeartbeatResponse](fenced, "the old b beats", beat, func(s *side) kmsg.Request { return old.heartbeat(s, g, generation(s, b)) })
	ask[*kmsg.SyncGroupResponse](fenced, "the old b syncs", sync, func(s *side) kmsg.Request { return old.sync(s, g, generation(s, b)) })
	ask[*kmsg.JoinGroupResponse](fenced, "the old b joins", v, func(s *side) kmsg.Request { return old.join(s, g) })
	ask[*kmsg.OffsetCommitResponse](fenced, "the old b commits", 8, func(s *side) kmsg.Request { return commit(s, g, &old, generation(s, b), r.name("t"), 4) })
	ask[*kmsg.OffsetCommitResponse](rb, "b commits", 8, func(s *side) kmsg.Request { return commit(s, g, &b, generation(s, b), r.name("t"), 4) })
	unknown := member{name: "b", instance: "third"}
	ask[*kmsg.HeartbeatResponse](fenced, "b beats as another instance", beat, func(s *side) kmsg.Request { return unknown.heartbeat(s, g, generation(s, b)) })
	ask[*kmsg.OffsetCommitResponse](fenced, "b commits as another instance", 8, func(s *side) kmsg.Request { return commit(s, g, &unknown, generation(s, b), r.name("t"), 4) })

	// The leader comes back: it is given the same assignment, or from version 9 on told not to assign.
	r.both(func(_ int, s *side) { s.keep("a", "") })
	ask(ra, "a comes back without its id", v, func(s *side) kmsg.Request { return a.join(s, g) }, a.keepMember)
	ask[*kmsg.SyncGroupResponse](ra, "a syncs after its return", sync, func(s *side) kmsg.Request { return a.sync(s, g, generation(s, a), a, b) })
	describe("a is back")

	byInstance := func(instances ...string) *kmsg.LeaveGroupRequest {
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Group = g
		for _, i := range instances {
			m := kmsg.NewLeaveGroupRequestMember()
			m.InstanceID = pointer(i)
			req.Members = append(req.Members, m)
		}
		return req
	}
	if leave >= 3 {
		ask[*kmsg.LeaveGroupResponse](fenced, "the old b is taken out", leave, func(s *side) kmsg.Request {
			req := byInstance("second")
			req.Members[0].MemberID = old.id(s)
			return req
		})
		ask[*kmsg.LeaveGroupResponse](fenced, "some are taken out", leave, same(byInstance("second", "nobody", "second")))
		describe("b is out")
		ask[*kmsg.LeaveGroupResponse](fenced, "nobody is taken out", leave, same(byInstance()))
		ask[*kmsg.LeaveGroupResponse](fenced, "the last is taken out", leave, same(byInstance("first")))
		describe("all out")
	}
}

func protocols(r *Run, v int16) {
	g := r.name("g")
	a, b := member{name: "a"}, member{name: "b"}
	ra, rb := r.connection("a"), r.connection("b")
	enter(r, v, g, a)
	ask(ra, "a joins with two", v, func(s *side) kmsg.Request { return a.join(s, g, "range", "roundrobin") }, a.keepMember)
	ask[*kmsg.SyncGroupResponse](ra, "a syncs", nearest(kmsg.SyncGroup, v), func(s *side) kmsg.Request { return a.sync(s, g, 1, a) })
	for _, c := range []struct {
		name, kind string
		protocols  []string
	}{
		{"a protocol that a lacks", "consumer", []string{"sticky"}},
		{"another type", "connect", []string{"range"}},
		{"no type", "", []string{"range"}},
		{"the same type in other letters", "Consumer", []string{"range"}},
	} {
		ask[*kmsg.JoinGroupResponse](rb, "b joins with "+c.name, v, func(s *side) kmsg.Request {
			req := b.join(s, g, c.protocols...)
			req.ProtocolType = c.kind
			return req
		})
	}
	ask[*kmsg.JoinGroupResponse](rb, "b joins with none", v, func(s *side) kmsg.Request {
		req := b.join(s, g)
		req.Protocols = nil
		return req
	})
	for _, timeout := range []int32{-1, 0, 5999, 6000, 1_800_000, 1_800_001, 2147483647} {
		ask[*kmsg.JoinGroupResponse](rb, fmt.Sprintf("b joins a new group for %d ms", timeout), v, func(s *side) kmsg.Request {
			req := b.join(s, r.name(fmt.Sprintf("g%d", timeout)))
			req.SessionTimeoutMillis = timeout
			return req
		})
	}
	if sync := nearest(kmsg.SyncGroup, v); sync >= 5 {
		for _, c := range [][2]*string{{nil, nil}, {pointer("connect"), pointer("range")}, {pointer("consumer"), pointer("sticky")}, {nil, pointer("range")}, {pointer("consumer"), nil}} {
			ask[*kmsg.SyncGroupResponse](ra, fmt.Sprintf("a syncs as %s %s", text(c[0]), text(c[1])), sync, func(s *side) kmsg.Request {
				req := a.sync(s, g, 1, a)
				req.ProtocolType, req.Protocol = c[0], c[1]
				return req
			})
		}
	}
	ask(ra, "a joins with another metadata", v, func(s *side) kmsg.Request {
		req := a.join(s, g, "range", "roundrobin")
		req.Protocols[0].Metadata = []byte("changed")
		return req
	}, a.keepMember)
	ask[*kmsg.DescribeGroupsResponse](r, "described", 6, same(describeGroups(g)))
	// As the leader it always begins a new generation, even without a change.
	ask(ra, "a joins once more", v, func(s *side) kmsg.Request { return a.join(s, g, "range", "roundrobin") }, a.keepMember)
}

func text(p *string) string {
	if p == nil {
		return "null"
	}
	return *p
}

func offsets(r *Run, v int16) {
	g, t := r.name("g"), r.name("t")
	r.topic(t, 3)
	r.topic(r.name("u"), 1)
	fetchVersions := testedVersions(kmsg.OffsetFetch)
	look := func(step string) {
		for _, fv := range fetchVersions {
			ask[*kmsg.OffsetFetchResponse](r, step, fv, func(s *side) kmsg.Request {
				req := offsetFetch(g, t)
				req.Groups[0].Topics[0].TopicID = idOf(s, t)
				return req
			})
			if fv >= 2 {
				ask[*kmsg.OffsetFetchResponse](r, step+", all", fv, func(s *side) kmsg.Request {
					req := offsetFetch(g, t)
					req.Topics, req.Groups[0].Topics = nil, nil
					return req
				})
			}
		}
	}
	look("before")
	many := func(s *side) *kmsg.OffsetCommitRequest {
		req := commit(s, g, nil, -1, t, 10)
		add := func(topic int, partition int32, offset int64, metadata *string) {
			p := kmsg.NewOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset, p.Metadata, p.LeaderEpoch = partition, offset, metadata, -1
			req.Topics[topic].Partitions = append(req.Topics[topic].Partitions, p)
		}
		add(0, 2, 12, nil)
		add(0, 9, 1, pointer("no such partition"))
		add(0, 1, 11, pointer(strings.Repeat("m", 4096)))
		other := kmsg.NewOffsetCommitRequestTopic()
		other.Topic, other.TopicID = r.name("nobody"), [16]byte{7}
		req.Topics = append(req.Topics, other)
		add(1, 0, 1, pointer(""))
		other.Topic, other.TopicID = r.name("u"), idOf(s, r.name("u"))
		req.Topics = append(req.Topics, other)
		add(2, 0, 1, pointer(strings.Repeat("m", 4097)))
		return req
	}
	ask[*kmsg.OffsetCommitResponse](r, "commit of many", v, func(s *side) kmsg.Request { return many(s) })
	look("after it")
	for _, offset := range []int64{0, -1, -2, 1<<63 - 1} {
		ask[*kmsg.OffsetCommitResponse](r, fmt.Sprintf("offset %d", offset), v, func(s *side) kmsg.Request { return commit(s, g, nil, -1, t, offset) })
		ask[*kmsg.OffsetFetchResponse](r, fmt.Sprintf("offset %d, fetched", offset), 7, same(offsetFetch(g, t)))
	}
	for _, generation := range []int32{0, 1, -2} {
		ask[*kmsg.OffsetCommitResponse](r, fmt.Sprintf("generation %d of no member", generation), v, func(s *side) kmsg.Request {
			return commit(s, g, nil, generation, t, 1)
		})
		ask[*kmsg.OffsetCommitResponse](r, fmt.Sprintf("generation %d of no group", generation), v, func(s *side) kmsg.Request {
			return commit(s, r.name("new"), nil, generation, t, 1)
		})
	}
	if last := fetchVersions[len(fetchVersions)-1]; last >= 8 {
		for fv := int16(8); fv <= last; fv++ {
			ask[*kmsg.OffsetFetchResponse](r, "several groups", fv, func(s *side) kmsg.Request {
				req := offsetFetch(g, t)
				req.Groups[0].Topics[0].TopicID = idOf(s, t)
				all := kmsg.NewOffsetFetchRequestGroup()
				all.Group, all.MemberEpoch, all.Topics = g, -1, nil
				none := all
				none.Group = r.name("nobody")
				empty := all
				empty.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
				nameless := all
				nameless.Group = ""
				req.Groups = append(req.Groups, all, none, empty, nameless)
				return req
			})
		}
	}
}

// namelessGroup commits to the group "", which is allowed, and is there afterwards for all other scenarios.
func namelessGroup(r *Run) {
	r.topic(r.name("t"), 1)
	for _, v := range testedVersions(kmsg.OffsetCommit) {
		for _, generation := range []int32{-1, 0, 1} {
			ask[*kmsg.OffsetCommitResponse](r, fmt.Sprintf("generation %d", generation), v, func(s *side) kmsg.Request { return commit(s, "", nil, generation, r.name("t"), 1) })
		}
	}
	for _, v := range testedVersions(kmsg.OffsetFetch) {
		ask[*kmsg.OffsetFetchResponse](r, "fetched", v, func(s *side) kmsg.Request {
			req := offsetFetch("", r.name("t"))
			req.Groups[0].Topics[0].TopicID = idOf(s, r.name("t"))
			return req
		})
	}
	ask[*kmsg.DescribeGroupsResponse](r, "described", 5, same(describeGroups("")))
}

func states(r *Run, v int16) {
	stableGroup(r)
	groups := []string{r.name("g"), r.name("nobody"), "", r.name("g")}
	for _, operations := range []bool{false, true} {
		req := describeGroups(groups...)
		req.IncludeAuthorizedOperations = operations
		ask[*kmsg.DescribeGroupsResponse](r, fmt.Sprintf("operations %v", operations), v, same(req))
	}
	ask[*kmsg.OffsetCommitResponse](r, "an offset alone", 8, func(s *side) kmsg.Request { return commit(s, r.name("simple"), nil, -1, r.name("t"), 1) })
	ask[*kmsg.DescribeGroupsResponse](r, "a group of offsets", v, same(describeGroups(r.name("simple"))))
	for _, lv := range testedVersions(kmsg.ListGroups) {
		ask[*kmsg.ListGroupsResponse](r, "listed", lv, same(kmsg.NewPtrListGroupsRequest()))
	}
}

func groupDeletion(r *Run) {
	g, t := r.name("g"), r.name("t")
	r.topic(t, 2)
	r.topic(r.name("u"), 1)
	a := member{name: "a"}
	subscribed := func(s *side) *kmsg.JoinGroupRequest {
		req := a.join(s, g)
		req.Protocols[0].Metadata = subscription(t)
		return req
	}
	ask(r, "a joins without an id", 5, func(s *side) kmsg.Request { return subscribed(s) }, a.keepMember)
	ask(r, "a joins", 5, func(s *side) kmsg.Request { return subscribed(s) }, a.keepMember)
	ask[*kmsg.SyncGroupResponse](r, "a syncs", 5, func(s *side) kmsg.Request { return a.sync(s, g, 1, a) })
	ask[*kmsg.OffsetCommitResponse](r, "a commits", 8, func(s *side) kmsg.Request { return commit(s, g, &a, 1, t, 1) })
	ask[*kmsg.OffsetCommitResponse](r, "a commits for another topic", 8, func(s *side) kmsg.Request { return commit(s, g, &a, 1, r.name("u"), 1) })
	offsetDelete := func(group string) *kmsg.OffsetDeleteRequest {
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = group
		for _, name := range []string{t, r.name("u"), r.name("nobody")} {
			topic := kmsg.NewOffsetDeleteRequestTopic()
			topic.Topic = name
			for _, p := range []int32{0, 9} {
				one := kmsg.NewOffsetDeleteRequestTopicPartition()
				one.Partition = p
				topic.Partitions = append(topic.Partitions, one)
			}
			req.Topics = append(req.Topics, topic)
		}
		return req
	}
	ask[*kmsg.OffsetDeleteResponse](r, "offsets of a group in use", 0, same(offsetDelete(g)))
	ask[*kmsg.OffsetDeleteResponse](r, "offsets of a group that is not there", 0, same(offsetDelete(r.name("nobody"))))
	ask[*kmsg.OffsetFetchResponse](r, "what is left", 7, same(offsetFetch(g, t)))
	ask[*kmsg.OffsetFetchResponse](r, "what is left of the other", 7, same(offsetFetch(g, r.name("u"))))
	for _, v := range testedVersions(kmsg.DeleteGroups) {
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = []string{g, r.name("nobody"), ""}
		ask[*kmsg.DeleteGroupsResponse](r, "in use", v, same(req))
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	ask[*kmsg.LeaveGroupResponse](r, "a leaves", 2, func(s *side) kmsg.Request {
		req := *leave
		req.Group, req.MemberID = g, a.id(s)
		return &req
	})
	ask[*kmsg.OffsetDeleteResponse](r, "offsets of an empty group", 0, same(offsetDelete(g)))
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = []string{g, g}
	ask[*kmsg.DeleteGroupsResponse](r, "empty", 2, same(req))
	ask[*kmsg.DescribeGroupsResponse](r, "deleted", 6, same(describeGroups(g)))
	ask[*kmsg.OffsetFetchResponse](r, "its offsets", 7, same(offsetFetch(g, t)))
}

// sessionEnds lets a member be silent for its session timeout, the shortest that is allowed.
func sessionEnds(r *Run) {
	a := member{name: "a"}
	short := func(s *side) *kmsg.JoinGroupRequest {
		req := a.join(s, r.name("g"))
		req.SessionTimeoutMillis = 6000
		return req
	}
	ask(r, "a joins without an id", 5, func(s *side) kmsg.Request { return short(s) }, a.keepMember)
	ask(r, "a joins", 5, func(s *side) kmsg.Request { return short(s) }, a.keepMember)
	ask[*kmsg.SyncGroupResponse](r, "a syncs", 5, func(s *side) kmsg.Request { return a.sync(s, r.name("g"), 1, a) })
	time.Sleep(4 * time.Second)
	ask[*kmsg.DescribeGroupsResponse](r, "after 4 s", 6, same(describeGroups(r.name("g"))))
	ask[*kmsg.HeartbeatResponse](r, "a beats after 4 s", 4, func(s *side) kmsg.Request { return a.heartbeat(s, r.name("g"), 1) })
	time.Sleep(4 * time.Second)
	ask[*kmsg.DescribeGroupsResponse](r, "after 8 s, with a heartbeat", 6, same(describeGroups(r.name("g"))))
	time.Sleep(4 * time.Second)
	ask[*kmsg.DescribeGroupsResponse](r, "after 8 s without", 6, same(describeGroups(r.name("g"))))
	ask[*kmsg.HeartbeatResponse](r, "a beats too late", 4, func(s *side) kmsg.Request { return a.heartbeat(s, r.name("g"), 1) })
}

// topicOfGroupDeleted deletes a topic that offsets are committed for.
func topicOfGroupDeleted(r *Run) {
	r.topic(r.name("t"), 2)
	r.topic(r.name("u"), 2)
	for _, t := range []string{r.name("t"), r.name("u")} {
		ask[*kmsg.OffsetCommitResponse](r, "commit", 8, func(s *side) kmsg.Request { return commit(s, r.name("g"), nil, -1, t, 1) })
	}
	deletion := kmsg.NewPtrDeleteTopicsRequest()
	deletion.TimeoutMillis, deletion.TopicNames = 10_000, []string{r.name("t")}
	ask[*kmsg.DeleteTopicsResponse](r, "delete", 5, same(deletion))
	askSettled[*kmsg.OffsetFetchResponse](r, "its offsets", 7, same(offsetFetch(r.name("g"), r.name("t"))))
	askSettled[*kmsg.OffsetFetchResponse](r, "the other's", 7, same(offsetFetch(r.name("g"), r.name("u"))))
	r.topic(r.name("t"), 2)
	ask[*kmsg.OffsetFetchResponse](r, "those of its successor", 7, same(offsetFetch(r.name("g"), r.name("t"))))
}
