package segment

import (
	"encoding/binary"

	"sluice/protocol/record"
)

// timeIndex maps timestamps to offsets. An entry says: up to this offset, relative to the segment's base offset (4 bytes), no
// record has a later timestamp than this one (8 bytes, ms). The offset is the last one of the batch with that timestamp.
type timeIndex struct{ index }

const timeEntryBytes = 12

// TimestampOffset is a timestamp, in ms since 1970, and the last offset of the first batch that has it as its maximum.
type TimestampOffset struct {
	TimestampMs int64
	Offset      int64
}

type timeEntry struct {
	timestampMs int64
	relative    int64
}

func decodeTimeEntry(b []byte) timeEntry {
	return timeEntry{int64(binary.BigEndian.Uint64(b)), int64(int32(binary.BigEndian.Uint32(b[8:])))}
}

func encodeTimeEntry(b []byte, timestampMs, relative int64) {
	binary.BigEndian.PutUint64(b, uint64(timestampMs))
	binary.BigEndian.PutUint32(b[8:], uint32(relative))
}

func timeKey(b []byte) int64       { return decodeTimeEntry(b).timestampMs }
func timeOffsetKey(b []byte) int64 { return decodeTimeEntry(b).relative }

// add appends an entry; both of its fields must not be below the last one's.
func (x *timeIndex) add(e timeEntry) error {
	return x.append(encodeTimeEntry, e.timestampMs, e.relative)
}

// lookup finds the last entry at or below the timestamp.
func (x *timeIndex) lookup(timestampMs int64) (e timeEntry, found bool, err error) {
	var buf [timeEntryBytes]byte
	n, err := x.search(timeKey, timestampMs, true, buf[:])
	if n < 0 || err != nil {
		return timeEntry{}, false, err
	}
	return decodeTimeEntry(buf[:]), true, nil
}

// entry reads one entry.
func (x *timeIndex) entry(n int) (timeEntry, error) {
	var buf [timeEntryBytes]byte
	err := x.read(x.load(), n, buf[:])
	return decodeTimeEntry(buf[:]), err
}

// last is the last entry, with record.NoTimestamp if there is none.
func (x *timeIndex) last() (timeEntry, error) {
	n := x.entries()
	if n == 0 {
		return timeEntry{timestampMs: record.NoTimestamp}, nil
	}
	return x.entry(n - 1)
}

// truncateTo removes the entries of offsets at relative or later.
func (x *timeIndex) truncateTo(relative int64) error {
	var buf [timeEntryBytes]byte
	n, err := x.search(timeOffsetKey, relative-1, false, buf[:])
	if err != nil {
		return err
	}
	return x.truncate(n + 1)
}
