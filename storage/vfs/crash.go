package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"

	"sluice/internal/assert"
)

// CrashConfig says what kind of crash CrashClone plays.
type CrashConfig struct {
	// Rand decides what survives of the bytes and names that were not made durable: all, nothing, the oldest part, or any part of them.
	// The same state and seed give the same clone. Nil: nothing survives.
	Rand *rand.Rand
	// ProcessOnly is the crash of a process, kill -9 and not the power switch: the operating system keeps everything that was written.
	ProcessOnly bool
	// SectorBytes is the unit in which a device writes or does not write; 512 when zero.
	SectorBytes int
}

// CrashClone returns the file system as a crash at this moment would leave it; m goes on undisturbed. It may be called at any time, also
// while other goroutines use m. All of the clone is durable, no file is open and no lock is held.
//
// A rename is one step: a crash leaves the file under the old name or the new one, never under both or none. Changes of different names may
// survive in any combination, those of one name only in their order.
func (m *Mem) CrashClone(cfg CrashConfig) *Mem {
	if cfg.SectorBytes == 0 {
		cfg.SectorBytes = 512
	}
	assert.That(!m.ephemeral, "crash clone of an ephemeral file system")
	m.gate.Lock()
	defer m.gate.Unlock()
	clone := &Mem{nowMs: m.nowMs}
	k := &crash{CrashConfig: cfg, copies: map[*node]*node{}, names: map[*node]map[string]*node{}}
	for _, c := range k.survivors(m.pending) {
		for i, s := range c.slots[:c.count] {
			put(k.entries(s.dir), s.name, c.nodes[i])
		}
	}
	clone.root = k.copy(m.root)
	return clone
}

// crash is one CrashClone under way.
type crash struct {
	CrashConfig
	names  map[*node]map[string]*node // surviving entries of the directories that have pending changes
	copies map[*node]*node
}

// entries returns the surviving entries of a directory for change.
func (k *crash) entries(dir *node) map[string]*node {
	e, ok := k.names[dir]
	if !ok {
		e = maps.Clone(dir.durable)
		k.names[dir] = e
	}
	return e
}

// survivors chooses among the changes of names that are not durable.
func (k *crash) survivors(pending []nameChange) []nameChange {
	if k.ProcessOnly {
		return pending
	}
	if k.Rand == nil || len(pending) == 0 {
		return nil
	}
	switch k.Rand.IntN(4) {
	case 0:
		return nil
	case 1:
		return pending
	case 2:
		return pending[:k.Rand.IntN(len(pending))]
	}
	lost := map[slot]bool{}
	var kept []nameChange
	for _, c := range pending {
		slots := c.slots[:c.count]
		if k.Rand.IntN(2) == 0 || slices.ContainsFunc(slots, func(s slot) bool { return lost[s] }) {
			for _, s := range slots {
				lost[s] = true
			}
			continue
		}
		kept = append(kept, c)
	}
	return kept
}

func (k *crash) copy(n *node) *node {
	if c, ok := k.copies[n]; ok {
		return c
	}
	c := &node{perm: n.perm, isDir: n.isDir, modMs: n.modMs}
	k.copies[n] = c
	if !n.isDir {
		c.content = k.copyContent(n.content)
		return c
	}
	entries, ok := k.names[n]
	if !ok {
		entries = n.durable
	}
	c.entries = make(map[string]*node, len(entries))
	for _, name := range sortedNames(entries) { // in order, so that one seed gives one clone
		c.entries[name] = k.copy(entries[name])
	}
	c.durable = maps.Clone(c.entries)
	return c
}

// copyContent decides which bytes of a file survive. Pages that survive whole, old or new, are shared.
func (k *crash) copyContent(c *content) *content {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation = generations.Add(1) // from here on c copies a page before it writes to it
	n := newContent(true)
	survive := k.chooseBytes(c)
	n.size = survive.size
	n.slots = make([]pageSlot, min(pagesFor(n.size), max(len(c.slots), pagesFor(c.durableSize))))
	for i := range n.slots {
		n.slots[i].page = survive.page(c, i)
	}
	if start := n.size % pageBytes; start != 0 && len(n.slots) == pagesFor(n.size) {
		if last := &n.slots[len(n.slots)-1]; last.page != nil {
			cut := *last.page
			clear(cut[start:])
			last.page = &cut
		}
	}
	n.durableSize = n.size
	return n
}

// survival is the fate of one file: its size, and for each page whether it is the durable one, the present one or a mix of both.
type survival struct {
	size int64
	page func(c *content, i int) *page
}

func (k *crash) chooseBytes(c *content) survival {
	present := survival{c.size, (*content).page}
	durable := survival{c.durableSize, (*content).durablePage}
	if k.ProcessOnly || !c.dirty() {
		return present
	}
	if k.Rand == nil {
		return durable
	}
	switch k.Rand.IntN(4) {
	case 0:
		return durable
	case 1:
		return present
	case 2:
		return k.prefix(c)
	}
	return k.sectors(c)
}

// prefix is a file of which the changes up to some byte survived.
func (k *crash) prefix(c *content) survival {
	first := c.durableSize
	for i := range c.before {
		first = min(first, int64(i)*pageBytes)
	}
	cut := min(first, c.size)
	cut += k.Rand.Int64N(c.size - cut + 1)
	size := max(c.durableSize, cut)
	if c.size < c.durableSize && k.Rand.IntN(2) == 0 {
		size = c.size
	}
	return survival{size, func(c *content, i int) *page {
		start := int64(i) * pageBytes
		switch {
		case start+pageBytes <= cut:
			return c.page(i)
		case start >= cut:
			return c.durablePage(i)
		}
		return mix(c.page(i), c.durablePage(i), func(b int) bool { return start+int64(b) < cut })
	}}
}

// sectors is a file of which any of the changed sectors survived. The size may be the new one although the bytes there are not, which then
// read as zeros.
func (k *crash) sectors(c *content) survival {
	size := c.size
	if k.Rand.IntN(2) == 0 {
		low, high := min(c.size, c.durableSize), max(c.size, c.durableSize)
		size = low + k.Rand.Int64N(high-low+1)
	}
	return survival{size, func(c *content, i int) *page {
		present, durable := c.page(i), c.durablePage(i)
		if present == durable {
			return present
		}
		keep := make([]bool, (pageBytes+k.SectorBytes-1)/k.SectorBytes)
		for s := range keep {
			keep[s] = k.Rand.IntN(2) == 0
		}
		return mix(present, durable, func(b int) bool { return keep[b/k.SectorBytes] })
	}}
}

// mix builds a page of bytes of the present and the durable one.
func mix(present, durable *page, usePresent func(b int) bool) *page {
	mixed := new(page)
	for b := range mixed {
		from := durable
		if usePresent(b) {
			from = present
		}
		if from != nil {
			mixed[b] = from[b]
		}
	}
	return mixed
}
