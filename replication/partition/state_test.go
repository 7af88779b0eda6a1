package partition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sluice/protocol/record"
)

// TestState plays testdata/*.txt: one broker's view of a partition. Each command prints what came of it and, where it can move, the high
// watermark. Times are in ms, offsets as everywhere.
func TestState(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		h := &harness{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return h.run(t, d) })
	})
}

type harness struct {
	state        *State
	logEndOffset int64
	nowMs        int64
	minimum      int
}

const lagTimeMaxMs = 30_000

func (h *harness) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "new": // local=ID [saved=HW] [start=N] [end=N] [minimum=N]
		local, saved, start := 0, int64(0), int64(0)
		h.logEndOffset, h.nowMs, h.minimum = 0, 100_000, 1
		d.ScanArgs(t, "local", &local)
		d.MaybeScanArgs(t, "saved", &saved)
		d.MaybeScanArgs(t, "start", &start)
		d.MaybeScanArgs(t, "end", &h.logEndOffset)
		d.MaybeScanArgs(t, "minimum", &h.minimum)
		h.state = NewState(BrokerID(local), saved, start, h.logEndOffset)
		return h.advanced("")
	case "register": // leader=ID leader-epoch=N epoch=N replicas=(…) isr=(…) [adding=(…)]
		var r Registration
		var leader, leaderEpoch, epoch int
		d.ScanArgs(t, "leader", &leader)
		d.ScanArgs(t, "leader-epoch", &leaderEpoch)
		d.ScanArgs(t, "epoch", &epoch)
		r.Leader, r.LeaderEpoch, r.Epoch = BrokerID(leader), record.LeaderEpoch(leaderEpoch), Epoch(epoch)
		r.Replicas, r.ISR, r.Adding = brokers(t, d, "replicas"), brokers(t, d, "isr"), brokers(t, d, "adding")
		change := h.state.Register(r, h.logEndOffset, h.nowMs)
		return h.advanced([]string{"stale", "unchanged", "leads", "follows"}[change])
	case "append": // records=N [acks=N] [leader-epoch=N]
		q, records, epoch := AppendQuery{RequiredAcks: -1}, int64(1), int(record.NoLeaderEpoch)
		d.MaybeScanArgs(t, "records", &records)
		d.MaybeScanArgs(t, "acks", &q.RequiredAcks)
		d.MaybeScanArgs(t, "leader-epoch", &epoch)
		q.LeaderEpoch = record.LeaderEpoch(epoch)
		if err := h.state.CheckAppend(q, h.minimum); err != nil {
			return kind(err)
		}
		h.logEndOffset += records
		return h.advanced(fmt.Sprintf("end %d", h.logEndOffset))
	case "fetch": // broker=ID offset=N [start=N] [leader-end=N] [leader-epoch=N]
		f, broker, epoch := FollowerFetch{LeaderEndOffset: h.logEndOffset, NowMs: h.nowMs}, 0, int(record.NoLeaderEpoch)
		d.ScanArgs(t, "broker", &broker)
		d.ScanArgs(t, "offset", &f.FetchOffset)
		d.MaybeScanArgs(t, "start", &f.LogStartOffset)
		d.MaybeScanArgs(t, "leader-end", &f.LeaderEndOffset)
		d.MaybeScanArgs(t, "leader-epoch", &epoch)
		f.Broker = BrokerID(broker)
		if err := h.state.FollowerFetched(f, record.LeaderEpoch(epoch)); err != nil {
			return kind(err)
		}
		joins := ""
		if h.state.CanJoin(f.Broker) {
			joins = "can join"
		}
		return h.advanced(joins)
	case "sleep": // ms=N
		var ms int64
		d.ScanArgs(t, "ms", &ms)
		h.nowMs += ms
		return h.advanced(fmt.Sprintf("out of sync %v", h.state.OutOfSync(h.logEndOffset, h.nowMs, lagTimeMaxMs)))
	case "follow": // leader-hw=N [start=N] [end=N]: a follower has fetched
		var leaders, start int64
		d.ScanArgs(t, "leader-hw", &leaders)
		d.MaybeScanArgs(t, "start", &start)
		d.MaybeScanArgs(t, "end", &h.logEndOffset)
		moved := h.state.FollowHighWatermark(leaders, start, h.logEndOffset)
		return fmt.Sprintf("moved %v, high watermark %d\n", moved, h.state.HighWatermark())
	case "committed":
		return kind(h.state.CheckCommitted(h.minimum))
	case "health":
		return fmt.Sprintf("under replicated %v, under minimum %v\n", h.state.UnderReplicated(), h.state.UnderMinimum(h.minimum))
	case "low-watermark": // start=N [dead=ID]
		var start int64
		dead := -1
		d.ScanArgs(t, "start", &start)
		d.MaybeScanArgs(t, "dead", &dead)
		return fmt.Sprintf("%d\n", h.state.LowWatermark(start, func(id BrokerID) bool { return id != BrokerID(dead) }))
	default:
		t.Fatalf("unknown command %s", d.Cmd)
		return ""
	}
}

// advanced lets the high watermark move, as a driver does after each event, and prints it.
func (h *harness) advanced(what string) string {
	before := h.state.HighWatermark()
	moved := h.state.AdvanceHighWatermark(h.logEndOffset, h.minimum, h.nowMs, lagTimeMaxMs)
	if moved != (h.state.HighWatermark() > before) {
		return "AdvanceHighWatermark does not tell the truth\n"
	}
	if what != "" {
		what += ", "
	}
	return fmt.Sprintf("%shigh watermark %d\n", what, h.state.HighWatermark())
}

func brokers(t *testing.T, d *datadriven.TestData, name string) []BrokerID {
	t.Helper()
	var ids []BrokerID
	for _, arg := range d.CmdArgs {
		if arg.Key != name {
			continue
		}
		for _, v := range arg.Vals {
			id := 0
			if _, err := fmt.Sscan(strings.TrimSpace(v), &id); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, BrokerID(id))
		}
	}
	return ids
}

// kind prints an error with its type.
func kind(err error) string {
	if err == nil {
		return "ok\n"
	}
	return fmt.Sprintf("%s: %v\n", strings.TrimPrefix(fmt.Sprintf("%T", err), "*partition."), err)
}

func TestCheckLeader(t *testing.T) {
	for _, test := range []struct {
		asked record.LeaderEpoch
		lead  BrokerID
		want  error
	}{
		{5, 1, nil}, {record.NoLeaderEpoch, 1, nil},
		{4, 1, &FencedLeaderEpoch{Requested: 4, Current: 5}}, {6, 1, &UnknownLeaderEpoch{Requested: 6, Current: 5}},
		{5, 2, &NotLeader{LeaderID: 2, LeaderEpoch: 5}}, {4, 2, &FencedLeaderEpoch{Requested: 4, Current: 5}}, // the epoch is looked at first
		{record.NoLeaderEpoch, NoBroker, &NotLeader{LeaderID: NoBroker, LeaderEpoch: 5}},
	} {
		got := CheckLeader(1, test.lead, 5, test.asked)
		if fmt.Sprintf("%T %+v", got, got) != fmt.Sprintf("%T %+v", test.want, test.want) {
			t.Errorf("asked with epoch %d of leader %d: %v, want %v", test.asked, test.lead, got, test.want)
		}
	}
}

// TestHighWatermark_IsWhatTheInSyncReplicasHave compares with the definition, over all orders of fetches by two followers.
func TestHighWatermark_IsWhatTheInSyncReplicasHave(t *testing.T) {
	for seed := range 500 {
		s := NewState(1, 0, 0, 0)
		s.Register(Registration{Replicas: []BrokerID{1, 2, 3}, ISR: []BrokerID{1, 2, 3}, Leader: 1}, 0, 0)
		ends := map[BrokerID]int64{1: 0, 2: 0, 3: 0}
		last := int64(0)
		for step, x := 0, uint64(seed)*2654435761+1; step < 40; step++ {
			x = x*6364136223846793005 + 1442695040888963407
			id := BrokerID(x>>33%3 + 1)
			if id == 1 {
				ends[1] += int64(x >> 40 % 3)
			} else if ends[id] += int64(x >> 40 % 3); ends[id] > ends[1] {
				ends[id] = ends[1]
			}
			if id != 1 {
				if err := s.FollowerFetched(FollowerFetch{Broker: id, FetchOffset: ends[id], LeaderEndOffset: ends[1], NowMs: int64(step)}, record.NoLeaderEpoch); err != nil {
					t.Fatal(err)
				}
			}
			s.AdvanceHighWatermark(ends[1], 1, int64(step), lagTimeMaxMs)
			want := slices.Min([]int64{ends[1], ends[2], ends[3]})
			if got := s.HighWatermark(); got != want || got < last {
				t.Fatalf("seed %d, step %d: high watermark %d after %d, ends %v", seed, step, got, last, ends)
			}
			last = s.HighWatermark()
		}
	}
}
