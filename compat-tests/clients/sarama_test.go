package clients

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"sluice/compat-tests/sluicetest"
)

func saramaClient(t *testing.T, j job) {
	config := func() *sarama.Config {
		c := sarama.NewConfig()
		c.Version = sarama.V4_0_0_0
		c.Consumer.Offsets.Initial = sarama.OffsetOldest
		c.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
		c.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
		return c
	}
	admin, err := sarama.NewClusterAdmin([]string{j.bootstrap}, config())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := admin.CreateTopic(j.topic, &sarama.TopicDetail{NumPartitions: 6, ReplicationFactor: 1}, false); err != nil {
		t.Fatalf("create: %v", err)
	}

	codecs := []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD}
	produce := func(codec sarama.CompressionCodec, count int, prefix string) {
		t.Helper()
		c := config()
		c.Producer.Compression = codec
		c.Producer.Idempotent = true
		c.Producer.RequiredAcks = sarama.WaitForAll
		c.Producer.Return.Successes = true
		c.Net.MaxOpenRequests = 1
		p, err := sarama.NewSyncProducer([]string{j.bootstrap}, c)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		messages := make([]*sarama.ProducerMessage, count)
		for i := range messages {
			messages[i] = &sarama.ProducerMessage{Topic: j.topic, Key: sarama.StringEncoder(fmt.Sprintf("k%d", i)), Value: sarama.StringEncoder(fmt.Sprintf("%s-%d", prefix, i))}
		}
		if err := p.SendMessages(messages); err != nil {
			t.Fatalf("produce %s: %v", prefix, err)
		}
	}
	for _, codec := range codecs {
		produce(codec, j.records, codec.String())
	}

	total := j.records * len(codecs)
	seen := &saramaMember{values: newValues(), wake: make(chan struct{}, 1)}
	first, second := seen.join(t, j, config(), "first"), (func())(nil)
	seen.until(t, func() bool { return seen.len() > total/3 })
	second = seen.join(t, j, config(), "second")
	seen.until(t, func() bool { return seen.len() == total && seen.claims["first"] == 3 && seen.claims["second"] == 3 })
	first()
	second()
	for _, codec := range codecs {
		seen.wantAll(t, codec.String(), j.records)
	}

	produce(sarama.CompressionNone, 100, "resumed")
	resumed := &saramaMember{values: newValues(), wake: make(chan struct{}, 1)}
	third := resumed.join(t, j, config(), "third")
	resumed.until(t, func() bool { return resumed.len() >= 100 })
	third()
	resumed.wantOnly(t, "resumed-")

	cl, err := sarama.NewClient([]string{j.bootstrap}, config())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	sum := int64(0)
	for p := range int32(6) {
		if offset, err := cl.GetOffset(j.topic, p, 1); err != nil || offset != 0 {
			t.Errorf("time 1 is offset %d of partition %d (%v)", offset, p, err)
		}
		end, err := cl.GetOffset(j.topic, p, sarama.OffsetNewest)
		if err != nil {
			t.Fatal(err)
		}
		sum += end
	}
	if sum != int64(total+100) {
		t.Errorf("end offsets add up to %d, want %d", sum, total+100)
	}
	if err := admin.DeleteTopic(j.topic); err != nil {
		t.Fatalf("delete: %v", err)
	}
	sluicetest.Eventually(t, 10*time.Second, func(context.Context) error {
		topics, err := admin.ListTopics()
		if _, listed := topics[j.topic]; err == nil && listed {
			err = errors.New("the topic is still listed")
		}
		return err
	})
}

// saramaMember collects what the members of a sarama group consume, and how many partitions each holds.
type saramaMember struct {
	mu     sync.Mutex
	claims map[string]int
	wake   chan struct{}
	*values
}

// join starts a member; the function returned leaves the group.
func (m *saramaMember) join(t *testing.T, j job, c *sarama.Config, name string) func() {
	t.Helper()
	group, err := sarama.NewConsumerGroup([]string{j.bootstrap}, j.group, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := group.Consume(ctx, []string{j.topic}, &saramaHandler{m, name}); err != nil && ctx.Err() == nil {
				t.Errorf("consume: %v", err)
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
		if err := group.Close(); err != nil {
			t.Errorf("leave: %v", err)
		}
	}
}

func (m *saramaMember) until(t *testing.T, condition func() bool) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	for {
		m.mu.Lock()
		ok := condition()
		m.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-m.wake:
		case <-limit:
			t.Fatalf("gave up with %d records, claims %v", m.len(), m.claims)
		}
	}
}

func (m *saramaMember) note(change func()) {
	m.mu.Lock()
	change()
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

type saramaHandler struct {
	*saramaMember
	name string
}

func (h *saramaHandler) Setup(s sarama.ConsumerGroupSession) error {
	h.note(func() {
		if h.claims == nil {
			h.claims = map[string]int{}
		}
		h.claims[h.name] = 0
		for _, partitions := range s.Claims() {
			h.claims[h.name] += len(partitions)
		}
	})
	return nil
}

func (h *saramaHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h *saramaHandler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		h.note(func() { h.add(string(message.Value)) })
		s.MarkMessage(message, "")
	}
	return nil
}
