package durability

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/compat-tests/sluicetest"
)

var cleanerArgs = []string{"--set", "log.cleaner.backoff.ms=100", "--set", "log.cleaner.dedupe.buffer.size=10485760", "--set", "log.segment.delete.delay.ms=100"}

// TestV29_CompactedLogIsReadToItsEnd: with transactions, the last thing being a commit marker; from its start and from every gap, also while
// it is being compacted; the newest value of each key stays at its offset; tombstones stay for their time and then go.
func TestV29_CompactedLogIsReadToItsEnd(t *testing.T) {
	const topic, keys, rounds = "compacted", 100, 300
	p := sluicetest.Start(t, cleanerArgs...)
	createTopic(t, p.Address, topic, 1, "cleanup.policy", "compact", "segment.bytes", "1048576", "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "2000")
	want := newKeyed(topic)
	restored := make(chan map[string]string, 1)
	end := make(chan int64, 1)
	follower := open(t, p.Address, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	go func() { restored <- restore(t.Context(), follower, end) }()
	transactional := open(t, p.Address, kgo.TransactionalID("compacted"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for round := range rounds {
		value := func(key int) []byte {
			return fmt.Appendf(nil, "%d in round %d %s", key, round, strings.Repeat("x", 200))
		}
		if round%10 == 9 {
			want.transact(t, transactional, keys/3, value, round%20 == 9)
		} else {
			want.put(t, p.Address, keys, value)
		}
	}
	want.put(t, p.Address, keys/2, func(int) []byte { return nil })
	deleted := time.Now()
	want.put(t, p.Address, 1, func(int) []byte { return nil })
	want.filler(t, p.Address)
	want.transact(t, transactional, 3, func(int) []byte { return []byte("last") }, false)
	want.transact(t, transactional, 3, func(int) []byte { return []byte("last") }, true)
	end <- endOf(t, p.Address, topic)
	if got := <-restored; !maps.Equal(got, want.values) {
		t.Errorf("who followed while it was compacted has %d keys, want %d", len(got), len(want.values))
	}
	waitCompacted(t, p, topic)
	records := want.check(t, p.Address)
	if n := len(records); n > keys*rounds/2 {
		t.Errorf("%d records are left", n)
	}
	tombstones := func() (n int) {
		for _, r := range want.check(t, p.Address) {
			if r.Value == nil {
				n++
			}
		}
		return n
	}
	if n, after := tombstones(), time.Since(deleted); n < keys/2 && after < 2*time.Second {
		t.Errorf("%d tombstones are left after %v", n, after)
	}
	gaps := 0
	for i, next := 0, int64(0); i < len(records) && gaps < 40; i++ {
		if records[i].Offset > next {
			gaps++
			got, end := readKeyed(t, p.Address, topic, next)
			if end != endOf(t, p.Address, topic) || len(got) != len(records)-i || got[0].Offset != records[i].Offset {
				t.Fatalf("read at %d in a gap before %d: %d records up to %d", next, records[i].Offset, len(got), end)
			}
		}
		next = records[i].Offset + 1
	}
	if gaps == 0 {
		t.Error("there are no gaps")
	}

	// Two seconds after they were compacted first, tombstones go with the next compaction.
	sluicetest.Until(t, 30*time.Second, "no tombstone is left", func() bool {
		want.filler(t, p.Address)
		waitCompacted(t, p, topic)
		return tombstones() == 0
	})
	p.Restart()
	want.check(t, p.Address)
	verifyDirectory(t, p, p.DataDir)
}

// TestV29_KilledWhileCompacting: whenever kill -9 comes, the newest value of each key is there after the restart, and compaction goes on.
func TestV29_KilledWhileCompacting(t *testing.T) {
	const topic, keys = "compacted", 300
	p := sluicetest.Start(t, append(cleanerArgs, "--set", "log.cleaner.io.max.bytes.per.second=4000000")...)
	createTopic(t, p.Address, topic, 1, "cleanup.policy", "compact", "segment.bytes", "1048576", "min.cleanable.dirty.ratio", "0.01")
	want := newKeyed(topic)
	for kill := range 6 {
		for round := range 40 {
			want.put(t, p.Address, keys, func(key int) []byte {
				return []byte(fmt.Sprintf("%d in round %d.%d %s", key, kill, round, strings.Repeat("x", 100)))
			})
		}
		time.AfterFunc(time.Duration(kill*137%500)*time.Millisecond, p.Kill)
		p.WaitEnd(10 * time.Second)
		p.Launch()
		p.WaitReady()
		want.check(t, p.Address)
	}
	waitCompacted(t, p, topic)
	want.check(t, p.Address)
	verifyDirectory(t, p, p.DataDir)
}

// keyed is what a compacted topic must hold.
type keyed struct {
	topic   string
	values  map[string]string // by key
	offsets map[string]int64
	fillers int
}

func newKeyed(topic string) *keyed {
	return &keyed{topic: topic, values: map[string]string{}, offsets: map[string]int64{}}
}

// put writes a record for each of the first keys.
func (k *keyed) put(t *testing.T, address string, keys int, value func(key int) []byte) {
	t.Helper()
	records := make([]*kgo.Record, keys)
	for i := range records {
		records[i] = &kgo.Record{Topic: k.topic, Key: []byte(fmt.Sprint("key-", i)), Value: value(i)}
	}
	k.produce(t, address, records)
}

// filler writes as much as it takes for what came before to be in closed segments.
func (k *keyed) filler(t *testing.T, address string) {
	t.Helper()
	k.fillers++
	var records []*kgo.Record
	for i := range 12 {
		records = append(records, &kgo.Record{Topic: k.topic, Key: []byte("filler"), Value: []byte(strings.Repeat(fmt.Sprint(k.fillers, i), 50_000))})
	}
	k.produce(t, address, records)
}

// transact is put in a transaction.
func (k *keyed) transact(t *testing.T, cl *kgo.Client, keys int, value func(key int) []byte, commit bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	records := make([]*kgo.Record, keys)
	for i := range records {
		records[i] = &kgo.Record{Topic: k.topic, Key: []byte(fmt.Sprint("key-", i)), Value: value(i)}
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		t.Fatal(err)
	}
	if commit {
		k.note(records)
	}
}

func (k *keyed) produce(t *testing.T, address string, records []*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := open(t, address, kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer cl.Close()
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	k.note(records)
}

// note takes in what was written.
func (k *keyed) note(records []*kgo.Record) {
	for _, r := range records {
		if r.Value == nil {
			delete(k.values, string(r.Key))
		} else {
			k.values[string(r.Key)] = string(r.Value)
		}
		k.offsets[string(r.Key)] = r.Offset
	}
}

// check reads the log to its end and compares the newest values, and their offsets.
func (k *keyed) check(t *testing.T, address string) []*kgo.Record {
	t.Helper()
	records, _ := readKeyed(t, address, k.topic, 0)
	newest := map[string]*kgo.Record{}
	for _, r := range records {
		newest[string(r.Key)] = r
	}
	for _, key := range slices.Sorted(maps.Keys(k.offsets)) {
		value, kept := k.values[key]
		r := newest[key]
		switch {
		case kept && (r == nil || string(r.Value) != value || r.Offset != k.offsets[key]):
			t.Fatalf("%s is %v, want offset %d", key, r, k.offsets[key])
		case !kept && r != nil && r.Value != nil:
			t.Fatalf("%s was deleted at %d and is back, from offset %d", key, k.offsets[key], r.Offset)
		}
	}
	return records
}

// readKeyed reads from an offset until the position is the end, as a store does that is restored. It returns the position.
func readKeyed(t *testing.T, address, topic string, from int64) (records []*kgo.Record, position int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	end := endOf(t, address, topic)
	cl := open(t, address, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(from)}}), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer cl.Close()
	for position = from; position < end; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read %s at %d of %d: %v", topic, position, end, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset < position {
				t.Fatalf("offset %d comes after %d", r.Offset, position-1)
			}
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
			position = r.Offset + 1
		})
	}
	return records, position
}

// restore follows the log and applies it to a map until it has reached the end that it is told.
func restore(ctx context.Context, cl *kgo.Client, end <-chan int64) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	state, position, until := map[string]string{}, int64(0), int64(-1)
	for ctx.Err() == nil && (until < 0 || position < until) {
		select {
		case until = <-end:
		default:
		}
		wait, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		fetches := cl.PollFetches(wait)
		cancel()
		fetches.EachRecord(func(r *kgo.Record) {
			position = r.Offset + 1
			switch {
			case r.Attrs.IsControl():
			case r.Value == nil:
				delete(state, string(r.Key))
			default:
				state[string(r.Key)] = string(r.Value)
			}
		})
	}
	return state
}

// waitCompacted returns when the log has been compacted up to its active segment.
func waitCompacted(t *testing.T, p *sluicetest.Process, topic string) {
	t.Helper()
	sluicetest.Eventually(t, time.Minute, func(context.Context) error {
		logs := segments(t, p, topic, ".log")
		active, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(slices.Max(logs)), ".log"), 10, 64)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(filepath.Join(p.DataDir, "cleaner-offset-checkpoint"))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(content)) {
			if line == fmt.Sprintf("%s 0 %d\n", topic, active) {
				return nil
			}
		}
		return fmt.Errorf("%s is not compacted up to %d: %q", topic, active, content)
	})
}

// TestCompaction_OfGroupOffsets: the offsets topic is compacted under the coordinator, which finds every commit after a restart, and after kill -9.
func TestCompaction_OfGroupOffsets(t *testing.T) {
	const groups, partitions, rounds = 10, 40, 60
	p := sluicetest.Start(t, append(cleanerArgs, "--set", "offsets.topic.segment.bytes=1048576", "--set", "offsets.topic.num.partitions=1", "--set", "log.cleaner.min.cleanable.ratio=0.01")...)
	createTopic(t, p.Address, "committed", partitions)
	commit := func(at int64) {
		t.Helper()
		adm := kadm.NewClient(open(t, p.Address))
		for g := range groups {
			offsets := kadm.Offsets{}
			for i := range int32(partitions) {
				offsets.AddOffset("committed", i, at+int64(i), -1)
			}
			if r, err := adm.CommitOffsets(t.Context(), fmt.Sprint("group-", g), offsets); err != nil || r.Error() != nil {
				t.Fatal(err, r.Error())
			}
		}
	}
	check := func(at int64) {
		t.Helper()
		adm := kadm.NewClient(open(t, p.Address))
		for g := range groups {
			offsets, err := adm.FetchOffsets(t.Context(), fmt.Sprint("group-", g))
			if err != nil || offsets.Error() != nil {
				t.Fatal(err, offsets.Error())
			}
			for i := range int32(partitions) {
				if o, ok := offsets.Lookup("committed", i); !ok || o.At != at+int64(i) {
					t.Fatalf("group-%d has %v for partition %d, want %d", g, o.At, i, at+int64(i))
				}
			}
		}
	}
	for round := range int64(rounds) {
		commit(1000 * round)
	}
	waitCompacted(t, p, "__consumer_offsets")
	size := int64(0)
	for _, name := range segments(t, p, "__consumer_offsets", ".log") {
		if info, err := os.Stat(name); err == nil {
			size += info.Size()
		}
	}
	if size > 2<<20 {
		t.Errorf("%d bytes are left", size)
	}
	check(1000 * (rounds - 1))
	p.Restart()
	check(1000 * (rounds - 1))
	for round := range int64(rounds) {
		commit(1_000_000 + 1000*round)
	}
	p.Kill()
	p.Launch()
	p.WaitReady()
	check(1_000_000 + 1000*(rounds-1))
	waitCompacted(t, p, "__consumer_offsets")
	verifyDirectory(t, p, p.DataDir)
}
