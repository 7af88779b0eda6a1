//go:build linux || darwin || freebsd

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// control runs op with the descriptor of f, which stays open meanwhile even if another goroutine closes f.
func control(f *os.File, op func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var opErr error
	if err := conn.Control(func(fd uintptr) {
		opErr = retryInterrupted(func() error { return op(int(fd)) })
	}); err != nil {
		return os.ErrClosed // the only cause; package os keeps the error's own value to itself
	}
	return opErr
}

func retryInterrupted(op func() error) error {
	for {
		if err := op(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil // some network and user-space file systems cannot sync a directory
	}
	return errors.Join(err, d.Close())
}
