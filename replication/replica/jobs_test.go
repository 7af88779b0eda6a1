package replica

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"sluice/protocol/record"
	"sluice/storage/checkpoint"
	"sluice/storage/logdir"
	"sluice/storage/vfs"
)

// TestRun_WritesCheckpointsAtTheirIntervals also checks that an idle broker writes none.
func TestRun_WritesCheckpointsAtTheirIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		w := newWorld(t, mem)
		w.set.options.Broker = func() *BrokerConfig {
			return &BrokerConfig{
				RecoveryThreads: 1, FlushSchedulerIntervalMs: 1 << 62, FlushOffsetCheckpointIntervalMs: 60_000, FlushStartOffsetCheckpointIntervalMs: 60_000,
				RetentionCheckIntervalMs: 300_000, InitialTaskDelayMs: 30_000, HighWatermarkCheckpointIntervalMs: 5000,
				ProducerIDExpirationCheckIntervalMs: 600_000, FileDeleteDelayMs: 60_000,
			}
		}
		w.apply(topicRecords("t", topicID(1), 1)...)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.set.Run(ctx) }()
		stored := func(file string) map[logdir.TopicPartition]int64 {
			got, err := checkpoint.ReadOffsets(mem, "/d1/"+file)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		is := func(file string, want map[logdir.TopicPartition]int64) {
			t.Helper()
			if got := stored(file); !maps.Equal(got, want) {
				t.Errorf("%s has %v, want %v", file, got, want)
			}
		}
		at := func(offset int64) map[logdir.TopicPartition]int64 {
			return map[logdir.TopicPartition]int64{{Topic: "t", Partition: 0}: offset}
		}
		r := w.get("t", 0)
		w.append(r, "a", "b")
		time.Sleep(5001 * time.Millisecond)
		synctest.Wait()
		is(checkpoint.HighWatermarkFile, at(2))
		is(checkpoint.RecoveryPointFile, nil)
		if _, _, err := r.DeleteRecords(1); err != nil {
			t.Fatal(err)
		}
		if err := r.log().Flush(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Second)
		synctest.Wait()
		is(checkpoint.RecoveryPointFile, at(2))
		is(checkpoint.LogStartOffsetFile, at(1))

		if err := mem.Remove("/d1/" + checkpoint.HighWatermarkFile); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		is(checkpoint.HighWatermarkFile, nil) // nothing has changed, so nothing was written
		w.append(r, "c")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		is(checkpoint.HighWatermarkFile, at(3))
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("Run ended with %v", err)
		}
	})
}

func TestRun_RetainsAndForgetsProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, vfs.NewMem())
		w.nowMs = time.Now().UnixMilli()
		config := w.config("t")
		config.Log.RetentionMs, config.Log.SegmentMs = 1000, 1000
		w.configs["t"] = config
		w.apply(topicRecords("t", topicID(1), 1)...)
		r := w.get("t", 0)
		old := record.NewBuilder(record.BuilderOptions{ProducerID: 7, BaseSequence: 0, LeaderEpoch: record.NoLeaderEpoch})
		old.Add(record.Record{TimestampMs: w.nowMs, Value: []byte("old")})
		b, err := old.Build()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Append(b, anyone, record.Client, w.nowMs); err != nil {
			t.Fatal(err)
		}
		producers := func() int {
			found, err := r.ActiveProducers(w.nowMs)
			if err != nil {
				t.Fatal(err)
			}
			return len(found)
		}
		if producers() != 1 {
			t.Fatal("the producer is not known")
		}
		w.nowMs += 10_000
		before := w.changed.of(r)
		w.set.retain()
		if r.LogStartOffset() != 1 || r.LogEndOffset() != 1 || r.HighWatermark() != 1 || producers() != 1 {
			t.Errorf("after retention: start %d, end %d, high watermark %d, %d producers", r.LogStartOffset(), r.LogEndOffset(), r.HighWatermark(), producers())
		}
		if w.changed.of(r) == before {
			t.Error("nobody was told that the log starts later")
		}
		w.set.expireProducers()
		if producers() != 1 {
			t.Error("the producer is forgotten before a day has passed")
		}
		w.expirationMs = 5_000 // producer.id.expiration.ms can be changed while the broker runs
		w.set.expireProducers()
		if producers() != 0 {
			t.Error("the producer is still known after the new time")
		}
	})
}
