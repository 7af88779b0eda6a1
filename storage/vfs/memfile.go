package vfs

import (
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
)

// pageBytes is the unit of allocation and of sharing between clones.
const pageBytes = 4096

type page [pageBytes]byte

// pageSlot is a page of a file. The file may write to it in place only while generation equals the file's; otherwise a clone or the durable
// image shares it and the file makes a copy first.
type pageSlot struct {
	page       *page // nil reads as zeros
	generation uint64
}

// content is the bytes of a file, and what is needed to tell the bytes as of the last Sync.
//
// Invariant: bytes of a page beyond size are zero.
type content struct {
	mu         sync.RWMutex
	size       int64
	slots      []pageSlot // pages beyond the slice are zero
	generation uint64

	// tracked is false in an ephemeral file system; then there is no durable image.
	tracked     bool
	durableSize int64
	// before holds the durable image of pages below durableSize that have changed since Sync.
	before map[int]*page
}

// generations are unique over all files, so that a page is private to one file at most.
var generations atomic.Uint64

func newContent(tracked bool) *content {
	return &content{generation: generations.Add(1), tracked: tracked}
}

func pagesFor(size int64) int { return int((size + pageBytes - 1) / pageBytes) }

func (c *content) page(i int) *page {
	if i < len(c.slots) {
		return c.slots[i].page
	}
	return nil
}

// durablePage is the page as of the last Sync; nil reads as zeros.
func (c *content) durablePage(i int) *page {
	if i >= pagesFor(c.durableSize) {
		return nil
	}
	if p, ok := c.before[i]; ok {
		return p
	}
	return c.page(i)
}

// remember keeps the durable image of page i, which is about to change.
func (c *content) remember(i int) {
	if i >= pagesFor(c.durableSize) {
		return
	}
	if _, ok := c.before[i]; ok {
		return
	}
	if c.before == nil {
		c.before = map[int]*page{}
	}
	c.before[i] = c.page(i)
}

// writable returns page i for writing in place.
func (c *content) writable(i int) *page {
	for len(c.slots) <= i {
		c.slots = append(c.slots, pageSlot{})
	}
	s := &c.slots[i]
	if s.page != nil && s.generation == c.generation {
		return s.page
	}
	c.remember(i)
	fresh := new(page)
	if s.page != nil {
		*fresh = *s.page
	}
	*s = pageSlot{fresh, c.generation}
	return fresh
}

func (c *content) readAt(p []byte, off int64) int {
	if off >= c.size {
		return 0
	}
	p = p[:min(int64(len(p)), c.size-off)]
	for n := 0; n < len(p); {
		i, start := int(off/pageBytes), int(off%pageBytes)
		part := p[n:min(len(p), n+pageBytes-start)]
		if pg := c.page(i); pg != nil {
			copy(part, pg[start:])
		} else {
			clear(part)
		}
		n += len(part)
		off += int64(len(part))
	}
	return len(p)
}

func (c *content) writeAt(p []byte, off int64) {
	c.size = max(c.size, off+int64(len(p)))
	for len(p) > 0 {
		n := copy(c.writable(int(off / pageBytes))[off%pageBytes:], p)
		p = p[n:]
		off += int64(n)
	}
}

func (c *content) truncate(size int64) {
	if size < c.size {
		keep := pagesFor(size)
		for i := keep; i < len(c.slots); i++ {
			c.remember(i)
		}
		if keep < len(c.slots) {
			clear(c.slots[keep:])
			c.slots = c.slots[:keep]
		}
		if start := size % pageBytes; start != 0 && c.page(keep-1) != nil {
			clear(c.writable(keep - 1)[start:])
		}
	}
	c.size = size
}

// sync makes the present bytes the durable ones: pages become shared with the durable image.
func (c *content) sync() {
	if !c.tracked {
		return
	}
	c.durableSize = c.size
	clear(c.before)
	c.generation = generations.Add(1)
}

// dirty tells whether the durable image may differ from the bytes.
func (c *content) dirty() bool { return c.durableSize != c.size || len(c.before) > 0 }

// memFile is an open file of Mem.
type memFile struct {
	fs                 *Mem
	node               *node
	name               string
	readable, writable bool
	closed             atomic.Bool
}

func (f *memFile) Name() string { return f.name }

func (f *memFile) fail(op string, err error) error { return pathError(op, f.name, err) }

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.gate.RLock()
	defer f.fs.gate.RUnlock()
	switch {
	case f.closed.Load():
		return 0, f.fail("read", fs.ErrClosed)
	case !f.readable:
		return 0, f.fail("read", syscall.EBADF)
	case off < 0:
		return 0, f.fail("read", fs.ErrInvalid)
	}
	c := f.node.content
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := c.readAt(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// change runs a change of the bytes under the locks.
func (f *memFile) change(op string, valid bool, do func(c *content)) error {
	f.fs.gate.RLock()
	defer f.fs.gate.RUnlock()
	switch {
	case f.closed.Load():
		return f.fail(op, fs.ErrClosed)
	case !f.writable:
		return f.fail(op, syscall.EBADF)
	case !valid:
		return f.fail(op, fs.ErrInvalid)
	}
	now := f.fs.nowMs()
	c := f.node.content
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c)
	f.node.modMs = now
	return nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.change("write", off >= 0, func(c *content) { c.writeAt(p, off) }); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *memFile) Truncate(size int64) error {
	return f.change("truncate", size >= 0, func(c *content) { c.truncate(size) })
}

func (f *memFile) Size() (int64, error) {
	f.fs.gate.RLock()
	defer f.fs.gate.RUnlock()
	if f.closed.Load() {
		return 0, f.fail("stat", fs.ErrClosed)
	}
	c := f.node.content
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.size, nil
}

func (f *memFile) Sync() error {
	f.fs.gate.RLock()
	defer f.fs.gate.RUnlock()
	if f.closed.Load() {
		return f.fail("sync", fs.ErrClosed)
	}
	c := f.node.content
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sync()
	return nil
}

func (f *memFile) Close() error {
	if f.closed.Swap(true) {
		return f.fail("close", fs.ErrClosed)
	}
	return nil
}
