package replica

import (
	"slices"
	"testing"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/protocol/uuid"
	"sluice/replication/partition"
	"sluice/storage/vfs"
)

func TestAppend_CommitsAtOnceWithoutOtherReplicas(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.apply(topicRecords("t", topicID(1), 2)...)
	r := w.get("t", 1)
	var committed []int64
	stop := r.OnCommit(func(highWatermark int64) { committed = append(committed, highWatermark) })
	before := w.changed.of(r)
	result := w.append(r, "a", "b")
	if result.BaseOffset != 0 || result.LastOffset != 1 || result.HighWatermark != 2 || result.LogStartOffset != 0 || result.Duplicate {
		t.Errorf("first append: %+v", result)
	}
	if result = w.append(r, "c"); result.BaseOffset != 2 || result.HighWatermark != 3 {
		t.Errorf("second append: %+v", result)
	}
	stop()
	w.append(r, "d")
	if !slices.Equal(committed, []int64{2, 3}) {
		t.Errorf("told commits at %v, want 2 and 3", committed)
	}
	if got := w.changed.of(r) - before; got != 3 {
		t.Errorf("%d changes told for 3 appends", got)
	}
	if got := w.read(r, 1); !slices.Equal(got, []string{"b", "c", "d"}) {
		t.Errorf("read %v", got)
	}
	if got := w.read(w.get("t", 0), 0); got != nil {
		t.Errorf("the other partition has %v", got)
	}
}

func TestAppend_WaitsForTheReplicasInSync(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	id := topicID(1)
	w.apply(&logrecord.TopicRecord{Name: "t", TopicID: id}, partitionRecord(id, 0, 1, 2, 3))
	r := w.get("t", 0)
	if result := w.append(r, "a", "b", "c"); result.HighWatermark != 0 {
		t.Fatalf("committed up to %d before any follower has it", result.HighWatermark)
	}
	if done, err := r.Committed(3); done || err != nil {
		t.Fatalf("committed: %v %v", done, err)
	}
	fetch := func(broker partition.BrokerID, offset int64) {
		t.Helper()
		_, slice, err := r.Read(partition.ReadQuery{
			Offset: offset, MaxBytes: 1000, LeaderEpoch: 0, LastFetchedEpoch: record.NoLeaderEpoch, Isolation: partition.ReadLogEnd,
			Follower: &partition.FollowerFetch{Broker: broker, FetchOffset: offset, NowMs: w.nowMs},
		})
		if err != nil {
			t.Fatal(err)
		}
		slice.Close()
	}
	fetch(2, 3)
	fetch(3, 2)
	if got := r.HighWatermark(); got != 2 {
		t.Errorf("high watermark %d, want 2: the slower follower's end", got)
	}
	fetch(3, 3)
	if done, err := r.Committed(3); !done || err != nil {
		t.Errorf("committed: %v %v", done, err)
	}
	_, _, err := r.Read(partition.ReadQuery{Offset: 0, LeaderEpoch: 0, LastFetchedEpoch: -1, Follower: &partition.FollowerFetch{Broker: 9}})
	wantErr[*partition.UnknownLeaderEpoch](t, err)
}

func TestReplica_LeaderEpochFences(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	id := topicID(1)
	w.apply(topicRecords("t", id, 1)...)
	r := w.get("t", 0)
	w.append(r, "a", "b")
	change := logrecord.NewPartitionChangeRecord()
	change.PartitionID, change.TopicID, change.Leader = 0, id, int32(self) // the same leader again: a new epoch
	w.apply(change)
	w.append(r, "c")
	read := func(epoch record.LeaderEpoch) error {
		_, slice, err := r.Read(partition.ReadQuery{Offset: 0, MaxBytes: 100, LeaderEpoch: epoch, LastFetchedEpoch: record.NoLeaderEpoch})
		slice.Close()
		return err
	}
	if e := wantErr[*partition.FencedLeaderEpoch](t, read(0)); *e != (partition.FencedLeaderEpoch{Requested: 0, Current: 1}) {
		t.Errorf("%+v", e)
	}
	wantErr[*partition.UnknownLeaderEpoch](t, read(2))
	for _, epoch := range []record.LeaderEpoch{1, record.NoLeaderEpoch} {
		if err := read(epoch); err != nil {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
	_, err := r.ListOffset(-1, partition.ReadUncommitted, 0)
	wantErr[*partition.FencedLeaderEpoch](t, err)
	_, err = r.Append(batch(t, "x"), partition.AppendQuery{RequiredAcks: 1, LeaderEpoch: 0}, record.Client, w.nowMs)
	wantErr[*partition.FencedLeaderEpoch](t, err)
	for _, test := range []struct {
		asked record.LeaderEpoch
		want  partition.EpochEnd
	}{{0, partition.EpochEnd{LeaderEpoch: 0, EndOffset: 2}}, {1, partition.EpochEnd{LeaderEpoch: 1, EndOffset: 3}}, {5, partition.EpochEnd{LeaderEpoch: -1, EndOffset: -1}}} {
		if got, err := r.EndOffsetForEpoch(record.NoLeaderEpoch, test.asked); err != nil || got != test.want {
			t.Errorf("end of epoch %d: %+v %v, want %+v", test.asked, got, err, test.want)
		}
	}
	result, _, err := r.Read(partition.ReadQuery{Offset: 3, MaxBytes: 100, LeaderEpoch: 1, LastFetchedEpoch: 0})
	if err != nil || result.Diverging == nil || *result.Diverging != (partition.EpochEnd{LeaderEpoch: 0, EndOffset: 2}) {
		t.Errorf("diverging: %+v %v", result.Diverging, err)
	}
	// Leadership moves away: nobody is served here, and is told where to go.
	change = logrecord.NewPartitionChangeRecord()
	change.PartitionID, change.TopicID, change.Leader, change.Replicas, change.ISR = 0, id, 2, []int32{2, 1}, []int32{2}
	change.Directories = make([]uuid.UUID, 2)
	w.apply(change)
	if e := wantErr[*partition.NotLeader](t, read(record.NoLeaderEpoch)); e.LeaderID != 2 || e.LeaderEpoch != 2 {
		t.Errorf("%+v", e)
	}
}

func TestDeleteRecords(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.apply(topicRecords("t", topicID(1), 1)...)
	r := w.get("t", 0)
	w.append(r, "a", "b", "c", "d")
	for _, test := range []struct{ offset, low, wanted int64 }{{2, 2, 2}, {1, 2, 1}, {-1, 4, 4}} {
		low, wanted, err := r.DeleteRecords(test.offset)
		if err != nil || low != test.low || wanted != test.wanted {
			t.Errorf("delete to %d: low watermark %d of %d, %v; want %d of %d", test.offset, low, wanted, err, test.low, test.wanted)
		}
	}
	for _, offset := range []int64{5, -2} {
		_, _, err := r.DeleteRecords(offset)
		wantErr[*partition.OffsetOutOfRange](t, err)
	}
	if got, err := r.ListOffset(-2, partition.ReadUncommitted, -1); err != nil || got.Offset != 4 {
		t.Errorf("earliest %+v %v, want 4", got, err)
	}
	if result := w.append(r, "e"); result.BaseOffset != 4 || result.LogStartOffset != 4 {
		t.Errorf("append after it: %+v", result)
	}
	kept := *w.config("t")
	kept.Log.Delete, kept.Log.Compact = false, true
	w.configs["t"] = &kept
	w.set.Reconfigure()
	_, _, err := r.DeleteRecords(-1)
	wantErr[*partition.DeletionRefused](t, err)
	w.restart()
	if got, err := w.get("t", 0).ListOffset(-2, partition.ReadUncommitted, -1); err != nil || got.Offset != 4 {
		t.Errorf("earliest after a restart %+v %v, want 4", got, err)
	}
}
