package errorfs

import (
	"errors"
	"os"

	"sluice/storage/vfs"
)

const createFlag = os.O_CREATE

// fsFile is an open file of FS.
type fsFile struct {
	inner vfs.File
	fs    *FS
}

func (f *fsFile) Name() string { return f.inner.Name() }

func (f *fsFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.check(OpRead, f.Name()); err != nil {
		return 0, err
	}
	return f.inner.ReadAt(p, off)
}

func (f *fsFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.fs.check(OpWrite, f.Name())
	if err == nil {
		return f.inner.WriteAt(p, off)
	}
	if short := (*Short)(nil); errors.As(err, &short) {
		n, writeErr := f.inner.WriteAt(p[:len(p)/2], off)
		return n, errors.Join(err, writeErr)
	}
	return 0, err
}

func (f *fsFile) Size() (int64, error) {
	if err := f.fs.check(OpSize, f.Name()); err != nil {
		return 0, err
	}
	return f.inner.Size()
}

func (f *fsFile) Truncate(size int64) error {
	if err := f.fs.check(OpTruncate, f.Name()); err != nil {
		return err
	}
	return f.inner.Truncate(size)
}

func (f *fsFile) Sync() error {
	if err := f.fs.check(OpSync, f.Name()); err != nil {
		return err
	}
	return f.inner.Sync()
}

func (f *fsFile) Close() error {
	err := f.fs.check(OpClose, f.Name())
	return errors.Join(err, f.inner.Close())
}
