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

// offsetIndex prints where batches begin in the log, by offset.
func (p *printer) offsetIndex() error {
	content, err := p.content()
	if err != nil {
		return err
	}
	base, _ := p.baseOffset()
	lastOffset, lastPosition := int64(-1), int64(-1)
	p.entries(content, 8, func(e []byte, position int64) {
		relative, at := int64(int32(binary.BigEndian.Uint32(e))), int64(int32(binary.BigEndian.Uint32(e[4:])))
		p.printf("entry offset=%d position=%d", base+relative, at)
		if relative < 0 || at < 0 || relative <= lastOffset || at <= lastPosition {
			p.damageAt(position, "offsets and positions must grow, and be 0 or more")
		}
		lastOffset, lastPosition = relative, at
	})
	return nil
}

// timeIndex prints from which offset on records are later than a time.
func (p *printer) timeIndex() error {
	content, err := p.content()
	if err != nil {
		return err
	}
	base, _ := p.baseOffset()
	lastTimestamp, lastOffset := int64(-1), int64(-1)
	p.entries(content, 12, func(e []byte, position int64) {
		ms, relative := int64(binary.BigEndian.Uint64(e)), int64(int32(binary.BigEndian.Uint32(e[8:])))
		p.printf("entry timestamp=%s offset=%d", timestamp(ms), base+relative)
		if relative < 0 || ms < lastTimestamp || relative < lastOffset {
			p.damageAt(position, "timestamps and offsets must not fall, and offsets be 0 or more")
		}
		lastTimestamp, lastOffset = ms, relative
	})
	return nil
}

// txnIndex prints the transactions that were aborted in the segment.
func (p *printer) txnIndex() error {
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
		version, first, last := binary.BigEndian.Uint16(e), int64(binary.BigEndian.Uint64(e[10:])), int64(binary.BigEndian.Uint64(e[18:]))
		if version != 0 {
			p.damageAt(int64(at), "entry version %d, expected 0", version)
			return nil
		}
		p.printf("aborted producerId=%d firstOffset=%d lastOffset=%d lastStableOffset=%d",
			int64(binary.BigEndian.Uint64(e[2:])), first, last, int64(binary.BigEndian.Uint64(e[26:])))
		if first > last {
			p.damageAt(int64(at), "the transaction ends before it begins")
		}
	}
	return nil
}

// producers prints a snapshot of the producers' state.
func (p *printer) producers() error {
	content, err := p.content()
	if err != nil {
		return err
	}
	const header, covered, size = 10, 6, 46
	if len(content) < header {
		p.damageAt(0, "%d bytes, the header alone has %d", len(content), header)
		return nil
	}
	version, checksum := binary.BigEndian.Uint16(content), binary.BigEndian.Uint32(content[2:])
	count := int64(int32(binary.BigEndian.Uint32(content[covered:])))
	p.printf("snapshot version=%d crc=0x%08x producers=%d", version, checksum, count)
	if version != 1 {
		p.damageAt(0, "version %d, expected 1", version)
		return nil
	}
	if checksum != crc32.Checksum(content[covered:], crc32.MakeTable(crc32.Castagnoli)) {
		p.damageAt(2, "the checksum is not that of the bytes that follow")
	}
	entries := content[header:]
	if int64(len(entries)) != count*size {
		p.damageAt(covered, "%d producers take %d bytes, %d follow", count, count*size, len(entries))
	}
	for ; len(entries) >= size; entries = entries[size:] {
		i64 := func(at int) int64 { return int64(binary.BigEndian.Uint64(entries[at:])) }
		i32 := func(at int) int32 { return int32(binary.BigEndian.Uint32(entries[at:])) }
		p.printf("producer producerId=%d producerEpoch=%d lastSequence=%d lastOffset=%d offsetDelta=%d timestamp=%s coordinatorEpoch=%d currentTxnFirstOffset=%d",
			i64(0), int16(binary.BigEndian.Uint16(entries[8:])), i32(10), i64(14), i32(22), timestamp(i64(26)), i32(34), i64(38))
	}
	return nil
}
