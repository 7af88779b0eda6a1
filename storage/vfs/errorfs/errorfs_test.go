package errorfs_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

// steps uses every operation once and returns the first error.
func steps(fsys vfs.FS) error {
	if err := fsys.MkdirAll("d", 0o755); err != nil {
		return err
	}
	lock, err := fsys.Lock("d/.lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	f, err := fsys.OpenFile("d/f", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte("abcd"), 0); err != nil {
		return err
	}
	if _, err := f.ReadAt(make([]byte, 2), 0); err != nil {
		return err
	}
	if _, err := f.Size(); err != nil {
		return err
	}
	if err := f.Truncate(3); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if g, err := fsys.Open("d/f"); err != nil {
		return err
	} else if err := g.Close(); err != nil {
		return err
	}
	for _, do := range []func() error{
		func() error { return fsys.Rename("d/f", "d/g") },
		func() error { _, err := fsys.Stat("d/g"); return err },
		func() error { _, err := fsys.ReadDir("d"); return err },
		func() error { return fsys.SyncDir("d") },
		func() error { _, _, err := fsys.Usage("d"); return err },
		func() error { return fsys.Remove("d/g") },
		func() error { return fsys.RemoveAll("d") },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func TestFailNth_ReachesEveryOperation(t *testing.T) {
	var seen []string
	counted := errorfs.Wrap(vfs.NewMem(), func(op errorfs.Op, path string, n int) error {
		seen = append(seen, fmt.Sprintf("%d %s %s", n, op, path))
		return nil
	})
	if err := steps(counted); err != nil {
		t.Fatal(err)
	}
	const want = `1 mkdirall d
2 lock d/.lock
3 create d/f
4 write d/f
5 read d/f
6 size d/f
7 truncate d/f
8 sync d/f
9 close d/f
10 open d/f
11 close d/f
12 rename d/g
13 stat d/g
14 readdir d
15 syncdir d
16 usage d
17 remove d/g
18 removeall d`
	if got := strings.Join(seen, "\n"); got != want {
		t.Fatalf("operations:\n%s\nwant:\n%s", got, want)
	}
	for n := 1; n <= counted.Count(); n++ {
		if err := steps(errorfs.Wrap(vfs.NewMem(), errorfs.FailNth(n, syscall.EIO))); !errors.Is(err, syscall.EIO) {
			t.Errorf("operation %s: %v", seen[n-1], err)
		}
	}
}

func TestFailFrom_StaysBroken(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), errorfs.FailFrom(2, syscall.EIO))
	if err := fsys.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := fsys.SyncDir("d"); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
	}
	fsys.SetInject(nil)
	if err := fsys.SyncDir("d"); err != nil {
		t.Fatal(err)
	}
}

func TestShort_WritesTheFirstHalf(t *testing.T) {
	noSpace := errorfs.FailWhen(func(op errorfs.Op, path string) bool { return op == errorfs.OpWrite }, &errorfs.Short{Err: syscall.ENOSPC})
	fsys := errorfs.Wrap(vfs.NewMem(), noSpace)
	f, err := fsys.OpenFile("f", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	n, err := f.WriteAt([]byte("abcdef"), 0)
	if n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(n, err)
	}
	if size, err := f.Size(); size != 3 || err != nil {
		t.Fatal(size, err)
	}
}

func TestMutates(t *testing.T) {
	for op, want := range map[errorfs.Op]bool{errorfs.OpWrite: true, errorfs.OpRename: true, errorfs.OpRead: false, errorfs.OpClose: false} {
		if op.Mutates() != want {
			t.Errorf("%s: %v", op, !want)
		}
	}
}
