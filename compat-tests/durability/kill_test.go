// Package durability ends the broker as kill -9 does while clients work, and checks what they were promised.
package durability

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/compat-tests/sluicetest"
)

var (
	rounds = flag.Int("rounds", 5, "how many times the broker is killed")
	seed   = flag.Uint64("seed", 0, "chooses the moments; 0 takes one from the clock and prints it")
)

const (
	topic      = "kill"
	group      = "kill-group"
	partitions = 4
)

// ledger is what the broker has promised so far.
type ledger struct {
	mu        sync.Mutex
	acked     [partitions]map[int64]string // offset → value
	committed [partitions]int64            // the last offset whose commit was answered
	acks      atomic.Int64
	progress  chan struct{}
}

// TestV30_KillNine kills the broker at random moments under idempotent writers with acks=all and a consumer that commits. Every acknowledged
// record must be at its offset, no record may be there twice, and no committed offset may be lost.
func TestV30_KillNine(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("%d rounds, -seed %d", *rounds, *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	p := sluicetest.Start(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	adm := kadm.NewClient(open(t, p.Address))
	if _, err := adm.CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	l := &ledger{progress: make(chan struct{}, 1)}
	var work sync.WaitGroup
	for partition := range partitions {
		l.acked[partition] = map[int64]string{}
		work.Go(func() { l.write(ctx, t, p.Address, int32(partition)) })
	}
	consumed := make(chan struct{})
	go func() { defer close(consumed); l.consume(ctx, t, p.Address) }()

	start := time.Now()
	for round := range *rounds {
		target := l.acks.Load() + 50 + random.Int64N(3000)
		limit := time.After(time.Minute)
		for l.acks.Load() < target {
			select {
			case <-l.progress:
			case <-limit:
				t.Fatalf("round %d: the writers made no progress for a minute\n%s", round, p.Output())
			}
		}
		p.Kill()
		promised := l.promisedCommits()
		p.Launch()
		p.WaitReady()
		l.checkCommits(ctx, t, adm, promised)
		if t.Failed() {
			t.Fatalf("after round %d, -seed %d", round, *seed)
		}
		if round%10 == 9 {
			t.Logf("round %d: %d records acknowledged, %v", round+1, l.acks.Load(), time.Since(start).Round(time.Second))
		}
	}
	stop()
	work.Wait()
	<-consumed
	l.checkRecords(t, p.Address)
	t.Logf("%d rounds, %d records acknowledged, %v", *rounds, l.acks.Load(), time.Since(start).Round(time.Second))
}

func open(t *testing.T, address string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(address), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond })}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// write produces numbered values to one partition until the context ends, and notes each acknowledgement.
func (l *ledger) write(ctx context.Context, t *testing.T, address string, partition int32) {
	cl := open(t, address, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MaxBufferedRecords(200), kgo.ProducerLinger(0))
	for number := 0; ctx.Err() == nil; number++ {
		value := strconv.Itoa(number)
		cl.Produce(ctx, &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}, func(r *kgo.Record, err error) {
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("partition %d, value %s: %v", partition, value, err)
				}
				return
			}
			l.mu.Lock()
			if before, taken := l.acked[partition][r.Offset]; taken {
				t.Errorf("partition %d: offset %d was acknowledged for %s and for %s", partition, r.Offset, before, value)
			}
			l.acked[partition][r.Offset] = value
			l.mu.Unlock()
			l.acks.Add(1)
			select {
			case l.progress <- struct{}{}:
			default:
			}
		})
	}
	_ = cl.Flush(context.WithoutCancel(ctx))
}

// consume reads in a group and commits what it has read, as often as it can.
func (l *ledger) consume(ctx context.Context, t *testing.T, address string) {
	cl := open(t, address, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for ctx.Err() == nil {
		fetches := cl.PollRecords(ctx, 500)
		if fetches.NumRecords() == 0 {
			continue
		}
		offsets := cl.UncommittedOffsets()
		if err := cl.CommitUncommittedOffsets(ctx); err != nil {
			continue // the broker may be gone at this very moment: nothing was promised
		}
		l.mu.Lock()
		for partition, offset := range offsets[topic] {
			l.committed[partition] = max(l.committed[partition], offset.Offset)
		}
		l.mu.Unlock()
	}
}

func (l *ledger) promisedCommits() [partitions]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.committed
}

// checkCommits asks for the group's offsets: none may lie before one that had been answered.
func (l *ledger) checkCommits(ctx context.Context, t *testing.T, adm *kadm.Client, promised [partitions]int64) {
	t.Helper()
	sluicetest.Eventually(t, 20*time.Second, func(ctx context.Context) error {
		offsets, err := adm.FetchOffsets(ctx, group)
		if err != nil {
			return err
		}
		for partition, want := range promised {
			got, ok := offsets.Lookup(topic, int32(partition))
			if want > 0 && (!ok || got.At < want) {
				t.Errorf("partition %d: offset %d was committed, the group has %d", partition, want, got.At)
			}
		}
		return nil
	})
}

// checkRecords reads each partition to its end and compares it with what was acknowledged.
func (l *ledger) checkRecords(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	adm := kadm.NewClient(open(t, address))
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	cl := open(t, address, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	var found [partitions]map[string]int64
	next := [partitions]int64{}
	for partition := range found {
		found[partition] = map[string]int64{}
	}
	done := func() bool {
		for partition, offset := range next {
			if end, ok := ends.Lookup(topic, int32(partition)); !ok || offset < end.Offset {
				return false
			}
		}
		return true
	}
	for !done() {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			value := string(r.Value)
			if before, twice := found[r.Partition][value]; twice {
				t.Errorf("partition %d: value %s is at offset %d and at %d", r.Partition, value, before, r.Offset)
			}
			found[r.Partition][value] = r.Offset
			if r.Offset != next[r.Partition] {
				t.Errorf("partition %d: a hole from %d to %d", r.Partition, next[r.Partition], r.Offset)
			}
			next[r.Partition] = r.Offset + 1
		})
	}
	for partition := range found {
		lost := maps.Clone(l.acked[partition])
		for value, offset := range found[partition] {
			if acked, ok := lost[offset]; ok && acked == value {
				delete(lost, offset)
			}
		}
		if len(lost) > 0 {
			t.Errorf("partition %d: %d of %d acknowledged records are not at their offsets: %s …", partition, len(lost), len(l.acked[partition]), example(lost))
		}
	}
}

func example(lost map[int64]string) string {
	for offset, value := range lost {
		return fmt.Sprintf("value %s at offset %d", value, offset)
	}
	return ""
}
