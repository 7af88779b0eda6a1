package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/protocol/uuid"
	"sluice/replication/partition"
	"sluice/storage/partlog"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

// folders lists what is in a log directory, without the random part of names.
func (w *world) folders(dir string) (names []string) {
	w.t.Helper()
	entries, err := w.fs.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			name := e.Name()
			if dot := strings.IndexByte(name, '.'); dot >= 0 {
				name = name[:dot] + name[strings.LastIndexByte(name, '-'):]
			}
			names = append(names, name)
		}
	}
	return names
}

func TestApply_CreateDeleteCreateAgain(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.apply(topicRecords("t", topicID(1), 2)...)
	old := w.get("t", 1)
	w.append(old, "old")
	if got, err := w.set.GetByID(topicID(1), 1); got != old || err != nil {
		t.Errorf("by id: %v %v", got, err)
	}
	for _, index := range []int32{2, -1} {
		_, err := w.set.Get("t", index)
		wantErr[*partition.Unknown](t, err)
	}
	before := w.changed.of(old)
	w.apply(&logrecord.RemoveTopicRecord{TopicID: topicID(1)})
	_, err := w.set.Get("t", 1)
	wantErr[*partition.Unknown](t, err)
	_, err = w.set.GetByID(topicID(1), 1)
	wantErr[*partition.Unknown](t, err)
	_, _, err = old.Read(partition.ReadQuery{Offset: 0, MaxBytes: 10, LeaderEpoch: -1, LastFetchedEpoch: -1})
	wantErr[*partition.Unknown](t, err)
	_, err = old.Append(batch(t, "late"), anyone, record.Client, w.nowMs)
	wantErr[*partition.Unknown](t, err)
	if w.changed.of(old) == before {
		t.Error("nobody was told that the replica is gone")
	}
	w.apply(topicRecords("t", topicID(2), 1)...)
	fresh := w.get("t", 0)
	if fresh.Serial() == old.Serial() || fresh.TopicID() != topicID(2) || fresh.LogEndOffset() != 0 {
		t.Errorf("the new topic has serial %d, id %v, end %d", fresh.Serial(), fresh.TopicID(), fresh.LogEndOffset())
	}
	w.append(fresh, "new")
	if got := w.folders("/d1"); !slices.Equal(got, []string{"t-0", "t-0-delete", "t-1-delete"}) {
		t.Errorf("folders %v", got)
	}
	w.set.removeDeleted()
	if got := w.folders("/d1"); !slices.Equal(got, []string{"t-0"}) {
		t.Errorf("folders after removal %v", got)
	}
	w.apply(partitionRecord(topicID(2), 1, 1))
	w.append(w.get("t", 1), "more")
	if w.get("t", 0) != fresh {
		t.Error("adding a partition has replaced the others")
	}
}

func TestApply_PartitionOfOthers(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	id := topicID(1)
	w.apply(&logrecord.TopicRecord{Name: "t", TopicID: id}, partitionRecord(id, 0, 2, 3), partitionRecord(id, 1, 2, 1))
	_, err := w.set.Get("t", 0)
	if e := wantErr[*partition.NotLeader](t, err); e.LeaderID != 2 {
		t.Errorf("%+v", e)
	}
	_, err = w.get("t", 1).Append(batch(t, "x"), anyone, record.Client, w.nowMs)
	if e := wantErr[*partition.NotLeader](t, err); e.LeaderID != 2 {
		t.Errorf("%+v", e)
	}
	if got := w.folders("/d1"); !slices.Equal(got, []string{"t-1"}) {
		t.Errorf("folders %v", got)
	}
	// The replica here is moved to broker 3.
	change := logrecord.NewPartitionChangeRecord()
	change.PartitionID, change.TopicID, change.Replicas, change.ISR = 1, id, []int32{2, 3}, []int32{2, 3}
	change.Directories = []uuid.UUID{uuid.UnassignedDirectory, uuid.UnassignedDirectory}
	w.apply(change)
	_, err = w.set.Get("t", 1)
	wantErr[*partition.NotLeader](t, err)
	if got := w.folders("/d1"); !slices.Equal(got, []string{"t-1-delete"}) {
		t.Errorf("folders %v", got)
	}
}

func TestRestart_KeepsEverything(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	id := topicID(1)
	w.apply(topicRecords("alone", id, 1)...)
	w.apply(&logrecord.TopicRecord{Name: "three", TopicID: topicID(2)}, partitionRecord(topicID(2), 0, 1, 2, 3))
	w.append(w.get("alone", 0), "a", "b", "c")
	three := w.get("three", 0)
	w.append(three, "x", "y", "z")
	for broker, offset := range map[partition.BrokerID]int64{2: 2, 3: 3} {
		_, slice, err := three.Read(partition.ReadQuery{Offset: offset, MaxBytes: 1, LeaderEpoch: -1, LastFetchedEpoch: -1, Isolation: partition.ReadLogEnd,
			Follower: &partition.FollowerFetch{Broker: broker, FetchOffset: offset, NowMs: w.nowMs}})
		if err != nil {
			t.Fatal(err)
		}
		slice.Close()
	}
	w.restart()
	if got := w.read(w.get("alone", 0), 0); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("alone: %v", got)
	}
	// What the others have is not known after a start; what was committed is.
	if got := w.get("three", 0); got.HighWatermark() != 2 || got.LogEndOffset() != 3 {
		t.Errorf("three: high watermark %d, end %d; want 2 and 3", got.HighWatermark(), got.LogEndOffset())
	}
	if got := w.append(w.get("alone", 0), "d"); got.BaseOffset != 3 {
		t.Errorf("append at %d, want 3", got.BaseOffset)
	}
}

// TestCrash_OfTheProcess: what the operating system has is found again, whatever was flushed.
func TestCrash_OfTheProcess(t *testing.T) {
	mem := vfs.NewMem()
	w := newWorld(t, mem)
	w.apply(topicRecords("t", topicID(1), 1)...)
	w.append(w.get("t", 0), "a")
	w.set.checkpointRecoveryPoints()
	w.set.checkpointHighWatermarks()
	w.append(w.get("t", 0), "b", "c")
	w.fs = mem.CrashClone(vfs.CrashConfig{ProcessOnly: true})
	w.start()
	if got := w.read(w.get("t", 0), 0); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("read %v", got)
	}
	if got := w.append(w.get("t", 0), "d"); got.BaseOffset != 3 || got.HighWatermark != 4 {
		t.Errorf("%+v", got)
	}
}

// TestStart_TellsHowFarItIs: after a crash each log is told, and each segment that was not flushed.
func TestStart_TellsHowFarItIs(t *testing.T) {
	mem := vfs.NewMem()
	w := newWorld(t, mem, "/d1", "/d2")
	w.apply(topicRecords("t", topicID(1), 5)...)
	for i := range int32(3) {
		w.append(w.get("t", i), "a")
	}
	w.fs = mem.CrashClone(vfs.CrashConfig{ProcessOnly: true})
	w.opening.told = nil
	w.start()
	told := w.opening.told
	if len(told) != 8 {
		t.Fatalf("told %d times: %v", len(told), told)
	}
	most := Opening{}
	for _, o := range told {
		most = Opening{max(most.Opened, o.Opened), max(most.Logs, o.Logs), max(most.SegmentsScanned, o.SegmentsScanned)}
	}
	if want := (Opening{Opened: 5, Logs: 5, SegmentsScanned: 3}); most != want {
		t.Errorf("%+v, want %+v", most, want)
	}
	w.opening.told = nil
	w.apply(topicRecords("later", topicID(2), 2)...)
	if len(w.opening.told) > 0 {
		t.Errorf("a topic that is created later is told of as a start: %v", w.opening.told)
	}
}

// TestPowerFailure_ByFlushSetting: what was flushed is there, and never anything torn. The settings say how much that is at least.
func TestPowerFailure_ByFlushSetting(t *testing.T) {
	for _, test := range []struct {
		name      string
		configure func(*partlog.Config)
		then      func(w *world)
		least     int64 // of seven records
	}{
		{"page cache", func(*partlog.Config) {}, func(*world) {}, 0},
		{"flush.messages=3", func(c *partlog.Config) { c.FlushMessages = 3 }, func(*world) {}, 6},
		{"flush.messages=1", func(c *partlog.Config) { c.FlushMessages = 1 }, func(*world) {}, 7},
		{"flush.ms, before it has passed", func(c *partlog.Config) { c.FlushMs = 1000 }, func(w *world) { w.nowMs += 999; w.set.flushDue() }, 0},
		{"flush.ms, after it has passed", func(c *partlog.Config) { c.FlushMs = 1000 }, func(w *world) { w.nowMs += 1001; w.set.flushDue() }, 7},
		{"a clean stop", func(*partlog.Config) {}, func(w *world) {
			if err := w.set.Close(); err != nil {
				t.Error(err)
			}
		}, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			mem := vfs.NewMem()
			w := newWorld(t, mem)
			config := w.config("t")
			test.configure(&config.Log)
			w.configs["t"] = config
			w.apply(topicRecords("t", topicID(1), 1)...)
			for i := range 7 {
				w.append(w.get("t", 0), fmt.Sprint(i))
			}
			test.then(w)
			for seed := range uint64(20) {
				after := &world{t: t, fs: mem.CrashClone(vfs.CrashConfig{Rand: rand.New(rand.NewPCG(seed, 0))}), dirs: w.dirs, machine: w.machine, configs: w.configs, nowMs: w.nowMs}
				after.start()
				r := after.get("t", 0)
				end := r.LogEndOffset()
				if end < test.least || end > 7 {
					t.Fatalf("the log ends at %d, want %d at least", end, test.least)
				}
				if got, all := after.read(r, 0), []string{"0", "1", "2", "3", "4", "5", "6"}; !slices.Equal(got, all[:end]) {
					t.Fatalf("read %v of a log that ends at %d", got, end)
				}
				if got := after.append(r, "next"); got.BaseOffset != end {
					t.Fatalf("appended at %d, want %d", got.BaseOffset, end)
				}
			}
		})
	}
}

// TestPowerFailure_DeletedRecordsStayDeleted: once the log starts are saved, also if the log itself was not flushed.
func TestPowerFailure_DeletedRecordsStayDeleted(t *testing.T) {
	mem := vfs.NewMem()
	w := newWorld(t, mem)
	w.apply(topicRecords("t", topicID(1), 1)...)
	r := w.get("t", 0)
	for i := range 7 {
		w.append(r, fmt.Sprint(i))
	}
	if _, _, err := r.DeleteRecords(4); err != nil {
		t.Fatal(err)
	}
	w.set.SaveLogStartOffsets()
	for seed := range uint64(20) {
		after := &world{t: t, fs: mem.CrashClone(vfs.CrashConfig{Rand: rand.New(rand.NewPCG(seed, 0))}), dirs: w.dirs, machine: w.machine, configs: w.configs, nowMs: w.nowMs}
		after.start()
		if r := after.get("t", 0); r.LogStartOffset() != 4 || r.LogEndOffset() < 4 {
			t.Fatalf("the log is from %d to %d, want it to start at 4", r.LogStartOffset(), r.LogEndOffset())
		}
	}
}

// TestFlushBeforeAcknowledgement: with flush.messages=1 a power failure takes nothing that was acknowledged, or that a reader could see.
func TestFlushBeforeAcknowledgement(t *testing.T) {
	mem := vfs.NewMem()
	w := newWorld(t, mem)
	durable := w.config("t")
	durable.Log.FlushMessages = 1
	w.configs["t"] = durable
	w.apply(topicRecords("t", topicID(1), 1)...)
	r := w.get("t", 0)
	for i := range 5 {
		if result := w.append(r, fmt.Sprint(i)); result.HighWatermark != int64(i+1) {
			t.Errorf("append %d: high watermark %d", i, result.HighWatermark)
		}
		w.fs = mem.CrashClone(vfs.CrashConfig{})
		after := &world{t: t, fs: w.fs, dirs: w.dirs, machine: w.machine, configs: w.configs, nowMs: w.nowMs}
		after.start()
		if got := after.get("t", 0); got.LogEndOffset() != int64(i+1) || got.HighWatermark() != int64(i+1) {
			t.Fatalf("after a power failure the log ends at %d and is committed to %d, want %d", got.LogEndOffset(), got.HighWatermark(), i+1)
		}
	}
}

func TestStart_SetsStraysAside(t *testing.T) {
	mem := vfs.NewMem()
	w := newWorld(t, mem)
	w.apply(topicRecords("kept", topicID(1), 1)...)
	w.apply(topicRecords("lost", topicID(2), 1)...)
	w.append(w.get("kept", 0), "a")
	w.append(w.get("lost", 0), "b")
	if err := w.set.Close(); err != nil {
		t.Fatal(err)
	}
	// While this broker is away, one topic is deleted and created again.
	w.replay(&logrecord.RemoveTopicRecord{TopicID: topicID(2)})
	w.replay(topicRecords("lost", topicID(3), 1)...)
	w.start()
	if got := w.folders("/d1"); !slices.Equal(got, []string{"kept-0", "lost-0", "lost-0-stray"}) {
		t.Errorf("folders %v", got)
	}
	if got := w.get("lost", 0); got.LogEndOffset() != 0 || got.TopicID() != topicID(3) {
		t.Errorf("the new topic ends at %d", got.LogEndOffset())
	}
	if got := w.read(w.get("kept", 0), 0); !slices.Equal(got, []string{"a"}) {
		t.Errorf("kept: %v", got)
	}
}

func TestDirectoryFails_AndTakesOnlyItsPartitions(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem(), nil)
	w := newWorld(t, fs, "/d1", "/d2")
	w.apply(topicRecords("t", topicID(1), 4)...)
	if one, two := len(w.folders("/d1")), len(w.folders("/d2")); one != 2 || two != 2 {
		t.Fatalf("%d and %d partitions, want two in each directory", one, two)
	}
	for i := range int32(4) {
		w.append(w.get("t", i), "a")
	}
	fs.SetInject(errorfs.FailWhen(func(op errorfs.Op, path string) bool { return op.Mutates() && strings.HasPrefix(path, "/d2") }, syscall.EIO))
	offline := 0
	for i := range int32(4) {
		r := w.get("t", i)
		inSecond := r.dir.Path() == "/d2"
		_, err := r.Append(batch(t, "b"), anyone, record.Client, w.nowMs)
		if !inSecond && err != nil {
			t.Errorf("partition %d in the good directory: %v", i, err)
		}
		if inSecond {
			offline++
			if e := wantErr[*partition.StorageOffline](t, err); e.Dir != "/d2" || !errors.Is(e, syscall.EIO) {
				t.Errorf("partition %d: %v", i, e)
			}
			break // the directory takes the other one along
		}
	}
	for i := range int32(4) {
		if _, err := w.set.Get("t", i); err != nil {
			wantErr[*partition.StorageOffline](t, err)
			offline++
		}
	}
	if offline != 3 { // the append, and then both partitions
		t.Errorf("%d errors, want 3", offline)
	}
	if !slices.Equal(w.failed, []string{"/d2: 1 left"}) {
		t.Errorf("told %v", w.failed)
	}
	dirs := w.set.LogDirs()
	if len(dirs) != 2 || dirs[0].Err != nil || len(dirs[0].Replicas) != 2 || dirs[1].Err == nil || len(dirs[1].Replicas) != 0 {
		t.Errorf("log directories %+v", dirs)
	}
	w.apply(topicRecords("later", topicID(2), 2)...)
	for i := range int32(2) {
		w.append(w.get("later", i), "x")
	}
	if err := w.set.Close(); err != nil {
		t.Error(err)
	}
}

// TestFullDisk: writes fail, reads go on, and so do writes once there is space.
func TestFullDisk(t *testing.T) {
	for _, short := range []bool{false, true} {
		fs := errorfs.Wrap(vfs.NewMem(), nil)
		w := newWorld(t, fs)
		core, logged := observer.New(zap.ErrorLevel)
		w.set.options.Log = zap.New(core)
		w.apply(topicRecords("t", topicID(1), 1)...)
		r := w.get("t", 0)
		w.append(r, "a", "b")
		full := error(syscall.ENOSPC)
		if short {
			full = &errorfs.Short{Err: syscall.ENOSPC}
		}
		fs.SetInject(errorfs.FailWhen(func(op errorfs.Op, path string) bool { return op == errorfs.OpWrite && strings.HasSuffix(path, ".log") }, full))
		for range 3 {
			_, err := r.Append(batch(t, "lost"), anyone, record.Client, w.nowMs)
			wantErr[*partition.StorageFull](t, err)
			w.nowMs += 2 * reopenIntervalMs
			if got := w.read(r, 0); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("read %v while the disk is full", got)
			}
		}
		if got := logged.FilterMessageSnippet("is full").Len(); got != 1 {
			t.Errorf("the log says %d times in a few seconds that the disk is full, want once", got)
		}
		fs.SetInject(nil)
		w.nowMs += 2 * reopenIntervalMs
		if got := w.append(r, "c"); got.BaseOffset != 2 || got.HighWatermark != 3 {
			t.Errorf("with space again: %+v", got)
		}
		if got := w.read(r, 0); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("read %v", got)
		}
		if w.failed != nil {
			t.Errorf("a directory went offline: %v", w.failed)
		}
		w.restart()
		if got := w.read(w.get("t", 0), 0); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("after a restart: %v", got)
		}
	}
}

// sizedFS tells how much space is left.
type sizedFS struct {
	vfs.FS
	free int64
}

func (s *sizedFS) Usage(string) (total, free int64, err error) { return 1 << 30, s.free, nil }

// TestFullDisk_CreatesLater: a topic that is made while the disk is full can be written once there is space.
func TestFullDisk_CreatesLater(t *testing.T) {
	fs := &sizedFS{FS: vfs.NewMem(), free: 1 << 29}
	w := newWorld(t, fs)
	w.apply(topicRecords("old", topicID(1), 1)...)
	fs.free = 1000
	w.apply(topicRecords("new", topicID(2), 2)...)
	_, err := w.set.Get("new", 1)
	wantErr[*partition.StorageFull](t, err)
	w.set.makeRoom()
	_, err = w.set.Get("new", 1)
	wantErr[*partition.StorageFull](t, err)
	w.append(w.get("old", 0), "a")
	fs.free = 1 << 29
	w.set.makeRoom()
	if got := w.append(w.get("new", 1), "b"); got.HighWatermark != 1 {
		t.Errorf("%+v", got)
	}
	if w.failed != nil {
		t.Errorf("a directory went offline: %v", w.failed)
	}
}

func TestMinInSyncReplicas(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	strict := w.config("t")
	strict.MinInSyncReplicas = 2
	w.configs["t"], w.configs["alone"] = strict, strict
	id := topicID(1)
	p := partitionRecord(id, 0, 1, 2, 3)
	p.ISR = []int32{1}
	w.apply(&logrecord.TopicRecord{Name: "t", TopicID: id}, p)
	r := w.get("t", 0)
	_, err := r.Append(batch(t, "x"), anyone, record.Client, w.nowMs)
	if e := wantErr[*partition.NotEnoughReplicas](t, err); e.Appended || e.InSync != 1 || e.Minimum != 2 {
		t.Errorf("%+v", e)
	}
	result, err := r.Append(batch(t, "y"), partition.AppendQuery{RequiredAcks: 1, LeaderEpoch: -1}, record.Client, w.nowMs)
	if err != nil || result.HighWatermark != 0 {
		t.Errorf("acks=1: %+v %v; want it appended and not committed", result, err)
	}
	// With one replica the minimum of 2 counts as 1.
	w.apply(topicRecords("alone", topicID(2), 1)...)
	if result := w.append(w.get("alone", 0), "z"); result.HighWatermark != 1 {
		t.Errorf("one replica: %+v", result)
	}
	// A lower minimum lets the high watermark go on.
	relaxed := *strict
	relaxed.MinInSyncReplicas = 1
	w.configs["t"] = &relaxed
	w.nowMs += 60_000 // the followers have long been out of sync
	w.set.Reconfigure()
	if got := r.HighWatermark(); got != 1 {
		t.Errorf("high watermark %d, want 1", got)
	}
}

// TestFlushBeforeAcknowledgement_IsShared: writers that come while a sync is under way are acknowledged by one sync together.
func TestFlushBeforeAcknowledgement_IsShared(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem(), nil)
	var syncs atomic.Int32
	underWay, goOn := make(chan struct{}), make(chan struct{})
	fs.SetInject(func(op errorfs.Op, path string, _ int) error {
		if op == errorfs.OpSync && strings.HasSuffix(path, ".log") && syncs.Add(1) == 1 {
			close(underWay)
			<-goOn
		}
		return nil
	})
	w := newWorld(t, fs)
	config := w.config("t")
	config.Log.FlushMessages = 1
	w.configs["t"] = config
	w.set.options.Changed = func(uint64) {}
	w.apply(topicRecords("t", topicID(1), 1)...)
	r := w.get("t", 0)
	const writers = 50
	var wait sync.WaitGroup
	write := func() {
		wait.Go(func() {
			if result, err := r.Append(batch(t, "v"), anyone, record.Client, w.nowMs); err != nil || result.HighWatermark <= result.LastOffset {
				t.Errorf("%+v %v", result, err)
			}
		})
	}
	write()
	<-underWay
	for range writers - 1 {
		write()
	}
	for r.LogEndOffset() < writers {
		runtime.Gosched()
	}
	if at := r.HighWatermark(); at != 0 {
		t.Errorf("readers see up to %d before anything is flushed", at)
	}
	close(goOn)
	wait.Wait()
	if n := syncs.Load(); n != 2 {
		t.Errorf("%d syncs for %d writers, want 2", n, writers)
	}
}

// TestAppend_ManyAtOnce checks that the writers of one partition do not get into each other's way, with and without flushing.
func TestAppend_ManyAtOnce(t *testing.T) {
	for _, flushMessages := range []int64{1, 1 << 62} {
		fs := errorfs.Wrap(vfs.NewMem(), nil)
		syncs := 0
		var mu sync.Mutex
		fs.SetInject(func(op errorfs.Op, path string, _ int) error {
			if op == errorfs.OpSync && strings.HasSuffix(path, ".log") {
				mu.Lock()
				syncs++
				mu.Unlock()
			}
			return nil
		})
		w := newWorld(t, fs)
		config := w.config("t")
		config.Log.FlushMessages = flushMessages
		w.configs["t"] = config
		w.set.options.Changed = func(uint64) {}
		w.apply(topicRecords("t", topicID(1), 1)...)
		r := w.get("t", 0)
		var told []int64
		r.OnCommit(func(highWatermark int64) { told = append(told, highWatermark) })
		const writers, each = 8, 100
		var wait sync.WaitGroup
		offsets := make([][]int64, writers)
		for n := range writers {
			wait.Go(func() {
				for range each {
					result, err := r.Append(batch(t, "v"), anyone, record.Client, w.nowMs)
					if err != nil || result.HighWatermark <= result.LastOffset {
						t.Errorf("%+v %v", result, err)
						return
					}
					offsets[n] = append(offsets[n], result.BaseOffset)
				}
			})
		}
		wait.Wait()
		all := slices.Concat(offsets...)
		slices.Sort(all)
		for i, offset := range all {
			if offset != int64(i) {
				t.Fatalf("offset %d in place %d", offset, i)
			}
		}
		if !slices.IsSorted(told) || told[len(told)-1] != writers*each {
			t.Errorf("commits told out of order, or not to the end: %d", told[len(told)-1])
		}
		if flushMessages == 1 && syncs > writers*each {
			t.Errorf("%d syncs for %d appends", syncs, writers*each)
		}
		if flushMessages > 1 && syncs > 0 {
			t.Errorf("%d syncs that nobody asked for", syncs)
		}
	}
}
