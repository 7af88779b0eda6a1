package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"sluice/protocol/record"
	"sluice/storage/vfs"
)

func newSegment(t *testing.T, base int64, handles *Handles) (*Segment, *vfs.Mem) {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("/t-0", 0o755); err != nil {
		t.Fatal(err)
	}
	return New(Options{FS: fs, Dir: "/t-0", BaseOffset: base, Handles: handles}), fs
}

func batchAt(tb testing.TB, offset, timestampMs int64, count, valueBytes int) record.Batch {
	tb.Helper()
	o := record.Unattributed()
	o.BaseOffset = offset
	b := record.NewBuilder(o)
	for range count {
		b.Add(record.Record{TimestampMs: timestampMs, Value: make([]byte, valueBytes)})
	}
	batch, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return batch
}

// TestFileName both ways.
func TestFileName(t *testing.T) {
	for name, want := range map[string]string{
		"00000000000000000000.log":                   "0 .log",
		"00000000000000000123.index":                 "123 .index",
		"09223372036854775807.timeindex":             "9223372036854775807 .timeindex",
		"00000000000000000005.log.deleted":           "5 .log.deleted",
		"00000000000000000005.snapshot":              "5 .snapshot",
		"09223372036854775808.log":                   "",
		"99999999999999999999.log":                   "",
		"0000000000000000005.log":                    "",
		"-0000000000000000005.log":                   "",
		"+0000000000000000005.log":                   "",
		"00000000000000000005":                       "",
		"0000000000000000000x.log":                   "",
		"leader-epoch-checkpoint":                    "",
		"00000000000000000000-0000000001.checkpoint": "",
	} {
		offset, suffix, ok := ParseFileName(name)
		got := ""
		if ok {
			got = fmt.Sprintf("%d %s", offset, suffix)
			if FileName(offset, suffix) != name {
				t.Errorf("%s is written as %s", name, FileName(offset, suffix))
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestIndex_Lookup compares lookups with a walk over all entries, with none, few and many of them in memory.
func TestIndex_Lookup(t *testing.T) {
	for _, count := range []int{0, 1, 7, 8, 9, 511, 512, 513, 1024, 1030, 3000} {
		s, _ := newSegment(t, 100, NewHandles(5))
		for i := range count {
			if err := errors.Join(s.offsets.add(offsetEntry{int64(3*i + 1), int64(10*i + 10)}), s.times.add(timeEntry{int64(5*i + 2), int64(3*i + 1)})); err != nil {
				t.Fatal(err)
			}
		}
		check := func(when string) {
			t.Helper()
			if s.offsets.entries() != count || s.times.entries() != count {
				t.Fatalf("%d entries, %s: %d and %d", count, when, s.offsets.entries(), s.times.entries())
			}
			step := 1 + count/40
			for i := -1; i <= count; i += step {
				for d := int64(0); d < 3; d++ {
					relative := int64(3*i) + 1 + d
					want := min(i, count-1)
					e, found, err := s.offsets.lookup(relative)
					if err != nil || found != (want >= 0) || found && e != (offsetEntry{int64(3*want + 1), int64(10*want + 10)}) {
						t.Fatalf("%d entries, %s: offset %d gives %+v %v %v", count, when, relative, e, found, err)
					}
				}
				for d := int64(0); d < 5; d++ {
					want := min(i, count-1)
					e, found, err := s.times.lookup(int64(5*i) + 2 + d)
					if err != nil || found != (want >= 0) || found && e != (timeEntry{int64(5*want + 2), int64(3*want + 1)}) {
						t.Fatalf("%d entries, %s: time %d gives %+v %v %v", count, when, 5*i+2, e, found, err)
					}
				}
				if bound, ok, err := s.UpperBound(int64(10*i) + 5); i >= 0 && i < count && (err != nil || !ok || bound != 100+int64(3*i+1)) {
					t.Fatalf("%d entries, %s: upper bound of %d is %d %v %v", count, when, 10*i+5, bound, ok, err)
				}
			}
		}
		check("as appended")
		if err := errors.Join(s.offsets.spill(), s.times.spill()); err != nil {
			t.Fatal(err)
		}
		check("on the disk")
		for keep := count; keep > 0; keep = keep * 2 / 3 {
			if err := errors.Join(s.offsets.truncateTo(int64(3*keep+1)), s.times.truncateTo(int64(3*keep+1))); err != nil {
				t.Fatal(err)
			}
			count = keep
			check("truncated")
		}
	}
}

// TestRecent_Find agrees with a scan wherever it is sure, over many turns of the ring.
func TestRecent_Find(t *testing.T) {
	var r recentBatches
	var all []Location
	offset, position := int64(50), int64(0)
	for i := range 200 {
		offset += int64(i % 3) // gaps
		l := Location{offset, offset + 1 + int64(i%4), position, int64(60 + i)}
		all = append(all, l)
		r.note(l)
		offset, position = l.NextOffset, position+l.Bytes
		for target := int64(45); target <= offset; target++ {
			want := slices.IndexFunc(all, func(l Location) bool { return l.NextOffset > target })
			got, ok := r.find(target)
			if ok && (want < 0 || got != all[want]) {
				t.Fatalf("%d of %d: %+v", target, i, got)
			}
			if !ok && want >= max(1, len(all)-recentSlots+1) {
				t.Fatalf("%d of %d: not found", target, i)
			}
			end, ok := r.end(target)
			wantEnd := int64(0)
			for _, l := range all {
				if l.NextOffset <= target {
					wantEnd = l.Position + l.Bytes
				}
			}
			if ok && end != wantEnd {
				t.Fatalf("end %d of %d: %d, want %d", target, i, end, wantEnd)
			}
		}
	}
}

// TestHandles_Bound: files beyond the bound are closed, those in use never.
func TestHandles_Bound(t *testing.T) {
	handles := NewHandles(3)
	mem := vfs.NewMem()
	if err := mem.MkdirAll("/t-0", 0o755); err != nil {
		t.Fatal(err)
	}
	var segments []*Segment
	for i := range int64(10) {
		s := New(Options{FS: mem, Dir: "/t-0", BaseOffset: i, Handles: handles})
		if err := s.Append(batchAt(t, i, 1, 1, 10), 0); err != nil {
			t.Fatal(err)
		}
		segments = append(segments, s)
	}
	if n := handles.Open(); n > 3 {
		t.Errorf("%d files open", n)
	}
	for _, s := range segments[:5] {
		if _, err := s.AcquireLog(); err != nil {
			t.Fatal(err)
		}
	}
	if n := handles.Open(); n != 5 {
		t.Errorf("%d files open, 5 in use", n)
	}
	if at, ok, err := segments[9].Find(9); err != nil || !ok || at.BaseOffset != 9 {
		t.Errorf("%+v %v %v", at, ok, err)
	}
	for _, s := range segments[:5] {
		s.ReleaseLog()
	}
	for _, s := range segments {
		if err := s.SyncLog(); err != nil {
			t.Fatal(err)
		}
	}
	if n := handles.Open(); n > 3 {
		t.Errorf("%d files open", n)
	}
	for _, s := range segments {
		s.Close()
	}
	if n := handles.Open(); n != 0 {
		t.Errorf("%d files open after all were closed", n)
	}
}

// TestHandles_Concurrent opens, uses and closes the same few files from many goroutines.
func TestHandles_Concurrent(t *testing.T) {
	handles := NewHandles(2)
	s, mem := newSegment(t, 0, handles)
	segments := []*Segment{s}
	for i := int64(1); i < 6; i++ {
		segments = append(segments, New(Options{FS: mem, Dir: "/t-0", BaseOffset: i, Handles: handles}))
	}
	for i, s := range segments {
		if err := s.Append(batchAt(t, int64(i), 1, 1, 10), 0); err != nil {
			t.Fatal(err)
		}
	}
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range 2000 {
				s := segments[(i*7+worker)%len(segments)]
				f, err := s.AcquireLog()
				if err != nil {
					t.Error(err)
					return
				}
				var b [8]byte
				if _, err := f.ReadAt(b[:], 0); err != nil {
					t.Error(err)
				}
				s.ReleaseLog()
			}
		})
	}
	wait.Wait()
	if n := handles.Open(); n > 2 {
		t.Errorf("%d files open", n)
	}
}

// TestRemove_WhileRead: a reader keeps the file; who comes later does not find it.
func TestRemove_WhileRead(t *testing.T) {
	s, mem := newSegment(t, 7, NewHandles(5))
	b := batchAt(t, 7, 1, 2, 10)
	if err := errors.Join(s.Append(b, 0), s.AppendAborted(AbortedTxn{ProducerID: 1, FirstOffset: 7, LastOffset: 8, LastStableOffset: 9}), s.Finish()); err != nil {
		t.Fatal(err)
	}
	f, err := s.AcquireLog()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.MarkDeleted(), s.MarkDeleted()); err != nil {
		t.Fatal(err)
	}
	names, err := mem.ReadDir("/t-0")
	if err != nil || len(names) != 4 || names[1].Name() != "00000000000000000007.log.deleted" {
		t.Errorf("%v %v", names, err)
	}
	if err := errors.Join(s.Remove(), s.Remove()); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(b))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, b) {
		t.Errorf("a reader lost its file: %v", err)
	}
	s.ReleaseLog()
	if _, err := s.AcquireLog(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opened a removed file: %v", err)
	}
	if names, _ := mem.ReadDir("/t-0"); len(names) != 0 {
		t.Error(names)
	}
}

// TestAborted reads back many entries, and only those of markers before a truncation.
func TestAborted(t *testing.T) {
	s, mem := newSegment(t, 0, NewHandles(5))
	if err := s.Append(batchAt(t, 0, 1, 1, 10), 0); err != nil {
		t.Fatal(err)
	}
	var want []AbortedTxn
	for i := range int64(300) {
		want = append(want, AbortedTxn{record.ProducerID(i), 2 * i, 2*i + 1, 2*i + 2})
		if err := s.AppendAborted(want[i]); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (got []AbortedTxn) {
		if err := s.Aborted(func(a AbortedTxn) bool { got = append(got, a); return true }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := read(); !slices.Equal(got, want) {
		t.Errorf("%d entries", len(got))
	}
	if stat, err := mem.Stat("/t-0/00000000000000000000.txnindex"); err != nil || stat.Size() != 300*34 {
		t.Error(stat, err)
	}
	if err := s.txns.truncateTo(401); err != nil {
		t.Fatal(err)
	}
	if got := read(); !slices.Equal(got, want[:200]) {
		t.Errorf("%d entries after the truncation", len(got))
	}
}

// TestRecover_LargeBatch checks one that is larger than what is read at once, good and with one bad byte.
func TestRecover_LargeBatch(t *testing.T) {
	for _, bad := range []bool{false, true} {
		s, mem := newSegment(t, 0, NewHandles(5))
		if err := errors.Join(s.Append(batchAt(t, 0, 1, 1, 100), 0), s.Append(batchAt(t, 1, 1, 3, recoverBytes), 0), s.Append(batchAt(t, 4, 1, 1, 100), 0)); err != nil {
			t.Fatal(err)
		}
		if bad {
			f, err := s.AcquireLog()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte{7}, 2*recoverBytes); err != nil {
				t.Fatal(err)
			}
			s.ReleaseLog()
		}
		stat, err := mem.Stat("/t-0/00000000000000000000.log")
		if err != nil {
			t.Fatal(err)
		}
		s = Load(Options{FS: mem, Dir: "/t-0", Handles: NewHandles(5)}, Files{Log: stat.Size(), Offsets: -1, Times: -1, Txns: -1})
		var seen []int64
		cut, err := s.Recover(0, func(header record.Batch) error { seen = append(seen, header.BaseOffset()); return nil })
		want, wantCut := []int64{0, 1, 4}, int64(0)
		if bad {
			want, wantCut = []int64{0}, stat.Size()-int64(len(batchAt(t, 0, 1, 1, 100)))
		}
		if err != nil || !slices.Equal(seen, want) || cut != wantCut || s.NextOffset() != want[len(want)-1]+1 {
			t.Errorf("bad %v: batches %v, %d bytes cut, %v", bad, seen, cut, err)
		}
	}
}
