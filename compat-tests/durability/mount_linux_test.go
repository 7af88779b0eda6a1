package durability

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// mountSmall makes a directory that is a file system of its own, of that many bytes, or says loudly that it could not.
func mountSmall(t *testing.T, bytes string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+bytes); err != nil {
		t.Skipf("NOT TESTED: a file system of %s could not be mounted (%v). Run this as root.", bytes, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// coverReadOnly puts an empty read-only file system over a directory, as when its volume has gone, until the result is called.
func coverReadOnly(t *testing.T, dir string) (uncover func()) {
	t.Helper()
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("NOT TESTED: a read-only file system could not be mounted over %s (%v). Run this as root.", dir, err)
	}
	covered := true
	uncover = func() {
		if covered {
			covered = false
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Errorf("unmount %s: %v", dir, err)
			}
		}
	}
	t.Cleanup(uncover)
	return uncover
}
