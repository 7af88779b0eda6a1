package checkpoint

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/protocol/uuid"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// golden returns a file that Apache Kafka 4.4.0 wrote.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/kafka-4.4/" + name)
	check(t, err)
	return b
}

func TestParseOffsets_ReadsKafkas(t *testing.T) {
	for name, want := range map[string]map[TopicPartition]int64{
		RecoveryPointFile:  {{"__consumer_offsets", 0}: 7, {"payments", 0}: 4, {"__transaction_state", 0}: 8, {"orders", 0}: 15},
		LogStartOffsetFile: {{"orders", 0}: 4},
		HighWatermarkFile:  {{"__consumer_offsets", 0}: 7, {"payments", 0}: 4, {"__transaction_state", 0}: 8, {"orders", 0}: 15},
		CleanerOffsetFile:  {},
	} {
		got, err := ParseOffsets(name, golden(t, name))
		check(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if got := string(AppendOffsets(nil, want)); len(got) != len(golden(t, name)) || strings.Count(got, "\n") != strings.Count(string(golden(t, name)), "\n") {
			t.Errorf("%s: written as %q", name, got) // Kafka's own order is that of a hash table
		}
	}
}

func TestAppendOffsets_IsInOrder(t *testing.T) {
	got := string(AppendOffsets(nil, map[TopicPartition]int64{{"b", 1}: 1, {"b.c", 0}: 2, {"a-1", 10}: 3, {"a-1", 9}: 1 << 40}))
	if want := "0\n4\na-1 9 1099511627776\na-1 10 3\nb 1 1\nb.c 0 2\n"; got != want {
		t.Fatalf("%q, want %q", got, want)
	}
}

func TestParseOffsets_RefusesWithLine(t *testing.T) {
	for _, test := range []struct{ content, want string }{
		{"", ""},
		{"0\n", ""},
		{"0\n0\n", ""},
		{"0\r\n1\r\na 0 1\r\n", ""},
		{"0\n1\na 0 1", ""},
		{"1\n0\n", "f: line 1: version 1 is unknown, expected 0"},
		{"x\n0\n", `f: line 1: version "x" is not a number`},
		{"\n0\n", `f: line 1: version "" is not a number`},
		{"0\n-1\n", `f: line 2: count of entries "-1" is not a number of at least 0`},
		{"0\n99999999999\n", `f: line 2: count of entries "99999999999" is not a number of at least 0`},
		{"0\n2147483647\na 0 1\n", "f: line 3: the file ends after 1 of 2147483647 entries"},
		{"0\n1\na 0 1\nb 0 1\n", "f: line 4: more than the 1 entries that line 2 says"},
		{"0\n1\na 0 1\n\n", "f: line 4: more than the 1 entries that line 2 says"},
		{"0\n1\na 0\n", `f: line 3: "a 0" has 2 fields, expected 3`},
		{"0\n1\na 0 1 2\n", `f: line 3: "a 0 1 2" has 4 fields, expected 3`},
		{"0\n1\na x 1\n", `f: line 3: partition "x" is not a number of at least 0 in 32 bits`},
		{"0\n1\na 4294967296 1\n", `f: line 3: partition "4294967296" is not a number of at least 0 in 32 bits`},
		{"0\n1\na 0 -1\n", `f: line 3: offset "-1" is not a number of at least 0 in 64 bits`},
		{"0\n1\n" + strings.Repeat("z", 100_000) + "\n", `f: line 3: "` + strings.Repeat("z", 60) + `"… has 1 fields, expected 3`},
	} {
		_, err := ParseOffsets("f", []byte(test.content))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%.40q: %q, want %q", test.content, got, test.want)
		}
		if corrupt := (*Corrupt)(nil); err != nil && !errors.As(err, &corrupt) {
			t.Errorf("%.40q: %T is not *Corrupt", test.content, err)
		}
	}
}

func TestOffsets_MissingFileHasNone(t *testing.T) {
	got, err := ReadOffsets(vfs.NewMem(), "no")
	if err != nil || got == nil || len(got) != 0 {
		t.Fatal(got, err)
	}
}

func TestWriteOffsets_RefusesNegative(t *testing.T) {
	if err := WriteOffsets(vfs.NewMem(), "f", map[TopicPartition]int64{{"a", 0}: -1}); err == nil {
		t.Fatal("written")
	}
}

func TestEntries_OfLeaderEpochs(t *testing.T) {
	var got []string
	check(t, ParseEntries("f", golden(t, "leader-epoch-checkpoint"), func(line string) error {
		got = append(got, line)
		return nil
	}))
	if diff := cmp.Diff([]string{"0 4"}, got); diff != "" {
		t.Fatal(diff)
	}
	again := AppendEntries(nil, len(got), func(dst []byte, i int) []byte { return append(dst, got[i]...) })
	if diff := cmp.Diff(string(golden(t, "leader-epoch-checkpoint")), string(again)); diff != "" {
		t.Fatal(diff)
	}
}

func TestReadFile_IsBounded(t *testing.T) {
	m := vfs.NewMem()
	check(t, WriteFile(m, "f", []byte("12345")))
	if got, err := ReadFile(m, "f", 5); err != nil || string(got) != "12345" {
		t.Fatal(got, err)
	}
	_, err := ReadFile(m, "f", 4)
	if err == nil || err.Error() != "f: 5 bytes, the limit is 4" {
		t.Fatal(err)
	}
}

func mustParse(t *testing.T, s string) uuid.UUID {
	t.Helper()
	id, err := uuid.Parse(s)
	check(t, err)
	return id
}

func TestMetaProperties_AreKafkas(t *testing.T) {
	got, err := ParseMetaProperties("f", golden(t, MetaPropertiesFile))
	check(t, err)
	want := MetaProperties{Version: 1, ClusterID: "MkU3OEVBNTcwNTJENDM2Qg", NodeID: 1, DirectoryID: mustParse(t, "REFid1AAAAAAAAAAAAAAAA")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	var lines []string
	for line := range strings.Lines(string(golden(t, MetaPropertiesFile))) {
		if !strings.HasPrefix(line, "#") { // a comment with the date
			lines = append(lines, line)
		}
	}
	if diff := cmp.Diff(strings.Join(lines, ""), string(AppendMetaProperties(nil, got))); diff != "" {
		t.Fatal(diff)
	}
}

func TestParseMetaProperties(t *testing.T) {
	for _, test := range []struct {
		content string
		want    MetaProperties
		err     string
	}{
		{"version=1\nnode.id=2\ncluster.id=c", MetaProperties{Version: 1, ClusterID: "c", NodeID: 2}, ""},
		{"version=0\nbroker.id=2\ncluster.id=c", MetaProperties{ClusterID: "c", NodeID: 2}, ""},
		{"broker.id=2", MetaProperties{NodeID: 2}, ""},
		{"", MetaProperties{NodeID: -1}, ""},
		{"version=1\ncluster.id=c", MetaProperties{}, "f: node.id is missing"},
		{"version=1\nnode.id=2", MetaProperties{}, "f: cluster.id is missing"},
		{"version=2", MetaProperties{}, `f: version "2" is unknown`},
		{"version=1\nnode.id=x\ncluster.id=c", MetaProperties{}, `f: node.id "x" is not a number of at least 0`},
		{"version=1\nnode.id=-1\ncluster.id=c", MetaProperties{}, `f: node.id "-1" is not a number of at least 0`},
		{"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ", MetaProperties{}, "f: directory.id AAAAAAAAAAAAAAAAAAAAAQ is reserved"},
		{"version=1\nnode.id=1\ncluster.id=\\u12", MetaProperties{}, `f: line 3: \u12 is not \u and four hexadecimal digits`},
	} {
		got, err := ParseMetaProperties("f", []byte(test.content))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if diff := cmp.Diff(test.want, got); diff != "" || text != test.err {
			t.Errorf("%q: %v %q, want %v %q", test.content, got, text, test.want, test.err)
		}
	}
	if _, err := ParseMetaProperties("f", []byte("version=1\nnode.id=1\ncluster.id=c\ndirectory.id=short")); err == nil {
		t.Error("a directory id of 5 characters is accepted")
	}
}

func TestPartitionMetadata_IsKafkas(t *testing.T) {
	content := golden(t, PartitionMetadataFile)
	id, err := ParsePartitionMetadata("f", content)
	check(t, err)
	if diff := cmp.Diff(string(content), string(AppendPartitionMetadata(nil, id))); diff != "" {
		t.Fatal(diff)
	}
}

func TestParsePartitionMetadata_Refuses(t *testing.T) {
	const id = "topic_id: BQRvUNzuQe6hYTXTLZLATQ"
	for content, want := range map[string]string{
		"":                             `f: line 1: "" is not "version:" and its value`,
		"version: 0":                   `f: line 1: "" is not "topic_id:" and its value`,
		"version: x\n" + id:            `f: line 1: version "x" is not a number of at least 0 in 32 bits`,
		"version: -1\n" + id:           `f: line 1: version "-1" is not a number of at least 0 in 32 bits`,
		"version: 0\ntopic: x":         `f: line 2: "topic: x" is not "topic_id:" and its value`,
		"\x00\x00\x00\x00\x00\x00":     `f: line 1: "\x00\x00\x00\x00\x00\x00" is not "version:" and its value`,
		"version: 0\ntopic_id: AAAA":   "f: line 2: ",
		"version: 0\ntopic_id: " + z22: "f: line 2: topic id AAAAAAAAAAAAAAAAAAAAAA is reserved",
	} {
		if _, err := ParsePartitionMetadata("f", []byte(content)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
	if _, err := ParsePartitionMetadata("f", []byte("version: 1\r\n"+id+"\r\nlater: field\n")); err != nil {
		t.Errorf("a later version with another line: %v", err) // as Kafka reads it
	}
}

const z22 = "AAAAAAAAAAAAAAAAAAAAAA"

func TestCleanShutdown(t *testing.T) {
	if got, want := string(AppendCleanShutdown(nil, 13)), string(golden(t, "kafka_cleanshutdown")); got != want {
		t.Fatalf("%s, Kafka writes %s", got, want)
	}
	for _, test := range []struct {
		content string
		epoch   int64
	}{{`{"version":0,"brokerEpoch":13}`, 13}, {`{"brokerEpoch":14,"more":1}`, 14}, {"", -1}, {"{", -1}, {`{"version":0}`, -1}, {`{"brokerEpoch":null}`, -1}} {
		m := vfs.NewMem()
		check(t, WriteFile(m, CleanShutdownFile, []byte(test.content)))
		clean, epoch, err := TakeCleanShutdown(m, ".")
		if !clean || epoch != test.epoch || err != nil {
			t.Errorf("%q: %v %d %v, want epoch %d", test.content, clean, epoch, err, test.epoch)
		}
		m = m.CrashClone(vfs.CrashConfig{})
		if clean, epoch, err := TakeCleanShutdown(m, "."); clean || epoch != -1 || err != nil {
			t.Errorf("%q: after it was taken and a crash: %v %d %v", test.content, clean, epoch, err)
		}
	}
}

func TestProperties_RoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	alphabet := []rune("ab =:#!\\\t\n\r\fü€😀u0")
	text := func() string {
		s := make([]rune, r.IntN(8))
		for i := range s {
			s[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(s)
	}
	for range 2000 {
		p := Property{"k" + text(), text()}
		got, err := ParseProperties("f", AppendProperties([]byte("# comment\n"), []Property{p}))
		check(t, err)
		if diff := cmp.Diff(map[string]string{p.Key: p.Value}, got); diff != "" {
			t.Fatalf("%q: %s", AppendProperties(nil, []Property{p}), diff)
		}
	}
}

func TestParseProperties_JavasForms(t *testing.T) {
	got, err := ParseProperties("f", []byte("# c\n! c\n\n a : b \nc d\ne\nf=\\\n   g\\\n   h\ni=\\u00fc\\ud83d\\ude00x\nj\\=k==l\nm=n\\\\\no=p\\"))
	check(t, err)
	want := map[string]string{"a": "b ", "c": "d", "e": "", "f": "gh", "i": "ü😀x", "j=k": "=l", "m": `n\`, "o": "p"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

// replaceOnce is the write that the next two tests disturb.
func replaceOnce(fsys vfs.FS) error {
	return WriteOffsets(fsys, "d/f", map[TopicPartition]int64{{"a", 0}: 2})
}

const oldContent, newContent = "0\n1\na 0 1\n", "0\n1\na 0 2\n"

func prepared(t *testing.T) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	check(t, m.MkdirAll("d", 0o755))
	check(t, m.SyncDir("."))
	check(t, WriteFile(m, "d/f", []byte(oldContent)))
	return m
}

// After every failure of an operation the old or the new content is there whole, and the next write succeeds.
func TestWriteFile_EveryOperationFails(t *testing.T) {
	for n := 1; ; n++ {
		for _, cause := range []error{syscall.EIO, &errorfs.Short{Err: syscall.ENOSPC}} {
			m := prepared(t)
			faulty := errorfs.Wrap(m, errorfs.FailNth(n, cause))
			err := replaceOnce(faulty)
			content, readErr := ReadFile(m, "d/f", 100)
			check(t, readErr)
			switch got := string(content); {
			case err == nil && faulty.Count() >= n:
				t.Fatalf("operation %d failed unnoticed", n)
			case err == nil && got == newContent:
				return
			case got != oldContent && got != newContent:
				t.Fatalf("operation %d failed: content %q", n, got)
			case !errors.Is(err, cause):
				t.Fatalf("operation %d failed: %v", n, err)
			}
			check(t, replaceOnce(m))
			if _, err := m.Stat("d/f.tmp"); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("operation %d failed: the temporary file stays: %v", n, err)
			}
		}
	}
}

// Before every operation the machine crashes: the old or the new content is there, the new one once the write has returned.
func TestWriteFile_CrashAtEveryOperation(t *testing.T) {
	m := prepared(t)
	look := func(crashed *vfs.Mem) string {
		content, err := ReadFile(crashed, "d/f", 100)
		check(t, err)
		return string(content)
	}
	crashes := 0
	disturb := func(op errorfs.Op, path string, n int) error {
		for seed := range uint64(100) {
			crashes++
			if got := look(m.CrashClone(vfs.CrashConfig{Rand: rand.New(rand.NewPCG(seed, uint64(n)))})); got != oldContent && got != newContent {
				t.Fatalf("crash before operation %d %s %s with seed %d: content %q", n, op, path, seed, got)
			}
		}
		return nil
	}
	check(t, replaceOnce(errorfs.Wrap(m, disturb)))
	if got := look(m.CrashClone(vfs.CrashConfig{})); got != newContent || crashes == 0 {
		t.Fatalf("after %d crashes: content %q", crashes, got)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{RecoveryPointFile, LogStartOffsetFile, MetaPropertiesFile, PartitionMetadataFile, "leader-epoch-checkpoint", "kafka_cleanshutdown"} {
		content, err := os.ReadFile("testdata/kafka-4.4/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if offsets, err := ParseOffsets("f", b); err == nil {
			again, err := ParseOffsets("f", AppendOffsets(nil, offsets))
			if diff := cmp.Diff(offsets, again); err != nil || diff != "" {
				t.Fatalf("offsets: %v %s", err, diff)
			}
		}
		if m, err := ParseMetaProperties("f", b); err == nil && m.Version == 1 && !m.DirectoryID.IsZero() {
			again, err := ParseMetaProperties("f", AppendMetaProperties(nil, m))
			if err != nil || again != m {
				t.Fatalf("meta.properties: %v %v %v", err, m, again)
			}
		}
		if id, err := ParsePartitionMetadata("f", b); err == nil {
			again, err := ParsePartitionMetadata("f", AppendPartitionMetadata(nil, id))
			if err != nil || again != id {
				t.Fatalf("partition.metadata: %v %v %v", err, id, again)
			}
		}
		if epoch, err := ParseCleanShutdown("f", b); err == nil {
			again, err := ParseCleanShutdown("f", AppendCleanShutdown(nil, epoch))
			if err != nil || again != epoch {
				t.Fatalf("clean shutdown: %v %d %d", err, epoch, again)
			}
		}
	})
}

func BenchmarkAppendOffsets(b *testing.B) {
	offsets := map[TopicPartition]int64{}
	for i := range int32(2000) {
		offsets[TopicPartition{"a-topic-of-usual-length", i}] = int64(i) * 1000
	}
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst = AppendOffsets(dst[:0], offsets)
	}
}
