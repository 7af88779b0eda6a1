package durability

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

// TestV28_RetentionNeverMovesOffsets writes to a topic that keeps a second and to one that keeps two segments, while old segments go. What
// survives keeps its offset, ends never fall, consumers behind the start are reset and go on, and a restart shows the same.
func TestV28_RetentionNeverMovesOffsets(t *testing.T) {
	p := sluicetest.Start(t, "--set", "log.retention.check.interval.ms=1000", "--set", "log.initial.task.delay.ms=100", "--set", "log.segment.delete.delay.ms=500")
	topics := map[string][]string{
		"by-time": {"segment.bytes", "1048576", "retention.ms", "1000", "segment.ms", "100000000"},
		"by-size": {"segment.bytes", "1048576", "retention.bytes", "2097152", "retention.ms", "-1"},
	}
	for topic, configs := range topics {
		createTopic(t, p.Address, topic, 1, configs...)
	}
	const valueBytes = 20_000
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	// Two seconds and more of writing, until segments have gone from both; every end that is seen is at least the one before.
	writer := open(t, p.Address, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	reader := make(chan error, len(topics))
	done := make(chan struct{})
	for topic := range topics {
		go func() { reader <- follow(t, ctx, p.Address, topic, valueBytes, done) }()
	}
	next := map[string]int64{}
	starts, ends := map[string]int64{}, map[string]int64{}
	adm := kadm.NewClient(open(t, p.Address))
	for began := time.Now(); time.Since(began) < 3*time.Second || starts["by-time"] == 0 || starts["by-size"] == 0; {
		for topic := range topics {
			offset := next[topic]
			r := writer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: valueOf(offset, valueBytes)})[0]
			if r.Err != nil || r.Record.Offset != offset {
				t.Fatalf("%s: offset %d was acknowledged as %d: %v", topic, offset, r.Record.Offset, r.Err)
			}
			next[topic]++
		}
		if next["by-time"]%20 == 0 {
			watch(t, ctx, adm, topics, starts, ends)
		}
	}
	close(done)
	for range topics {
		if err := <-reader; err != nil {
			t.Error(err)
		}
	}

	// Written no more, all of by-time expires, the last segment too; by-size keeps two segments or a little more.
	sluicetest.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		watch(t, ctx, adm, topics, starts, ends)
		if starts["by-time"] != ends["by-time"] {
			return fmt.Errorf("by-time has %d to %d", starts["by-time"], ends["by-time"])
		}
		return nil
	})
	if ends["by-time"] != next["by-time"] || ends["by-size"] != next["by-size"] {
		t.Errorf("ends are %v, want %v", ends, next)
	}
	if kept := ends["by-size"] - starts["by-size"]; kept < 2<<20/valueBytes-60 || kept > 4<<20/valueBytes {
		t.Errorf("by-size keeps %d records of %d bytes, want about two segments of 1 MiB", kept, valueBytes)
	}
	checkLog(t, p.Address, "by-size", starts["by-size"], ends["by-size"], valueBytes)

	// A fetch below the start fails, for that partition only, and says where the log starts.
	partitions := fetchBoth(t, ctx, p.Address, "by-size", starts["by-size"]-1, "by-time", ends["by-time"])
	if got := partitions["by-size"]; got.ErrorCode != kerr.OffsetOutOfRange.Code || got.LogStartOffset != starts["by-size"] && got.LogStartOffset != -1 {
		t.Errorf("below the start: error %d, log start offset %d", got.ErrorCode, got.LogStartOffset)
	}
	if got := partitions["by-time"]; got.ErrorCode != 0 || got.LogStartOffset != ends["by-time"] {
		t.Errorf("the other partition: error %d, log start offset %d", got.ErrorCode, got.LogStartOffset)
	}

	beforeStarts, beforeEnds := maps.Clone(starts), maps.Clone(ends)
	for _, restart := range []func(){p.Restart, func() { p.Kill(); p.Launch(); p.WaitReady() }} {
		restart()
		adm = kadm.NewClient(open(t, p.Address))
		watch(t, ctx, adm, topics, starts, ends)
		if !maps.Equal(starts, beforeStarts) || !maps.Equal(ends, beforeEnds) {
			t.Errorf("after a restart logs are from %v to %v, were from %v to %v", starts, ends, beforeStarts, beforeEnds)
		}
		checkLog(t, p.Address, "by-size", starts["by-size"], ends["by-size"], valueBytes)
	}
	verifyDirectory(t, p, p.DataDir)
}

// watch asks for the bounds of all topics. None may fall.
func watch[V any](t *testing.T, ctx context.Context, adm *kadm.Client, topics map[string]V, starts, ends map[string]int64) {
	t.Helper()
	for topic := range topics {
		s, err1 := adm.ListStartOffsets(ctx, topic)
		e, err2 := adm.ListEndOffsets(ctx, topic)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		start, _ := s.Lookup(topic, 0)
		end, _ := e.Lookup(topic, 0)
		if start.Err != nil || end.Err != nil || start.Offset < starts[topic] || end.Offset < ends[topic] {
			t.Fatalf("%s: from %d to %d after %d to %d (%v %v)", topic, start.Offset, end.Offset, starts[topic], ends[topic], start.Err, end.Err)
		}
		starts[topic], ends[topic] = start.Offset, end.Offset
	}
}

// follow consumes slowly, so that the log's start overtakes it, until done: every record has the value of its offset.
func follow(t *testing.T, ctx context.Context, address, topic string, valueBytes int, done <-chan struct{}) error {
	cl := open(t, address, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxPartitionBytes(int32(valueBytes)), kgo.FetchMaxBytes(int32(valueBytes)))
	var failed error
	var once sync.Once
	last := int64(-1)
	pace := time.NewTicker(40 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-done:
			return failed
		case <-pace.C:
		}
		poll, cancel := context.WithTimeout(ctx, time.Second)
		fetches := cl.PollRecords(poll, 1)
		cancel()
		fetches.EachError(func(topic string, partition int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) {
				once.Do(func() { failed = fmt.Errorf("consume %s-%d: %w", topic, partition, err) })
			}
		})
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset <= last || string(r.Value) != string(valueOf(r.Offset, valueBytes)) {
				once.Do(func() { failed = fmt.Errorf("%s: offset %d after %d has %.30q", topic, r.Offset, last, r.Value) })
			}
			last = r.Offset
		})
	}
}

// fetchBoth sends one Fetch of two partitions.
func fetchBoth(t *testing.T, ctx context.Context, address, topic1 string, offset1 int64, topic2 string, offset2 int64) map[string]kmsg.FetchResponseTopicPartition {
	t.Helper()
	request := kmsg.NewPtrFetchRequest()
	request.MaxBytes = 1 << 20
	for topic, offset := range map[string]int64{topic1: offset1, topic2: offset2} {
		partition := kmsg.NewFetchRequestTopicPartition()
		partition.FetchOffset, partition.PartitionMaxBytes = offset, 1<<20
		request.Topics = append(request.Topics, kmsg.FetchRequestTopic{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{partition}})
	}
	c := sluicetest.Dial(t, address)
	response := sluicetest.Ask[*kmsg.FetchResponse](c, request, 12)
	answers := map[string]kmsg.FetchResponseTopicPartition{}
	for _, topic := range response.Topics {
		answers[topic.Topic] = topic.Partitions[0]
	}
	return answers
}
