package durability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/compat-tests/sluicetest"
)

const (
	pairsTopic  = "pairs"  // every transaction writes its name to two partitions
	inputTopic  = "input"  // numbered records
	outputTopic = "output" // the input, copied in transactions together with the group's offsets
	inputs      = 3000
)

// pairs is what is known of the transactions that write pairs.
type pairs struct {
	mu       sync.Mutex
	decided  map[string]bool // name → committed, as the broker answered; a name that is missing was never answered
	finished atomic.Int64
}

// TestTransactions_KillNine kills the broker at random moments under transactions. A transaction that was committed is there as a whole, one that
// was aborted is not there at all, and any other is one of the two; each input record is in the output exactly once. Nothing hangs.
func TestTransactions_KillNine(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("%d rounds, -seed %d", *rounds, *seed)
	random := rand.New(rand.NewPCG(*seed, 1))
	p := sluicetest.Start(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	adm := kadm.NewClient(open(t, p.Address))
	for _, topic := range []string{pairsTopic, inputTopic, outputTopic} {
		if _, err := adm.CreateTopic(ctx, 2, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	fillInput(ctx, t, p.Address)

	var work sync.WaitGroup
	written := pairs{decided: map[string]bool{}}
	for i := range 3 {
		work.Go(func() {
			written.write(ctx, t, p.Address, fmt.Sprintf("pairs-%d", i), rand.New(rand.NewPCG(*seed, uint64(i)+2)))
		})
	}
	copied := make(chan struct{})
	go func() { defer close(copied); copyInput(ctx, t, p.Address) }()

	for round := range *rounds {
		target := written.finished.Load() + 20 + random.Int64N(300)
		sluicetest.Until(t, time.Minute, fmt.Sprintf("progress in round %d", round), func() bool { return written.finished.Load() >= target })
		p.Kill()
		p.Launch()
		p.WaitReady()
	}
	sluicetest.Until(t, 2*time.Minute, "the copy", func() bool { return committedInputs(ctx, adm) == inputs })
	stop()
	work.Wait()
	<-copied
	written.check(t, p.Address)
	checkOutput(t, p.Address)
	t.Logf("%d rounds, %d transactions answered", *rounds, written.finished.Load())
}

// write runs transactions one after the other until the context ends. A client that has failed is replaced by one that fences it.
func (w *pairs) write(ctx context.Context, t *testing.T, address, id string, random *rand.Rand) {
	var cl *kgo.Client
	for number := 0; ctx.Err() == nil; number++ {
		if cl == nil {
			cl = open(t, address, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionTimeout(10*time.Second))
		}
		commit := random.IntN(4) > 0
		name := fmt.Sprintf("%s/%d", id, number)
		err := pairTransaction(ctx, cl, name, commit)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Logf("%s: %v", name, err)
			}
			cl.Close()
			cl = nil
			continue
		}
		w.mu.Lock()
		w.decided[name] = commit
		w.mu.Unlock()
		w.finished.Add(1)
	}
}

// pairTransaction writes a transaction's name to both partitions and ends it. Without an error the broker has said how it ended.
func pairTransaction(ctx context.Context, cl *kgo.Client, name string, commit bool) error {
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	records := []*kgo.Record{{Topic: pairsTopic, Partition: 0, Value: []byte(name)}, {Topic: pairsTopic, Partition: 1, Value: []byte(name)}}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	return cl.EndTransaction(ctx, kgo.TransactionEndTry(commit))
}

func (w *pairs) check(t *testing.T, address string) {
	seen := [2]map[string]int{}
	for partition := range seen {
		seen[partition] = map[string]int{}
		for _, name := range readCommitted(t, address, pairsTopic, int32(partition)) {
			seen[partition][name]++
		}
	}
	for partition, names := range seen {
		for name, times := range names {
			committed, answered := w.decided[name]
			switch {
			case times != 1:
				t.Errorf("%s is %d times in partition %d", name, times, partition)
			case answered && !committed:
				t.Errorf("%s was aborted and is in partition %d", name, partition)
			case seen[1-partition][name] == 0:
				t.Errorf("%s is in partition %d only", name, partition)
			}
		}
	}
	for name, committed := range w.decided {
		if committed && seen[0][name] == 0 {
			t.Errorf("%s was committed and is lost", name)
		}
	}
}

func fillInput(ctx context.Context, t *testing.T, address string) {
	cl := open(t, address)
	var records []*kgo.Record
	for i := range inputs {
		records = append(records, &kgo.Record{Topic: inputTopic, Value: fmt.Appendf(nil, "%d", i)})
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// copyInput copies the input to the output, some records and their offsets at a time in one transaction.
func copyInput(ctx context.Context, t *testing.T, address string) {
	for ctx.Err() == nil {
		s, err := kgo.NewGroupTransactSession(
			kgo.SeedBrokers(address), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
			kgo.TransactionalID("copier"), kgo.TransactionTimeout(10*time.Second), kgo.ConsumerGroup("copier"), kgo.ConsumeTopics(inputTopic),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.SessionTimeout(6*time.Second),
		)
		if err != nil {
			t.Error(err)
			return
		}
		for ctx.Err() == nil {
			if err := copySome(ctx, s); err != nil {
				break // a session that has failed is replaced by one that fences it
			}
		}
		s.Close()
	}
}

// committedInputs is how many records of the input the copier's group has behind it.
func committedInputs(ctx context.Context, adm *kadm.Client) (n int64) {
	offsets, err := adm.FetchOffsets(ctx, "copier")
	if err != nil {
		return -1
	}
	offsets.Each(func(o kadm.OffsetResponse) { n += o.At })
	return n
}

// copySome copies what one poll brings.
func copySome(ctx context.Context, s *kgo.GroupTransactSession) error {
	polling, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	fetches := s.PollRecords(polling, 20)
	if fetches.NumRecords() == 0 {
		return nil
	}
	if err := s.Begin(); err != nil {
		return err
	}
	var failed atomic.Bool
	fetches.EachRecord(func(r *kgo.Record) {
		s.Produce(ctx, &kgo.Record{Topic: outputTopic, Value: r.Value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(true)
			}
		})
	})
	if err := s.Client().Flush(ctx); err != nil {
		return err
	}
	_, err := s.End(ctx, kgo.TransactionEndTry(!failed.Load()))
	return err
}

func checkOutput(t *testing.T, address string) {
	times := map[string]int{}
	for partition := range int32(2) {
		for _, v := range readCommitted(t, address, outputTopic, partition) {
			times[v]++
		}
	}
	for i := range inputs {
		if n := times[fmt.Sprint(i)]; n != 1 {
			t.Errorf("record %d is %d times in the output", i, n)
		}
	}
}

// readCommitted reads a partition up to its end, which open transactions must not keep from being reached for longer than they may be open.
func readCommitted(t *testing.T, address, topic string, partition int32) (values []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cl := open(t, address, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, partition)
	for next := int64(0); next < end.Offset; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("%s-%d hangs at %d of %d: %v", topic, partition, next, end.Offset, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			next = max(next, r.Offset+1)
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
		})
	}
	return slices.Clip(values)
}
