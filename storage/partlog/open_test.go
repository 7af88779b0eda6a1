package partlog

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sluice/protocol/record"
	"sluice/storage/segment"
	"sluice/storage/vfs"
)

// threeSegments is a log that was closed: offsets 0 to 5, two a segment, with an index entry for the second of each.
func threeSegments(t *testing.T) (*vfs.Mem, *Config, []record.Batch) {
	t.Helper()
	mem, c := vfs.NewMem(), DefaultConfig()
	c.SegmentBytes, c.IndexIntervalBytes = 2*len(plain(t, 100, 1)), 0
	l := mustOpen(t, Options{FS: mem, Dir: "/t-0", Config: c})
	for i := range int64(6) {
		if _, err := l.AppendAsLeader(build(t, record.BuilderOptions{ProducerID: 4, BaseSequence: int32(i)}, 100, 10+i), record.LeaderEpoch(i/3), Client, 1); err != nil {
			t.Fatal(err)
		}
	}
	all := readAll(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return mem, c, all
}

func readFile(t *testing.T, fsys vfs.FS, name string) []byte {
	t.Helper()
	f, err := fsys.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && size > 0 {
		t.Fatal(err)
	}
	return b
}

func segmentPath(base int64, suffix string) string { return "/t-0/" + segment.FileName(base, suffix) }

// TestOpen_Repairs damages a log in one way each and opens it, as closed and as not closed.
func TestOpen_Repairs(t *testing.T) {
	change := func(base int64, suffix string, f func(b []byte) []byte) func(*testing.T, *vfs.Mem) {
		return func(t *testing.T, mem *vfs.Mem) {
			name := segmentPath(base, suffix)
			writeFile(t, mem, name, f(readFile(t, mem, name)))
		}
	}
	remove := func(base int64, suffix string) func(*testing.T, *vfs.Mem) {
		return func(t *testing.T, mem *vfs.Mem) {
			if err := mem.Remove(segmentPath(base, suffix)); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[(at+len(b))%len(b)]++; return b }
	}
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:len(b)-n] } }
	for name, test := range map[string]struct {
		damage  func(*testing.T, *vfs.Mem)
		clean   int64 // log end offset if the log was closed
		unclean int64 // and if it was not, with a recovery point of 0
	}{
		"nothing":                   {func(*testing.T, *vfs.Mem) {}, 6, 6},
		"offset index missing":      {remove(0, ".index"), 6, 6},
		"last offset index missing": {remove(4, ".index"), 6, 6},
		"time index missing":        {remove(2, ".timeindex"), 6, 6},
		"snapshot missing":          {remove(6, ".snapshot"), 6, 6},
		"snapshot damaged":          {change(6, ".snapshot", flip(-1)), 6, 6},
		"all snapshots damaged": {func(t *testing.T, mem *vfs.Mem) {
			change(6, ".snapshot", cut(3))(t, mem)
			change(4, ".snapshot", cut(1))(t, mem)
			change(2, ".snapshot", cut(40))(t, mem)
		}, 6, 6},
		"offset index cut short":          {change(2, ".index", cut(3)), 6, 6},
		"time index cut short":            {change(2, ".timeindex", cut(3)), 6, 6},
		"offset index of wrong positions": {change(2, ".index", flip(7)), 6, 6},
		"offset index of wrong offsets":   {change(2, ".index", flip(3)), 6, 6},
		"offset index of zeros":           {change(4, ".index", func(b []byte) []byte { return make([]byte, 800) }), 6, 6},
		"time index of zeros":             {change(4, ".timeindex", func(b []byte) []byte { return make([]byte, 1200) }), 6, 6},
		"time index out of order":         {change(0, ".timeindex", func(b []byte) []byte { return append(bytes.Clone(b[12:]), b...) }), 6, 6},
		"torn last batch":                 {change(4, ".log", cut(5)), 5, 5},
		"torn header":                     {change(4, ".log", cut(len(plain(t, 100, 1))-20)), 5, 5},
		"zeros at the end":                {change(4, ".log", func(b []byte) []byte { return append(b, make([]byte, 5000)...) }), 6, 6},
		"garbage at the end":              {change(4, ".log", func(b []byte) []byte { return append(b, bytes.Repeat([]byte{0xa5}, 300)...) }), 6, 6},
		"corrupt batch in the middle":     {change(2, ".log", flip(-1)), 6, 3},
		"corrupt first batch":             {change(0, ".log", flip(100)), 6, 0},
		"size beyond the file":            {change(4, ".log", func(b []byte) []byte { b[len(b)/2+8] = 0x7f; return b }), 5, 5},
		"negative size":                   {change(4, ".log", func(b []byte) []byte { b[len(b)/2+8] = 0xff; return b }), 5, 5},
		"empty segment in the middle":     {change(2, ".log", func([]byte) []byte { return nil }), 6, 2},
		"lost end in the middle":          {change(2, ".log", func(b []byte) []byte { return b[:len(b)/2] }), 6, 3},
		"index without a log": {func(t *testing.T, mem *vfs.Mem) {
			writeFile(t, mem, segmentPath(77, ".index"), make([]byte, 8))
			writeFile(t, mem, segmentPath(77, ".txnindex"), nil)
		}, 6, 6},
		"left from deleting and cleaning": {func(t *testing.T, mem *vfs.Mem) {
			writeFile(t, mem, segmentPath(0, ".log.deleted"), []byte("x"))
			writeFile(t, mem, segmentPath(0, ".snapshot.deleted"), []byte("x"))
			writeFile(t, mem, segmentPath(0, ".log.cleaned"), []byte("x"))
		}, 6, 6},
		"snapshots that belong to nothing": {func(t *testing.T, mem *vfs.Mem) {
			for _, at := range []int64{1, 3, 90} {
				writeFile(t, mem, segmentPath(at, ".snapshot"), readFile(t, mem, segmentPath(6, ".snapshot")))
			}
		}, 6, 6},
		"other files": {func(t *testing.T, mem *vfs.Mem) {
			writeFile(t, mem, "/t-0/partition.metadata", []byte("version: 0\n"))
			writeFile(t, mem, "/t-0/notes.log", []byte("x"))
			writeFile(t, mem, "/t-0/99999999999999999999.log", []byte("x"))
		}, 6, 6},
	} {
		for _, clean := range []bool{true, false} {
			mem, c, all := threeSegments(t)
			test.damage(t, mem)
			want := test.unclean
			if clean {
				want = test.clean
			}
			var reports []Recovery
			l, err := Open(Options{FS: mem, Dir: "/t-0", Config: c, CleanShutdown: clean, Progress: func(r Recovery) { reports = append(reports, r) }})
			if err != nil {
				t.Errorf("%s, clean %v: %v", name, clean, err)
				continue
			}
			if l.LogEndOffset() != want || l.LogStartOffset() != 0 {
				t.Errorf("%s, clean %v: log from %d to %d, want 0 to %d; %+v", name, clean, l.LogStartOffset(), l.LogEndOffset(), want, reports)
			}
			if clean && want < int64(len(all)) || !clean && test.clean == test.unclean || name == "nothing" {
				checkState(t, l, model{batches: all[:want], end: want})
			}
			// What is said not to be scanned is found out when it is read, and does not harm the rest.
			if !strings.Contains(name, "middle") && !strings.Contains(name, "corrupt") || !clean {
				if got := readAll(t, l); !slices.EqualFunc(got, all[:want], func(a, b record.Batch) bool { return bytes.Equal(a, b) }) {
					t.Errorf("%s, clean %v: %d batches", name, clean, len(got))
				}
				if _, err := l.AppendAsLeader(plain(t, 10, 1), 2, Client, 1); err != nil {
					t.Errorf("%s, clean %v: append: %v", name, clean, err)
				}
				if want > 0 && l.LatestEpoch() != 2 {
					t.Errorf("%s, clean %v: epoch %d", name, clean, l.LatestEpoch())
				}
			}
			if err := l.Close(); err != nil {
				t.Errorf("%s, clean %v: close: %v", name, clean, err)
			}
			for _, file := range listDir(t, mem) {
				if strings.Contains(file, "deleted") || strings.Contains(file, "cleaned") || strings.Contains(file, "77") {
					t.Errorf("%s, clean %v: %s is still there", name, clean, file)
				}
			}
		}
	}
}

// TestOpen_CleanLog_ReadsLittle: how much is read does not depend on how large the log is.
func TestOpen_CleanLog_ReadsLittle(t *testing.T) {
	mem, c := vfs.NewMem(), DefaultConfig()
	l := mustOpen(t, Options{FS: mem, Dir: "/t-0", Config: c})
	for range 500 {
		mustAppend(t, l, plain(t, 5000, 1), 1)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	counting := &readCounter{FS: mem}
	mustOpen(t, Options{FS: counting, Dir: "/t-0", Config: c, CleanShutdown: true})
	if counting.bytes > 64<<10 {
		t.Errorf("%d bytes read", counting.bytes)
	}
}

type readCounter struct {
	vfs.FS
	bytes int
}

func (c *readCounter) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	return &countedFile{f, c}, err
}

type countedFile struct {
	vfs.File
	counter *readCounter
}

func (f *countedFile) ReadAt(p []byte, off int64) (int, error) {
	f.counter.bytes += len(p)
	return f.File.ReadAt(p, off)
}

// TestOpen_LogStartOffset: from the checkpoint, also one beyond everything that is left.
func TestOpen_LogStartOffset(t *testing.T) {
	for start, want := range map[int64][2]int64{0: {0, 6}, 3: {3, 6}, 6: {6, 6}, 9: {9, 9}} {
		mem, c, _ := threeSegments(t)
		l := mustOpen(t, Options{FS: mem, Dir: "/t-0", Config: c, LogStartOffset: start, CleanShutdown: true})
		if got := [2]int64{l.LogStartOffset(), l.LogEndOffset()}; got != want {
			t.Errorf("start offset %d: log from %d to %d, want %v", start, got[0], got[1], want)
		}
		if n, err := l.Retain(1, l.LogEndOffset()); err != nil || n != int(min(start, 5)/2) && start < 9 {
			t.Errorf("start offset %d: %d segments deleted, %v", start, n, err)
		}
		mustAppend(t, l, plain(t, 10, 1), 1)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLog_DamagedIndex_IsFoundAndMended: readers get what they ask for although the index leads astray, and Retain makes it good.
func TestLog_DamagedIndex_IsFoundAndMended(t *testing.T) {
	mem, c := vfs.NewMem(), DefaultConfig()
	c.IndexIntervalBytes, c.SegmentBytes, c.RetentionMs = 0, 5000, -1
	l := mustOpen(t, Options{FS: mem, Dir: "/t-0", Config: c})
	for i := range int64(100) {
		mustAppend(t, l, plain(t, 100, i), 1)
	}
	all := readAll(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	good := readFile(t, mem, segmentPath(0, ".index"))
	bad := bytes.Clone(good)
	for i := 8; i < len(bad)-16; i += 8 { // the first and the last entry, which are looked at when the log is opened, stay
		bad[i+7]++
	}
	writeFile(t, mem, segmentPath(0, ".index"), bad)
	l = mustOpen(t, Options{FS: mem, Dir: "/t-0", Config: c, CleanShutdown: true})
	for i := range int64(100) {
		if got := readBytes(t, l, i, 1, 100); !bytes.Equal(got, all[i]) {
			t.Fatalf("read at %d gives something else", i)
		}
	}
	if _, err := l.Retain(1, 100); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, mem, segmentPath(0, ".index")); !bytes.Equal(got, good) {
		t.Error("the index has not been mended")
	}
}

// TestTruncateTo_Epochs: what OffsetForLeaderEpoch answers before and after.
func TestTruncateTo_Epochs(t *testing.T) {
	l, _ := newLog(t, nil)
	for i, e := range []record.LeaderEpoch{0, 0, 2, 2, 5} {
		if _, err := l.AppendAsLeader(plain(t, 1, 1), e, Client, 1); err != nil {
			t.Fatal(i, err)
		}
	}
	ends := func() string {
		var b strings.Builder
		for e := record.LeaderEpoch(-1); e < 7; e++ {
			found, end := l.EndOffsetForEpoch(e)
			fmt.Fprintf(&b, "%d:%d,%d ", e, found, end)
		}
		return b.String()
	}
	if got, want := ends(), "-1:-1,-1 0:0,2 1:0,2 2:2,4 3:2,4 4:2,4 5:5,5 6:-1,-1 "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := l.TruncateTo(3); err != nil {
		t.Fatal(err)
	}
	l.AssignEpochStart(7, 3)
	if got, want := ends(), "-1:-1,-1 0:0,2 1:0,2 2:2,3 3:2,3 4:2,3 5:2,3 6:2,3 "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if l.EpochForOffset(0) != 0 || l.EpochForOffset(2) != 2 || l.EpochForOffset(3) != 7 {
		t.Error(l.EpochForOffset(0), l.EpochForOffset(2), l.EpochForOffset(3))
	}
}

// FuzzOpen opens a folder with any bytes as its log, after an unclean stop. It must end with a log that can be read and appended to.
func FuzzOpen(f *testing.F) {
	b := record.NewBuilder(record.BuilderOptions{ProducerID: 4}).Add(record.Record{TimestampMs: 1, Value: []byte("value")})
	batch, err := b.Build()
	if err != nil {
		f.Fatal(err)
	}
	marker, err := record.NewBuilder(record.BuilderOptions{ProducerID: 4, BaseSequence: -1, Transactional: true, Control: true, BaseOffset: 1}).
		Add(record.ControlRecord(record.EndTxnMarker{}, 1)).Build()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(batch), uint64(1))
	f.Add(append(slices.Clone([]byte(batch)), marker...), uint64(2))
	f.Add([]byte(batch[:40]), uint64(3))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		if seed%2 == 0 && len(b) > 0 {
			r := rand.New(rand.NewPCG(seed, 0)) // a good log with one bad byte
			b = append(slices.Clone([]byte(batch)), marker...)
			b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
		}
		mem := vfs.NewMem()
		if err := mem.MkdirAll("/t-0", 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, mem, segmentPath(0, ".log"), b)
		for _, clean := range []bool{false, true} {
			l, err := Open(Options{FS: mem, Dir: "/t-0", CleanShutdown: clean})
			if err != nil {
				if clean {
					continue
				}
				return // a batch with a good checksum that makes no sense
			}
			for offset := l.LogStartOffset(); offset < l.LogEndOffset(); offset++ {
				s, err := l.Read(offset, 100, true, l.LogEndOffset())
				if err != nil && !clean {
					t.Fatalf("read at %d: %v", offset, err)
				}
				s.Close()
				if offset > 100 {
					break // a batch may claim any number of offsets
				}
			}
			_, _, _ = l.OffsetForTimestamp(1, l.LogEndOffset())
			if l.LogEndOffset() < 1<<60 {
				if _, err := l.AppendAsLeader(plain(t, 1, 1), 0, Client, 1); err != nil {
					t.Fatalf("append: %v", err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatalf("close: %v", err)
			}
		}
	})
}
