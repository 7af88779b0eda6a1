package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory. It remembers which bytes and names have been made durable, so that CrashClone can tell what a power
// failure would leave. Pages are shared between clones until written, and a hole costs nothing, so a clone after every operation of a test
// is cheap.
type Mem struct {
	// gate is held for reading by operations on open files, which have their own lock, and for writing by operations on names and by
	// CrashClone, so that a clone is one moment of the whole file system.
	gate    sync.RWMutex
	root    *node
	pending []nameChange // not yet durable, oldest first
	nowMs   func() int64
	// ephemeral file systems have no durable image: nothing holds what was removed or overwritten.
	ephemeral bool
}

// node is a file or a directory.
type node struct {
	perm fs.FileMode

	// a directory
	isDir   bool
	entries map[string]*node
	durable map[string]*node // entries as of the last SyncDir; differs from entries by Mem.pending

	// a file
	content *content
	locked  bool
	modMs   int64 // guarded by content.mu for files, by Mem.gate for directories
}

// slot is one name in one directory.
type slot struct {
	dir  *node
	name string
}

// nameChange sets slots in one atomic step: one for create and remove, two for rename.
type nameChange struct {
	slots [2]slot
	nodes [2]*node // what the slot holds afterwards; nil for nothing
	count int
}

// NewMem returns an empty file system. Modification times are zero until SetClock.
func NewMem() *Mem {
	return &Mem{root: newDirNode(0o755), nowMs: func() int64 { return 0 }}
}

// NewEphemeral returns an empty file system to be used and not to be tested with: it does not remember what a crash would leave, so removed
// files and overwritten bytes free their memory at once. It must not be given to CrashClone.
func NewEphemeral() *Mem {
	m := NewMem()
	m.ephemeral = true
	return m
}

// SetClock sets where modification times, in milliseconds since 1970, come from. To be called before first use.
func (m *Mem) SetClock(nowMs func() int64) { m.nowMs = nowMs }

func newDirNode(perm fs.FileMode) *node {
	return &node{perm: perm, isDir: true, entries: map[string]*node{}, durable: map[string]*node{}}
}

// split cleans a name and cuts it into its elements; the root has none.
func split(name string) []string {
	clean := strings.Trim(path.Clean("/"+name), "/")
	if clean == "" {
		return nil
	}
	return strings.Split(clean, "/")
}

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// find returns the node at the elements.
func (m *Mem) find(elements []string) (*node, error) {
	n := m.root
	for _, e := range elements {
		if !n.isDir {
			return nil, syscall.ENOTDIR
		}
		next, ok := n.entries[e]
		if !ok {
			return nil, fs.ErrNotExist
		}
		n = next
	}
	return n, nil
}

// findSlot returns the directory and last element of a name, and the node there, nil if there is none.
func (m *Mem) findSlot(name string) (slot, *node, error) {
	elements := split(name)
	if len(elements) == 0 {
		return slot{}, nil, fs.ErrInvalid
	}
	last := len(elements) - 1
	dir, err := m.find(elements[:last])
	if err != nil {
		return slot{}, nil, err
	}
	if !dir.isDir {
		return slot{}, nil, syscall.ENOTDIR
	}
	return slot{dir, elements[last]}, dir.entries[elements[last]], nil
}

// set changes one slot.
func (m *Mem) set(s slot, n *node) {
	m.change(nameChange{slots: [2]slot{s}, nodes: [2]*node{n}, count: 1})
}

func (m *Mem) change(c nameChange) {
	now := m.nowMs()
	for i := range c.count {
		s := c.slots[i]
		put(s.dir.entries, s.name, c.nodes[i])
		s.dir.modMs = now
	}
	if !m.ephemeral {
		m.pending = append(m.pending, c)
	}
}

func put(entries map[string]*node, name string, n *node) {
	if n == nil {
		delete(entries, name)
	} else {
		entries[name] = n
	}
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { return m.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile implements FS. Directories cannot be opened.
func (m *Mem) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := m.openFile(name, flag, perm)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return f, nil
}

func (m *Mem) openFile(name string, flag int, perm fs.FileMode) (*memFile, error) {
	if flag&os.O_APPEND != 0 {
		return nil, errAppendFlag
	}
	m.gate.Lock()
	defer m.gate.Unlock()
	s, n, err := m.findSlot(name)
	if err != nil {
		return nil, err
	}
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, fs.ErrNotExist
	case n == nil:
		n = &node{perm: perm.Perm(), content: newContent(!m.ephemeral), modMs: m.nowMs()}
		m.set(s, n)
	case flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, fs.ErrExist
	case n.isDir:
		return nil, syscall.EISDIR
	}
	access := flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
	f := &memFile{fs: m, node: n, name: name, readable: access != os.O_WRONLY, writable: access != os.O_RDONLY}
	if flag&os.O_TRUNC != 0 && f.writable {
		n.content.truncate(0)
		n.modMs = m.nowMs()
	}
	return f, nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(dir string, perm fs.FileMode) error {
	m.gate.Lock()
	defer m.gate.Unlock()
	n := m.root
	for _, e := range split(dir) {
		next, ok := n.entries[e]
		if !ok {
			next = newDirNode(perm.Perm())
			next.modMs = m.nowMs()
			m.set(slot{n, e}, next)
		}
		if !next.isDir {
			return pathError("mkdir", dir, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.gate.Lock()
	defer m.gate.Unlock()
	s, n, err := m.findSlot(name)
	switch {
	case err != nil:
	case n == nil:
		err = fs.ErrNotExist
	case n.isDir && len(n.entries) > 0:
		err = syscall.ENOTEMPTY
	default:
		m.set(s, nil)
		return nil
	}
	return pathError("remove", name, err)
}

// RemoveAll implements FS.
func (m *Mem) RemoveAll(name string) error {
	m.gate.Lock()
	defer m.gate.Unlock()
	s, n, err := m.findSlot(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && n == nil {
		return nil
	}
	if err != nil {
		return pathError("remove", name, err)
	}
	m.removeAll(s, n)
	return nil
}

// removeAll removes from the leaves up, each file in a step of its own, as the operating system would.
func (m *Mem) removeAll(s slot, n *node) {
	for _, name := range sortedNames(n.entries) {
		m.removeAll(slot{n, name}, n.entries[name])
	}
	m.set(s, nil)
}

func sortedNames(entries map[string]*node) []string {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Rename implements FS with the rules of POSIX.
func (m *Mem) Rename(oldName, newName string) error {
	m.gate.Lock()
	defer m.gate.Unlock()
	if err := m.rename(oldName, newName); err != nil {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: err}
	}
	return nil
}

func (m *Mem) rename(oldName, newName string) error {
	from, n, err := m.findSlot(oldName)
	if err != nil {
		return err
	}
	if n == nil {
		return fs.ErrNotExist
	}
	to, replaced, err := m.findSlot(newName)
	if err != nil {
		return err
	}
	switch {
	case replaced == n:
		return nil
	case n.isDir && strings.HasPrefix(path.Clean("/"+newName), path.Clean("/"+oldName)+"/"):
		return fs.ErrInvalid
	case replaced == nil:
	case replaced.isDir && !n.isDir:
		return fs.ErrExist
	case !replaced.isDir && n.isDir:
		return syscall.ENOTDIR
	case len(replaced.entries) > 0:
		return syscall.ENOTEMPTY
	}
	m.change(nameChange{slots: [2]slot{from, to}, nodes: [2]*node{nil, n}, count: 2})
	return nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.gate.RLock()
	defer m.gate.RUnlock()
	n, err := m.find(split(name))
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return n.describe(path.Base(path.Clean("/" + name))), nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(dir string) ([]fs.DirEntry, error) {
	m.gate.RLock()
	defer m.gate.RUnlock()
	n, err := m.find(split(dir))
	if err == nil && !n.isDir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathError("open", dir, err)
	}
	entries := make([]fs.DirEntry, 0, len(n.entries))
	for _, name := range sortedNames(n.entries) {
		entries = append(entries, fs.FileInfoToDirEntry(n.entries[name].describe(name)))
	}
	return entries, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.gate.Lock()
	defer m.gate.Unlock()
	n, err := m.find(split(dir))
	if err == nil && !n.isDir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return pathError("sync", dir, err)
	}
	m.makeDurable(n)
	return nil
}

// makeDurable applies the pending changes that touch dir, and the earlier ones of the same names, which a rename from another directory
// builds on.
func (m *Mem) makeDurable(dir *node) {
	needed := map[slot]bool{}
	chosen := make([]bool, len(m.pending))
	for i, c := range slices.Backward(m.pending) {
		for _, s := range c.slots[:c.count] {
			chosen[i] = chosen[i] || s.dir == dir || needed[s]
		}
		if chosen[i] {
			for _, s := range c.slots[:c.count] {
				needed[s] = true
			}
		}
	}
	kept := m.pending[:0]
	for i, c := range m.pending {
		if !chosen[i] {
			kept = append(kept, c)
			continue
		}
		for j, s := range c.slots[:c.count] {
			put(s.dir.durable, s.name, c.nodes[j])
		}
	}
	clear(m.pending[len(kept):])
	m.pending = kept
}

// Lock implements FS. The lock belongs to this file system, not to its clones.
func (m *Mem) Lock(name string) (io.Closer, error) {
	f, err := m.openFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, pathError("lock", name, err)
	}
	m.gate.Lock()
	defer m.gate.Unlock()
	if f.node.locked {
		return nil, pathError("lock", name, ErrLocked)
	}
	f.node.locked = true
	return &memLock{m: m, node: f.node}, nil
}

type memLock struct {
	m      *Mem
	node   *node
	closed bool
}

func (l *memLock) Close() error {
	l.m.gate.Lock()
	defer l.m.gate.Unlock()
	if l.closed {
		return fs.ErrClosed
	}
	l.closed, l.node.locked = true, false
	return nil
}

// Usage implements FS: memory has no size of its own, so both are unknown.
func (m *Mem) Usage(dir string) (totalBytes, freeBytes int64, err error) {
	if _, err := m.Stat(dir); err != nil {
		return -1, -1, fmt.Errorf("usage: %w", err)
	}
	return -1, -1, nil
}

// description is the fs.FileInfo of a node at one moment.
type description struct {
	name  string
	mode  fs.FileMode
	size  int64
	modMs int64
}

func (n *node) describe(name string) description {
	d := description{name: name, mode: n.perm}
	if n.isDir {
		d.mode |= fs.ModeDir
		d.modMs = n.modMs
		return d
	}
	n.content.mu.RLock()
	defer n.content.mu.RUnlock()
	d.size, d.modMs = n.content.size, n.modMs
	return d
}

func (d description) Name() string       { return d.name }
func (d description) Size() int64        { return d.size }
func (d description) Mode() fs.FileMode  { return d.mode }
func (d description) ModTime() time.Time { return time.UnixMilli(d.modMs) }
func (d description) IsDir() bool        { return d.mode.IsDir() }
func (d description) Sys() any           { return nil }
