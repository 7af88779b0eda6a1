package replica

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/replication/partition"
	"sluice/storage/checkpoint"
	"sluice/storage/compact"
	"sluice/storage/logdir"
	"sluice/storage/partlog"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

// compacted gives topics a config with which a segment holds few records and every log is due, has the cleaner look every second, and returns how
// to change its settings.
func (w *world) compacted(topics ...string) (change func(threads int, bytesPerSecond float64)) {
	log := *partlog.DefaultConfig()
	log.SegmentBytes, log.Compact, log.Delete = 500, true, false
	for _, topic := range topics {
		w.configs[topic] = &TopicConfig{Log: log, MinInSyncReplicas: 1, Compaction: compact.Policy{MinCleanableRatio: 0.01, MaxLagMs: math.MaxInt64, DeleteRetentionMs: 1000}}
	}
	var config atomic.Pointer[CleanerConfig]
	config.Store(&CleanerConfig{Enable: true, Threads: 1, BackoffMs: 1000, DedupeBufferBytes: 1 << 20, LoadFactor: 0.9, IOBufferBytes: 1 << 16, IOMaxBytesPerSecond: math.MaxFloat64})
	w.set.options.Broker = func() *BrokerConfig {
		const never = 1 << 62
		return &BrokerConfig{
			RecoveryThreads: 1, FlushSchedulerIntervalMs: never, FlushOffsetCheckpointIntervalMs: never, FlushStartOffsetCheckpointIntervalMs: never,
			RetentionCheckIntervalMs: never, InitialTaskDelayMs: never, HighWatermarkCheckpointIntervalMs: never,
			ProducerIDExpirationMs: 86_400_000, ProducerIDExpirationCheckIntervalMs: never, FileDeleteDelayMs: never, Cleaner: *config.Load(),
		}
	}
	return func(threads int, bytesPerSecond float64) {
		next := *config.Load()
		next.Threads, next.IOMaxBytesPerSecond = threads, bytesPerSecond
		config.Store(&next)
	}
}

// put appends a record for each key, over and over.
func (w *world) put(r *Replica, rounds int, keys ...string) {
	w.t.Helper()
	for round := range rounds {
		for _, key := range keys {
			b, err := record.NewBuilder(record.Unattributed()).Add(record.Record{TimestampMs: w.nowMs, Key: []byte(key), Value: []byte(fmt.Sprint(key, round))}).Build()
			if err != nil {
				w.t.Fatal(err)
			}
			if _, err := r.Append(b, anyone, record.Client, w.nowMs); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// scan reads the log from its start to its end.
func (w *world) scan(r *Replica) (values []string) {
	w.t.Helper()
	for offset := r.LogStartOffset(); offset < r.LogEndOffset(); {
		_, slice, err := r.Read(partition.ReadQuery{Offset: offset, MaxBytes: 1, AtLeastOne: true, LeaderEpoch: record.NoLeaderEpoch, LastFetchedEpoch: record.NoLeaderEpoch})
		if err != nil {
			w.t.Fatal(err)
		}
		bytes := make([]byte, slice.Bytes)
		_, err = slice.File.ReadAt(bytes, slice.Position)
		slice.Close()
		if err != nil {
			w.t.Fatal(err)
		}
		b, _, err := record.Split(bytes)
		if err != nil {
			w.t.Fatal(err)
		}
		for rec, err := range b.Records(0) {
			if err != nil {
				w.t.Fatal(err)
			}
			values = append(values, string(rec.Value))
		}
		offset = b.NextOffset()
	}
	return values
}

// run runs the set in the background and returns how to stop it.
func (w *world) run() (stop func()) {
	w.set.options.NowMs = func() int64 { return time.Now().UnixMilli() }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.set.Run(ctx) }()
	return func() {
		cancel()
		<-ended
	}
}

// storedCleaned is what cleaner-offset-checkpoint has.
func (w *world) storedCleaned(fs vfs.FS) map[logdir.TopicPartition]int64 {
	w.t.Helper()
	got, err := checkpoint.ReadOffsets(fs, "/d1/"+checkpoint.CleanerOffsetFile)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// TestCleaner_CompactsWhatIsDue: and remembers how far, over a restart; other topics are left alone.
func TestCleaner_CompactsWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		w := newWorld(t, mem)
		w.compacted("t")
		w.apply(append(topicRecords("t", topicID(1), 1), topicRecords("other", topicID(2), 1)...)...)
		r, other := w.get("t", 0), w.get("other", 0)
		w.put(r, 30, "a", "b", "c")
		w.put(other, 30, "a", "b", "c")
		stop := w.run()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		_, active := r.log().Closed()
		values := w.scan(r)
		if len(values) >= 90 || !slices.Equal(values[len(values)-3:], []string{"a29", "b29", "c29"}) || len(w.scan(other)) != 90 {
			t.Errorf("after compaction: %v; %d of the other topic", values, len(w.scan(other)))
		}
		if got, want := w.storedCleaned(mem), (map[logdir.TopicPartition]int64{{Topic: "t", Partition: 0}: active}); !maps.Equal(got, want) {
			t.Errorf("checkpoint has %v, want %v", got, want)
		}
		state := w.set.Cleaner()
		if state.Logs != 1 || state.DirtiestRatio != 0 || state.LastRunMs == 0 || state.ReadRecords-state.KeptRecords != int64(90-len(values)) || state.WrittenBytes == 0 {
			t.Errorf("%+v", state)
		}
		stop()
		w.restart()
		w.compacted("t")
		r = w.get("t", 0)
		if got := w.scan(r); !slices.Equal(got, values) || r.cleanedTo.Load() != active {
			t.Errorf("after a restart: clean to %d, %v", r.cleanedTo.Load(), got)
		}
		stop = w.run()
		w.put(r, 20, "a", "d")
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		stop()
		if got := w.scan(r); len(got) > len(values)+10 || !slices.Contains(got, "b29") {
			t.Errorf("after more: %v", got)
		}
	})
}

// TestCleaner_CrashAfterIt_LosesNothing: what was compacted is not scanned, although no checkpoint was due.
func TestCleaner_CrashAfterIt_LosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		w := newWorld(t, mem)
		w.compacted("t")
		w.apply(topicRecords("t", topicID(1), 1)...)
		w.put(w.get("t", 0), 30, "a", "b", "c")
		stop := w.run()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		values := w.scan(w.get("t", 0))
		if err := w.get("t", 0).log().Flush(); err != nil {
			t.Fatal(err)
		}
		crashed := mem.CrashClone(vfs.CrashConfig{})
		stop()
		w.fs = crashed
		w.start()
		if got := w.scan(w.get("t", 0)); !slices.Equal(got, values) {
			t.Errorf("after a crash\n got %v\nwant %v", got, values)
		}
	})
}

// TestCleaner_DeletedMeanwhile_Stops: the folder is free for a topic of the same name, which was never compacted.
func TestCleaner_DeletedMeanwhile_Stops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		w := newWorld(t, mem)
		change := w.compacted("t")
		w.apply(topicRecords("t", topicID(1), 1)...)
		r := w.get("t", 0)
		w.put(r, 20, "a", "b")
		stop := w.run()
		defer stop()
		time.Sleep(1500 * time.Millisecond)
		w.put(r, 20, "a", "b")
		change(1, 1) // the rest takes hours
		time.Sleep(5 * time.Second)
		began := time.Now()
		w.apply(&logrecord.RemoveTopicRecord{TopicID: topicID(1)})
		if took := time.Since(began); took > time.Second {
			t.Errorf("deletion took %v", took)
		}
		w.apply(topicRecords("t", topicID(3), 1)...)
		if got := w.storedCleaned(mem); len(got) != 0 {
			t.Errorf("checkpoint has %v", got)
		}
		r = w.get("t", 0)
		w.put(r, 20, "a", "b")
		if got := w.scan(r); len(got) != 40 {
			t.Errorf("%d records", len(got))
		}
		entries, err := mem.ReadDir("/d1/t-0")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".cleaned") {
				t.Errorf("%s", e.Name())
			}
		}
	})
}

// TestCleaner_DamagedLog_IsUncleanable: it is reported, left alone, and the others go on.
func TestCleaner_DamagedLog_IsUncleanable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		w := newWorld(t, mem)
		w.compacted("bad", "good")
		w.apply(append(topicRecords("bad", topicID(1), 1), topicRecords("good", topicID(2), 1)...)...)
		w.put(w.get("bad", 0), 40, "a", "b")
		w.put(w.get("good", 0), 20, "a", "b")
		f, err := mem.OpenFile("/d1/bad-0/00000000000000000000.log", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{'!'}, record.HeaderBytes+5); err != nil {
			t.Fatal(err)
		}
		stop := w.run()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if state := w.set.Cleaner(); state.Uncleanable["/d1"] != 1 || state.Logs != 1 {
			t.Errorf("%+v", state)
		}
		if n := len(w.scan(w.get("good", 0))); n >= 40 {
			t.Errorf("%d records are left of the good log", n)
		}
		if len(w.failed) > 0 {
			t.Errorf("%v", w.failed)
		}
		w.apply(&logrecord.RemoveTopicRecord{TopicID: topicID(1)})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if state := w.set.Cleaner(); state.Uncleanable["/d1"] != 0 {
			t.Errorf("after its deletion: %+v", state)
		}
		stop()
	})
}

// TestCleaner_ThreadsFollowTheSetting: also while they run; with none nothing is compacted.
func TestCleaner_ThreadsFollowTheSetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, vfs.NewMem())
		change := w.compacted("a", "b", "c")
		change(0, 1)
		for i, name := range []string{"a", "b", "c"} {
			w.apply(topicRecords(name, topicID(byte(i+1)), 1)...)
			w.put(w.get(name, 0), 20, "k")
		}
		stop := w.run()
		busy := func() int {
			synctest.Wait()
			w.set.cleaner.mu.Lock()
			defer w.set.cleaner.mu.Unlock()
			return len(w.set.cleaner.mu.busy)
		}
		time.Sleep(3 * time.Second)
		if n := busy(); n != 0 {
			t.Errorf("%d logs are being compacted without a thread", n)
		}
		change(2, 1)
		time.Sleep(3 * time.Second)
		if n := busy(); n != 2 {
			t.Errorf("%d logs are being compacted by two threads", n)
		}
		change(0, math.MaxFloat64)
		time.Sleep(5 * time.Hour) // what was spent at the lower rate has been paid for
		if n, logs := busy(), w.set.Cleaner().Logs; n != 0 || logs != 2 {
			t.Errorf("%d logs are being compacted, %d were, after the threads were stopped", n, logs)
		}
		change(1, math.MaxFloat64)
		time.Sleep(3 * time.Second)
		if logs := w.set.Cleaner().Logs; busy() != 0 || logs != 3 {
			t.Errorf("%d logs were compacted", logs)
		}
		stop()
	})
}

// TestCleaner_DiskTrouble: a full disk passes, a broken one takes the directory offline.
func TestCleaner_DiskTrouble(t *testing.T) {
	for _, c := range []struct {
		about   string
		err     error
		offline bool
	}{{"full", syscall.ENOSPC, false}, {"broken", syscall.EIO, true}} {
		t.Run(c.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var trouble atomic.Bool
				faults := errorfs.Wrap(vfs.NewMem(), func(op errorfs.Op, path string, _ int) error {
					if trouble.Load() && op == errorfs.OpWrite && strings.HasSuffix(path, ".cleaned") {
						return c.err
					}
					return nil
				})
				w := newWorld(t, faults, "/d1", "/d2")
				w.compacted("t")
				w.apply(topicRecords("t", topicID(1), 1)...)
				w.put(w.get("t", 0), 20, "a", "b")
				trouble.Store(true)
				stop := w.run()
				defer stop()
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if offline := len(w.failed) > 0; offline != c.offline {
					t.Fatalf("failed: %v", w.failed)
				}
				if c.offline {
					return
				}
				w.put(w.get("t", 0), 1, "c")
				trouble.Store(false)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if n := len(w.scan(w.get("t", 0))); n >= 41 || w.set.Cleaner().Logs == 0 {
					t.Errorf("%d records when there is space again", n)
				}
			})
		})
	}
}
