package dump

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// entries calls one for each entry of size bytes. An index may end with zeros that were allocated in advance: they are no entries.
func (p *printer) entries(content []byte, size int, one func(entry []byte, position int64)) {
	used := len(bytes.TrimRight(content, "\x00"))
	used = (used + size - 1) / size * size // zeros may also be the end of an entry
	for at := 0; at+size <= min(used, len(content)); at += size {
		one(content[at:at+size], int64(at))
	}
	switch torn := len(content) % size; {
	case torn > 0:
		p.damageAt(int64(len(content)-torn), "%d bytes are left, an entry has %d", torn, size)
	case used < len(content):
		p.printf("zeros position=%d size=%d", used, len(content)-used)
	}
}

// offsetEntry is one entry of an offset index; at is its own place in the file.
type offsetEntry struct{ offset, position, at int64 }

func (p *printer) offsetEntries(one func(offsetEntry)) error {
	content, err := p.content()
	if err != nil {
		return err
	}
	base, _ := p.baseOffset()
	lastOffset, lastPosition := int64(-1), int64(-1)
	p.entries(content, 8, func(e []byte, at int64) {
		relative, position := int64(int32(binary.BigEndian.Uint32(e))), int64(int32(binary.BigEndian.Uint32(e[4:])))
		one(offsetEntry{base + relative, position, at})
		if relative < 0 || position < 0 || relative <= lastOffset || position <= lastPosition {
			p.damageAt(at, "offsets and positions must grow, and be 0 or more")
		}
		lastOffset, lastPosition = relative, position
	})
	return nil
}

// offsetIndex prints where batches begin in the log, by offset.
func (p *printer) offsetIndex() error {
	return p.offsetEntries(func(e offsetEntry) { p.printf("entry offset=%d position=%d", e.offset, e.position) })
}

// timeEntry is one entry of a time index; at is its own place in the file.
type timeEntry struct{ ms, offset, at int64 }

func (p *printer) timeEntries(one func(timeEntry)) error {
	content, err := p.content()
	if err != nil {
		return err
	}
	base, _ := p.baseOffset()
	lastTimestamp, lastOffset := int64(-1), int64(-1)
	p.entries(content, 12, func(e []byte, at int64) {
		ms, relative := int64(binary.BigEndian.Uint64(e)), int64(int32(binary.BigEndian.Uint32(e[8:])))
		one(timeEntry{ms, base + relative, at})
		if relative < 0 || ms < lastTimestamp || relative < lastOffset {
			p.damageAt(at, "timestamps and offsets must not fall, and offsets be 0 or more")
		}
		lastTimestamp, lastOffset = ms, relative
	})
	return nil
}

// timeIndex prints from which offset on records are later than a time.
func (p *printer) timeIndex() error {
	return p.timeEntries(func(e timeEntry) { p.printf("entry timestamp=%s offset=%d", timestamp(e.ms), e.offset) })
}

// abortedEntry is one entry of a transaction index; at is its own place in the file.
type abortedEntry struct{ producerID, first, last, lastStableOffset, at int64 }

func (p *printer) abortedEntries(one func(abortedEntry)) error {
	content, err := p.content()
	if err != nil {
		return err
	}
	const size = 34
	for at := 0; at < len(content); at += size {
		e := content[at:]
		if len(e) < size {
			p.damageAt(int64(at), "%d bytes are left, an entry has %d", len(e), size)
			return nil
		}
		if version := binary.BigEndian.Uint16(e); version != 0 {
			p.damageAt(int64(at), "entry version %d, expected 0", version)
			return nil
		}
		i64 := func(at int) int64 { return int64(binary.BigEndian.Uint64(e[at:])) }
		entry := abortedEntry{i64(2), i64(10), i64(18), i64(26), int64(at)}
		one(entry)
		if entry.first > entry.last {
			p.damageAt(int64(at), "the transaction ends before it begins")
		}
	}
	return nil
}

// txnIndex prints the transactions that were aborted in the segment.
func (p *printer) txnIndex() error {
	return p.abortedEntries(func(e abortedEntry) {
		p.printf("aborted producerId=%d firstOffset=%d lastOffset=%d lastStableOffset=%d", e.producerID, e.first, e.last, e.lastStableOffset)
	})
}

// producerEntry is one producer in a snapshot; at is its own place in the file.
type producerEntry struct {
	id                        int64
	epoch                     int16
	lastSequence              int32
	lastOffset                int64
	offsetDelta               int32
	ms                        int64
	coordinatorEpoch          int32
	currentTxnFirstOffset, at int64
}

func (p *printer) producerEntries(header func(version uint16, checksum uint32, count int64), one func(producerEntry)) error {
	content, err := p.content()
	if err != nil {
		return err
	}
	const headerBytes, covered, size = 10, 6, 46
	if len(content) < headerBytes {
		p.damageAt(0, "%d bytes, the header alone has %d", len(content), headerBytes)
		return nil
	}
	version, checksum := binary.BigEndian.Uint16(content), binary.BigEndian.Uint32(content[2:])
	count := int64(int32(binary.BigEndian.Uint32(content[covered:])))
	header(version, checksum, count)
	if version != 1 {
		p.damageAt(0, "version %d, expected 1", version)
		return nil
	}
	if checksum != crc32.Checksum(content[covered:], crc32.MakeTable(crc32.Castagnoli)) {
		p.damageAt(2, "the checksum is not that of the bytes that follow")
	}
	entries := content[headerBytes:]
	if int64(len(entries)) != count*size {
		p.damageAt(covered, "%d producers take %d bytes, %d follow", count, count*size, len(entries))
	}
	for at := int64(headerBytes); len(entries) >= size; entries, at = entries[size:], at+size {
		i64 := func(at int) int64 { return int64(binary.BigEndian.Uint64(entries[at:])) }
		i32 := func(at int) int32 { return int32(binary.BigEndian.Uint32(entries[at:])) }
		one(producerEntry{i64(0), int16(binary.BigEndian.Uint16(entries[8:])), i32(10), i64(14), i32(22), i64(26), i32(34), i64(38), at})
	}
	return nil
}

// producers prints a snapshot of the producers' state.
func (p *printer) producers() error {
	return p.producerEntries(func(version uint16, checksum uint32, count int64) {
		p.printf("snapshot version=%d crc=0x%08x producers=%d", version, checksum, count)
	}, func(e producerEntry) {
		p.printf("producer producerId=%d producerEpoch=%d lastSequence=%d lastOffset=%d offsetDelta=%d timestamp=%s coordinatorEpoch=%d currentTxnFirstOffset=%d",
			e.id, e.epoch, e.lastSequence, e.lastOffset, e.offsetDelta, timestamp(e.ms), e.coordinatorEpoch, e.currentTxnFirstOffset)
	})
}
