package group

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

func (h *harness) wantOffset(group, topic string, partition int32, offset int64) {
	h.t.Helper()
	p := h.fetch(group, topic, partition)
	if p.Offset != offset || p.ErrorCode != 0 {
		h.t.Fatalf("%s has %d committed for %s-%d (code %d), want %d", group, p.Offset, topic, partition, p.ErrorCode, offset)
	}
}

// V19: OffsetFetch echoes the leader epoch that was committed, -1 when none was; also after a restart.
func TestV19_LeaderEpochIsEchoed(t *testing.T) {
	h := newHarness(t)
	h.mustCommit(commit{generation: -1, partition: 0, offset: 7, epoch: 5, metadata: "m"})
	h.mustCommit(commit{generation: -1, partition: 1, offset: 8, epoch: -1})
	h.mustCommit(commit{generation: -1, partition: 2, offset: 9, epoch: 0})
	for range 2 {
		for partition, want := range []int32{5, -1, 0, -1} {
			p := h.fetch("g", topicA, int32(partition))
			if p.LeaderEpoch != want {
				t.Errorf("partition %d: leader epoch %d, want %d", partition, p.LeaderEpoch, want)
			}
		}
		if p := h.fetch("g", topicA, 0); *p.Metadata != "m" || p.Offset != 7 {
			t.Errorf("%+v", p)
		}
		if p := h.fetch("g", topicA, 3); *p.Metadata != "" || p.Offset != -1 || p.ErrorCode != 0 {
			t.Errorf("nothing committed: %+v", p)
		}
		h.reload()
	}
}

func TestCommit_Fencing(t *testing.T) {
	h := newHarness(t)
	_, err := h.commitOffset(commit{w: who{id: "x"}, generation: 1, version: 9})
	h.wantErr(err, kerr.GroupIDNotFound)
	_, err = h.commitOffset(commit{w: who{id: "x"}, generation: 1, version: 8})
	h.wantErr(err, kerr.IllegalGeneration)

	ms, generation := h.stable(who{client: "A"}, who{client: "B", instance: "b"})
	h.mustCommit(commit{w: ms[0], generation: generation, offset: 1})
	_, err = h.commitOffset(commit{w: ms[0], generation: generation - 1})
	h.wantErr(err, kerr.IllegalGeneration)
	_, err = h.commitOffset(commit{w: who{id: "x"}, generation: generation})
	h.wantErr(err, kerr.UnknownMemberID)
	_, err = h.commitOffset(commit{generation: -1}) // a simple consumer, while the group is in use
	h.wantErr(err, kerr.UnknownMemberID)
	_, err = h.commitOffset(commit{w: ms[0], generation: -1})
	h.wantErr(err, kerr.IllegalGeneration)
	_, err = h.commitOffset(commit{w: who{id: "x", instance: "b"}, generation: generation})
	h.wantErr(err, kerr.FencedInstanceID)

	// Members may commit what they have read while the group prepares, not while the leader assigns.
	join := h.join(who{old: true})
	h.mustCommit(commit{w: ms[0], generation: generation, offset: 2})
	h.join(ms[0])
	h.join(ms[1])
	h.wantState("g", "CompletingRebalance")
	_, err = h.commitOffset(commit{w: ms[0], generation: generation + 1})
	h.wantErr(err, kerr.RebalanceInProgress)
	h.wantCode(h.joined(join).ErrorCode, nil)
	h.wantOffset("g", topicA, 0, 2)
}

func TestCommit_KeepsTheSessionAlive(t *testing.T) {
	h := newHarness(t)
	ms, generation := h.stable(who{client: "A"})
	for range 3 {
		h.sleep(9000)
		h.mustCommit(commit{w: ms[0], generation: generation})
	}
	h.wantState("g", "Stable")
}

func TestCommit_MetadataSize(t *testing.T) {
	h := newHarness(t)
	h.cfg.OffsetMetadataMaxSize = 10
	for _, test := range []struct {
		metadata string
		want     *kerr.Error
	}{
		{strings.Repeat("x", 10), nil},
		{strings.Repeat("x", 11), kerr.OffsetMetadataTooLarge},
		{strings.Repeat("ä", 10), nil}, // 20 bytes, 10 UTF-16 units
		{strings.Repeat("😀", 5), nil},
		{strings.Repeat("😀", 6), kerr.OffsetMetadataTooLarge},
	} {
		code, err := h.commitOffset(commit{generation: -1, metadata: test.metadata})
		h.wantErr(err, nil)
		h.wantCode(code, test.want)
	}
}

func TestFetch_All(t *testing.T) {
	h := newHarness(t)
	h.mustCommit(commit{generation: -1, topic: topicB, partition: 1, offset: 4})
	h.mustCommit(commit{generation: -1, topic: topicA, partition: 2, offset: 3})
	h.mustCommit(commit{generation: -1, topic: topicA, partition: 0, offset: 2})
	resp := h.m.FetchOffsets(&kmsg.OffsetFetchRequestGroup{Group: "g"}, false)
	if len(resp.Topics) != 2 || resp.Topics[0].Topic != topicA || len(resp.Topics[0].Partitions) != 2 || resp.Topics[0].Partitions[0].Offset != 2 ||
		resp.Topics[1].Partitions[0].Offset != 4 {
		t.Errorf("%+v", resp)
	}
	if resp := h.m.FetchOffsets(&kmsg.OffsetFetchRequestGroup{Group: "none"}, false); resp.ErrorCode != 0 || len(resp.Topics) != 0 {
		t.Errorf("%+v", resp)
	}
}

func TestFetch_ByTopicID(t *testing.T) {
	h := newHarness(t)
	h.mustCommit(commit{generation: -1, offset: 3})
	if p := h.fetchOf("g", topicA, 0, idA, false); p.Offset != 3 {
		t.Errorf("%+v", p)
	}
	if p := h.fetchOf("g", topicA, 0, idB, false); p.Offset != -1 || p.ErrorCode != 0 {
		t.Errorf("a topic made anew inherits the offset: %+v", p)
	}
}

func TestFetch_RequireStable(t *testing.T) {
	h := newHarness(t)
	h.mustCommit(commit{generation: -1, offset: 3})
	producer := machine.Producer{ID: 9, Epoch: 1}
	pending := func(offset int64) {
		h.m.Replay(100+offset, producer, &offsetRecord{group: "g", topic: topicA, offset: &committedOffset{offset: offset, expiresAtMs: neverExpires}})
	}
	pending(10)
	if p := h.fetchOf("g", topicA, 0, idA, true); p.ErrorCode != kerr.UnstableOffsetCommit.Code || p.Offset != -1 {
		t.Errorf("%+v", p)
	}
	if p := h.fetchOf("g", topicA, 0, idA, false); p.Offset != 3 {
		t.Errorf("%+v", p)
	}
	h.m.ReplayEndTxn(producer, false)
	if p := h.fetchOf("g", topicA, 0, idA, true); p.Offset != 3 {
		t.Errorf("%+v", p)
	}
	pending(11)
	h.m.ReplayEndTxn(producer, true)
	if p := h.fetchOf("g", topicA, 0, idA, true); p.Offset != 11 {
		t.Errorf("%+v", p)
	}

	// A commit that came after that of the transaction wins, whenever the transaction ends.
	pending(12)
	h.m.Replay(1000, machine.NoProducer, &offsetRecord{group: "g", topic: topicA, offset: &committedOffset{offset: 13, expiresAtMs: neverExpires}})
	h.m.ReplayEndTxn(producer, true)
	if p := h.fetchOf("g", topicA, 0, idA, true); p.Offset != 13 {
		t.Errorf("%+v", p)
	}

	// A tombstone takes pending offsets with it.
	pending(14)
	h.m.Replay(1001, machine.NoProducer, &offsetRecord{group: "g", topic: topicA})
	h.m.ReplayEndTxn(producer, true)
	if p := h.fetchOf("g", topicA, 0, idA, true); p.Offset != -1 {
		t.Errorf("%+v", p)
	}
	if len(h.m.offsets.open) != 0 || len(h.m.offsets.pending) != 0 || h.m.offsets.count != 0 {
		t.Errorf("left over: %+v", h.m.offsets)
	}
}

// V22: deleting a group forgets it for good.
func TestV22_DeleteGroup(t *testing.T) {
	h := newHarness(t)
	ms, generation := h.stable(who{client: "A"})
	h.mustCommit(commit{w: ms[0], generation: generation, offset: 3})
	h.mustCommit(commit{w: ms[0], generation: generation, topic: topicB, offset: 4})
	h.wantCode(h.deleteGroup("g"), kerr.NonEmptyGroup)
	h.wantCode(h.deleteGroup("none"), kerr.GroupIDNotFound)
	h.leave(ms[0])
	h.wantState("g", "Empty")
	h.wantOffset("g", topicA, 0, 3)
	h.wantCode(h.deleteGroup("g"), nil)
	for range 2 {
		h.wantState("g", "Dead")
		h.wantOffset("g", topicA, 0, -1)
		if list := h.m.ListGroups(nil, nil); len(list) != 0 {
			t.Errorf("listed: %+v", list)
		}
		h.wantCode(h.deleteGroup("g"), kerr.GroupIDNotFound)
		h.reload()
	}

	// A group that joined but never committed, and one of which only an id was handed out.
	h.newID(who{group: "joined"})
	h.wantCode(h.deleteGroup("joined"), nil)
	h.sleep(60_000)
	h.wantState("joined", "Dead")
}

// V22: offsets of a topic that a member reads are not deleted, others are.
func TestV22_DeleteOffsets(t *testing.T) {
	h := newHarness(t)
	_, err := h.deleteOffset("none", topicA, 0)
	h.wantErr(err, kerr.GroupIDNotFound)
	ms, generation := h.stable(who{client: "A", topics: []string{topicA}})
	h.mustCommit(commit{w: ms[0], generation: generation, offset: 3})
	h.mustCommit(commit{w: ms[0], generation: generation, topic: topicB, offset: 4})
	for topic, want := range map[string]*kerr.Error{topicA: kerr.GroupSubscribedToTopic, topicB: nil} {
		code, err := h.deleteOffset("g", topic, 0)
		h.wantErr(err, nil)
		h.wantCode(code, want)
	}
	h.wantOffset("g", topicA, 0, 3)
	h.wantOffset("g", topicB, 0, -1)
	code, err := h.deleteOffset("g", topicB, 9)
	h.wantErr(err, nil)
	h.wantCode(code, nil)
	h.leave(ms[0])
	code, _ = h.deleteOffset("g", topicA, 0)
	h.wantCode(code, nil)
	h.reload()
	h.wantOffset("g", topicA, 0, -1)

	// What members of other types read is not known.
	h.stable(who{group: "c", kind: "connect"})
	_, err = h.deleteOffset("c", topicA, 0)
	h.wantErr(err, kerr.NonEmptyGroup)
}

// V22: after a topic is deleted its commits are gone; those of a namesake that was made meanwhile stay.
func TestV22_DeleteTopic(t *testing.T) {
	h := newHarness(t)
	h.mustCommit(commit{generation: -1, offset: 3})
	h.mustCommit(commit{generation: -1, topic: topicB, offset: 4})
	h.mustCommit(commit{w: who{group: "h"}, generation: -1, offset: 5})
	h.apply(h.m.TopicsDeleted(h.nowMs, []DeletedTopic{{Name: topicA, ID: idA}, {Name: topicB, ID: [16]byte{1}}}))
	for range 2 {
		h.wantOffset("g", topicA, 0, -1)
		h.wantOffset("h", topicA, 0, -1)
		h.wantOffset("g", topicB, 0, 4)
		h.reload()
	}
}

const day = 24 * 3600_000

func TestExpire(t *testing.T) {
	t.Run("of a group that was never joined, by offset", func(t *testing.T) {
		h := newHarness(t)
		h.mustCommit(commit{generation: -1, partition: 0})
		h.sleep(day)
		h.mustCommit(commit{generation: -1, partition: 1})
		h.sleep(6*day + 600_000)
		h.wantOffset("g", topicA, 0, -1)
		h.wantOffset("g", topicA, 1, 0)
		h.sleep(day)
		h.wantState("g", "Dead")
	})
	t.Run("of an empty group, from when the last member left", func(t *testing.T) {
		h := newHarness(t)
		ms, generation := h.stable(who{})
		h.mustCommit(commit{w: ms[0], generation: generation})
		for range 10 * day / 9000 {
			h.nowMs += 9000
			e, _ := h.m.Heartbeat(h.nowMs, &kmsg.HeartbeatRequest{Group: "g", MemberID: ms[0].id, Generation: generation})
			_ = e
		}
		h.leave(ms[0])
		h.sleep(7*day - 1)
		h.wantOffset("g", topicA, 0, 0)
		h.sleep(600_001)
		h.wantState("g", "Dead")
		h.reload()
		h.wantState("g", "Dead")
	})
	t.Run("of a group in use, only of topics that nobody reads", func(t *testing.T) {
		h := newHarness(t)
		h.cfg.OffsetsRetentionMs = 1000
		ms, generation := h.stable(who{sessionMs: 3600_000})
		h.mustCommit(commit{w: ms[0], generation: generation})
		h.mustCommit(commit{w: ms[0], generation: generation, topic: topicB})
		h.sleep(600_000)
		h.wantOffset("g", topicA, 0, 0)
		h.wantOffset("g", topicB, 0, -1)
		h.wantState("g", "Stable")
	})
	t.Run("not while the group rebalances", func(t *testing.T) {
		h := newHarness(t)
		h.cfg.OffsetsRetentionMs = 1000
		ms, generation := h.stable(who{sessionMs: 3600_000, timeoutMs: 3600_000}, who{sessionMs: 3600_000, timeoutMs: 3600_000})
		h.mustCommit(commit{w: ms[0], generation: generation, topic: topicB})
		h.join(ms[0])
		h.sleep(600_000)
		h.wantOffset("g", topicB, 0, 0)
	})
	t.Run("not of members whose metadata cannot be read", func(t *testing.T) {
		h := newHarness(t)
		h.cfg.OffsetsRetentionMs = 1000
		ms, generation := h.stable(who{sessionMs: 3600_000, kind: "connect"})
		h.mustCommit(commit{w: ms[0], generation: generation, topic: topicB})
		h.sleep(600_000)
		h.wantOffset("g", topicB, 0, 0)
	})
	t.Run("by their own time", func(t *testing.T) {
		h := newHarness(t)
		h.mustCommit(commit{generation: -1, partition: 0, retention: 1000, version: 4})
		h.mustCommit(commit{generation: -1, partition: 1, retention: 1 << 62, version: 4})
		h.mustCommit(commit{generation: -1, partition: 2, retention: -5, version: 4})
		h.sleep(600_000)
		h.wantOffset("g", topicA, 0, -1)
		h.wantOffset("g", topicA, 1, 0)
		h.wantOffset("g", topicA, 2, -1)
	})
	t.Run("and groups of which nothing is left", func(t *testing.T) {
		h := newHarness(t)
		h.newID(who{})
		h.wantState("g", "Empty")
		h.sleep(600_000)
		h.wantState("g", "Dead")
		h.reload()
		h.wantState("g", "Dead")
	})
}
