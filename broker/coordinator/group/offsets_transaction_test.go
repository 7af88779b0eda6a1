package group

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

var txnProducer = machine.Producer{ID: 7, Epoch: 3}

// commitInTxn is commitOffset within a transaction of txnProducer.
func (h *harness) commitInTxn(c commit) (code int16, err error) {
	h.t.Helper()
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version = or(c.version, 5)
	req.Group, req.MemberID, req.Generation = or(c.w.group, "g"), c.w.id, c.generation
	req.ProducerID, req.ProducerEpoch = txnProducer.ID, txnProducer.Epoch
	if c.w.instance != "" {
		req.InstanceID = &c.w.instance
	}
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{
		Topic: or(c.topic, topicA), TopicID: idA,
		Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Partition: c.partition, Offset: c.offset, LeaderEpoch: c.epoch, Metadata: &c.metadata}},
	}}
	resp, e, err := h.m.CommitTransactionalOffsets(h.nowMs, req, record.Verification{})
	h.apply(e)
	if err != nil {
		return 0, err
	}
	return resp.Topics[0].Partitions[0].ErrorCode, nil
}

// endTxn ends txnProducer's transaction.
func (h *harness) endTxn(commit bool) {
	h.t.Helper()
	h.log = append(h.log, logged{producer: txnProducer, ends: true, commit: commit})
	h.m.ReplayEndTxn(txnProducer, commit)
	h.checkReplayLaw()
}

// V13: offsets in a transaction count once it is committed; meanwhile who wants stable ones is told to wait. Also over a restart.
func TestV13_PendingOffsets(t *testing.T) {
	for _, restart := range []bool{false, true} {
		h := newHarness(t)
		h.mustCommit(commit{generation: -1, offset: 10, epoch: -1})
		for _, test := range []struct {
			commit bool
			want   int64
		}{{false, 10}, {true, 20}} {
			code, err := h.commitInTxn(commit{generation: -1, offset: 20, epoch: 4, metadata: "m"})
			h.wantErr(err, nil)
			h.wantCode(code, nil)
			if restart {
				h.reload()
			}
			h.wantOffset("g", topicA, 0, 10)
			h.wantCode(h.fetchOf("g", topicA, 0, idA, true).ErrorCode, kerr.UnstableOffsetCommit)
			h.wantCode(h.fetchOf("g", topicA, 1, idA, true).ErrorCode, nil)
			h.endTxn(test.commit)
			if restart {
				h.reload()
			}
			p := h.fetchOf("g", topicA, 0, idA, true)
			h.wantCode(p.ErrorCode, nil)
			if p.Offset != test.want {
				t.Errorf("offset %d, want %d", p.Offset, test.want)
			}
		}
		if p := h.fetch("g", topicA, 0); p.LeaderEpoch != 4 || *p.Metadata != "m" {
			t.Errorf("%+v", p)
		}
	}
}

// KIP-447: commits in transactions are fenced by member and generation; who names neither is let in, in any state of the group.
func TestTransactionalCommit_Fencing(t *testing.T) {
	h := newHarness(t)
	_, err := h.commitInTxn(commit{w: who{id: "x"}, generation: 1})
	h.wantErr(err, kerr.IllegalGeneration)
	_, err = h.commitInTxn(commit{w: who{id: "x"}, generation: 1, version: 6})
	h.wantErr(err, kerr.GroupIDNotFound)

	ms, generation := h.stable(who{client: "A"}, who{client: "B", instance: "b"})
	for _, test := range []struct {
		w          who
		generation int32
		want       *kerr.Error
	}{
		{ms[0], generation, nil},
		{ms[0], generation - 1, kerr.IllegalGeneration},
		{ms[0], -1, kerr.IllegalGeneration},
		{who{id: "x"}, generation, kerr.UnknownMemberID},
		{who{id: "x", instance: "b"}, generation, kerr.FencedInstanceID},
		{who{}, -1, nil},
	} {
		_, err := h.commitInTxn(commit{w: test.w, generation: test.generation, offset: 1})
		h.wantErr(err, test.want)
	}
	// While the leader assigns, too.
	join := h.join(who{old: true})
	h.join(ms[0])
	h.join(ms[1])
	h.wantState("g", "CompletingRebalance")
	_, err = h.commitInTxn(commit{w: ms[0], generation: generation + 1, offset: 2})
	h.wantErr(err, nil)
	h.wantCode(h.joined(join).ErrorCode, nil)
	h.endTxn(true)
	h.wantOffset("g", topicA, 0, 2)
}

func TestTransactionalCommit_MetadataSize(t *testing.T) {
	h := newHarness(t)
	code, err := h.commitInTxn(commit{generation: -1, offset: 1, metadata: strings.Repeat("x", h.cfg.OffsetMetadataMaxSize+1)})
	h.wantErr(err, nil)
	h.wantCode(code, kerr.OffsetMetadataTooLarge)
	if len(h.log) != 0 {
		t.Error("logged")
	}
}

// A transactional commit does not keep a session alive.
func TestTransactionalCommit_Session(t *testing.T) {
	h := newHarness(t)
	ms, generation := h.stable(who{client: "A"})
	h.sleep(9000)
	_, err := h.commitInTxn(commit{w: ms[0], generation: generation, offset: 1})
	h.wantErr(err, nil)
	h.sleep(2000)
	h.wantState("g", "Empty")
}
