package vfs

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

func syncFile(f *os.File) error { return f.Sync() }

// syncDir does nothing: Windows has no such call for a directory; NTFS journals names by itself.
func syncDir(string) error { return nil }

func lockFile(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	if err := conn.Control(func(h uintptr) {
		const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
		lockErr = windows.LockFileEx(windows.Handle(h), flags, 0, math.MaxUint32, math.MaxUint32, new(windows.Overlapped))
	}); err != nil {
		return err
	}
	if errors.Is(lockErr, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return lockErr
}

func usage(dir string) (totalBytes, freeBytes int64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	var available, total uint64
	if err := windows.GetDiskFreeSpaceEx(name, &available, &total, nil); err != nil {
		return 0, 0, err
	}
	return int64(total), int64(available), nil
}
