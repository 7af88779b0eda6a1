package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// syncFile uses fdatasync: it writes the length, but saves the second write that fsync does for the modification time.
func syncFile(f *os.File) error {
	err := control(f, func(fd int) error { return unix.Fdatasync(fd) })
	if err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

// lockFile takes a lock of the open file description. Unlike flock, it is seen by the record locks that Java's FileChannel takes, so that
// Apache Kafka and this program refuse each other's running data directory; unlike those, it also excludes a second holder in one process.
func lockFile(f *os.File) error {
	err := control(f, func(fd int) error {
		return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrLocked
	}
	return err
}

func usage(dir string) (totalBytes, freeBytes int64, err error) {
	var s unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Statfs(dir, &s) }); err != nil {
		return 0, 0, err
	}
	return int64(s.Blocks) * s.Bsize, int64(s.Bavail) * s.Bsize, nil
}
