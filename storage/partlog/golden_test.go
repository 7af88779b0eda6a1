package partlog

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/protocol/record"
	"sluice/storage/producer"
	"sluice/storage/vfs"
)

// The files in testdata/kafka-4.4.0 were written by Apache Kafka 4.4.0, for a topic with segment.ms=60000 and index.interval.bytes=300, on
// behalf of a plain producer, two idempotent and two transactional ones. The indexes of its active segment are left out, as Kafka
// preallocates them.

const golden = "testdata/kafka-4.4.0"

func goldenConfig() *Config {
	c := DefaultConfig()
	c.SegmentMs, c.IndexIntervalBytes, c.RetentionMs = 60_000, 300, -1
	return c
}

func goldenFiles(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(golden, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return names
}

// goldenBatches are all batches of the log.
func goldenBatches(t *testing.T) []record.Batch {
	t.Helper()
	var batches []record.Batch
	for _, name := range goldenFiles(t, "*.log") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 {
			first, rest, err := record.Split(b)
			if err != nil {
				t.Fatal(err)
			}
			batches, b = append(batches, first), rest
		}
	}
	return batches
}

// TestLog_FilesAreKafkas appends what Kafka was sent and expects Kafka's files, byte for byte.
func TestLog_FilesAreKafkas(t *testing.T) {
	for _, as := range []string{"leader", "follower"} {
		t.Run(as, func(t *testing.T) {
			fs, dir := vfs.OS(), filepath.ToSlash(t.TempDir())
			batches := goldenBatches(t)
			l := mustOpen(t, Options{FS: fs, Dir: dir, Config: goldenConfig(), NowMs: batches[0].MaxTimestamp()})
			for _, b := range batches {
				appendGolden(t, l, b, as == "leader")
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			for _, name := range goldenFiles(t, "*") {
				want, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
				if err != nil {
					t.Errorf("%v", err)
					continue
				}
				if strings.HasSuffix(name, ".snapshot") {
					want = sortedSnapshot(t, want)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s differs from Kafka's:\n%x\n%x", filepath.Base(name), got, want)
				}
			}
		})
	}
}

// sortedSnapshot puts the producers of a snapshot, which Kafka writes in the order of a hash table, in the order of their ids.
func sortedSnapshot(t *testing.T, b []byte) []byte {
	t.Helper()
	var table producer.Table
	if err := table.Load(b, 0, 0, 1<<40); err != nil {
		t.Fatal(err)
	}
	return table.Append(nil)
}

func appendGolden(t *testing.T, l *Log, b record.Batch, leader bool) {
	t.Helper()
	want := bytes.Clone(b)
	var info AppendInfo
	var err error
	switch {
	case !leader:
		info, err = l.AppendAsFollower(b, b.MaxTimestamp())
	case b.IsControl():
		b.SetBaseOffset(0)
		info, err = l.AppendMarker(b, b.LeaderEpoch(), 2, b.MaxTimestamp())
	default:
		b.SetBaseOffset(0)
		info, err = l.AppendAsLeader(b, b.LeaderEpoch(), Client, b.MaxTimestamp())
	}
	if err != nil || info.Duplicate {
		t.Fatalf("append: %+v %v", info, err)
	}
	if !bytes.Equal(b, want) {
		t.Fatalf("appended at %d, Kafka's is at %d", b.BaseOffset(), record.Batch(want).BaseOffset())
	}
}

// TestLog_OpensKafkasFiles opens what Kafka wrote, as after a clean stop and as after another, and compares.
func TestLog_OpensKafkasFiles(t *testing.T) {
	batches := goldenBatches(t)
	end := batches[len(batches)-1].NextOffset()
	for _, clean := range []bool{true, false} {
		fs := vfs.NewMem()
		copyGolden(t, fs, "/t-0")
		var repaired []string
		l := mustOpen(t, Options{FS: fs, Dir: "/t-0", Config: goldenConfig(), RecoveryPoint: end, CleanShutdown: clean, NowMs: batches[0].MaxTimestamp(),
			Progress: func(r Recovery) {
				if r.Repaired != "" {
					repaired = append(repaired, r.Repaired)
				}
			}})
		if l.LogEndOffset() != end || l.LatestEpoch() != 0 || len(l.ActiveProducers(0)) == 0 {
			t.Errorf("clean %v: end %d, epoch %d, producers %+v", clean, l.LogEndOffset(), l.LatestEpoch(), l.ActiveProducers(0))
		}
		// That of the active segment is not among the files.
		if want := 1; clean && len(repaired) != want || !clean && len(repaired) > 0 {
			t.Errorf("clean %v: repaired %q", clean, repaired)
		}
		got := readAll(t, l)
		for i, b := range got {
			if !bytes.Equal(b, batches[i]) {
				t.Errorf("clean %v: batch %d differs", clean, i)
			}
		}
		if len(got) != len(batches) {
			t.Errorf("clean %v: %d batches, want %d", clean, len(got), len(batches))
		}
		checkTimes(t, l, model{batches: batches, end: end})
		aborted, err := l.AbortedTransactions(0, end)
		if err != nil || len(aborted) != 5 {
			t.Errorf("clean %v: aborted transactions %v %v", clean, aborted, err)
		}
		l.Discard()
	}
}

func copyGolden(t *testing.T, fs vfs.FS, dir string) {
	t.Helper()
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range goldenFiles(t, "*") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, fs, dir+"/"+filepath.Base(name), b)
	}
}

func writeFile(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(tb testing.TB, o Options) *Log {
	tb.Helper()
	l, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}
