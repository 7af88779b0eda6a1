// Package errorfs wraps a file system and lets chosen operations fail: the n-th one, those on a path, with any error, or after half of the
// bytes have been written. Only tests use it.
package errorfs

import (
	"io"
	"io/fs"
	"sync/atomic"

	"sluice/storage/vfs"
)

// Op is a kind of operation.
type Op string

// The operations of a file system and of its files.
const (
	OpOpen      Op = "open"   // Open, and OpenFile without the flag to create
	OpCreate    Op = "create" // OpenFile with the flag to create, whether or not the file exists
	OpMkdirAll  Op = "mkdirall"
	OpRemove    Op = "remove"
	OpRemoveAll Op = "removeall"
	OpRename    Op = "rename" // its path is the new name
	OpStat      Op = "stat"
	OpReadDir   Op = "readdir"
	OpSyncDir   Op = "syncdir"
	OpLock      Op = "lock"
	OpUsage     Op = "usage"
	OpRead      Op = "read"
	OpWrite     Op = "write"
	OpSize      Op = "size"
	OpTruncate  Op = "truncate"
	OpSync      Op = "sync"
	OpClose     Op = "close"
)

// Mutates tells whether the operation changes what a crash would leave.
func (o Op) Mutates() bool {
	switch o {
	case OpCreate, OpMkdirAll, OpRemove, OpRemoveAll, OpRename, OpSyncDir, OpLock, OpWrite, OpTruncate, OpSync:
		return true
	default:
		return false
	}
}

// Inject is asked before each operation; n counts the operations of the file system from 1. A nil result lets the operation go on. An error
// is returned in its place, and the operation does not happen, but for a *Short error of a write. A failing close does close.
//
// Inject runs in the goroutine of the operation, without locks, so it may also take a crash clone or stop a test at a chosen point.
type Inject func(op Op, path string, n int) error

// Short is the error of a write that stops half-way: the first half of the bytes is written.
type Short struct{ Err error }

func (s *Short) Error() string { return "short write: " + s.Err.Error() }
func (s *Short) Unwrap() error { return s.Err }

// FailNth lets the n-th operation fail, counted from 1.
func FailNth(n int, err error) Inject {
	return func(_ Op, _ string, k int) error {
		if k == n {
			return err
		}
		return nil
	}
}

// FailFrom lets the n-th operation and all later ones fail, as a device that is gone does.
func FailFrom(n int, err error) Inject {
	return func(_ Op, _ string, k int) error {
		if k >= n {
			return err
		}
		return nil
	}
}

// FailWhen lets the operations that match chooses fail.
func FailWhen(match func(op Op, path string) bool, err error) Inject {
	return func(op Op, path string, _ int) error {
		if match(op, path) {
			return err
		}
		return nil
	}
}

// FS is a file system whose operations can be made to fail. Its files do not offer SyscallConn, so every byte passes here.
type FS struct {
	inner  vfs.FS
	inject atomic.Pointer[Inject]
	count  atomic.Int64
}

// Wrap returns inner with injection; a nil inject only counts.
func Wrap(inner vfs.FS, inject Inject) *FS {
	f := &FS{inner: inner}
	f.SetInject(inject)
	return f
}

// SetInject replaces the injection from the next operation on.
func (f *FS) SetInject(inject Inject) {
	if inject == nil {
		inject = func(Op, string, int) error { return nil }
	}
	f.inject.Store(&inject)
}

// Count is the number of operations so far, failed ones included.
func (f *FS) Count() int { return int(f.count.Load()) }

func (f *FS) check(op Op, path string) error {
	n := f.count.Add(1)
	if err := (*f.inject.Load())(op, path, int(n)); err != nil {
		return &fs.PathError{Op: string(op), Path: path, Err: err}
	}
	return nil
}

func (f *FS) wrap(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &fsFile{inner: file, fs: f}, nil
}

// Open implements vfs.FS.
func (f *FS) Open(name string) (vfs.File, error) {
	if err := f.check(OpOpen, name); err != nil {
		return nil, err
	}
	return f.wrap(f.inner.Open(name))
}

// OpenFile implements vfs.FS.
func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	op := OpOpen
	if flag&createFlag != 0 {
		op = OpCreate
	}
	if err := f.check(op, name); err != nil {
		return nil, err
	}
	return f.wrap(f.inner.OpenFile(name, flag, perm))
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(dir string, perm fs.FileMode) error {
	if err := f.check(OpMkdirAll, dir); err != nil {
		return err
	}
	return f.inner.MkdirAll(dir, perm)
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	if err := f.check(OpRemove, name); err != nil {
		return err
	}
	return f.inner.Remove(name)
}

// RemoveAll implements vfs.FS.
func (f *FS) RemoveAll(name string) error {
	if err := f.check(OpRemoveAll, name); err != nil {
		return err
	}
	return f.inner.RemoveAll(name)
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldName, newName string) error {
	if err := f.check(OpRename, newName); err != nil {
		return err
	}
	return f.inner.Rename(oldName, newName)
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	if err := f.check(OpStat, name); err != nil {
		return nil, err
	}
	return f.inner.Stat(name)
}

// ReadDir implements vfs.FS.
func (f *FS) ReadDir(dir string) ([]fs.DirEntry, error) {
	if err := f.check(OpReadDir, dir); err != nil {
		return nil, err
	}
	return f.inner.ReadDir(dir)
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(dir string) error {
	if err := f.check(OpSyncDir, dir); err != nil {
		return err
	}
	return f.inner.SyncDir(dir)
}

// Lock implements vfs.FS.
func (f *FS) Lock(name string) (io.Closer, error) {
	if err := f.check(OpLock, name); err != nil {
		return nil, err
	}
	return f.inner.Lock(name)
}

// Usage implements vfs.FS.
func (f *FS) Usage(dir string) (totalBytes, freeBytes int64, err error) {
	if err := f.check(OpUsage, dir); err != nil {
		return -1, -1, err
	}
	return f.inner.Usage(dir)
}
