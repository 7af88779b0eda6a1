package compact

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// entryBytes is what a key takes in an offset map, whatever its length: 16 bytes of its hash and the offset. Apache Kafka's map takes as much.
const entryBytes = 24

// offsetMap remembers the newest offset of each key. It is bounded: its memory is given when it is made, and what exceeds its limit is
// refused. Keys are told apart by the first 16 bytes of their SHA-256, so that two keys are never taken for one.
//
// It is a hash table in which an entry's place follows from its hash so that the entries are sorted. Those that find their place taken move
// up the ones behind. A search for a key that is not there ends at the first larger one, which is near even in a table that is almost full.
type offsetMap struct {
	table []mapEntry
	slots uint64 // of the table, but for some at its end that take what moves there
	limit int    // keys that it takes
	count int    // keys in it
	last  int64  // all of the log up to this offset (inclusive) is in the map; -1 if nothing is
}

type mapEntry struct {
	high, low uint64
	next      int64 // offset plus one; 0 = empty
}

// spareSlots are at the end of a table. The last one stays empty.
const spareSlots = 64

// newOffsetMap makes a map that takes limit keys and has room for slots, which must be more.
func newOffsetMap(slots, limit int) *offsetMap {
	return &offsetMap{table: make([]mapEntry, slots+spareSlots), slots: uint64(slots), limit: limit, last: -1}
}

// mapSize says how large a map is that takes bufferBytes when it is full to loadFactor, but no larger than for as many records as there are
// offsets.
func mapSize(bufferBytes int64, loadFactor float64, offsets int64) (slots, limit int) {
	const most = 1<<31 - 1 // bytes, as in Apache Kafka
	slots = max(int(min(bufferBytes, most)/entryBytes), 1)
	limit = max(int(float64(slots)*min(loadFactor, 1)), 1) // or nothing would ever be compacted
	if offsets < int64(limit) {
		limit = int(offsets)
		slots = min(slots, limit+limit/2+1)
	}
	return slots, limit
}

// put notes an offset, which must not be below those put before. It reports false, and does nothing, if the map is full: then not even a key
// is taken that is in it, as Apache Kafka has it.
func (m *offsetMap) put(key []byte, offset int64) bool {
	if m.count >= m.limit {
		return false
	}
	at, e := m.find(key)
	here := &m.table[at]
	if here.high != e.high || here.low != e.low || here.next == 0 {
		end := at
		for m.table[end].next != 0 {
			end++
		}
		if end == len(m.table)-1 {
			m.limit = m.count // the end of the table is crowded
			return false
		}
		copy(m.table[at+1:end+1], m.table[at:end])
		m.count++
	}
	e.next = offset + 1
	*here = e
	m.last = offset
	return true
}

// get is the newest offset of a key, -1 if the map does not have it.
func (m *offsetMap) get(key []byte) int64 {
	at, e := m.find(key)
	if found := &m.table[at]; found.high == e.high && found.low == e.low {
		return found.next - 1
	}
	return -1
}

// find returns where a key is or would be, and its hash.
func (m *offsetMap) find(key []byte) (at int, e mapEntry) {
	hash := sha256.Sum256(key)
	e = mapEntry{high: binary.BigEndian.Uint64(hash[:]), low: binary.BigEndian.Uint64(hash[8:])}
	home, _ := bits.Mul64(e.high, m.slots)
	for at = int(home); ; at++ {
		if x := &m.table[at]; x.next == 0 || x.high > e.high || x.high == e.high && x.low >= e.low {
			return at, e
		}
	}
}

// utilization is the part of the room that is used, from 0 to 1.
func (m *offsetMap) utilization() float64 { return float64(m.count) / float64(m.slots) }
