// Package vfs is the only way from the storage packages to a disk: a small file system interface with two implementations, the operating
// system's (OS) and one in memory that can be cloned as a crash would have left it (Mem). Package errorfs wraps either and lets chosen
// operations fail.
//
// Rules that hold for every implementation and every caller:
//
//   - Names are slash paths, also on Windows.
//   - Errors are what package os returns: *fs.PathError around a cause that errors.Is compares with fs.ErrNotExist, fs.ErrExist and so on.
//   - Bytes are durable after Sync of the file, names (of created, renamed and removed files) after SyncDir of the directory that holds
//     them. Before that a power failure may keep, lose or tear them.
//   - A removed file stays readable through handles that are open. Windows refuses to remove or rename a file, or a directory with a file in
//     it, while a handle is open: callers that want to run there close first.
package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// ErrLocked is wrapped by the error of Lock when another live process, or another holder in this process, has the lock.
var ErrLocked = errors.New("locked by another process")

// FS is a file system.
type FS interface {
	// Open opens a file for reading.
	Open(name string) (File, error)
	// OpenFile opens a file with the os.O_* flags; O_APPEND is refused, as files are written at offsets.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// MkdirAll creates a directory and its missing parents; an existing directory is no error.
	MkdirAll(dir string, perm fs.FileMode) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// RemoveAll removes name and everything below it; a name that does not exist is no error.
	RemoveAll(name string) error
	// Rename gives a file or a directory a new name in one step; a file that has the new name is replaced.
	Rename(oldName, newName string) error
	// Stat describes a file or a directory.
	Stat(name string) (fs.FileInfo, error)
	// ReadDir lists a directory, sorted by name.
	ReadDir(dir string) ([]fs.DirEntry, error)
	// SyncDir makes the names in dir durable. It does nothing where the system cannot do that.
	SyncDir(dir string) error
	// Lock creates the file if it is missing and locks it until the result is closed or the process ends. The error wraps ErrLocked when
	// the lock is taken.
	Lock(name string) (io.Closer, error)
	// Usage returns the size of the volume that holds dir and the bytes that this process may still write to it; -1 where unknown.
	Usage(dir string) (totalBytes, freeBytes int64, err error)
}

// File is an open file. ReadAt and WriteAt may be called at the same time by several goroutines.
//
// Files of OS also implement syscall.Conn, so that a server can hand them to sendfile.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Name is the name that the file was opened with.
	Name() string
	// Size is the length in bytes.
	Size() (int64, error)
	// Truncate cuts the file, or extends it with zeros, to size bytes.
	Truncate(size int64) error
	// Sync makes the bytes and the length durable, not the name.
	Sync() error
}
