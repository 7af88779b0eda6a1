package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"sluice/storage/vfs"
)

// each runs a test of the contract on each implementation, in an empty directory.
func each(t *testing.T, run func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Run("OS", func(t *testing.T) { run(t, vfs.OS(), strings.ReplaceAll(t.TempDir(), `\`, "/")) })
	for name, m := range map[string]*vfs.Mem{"Mem": vfs.NewMem(), "Ephemeral": vfs.NewEphemeral()} {
		t.Run(name, func(t *testing.T) {
			check(t, m.MkdirAll("/base", 0o755))
			run(t, m, "/base")
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, fsys vfs.FS, name, content string) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	check(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	check(t, err)
	check(t, f.Close())
}

func readOpen(t *testing.T, f vfs.File) string {
	t.Helper()
	size, err := f.Size()
	check(t, err)
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return string(b)
}

// readFile returns the content, or the error's cause in brackets.
func readFile(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "[none]"
	}
	check(t, err)
	defer func() { check(t, f.Close()) }()
	return readOpen(t, f)
}

func list(t *testing.T, fsys vfs.FS, dir string) string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	check(t, err)
	var names []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestFile_ReadsWhatWasWritten(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f, err := fsys.OpenFile(dir+"/f", os.O_RDWR|os.O_CREATE, 0o644)
		check(t, err)
		defer func() { check(t, f.Close()) }()
		for _, off := range []int64{10_000, 0, 4094} { // holes, page borders
			_, err := f.WriteAt([]byte("abcd"), off)
			check(t, err)
		}
		want := "abcd" + strings.Repeat("\x00", 4090) + "abcd" + strings.Repeat("\x00", 10_000-4098) + "abcd"
		if got := readOpen(t, f); got != want {
			t.Fatalf("content of %d bytes differs, want %d bytes", len(got), len(want))
		}
		p := make([]byte, 8)
		if n, err := f.ReadAt(p, 10_002); n != 2 || err != io.EOF || string(p[:2]) != "cd" {
			t.Fatalf("read over the end: %d %v %q", n, err, p)
		}
		if n, err := f.ReadAt(p, 20_000); n != 0 || err != io.EOF {
			t.Fatalf("read past the end: %d %v", n, err)
		}
		check(t, f.Truncate(4095))
		check(t, f.Truncate(4097)) // what was cut must read as zeros
		if got, want := readOpen(t, f)[4090:], "\x00\x00\x00\x00a\x00\x00"; got != want {
			t.Fatalf("after truncating: %q, want %q", got, want)
		}
		check(t, f.Sync())
	})
}

func TestFS_ErrorsAreThoseOfPackageOS(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		check(t, fsys.MkdirAll(dir+"/d/e", 0o755))
		writeFile(t, fsys, dir+"/f", "x")
		open := func(flag int) vfs.File {
			f, err := fsys.OpenFile(dir+"/f", flag, 0o644)
			check(t, err)
			t.Cleanup(func() { _ = f.Close() }) // some are closed by the test itself
			return f
		}
		readOnly, writeOnly, closed := open(os.O_RDONLY), open(os.O_WRONLY), open(os.O_RDWR)
		check(t, closed.Close())
		buf := make([]byte, 1)
		for _, test := range []struct {
			name string
			do   func() error
			want error
		}{
			{"open nothing", func() error { _, err := fsys.Open(dir + "/no"); return err }, fs.ErrNotExist},
			{"open below nothing", func() error { _, err := fsys.Open(dir + "/no/no"); return err }, fs.ErrNotExist},
			{"open below a file", func() error { _, err := fsys.Open(dir + "/f/no"); return err }, syscall.ENOTDIR},
			{"open a directory to write", func() error { _, err := fsys.OpenFile(dir+"/d", os.O_RDWR, 0); return err }, syscall.EISDIR},
			{"create what exists", func() error {
				_, err := fsys.OpenFile(dir+"/f", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
				return err
			}, fs.ErrExist},
			{"create below nothing", func() error {
				_, err := fsys.OpenFile(dir+"/no/f", os.O_CREATE|os.O_RDWR, 0o644)
				return err
			}, fs.ErrNotExist},
			{"mkdir through a file", func() error { return fsys.MkdirAll(dir+"/f/d", 0o755) }, syscall.ENOTDIR},
			{"mkdir again", func() error { return fsys.MkdirAll(dir+"/d/e", 0o755) }, nil},
			{"remove nothing", func() error { return fsys.Remove(dir + "/no") }, fs.ErrNotExist},
			{"remove a full directory", func() error { return fsys.Remove(dir + "/d") }, syscall.ENOTEMPTY},
			{"remove all of nothing", func() error { return fsys.RemoveAll(dir + "/no") }, nil},
			{"rename nothing", func() error { return fsys.Rename(dir+"/no", dir+"/f") }, fs.ErrNotExist},
			{"rename into nothing", func() error { return fsys.Rename(dir+"/f", dir+"/no/f") }, fs.ErrNotExist},
			{"rename a file over a directory", func() error { return fsys.Rename(dir+"/f", dir+"/d") }, fs.ErrExist},
			{"rename a directory over a file", func() error { return fsys.Rename(dir+"/d", dir+"/f") }, syscall.ENOTDIR},
			{"rename a directory into itself", func() error { return fsys.Rename(dir+"/d", dir+"/d/e/g") }, syscall.EINVAL},
			{"stat nothing", func() error { _, err := fsys.Stat(dir + "/no"); return err }, fs.ErrNotExist},
			{"list nothing", func() error { _, err := fsys.ReadDir(dir + "/no"); return err }, fs.ErrNotExist},
			{"list a file", func() error { _, err := fsys.ReadDir(dir + "/f"); return err }, syscall.ENOTDIR},
			{"sync no directory", func() error { return fsys.SyncDir(dir + "/no") }, fs.ErrNotExist},
			{"write to a file opened for reading", func() error { _, err := readOnly.WriteAt(buf, 0); return err }, syscall.EBADF},
			{"read from a file opened for writing", func() error { _, err := writeOnly.ReadAt(buf, 0); return err }, syscall.EBADF},
			{"read from a closed file", func() error { _, err := closed.ReadAt(buf, 0); return err }, fs.ErrClosed},
			{"write to a closed file", func() error { _, err := closed.WriteAt(buf, 0); return err }, fs.ErrClosed},
			{"sync a closed file", func() error { return closed.Sync() }, fs.ErrClosed},
			{"truncate a closed file", func() error { return closed.Truncate(0) }, fs.ErrClosed},
			{"size of a closed file", func() error { _, err := closed.Size(); return err }, fs.ErrClosed},
			{"close twice", func() error { return closed.Close() }, fs.ErrClosed},
			{"write before the start", func() error { _, err := writeOnly.WriteAt(buf, -1); return err }, errAny},
			{"read before the start", func() error { _, err := readOnly.ReadAt(buf, -1); return err }, errAny},
			{"append", func() error { _, err := fsys.OpenFile(dir+"/f", os.O_APPEND|os.O_WRONLY, 0); return err }, errAny},
		} {
			err := test.do()
			if test.want == errAny && err != nil {
				continue
			}
			if test.want == syscall.EINVAL && errors.Is(err, fs.ErrInvalid) {
				continue
			}
			if !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", test.name, err, test.want)
			}
		}
		if got := readFile(t, fsys, dir+"/f"); got != "x" {
			t.Errorf("the file has changed to %q", got)
		}
	})
}

var errAny = errors.New("any error")

func TestFS_NamesFollowRenameAndRemove(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		check(t, fsys.MkdirAll(dir+"/a/b", 0o755))
		writeFile(t, fsys, dir+"/a/b/f", "first")
		writeFile(t, fsys, dir+"/g", "second")
		check(t, fsys.Rename(dir+"/a", dir+"/z"))
		check(t, fsys.Rename(dir+"/g", dir+"/z/b/f")) // over a file, from another directory
		if got := list(t, fsys, dir) + " | " + list(t, fsys, dir+"/z/b"); got != "z/ | f" {
			t.Fatal(got)
		}
		if got := readFile(t, fsys, path.Join(dir, "z/../z/b/f")); got != "second" {
			t.Fatal(got)
		}
		info, err := fsys.Stat(dir + "/z/b/f")
		check(t, err)
		if info.Size() != 6 || info.IsDir() || info.Name() != "f" || info.Mode().IsDir() {
			t.Fatal(info)
		}
		check(t, fsys.SyncDir(dir))
		check(t, fsys.RemoveAll(dir+"/z"))
		if got := list(t, fsys, dir); got != "" {
			t.Fatal(got)
		}
	})
}

func TestFile_StaysReadableWhenRemoved(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		if _, ok := any(fsys).(*vfs.Mem); !ok && os.PathSeparator == '\\' {
			t.Skip("Windows refuses to remove an open file")
		}
		writeFile(t, fsys, dir+"/f", "still here")
		f, err := fsys.Open(dir + "/f")
		check(t, err)
		defer func() { check(t, f.Close()) }()
		check(t, fsys.Remove(dir+"/f"))
		writeFile(t, fsys, dir+"/f", "another")
		if got := readOpen(t, f); got != "still here" {
			t.Fatal(got)
		}
	})
}

func TestOpenFile_TruncateFlag(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		writeFile(t, fsys, dir+"/f", strings.Repeat("long", 5000))
		writeFile(t, fsys, dir+"/f", "short")
		if got := readFile(t, fsys, dir+"/f"); got != "short" {
			t.Fatal(got)
		}
	})
}

func TestLock_HasOneHolder(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		first, err := fsys.Lock(dir + "/.lock")
		check(t, err)
		if _, err := fsys.Lock(dir + "/.lock"); !errors.Is(err, vfs.ErrLocked) {
			t.Fatalf("second holder: %v", err)
		}
		check(t, first.Close())
		second, err := fsys.Lock(dir + "/.lock")
		check(t, err)
		check(t, second.Close())
		if got := list(t, fsys, dir); got != ".lock" {
			t.Fatal(got)
		}
	})
}

func TestUsage(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		total, free, err := fsys.Usage(dir)
		check(t, err)
		if fsys == vfs.OS() && (total <= 0 || free < 0 || free > total) {
			t.Fatalf("total %d free %d", total, free)
		}
		if total, free, err = fsys.Usage(dir + "/no"); !errors.Is(err, fs.ErrNotExist) || total != -1 || free != -1 {
			t.Fatalf("of nothing: %d %d %v", total, free, err)
		}
	})
}

func TestOS_FilesOfferTheirDescriptor(t *testing.T) {
	f, err := vfs.OS().OpenFile(t.TempDir()+"/f", os.O_RDWR|os.O_CREATE, 0o644)
	check(t, err)
	defer func() { check(t, f.Close()) }()
	if _, ok := f.(syscall.Conn); !ok {
		t.Fatal("no SyscallConn")
	}
}

func TestMem_ModTimeIsTheClocks(t *testing.T) {
	m, now := vfs.NewMem(), int64(1000)
	m.SetClock(func() int64 { return now })
	writeFile(t, m, "/f", "x")
	now = 2000
	for _, test := range []struct {
		name string
		want int64
	}{{"/f", 1000}, {"/", 1000}} {
		info, err := m.Stat(test.name)
		check(t, err)
		if got := info.ModTime().UnixMilli(); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// A broker that keeps everything in memory runs for long: what is deleted must be gone.
func TestEphemeral_FreesWhatIsRemoved(t *testing.T) {
	m := vfs.NewEphemeral()
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	block := make([]byte, 1<<20)
	for i := range 64 {
		dir := fmt.Sprintf("d%d", i)
		check(t, m.MkdirAll(dir, 0o755))
		f, err := m.OpenFile(dir+"/f", os.O_RDWR|os.O_CREATE, 0o644)
		check(t, err)
		for range 2 { // written, flushed, overwritten
			_, err = f.WriteAt(block, 0)
			check(t, err)
			check(t, f.Sync())
		}
		check(t, f.Close())
		check(t, m.Rename(dir, dir+"-delete"))
		check(t, m.RemoveAll(dir+"-delete"))
	}
	if grown := int64(heap()) - int64(before); grown > 8<<20 {
		t.Fatalf("64 files of 1 MiB were removed, the heap has grown by %d bytes", grown)
	}
	if got := list(t, m, "/"); got != "" {
		t.Fatal(got)
	}
}

func BenchmarkMem_Append(b *testing.B) {
	for _, size := range []int{100, 16 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m, p := vfs.NewMem(), make([]byte, size)
			f, err := m.OpenFile("f", os.O_CREATE|os.O_RDWR, 0o644)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var off int64
			for b.Loop() {
				if _, err := f.WriteAt(p, off); err != nil {
					b.Fatal(err)
				}
				if off += int64(size); off > 64<<20 {
					off = 0
				}
			}
		})
	}
}
