package partlog

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"sluice/protocol/record"
	"sluice/storage/vfs"
)

// TestAppendAsLeader_DoesNotAllocate: in the steady state, with idempotent producers and index entries at their usual rate.
func TestAppendAsLeader_DoesNotAllocate(t *testing.T) {
	l := mustOpen(t, Options{FS: vfs.OS(), Dir: filepath.ToSlash(t.TempDir())})
	defer l.Discard()
	b := build(t, record.BuilderOptions{ProducerID: 1}, 1000, 1)
	sequence := int32(0)
	appendOne := func() {
		binary.BigEndian.PutUint32(b[53:], uint32(sequence)) // the log leaves the checksum to the validation
		sequence++
		if _, err := l.AppendAsLeader(b, 0, Client, 1); err != nil {
			t.Fatal(err)
		}
	}
	for range 5000 { // the room of the index tails has grown to its largest
		appendOne()
	}
	if n := testing.AllocsPerRun(2000, appendOne); n > 0 {
		t.Errorf("%v allocations an append", n)
	}
}

// TestRead_AtTheEnd_DoesNotAllocate: what nearly every fetch does.
func TestRead_AtTheEnd_DoesNotAllocate(t *testing.T) {
	l := mustOpen(t, Options{FS: vfs.OS(), Dir: filepath.ToSlash(t.TempDir())})
	defer l.Discard()
	for range 100 {
		mustAppend(t, l, plain(t, 1000, 1), 1)
	}
	if n := testing.AllocsPerRun(1000, func() {
		s, err := l.Read(98, 1<<20, true, 100)
		if err != nil || s.Bytes == 0 {
			t.Fatal(s, err)
		}
		s.Close()
	}); n > 0 {
		t.Errorf("%v allocations a read", n)
	}
}

func BenchmarkAppendAsLeader(b *testing.B) {
	for _, size := range []int{100, 1000, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			c := DefaultConfig()
			c.RetentionBytes, c.FileDeleteDelayMs = 1<<30, 0
			l := mustOpen(b, Options{FS: vfs.OS(), Dir: filepath.ToSlash(b.TempDir()), Config: c, Background: func(f func()) { go f() }})
			defer l.Discard()
			batch := build(b, unattributed(), size-record.HeaderBytes, 1)
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				info, err := l.AppendAsLeader(batch, 0, Client, 1)
				if err != nil {
					b.Fatal(err)
				}
				if info.Rolled {
					if _, err := l.Retain(1, info.BaseOffset); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	l := mustOpen(b, Options{FS: vfs.OS(), Dir: filepath.ToSlash(b.TempDir())})
	defer l.Discard()
	batch := plain(b, 1000, 1)
	const count = 200_000
	for range count {
		mustAppend(b, l, batch, 1)
	}
	read := func(offset func(i int64) int64) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				s, err := l.Read(offset(i), 1<<20, true, count)
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		}
	}
	b.Run("end", read(func(i int64) int64 { return count - 1 - i%8 }))
	b.Run("anywhere", read(func(i int64) int64 { return i * 7919 % count }))
}

func BenchmarkOpen(b *testing.B) {
	fs, c := vfs.OS(), DefaultConfig()
	dir := filepath.ToSlash(b.TempDir())
	l := mustOpen(b, Options{FS: fs, Dir: dir, Config: c})
	batch := plain(b, 10_000, 1)
	for range 20_000 {
		mustAppend(b, l, batch, 1)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	for _, clean := range []bool{true, false} {
		b.Run(fmt.Sprintf("clean=%v", clean), func(b *testing.B) {
			b.SetBytes(l.SizeBytes())
			for b.Loop() {
				mustOpen(b, Options{FS: fs, Dir: dir, Config: c, CleanShutdown: clean}).Discard()
			}
		})
	}
}
