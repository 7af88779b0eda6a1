package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// OS returns the file system of the operating system.
func OS() FS { return osFS{} }

type osFS struct{}

// osFile adds Size and a cheaper Sync to an *os.File, whose SyscallConn it keeps.
type osFile struct{ *os.File }

var errAppendFlag = errors.New("O_APPEND is not supported")

func (osFS) Open(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errAppendFlag}
	}
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) MkdirAll(dir string, perm fs.FileMode) error { return os.MkdirAll(dir, perm) }
func (osFS) Remove(name string) error                    { return os.Remove(name) }
func (osFS) RemoveAll(name string) error                 { return os.RemoveAll(name) }
func (osFS) Rename(oldName, newName string) error        { return os.Rename(oldName, newName) }
func (osFS) Stat(name string) (fs.FileInfo, error)       { return os.Stat(name) }
func (osFS) ReadDir(dir string) ([]fs.DirEntry, error)   { return os.ReadDir(dir) }
func (osFS) SyncDir(dir string) error                    { return syncDir(dir) }

func (osFS) Usage(dir string) (totalBytes, freeBytes int64, err error) {
	totalBytes, freeBytes, err = usage(dir)
	if err != nil {
		return -1, -1, &fs.PathError{Op: "usage", Path: dir, Err: err}
	}
	return totalBytes, freeBytes, nil
}

func (osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: errors.Join(err, closeAfterFailure(f))}
	}
	return f, nil // the kernel drops the lock with the last handle, so closing is unlocking
}

func closeAfterFailure(f *os.File) error {
	if err := f.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

func (f osFile) Size() (int64, error) {
	i, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return i.Size(), nil
}

func (f osFile) Sync() error { return syncFile(f.File) }
