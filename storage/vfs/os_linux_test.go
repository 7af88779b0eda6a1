package vfs_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/storage/vfs"
)

// Java's file locks are POSIX record locks. Apache Kafka and this program must see each other's lock of a data directory.
func TestLock_IsSeenByJavasLocks(t *testing.T) {
	name := t.TempDir() + "/.lock"
	java, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	check(t, err)
	recordLock := func(kind int16) error {
		return unix.FcntlFlock(java.Fd(), unix.F_SETLK, &unix.Flock_t{Type: kind})
	}
	check(t, recordLock(unix.F_WRLCK))
	if _, err := vfs.OS().Lock(name); !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("while a record lock is held: %v", err)
	}
	check(t, recordLock(unix.F_UNLCK))
	ours, err := vfs.OS().Lock(name)
	check(t, err)
	if err := recordLock(unix.F_WRLCK); !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
		t.Fatalf("a record lock while ours is held: %v", err)
	}
	check(t, ours.Close())
	check(t, recordLock(unix.F_WRLCK))
	check(t, java.Close())
}
