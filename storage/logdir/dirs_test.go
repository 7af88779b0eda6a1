package logdir

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"sluice/storage/checkpoint"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

// twoDirs returns a file system with two formatted directories, closed.
func twoDirs(t *testing.T) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	dirs, err := OpenAll(m, []string{"a", "b"}, options())
	check(t, err)
	check(t, dirs.Close())
	return m
}

func TestOpenAll_GoesOnWithoutABrokenDirectory(t *testing.T) {
	m := twoDirs(t)
	var failed []string
	o := options()
	o.OnFailure = func(d *Dir, _ error) { failed = append(failed, d.Path()) }
	broken := errorfs.FailWhen(func(_ errorfs.Op, path string) bool { return strings.HasPrefix(path, "a") }, syscall.EIO)
	dirs, err := OpenAll(errorfs.Wrap(m, broken), []string{"a", "b"}, o)
	check(t, err)
	if len(dirs) != 2 || len(dirs.Live()) != 1 || dirs.Live()[0].Path() != "b" || !errors.Is(dirs[0].Failure(), syscall.EIO) || strings.Join(failed, "") != "a" {
		t.Fatal(dirs.Live(), failed)
	}
	check(t, dirs.Close())
	all := errorfs.FailWhen(func(op errorfs.Op, _ string) bool { return op == errorfs.OpReadDir }, syscall.EIO)
	_, err = OpenAll(errorfs.Wrap(m, all), []string{"a", "b"}, options())
	if err == nil || !strings.HasPrefix(err.Error(), "no log directory works: ") || !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	dirs, err = OpenAll(m, []string{"a", "b"}, options()) // nothing is left locked
	check(t, err)
	check(t, dirs.Close())
}

func TestOpenAll_FormatsANewDirectoryBesideOthers(t *testing.T) {
	m := twoDirs(t)
	dirs, err := OpenAll(m, []string{"a", "new"}, Options{NodeID: -1})
	check(t, err)
	if dirs[1].ClusterID() != "c1" || dirs[1].NodeID() != 1 || dirs[1].ID() == dirs[0].ID() {
		t.Fatal(dirs[1].ClusterID(), dirs[1].NodeID())
	}
	if _, err := OpenAll(vfs.NewMem(), []string{"a", "b"}, Options{ClusterID: "c1", NodeID: 1}); !errors.Is(err, ErrNotFormatted) {
		t.Fatalf("none is formatted: %v", err)
	}
}

func TestOpenAll_RefusesWhatAPersonMustDecide(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(m *vfs.Mem)
		paths []string
		want  string
	}{
		{"none", func(*vfs.Mem) {}, nil, "no log directory is configured"},
		{"twice", func(*vfs.Mem) {}, []string{"a", "./a/"}, "log directory ./a/ is configured twice"},
		{"copy", func(m *vfs.Mem) {
			meta, err := checkpoint.ReadMetaProperties(m, "a")
			check(t, err)
			check(t, checkpoint.WriteMetaProperties(m, "b", meta))
		}, []string{"a", "b"}, "log directories a and b have the same directory id "},
		{"other cluster", func(m *vfs.Mem) {
			check(t, checkpoint.WriteMetaProperties(m, "b", checkpoint.MetaProperties{ClusterID: "c2", NodeID: 1, DirectoryID: idA}))
		}, []string{"a", "b"}, "log directory b belongs to the cluster c2, "},
		{"partition twice", func(m *vfs.Mem) {
			check(t, m.MkdirAll("a/orders-0", 0o755))
			check(t, m.MkdirAll("b/orders-0", 0o755))
		}, []string{"a", "b"}, "orders-0 is in a and in b: "},
		{"two future copies", func(m *vfs.Mem) {
			check(t, m.MkdirAll("a/orders-0.1-future", 0o755))
			check(t, m.MkdirAll("a/orders-0.2-future", 0o755))
		}, []string{"a"}, "no log directory works: log directory a is offline: two copies of orders-0 are under way"},
	} {
		m := twoDirs(t)
		test.spoil(m)
		_, err := OpenAll(m, test.paths, options())
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		for _, p := range test.paths {
			lock, err := m.Lock(p + "/.lock")
			check(t, err) // nothing is left locked
			check(t, lock.Close())
		}
	}
}
