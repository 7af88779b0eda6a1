package partlog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"sluice/protocol/compress"
	"sluice/protocol/record"
	"sluice/storage/producer"
	"sluice/storage/segment"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

// build makes a batch of records with these timestamps and values of valueBytes.
func build(tb testing.TB, o record.BuilderOptions, valueBytes int, timestamps ...int64) record.Batch {
	tb.Helper()
	b := record.NewBuilder(o)
	for _, at := range timestamps {
		b.Add(record.Record{TimestampMs: at, Value: bytes.Repeat([]byte{'v'}, valueBytes)})
	}
	batch, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return batch
}

func plain(tb testing.TB, valueBytes int, timestamps ...int64) record.Batch {
	tb.Helper()
	return build(tb, unattributed(), valueBytes, timestamps...)
}

func mustAppend(tb testing.TB, l *Log, b record.Batch, nowMs int64) AppendInfo {
	tb.Helper()
	info, err := l.AppendAsLeader(b, 0, Client, nowMs)
	if err != nil {
		tb.Fatal(err)
	}
	return info
}

func newLog(tb testing.TB, change func(*Config)) (*Log, *vfs.Mem) {
	tb.Helper()
	fs, c := vfs.NewMem(), DefaultConfig()
	if change != nil {
		change(c)
	}
	return mustOpen(tb, Options{FS: fs, Dir: "/t-0", Config: c, NowMs: 1000}), fs
}

func listDir(tb testing.TB, fs vfs.FS) []string {
	tb.Helper()
	entries, err := fs.ReadDir("/t-0")
	if err != nil {
		tb.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestOpen_EmptyLog_IsCheap: no file, no handle, and little memory.
func TestOpen_EmptyLog_IsCheap(t *testing.T) {
	fs, c, handles := vfs.NewMem(), DefaultConfig(), segment.NewHandles(10)
	const count = 1000
	logs := make([]*Log, count)
	open := func(i int) *Log {
		return mustOpen(t, Options{FS: fs, Dir: fmt.Sprintf("/t-%d", i), Config: c, Handles: handles})
	}
	for i := range logs {
		open(i) // the folders of the file system in memory do not count
	}
	before := heapBytes()
	for i := range logs {
		logs[i] = open(i)
	}
	if per := (heapBytes() - before) / count; per > 3<<10 {
		t.Errorf("%d bytes for an empty log, want at most 3 KiB", per)
	}
	if n := handles.Open(); n != 0 {
		t.Errorf("%d files open", n)
	}
	for i, l := range logs {
		l.AssignEpochStart(3, 0)
		if err := errors.Join(l.Flush(), l.Close()); err != nil {
			t.Fatal(err)
		}
		if names, err := fs.ReadDir(fmt.Sprintf("/t-%d", i)); err != nil || len(names) > 0 {
			t.Fatalf("files of an empty log: %v %v", names, err)
		}
	}
	runtime.KeepAlive(logs)
}

func heapBytes() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestAppendAsLeader_StampsTheBatch: offset, epoch, and time where the topic wants it (V07).
func TestAppendAsLeader_StampsTheBatch(t *testing.T) {
	l, _ := newLog(t, nil)
	first := mustAppend(t, l, plain(t, 10, 5, 7, 6), 1000)
	if want := (AppendInfo{BaseOffset: 0, LastOffset: 2, LogAppendTimeMs: -1, MaxTimestampMs: 7}); first != want {
		t.Errorf("%+v, want %+v", first, want)
	}
	c := DefaultConfig()
	c.LogAppendTime = true
	l.SetConfig(c)
	b := plain(t, 10, 1000, 2000, 3000)
	info, err := l.AppendAsLeader(b, 4, Client, 5000)
	if err != nil || info.BaseOffset != 3 || info.LastOffset != 5 || info.LogAppendTimeMs != 5000 || info.MaxTimestampMs != 5000 {
		t.Errorf("%+v %v", info, err)
	}
	if b.BaseOffset() != 3 || b.LeaderEpoch() != 4 || b.TimestampType() != record.LogAppendTime || b.MaxTimestamp() != 5000 || !b.ValidCRC() {
		t.Errorf("batch at %d, epoch %d, %v %d, CRC %v", b.BaseOffset(), b.LeaderEpoch(), b.TimestampType(), b.MaxTimestamp(), b.ValidCRC())
	}
	if got := readBytes(t, l, 4, 1, 6); !bytes.Equal(got, b) {
		t.Error("what is read is not what was appended")
	}
}

// TestAppend_Refuses lists what is not appended, and that the log stays as it was.
func TestAppend_Refuses(t *testing.T) {
	l, _ := newLog(t, func(c *Config) { c.MaxMessageBytes, c.SegmentBytes = 1000, 2000 })
	mustAppend(t, l, plain(t, 10, 1), 1)
	at := func(b record.Batch, offset int64) record.Batch {
		b.SetBaseOffset(offset)
		return b
	}
	corrupt := at(plain(t, 10, 1), 1)
	corrupt[len(corrupt)-1]++
	magic := at(plain(t, 10, 1), 1)
	magic[16] = 1
	for name, test := range map[string]struct {
		append func() error
		want   error
	}{
		"larger than a message may be": {func() error { _, err := l.AppendAsLeader(plain(t, 1000, 1), 0, Client, 1); return err }, new(TooLarge)},
		"larger than a segment":        {func() error { _, err := l.AppendAsFollower(at(plain(t, 2000, 1), 1), 1); return err }, new(TooLarge)},
		"offset that exists":           {func() error { _, err := l.AppendAsFollower(at(plain(t, 10, 1), 0), 1); return err }, new(UnexpectedOffset)},
		"offsets out of order": {func() error {
			_, err := l.AppendAsFollower(append(at(plain(t, 10, 1), 5), at(plain(t, 10, 1), 4)...), 1)
			return err
		}, new(UnexpectedOffset)},
		"corrupt": {func() error { _, err := l.AppendAsFollower(corrupt, 1); return err }, new(record.Corrupt)},
		"corrupt second": {func() error {
			_, err := l.AppendAsFollower(append(at(plain(t, 10, 1), 1), at(corrupt, 2)...), 1)
			return err
		}, new(record.Corrupt)},
		"old message format":  {func() error { _, err := l.AppendAsFollower(magic, 1); return err }, new(record.Corrupt)},
		"offset beyond reach": {func() error { _, err := l.AppendAsFollower(at(plain(t, 10, 1), math.MaxInt64-1), 1); return err }, new(record.Corrupt)},
	} {
		err := test.append()
		if fmt.Sprintf("%T", err) != fmt.Sprintf("%T", test.want) {
			t.Errorf("%s: %v, want a %T", name, err, test.want)
		}
		if l.LogEndOffset() != 1 {
			t.Fatalf("%s: log ends at %d", name, l.LogEndOffset())
		}
	}
	if info, err := l.AppendAsFollower(plain(t, 10, 1)[:60], 1); err != nil || info.LastOffset != info.BaseOffset-1 {
		t.Errorf("a piece of a batch: %+v %v", info, err)
	}
}

// TestV09_RetriedBatches: the last five batches are answered with their first offsets, gaps and older ones are refused.
func TestV09_RetriedBatches(t *testing.T) {
	l, _ := newLog(t, nil)
	send := func(sequence int32) (AppendInfo, error) {
		return l.AppendAsLeader(build(t, record.BuilderOptions{ProducerID: 9, BaseSequence: sequence}, 10, 1), 0, Client, 1)
	}
	for sequence := range int32(6) {
		if info, err := send(sequence); err != nil || info.BaseOffset != int64(sequence) {
			t.Fatalf("sequence %d: %+v %v", sequence, info, err)
		}
	}
	for _, sequence := range []int32{3, 1, 5, 2, 4, 1} {
		if info, err := send(sequence); err != nil || !info.Duplicate || info.BaseOffset != int64(sequence) || info.LastOffset != int64(sequence) {
			t.Errorf("sequence %d again: %+v %v", sequence, info, err)
		}
	}
	for _, sequence := range []int32{0, 7} {
		var outOfOrder *producer.OutOfOrderSequence
		if _, err := send(sequence); !errors.As(err, &outOfOrder) {
			t.Errorf("sequence %d: %v", sequence, err)
		}
	}
	if info, err := send(6); err != nil || info.BaseOffset != 6 || l.LogEndOffset() != 7 {
		t.Errorf("sequence 6: %+v %v, end %d", info, err, l.LogEndOffset())
	}
}

// TestV10_IdleProducer: an unknown producer may begin anywhere, one whose records are gone is still known, a new epoch begins with 0 and
// ends the old one.
func TestV10_IdleProducer(t *testing.T) {
	fs := vfs.NewMem()
	l := mustOpen(t, Options{FS: fs, Dir: "/t-0", ProducerIDExpirationMs: 10_000, NowMs: 1000})
	send := func(epoch record.ProducerEpoch, sequence int32, nowMs int64) error {
		_, err := l.AppendAsLeader(build(t, record.BuilderOptions{ProducerID: 9, ProducerEpoch: epoch, BaseSequence: sequence}, 10, nowMs), 0, Client, nowMs)
		return err
	}
	for sequence := range int32(2) {
		if err := send(0, sequence, 1000); err != nil {
			t.Fatal(err)
		}
	}
	l.ExpireProducers(10_999)
	if err := send(0, 5, 10_999); err == nil {
		t.Error("a gap was accepted from a producer that has not expired")
	}
	l.ExpireProducers(11_000)
	if err := send(0, 5, 11_000); err != nil {
		t.Errorf("after the expiry: %v", err)
	}
	if err := l.AdvanceLogStartOffset(l.LogEndOffset()); err != nil {
		t.Fatal(err)
	}
	if err := send(0, 6, 11_000); err != nil {
		t.Errorf("after the records were deleted: %v", err)
	}
	var outOfOrder *producer.OutOfOrderSequence
	if err := send(1, 3, 11_000); !errors.As(err, &outOfOrder) {
		t.Errorf("new epoch with sequence 3: %v", err)
	}
	if err := send(1, 0, 11_000); err != nil {
		t.Errorf("new epoch: %v", err)
	}
	var fenced *producer.InvalidProducerEpoch
	if err := send(0, 7, 11_000); !errors.As(err, &fenced) {
		t.Errorf("old epoch: %v", err)
	}
}

// TestV18_OffsetForTimestamp finds the record, not the batch; also after a restart, and after the time index was deleted.
func TestV18_OffsetForTimestamp(t *testing.T) {
	gzip := unattributed()
	gzip.Codec = compress.Gzip
	for name, test := range map[string]struct {
		batches func() []record.Batch
		want    map[int64]string // query: offset,timestamp
	}{
		"four batches": {func() []record.Batch {
			return []record.Batch{plain(t, 1, 2), plain(t, 1, 4), plain(t, 1, 6), plain(t, 1, 8)}
		}, nil},
		"one batch":    {func() []record.Batch { return []record.Batch{plain(t, 1, 2, 4, 6, 8)} }, nil},
		"one gzip":     {func() []record.Batch { return []record.Batch{build(t, gzip, 1, 2, 4, 6, 8)} }, nil},
		"out of order": {func() []record.Batch { return []record.Batch{plain(t, 1, 5, 1, 9, 3)} }, map[int64]string{0: "0,5", 5: "0,5", 6: "2,9", 9: "2,9", 10: ""}},
		"out of order4": {func() []record.Batch {
			return []record.Batch{plain(t, 1, 5), plain(t, 1, 1), plain(t, 1, 9), plain(t, 1, 3)}
		}, map[int64]string{0: "0,5", 6: "2,9", 10: ""}},
		"empty": {func() []record.Batch { return nil }, map[int64]string{0: "", 5: ""}},
	} {
		if test.want == nil {
			test.want = map[int64]string{0: "0,2", 1: "0,2", 2: "0,2", 3: "1,4", 4: "1,4", 5: "2,6", 7: "3,8", 8: "3,8", 9: ""}
		}
		fs := vfs.NewMem()
		c := DefaultConfig()
		c.IndexIntervalBytes = 0
		l := mustOpen(t, Options{FS: fs, Dir: "/t-0", Config: c})
		for _, b := range test.batches() {
			mustAppend(t, l, b, 1)
		}
		check := func(when string) {
			t.Helper()
			for query, want := range test.want {
				got, ok, err := l.OffsetForTimestamp(query, l.LogEndOffset())
				s := ""
				if ok {
					s = fmt.Sprintf("%d,%d", got.Offset, got.TimestampMs)
				}
				if err != nil || s != want {
					t.Errorf("%s, %s: query %d gives %q %v, want %q", name, when, query, s, err, want)
				}
			}
		}
		check("fresh")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = mustOpen(t, Options{FS: fs, Dir: "/t-0", Config: c, CleanShutdown: true})
		check("after a restart")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := fs.Remove("/t-0/00000000000000000000.timeindex"); err != nil && name != "empty" {
			t.Fatal(err)
		}
		l = mustOpen(t, Options{FS: fs, Dir: "/t-0", Config: c, CleanShutdown: true})
		check("without the time index")
		if got, ok, err := l.OffsetForTimestamp(0, 0); ok || err != nil {
			t.Errorf("%s: %+v found at or above the bound", name, got)
		}
	}
}

// TestV28_RetentionNeverMovesOffsets: also expired data in the last segment goes, and the end stays where it was, over a restart too.
func TestV28_RetentionNeverMovesOffsets(t *testing.T) {
	fs, c := vfs.NewMem(), DefaultConfig()
	c.SegmentBytes, c.RetentionMs, c.FileDeleteDelayMs = 300, 1000, 500
	l := mustOpen(t, Options{FS: fs, Dir: "/t-0", Config: c})
	for i := range int64(10) {
		mustAppend(t, l, plain(t, 100, 1000*i), 1000*i)
	}
	all := readAll(t, l)
	reader, err := l.Read(0, 1<<20, true, 10)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := l.Retain(6500, 4); err != nil || n != 4 || l.LogStartOffset() != 4 {
		t.Fatalf("up to the high watermark: %d segments, start %d, %v", n, l.LogStartOffset(), err)
	}
	if got := readAll(t, l); !slices.EqualFunc(got, all[4:], func(a, b record.Batch) bool { return bytes.Equal(a, b) }) {
		t.Error("survivors differ")
	}
	var outOfRange *OffsetOutOfRange
	if _, err := l.Read(3, 100, true, 10); !errors.As(err, &outOfRange) || outOfRange.LogStartOffset != 4 {
		t.Errorf("read below the start: %v", err)
	}
	if n, err := l.Retain(20_000, 10); err != nil || n != 6 || l.LogStartOffset() != 10 || l.LogEndOffset() != 10 {
		t.Fatalf("all: %d segments, %d to %d, %v", n, l.LogStartOffset(), l.LogEndOffset(), err)
	}
	b := make([]byte, reader.Bytes)
	if _, err := reader.File.ReadAt(b, reader.Position); err != nil || !bytes.HasPrefix(b, all[0]) {
		t.Errorf("a slice of a deleted segment cannot be read: %v", err)
	}
	reader.Close()
	if !slices.ContainsFunc(listDir(t, fs), func(name string) bool { return name == "00000000000000000008.log.deleted" }) {
		t.Errorf("files before the delay: %v", listDir(t, fs))
	}
	if _, err := l.Retain(20_500, 10); err != nil {
		t.Fatal(err)
	}
	if err := fs.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	for _, restart := range []func() error{l.Close, func() error { fs = fs.CrashClone(vfs.CrashConfig{}); return nil }} {
		if err := restart(); err != nil {
			t.Fatal(err)
		}
		if names, want := listDir(t, fs), []string{
			"00000000000000000010.index", "00000000000000000010.log", "00000000000000000010.snapshot", "00000000000000000010.timeindex", "leader-epoch-checkpoint",
		}; !slices.Equal(names, want) {
			t.Errorf("files: %v, want %v", names, want)
		}
		l = mustOpen(t, Options{FS: fs, Dir: "/t-0", Config: c, CleanShutdown: true})
		if l.LogStartOffset() != 10 || l.LogEndOffset() != 10 {
			t.Fatalf("%d to %d after a restart", l.LogStartOffset(), l.LogEndOffset())
		}
	}
}

// TestRetain_BySize keeps at least as many bytes as it should.
func TestRetain_BySize(t *testing.T) {
	l, _ := newLog(t, func(c *Config) { c.SegmentBytes, c.RetentionMs, c.RetentionBytes = 200, -1, 400 })
	for range 10 {
		mustAppend(t, l, plain(t, 100, 1), 1) // 170 bytes: one a segment
	}
	if n, err := l.Retain(1, 10); err != nil || n != 7 || l.LogStartOffset() != 7 || l.SizeBytes() < 400 {
		t.Errorf("%d segments deleted, start %d, %d bytes, %v", n, l.LogStartOffset(), l.SizeBytes(), err)
	}
}

// TestRoll_Conditions: when a segment takes no more.
func TestRoll_Conditions(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*Config)
		appends func(l *Log)
		want    []int64 // base offsets
	}{
		"size": {func(c *Config) { c.SegmentBytes = 2 * len(plain(t, 100, 1)) }, func(l *Log) {
			for range 5 {
				mustAppend(t, l, plain(t, 100, 1), 1)
			}
		}, []int64{0, 2, 4}},
		"time of the records": {func(c *Config) { c.SegmentMs = 10 }, func(l *Log) {
			for _, at := range []int64{100, 110, 111, 90, 122} {
				mustAppend(t, l, plain(t, 1, at), 1_000_000)
			}
		}, []int64{0, 2, 4}},
		"time since the segment was made, without timestamps": {func(c *Config) { c.SegmentMs = 10 }, func(l *Log) {
			for _, now := range []int64{1000, 1010, 1011, 1021, 1022} {
				mustAppend(t, l, plain(t, 1, -1), now)
			}
		}, []int64{0, 2, 4}},
		"full offset index": {func(c *Config) { c.SegmentIndexBytes, c.IndexIntervalBytes = 48, 0 }, func(l *Log) {
			for i := range int64(8) {
				mustAppend(t, l, plain(t, 1, 5-i), 1) // times do not grow, so the time index has one entry
			}
		}, []int64{0, 7}},
		"full time index": {func(c *Config) { c.SegmentIndexBytes, c.IndexIntervalBytes = 48, 0 }, func(l *Log) {
			for i := range int64(8) {
				mustAppend(t, l, plain(t, 1, i), 1)
			}
		}, []int64{0, 4}},
		"offset too far from the base": {nil, func(l *Log) {
			for _, offset := range []int64{0, math.MaxInt32, math.MaxInt32 + 1, 1 << 40, 1<<40 + 1} {
				b := plain(t, 1, 1)
				b.SetBaseOffset(offset)
				if _, err := l.AppendAsFollower(b, 1); err != nil {
					t.Fatal(err)
				}
			}
		}, []int64{0, math.MaxInt32 + 1, 1 << 40}},
		"first batch too far from the start": {nil, func(l *Log) {
			b := plain(t, 1, 1)
			b.SetBaseOffset(1 << 40)
			if _, err := l.AppendAsFollower(b, 1); err != nil {
				t.Fatal(err)
			}
		}, []int64{1 << 40}},
		"asked for": {nil, func(l *Log) {
			for range 3 {
				if err := l.Roll(1); err != nil {
					t.Fatal(err)
				}
			}
			mustAppend(t, l, plain(t, 1, 1), 1)
			for range 3 {
				if err := l.Roll(1); err != nil {
					t.Fatal(err)
				}
			}
		}, []int64{0, 1}},
	} {
		l, _ := newLog(t, test.change)
		test.appends(l)
		var bases []int64
		for _, s := range l.list() {
			bases = append(bases, s.BaseOffset())
		}
		if !slices.Equal(bases, test.want) {
			t.Errorf("%s: segments %v, want %v", name, bases, test.want)
		}
	}
}

// TestLog_SameReadsWhateverTheSettings appends the same to logs with all kinds of segment and index sizes.
func TestLog_SameReadsWhateverTheSettings(t *testing.T) {
	var logs []*Log
	for _, segmentBytes := range []int{400, 5000, 1 << 30} {
		for _, interval := range []int{0, 300, 1 << 20} {
			for _, indexBytes := range []int{48, 1 << 20} {
				l, _ := newLog(t, func(c *Config) {
					c.SegmentBytes, c.IndexIntervalBytes, c.SegmentIndexBytes = segmentBytes, interval, indexBytes
				})
				logs = append(logs, l)
			}
		}
	}
	for i := range int64(200) {
		for _, l := range logs {
			mustAppend(t, l, plain(t, int(i*7%90), 1000+i*13%50, 1000+i*7%300), 1)
			switch i {
			case 90:
				if err := l.TruncateTo(150); err != nil {
					t.Fatal(err)
				}
			case 120:
				if err := l.AdvanceLogStartOffset(33); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	first := logs[0]
	want := readAll(t, first)
	for _, l := range logs[1:] {
		if got := readAll(t, l); !slices.EqualFunc(got, want, func(a, b record.Batch) bool { return bytes.Equal(a, b) }) {
			t.Fatal("logs differ")
		}
		for query := int64(990); query < 1310; query += 3 {
			got, ok, err := l.OffsetForTimestamp(query, 300)
			got1, ok1, err1 := first.OffsetForTimestamp(query, 300)
			if got != got1 || ok != ok1 || err != nil || err1 != nil {
				t.Fatalf("time %d: %+v %v %v and %+v %v %v", query, got, ok, err, got1, ok1, err1)
			}
		}
		for offset := l.LogStartOffset(); offset < l.LogEndOffset(); offset += 5 {
			a, b := readBytes(t, l, offset, 1, offset+7), readBytes(t, first, offset, 1, offset+7)
			if !bytes.Equal(a, b) {
				t.Fatalf("read at %d: %d and %d bytes", offset, len(a), len(b))
			}
		}
	}
}

// TestLog_EveryOperationMayFail lets each operation of a run fail in turn. The log must say so and take no more writes, and what it had
// acknowledged as flushed is there when it is opened again.
func TestLog_EveryOperationMayFail(t *testing.T) {
	for n := 1; ; n++ {
		mem := vfs.NewMem()
		if err := errors.Join(mem.MkdirAll("/t-0", 0o755), mem.SyncDir("/")); err != nil {
			t.Fatal(err)
		}
		fs := errorfs.Wrap(mem, nil)
		c := DefaultConfig()
		c.SegmentBytes, c.IndexIntervalBytes, c.RetentionBytes, c.FileDeleteDelayMs = 700, 0, 1500, 0
		options := Options{FS: fs, Dir: "/t-0", Config: c, Handles: segment.NewHandles(2)}
		var failedOp errorfs.Op
		fs.SetInject(func(op errorfs.Op, _ string, k int) error {
			if k == n {
				failedOp = op
			}
			switch {
			case k != n:
				return nil
			case op == errorfs.OpWrite:
				return &errorfs.Short{Err: syscall.ENOSPC}
			}
			return syscall.EIO
		})
		flushed, err := scenario(options)
		failed := fs.Count() >= n
		if failed && err == nil && failedOp != errorfs.OpClose { // of files that are read or have been synced
			t.Fatalf("operation %d, %s, failed without an error", n, failedOp)
		}
		var fault *Fault
		if err != nil && !errors.As(err, &fault) {
			t.Fatalf("operation %d: %v is no *Fault", n, err)
		}
		l, err := Open(Options{FS: mem.CrashClone(vfs.CrashConfig{}), Dir: "/t-0", Config: c, RecoveryPoint: 0})
		if err != nil {
			t.Fatalf("operation %d: open again: %v", n, err)
		}
		if l.LogEndOffset() < flushed {
			t.Fatalf("operation %d: log ends at %d, flushed was %d", n, l.LogEndOffset(), flushed)
		}
		readAll(t, l)
		l.Discard()
		if !failed {
			if n < 50 {
				t.Fatalf("the scenario has only %d operations", n)
			}
			return
		}
	}
}

// scenario does a bit of everything until something fails, and returns up to where a flush succeeded.
func scenario(o Options) (flushed int64, err error) {
	l, err := Open(o)
	if err != nil {
		return 0, err
	}
	defer l.Discard()
	epoch := record.LeaderEpoch(0)
	var failure error
	step := func(err error) bool {
		if failure == nil {
			failure = err
		}
		return err == nil
	}
	for i := range int64(12) {
		b, err := record.NewBuilder(record.BuilderOptions{ProducerID: 3, BaseSequence: int32(i), Transactional: i > 6}).
			Add(record.Record{TimestampMs: i, Value: make([]byte, 150)}).Build()
		if err != nil {
			return 0, err
		}
		if i == 5 {
			epoch++
		}
		if _, err := l.AppendAsLeader(b, epoch, Client, i); !step(err) {
			// Nothing more is accepted.
			if _, err := l.AppendAsLeader(b, epoch, Client, i); err == nil {
				return 0, errors.New("appended after a fault")
			}
			return flushed, failure
		}
		if i == 8 {
			if !step(l.TruncateTo(8)) {
				return min(flushed, 8), failure
			}
			flushed = min(flushed, 8)
			return flushed, finishScenario(l, &flushed)
		}
		if i%3 == 2 {
			if !step(l.Flush()) {
				return flushed, failure
			}
			flushed = l.RecoveryPoint()
		}
	}
	return flushed, failure
}

func finishScenario(l *Log, flushed *int64) error {
	marker, err := record.NewBuilder(record.BuilderOptions{ProducerID: 3, BaseSequence: -1, Transactional: true, Control: true}).
		Add(record.ControlRecord(record.EndTxnMarker{}, 1)).Build()
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { _, err := l.AppendAsLeader(marker, 1, Coordinator, 10); return err },
		l.Flush,
		func() error { *flushed = l.RecoveryPoint(); return l.AdvanceLogStartOffset(2) },
		func() error { _, err := l.Retain(20, l.LogEndOffset()); return err },
		func() error { _, _, err := l.OffsetForTimestamp(5, l.LogEndOffset()); return err },
		func() error { _, err := l.AbortedTransactions(l.LogStartOffset(), l.LogEndOffset()); return err },
		func() error { return l.Roll(30) },
		l.Close,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// TestLog_ReadersBesideTheWriter reads, from several goroutines, while one appends, flushes, deletes and truncates nothing that is read.
func TestLog_ReadersBesideTheWriter(t *testing.T) {
	fs, c := vfs.NewMem(), DefaultConfig()
	c.SegmentBytes, c.IndexIntervalBytes, c.RetentionBytes, c.FileDeleteDelayMs = 5000, 200, 20_000, 0
	var background sync.WaitGroup
	l := mustOpen(t, Options{FS: fs, Dir: "/t-0", Config: c, Handles: segment.NewHandles(3), Background: func(f func()) { background.Go(f) }})
	const batches = 3000
	var readers sync.WaitGroup
	for reader := range 3 {
		readers.Go(func() {
			offset := int64(0)
			for offset < batches {
				upTo := l.LogEndOffset()
				s, err := l.Read(offset, 700*(1+reader), true, upTo)
				var outOfRange *OffsetOutOfRange
				if errors.As(err, &outOfRange) {
					offset = l.LogStartOffset()
					continue
				}
				if err != nil {
					t.Errorf("read at %d: %v", offset, err)
					return
				}
				b := make([]byte, s.Bytes)
				if s.Bytes > 0 {
					if _, err := s.File.ReadAt(b, s.Position); err != nil {
						t.Errorf("read at %d: %v", offset, err)
					}
				}
				s.Close()
				for len(b) > 0 {
					first, rest, err := record.Split(b)
					if err != nil {
						break
					}
					if first.BaseOffset() != offset || first.NextOffset() > upTo || !first.ValidCRC() {
						t.Errorf("batch %d to %d, want %d, up to %d, CRC %v", first.BaseOffset(), first.LastOffset(), offset, upTo, first.ValidCRC())
						return
					}
					offset, b = first.NextOffset(), rest
				}
				if offset%64 == 0 {
					_, _, err := l.OffsetForTimestamp(offset, upTo)
					l.LastStableOffset(upTo)
					l.ActiveProducers(0)
					if err != nil {
						t.Errorf("time %d: %v", offset, err)
					}
				}
				runtime.Gosched()
			}
		})
	}
	for i := range int64(batches) {
		mustAppend(t, l, plain(t, int(i%90), i), i)
		if i%100 == 0 {
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if i%250 == 0 {
			if _, err := l.Retain(i, i); err != nil {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
	readers.Wait()
	background.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
