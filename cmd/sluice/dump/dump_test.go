package dump

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/storage/checkpoint"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

// The scripts in cmd/sluice/testdata/dump hold what is printed of Kafka's files; here is what they do not reach.

func TestFile_SaysWhatItCannotRead(t *testing.T) {
	m := vfs.NewMem()
	if err := checkpoint.WriteFile(m, "00000000000000000000.log", make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ {
		fsys := errorfs.Wrap(m, errorfs.FailNth(n, syscall.EIO))
		err := File(io.Discard, fsys, "00000000000000000000.log", Options{})
		if fsys.Count() < n {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) {
			t.Fatalf("operation %d failed: %v", n, err)
		}
	}
}

// Files that are on their way to or from their names are known by what they will be, or were.
func TestFile_KnowsFilesWithFurtherSuffixes(t *testing.T) {
	for _, suffix := range []string{".deleted", ".12.deleted", ".cleaned", ".swap"} {
		m, name := vfs.NewMem(), "00000000000000000000.log"+suffix
		if err := checkpoint.WriteFile(m, name, nil); err != nil {
			t.Fatal(err)
		}
		if err := File(io.Discard, m, name, Options{}); err != nil {
			t.Error(err)
		}
	}
}

func TestFile_SaysWhenItCannotWrite(t *testing.T) {
	m := vfs.NewMem()
	if err := checkpoint.WriteFile(m, ".kafka_cleanshutdown", checkpoint.AppendCleanShutdown(nil, 1)); err != nil {
		t.Fatal(err)
	}
	if err := File(fullWriter{}, m, ".kafka_cleanshutdown", Options{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestStructure_HidesSecrets(t *testing.T) {
	got := structure(&logrecord.UserScramCredentialRecord{Name: "u", Mechanism: 1, Salt: []byte("abc"), StoredKey: []byte("abc"), ServerKey: []byte("abc"), Iterations: 4096})
	if strings.Contains(got, "abc") || !strings.HasPrefix(got, `UserScramCredential{Name="u" Mechanism=1 Salt=(hidden)`) {
		t.Fatal(got)
	}
}

func TestTimestamp(t *testing.T) {
	for ms, want := range map[int64]string{-1: "-1", 0: "1970-01-01T00:00:00.000Z", 253402300799999: "9999-12-31T23:59:59.999Z", 253402300800000: "253402300800000", math.MaxInt64: "9223372036854775807", math.MinInt64: "-9223372036854775808"} {
		if got := timestamp(ms); got != want {
			t.Errorf("%d: %s, want %s", ms, got, want)
		}
	}
}

func TestShown(t *testing.T) {
	for _, test := range []struct {
		in   []byte
		most int
		want string
	}{
		{nil, 5, "null"},
		{[]byte{}, 5, `""`},
		{[]byte("hello"), 5, `"hello"`},
		{[]byte("hello!"), 5, `"hello"…(6 bytes)`},
		{[]byte("ab€d"), 4, `"ab"…(6 bytes)`}, // a character is not cut
		{[]byte("a\nb\"c"), 0, `"a\nb\"c"`},
		{[]byte{0, 1, 0xff}, 0, "0x0001ff"},
		{[]byte{0, 1, 0xff}, 2, "0x0001…(3 bytes)"},
		{[]byte("bell\a"), 0, "0x62656c6c07"},
	} {
		p := &printer{o: Options{ShownBytes: test.most}}
		if got := p.shown(test.in); got != test.want {
			t.Errorf("%q: %s, want %s", test.in, got, test.want)
		}
	}
}

func TestFile_DecodesEveryRecordOfTheMetadataLog(t *testing.T) {
	b := record.NewBuilder(record.Unattributed())
	for key := range int16(30) {
		if r := logrecord.NewClusterRecord(key); r != nil {
			b.Add(record.Record{Value: logrecord.AppendCluster(nil, r, r.MaxVersion())})
		}
	}
	batch, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := vfs.NewMem()
	if err := checkpoint.WriteFile(m, "bootstrap.checkpoint", batch); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := File(&out, m, "bootstrap.checkpoint", Options{Records: true}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "version="); got != b.Count() {
		t.Fatalf("%d of %d records:\n%s", got, b.Count(), out.String())
	}
}

// Any bytes under any name end in text and perhaps an error, which is then about the bytes.
func FuzzFile(f *testing.F) {
	root := "../testdata/dump/kafka-4.4"
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		f.Add(filepath.ToSlash(name), content)
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	known := []string{"a-0/00000000000000000000.log", "__cluster_metadata-0/00000000000000000000.log", "__consumer_offsets-0/00000000000000000000.log",
		"__transaction_state-0/00000000000000000000.log", "1.checkpoint", "1.index", "1.timeindex", "1.txnindex", "1.snapshot", "leader-epoch-checkpoint",
		"recovery-point-offset-checkpoint", "partition.metadata", "meta.properties", ".kafka_cleanshutdown", "quorum-state"}
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		for _, name := range append(known, filepath.ToSlash(filepath.Clean("/"+name))) {
			m := vfs.NewMem()
			if i := strings.LastIndexByte(name, '/'); i > 0 {
				if m.MkdirAll(name[:i], 0o755) != nil {
					return
				}
			}
			if checkpoint.WriteFile(m, name, content) != nil {
				return
			}
			err := File(io.Discard, m, name, Options{Records: true, MaxDecompressedBytes: 1 << 20})
			var damaged *Damaged
			if err != nil && !errors.As(err, &damaged) && !strings.Contains(err.Error(), "by its name") {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}
