package api

import (
	"context"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/protocol/logrecord"
	"sluice/replication/metadata"
)

// newGroupScript has the topics of a script and a connection.
func newGroupScript(t *testing.T, w *groupsWorld) (*groupScript, *scriptClient) {
	t.Helper()
	s := &groupScript{t: t, address: w.serve(), prefix: "p"}
	c := s.dial("client")
	s.prepare(c)
	s.findCoordinators(c)
	return s, c
}

func (s *groupScript) fetched(c *scriptClient, version int16, group, topic string, partition int32) (offset int64, epoch int32) {
	s.t.Helper()
	r := c.send(s.fetch(version, group, topic))().(*kmsg.OffsetFetchResponse)
	if version < firstFetchManyGroups {
		p := r.Topics[0].Partitions[partition]
		return p.Offset, p.LeaderEpoch
	}
	p := r.Groups[0].Topics[0].Partitions[partition]
	return p.Offset, p.LeaderEpoch
}

func (s *groupScript) mustCommit(c *scriptClient, request *kmsg.OffsetCommitRequest) {
	s.t.Helper()
	for _, t := range c.send(request)().(*kmsg.OffsetCommitResponse).Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				s.t.Fatalf("commit: %v", kerr.ErrorForCode(p.ErrorCode))
			}
		}
	}
}

// V19: the leader epoch of a commit is echoed, also after a restart.
func TestV19_CommittedLeaderEpoch(t *testing.T) {
	w := newGroupsWorld(t, nil)
	s, c := newGroupScript(t, w)
	s.mustCommit(c, s.commit(8, "g", "", -1, s.topic(), 0, 42))
	none := s.commit(8, "g", "", -1, s.topic(), 1, 43)
	none.Topics[0].Partitions[0].LeaderEpoch = -1
	s.mustCommit(c, none)
	for range 2 {
		for _, version := range []int16{5, 8, 10} {
			for partition, want := range []struct {
				offset int64
				epoch  int32
			}{{42, 3}, {43, -1}} {
				if offset, epoch := s.fetched(c, version, "g", s.topic(), int32(partition)); offset != want.offset || epoch != want.epoch {
					t.Errorf("version %d, partition %d: offset %d epoch %d, want %d and %d", version, partition, offset, epoch, want.offset, want.epoch)
				}
			}
		}
		w.restart()
	}
}

// V22: a topic that is made anew does not inherit commits, in no version of OffsetFetch, before and after a restart.
func TestV22_TopicMadeAnewHasNoCommits(t *testing.T) {
	w := newGroupsWorld(t, nil)
	s, c := newGroupScript(t, w)
	s.mustCommit(c, s.commit(8, "g", "", -1, s.topic(), 0, 42))
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.Version, remove.TimeoutMillis, remove.TopicNames = 4, 10_000, []string{s.topic(), s.other()}
	if r := c.send(remove)().(*kmsg.DeleteTopicsResponse); r.Topics[0].ErrorCode != 0 {
		t.Fatalf("%+v", r)
	}
	s.prepare(c)
	for range 2 {
		for version := int16(1); version <= 10; version++ {
			if offset, _ := s.fetched(c, version, "g", s.topic(), 0); offset != -1 {
				t.Errorf("version %d: offset %d, want -1", version, offset)
			}
		}
		w.restart()
	}
}

// The commit of a topic that was deleted while nobody could clean up is not given out for its namesake.
func TestOffsetFetch_StaleCommit(t *testing.T) {
	w := newGroupsWorld(t, nil)
	s, c := newGroupScript(t, w)
	s.mustCommit(c, s.commit(8, "g", "", -1, s.topic(), 0, 42))
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.TopicNames = []string{s.topic(), s.other()}
	if _, err := w.Controller.Do(context.Background(), metadata.DeleteTopics(remove)); err != nil { // behind the coordinator's back
		t.Fatal(err)
	}
	s.prepare(c)
	for version := int16(1); version <= 10; version++ {
		if offset, _ := s.fetched(c, version, "g", s.topic(), 0); offset != -1 {
			t.Errorf("version %d: offset %d, want -1", version, offset)
		}
	}
}

// V20 (f): in a version of JoinGroup that has no rebalance timeout the session timeout is taken.
func TestV20f_NoRebalanceTimeout(t *testing.T) {
	w := newGroupsWorld(t, nil)
	s, c := newGroupScript(t, w)
	r := c.send(s.join(0, "", nil, "range"))().(*kmsg.JoinGroupResponse)
	if r.ErrorCode != 0 {
		t.Fatalf("%+v", r)
	}
	c.send(s.sync(0, r.MemberID, r.Generation, r.MemberID))()
	found := false
	log := w.log(group.Partition(s.group(), 50))
	b, err := log.Read(log.LogEndOffset()-1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for rec := range splitRecords(t, b) {
		v, err := logrecord.ParseGroupMetadataValue(rec.Value)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range v.Members {
			found = true
			if m.RebalanceTimeoutMillis != 20_000 || m.SessionTimeoutMillis != 20_000 {
				t.Errorf("timeouts %d and %d, want 20000 both", m.RebalanceTimeoutMillis, m.SessionTimeoutMillis)
			}
		}
	}
	if !found {
		t.Error("no member in the log")
	}
}

// The first FindCoordinator, and all that come at the same time, make the topic and are answered when it serves.
func TestFindCoordinator_FirstOnesMakeTheTopic(t *testing.T) {
	w := newGroupsWorld(t, map[string]string{"offsets.topic.num.partitions": "7"})
	address := w.serve()
	var all sync.WaitGroup
	for range 8 {
		s := &groupScript{t: t, address: address}
		c := s.dial("client")
		all.Go(func() {
			r := kmsg.NewPtrFindCoordinatorRequest()
			r.Version, r.CoordinatorKey = 3, "g"
			if found := c.send(r)().(*kmsg.FindCoordinatorResponse); found.ErrorCode != 0 || found.NodeID != 1 || found.Host != "localhost" || found.Port != 9092 {
				t.Errorf("%+v", found)
			}
			if offset, _ := s.fetched(c, 8, "g", "none", 0); offset != -1 {
				t.Errorf("offset %d", offset)
			}
		})
	}
	all.Wait()
	topic, _ := w.Image().Topic(group.Topic)
	if len(topic.Partitions) != 7 {
		t.Errorf("%d partitions, want 7", len(topic.Partitions))
	}
	configs := w.Image().Configs(metadata.ConfigResource{Type: metadata.TopicResource, Name: group.Topic})
	if configs["cleanup.policy"] != "compact" || configs["compression.type"] != "producer" || configs["segment.bytes"] != "104857600" || len(configs) != 3 {
		t.Errorf("configs %v", configs)
	}
}

func TestFindCoordinator_TopicCannotBeMade(t *testing.T) {
	w := newGroupsWorld(t, map[string]string{"offsets.topic.replication.factor": "3"})
	s := &groupScript{t: t, address: w.serve()}
	r := kmsg.NewPtrFindCoordinatorRequest()
	r.Version, r.CoordinatorKeys = 4, []string{"g"}
	found := s.dial("client").send(r)().(*kmsg.FindCoordinatorResponse).Coordinators[0]
	if found.ErrorCode != kerr.CoordinatorNotAvailable.Code || found.NodeID != -1 {
		t.Errorf("%+v", found)
	}
}

// Without a coordinator each API says so in its way.
func TestGroups_NotCoordinator(t *testing.T) {
	w := newGroupsWorld(t, nil)
	s, c := newGroupScript(t, w)
	for i := range w.runtime.Partitions() {
		w.runtime.Unload(int32(i), 1)
	}
	want := kerr.NotCoordinator.Code
	check := func(name string, code int16) {
		t.Helper()
		if code != want {
			t.Errorf("%s: code %d, want %d", name, code, want)
		}
	}
	check("JoinGroup", c.send(s.join(9, "", nil, "range"))().(*kmsg.JoinGroupResponse).ErrorCode)
	check("SyncGroup", c.send(s.sync(5, "x", 1))().(*kmsg.SyncGroupResponse).ErrorCode)
	check("Heartbeat", c.send(heartbeatOf(4, "g", "x", 1, nil))().(*kmsg.HeartbeatResponse).ErrorCode)
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Version, leave.Group = 5, "g"
	check("LeaveGroup", c.send(leave)().(*kmsg.LeaveGroupResponse).ErrorCode)
	commit := s.commit(8, "g", "", -1, s.topic(), 0, 1)
	commit.Topics[0].Partitions = append(commit.Topics[0].Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: 9})
	committed := c.send(commit)().(*kmsg.OffsetCommitResponse).Topics[0].Partitions
	check("OffsetCommit", committed[0].ErrorCode)
	if committed[1].ErrorCode != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("OffsetCommit, a partition that does not exist: code %d", committed[1].ErrorCode)
	}
	check("OffsetFetch 1", c.send(s.fetch(1, "g", s.topic()))().(*kmsg.OffsetFetchResponse).Topics[0].Partitions[0].ErrorCode)
	check("OffsetFetch 7", c.send(s.fetch(7, "g", s.topic()))().(*kmsg.OffsetFetchResponse).ErrorCode)
	check("OffsetFetch 8", c.send(s.fetch(8, "g", s.topic()))().(*kmsg.OffsetFetchResponse).Groups[0].ErrorCode)
	check("DescribeGroups", c.send(describeOf(5, "g"))().(*kmsg.DescribeGroupsResponse).Groups[0].ErrorCode)
	check("DeleteGroups", c.send(deleteOf(2, "g"))().(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode)
	check("OffsetDelete", c.send(&kmsg.OffsetDeleteRequest{Group: "g"})().(*kmsg.OffsetDeleteResponse).ErrorCode)
	if list := c.send(kmsg.NewPtrListGroupsRequest())().(*kmsg.ListGroupsResponse); list.ErrorCode != 0 || len(list.Groups) != 0 {
		t.Errorf("ListGroups: %+v", list)
	}
}

// While partitions are being loaded heartbeats succeed, so that members keep their place; all else has to wait.
func TestGroups_LoadInProgress(t *testing.T) {
	w := newGroupsWorld(t, nil)
	s, c := newGroupScript(t, w)
	s.mustCommit(c, s.commit(8, "g", "", -1, s.topic(), 0, 1))
	w.runtime.Close()
	log := w.log(group.Partition("g", 50))
	log.reading = make(chan struct{})
	w.start()
	if r := c.send(heartbeatOf(4, "g", "x", 1, nil))().(*kmsg.HeartbeatResponse); r.ErrorCode != 0 {
		t.Errorf("Heartbeat: %+v", r)
	}
	if r := c.send(s.fetch(8, "g", s.topic()))().(*kmsg.OffsetFetchResponse); r.Groups[0].ErrorCode != kerr.CoordinatorLoadInProgress.Code {
		t.Errorf("OffsetFetch: %+v", r)
	}
	if r := c.send(kmsg.NewPtrListGroupsRequest())().(*kmsg.ListGroupsResponse); r.ErrorCode != kerr.CoordinatorLoadInProgress.Code {
		t.Errorf("ListGroups: %+v", r)
	}
	close(log.reading)
	w.awaitLoaded()
	if offset, _ := s.fetched(c, 8, "g", s.topic(), 0); offset != 1 {
		t.Errorf("offset %d, want 1", offset)
	}
}
