package compact

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"sluice/protocol/compress"
	"sluice/protocol/record"
	"sluice/storage/partlog"
	"sluice/storage/vfs"
)

// TestClean_KeepsTheNewestOfEachKey: at its offset, and the active segment untouched.
func TestClean_KeepsTheNewestOfEachKey(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.put("a", "1", "b", "1", "a", "2")
	w.put("c", "1")
	w.roll()
	w.put("b", "2")
	w.roll()
	w.put("c", "2")
	w.clean()
	w.expect("2:a=2 3:c=1 4:b=2 5:c=2")
	if w.cleanedTo != 5 || w.stats.SegmentsBefore != 2 || w.stats.SegmentsAfter != 1 || w.stats.ReadRecords != 5 || w.stats.KeptRecords != 3 {
		t.Errorf("clean to %d: %+v", w.cleanedTo, w.stats)
	}
	w.roll()
	w.put("d", "1")
	w.clean()
	w.expect("2:a=2 4:b=2 5:c=2 6:d=1")
	w.check(w.log, w.cleanedTo)
}

// TestClean_EveryCodec_KeepsCodecAndOffsets: only some records of a compressed batch go.
func TestClean_EveryCodec_KeepsCodecAndOffsets(t *testing.T) {
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		w := newWorld(t, vfs.NewMem())
		o := record.Unattributed()
		o.Codec = codec
		w.append(o, "a", "1", "b", "1", "c", "1", "a", "2", "d", "1")
		w.append(o, "c", "2", "d", "2")
		w.roll()
		w.clean()
		w.expect("1:b=1 3:a=2 5:c=2 6:d=2")
		first := w.batches(0)[0]
		if first.BaseOffset() != 0 || first.LastOffset() != 4 || first.Codec() != codec || first.Count() != 2 {
			t.Errorf("%v: batch %d to %d, %v, %d records", codec, first.BaseOffset(), first.LastOffset(), first.Codec(), first.Count())
		}
	}
}

// TestClean_Tombstone_StaysForItsTime: it gets a delete horizon when it is compacted first, and goes after that.
func TestClean_Tombstone_StaysForItsTime(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.put("a", "1", "b", "1")
	w.put("a", "")
	w.put("c", "1")
	w.roll()
	w.clean()
	w.expect("1:b=1 2:a=- 3:c=1")
	b := w.batches(2)[0]
	if horizon := w.nowMs + 1000; !b.HasDeleteHorizon() || b.BaseTimestamp() != horizon || b.MaxTimestamp() != w.nowMs {
		t.Errorf("delete horizon %v at %d, want %d; timestamp %d", b.HasDeleteHorizon(), b.BaseTimestamp(), horizon, b.MaxTimestamp())
	}
	clean := func(want string) {
		t.Helper()
		w.put("x", fmt.Sprint(w.nowMs))
		w.roll()
		w.clean()
		w.expect(want)
	}
	w.nowMs += 999
	clean("1:b=1 2:a=- 3:c=1 4:x=1000999")
	w.nowMs++
	clean("1:b=1 3:c=1 5:x=1001000")
}

// TestClean_AbortedRecords_Go: and of their marker nothing is left once nobody can need it.
func TestClean_AbortedRecords_Go(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.put("a", "1")
	w.send(7, true, compress.None, "a", "aborted", "b", "aborted") // 1, 2
	w.send(8, true, compress.None, "b", "committed")               // 3
	w.end(7, false)                                                // 4
	w.end(8, true)                                                 // 5
	w.send(7, true, compress.None, "c", "committed")               // 6
	w.end(7, true)                                                 // 7
	w.roll()
	w.put("z", "1") // 8
	w.clean()
	w.expect("0:a=1 3:b=committed 6:c=committed 8:z=1")
	markers := func() (offsets []int64) {
		for _, b := range w.batches(0) {
			if b.IsControl() {
				offsets = append(offsets, b.BaseOffset())
			}
		}
		return offsets
	}
	if got := fmt.Sprint(markers()); got != "[4 5 7]" {
		t.Errorf("markers after the first time: %s", got)
	}
	if aborted, err := w.log.AbortedTransactions(0, 8); err != nil || len(aborted) != 1 {
		t.Errorf("aborted transactions: %v %v", aborted, err)
	}
	// The second time there are no records of the aborted transaction: the marker gets a horizon, and its entry in the index goes.
	w.roll()
	w.put("z", "2")
	w.clean()
	if got := fmt.Sprint(markers()); got != "[4 5 7]" {
		t.Errorf("markers after the second time: %s", got)
	}
	if aborted, err := w.log.AbortedTransactions(0, 8); err != nil || len(aborted) != 0 {
		t.Errorf("aborted transactions: %v %v", aborted, err)
	}
	if b := w.batches(4)[0]; !b.HasDeleteHorizon() {
		t.Error("the marker has no delete horizon")
	}
	w.nowMs += 1000
	w.roll()
	w.put("z", "3")
	w.clean()
	if got := fmt.Sprint(markers()); got != "[5 7]" {
		t.Errorf("markers after the third time: %s", got)
	}
}

// TestClean_OpenTransaction_StopsThere: nothing from the last stable offset on is touched.
func TestClean_OpenTransaction_StopsThere(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.put("a", "1", "a", "2")
	w.roll()
	w.put("a", "3")
	w.send(7, true, compress.None, "a", "open")
	w.roll()
	w.put("a", "5")
	w.roll()
	w.put("z", "1")
	if c := w.candidate(); c.FirstUncleanableOffset != 2 {
		t.Errorf("%+v", c)
	}
	w.clean()
	w.expect("1:a=2 2:a=3 3:a=open 4:a=5 5:z=1")
	w.end(7, true)
	w.clean()
	w.expect("4:a=5 5:z=1")
}

// TestClean_EndOfLog_StaysReachable (V29): an emptied batch stays where it is the last of the log, or of a producer.
func TestClean_EndOfLog_StaysReachable(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.send(5, false, compress.Gzip, "a", "1", "b", "1")
	w.put("a", "2", "b", "2")
	w.send(7, true, compress.None, "c", "aborted")
	w.end(7, false)
	w.roll()
	w.clean()
	w.expect("2:a=2 3:b=2")
	got := w.batches(0)
	last := got[len(got)-1]
	if !last.IsControl() || last.NextOffset() != w.log.LogEndOffset() {
		t.Errorf("the last batch ends before %d, the log before %d", last.NextOffset(), w.log.LogEndOffset())
	}
	empty := got[0]
	if empty.Count() != 0 || empty.LastOffset() != 1 || empty.BaseSequence() != 0 || empty.LastSequence() != 1 || empty.ProducerID() != 5 || len(empty) != record.HeaderBytes ||
		empty.Codec() != compress.None || empty.BaseTimestamp() != record.NoTimestamp {
		t.Errorf("what is left of the producer's last batch: %d records, to offset %d", empty.Count(), empty.LastOffset())
	}
	// The producer goes on after a restart without a snapshot, which has to read the log.
	if err := w.log.Close(); err != nil {
		t.Fatal(err)
	}
	w.reopen(partlog.Options{})
	w.send(5, false, compress.None, "a", "3")
}

// TestClean_FullMap_GoesOnLater: as much as fits is compacted, and what lies behind is not lost.
func TestClean_FullMap_GoesOnLater(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	for round := range 3 {
		for key := range 40 {
			w.put(fmt.Sprint("k", key), fmt.Sprint(round))
		}
		w.roll()
	}
	w.put("z", "1")
	w.mapBytes = 50 * entryBytes // 45 keys
	for times, before := 0, int64(-1); w.cleanedTo < 120; times++ {
		if w.cleanedTo <= before && times > 0 || times > 10 {
			t.Fatalf("no progress at %d", w.cleanedTo)
		}
		before = w.cleanedTo
		w.clean()
		w.check(w.log, w.cleanedTo)
	}
	if got := records(t, w.batches(0)); len(got) != 41 {
		t.Errorf("%d records are left, want 41: %s", len(got), describeRecords(got))
	}
}

// TestClean_Chaos_Model: transactions, codecs, tombstones, partial maps, restarts.
func TestClean_Chaos_Model(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t, vfs.NewMem())
			w.config.SegmentBytes = 500 + r.IntN(4000)
			w.config.IndexIntervalBytes = r.IntN(500)
			for range 6 {
				w.chaos(r, 40)
				w.mapBytes = 1 << 20
				if r.IntN(3) == 0 {
					w.mapBytes = int64(4+r.IntN(20)) * entryBytes
				}
				w.clean()
				w.check(w.log, w.cleanedTo)
				w.everyOffset()
				if r.IntN(3) == 0 {
					if err := w.log.Close(); err != nil {
						t.Fatal(err)
					}
					w.reopen(partlog.Options{CleanShutdown: true})
					w.check(w.log, w.cleanedTo)
				}
				if _, err := w.log.Retain(w.nowMs, w.highWatermark()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// everyOffset reads from each offset, gaps included: the batch that covers or follows it comes.
func (w *world) everyOffset() {
	w.t.Helper()
	all := w.batches(0)
	for offset := int64(0); offset < w.log.LogEndOffset(); offset++ {
		for len(all) > 0 && all[0].NextOffset() <= offset {
			all = all[1:]
		}
		s, err := w.log.Read(offset, 1, true, w.log.LogEndOffset())
		if err != nil {
			w.t.Fatal(err)
		}
		header := make(record.Batch, record.HeaderBytes)
		if _, err := s.File.ReadAt(header, s.Position); err != nil {
			w.t.Fatal(err)
		}
		s.Close()
		if header.BaseOffset() != all[0].BaseOffset() {
			w.t.Fatalf("read at %d gives the batch at %d, want %d", offset, header.BaseOffset(), all[0].BaseOffset())
		}
	}
}

// TestClean_DamagedBatch_IsUncleanable: it must not get a new checksum.
func TestClean_DamagedBatch_IsUncleanable(t *testing.T) {
	mem := vfs.NewMem()
	w := newWorld(t, mem)
	w.put("a", "1")
	second := w.put("a", "2", "b", "1")
	w.roll()
	w.put("z", "1")
	f, err := mem.OpenFile(partition+"/00000000000000000000.log", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{'!'}, size-1); err != nil {
		t.Fatal(err)
	}
	_, _, err = (&Cleaner{Pace: unpaced}).Clean(w.task(w.candidate()))
	var bad *Uncleanable
	if !errors.As(err, &bad) || bad.SegmentBaseOffset != 0 || bad.Position != int64(len(w.original(second-1))) {
		t.Fatalf("%v", err)
	}
}

// TestClean_ChangedMeanwhile_IsInVain: truncation and deletion while segments are read.
func TestClean_ChangedMeanwhile_IsInVain(t *testing.T) {
	for name, change := range map[string]func(*world) error{
		"truncated":    func(w *world) error { return w.log.TruncateTo(1) },
		"started over": func(w *world) error { return w.log.TruncateFullyAndStartAt(100) },
		"deleted": func(w *world) error {
			if err := w.log.AdvanceLogStartOffset(4); err != nil {
				return err
			}
			_, err := w.log.Retain(w.nowMs, w.highWatermark())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, vfs.NewMem())
			w.put("a", "1", "a", "2")
			w.roll()
			w.put("a", "3")
			w.roll()
			w.put("a", "4")
			w.put("z", "1")
			changed := false
			cleaner := &Cleaner{Pace: func(int) error {
				if changed {
					return nil
				}
				changed = true
				return change(w)
			}}
			if _, _, err := cleaner.Clean(w.task(w.candidate())); !errors.Is(err, partlog.ErrChanged) {
				t.Fatalf("%v", err)
			}
			entries, err := w.fs.ReadDir(partition)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if name := e.Name(); len(name) > 8 && name[len(name)-8:] == ".cleaned" {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

// TestClean_Stopped_LeavesTheLogAsItWas: whenever the pace says so.
func TestClean_Stopped_LeavesTheLogAsItWas(t *testing.T) {
	stop := errors.New("stop")
	for n := range 100 {
		w := newWorld(t, vfs.NewMem())
		w.config.SegmentBytes = 2000
		w.chaos(rand.New(rand.NewPCG(7, 7)), 60)
		for id := range record.ProducerID(3) {
			w.end(id+1, true)
		}
		w.roll()
		paces := 0
		cleaner := &Cleaner{BufferBytes: 600, Pace: func(int) error {
			if paces++; paces > n {
				return stop
			}
			return nil
		}}
		_, _, err := cleaner.Clean(w.task(w.candidate()))
		w.check(w.log, 0)
		if err == nil {
			if n < 10 {
				t.Errorf("stopped only %d times", n)
			}
			return
		}
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		// What the cleaner had in its hands is not in what it writes the next time.
		cleaner.Pace = unpaced
		to, _, err := cleaner.Clean(w.task(w.candidate()))
		if err != nil {
			t.Fatal(err)
		}
		w.check(w.log, to)
	}
	t.Fatal("never came to the end")
}
