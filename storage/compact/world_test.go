package compact

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sluice/protocol/compress"
	"sluice/protocol/record"
	"sluice/storage/partlog"
	"sluice/storage/vfs"
)

// world is a compacted log with everything that was ever appended to it.
type world struct {
	t         testing.TB
	fs        vfs.FS
	log       *partlog.Log
	config    *partlog.Config
	nowMs     int64
	cleanedTo int64
	policy    Policy
	mapBytes  int64
	stats     Stats

	appended  []record.Batch                // as they are in the log at first
	aborted   map[int64]bool                // base offsets of batches that were aborted
	open      map[record.ProducerID][]int64 // base offsets of batches in open transactions
	sequences map[record.ProducerID]int32   // next ones
	epochs    map[record.ProducerID]record.ProducerEpoch
}

const partition = "/t-0"

func newWorld(t testing.TB, fs vfs.FS) *world {
	config := partlog.DefaultConfig()
	config.SegmentBytes, config.Compact, config.Delete, config.FileDeleteDelayMs = 4096, true, false, 0
	w := &world{
		t: t, fs: fs, config: config, nowMs: 1_000_000, cleanedTo: -1, mapBytes: 1 << 20,
		policy:  Policy{MaxLagMs: math.MaxInt64, DeleteRetentionMs: 1000},
		aborted: map[int64]bool{}, open: map[record.ProducerID][]int64{},
		sequences: map[record.ProducerID]int32{}, epochs: map[record.ProducerID]record.ProducerEpoch{},
	}
	w.reopen(partlog.Options{})
	if err := fs.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	return w
}

// reopen opens the log with what a broker has checkpointed.
func (w *world) reopen(o partlog.Options) {
	w.t.Helper()
	o.FS, o.Dir, o.Config, o.NowMs = w.fs, partition, w.config, w.nowMs
	o.CleanedTo = max(w.cleanedTo, 0)
	log, err := partlog.Open(o)
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
	w.log = log
}

// append appends records that have a key each, and a value unless it is empty.
func (w *world) append(o record.BuilderOptions, keysAndValues ...string) int64 {
	w.t.Helper()
	b := record.NewBuilder(o)
	for i := 0; i < len(keysAndValues); i += 2 {
		r := record.Record{TimestampMs: w.nowMs + int64(i), Key: []byte(keysAndValues[i])}
		if v := keysAndValues[i+1]; v != "" {
			r.Value = []byte(v)
			r.Headers = []record.Header{{Key: "h", Value: []byte(v[:1])}}
		}
		b.Add(r)
	}
	batch, err := b.Build()
	if err != nil {
		w.t.Fatal(err)
	}
	return w.add(batch, record.Client)
}

func (w *world) add(batch record.Batch, origin record.Origin) int64 {
	w.t.Helper()
	info, err := w.log.AppendAsLeader(batch, 3, origin, w.nowMs)
	if err != nil {
		w.t.Fatalf("append: %v", err)
	}
	w.appended = append(w.appended, batch)
	return info.BaseOffset
}

func (w *world) put(keysAndValues ...string) int64 {
	w.t.Helper()
	return w.append(record.Unattributed(), keysAndValues...)
}

// send appends a batch of an idempotent producer, in a transaction if transactional.
func (w *world) send(id record.ProducerID, transactional bool, codec compress.Codec, keysAndValues ...string) int64 {
	w.t.Helper()
	o := record.Unattributed()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional, o.Codec = id, w.epochs[id], w.sequences[id], transactional, codec
	w.sequences[id] += int32(len(keysAndValues) / 2)
	base := w.append(o, keysAndValues...)
	if transactional {
		w.open[id] = append(w.open[id], base)
	}
	return base
}

// end ends the producer's transaction.
func (w *world) end(id record.ProducerID, commit bool) int64 {
	w.t.Helper()
	if !commit {
		for _, base := range w.open[id] {
			w.aborted[base] = true
		}
	}
	delete(w.open, id)
	o := record.Unattributed()
	o.ProducerID, o.ProducerEpoch, o.Transactional, o.Control = id, w.epochs[id], true, true
	b, err := record.NewBuilder(o).Add(record.ControlRecord(record.EndTxnMarker{Commit: commit, CoordinatorEpoch: 1}, w.nowMs)).Build()
	if err != nil {
		w.t.Fatal(err)
	}
	return w.add(b, record.Coordinator)
}

func (w *world) roll() {
	w.t.Helper()
	if err := w.log.Roll(w.nowMs); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) highWatermark() int64 { return w.log.LogEndOffset() }

// candidate assesses the log.
func (w *world) candidate() Candidate {
	w.t.Helper()
	c, err := Assess(StateOf(w.log, w.highWatermark(), w.cleanedTo), w.policy, w.nowMs)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) task(c Candidate) Task {
	return Task{
		Log: w.log, Candidate: c, HighWatermark: w.highWatermark(), NowMs: w.nowMs, DeleteRetentionMs: w.policy.DeleteRetentionMs,
		SegmentBytes: w.config.SegmentBytes, IndexBytes: w.config.SegmentIndexBytes, IndexIntervalBytes: w.config.IndexIntervalBytes,
		MapBytes: w.mapBytes, LoadFactor: 0.9,
	}
}

func unpaced(int) error { return nil }

// clean compacts all that can be, whether or not it is due.
func (w *world) clean() {
	w.t.Helper()
	cleaner := &Cleaner{Pace: unpaced, BufferBytes: 1000}
	to, stats, err := cleaner.Clean(w.task(w.candidate()))
	if err != nil {
		w.t.Fatalf("clean: %v", err)
	}
	w.cleanedTo, w.stats = to, stats
}

// batches reads the log from an offset to its end, as a consumer does.
func (w *world) batches(offset int64) []record.Batch { return readLog(w.t, w.log, offset) }

func readLog(t testing.TB, log *partlog.Log, offset int64) []record.Batch {
	t.Helper()
	var all []record.Batch
	for offset < log.LogEndOffset() {
		s, err := log.Read(offset, 700, true, log.LogEndOffset())
		if err != nil {
			t.Fatalf("read at %d: %v", offset, err)
		}
		b := make([]byte, s.Bytes)
		if s.Bytes > 0 {
			if _, err := s.File.ReadAt(b, s.Position); err != nil {
				t.Fatalf("read at %d: %v", offset, err)
			}
		}
		s.Close()
		batch, _, err := record.Split(b)
		if err != nil {
			t.Fatalf("read at %d: the end, %d, is not reached: %v", offset, log.LogEndOffset(), err)
		}
		if batch.NextOffset() <= offset {
			t.Fatalf("read at %d gives a batch that ends before %d", offset, batch.NextOffset())
		}
		if !batch.ValidCRC() {
			t.Fatalf("read at %d: checksum", offset)
		}
		all = append(all, batch)
		offset = batch.NextOffset()
	}
	return all
}

// records decodes the records of batches, without those of control batches.
func records(t testing.TB, batches []record.Batch) []record.Record {
	t.Helper()
	var all []record.Record
	for _, b := range batches {
		if b.IsControl() {
			continue
		}
		for r, err := range b.Records(0) {
			if err != nil {
				t.Fatalf("batch at %d: %v", b.BaseOffset(), err)
			}
			all = append(all, r)
		}
	}
	return all
}

// describeRecords prints offset, key and value of each.
func describeRecords(rs []record.Record) string {
	var b bytes.Buffer
	for i, r := range rs {
		if i > 0 {
			b.WriteByte(' ')
		}
		value := string(r.Value)
		if r.Value == nil {
			value = "-"
		}
		fmt.Fprintf(&b, "%d:%s=%s", r.Offset, r.Key, value)
	}
	return b.String()
}

// expect compares all records of the log.
func (w *world) expect(want string) {
	w.t.Helper()
	if got := describeRecords(records(w.t, w.batches(w.log.LogStartOffset()))); got != want {
		w.t.Errorf("records\n got %s\nwant %s", got, want)
	}
}

// original is the batch as it was appended that has an offset.
func (w *world) original(offset int64) record.Batch {
	i, found := slices.BinarySearchFunc(w.appended, offset, func(b record.Batch, offset int64) int { return int(b.BaseOffset() - offset) })
	if !found {
		return nil
	}
	return w.appended[i]
}

// check holds the log against what must be true of it after any compaction.
func (w *world) check(log *partlog.Log, cleanedTo int64) {
	w.t.Helper()
	w.checkSegments(log)
	batches := readLog(w.t, log, log.LogStartOffset())
	newest := map[string]record.Record{} // by what was appended, aborted records left out
	for _, b := range w.appended {
		if w.aborted[b.BaseOffset()] {
			continue
		}
		for _, r := range records(w.t, []record.Batch{b}) {
			newest[string(r.Key)] = r
		}
	}
	found := map[string]bool{}
	clean := map[string]bool{}
	for _, b := range batches {
		o := w.original(b.BaseOffset())
		if o == nil || o.LastOffset() != b.LastOffset() || o.LeaderEpoch() != b.LeaderEpoch() || o.ProducerID() != b.ProducerID() ||
			o.ProducerEpoch() != b.ProducerEpoch() || o.BaseSequence() != b.BaseSequence() || b.Count() > 0 && o.Codec() != b.Codec() ||
			o.IsTransactional() != b.IsTransactional() || o.IsControl() != b.IsControl() {
			w.t.Fatalf("batch at %d is none that was appended", b.BaseOffset())
		}
		if b.IsControl() {
			continue
		}
		kept := records(w.t, []record.Batch{b})
		was := records(w.t, []record.Batch{o})
		for _, r := range kept {
			i := slices.IndexFunc(was, func(x record.Record) bool { return x.Offset == r.Offset })
			if i < 0 || describeRecords(was[i:i+1]) != describeRecords([]record.Record{r}) || was[i].TimestampMs != r.TimestampMs || len(was[i].Headers) != len(r.Headers) {
				w.t.Fatalf("record at %d is not what was appended", r.Offset)
			}
			key := string(r.Key)
			found[key] = found[key] || newest[key].Offset == r.Offset
			if b.LastOffset() >= cleanedTo {
				continue
			}
			if w.aborted[b.BaseOffset()] {
				w.t.Fatalf("aborted record at %d is left", r.Offset)
			}
			if clean[key] {
				w.t.Fatalf("key %s is twice in what was compacted", key)
			}
			clean[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		if newest[key].Value != nil && !found[key] {
			w.t.Fatalf("newest record of key %s, at %d, is lost", key, newest[key].Offset)
		}
	}
}

// checkSegments checks that batches are in order, and that no segment reaches into the next.
func (w *world) checkSegments(log *partlog.Log) {
	w.t.Helper()
	segments, end := log.Closed()
	for i, s := range segments {
		next := s.BaseOffset()
		if err := s.Visit(0, func(b record.Batch) (bool, error) {
			if b.BaseOffset() < next {
				w.t.Fatalf("segment %d: the batch at %d follows what ends before %d", s.BaseOffset(), b.BaseOffset(), next)
			}
			next = b.NextOffset()
			return true, nil
		}); err != nil {
			w.t.Fatal(err)
		}
		limit := end
		if i+1 < len(segments) {
			limit = segments[i+1].BaseOffset()
		}
		if next > limit {
			w.t.Fatalf("segment %d ends before %d, the next one begins at %d", s.BaseOffset(), next, limit)
		}
	}
}

// chaos appends at random.
func (w *world) chaos(r *rand.Rand, batches int) {
	w.t.Helper()
	for range batches {
		w.nowMs += r.Int64N(300)
		var kv []string
		for range 1 + r.IntN(6) {
			value := ""
			if r.IntN(5) > 0 {
				value = fmt.Sprintf("v%d-%d", w.log.LogEndOffset(), r.IntN(1000))
			}
			kv = append(kv, fmt.Sprintf("k%d", r.IntN(20)), value)
		}
		codec := compress.Codec(r.IntN(5))
		switch id := record.ProducerID(1 + r.IntN(3)); r.IntN(6) {
		case 0, 1:
			o := record.Unattributed()
			o.Codec = codec
			w.append(o, kv...)
		case 2, 3:
			w.send(id, true, codec, kv...)
		case 4:
			w.send(id+10, false, codec, kv...)
		default:
			w.end(id, r.IntN(2) == 0)
		}
		if r.IntN(8) == 0 {
			w.roll()
		}
	}
}
