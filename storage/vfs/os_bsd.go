//go:build darwin || freebsd

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncFile: on darwin (*os.File).Sync is F_FULLFSYNC, the only call there that reaches the platter.
func syncFile(f *os.File) error { return f.Sync() }

// lockFile uses flock, which these systems keep in one list with the record locks that Java's FileChannel takes.
func lockFile(f *os.File) error {
	err := control(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

func usage(dir string) (totalBytes, freeBytes int64, err error) {
	var s unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Statfs(dir, &s) }); err != nil {
		return 0, 0, err
	}
	return int64(s.Blocks) * int64(s.Bsize), int64(s.Bavail) * int64(s.Bsize), nil
}
