package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"

	"sluice/protocol/compress"
	"sluice/protocol/record"
	"sluice/protocol/uuid"
	"sluice/storage/checkpoint"
	"sluice/storage/logdir"
	"sluice/storage/partlog"
	"sluice/storage/segment"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

const dataDir = "/data"

// wellMade is a log directory that was left by a clean stop: a log of several segments with every codec, idempotent producers, transactions
// that committed and aborted, three leader epochs, and records deleted from its start.
func wellMade(t testing.TB) *vfs.Mem {
	t.Helper()
	fsys := vfs.NewMem()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := dataDir + "/t-0"
	ok(fsys.MkdirAll(dir, 0o755))
	ok(checkpoint.WriteMetaProperties(fsys, dataDir, checkpoint.MetaProperties{Version: 1, ClusterID: "c", NodeID: 1, DirectoryID: uuid.UUID{1}}))
	ok(checkpoint.WritePartitionMetadata(fsys, dir, uuid.UUID{2}))
	config := partlog.DefaultConfig()
	config.SegmentBytes, config.IndexIntervalBytes = 1500, 100
	l, err := partlog.Open(partlog.Options{FS: fsys, Dir: dir, Config: config, NowMs: 1})
	ok(err)
	sequences := map[record.ProducerID]int32{}
	for i := range int64(40) {
		o := record.Unattributed()
		o.Codec = compress.Codec(i % 5)
		origin := partlog.Client
		values := []record.Record{{TimestampMs: 1000 + i*10, Key: []byte("key"), Value: fmt.Appendf(nil, "value %d", i)}, {TimestampMs: 1001 + i*10, Value: make([]byte, 20)}}
		switch {
		case i%8 == 7: // the marker of the transaction that began three batches ago
			o = record.BuilderOptions{ProducerID: 5, Transactional: true, Control: true, BaseSequence: record.NoSequence}
			values = []record.Record{record.ControlRecord(record.EndTxnMarker{Commit: i%16 == 7, CoordinatorEpoch: 1}, 1000+i*10)}
			origin = partlog.Coordinator
		case i%4 == 2, i%8 == 4:
			o.ProducerID, o.ProducerEpoch = record.ProducerID(4+i%8/4), 0
			o.BaseSequence, o.Transactional = sequences[o.ProducerID], i%8 >= 4
			sequences[o.ProducerID] += int32(len(values))
		}
		b, err := record.NewBuilder(o).Add(values...).Build()
		ok(err)
		_, err = l.AppendAsLeader(b, record.LeaderEpoch(i/15), origin, 1000+i*10)
		ok(err)
	}
	ok(l.AdvanceLogStartOffset(5))
	ok(l.Close())
	tp := logdir.TopicPartition{Topic: "t"}
	for name, offset := range map[string]int64{checkpoint.RecoveryPointFile: l.LogEndOffset(), checkpoint.HighWatermarkFile: l.LogEndOffset(), checkpoint.LogStartOffsetFile: 5} {
		ok(checkpoint.WriteOffsets(fsys, dataDir+"/"+name, map[checkpoint.TopicPartition]int64{tp: offset}))
	}
	ok(checkpoint.WriteCleanShutdown(fsys, dataDir, 1))
	return fsys
}

// verified returns the faults of the directory, one a line.
func verified(t testing.TB, fsys vfs.FS) []string {
	t.Helper()
	var faults []string
	found, err := Verify(fsys, dataDir, VerifyOptions{Fault: func(file string, places []string, more int) {
		for _, place := range places {
			faults = append(faults, file+": "+place)
		}
		for range more {
			faults = append(faults, file+": one more")
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if found.Faults != len(faults) {
		t.Fatalf("%d faults are counted, %d told", found.Faults, len(faults))
	}
	return faults
}

func content(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	b, err := checkpoint.ReadFile(fsys, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// files lists the files of the log that have a suffix.
func files(t testing.TB, fsys vfs.FS, suffix string) []string {
	t.Helper()
	entries, err := fsys.ReadDir(dataDir + "/t-0")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			names = append(names, path.Join(dataDir, "t-0", e.Name()))
		}
	}
	return names
}

func TestVerify_FindsNothingInWhatIsWellMade(t *testing.T) {
	fsys := wellMade(t)
	if faults := verified(t, fsys); len(faults) > 0 {
		t.Fatal(strings.Join(faults, "\n"))
	}
	for suffix, least := range map[string]int{segment.LogSuffix: 3, segment.OffsetSuffix: 3, segment.TimeSuffix: 3, segment.TxnSuffix: 2, segment.SnapshotSuffix: 3} {
		if n := len(files(t, fsys, suffix)); n < least {
			t.Errorf("only %d files %s to verify", n, suffix)
		}
	}
}

// Every flipped bit in a log, an index or a snapshot is found.
func TestVerify_FindsEveryFlippedBit(t *testing.T) {
	fsys := wellMade(t)
	for _, suffix := range []string{segment.LogSuffix, segment.OffsetSuffix, segment.TimeSuffix, segment.TxnSuffix, segment.SnapshotSuffix} {
		for _, name := range files(t, fsys, suffix) {
			good := content(t, fsys, name)
			for at := range good {
				if suffix == segment.TxnSuffix && at%34 >= 26 {
					continue // the last stable offset, which the log alone does not tell
				}
				bad := append([]byte(nil), good...)
				bad[at] ^= 1 << (at % 8)
				if err := checkpoint.WriteFile(fsys, name, bad); err != nil {
					t.Fatal(err)
				}
				if len(verified(t, fsys)) == 0 {
					t.Errorf("%s: byte %d is %#x instead of %#x, and that is not found", name, at, bad[at], good[at])
				}
			}
			if err := checkpoint.WriteFile(fsys, name, good); err != nil {
				t.Fatal(err)
			}
		}
	}
	if faults := verified(t, fsys); len(faults) > 0 {
		t.Fatal(strings.Join(faults, "\n"))
	}
}

// A file that is cut short or missing is found wherever it was cut.
func TestVerify_FindsWhatIsMissing(t *testing.T) {
	for _, suffix := range []string{segment.LogSuffix, segment.TimeSuffix, segment.TxnSuffix, segment.SnapshotSuffix} {
		fsys := wellMade(t)
		for _, name := range files(t, fsys, suffix) {
			good := content(t, fsys, name)
			last := name == files(t, fsys, suffix)[len(files(t, fsys, suffix))-1]
			for size := range good {
				if suffix == segment.TimeSuffix && last && size%12 == 0 {
					continue // an index may lack its newest entries while its segment is still written
				}
				if err := checkpoint.WriteFile(fsys, name, good[:size]); err != nil {
					t.Fatal(err)
				}
				if len(verified(t, fsys)) == 0 {
					t.Errorf("%s has %d bytes instead of %d, and that is not found", name, size, len(good))
				}
			}
			if err := checkpoint.WriteFile(fsys, name, good); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Each kind of fault is told with its place.
func TestVerify_TellsThePlace(t *testing.T) {
	first := func(suffix string) string { return "t-0/" + segment.FileName(0, suffix) }
	put := func(name string, change func([]byte) []byte) func(*testing.T, *vfs.Mem) {
		return func(t *testing.T, fsys *vfs.Mem) {
			var before []byte
			if _, err := fsys.Stat(dataDir + "/" + name); err == nil {
				before = content(t, fsys, dataDir+"/"+name)
			}
			if err := checkpoint.WriteFile(fsys, dataDir+"/"+name, change(append([]byte(nil), before...))); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := func(s string) func([]byte) []byte { return func([]byte) []byte { return []byte(s) } }
	at := func(position int, b ...byte) func([]byte) []byte {
		return func(content []byte) []byte { copy(content[position:], b); return content }
	}
	gone := func(name string) func(*testing.T, *vfs.Mem) {
		return func(t *testing.T, fsys *vfs.Mem) {
			if err := fsys.Remove(dataDir + "/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name   string
		damage func(*testing.T, *vfs.Mem)
		want   string
	}{
		{"a value", put(first(".log"), at(200, 0xff)), first(".log") + ": byte 105: the checksum is not that of the batch's bytes"},
		{"a tail cut off", put(first(".log"), func(b []byte) []byte { return b[:len(b)-1] }), first(".log") + ": byte "},
		{"an index's position", put(first(".index"), at(4, 0, 0, 0, 1)), first(".index") + ": byte 0: no batch begins at byte 1 of the log"},
		{"an index's offset", put(first(".index"), at(0, 0, 0, 0, 0)), first(".index") + ": byte 0: offset 0, but the batch at byte"},
		{"half an entry", put(first(".index"), func(b []byte) []byte { return b[:12] }), first(".index") + ": byte 8: 4 bytes are left, an entry has 8"},
		{"a time", put(first(".timeindex"), at(7, 0xff)), first(".timeindex") + ": byte 0: timestamp 1970-01-01T00:00:01.023Z, but the largest up to offset"},
		{"the last time", put(first(".timeindex"), func(b []byte) []byte { return b[:len(b)-12] }), first(".timeindex") + ": the end of the file: the segment's largest timestamp is"},
		{"a log with its indexes", gone(first(".log")), first(".index") + ": no 00000000000000000000.log goes with it"},
		{"an epoch's start", put("t-0/leader-epoch-checkpoint", text("0\n3\n0 0\n1 31\n2 59\n")), "t-0/leader-epoch-checkpoint: epoch 0: it covers offset"},
		{"an epoch's order", put("t-0/leader-epoch-checkpoint", text("0\n2\n1 0\n0 9\n")), "t-0/leader-epoch-checkpoint: line 4: epochs must grow"},
		{"no epochs", gone("t-0/leader-epoch-checkpoint"), "t-0/leader-epoch-checkpoint: the file as a whole: no epoch covers offset"},
		{"an epoch beyond the end", put("t-0/leader-epoch-checkpoint", func(b []byte) []byte {
			return []byte(strings.Replace(string(b), "\n3\n", "\n4\n", 1) + "9 1000\n")
		}), "t-0/leader-epoch-checkpoint: epoch 9: it begins at offset 1000"},
		{"no topic id", gone("t-0/partition.metadata"), "t-0/partition.metadata: is missing"},
		{"a topic id", put("t-0/partition.metadata", text("version: 0\ntopic_id: ?\n")), "t-0/partition.metadata: line 2:"},
		{"no meta.properties", gone("meta.properties"), "meta.properties: is missing"},
		{"meta.properties", put("meta.properties", text("version=1\n")), "meta.properties: "},
		{"a checkpoint's form", put("recovery-point-offset-checkpoint", text("0\n1\nt 0\n")), "recovery-point-offset-checkpoint: line 3:"},
		{"a recovery point beyond the end", put("recovery-point-offset-checkpoint", text("0\n1\nt 0 1000\n")), "recovery-point-offset-checkpoint: partition t-0: offset 1000 is beyond the log end offset"},
		{"a recovery point below the end", put("recovery-point-offset-checkpoint", text("0\n1\nt 0 7\n")), "recovery-point-offset-checkpoint: partition t-0: offset 7, but a clean stop"},
		{"a high watermark beyond the end", put("replication-offset-checkpoint", text("0\n1\nt 0 1000\n")), "replication-offset-checkpoint: partition t-0: offset 1000"},
		{"a log start beyond the end", put("log-start-offset-checkpoint", text("0\n1\nt 0 1000\n")), "log-start-offset-checkpoint: partition t-0: offset 1000"},
		{"a snapshot beyond the end", put("t-0/00000000000000001000.snapshot", text("\x00\x01\x48\x67\x4b\xc7\x00\x00\x00\x00")), "t-0/00000000000000001000.snapshot: the file as a whole: it is of offset 1000"},
		{"zeros", put(first(".log"), func(b []byte) []byte { return append(b, make([]byte, 100)...) }), "100 zeros follow the last batch"},
		{"the quorum's state", put("__cluster_metadata-0/quorum-state", text("{}")), "__cluster_metadata-0/quorum-state: the file as a whole: data_version"},
		{"a snapshot of the metadata without its end", put("__cluster_metadata-0/00000000000000000052-0000000001.checkpoint", func([]byte) []byte {
			b, err := os.ReadFile("../testdata/dump/kafka-4.4/__cluster_metadata-0/00000000000000000052-0000000001.checkpoint")
			if err != nil {
				panic(err)
			}
			return b[:len(b)-80]
		}), "__cluster_metadata-0/00000000000000000052-0000000001.checkpoint: "},
		{"a record of the metadata", put("__cluster_metadata-0/00000000000000000000.log", func([]byte) []byte {
			o := record.Unattributed()
			o.LeaderEpoch = 1
			b, err := record.NewBuilder(o).Add(record.Record{TimestampMs: 1, Value: []byte{1, 3, 0, 1}}).Build()
			if err != nil {
				panic(err)
			}
			return b
		}), "__cluster_metadata-0/00000000000000000000.log: byte 0: record at offset 0: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			fsys := wellMade(t)
			if err := fsys.MkdirAll(dataDir+"/__cluster_metadata-0", 0o755); err != nil {
				t.Fatal(err)
			}
			test.damage(t, fsys)
			faults := verified(t, fsys)
			for _, fault := range faults {
				if strings.Contains(fault, test.want) {
					return
				}
			}
			t.Fatalf("want %q among\n%s", test.want, strings.Join(faults, "\n"))
		})
	}
}

// After a crash only what the last flush covers must be whole.
func TestVerify_AfterACrash(t *testing.T) {
	fsys := wellMade(t)
	for _, name := range append(files(t, fsys, segment.TimeSuffix), dataDir+"/"+checkpoint.CleanShutdownFile, dataDir+"/t-0/leader-epoch-checkpoint") {
		if err := fsys.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{checkpoint.RecoveryPointFile, checkpoint.HighWatermarkFile} {
		offset := int64(0)
		if name == checkpoint.HighWatermarkFile {
			offset = 1000
		}
		if err := checkpoint.WriteOffsets(fsys, dataDir+"/"+name, map[checkpoint.TopicPartition]int64{{Topic: "t"}: offset}); err != nil {
			t.Fatal(err)
		}
	}
	if faults := verified(t, fsys); len(faults) > 0 {
		t.Fatal(strings.Join(faults, "\n"))
	}
}

// What cannot be read is a fault of that file, or an error where nothing can be said at all.
func TestVerify_SaysWhatItCannotRead(t *testing.T) {
	m := wellMade(t)
	for n := 1; ; n++ {
		fsys := errorfs.Wrap(m, errorfs.FailNth(n, syscall.EIO))
		faults := 0
		_, err := Verify(fsys, dataDir, VerifyOptions{Fault: func(string, []string, int) { faults++ }})
		if fsys.Count() < n {
			if err != nil || faults > 0 {
				t.Fatal(err, faults)
			}
			return
		}
		if faults == 0 && !errors.Is(err, syscall.EIO) {
			t.Fatalf("operation %d failed, and nothing is said: %v", n, err)
		}
	}
}

func TestVerify_RefusesWhatIsInUseOrNoDirectory(t *testing.T) {
	fsys := wellMade(t)
	none := VerifyOptions{Fault: func(string, []string, int) { t.Error("a fault") }}
	if _, err := Verify(fsys, "/nowhere", none); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Verify(fsys, dataDir+"/t-0", none); err == nil || !strings.Contains(err.Error(), "no log directory") {
		t.Error(err)
	}
	lock, err := fsys.Lock(dataDir + "/.lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := Verify(fsys, dataDir, none); !errors.Is(err, ErrInUse) {
		t.Error(err)
	}
}

func TestVerify_TellsHowFarItIs(t *testing.T) {
	fsys := wellMade(t)
	var last Progress
	found, err := Verify(fsys, dataDir, VerifyOptions{Fault: func(string, []string, int) {}, Progress: func(p Progress) { last = p }})
	if err != nil || !found.Clean || found.Batches != 40 || found.Count < 70 || last != (Progress{1, 1, found.Bytes, found.Bytes}) {
		t.Fatalf("%+v %+v %v", found, last, err)
	}
}
