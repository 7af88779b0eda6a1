package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"sluice/compat-tests/sluicetest"
)

// kafkaGo does the job with segmentio's client, which has no idempotent producer.
func kafkaGo(t *testing.T, j job) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cl := &kafka.Client{Addr: kafka.TCP(j.bootstrap), Timeout: 20 * time.Second}
	created, err := cl.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: j.topic, NumPartitions: 6, ReplicationFactor: 1}}})
	if err != nil || created.Errors[j.topic] != nil {
		t.Fatalf("create: %v, %v", err, created)
	}

	codecs := []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd}
	produce := func(codec kafka.Compression, count int, prefix string) {
		t.Helper()
		w := &kafka.Writer{Addr: kafka.TCP(j.bootstrap), Topic: j.topic, Balancer: &kafka.Hash{}, Compression: codec, RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond, BatchSize: 500}
		defer w.Close()
		messages := make([]kafka.Message, count)
		for i := range messages {
			messages[i] = kafka.Message{Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "%s-%d", prefix, i)}
		}
		if err := w.WriteMessages(ctx, messages...); err != nil {
			t.Fatalf("produce %s: %v", prefix, err)
		}
	}
	for _, codec := range codecs {
		produce(codec, j.records, fmt.Sprintf("codec%d", codec))
	}

	total := j.records * len(codecs)
	// A reader joins, reads until enough was seen by all of them, and leaves.
	var mu sync.Mutex
	// The first one waits, once it has a third, until the second has joined and read.
	second := make(chan struct{})
	var secondOnce sync.Once
	consume := func(into *values, enough func() bool, half chan<- struct{}) error {
		r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{j.bootstrap}, GroupID: j.group, Topic: j.topic, StartOffset: kafka.FirstOffset,
			HeartbeatInterval: 500 * time.Millisecond, SessionTimeout: 10 * time.Second, MaxWait: 100 * time.Millisecond, CommitInterval: 100 * time.Millisecond})
		defer r.Close()
		var once sync.Once
		for {
			wait, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			m, err := r.FetchMessage(wait)
			cancel()
			mu.Lock()
			if err == nil {
				into.add(string(m.Value))
			}
			done, seen := enough(), into.len()
			mu.Unlock()
			if err == nil {
				if err := r.CommitMessages(ctx, m); err != nil {
					return fmt.Errorf("commit: %w", err)
				}
			} else if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, io.EOF) {
				return err
			}
			if half != nil && seen > total/3 {
				once.Do(func() {
					close(half)
					select {
					case <-second:
					case <-ctx.Done():
					}
				})
			}
			if half == nil && err == nil {
				secondOnce.Do(func() { close(second) })
			}
			if done {
				return nil
			}
			if ctx.Err() != nil {
				return fmt.Errorf("gave up with %d records: %w", seen, ctx.Err())
			}
		}
	}
	seen := newValues()
	all := func() bool { return seen.len() >= total }
	half, ended := make(chan struct{}), make(chan error, 2)
	go func() { ended <- consume(seen, all, half) }()
	select {
	case <-half:
	case err := <-ended:
		t.Fatalf("the first reader ended: %v", err)
	}
	go func() { ended <- consume(seen, all, nil) }()
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatalf("reader: %v", err)
		}
	}
	for _, codec := range codecs {
		seen.wantAll(t, fmt.Sprintf("codec%d", codec), j.records)
	}

	produce(0, 100, "resumed")
	resumed := newValues()
	if err := consume(resumed, func() bool { return resumed.len() >= 100 }, nil); err != nil {
		t.Fatalf("resume: %v", err)
	}
	resumed.wantOnly(t, "resumed-")

	var ask []kafka.OffsetRequest
	for p := range 6 {
		ask = append(ask, kafka.FirstOffsetOf(p), kafka.LastOffsetOf(p), kafka.TimeOffsetOf(p, time.UnixMilli(1)))
	}
	listed, err := cl.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{j.topic: ask}})
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, p := range listed.Topics[j.topic] {
		if p.Error != nil || p.FirstOffset != 0 {
			t.Errorf("partition %d: first offset %d, %v", p.Partition, p.FirstOffset, p.Error)
		}
		sum += p.LastOffset
	}
	if sum != int64(total+100) {
		t.Errorf("end offsets add up to %d, want %d", sum, total+100)
	}
	deleted, err := cl.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{j.topic}})
	if err != nil || deleted.Errors[j.topic] != nil {
		t.Fatalf("delete: %v, %v", err, deleted)
	}
	sluicetest.Eventually(t, 10*time.Second, func(ctx context.Context) error {
		metadata, err := cl.Metadata(ctx, &kafka.MetadataRequest{})
		if err != nil {
			return err
		}
		for _, topic := range metadata.Topics {
			if topic.Name == j.topic {
				return errors.New("the topic is still listed")
			}
		}
		return nil
	})
}
