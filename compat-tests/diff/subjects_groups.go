package diff

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The bounds of the APIs of the group coordinator.

var alone = member{name: "alone"}

// stableGroup makes the group "g" with the member alone in generation 1.
func stableGroup(r *Run) {
	r.topic(r.name("t"), 2)
	r.joinAlone(r.name("g"), alone)
}

func generationOf(s *side) int32 { return get[int32](s, "alone generation") }

var groupSubjects = []subject{
	{
		key:     kmsg.OffsetCommit,
		prepare: stableGroup,
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			return commit(s, r.name("g"), &alone, generationOf(s), r.name("t"), int64(n))
		},
		after: func(r *Run, step string, version int16, n int) {
			ask[*kmsg.OffsetFetchResponse](r, step+", then fetched", 7, same(offsetFetch(r.name("g"), r.name("t"))))
		},
	},
	{
		key: kmsg.OffsetFetch,
		prepare: func(r *Run) {
			stableGroup(r)
			ask[*kmsg.OffsetCommitResponse](r, "commit", 8, func(s *side) kmsg.Request {
				return commit(s, r.name("g"), &alone, generationOf(s), r.name("t"), 42)
			})
		},
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := offsetFetch(r.name("g"), r.name("t"))
			req.Groups[0].Topics[0].TopicID = idOf(s, r.name("t"))
			return req
		},
	},
	{
		key: kmsg.FindCoordinator,
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorKey, req.CoordinatorKeys = r.name("g"), []string{r.name("g"), r.name("h")}
			return req
		},
		skip: map[string]string{
			"CoordinatorType = 2": "the share coordinator: pending.md",
		},
	},
	{
		key: kmsg.JoinGroup,
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := alone.join(s, r.name(fmt.Sprintf("g%d", n)), "range", "roundrobin")
			req.MemberID, req.InstanceID = "", nil
			req.Reason = pointer("because")
			if version >= 5 {
				req.InstanceID = pointer("instance")
			}
			return req
		},
		after: func(r *Run, step string, version int16, n int) {
			if strings.HasPrefix(step, "RebalanceTimeoutMillis = ") {
				return // the member has that long to sync: a moment later it may be gone
			}
			if resp, ok := r.last[0].response.(*kmsg.JoinGroupResponse); !ok || resp.ErrorCode != 0 {
				return // Apache Kafka tells of a group that nothing was written about only when something else was written
			}
			ask[*kmsg.DescribeGroupsResponse](r, step+", then described", 5, same(describeGroups(r.name(fmt.Sprintf("g%d", n)))))
		},
	},
	{
		key:     kmsg.SyncGroup,
		prepare: stableGroup,
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			return alone.sync(s, r.name("g"), generationOf(s), alone)
		},
	},
	{
		key:     kmsg.Heartbeat,
		prepare: stableGroup,
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			return alone.heartbeat(s, r.name("g"), generationOf(s))
		},
	},
	{
		key:  kmsg.LeaveGroup,
		each: func(r *Run, version int16, n int) { r.joinAlone(r.name(fmt.Sprintf("g%d", n)), leaver(n)) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrLeaveGroupRequest()
			req.Group, req.MemberID = r.name(fmt.Sprintf("g%d", n)), leaver(n).id(s)
			m := kmsg.NewLeaveGroupRequestMember()
			m.MemberID, m.Reason = leaver(n).id(s), pointer("because")
			req.Members = append(req.Members, m)
			return req
		},
		after: func(r *Run, step string, version int16, n int) {
			ask[*kmsg.DescribeGroupsResponse](r, step+", then described", 5, same(describeGroups(r.name(fmt.Sprintf("g%d", n)))))
		},
	},
	{
		key:     kmsg.DescribeGroups,
		prepare: stableGroup,
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := describeGroups(r.name("g"))
			req.IncludeAuthorizedOperations = true
			return req
		},
	},
	{
		key:     kmsg.ListGroups,
		prepare: stableGroup,
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrListGroupsRequest()
			req.StatesFilter, req.TypesFilter = []string{"Stable"}, []string{"classic"}
			return req
		},
		after: func(r *Run, step string, version int16, n int) {
			if n != 1 {
				return
			}
			for _, filter := range []string{"stable", "STABLE", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Unknown", "NotReady"} {
				req := kmsg.NewPtrListGroupsRequest()
				req.StatesFilter = []string{filter}
				ask[*kmsg.ListGroupsResponse](r, "state "+filter, version, same(req))
			}
			for _, filter := range []string{"Classic", "CLASSIC", "consumer", "share", "streams", "unknown"} {
				req := kmsg.NewPtrListGroupsRequest()
				req.TypesFilter = []string{filter}
				ask[*kmsg.ListGroupsResponse](r, "type "+filter, version, same(req))
			}
		},
	},
	{
		key: kmsg.DeleteGroups,
		each: func(r *Run, version int16, n int) {
			ask[*kmsg.OffsetCommitResponse](r, "commit", 8, func(s *side) kmsg.Request {
				return commit(s, r.name(fmt.Sprintf("g%d", n)), nil, -1, r.name("t"), 1)
			})
		},
		prepare: func(r *Run) { r.topic(r.name("t"), 1) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrDeleteGroupsRequest()
			req.Groups = []string{r.name(fmt.Sprintf("g%d", n))}
			return req
		},
	},
	{
		key:     kmsg.OffsetDelete,
		prepare: func(r *Run) { r.topic(r.name("t"), 2) },
		each: func(r *Run, version int16, n int) {
			ask[*kmsg.OffsetCommitResponse](r, "commit", 8, func(s *side) kmsg.Request {
				return commit(s, r.name("g"), nil, -1, r.name("t"), 1)
			})
		},
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrOffsetDeleteRequest()
			req.Group = r.name("g")
			t := kmsg.NewOffsetDeleteRequestTopic()
			t.Topic = r.name("t")
			t.Partitions = append(t.Partitions, kmsg.NewOffsetDeleteRequestTopicPartition())
			req.Topics = append(req.Topics, t)
			return req
		},
		after: func(r *Run, step string, version int16, n int) {
			ask[*kmsg.OffsetFetchResponse](r, step+", then fetched", 7, same(offsetFetch(r.name("g"), r.name("t"))))
		},
	},
}

// leaver is a member that leaves: another one for each request.
func leaver(n int) member { return member{name: fmt.Sprintf("leaver %d", n)} }

// offsetFetch asks for the offsets of partitions 0 and 1 of a topic, in the fields of old versions and of new ones.
func offsetFetch(group, topic string) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	t := kmsg.NewOffsetFetchRequestTopic()
	t.Topic, t.Partitions = topic, []int32{0, 1}
	req.Topics = append(req.Topics, t)
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.MemberEpoch = group, -1
	gt := kmsg.NewOffsetFetchRequestGroupTopic()
	gt.Topic, gt.Partitions = topic, []int32{0, 1}
	g.Topics = append(g.Topics, gt)
	req.Groups = append(req.Groups, g)
	return req
}

func describeGroups(groups ...string) *kmsg.DescribeGroupsRequest {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = groups
	return req
}
