package segment

import (
	"os"
	"sync"
	"sync/atomic"

	"sluice/internal/assert"
	"sluice/storage/vfs"
)

// Handles bounds how many files the segments of all logs that share it keep open between uses. Files in use are never closed, so that
// the bound is exceeded for a while when more are used at once. Which file goes is decided as a clock does: one that was not used
// since the hand came by last.
type Handles struct {
	limit int
	swaps atomic.Int64 // counts calls of Swap

	mu   sync.Mutex
	open []*handle
	hand int
}

// NewHandles keeps at most limit files open, at least one.
func NewHandles(limit int) *Handles { return &Handles{limit: max(limit, 1)} }

// Open is the number of files that are open.
func (p *Handles) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// opened takes in a file that has just been opened and closes others if there are too many.
func (p *Handles) opened(h *handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.slot != 0 {
		return // closed and opened again before the first opener came here
	}
	p.open = append(p.open, h)
	h.slot = len(p.open)
	// Two turns: the first one only takes marks away.
	for steps := 2 * len(p.open); len(p.open) > p.limit && steps > 0; steps-- {
		if p.hand >= len(p.open) {
			p.hand = 0
		}
		victim := p.open[p.hand]
		if victim.used.Swap(false) || !victim.closeIdle() {
			p.hand++
			continue
		}
		p.removeLocked(victim)
	}
}

// removeLocked forgets a file; the last one takes its place.
func (p *Handles) removeLocked(h *handle) {
	if h.slot == 0 {
		return
	}
	i, last := h.slot-1, len(p.open)-1
	p.open[i] = p.open[last]
	p.open[i].slot = i + 1
	p.open[last] = nil
	p.open = p.open[:last]
	h.slot = 0
}

// handle is one file of a segment, open or closed.
type handle struct {
	// state is 0 while the file is closed, else 1 + the number of users. Only an open file gets a user without taking mu, and only a file
	// without users is closed.
	state  atomic.Int32
	used   atomic.Bool // since the clock's hand came by
	doomed atomic.Bool // to be closed as soon as it has no user
	kind   fileKind
	slot   int // in Handles.open, from 1; 0 = not there; guarded by Handles.mu
	owner  *Segment

	mu   sync.Mutex // held while the file is opened, closed or renamed
	file vfs.File   // may be read by users without mu
}

type fileKind uint8

const (
	logFile fileKind = iota
	offsetFile
	timeFile
	txnFile
	fileKinds
)

var suffixes = [fileKinds]string{LogSuffix, OffsetSuffix, TimeSuffix, TxnSuffix}

// acquire opens the file if it is closed and keeps it open until release.
func (h *handle) acquire() (vfs.File, error) { return h.acquireWith(os.O_RDWR) }

// create is acquire for a file that need not exist.
func (h *handle) create() (vfs.File, error) { return h.acquireWith(os.O_RDWR | os.O_CREATE) }

func (h *handle) acquireWith(flag int) (vfs.File, error) {
	if f := h.tryAcquire(); f != nil {
		return f, nil
	}
	return h.openSlow(flag)
}

func (h *handle) tryAcquire() vfs.File {
	for {
		n := h.state.Load()
		if n == 0 {
			return nil
		}
		if h.state.CompareAndSwap(n, n+1) {
			if !h.used.Load() {
				h.used.Store(true)
			}
			return h.file
		}
	}
}

func (h *handle) openSlow(flag int) (vfs.File, error) {
	h.mu.Lock()
	if f := h.tryAcquire(); f != nil {
		h.mu.Unlock()
		return f, nil
	}
	f, err := h.owner.fs.OpenFile(h.owner.path(h.kind), flag, 0o644)
	if err != nil {
		h.mu.Unlock()
		return nil, err
	}
	h.file = f
	h.used.Store(true)
	h.state.Store(2)
	h.mu.Unlock()
	h.owner.handles.opened(h)
	return f, nil
}

// release ends the use that acquire began.
func (h *handle) release() {
	n := h.state.Add(-1)
	assert.That(n >= 1, "file of a segment released more often than acquired")
	if n == 1 && h.doomed.Load() {
		h.close()
	}
}

// closeIdle closes the file if it has no user. The error of closing is of no interest: what must last has been synced before.
func (h *handle) closeIdle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.state.CompareAndSwap(1, 0) {
		return h.state.Load() == 0
	}
	_ = h.file.Close()
	h.file = nil
	return true
}

// close closes the file now or, if it has users, when the last one is done.
func (h *handle) close() {
	h.doomed.Store(true)
	p := h.owner.handles
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.closeIdle() {
		p.removeLocked(h)
	}
}
