package compress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// LZ4 in message format 2 is one frame of the LZ4 frame format with independent blocks. The limits are those of Kafka's
// Java reader: linked blocks and dictionaries are refused, bytes after the end mark ignored, content size and content
// checksum skipped (the batch has its own CRC).
//
//	magic, 4 | FLG, 1 | BD, 1 | content size, 8 if FLG bit 3 | header checksum, 1 |
//	{ block size, 4: top bit = stored as it is | block | checksum, 4 if FLG bit 4 }… | end mark 0, 4 | checksum, 4 if FLG bit 2
//
// Numbers are little-endian.
const (
	lz4Magic = 0x184D2204

	lz4Version          = 1 << 6
	lz4VersionBits      = 3 << 6
	lz4Independent      = 1 << 5
	lz4BlockChecksums   = 1 << 4
	lz4HasContentSize   = 1 << 3
	lz4ContentChecksum  = 1 << 2
	lz4ReservedBits     = 1<<1 | 1<<0
	lz4StoredBlock      = 1 << 31
	lz4Block64KiB       = 4 // block size code in bits 4 to 6 of BD; each next code is four times larger, up to 7
	lz4Block4MiB        = 7
	lz4WrittenBlock     = 64 << 10
	lz4MaxRatio         = 255
	lz4DefaultKafkaFast = 9 // the default level: Kafka's producer then uses the fast compressor, not the thorough one
)

var (
	errLz4Header   = errors.New("lz4: frame header is cut short")
	errLz4Magic    = errors.New("lz4: not a frame")
	errLz4Flags    = errors.New("lz4: frame of a kind that Kafka does not use")
	errLz4Checksum = errors.New("lz4: checksum does not match")
	errLz4Partial  = errors.New("lz4: frame ends inside a block")
	errLz4Block    = errors.New("lz4: block is larger than the frame allows")
)

type lz4Source struct {
	rest      []byte
	flags     byte
	blockMax  int
	exhausted bool
}

func openLz4(src []byte) (source, error) {
	if len(src) < 7 {
		return nil, errLz4Header
	}
	if binary.LittleEndian.Uint32(src) != lz4Magic {
		return nil, errLz4Magic
	}
	flags, block := src[4], src[5]
	code := block >> 4 & 7
	if flags&lz4VersionBits != lz4Version || flags&lz4Independent == 0 || flags&lz4ReservedBits != 0 ||
		block&0x8f != 0 || code < lz4Block64KiB || code > lz4Block4MiB {
		return nil, errLz4Flags
	}
	end := 6
	if flags&lz4HasContentSize != 0 {
		end += 8
	}
	if len(src) <= end {
		return nil, errLz4Header
	}
	if src[end] != byte(xxh32(src[4:end])>>8) {
		return nil, errLz4Checksum
	}
	return &lz4Source{rest: src[end+1:], flags: flags, blockMax: lz4WrittenBlock << (2 * (code - lz4Block64KiB))}, nil
}

func (l *lz4Source) fill(dst []byte) ([]byte, error) {
	if l.exhausted {
		return dst, io.EOF
	}
	if len(l.rest) < 4 {
		return dst, errLz4Partial
	}
	word := binary.LittleEndian.Uint32(l.rest)
	l.rest = l.rest[4:]
	size, stored := int(word&^lz4StoredBlock), word&lz4StoredBlock != 0
	if size == 0 {
		l.exhausted = true
		if l.flags&lz4ContentChecksum != 0 && len(l.rest) < 4 {
			return dst, errLz4Partial
		}
		return dst, io.EOF
	}
	if size > l.blockMax {
		return dst, errLz4Block
	}
	if size > len(l.rest) {
		return dst, errLz4Partial
	}
	block := l.rest[:size]
	l.rest = l.rest[size:]
	if l.flags&lz4BlockChecksums != 0 {
		if len(l.rest) < 4 {
			return dst, errLz4Partial
		}
		if binary.LittleEndian.Uint32(l.rest) != xxh32(block) {
			return dst, errLz4Checksum
		}
		l.rest = l.rest[4:]
	}
	if stored {
		return append(dst, block...), nil
	}
	room := min(l.blockMax, lz4MaxRatio*size)
	grown := slices.Grow(dst, room)
	n, err := lz4.UncompressBlock(block, grown[len(dst):len(dst)+room])
	if err != nil {
		return dst, fmt.Errorf("lz4: %w", err)
	}
	return grown[:len(dst)+n], nil
}

func (l *lz4Source) close() {}

var (
	lz4Fast sync.Pool // of *lz4.Compressor
	lz4High sync.Pool // of *lz4.CompressorHC
)

func lz4Compress(dst []byte, level int, src []byte) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint32(dst, lz4Magic)
	descriptor := []byte{lz4Version | lz4Independent, lz4Block64KiB << 4}
	dst = append(dst, descriptor...)
	dst = append(dst, byte(xxh32(descriptor)>>8))
	block, done := lz4Compressor(level)
	defer done()
	for len(src) > 0 {
		in := src[:min(len(src), lz4WrittenBlock)]
		src = src[len(in):]
		at := len(dst)
		dst = slices.Grow(dst, 4+lz4.CompressBlockBound(len(in)))
		n, err := block(in, dst[at+4:at+4+lz4.CompressBlockBound(len(in))])
		if err != nil {
			return dst[:at], fmt.Errorf("lz4: %w", err)
		}
		word := uint32(n)
		if n == 0 || n >= len(in) {
			n = copy(dst[at+4:at+4+len(in)], in)
			word = uint32(n) | lz4StoredBlock
		}
		dst = dst[:at+4+n]
		binary.LittleEndian.PutUint32(dst[at:], word)
	}
	return binary.LittleEndian.AppendUint32(dst, 0), nil
}

// lz4Compressor returns a block compressor for one of Kafka's levels, and what gives it back.
func lz4Compressor(level int) (block func(src, dst []byte) (int, error), done func()) {
	if level <= 0 || level == lz4DefaultKafkaFast {
		c, _ := lz4Fast.Get().(*lz4.Compressor)
		if c == nil {
			c = new(lz4.Compressor)
		}
		return c.CompressBlock, func() { lz4Fast.Put(c) }
	}
	c, _ := lz4High.Get().(*lz4.CompressorHC)
	if c == nil {
		c = new(lz4.CompressorHC)
	}
	// The library's levels are search depths, 1<<9 to 1<<17.
	c.Level = lz4.CompressionLevel(1 << (8 + min(level, 9)))
	return c.CompressBlock, func() { lz4High.Put(c) }
}
