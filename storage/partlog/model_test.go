package partlog

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice/protocol/compress"
	"sluice/protocol/record"
	"sluice/storage/producer"
	"sluice/storage/segment"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

func init() {
	// The default of 100 runs is for a longer test; the flag still works.
	if f := flag.Lookup("rapid.checks"); f != nil {
		_ = f.Value.Set("40")
	}
}

// model is what a log should be: the batches as they were stored, oldest first. Those before start are kept, as a crash may bring them back.
type model struct {
	batches    []record.Batch
	start, end int64
	partial    bool // there were batches before the first one, of which something may be remembered
}

func (m *model) clone() model {
	return model{slices.Clone(m.batches), m.start, m.end, m.partial}
}

func (m *model) append(b record.Batch) {
	m.batches = append(m.batches, slices.Clone(b))
	m.end = b.NextOffset()
}

func (m *model) truncate(offset int64) {
	if offset >= m.end {
		return
	}
	for len(m.batches) > 0 && m.batches[len(m.batches)-1].NextOffset() > offset {
		m.batches = m.batches[:len(m.batches)-1]
	}
	m.end, m.start = offset, min(m.start, offset)
}

// from lists the batches that end after an offset.
func (m *model) from(offset int64) []record.Batch {
	i := slices.IndexFunc(m.batches, func(b record.Batch) bool { return b.NextOffset() > offset })
	if i < 0 {
		return nil
	}
	return m.batches[i:]
}

// checked is a log under test with its model. Each operation on the file system that a crash could follow is followed by one, some of the time.
type checked struct {
	t    *rapid.T
	mem  *vfs.Mem
	fs   *errorfs.FS
	log  *Log
	c    *Config
	m    model
	now  int64
	rand *rand.Rand

	// What the checkpoint files say.
	savedStart, savedRecovery int64
	flushed                   int64 // what is in the log below it outlives a crash
	crashes                   []*vfs.Mem
	sequences                 map[record.ProducerID]int32
	inTxn                     map[record.ProducerID]bool
	epoch                     record.LeaderEpoch

	deferred bool     // background work waits for the operation that does it
	tasks    []func() // that wait
}

func (k *checked) options(fs vfs.FS, clean bool) Options {
	return Options{FS: fs, Dir: "/data/topic-0", Config: k.c, LogStartOffset: k.savedStart, RecoveryPoint: k.savedRecovery, CleanShutdown: clean,
		NowMs: k.now, Handles: segment.NewHandles(4)}
}

func (k *checked) open(clean bool) {
	k.tasks = nil
	k.fs = errorfs.Wrap(k.mem, nil)
	k.fs.SetInject(func(op errorfs.Op, _ string, _ int) error {
		if op.Mutates() && k.rand.IntN(4) == 0 {
			k.crashes = append(k.crashes, k.mem.CrashClone(vfs.CrashConfig{Rand: k.rand}))
		}
		return nil
	})
	o := k.options(k.fs, clean)
	if k.deferred {
		o.Background = func(task func()) { k.tasks = append(k.tasks, task) }
	}
	l, err := Open(o)
	if err != nil {
		k.t.Fatalf("open: %v", err)
	}
	k.log = l
}

// do runs one operation that turns the model into another, and checks what crashes within it would have left.
func (k *checked) do(after model, op func() error) {
	before, flushed := k.m.clone(), k.flushed
	if err := op(); err != nil {
		k.t.Fatal(err)
	}
	k.m = after
	flushed = min(flushed, after.end)
	k.crashes = append(k.crashes, k.mem.CrashClone(vfs.CrashConfig{Rand: k.rand}))
	for _, c := range k.crashes {
		k.checkCrash(c, before, after, flushed)
	}
	k.crashes = nil
}

// checkCrash opens what a crash left. It must be what the log was before or after the operation, but for unflushed batches missing at the
// end and deleted ones being back at the start.
func (k *checked) checkCrash(mem *vfs.Mem, before, after model, flushed int64) {
	l, err := Open(k.options(mem, false))
	if err != nil {
		k.t.Fatalf("open after a crash: %v", err)
	}
	defer l.Discard()
	got := readAll(k.t, l)
	if err := compareCrashed(l, got, before, flushed); err != nil {
		if err2 := compareCrashed(l, got, after, flushed); err2 != nil {
			k.t.Logf("checkpoints: start %d, recovery point %d; flushed %d", k.savedStart, k.savedRecovery, flushed)
			k.t.Fatalf("after a crash, neither as before (%v) nor as after the operation (%v)", err, err2)
		}
	}
	checkState(k.t, l, model{got, l.LogStartOffset(), l.LogEndOffset(), true})
}

func compareCrashed(l *Log, got []record.Batch, want model, flushed int64) error {
	wanted := want.from(max(want.start, l.LogStartOffset()))
	if len(got) > 0 {
		wanted = want.from(got[0].BaseOffset())
	}
	if len(got) > len(wanted) {
		return fmt.Errorf("%d batches instead of %d from %d on", len(got), len(wanted), got[0].BaseOffset())
	}
	for i, b := range got {
		if !bytes.Equal(b, wanted[i]) {
			return fmt.Errorf("batch at %d is not the one at %d", b.BaseOffset(), wanted[i].BaseOffset())
		}
	}
	// Batches are only missing at the end.
	if missing := wanted[len(got):]; len(missing) > 0 && missing[0].NextOffset() <= flushed {
		return fmt.Errorf("batch at %d is missing, flushed up to %d", missing[0].BaseOffset(), flushed)
	}
	first := want.from(max(want.start, l.LogStartOffset()))
	if len(first) > 0 && len(got) > 0 && got[0].BaseOffset() > first[0].BaseOffset() {
		return fmt.Errorf("begins with %d instead of %d", got[0].BaseOffset(), first[0].BaseOffset())
	}
	return nil
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// readAll reads a log from its start to its end.
func readAll(t failer, l *Log) []record.Batch {
	t.Helper()
	var all []record.Batch
	for offset := l.LogStartOffset(); ; {
		batches := readBatches(t, l, offset, 1<<20, l.LogEndOffset())
		if len(batches) == 0 {
			return all
		}
		all = append(all, batches...)
		offset = batches[len(batches)-1].NextOffset()
	}
}

func readBytes(t failer, l *Log, offset int64, maxBytes int, upTo int64) []byte {
	t.Helper()
	s, err := l.Read(offset, maxBytes, true, upTo)
	if err != nil {
		t.Fatalf("read at %d: %v", offset, err)
	}
	defer s.Close()
	b := make([]byte, s.Bytes)
	if s.Bytes > 0 {
		if _, err := s.File.ReadAt(b, s.Position); err != nil {
			t.Fatalf("read at %d: %v", offset, err)
		}
	}
	return b
}

func readBatches(t failer, l *Log, offset int64, maxBytes int, upTo int64) []record.Batch {
	t.Helper()
	var batches []record.Batch
	for b := readBytes(t, l, offset, maxBytes, upTo); len(b) > 0; {
		first, rest, err := record.Split(b)
		if err != nil {
			break // cut short by maxBytes
		}
		if !first.ValidCRC() {
			t.Fatalf("batch at %d is corrupt", first.BaseOffset())
		}
		batches, b = append(batches, first), rest
	}
	return batches
}

// checkReads compares reads at all kinds of offsets with the model.
func checkReads(t failer, l *Log, m model, r *rand.Rand) {
	t.Helper()
	if l.LogStartOffset() != m.start || l.LogEndOffset() != m.end {
		t.Fatalf("log from %d to %d, want %d to %d", l.LogStartOffset(), l.LogEndOffset(), m.start, m.end)
	}
	for range 4 {
		offset := m.start + r.Int64N(m.end-m.start+1)
		upTo := offset + r.Int64N(m.end-offset+1)
		maxBytes := 1 + r.IntN(2000)
		got := readBytes(t, l, offset, maxBytes, upTo)
		var want []byte
		first := 0
		for _, b := range m.from(offset) {
			if b.NextOffset() > upTo {
				break
			}
			if first == 0 {
				first = len(b)
			}
			want = append(want, b...)
		}
		if !bytes.HasPrefix(want, got) || len(got) < first || len(got) > max(maxBytes, first) {
			t.Fatalf("read at %d up to %d: %d bytes, want a beginning of %d, at least %d", offset, upTo, len(got), len(want), first)
		}
	}
}

// checkState compares what the log knows beside the batches with what follows from them.
func checkState(t failer, l *Log, m model) {
	t.Helper()
	checkTimes(t, l, m)
	want := map[record.ProducerID]producer.State{}
	lastOffset := map[record.ProducerID]int64{}
	open := map[record.ProducerID]int64{}
	var aborted []AbortedTransaction
	for _, b := range m.batches {
		if !b.HasProducerID() {
			continue
		}
		s, ok := want[b.ProducerID()]
		if !ok || s.ProducerEpoch != b.ProducerEpoch() {
			s = producer.State{ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), LastSequence: -1, CoordinatorEpoch: s.CoordinatorEpoch, CurrentTxnFirstOffset: -1}
			if !ok {
				s.CoordinatorEpoch = -1
			}
		}
		s.LastTimestampMs = b.MaxTimestamp()
		lastOffset[s.ProducerID] = b.LastOffset()
		if b.IsControl() {
			s.CoordinatorEpoch = 7
			if first, ok := open[s.ProducerID]; ok {
				if isAbort(t, b) && b.LastOffset() >= m.start {
					aborted = append(aborted, AbortedTransaction{s.ProducerID, first})
				}
				delete(open, s.ProducerID)
			}
			s.CurrentTxnFirstOffset = -1
		} else {
			s.LastSequence = b.LastSequence()
			if _, ok := open[s.ProducerID]; !ok && b.IsTransactional() {
				open[s.ProducerID] = b.BaseOffset()
				s.CurrentTxnFirstOffset = b.BaseOffset()
			}
		}
		want[s.ProducerID] = s
	}
	got := map[record.ProducerID]producer.State{}
	for _, s := range l.ActiveProducers(0) {
		got[s.ProducerID] = s
	}
	stable := m.end
	for id, s := range want {
		if first, ok := open[id]; ok {
			stable = min(stable, max(first, m.start))
		}
		g, ok := got[id]
		if !ok && lastOffset[id] >= m.start {
			t.Fatalf("producer %d is forgotten", id)
		}
		if m.partial {
			// A transaction may have begun, a marker may have come before what is known here.
			s.CurrentTxnFirstOffset, s.CoordinatorEpoch = g.CurrentTxnFirstOffset, g.CoordinatorEpoch
			if s.LastSequence == record.NoSequence || g.LastSequence == record.NoSequence {
				s.LastSequence = g.LastSequence
			}
		}
		// What happened before the log start offset may be forgotten, as the batches are.
		if ok && lastOffset[id] >= m.start && g != s {
			t.Fatalf("producer %d is %+v, want %+v", id, g, s)
		}
	}
	if lso := l.LastStableOffset(m.end); lso != stable && !m.partial {
		t.Fatalf("last stable offset is %d, want %d", lso, stable)
	}
	gotAborted, err := l.AbortedTransactions(m.start, m.end)
	if err != nil {
		t.Fatalf("aborted transactions: %v", err)
	}
	if !m.partial && !slices.Equal(gotAborted, aborted) {
		t.Fatalf("aborted transactions %v, want %v", gotAborted, aborted)
	}
}

func isAbort(t failer, b record.Batch) bool {
	for r, err := range b.Records(0) {
		if err != nil {
			t.Fatalf("control batch: %v", err)
		}
		c, err := record.ParseControl(r)
		if err != nil {
			t.Fatalf("control batch: %v", err)
		}
		return c.ControlType() == record.ControlAbort
	}
	return false
}

// checkTimes compares lookups by time with a walk over all records.
func checkTimes(t failer, l *Log, m model) {
	t.Helper()
	var records []TimestampOffset
	for _, b := range m.from(m.start) {
		for r, err := range b.Records(0) {
			if err != nil {
				t.Fatalf("records: %v", err)
			}
			if r.Offset >= m.start {
				records = append(records, TimestampOffset{r.TimestampMs, r.Offset, b.LeaderEpoch()})
			}
		}
	}
	var newest TimestampOffset
	for _, r := range records {
		if r.TimestampMs > newest.TimestampMs {
			newest = r
		}
	}
	targets := []int64{0, newest.TimestampMs, newest.TimestampMs + 1}
	for i := 0; i < len(records); i += 1 + len(records)/4 {
		targets = append(targets, records[i].TimestampMs, records[i].TimestampMs+1)
	}
	for _, target := range targets {
		i := slices.IndexFunc(records, func(r TimestampOffset) bool { return r.TimestampMs >= target })
		got, ok, err := l.OffsetForTimestamp(target, m.end)
		if err != nil || ok != (i >= 0) || ok && got != records[i] {
			t.Fatalf("offset for timestamp %d: %+v %v %v, want record %d of %v", target, got, ok, err, i, records)
		}
	}
	got, ok, err := l.OffsetOfMaxTimestamp(m.end)
	// As with Kafka it may be below the log start offset.
	if err != nil || len(records) > 0 && (!ok || got != newest && (got.Offset >= m.start || got.TimestampMs < newest.TimestampMs)) {
		t.Fatalf("offset of the largest timestamp: %+v %v %v, want %+v", got, ok, err, newest)
	}
}

func (k *checked) config(r *rapid.T) *Config {
	c := DefaultConfig()
	c.SegmentBytes = rapid.SampledFrom([]int{750, 2000, 1 << 20}).Draw(r, "segment.bytes")
	c.IndexIntervalBytes = rapid.SampledFrom([]int{0, 100, 4096}).Draw(r, "index.interval.bytes")
	c.SegmentIndexBytes = rapid.SampledFrom([]int{64, 1 << 20}).Draw(r, "segment.index.bytes")
	c.SegmentMs = rapid.SampledFrom([]int64{50, 1 << 40}).Draw(r, "segment.ms")
	c.RetentionMs = 200
	c.RetentionBytes = rapid.SampledFrom([]int64{-1, 1500}).Draw(r, "retention.bytes")
	c.FileDeleteDelayMs = rapid.SampledFrom([]int64{0, 100}).Draw(r, "file.delete.delay.ms")
	return c
}

func (k *checked) batch(t *rapid.T, o record.BuilderOptions) record.Batch {
	b := record.NewBuilder(o)
	for range rapid.IntRange(1, 4).Draw(t, "records") {
		at := k.now + rapid.Int64Range(-30, 30).Draw(t, "time")
		b.Add(record.Record{TimestampMs: at, Value: bytes.Repeat([]byte{'x'}, rapid.IntRange(0, 150).Draw(t, "size"))})
	}
	batch, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func (k *checked) leaderAppend(t *rapid.T, b record.Batch, o Origin) {
	want := slices.Clone(b)
	want.SetBaseOffset(k.m.end)
	want.SetLeaderEpoch(k.epoch)
	after := k.m.clone()
	after.append(want)
	k.do(after, func() error {
		info, err := k.log.AppendAsLeader(b, k.epoch, o, k.now)
		if err == nil && (info.BaseOffset != want.BaseOffset() || info.LastOffset != want.LastOffset() || info.Duplicate) {
			return fmt.Errorf("appended as %+v, want %d to %d", info, want.BaseOffset(), want.LastOffset())
		}
		return err
	})
}

func unattributed() record.BuilderOptions {
	return record.BuilderOptions{ProducerID: record.NoProducerID, ProducerEpoch: record.NoProducerEpoch, BaseSequence: record.NoSequence, LeaderEpoch: record.NoLeaderEpoch}
}

// save writes the checkpoint files.
func (k *checked) save() {
	k.savedStart, k.savedRecovery = k.log.LogStartOffset(), k.log.RecoveryPoint()
}

func (k *checked) reopened() {
	k.m.start, k.m.end = k.log.LogStartOffset(), k.log.LogEndOffset()
	k.m.partial = k.m.partial || k.m.start > 0
	k.sequences, k.inTxn = map[record.ProducerID]int32{}, map[record.ProducerID]bool{}
	for _, s := range k.log.ActiveProducers(k.now) {
		k.sequences[s.ProducerID] = s.LastSequence + 1
		k.inTxn[s.ProducerID] = s.CurrentTxnFirstOffset >= 0
	}
}

// TestLog_Model runs random operations against a slice of batches. What a crash at any write would have left is opened and compared too.
func TestLog_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		k := &checked{t: t, mem: vfs.NewMem(), now: 10_000, rand: rand.New(rand.NewPCG(seed, 1)), sequences: map[record.ProducerID]int32{}, inTxn: map[record.ProducerID]bool{}}
		k.c = k.config(t)
		k.mem.SetClock(func() int64 { return k.now })
		if err := k.mem.MkdirAll("/data/topic-0", 0o755); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"/", "/data"} {
			if err := k.mem.SyncDir(dir); err != nil {
				t.Fatal(err)
			}
		}
		k.deferred = rapid.Bool().Draw(t, "deferred")
		k.open(false)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				checkReads(t, k.log, k.m, k.rand)
				checkState(t, k.log, k.m)
			},
			"append": func(t *rapid.T) {
				o := unattributed()
				o.Codec = rapid.SampledFrom([]compress.Codec{compress.None, compress.None, compress.Zstd}).Draw(t, "codec")
				k.leaderAppend(t, k.batch(t, o), Client)
			},
			"append idempotent": func(t *rapid.T) {
				id := record.ProducerID(rapid.IntRange(1, 3).Draw(t, "producer"))
				o := record.BuilderOptions{ProducerID: id, BaseSequence: k.sequences[id]}
				b := k.batch(t, o)
				k.sequences[id] = b.LastSequence() + 1
				k.leaderAppend(t, b, Client)
			},
			"append in transaction": func(t *rapid.T) {
				id := record.ProducerID(rapid.IntRange(11, 13).Draw(t, "producer"))
				o := record.BuilderOptions{ProducerID: id, BaseSequence: k.sequences[id], Transactional: true}
				b := k.batch(t, o)
				k.sequences[id], k.inTxn[id] = b.LastSequence()+1, true
				k.leaderAppend(t, b, Client)
			},
			"end transaction": func(t *rapid.T) {
				id := record.ProducerID(rapid.IntRange(11, 13).Draw(t, "producer"))
				o := record.BuilderOptions{ProducerID: id, BaseSequence: record.NoSequence, Transactional: true, Control: true}
				m := record.EndTxnMarker{Commit: rapid.Bool().Draw(t, "commit"), CoordinatorEpoch: 7}
				b, err := record.NewBuilder(o).Add(record.ControlRecord(m, k.now)).Build()
				if err != nil {
					t.Fatal(err)
				}
				k.inTxn[id] = false
				k.leaderAppend(t, b, Coordinator)
			},
			"append as follower": func(t *rapid.T) {
				after := k.m.clone()
				var all []byte
				for range rapid.IntRange(1, 3).Draw(t, "batches") {
					b := k.batch(t, unattributed())
					b.SetBaseOffset(after.end + rapid.Int64Range(0, 3).Draw(t, "gap"))
					b.SetLeaderEpoch(k.epoch)
					after.append(b)
					all = append(all, b...)
				}
				k.do(after, func() error {
					_, err := k.log.AppendAsFollower(append(all, all[:rapid.IntRange(0, 60).Draw(t, "rest")]...), k.now)
					return err
				})
			},
			"new leader": func(t *rapid.T) {
				k.epoch++
				k.log.AssignEpochStart(k.epoch, k.log.LogEndOffset())
			},
			"pass time": func(t *rapid.T) { k.now += rapid.Int64Range(1, 100).Draw(t, "ms") },
			"roll": func(t *rapid.T) {
				k.do(k.m, func() error { return k.log.Roll(k.now) })
				k.flushed = k.log.RecoveryPoint()
			},
			"flush": func(t *rapid.T) {
				k.do(k.m, k.log.Flush)
				if n := len(k.m.batches); n > 0 && k.log.RecoveryPoint() < k.m.batches[n-1].NextOffset() {
					t.Fatalf("recovery point is %d after a flush, the end %d", k.log.RecoveryPoint(), k.m.end)
				}
				k.flushed = k.log.RecoveryPoint()
			},
			"background work": func(t *rapid.T) {
				k.do(k.m, func() error {
					for _, task := range k.tasks {
						task()
					}
					k.tasks = nil
					return nil
				})
				k.flushed = max(k.flushed, k.log.RecoveryPoint())
			},
			"save checkpoints": func(t *rapid.T) { k.save() },
			"truncate": func(t *rapid.T) {
				offset := max(0, k.m.end-rapid.Int64Range(-1, 30).Draw(t, "back"))
				after := k.m.clone()
				after.truncate(offset)
				k.do(after, func() error { return k.log.TruncateTo(offset) })
				k.m.start, k.m.end = k.log.LogStartOffset(), k.log.LogEndOffset()
				k.flushed = k.log.RecoveryPoint()
				k.save()
				k.reopened()
			},
			"start over": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "dice") > 0 {
					return
				}
				offset := k.m.end + rapid.Int64Range(0, 10).Draw(t, "forward")
				k.flushed = 0 // all of it is to go; a crash may leave any part of the beginning
				k.do(model{start: offset, end: offset}, func() error { return k.log.TruncateFullyAndStartAt(offset) })
				k.flushed = offset
				k.save()
				k.reopened()
			},
			"advance log start": func(t *rapid.T) {
				offset := k.m.start + rapid.Int64Range(0, k.m.end-k.m.start).Draw(t, "forward")
				if rapid.IntRange(0, 3).Draw(t, "all") > 0 {
					offset = min(offset, k.m.start+3)
				}
				after := k.m.clone()
				after.start = offset
				k.do(after, func() error { return k.log.AdvanceLogStartOffset(offset) })
			},
			"retain": func(t *rapid.T) {
				after := k.m.clone()
				k.do(after, func() error {
					_, err := k.log.Retain(k.now, k.m.end)
					after.start = k.log.LogStartOffset()
					return err
				})
				k.m.start = k.log.LogStartOffset()
				if rapid.Bool().Draw(t, "save") {
					k.save()
				}
			},
			"restart": func(t *rapid.T) {
				start, end := k.m.start, k.log.LogEndOffset()
				k.do(k.m, k.log.Close)
				k.save()
				k.open(true)
				if k.log.LogStartOffset() != start || k.log.LogEndOffset() > end || len(readAll(t, k.log)) != len(k.m.from(start)) {
					t.Fatalf("log from %d to %d after a restart, was %d to %d", k.log.LogStartOffset(), k.log.LogEndOffset(), start, end)
				}
				k.flushed = k.log.RecoveryPoint()
				k.reopened()
			},
			"crash": func(t *rapid.T) {
				k.mem = k.mem.CrashClone(vfs.CrashConfig{Rand: k.rand, ProcessOnly: rapid.Bool().Draw(t, "process only")})
				k.open(false)
				k.crashes = nil
				k.m.start, k.m.end = k.log.LogStartOffset(), k.log.LogEndOffset()
				got := readAll(t, k.log)
				k.m.batches = got
				k.flushed = min(k.flushed, k.log.RecoveryPoint())
				k.reopened()
			},
		})
	})
}
