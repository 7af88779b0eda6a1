package compact

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/protocol/compress"
	"sluice/protocol/record"
	"sluice/storage/partlog"
	"sluice/storage/vfs"
)

// TestClean_BesideReadersAndWriter: readers come from every offset to the end while the log is appended to, compacted over and over, and files are
// removed at once.
func TestClean_BesideReadersAndWriter(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.config.SegmentBytes = 1500
	const rounds = 15
	var wait sync.WaitGroup
	var done atomic.Bool
	for reader := range 3 {
		r := rand.New(rand.NewPCG(uint64(reader), 3))
		wait.Go(func() {
			for !done.Load() {
				if err := readFrom(w.log, r.Int64N(w.log.LogEndOffset()+1)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	appender := make(chan struct{})
	wait.Go(func() {
		defer close(appender)
		for i := range rounds * 30 {
			w.put(fmt.Sprint("k", i%17), fmt.Sprint(i), fmt.Sprint("k", i%5), "")
		}
	})
	for appending := true; appending; {
		select {
		case <-appender:
			appending = false
		default:
		}
		w.clean()
		if _, err := w.log.Retain(w.nowMs, w.highWatermark()); err != nil {
			t.Fatal(err)
		}
	}
	done.Store(true)
	wait.Wait()
	w.check(w.log, w.cleanedTo)
}

// readFrom reads from an offset to the end, with lists of aborted transactions, as Fetch does, and by time.
func readFrom(log *partlog.Log, offset int64) error {
	end := log.LogEndOffset()
	for offset < end {
		s, err := log.Read(offset, 400, true, end)
		if err != nil {
			return fmt.Errorf("read at %d: %w", offset, err)
		}
		if s.Bytes == 0 {
			// What was the end is none any more, and the batches before it have been compacted away.
			if now := log.LogEndOffset(); now > end {
				end = now
				continue
			}
			return fmt.Errorf("read at %d: the end, %d, is not reached", offset, end)
		}
		b := make([]byte, s.Bytes)
		_, err = s.File.ReadAt(b, s.Position)
		upper, upperErr := s.UpperBound()
		s.Close()
		if err = errors.Join(err, upperErr); err != nil {
			return fmt.Errorf("read at %d: %w", offset, err)
		}
		if _, err := log.AbortedTransactions(offset, upper); err != nil {
			return fmt.Errorf("aborted transactions from %d: %w", offset, err)
		}
		batch, _, err := record.Split(b)
		if err != nil || !batch.ValidCRC() || batch.NextOffset() <= offset {
			return fmt.Errorf("read at %d: batch up to %d: %w", offset, batch.NextOffset(), err)
		}
		offset = batch.NextOffset()
	}
	_, _, err := log.OffsetForTimestamp(1_000_000, end)
	return err
}

// TestClean_AnyDamage_NeverPanics: bytes of a segment that are not what was written are an error about the log, or make no difference.
func TestClean_AnyDamage_NeverPanics(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	refused := 0
	for range 80 {
		mem := vfs.NewMem()
		w := newWorld(t, mem)
		w.chaos(r, 25)
		w.roll()
		segments, _ := w.log.Closed()
		name := fmt.Sprintf("%s/%020d.log", partition, segments[r.IntN(len(segments))].BaseOffset())
		f, err := mem.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		size, err := f.Size()
		if err != nil || size == 0 {
			continue
		}
		damage := make([]byte, 1+r.IntN(4))
		for i := range damage {
			damage[i] = byte(r.Uint32())
		}
		if _, err := f.WriteAt(damage, min(r.Int64N(size), size-int64(len(damage)))); err != nil {
			t.Fatal(err)
		}
		_, _, err = (&Cleaner{Pace: unpaced, BufferBytes: 200}).Clean(w.task(w.candidate()))
		var bad *Uncleanable
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("%T %v", err, err)
		}
		if err != nil {
			refused++
		}
	}
	if refused < 15 {
		t.Errorf("%d of 80 damaged logs were refused", refused)
	}
}

// BenchmarkClean compacts 32 MiB of records of about 100 bytes, of which one in ten is the newest of its key.
func BenchmarkClean(b *testing.B) {
	for _, codec := range []compress.Codec{compress.None, compress.Lz4} {
		b.Run(codec.String(), func(b *testing.B) {
			mem := vfs.NewMem()
			w := newWorld(b, mem)
			w.config.SegmentBytes = 8 << 20
			w.mapBytes = 128 << 20
			o := record.Unattributed()
			o.Codec = codec
			r := rand.New(rand.NewPCG(1, 1))
			const records = 300_000
			for i := 0; i < records; i += 100 {
				build := record.NewBuilder(o)
				for range 100 {
					value := make([]byte, 80)
					for j := range value {
						value[j] = byte('a' + r.IntN(16))
					}
					build.Add(record.Record{TimestampMs: w.nowMs, Key: fmt.Append(nil, "key-", r.IntN(records/10)), Value: value})
				}
				batch, err := build.Build()
				if err != nil {
					b.Fatal(err)
				}
				if _, err := w.log.AppendAsLeader(batch, 1, record.Client, w.nowMs); err != nil {
					b.Fatal(err)
				}
			}
			w.roll()
			if err := w.log.Flush(); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(w.log.SizeBytes())
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				w.fs = mem.CrashClone(vfs.CrashConfig{ProcessOnly: true})
				w.reopen(partlog.Options{RecoveryPoint: w.log.LogEndOffset()})
				task := w.task(w.candidate())
				b.StartTimer()
				if _, _, err := (&Cleaner{Pace: unpaced, BufferBytes: 256 << 10}).Clean(task); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
