package segment

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// index is a file of sorted entries of one size that only grows at its end. The newest entries are kept in memory and written many at a
// time: a log that was not closed builds the index of its last segment anew, so nothing depends on them. There is one writer; readers need
// no lock.
type index struct {
	handle     handle
	entryBytes int
	tail       atomic.Pointer[indexTail]
	fences     atomic.Pointer[fences]

	// of the writer
	written  bool // the file exists
	unsynced bool // the file has changed since it was synced
}

// indexTail is the end of an index. What a reader finds in it never changes: when it is full a new one takes its place.
type indexTail struct {
	onDisk  int // entries in the file, which precede those here
	entries []byte
	count   atomic.Int32 // of entries that are filled
}

const (
	tailEntriesFirst = 8   // the room for entries in memory grows from here
	tailEntriesMost  = 512 // entries in memory before they are written
	blockBytes       = 4096
)

var emptyTail = &indexTail{}

func (x *index) load() *indexTail {
	if t := x.tail.Load(); t != nil {
		return t
	}
	return emptyTail
}

// entries is the number of entries.
func (x *index) entries() int {
	t := x.load()
	return t.onDisk + int(t.count.Load())
}

// append adds an entry, which must be encoded in entry before it returns.
func (x *index) append(encode func(entry []byte, a, b int64), a, b int64) error {
	t := x.load()
	n := int(t.count.Load())
	if n*x.entryBytes == len(t.entries) {
		if n >= tailEntriesMost {
			if err := x.spill(); err != nil {
				return err
			}
			t, n = x.load(), 0
		}
		grown := &indexTail{onDisk: t.onDisk, entries: make([]byte, x.entryBytes*min(max(2*n, tailEntriesFirst), tailEntriesMost))}
		copy(grown.entries, t.entries)
		grown.count.Store(int32(n))
		x.tail.Store(grown)
		t = grown
	}
	encode(t.entries[n*x.entryBytes:(n+1)*x.entryBytes], a, b)
	t.count.Store(int32(n + 1))
	return nil
}

// spill writes the entries in memory to the file and frees their room. The file exists afterwards, also if there is no entry at all.
func (x *index) spill() error {
	t := x.load()
	n := int(t.count.Load())
	if n == 0 && x.written {
		if len(t.entries) > 0 {
			x.tail.Store(&indexTail{onDisk: t.onDisk})
		}
		return nil
	}
	f, err := x.handle.create()
	if err != nil {
		return err
	}
	defer x.handle.release()
	x.written, x.unsynced = true, true
	if n > 0 {
		if _, err := f.WriteAt(t.entries[:n*x.entryBytes], int64(t.onDisk)*int64(x.entryBytes)); err != nil {
			return err
		}
	}
	x.tail.Store(&indexTail{onDisk: t.onDisk + n})
	return nil
}

// sync makes the file durable, if it has changed.
func (x *index) sync() error {
	if !x.unsynced {
		return nil
	}
	f, err := x.handle.acquire()
	if err != nil {
		return err
	}
	defer x.handle.release()
	if err := f.Sync(); err != nil {
		return err
	}
	x.unsynced = false
	return nil
}

// truncate keeps the first n entries, in memory and in the file.
func (x *index) truncate(n int) error {
	x.fences.Store(nil)
	t := x.load()
	if n >= t.onDisk {
		kept := &indexTail{onDisk: t.onDisk, entries: append([]byte(nil), t.entries[:(n-t.onDisk)*x.entryBytes]...)}
		kept.count.Store(int32(n - t.onDisk))
		x.tail.Store(kept)
		return nil
	}
	f, err := x.handle.acquire()
	if err != nil {
		return err
	}
	defer x.handle.release()
	x.unsynced = true
	x.tail.Store(&indexTail{onDisk: n})
	return f.Truncate(int64(n) * int64(x.entryBytes))
}

// reset empties the index, whatever the file holds or whether it exists.
func (x *index) reset() error {
	x.fences.Store(nil)
	f, err := x.handle.create()
	if err != nil {
		return err
	}
	defer x.handle.release()
	x.written, x.unsynced = true, true
	x.tail.Store(&indexTail{})
	return f.Truncate(0)
}

// errShortIndex means that a file has fewer entries than were written: it is being truncated, or damaged.
var errShortIndex = fmt.Errorf("index file is too short: %w", io.ErrUnexpectedEOF)

// read copies entry n of a tail to buf.
func (x *index) read(t *indexTail, n int, buf []byte) error {
	if n >= t.onDisk {
		copy(buf[:x.entryBytes], t.entries[(n-t.onDisk)*x.entryBytes:])
		return nil
	}
	f, err := x.handle.acquire()
	if err != nil {
		return err
	}
	defer x.handle.release()
	return readFull(f, buf[:x.entryBytes], int64(n)*int64(x.entryBytes))
}

func readFull(f io.ReaderAt, buf []byte, position int64) error {
	n, err := f.ReadAt(buf, position)
	if n == len(buf) {
		return nil
	}
	if err == nil || err == io.EOF {
		return errShortIndex
	}
	return err
}

var blocks = sync.Pool{New: func() any { return new([blockBytes]byte) }}

// fences remembers the keys of the first entries of an index file's blocks, as far as searches have met them, so that the next search reads
// one block and no more. 0 is unknown, else it is the key + 1. A wrong key, which a search beside a truncation might leave, makes a search
// find an earlier entry or none, which costs time only.
type fences struct{ keys []atomic.Int64 }

// fencesFor returns the fences of an index of some blocks.
func (x *index) fencesFor(blocks int) *fences {
	old := x.fences.Load()
	if old != nil && len(old.keys) >= blocks {
		return old
	}
	grown := &fences{make([]atomic.Int64, blocks+blocks/4)}
	if old != nil {
		for i := range old.keys {
			grown.keys[i].Store(old.keys[i].Load())
		}
	}
	x.fences.Store(grown)
	return grown
}

// search finds the last entry of which the key is not above target, and copies it to buf. It returns -1 if there is none. Keys ascend and
// are not negative. remember says to use the fences, which are for one kind of key.
func (x *index) search(key func(entry []byte) int64, target int64, remember bool, buf []byte) (int, error) {
	t := x.load()
	inMemory := int(t.count.Load())
	if n := x.searchBytes(t.entries[:inMemory*x.entryBytes], key, target); n >= 0 {
		copy(buf[:x.entryBytes], t.entries[n*x.entryBytes:])
		return t.onDisk + n, nil
	}
	if t.onDisk == 0 {
		return -1, nil
	}
	f, err := x.handle.acquire()
	if err != nil {
		return -1, err
	}
	defer x.handle.release()
	block := blocks.Get().(*[blockBytes]byte)
	defer blocks.Put(block)
	// First which block: low is the first block of which the first entry is above.
	perBlock := blockBytes / x.entryBytes
	low, high := 0, (t.onDisk+perBlock-1)/perBlock
	var known *fences
	if remember {
		known = x.fencesFor(high)
	}
	for low < high {
		middle := (low + high) / 2
		var first int64
		if known != nil {
			first = known.keys[middle].Load()
		}
		if first == 0 {
			if err := readFull(f, block[:x.entryBytes], int64(middle)*int64(perBlock*x.entryBytes)); err != nil {
				return -1, err
			}
			first = key(block[:x.entryBytes]) + 1
			if known != nil {
				known.keys[middle].Store(first)
			}
		}
		if first-1 > target {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if low == 0 {
		return -1, nil
	}
	first := (low - 1) * perBlock
	entries := block[:min(perBlock, t.onDisk-first)*x.entryBytes]
	if err := readFull(f, entries, int64(first)*int64(x.entryBytes)); err != nil {
		return -1, err
	}
	n := x.searchBytes(entries, key, target)
	if n < 0 {
		return -1, nil
	}
	copy(buf[:x.entryBytes], entries[n*x.entryBytes:])
	return first + n, nil
}

// searchBytes is search within encoded entries.
func (x *index) searchBytes(entries []byte, key func(entry []byte) int64, target int64) int {
	low, high := 0, len(entries)/x.entryBytes
	for low < high {
		middle := (low + high) / 2
		if key(entries[middle*x.entryBytes:(middle+1)*x.entryBytes]) > target {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low - 1
}
