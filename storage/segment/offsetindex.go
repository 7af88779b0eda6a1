package segment

import "encoding/binary"

// offsetIndex maps offsets to positions in the log file, one entry for every few KiB. An entry is the last offset of a batch,
// relative to the segment's base offset, and the position of that batch, 4 bytes each.
type offsetIndex struct{ index }

const offsetEntryBytes = 8

// offsetEntry is the decoded entry.
type offsetEntry struct {
	relative int64 // last offset of the batch - base offset
	position int64
}

func decodeOffsetEntry(b []byte) offsetEntry {
	return offsetEntry{int64(int32(binary.BigEndian.Uint32(b))), int64(int32(binary.BigEndian.Uint32(b[4:])))}
}

func encodeOffsetEntry(b []byte, relative, position int64) {
	binary.BigEndian.PutUint32(b, uint32(relative))
	binary.BigEndian.PutUint32(b[4:], uint32(position))
}

func offsetKey(b []byte) int64   { return decodeOffsetEntry(b).relative }
func positionKey(b []byte) int64 { return decodeOffsetEntry(b).position }

// add appends an entry; relative must be above the last one's.
func (x *offsetIndex) add(e offsetEntry) error {
	return x.append(encodeOffsetEntry, e.relative, e.position)
}

// lookup finds the last entry at or below the relative offset.
func (x *offsetIndex) lookup(relative int64) (e offsetEntry, found bool, err error) {
	var buf [offsetEntryBytes]byte
	n, err := x.search(offsetKey, relative, true, buf[:])
	if n < 0 || err != nil {
		return offsetEntry{}, false, err
	}
	return decodeOffsetEntry(buf[:]), true, nil
}

// entry reads one entry.
func (x *offsetIndex) entry(n int) (offsetEntry, error) {
	var buf [offsetEntryBytes]byte
	err := x.read(x.load(), n, buf[:])
	return decodeOffsetEntry(buf[:]), err
}

// truncateTo removes the entries of batches that end at relative or later.
func (x *offsetIndex) truncateTo(relative int64) error {
	var buf [offsetEntryBytes]byte
	n, err := x.search(offsetKey, relative-1, false, buf[:])
	if err != nil {
		return err
	}
	return x.truncate(n + 1)
}
