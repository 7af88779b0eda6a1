package clients

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/compat-tests/sluicetest"
)

func franzGo(t *testing.T, j job) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	open := func(opts ...kgo.Opt) *kgo.Client {
		t.Helper()
		cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(j.bootstrap)}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cl.Close)
		return cl
	}
	adm := kadm.NewClient(open())
	if _, err := adm.CreateTopic(ctx, 6, 1, nil, j.topic); err != nil {
		t.Fatalf("create: %v", err)
	}

	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	produce := func(codec kgo.CompressionCodec, count int, prefix string) {
		t.Helper()
		p := open(kgo.DefaultProduceTopic(j.topic), kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(5*time.Millisecond))
		records := make([]*kgo.Record, count)
		for i := range records {
			records[i] = &kgo.Record{Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "%s-%d", prefix, i)}
		}
		if err := p.ProduceSync(ctx, records...).FirstErr(); err != nil {
			t.Fatalf("produce %s: %v", prefix, err)
		}
	}
	for name, codec := range codecs {
		produce(codec, j.records, name)
	}

	seen := newValues()
	consumer := func() *kgo.Client {
		return open(kgo.ConsumerGroup(j.group), kgo.ConsumeTopics(j.topic), kgo.DisableAutoCommit(), kgo.HeartbeatInterval(500*time.Millisecond),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll())
	}
	poll := func(cl *kgo.Client, into *values) {
		t.Helper()
		wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		fetches := cl.PollRecords(wait, 500)
		fetches.EachRecord(func(r *kgo.Record) { into.add(string(r.Value)) })
		fetches.EachError(func(topic string, partition int32, err error) {
			if wait.Err() == nil {
				t.Errorf("fetch %s-%d: %v", topic, partition, err)
			}
		})
		if err := cl.CommitUncommittedOffsets(ctx); err != nil {
			t.Errorf("commit: %v", err)
		}
		cl.AllowRebalance()
	}
	members := func() (counts []int) {
		described, err := adm.DescribeGroups(ctx, j.group)
		if err != nil {
			t.Fatalf("describe group: %v", err)
		}
		for _, m := range described[j.group].Members {
			if assigned, ok := m.Assigned.AsConsumer(); ok {
				for _, topic := range assigned.Topics {
					counts = append(counts, len(topic.Partitions))
				}
			}
		}
		return counts
	}
	total := j.records * len(codecs)
	first := consumer()
	var second *kgo.Client
	for split := false; seen.len() < total || !split; {
		if ctx.Err() != nil {
			t.Fatalf("only %d of %d records", seen.len(), total)
		}
		poll(first, seen)
		if second == nil && seen.len() > total/3 {
			second = consumer()
		}
		if second != nil {
			poll(second, seen)
			counts := members()
			split = split || len(counts) == 2 && counts[0] == 3 && counts[1] == 3
		}
	}
	first.Close()
	second.Close()
	for name := range codecs {
		seen.wantAll(t, name, j.records)
	}

	produce(kgo.NoCompression(), 100, "resumed")
	resumed := newValues()
	third := consumer()
	for resumed.len() < 100 {
		if ctx.Err() != nil {
			t.Fatalf("resumed with %d of 100", resumed.len())
		}
		poll(third, resumed)
	}
	third.Close()
	resumed.wantOnly(t, "resumed-")

	early, err := adm.ListOffsetsAfterMilli(ctx, 0, j.topic)
	if err != nil || early.Error() != nil {
		t.Fatalf("offsets by time: %v, %v", err, early.Error())
	}
	early.Each(func(o kadm.ListedOffset) {
		if o.Offset != 0 {
			t.Errorf("time 0 is offset %d of partition %d", o.Offset, o.Partition)
		}
	})
	ends, err := adm.ListEndOffsets(ctx, j.topic)
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	if sum != int64(total+100) {
		t.Errorf("end offsets add up to %d, want %d", sum, total+100)
	}
	if _, err := adm.DeleteTopic(ctx, j.topic); err != nil {
		t.Fatalf("delete: %v", err)
	}
	sluicetest.Eventually(t, 10*time.Second, func(ctx context.Context) error {
		topics, err := adm.ListTopics(ctx)
		if err == nil && topics.Has(j.topic) {
			err = errors.New("the topic is still listed")
		}
		return err
	})
}

// values is the set of record values that a job has seen.
type values struct{ set map[string]bool }

func newValues() *values            { return &values{set: map[string]bool{}} }
func (v *values) add(value string)  { v.set[value] = true }
func (v *values) len() int          { return len(v.set) }
func (v *values) has(s string) bool { return v.set[s] }

func (v *values) wantAll(t *testing.T, prefix string, count int) {
	t.Helper()
	for i := range count {
		if value := fmt.Sprintf("%s-%d", prefix, i); !v.has(value) {
			t.Fatalf("lost %s", value)
		}
	}
}

func (v *values) wantOnly(t *testing.T, prefix string) {
	t.Helper()
	for value := range v.set {
		if !strings.HasPrefix(value, prefix) {
			t.Fatalf("an old record came back: %s", value)
		}
	}
}
