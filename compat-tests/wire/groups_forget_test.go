package wire

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

// commitRequest commits an offset of partition 0 for a group without members. Its topic has a name and an id: each version sends one of them.
func commitRequest(group, topic string, id [16]byte, offset int64, leaderEpoch int32) *kmsg.OffsetCommitRequest {
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset, p.LeaderEpoch, p.Metadata = offset, leaderEpoch, kmsg.StringPtr("note")
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, TopicID: id, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	return req
}

func mustCommit(t *testing.T, c *sluicetest.Raw, version int16, req *kmsg.OffsetCommitRequest) {
	t.Helper()
	resp := sluicetest.Ask[*kmsg.OffsetCommitResponse](c, req, version)
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != none {
		t.Fatalf("OffsetCommit v%d: error %d", version, code)
	}
}

// committed is what a group has committed for partition 0 of a topic.
type committed struct {
	offset      int64
	leaderEpoch int32 // -1 before version 5
	code        int16
}

func fetchCommitted(c *sluicetest.Raw, version int16, group, topic string, id [16]byte) committed {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	one := kmsg.NewOffsetFetchRequestGroup()
	one.Group = group
	one.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, TopicID: id, Partitions: []int32{0}}}
	req.Groups = append(req.Groups, one)
	resp := sluicetest.Ask[*kmsg.OffsetFetchResponse](c, req, version)
	if version >= 8 {
		if g := resp.Groups[0]; g.ErrorCode != none {
			return committed{-1, -1, g.ErrorCode}
		}
		p := resp.Groups[0].Topics[0].Partitions[0]
		return committed{p.Offset, p.LeaderEpoch, p.ErrorCode}
	}
	p := resp.Topics[0].Partitions[0]
	return committed{p.Offset, p.LeaderEpoch, p.ErrorCode}
}

// TestV19_CommittedLeaderEpochs: a commit's leader epoch comes back as it was, and -1 where none was given.
func TestV19_CommittedLeaderEpochs(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	topic := fresh("v19")
	id := createTopic(t, c, topic, 1)
	commitEpochs(t, c, topic, id)()
}

// TestV19_CommittedLeaderEpochsOverARestart: so it is after the broker has read them back from its log.
func TestV19_CommittedLeaderEpochsOverARestart(t *testing.T) {
	p := own(t)
	c := sluicetest.Dial(t, p.Address)
	topic := fresh("v19")
	id := createTopic(t, c, topic, 1)
	check := commitEpochs(t, c, topic, id)
	for _, restart := range []func(){p.Restart, func() { p.Kill(); p.Launch(); p.WaitReady() }} {
		restart()
		*c = *sluicetest.Dial(t, p.Address)
		check()
	}
}

// commitEpochs commits in every version, with and without an epoch, and returns a check of what is then there.
func commitEpochs(t *testing.T, c *sluicetest.Raw, topic string, id [16]byte) (check func()) {
	t.Helper()
	const epoch = 0
	want := map[string]committed{}
	for version := int16(2); version <= 10; version++ {
		for _, given := range []int32{epoch, -1} {
			group := fresh("v19")
			waitForCoordinator(t, c, group)
			mustCommit(t, c, version, commitRequest(group, topic, id, int64(version), given))
			if version < 6 {
				given = -1 // the version has no such field
			}
			want[group] = committed{int64(version), given, none}
		}
	}
	return func() {
		t.Helper()
		for group, committed := range want {
			waitForCoordinator(t, c, group)
			for version := int16(1); version <= 10; version++ {
				want := committed
				if version < 5 {
					want.leaderEpoch = -1
				}
				if got := fetchCommitted(c, version, group, topic, id); got != want {
					t.Errorf("OffsetFetch v%d: %+v, want %+v", version, got, want)
				}
			}
		}
	}
}

func deleteGroups(c *sluicetest.Raw, version int16, groups ...string) map[string]int16 {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = groups
	codes := map[string]int16{}
	for _, g := range sluicetest.Ask[*kmsg.DeleteGroupsResponse](c, req, version).Groups {
		codes[g.Group] = g.ErrorCode
	}
	return codes
}

func groupListed(c *sluicetest.Raw, group string) bool {
	for _, g := range sluicetest.Ask[*kmsg.ListGroupsResponse](c, kmsg.NewPtrListGroupsRequest(), 5).Groups {
		if g.Group == group {
			return true
		}
	}
	return false
}

// TestV22_DeletingGroupsForgets: a group without members goes with its offsets; one with members, and one that is not there, are refused.
func TestV22_DeletingGroupsForgets(t *testing.T) {
	address := broker(t)
	c := sluicetest.Dial(t, address)
	topic := fresh("v22")
	id := createTopic(t, c, topic, 1)
	for _, version := range []int16{0, 2, 3} {
		offsetsOnly, joined, active, unknown := fresh("v22-offsets"), fresh("v22-joined"), fresh("v22-active"), fresh("v22-unknown")
		for _, group := range []string{offsetsOnly, joined, active, unknown} {
			waitForCoordinator(t, c, group)
		}
		mustCommit(t, c, 9, commitRequest(offsetsOnly, topic, id, 7, 0))
		m := memberOf(t, address, joined, lastGroupVersions) // joins, never commits
		form(t, m)
		if code := m.leave(); code != none {
			t.Fatalf("leave: error %d", code)
		}
		still := memberOf(t, address, active, lastGroupVersions)
		form(t, still)

		codes := deleteGroups(c, version, offsetsOnly, joined, active, unknown)
		for group, want := range map[string]int16{offsetsOnly: none, joined: none, active: nonEmptyGroup, unknown: groupIDNotFound} {
			if code, ok := codes[group]; !ok || code != want {
				t.Errorf("v%d: deleting %s: error %d, want %d", version, group, code, want)
			}
		}
		if got := fetchCommitted(c, 9, offsetsOnly, topic, id); got != (committed{-1, -1, none}) {
			t.Errorf("a deleted group has %+v", got)
		}
		for group, want := range map[string]bool{offsetsOnly: false, joined: false, active: true, unknown: false} {
			if groupListed(c, group) != want {
				t.Errorf("group %s is listed: %v", group, !want)
			}
		}
		if code := still.heartbeat(); code != none {
			t.Errorf("the refused deletion disturbed the group: error %d", code)
		}
	}
}

// TestV22_OffsetDelete: offsets of a topic that the group reads stay, others go.
func TestV22_OffsetDelete(t *testing.T) {
	address := broker(t)
	c := sluicetest.Dial(t, address)
	read, other := fresh("v22-read"), fresh("v22-other")
	ids := map[string][16]byte{read: createTopic(t, c, read, 1), other: createTopic(t, c, other, 1)}
	m := memberOf(t, address, fresh("v22"), lastGroupVersions)
	m.subscribed = []string{read}
	form(t, m)
	for topic := range ids {
		if code := m.commit(topic, 3); code != none {
			t.Fatalf("commit: error %d", code)
		}
	}
	remove := func(group, topic string) (code, partitionCode int16) {
		p := kmsg.NewOffsetDeleteRequestTopicPartition()
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = group
		req.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{p}}}
		resp := sluicetest.Ask[*kmsg.OffsetDeleteResponse](c, req, 0)
		if resp.ErrorCode != none {
			return resp.ErrorCode, none
		}
		return none, resp.Topics[0].Partitions[0].ErrorCode
	}
	for _, test := range []struct {
		group, topic        string
		code, partitionCode int16
	}{
		{m.group, read, none, groupSubscribedToTopic},
		{m.group, other, none, none},
		{m.group, fresh("v22-nowhere"), none, unknownTopicOrPartition},
		{fresh("v22-nobody"), read, groupIDNotFound, none},
	} {
		if code, partitionCode := remove(test.group, test.topic); code != test.code || partitionCode != test.partitionCode {
			t.Errorf("OffsetDelete of %s for %s: errors %d and %d, want %d and %d", test.topic, test.group, code, partitionCode, test.code, test.partitionCode)
		}
	}
	if got := fetchCommitted(c, 9, m.group, read, ids[read]); got.offset != 3 {
		t.Errorf("the topic that is read: %+v", got)
	}
	if got := fetchCommitted(c, 9, m.group, other, ids[other]); got != (committed{-1, -1, none}) {
		t.Errorf("the deleted offset: %+v", got)
	}
	if code := m.leave(); code != none {
		t.Fatalf("leave: error %d", code)
	}
	if code, partitionCode := remove(m.group, read); code != none || partitionCode != none {
		t.Errorf("OffsetDelete once nobody reads: errors %d and %d", code, partitionCode)
	}
}

func deleteTopic(t *testing.T, c *sluicetest.Raw, topic string) {
	t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 10_000
	req.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &topic}}
	if code := sluicetest.Ask[*kmsg.DeleteTopicsResponse](c, req, 6).Topics[0].ErrorCode; code != none {
		t.Fatalf("delete %s: error %d", topic, code)
	}
	sluicetest.Until(t, 10*time.Second, "the topic is gone", func() bool { return metadata(c, 12, false, topic).Topics[0].ErrorCode == unknownTopicOrPartition })
}

// TestV22_DeletingATopicForgetsItsCommits: one of the same name begins without.
func TestV22_DeletingATopicForgetsItsCommits(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	topic, kept, group := fresh("v22"), fresh("v22-kept"), fresh("v22")
	id, keptID := createTopic(t, c, topic, 1), createTopic(t, c, kept, 1)
	waitForCoordinator(t, c, group)
	mustCommit(t, c, 9, commitRequest(group, topic, id, 7, 0))
	mustCommit(t, c, 9, commitRequest(group, kept, keptID, 8, 0))
	deleteTopic(t, c, topic)
	recreated := createTopic(t, c, topic, 1)
	if recreated == id {
		t.Error("the topic has the id of the one before")
	}
	for _, version := range []int16{1, 7, 9, 10} {
		sluicetest.Until(t, 10*time.Second, "the commit is forgotten", func() bool {
			return fetchCommitted(c, version, group, topic, recreated) == committed{-1, -1, none}
		})
		if got := fetchCommitted(c, version, group, kept, keptID); got.offset != 8 || got.code != none {
			t.Errorf("v%d: the other topic's commit: %+v", version, got)
		}
	}
}

// TestV22_WhatIsForgottenStaysSo over a restart, after SIGTERM and after kill -9.
func TestV22_WhatIsForgottenStaysSo(t *testing.T) {
	for name, end := range map[string]func(*sluicetest.Process){"SIGTERM": (*sluicetest.Process).Stop, "kill -9": (*sluicetest.Process).Kill} {
		t.Run(name, func(t *testing.T) {
			p := own(t)
			c := sluicetest.Dial(t, p.Address)
			topic, gone := fresh("v22"), fresh("v22-gone")
			id, goneID := createTopic(t, c, topic, 1), createTopic(t, c, gone, 1)
			deleted, joined, kept := fresh("v22-deleted"), fresh("v22-joined"), fresh("v22-kept")
			for _, group := range []string{deleted, kept} {
				waitForCoordinator(t, c, group)
				mustCommit(t, c, 9, commitRequest(group, topic, id, 7, 0))
			}
			mustCommit(t, c, 9, commitRequest(kept, gone, goneID, 9, 0))
			m := memberOf(t, p.Address, joined, lastGroupVersions)
			form(t, m)
			if code := m.leave(); code != none {
				t.Fatalf("leave: error %d", code)
			}
			for group, code := range deleteGroups(c, 2, deleted, joined) {
				if code != none {
					t.Fatalf("deleting %s: error %d", group, code)
				}
			}
			deleteTopic(t, c, gone)

			end(p)
			p.Launch()
			p.WaitReady()
			c = sluicetest.Dial(t, p.Address)
			for group, want := range map[string]bool{deleted: false, joined: false, kept: true} {
				waitForCoordinator(t, c, group)
				if groupListed(c, group) != want {
					t.Errorf("after the restart group %s is listed: %v", group, !want)
				}
			}
			if got := fetchCommitted(c, 9, deleted, topic, id); got != (committed{-1, -1, none}) {
				t.Errorf("after the restart the deleted group has %+v", got)
			}
			if got := fetchCommitted(c, 9, kept, topic, id); got != (committed{7, 0, none}) {
				t.Errorf("after the restart the other group has %+v", got)
			}
			recreated := createTopic(t, c, gone, 1)
			if got := fetchCommitted(c, 9, kept, gone, recreated); got != (committed{-1, -1, none}) {
				t.Errorf("after the restart the recreated topic has %+v", got)
			}
		})
	}
}
