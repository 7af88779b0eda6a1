package compress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Snappy has two framings in Kafka: one raw block (librdkafka, Go clients), and the stream of the Java library
// (xerial snappy-java): a header, then blocks each behind its length.
//
//	xerial: 82 'S' 'N' 'A' 'P' 'P' 'Y' 00 | version, int32 | oldest compatible version, int32 | { length, int32 | block }…
//
// A header may come again where a length is expected, from streams put behind each other.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const (
	xerialHeaderBytes = 16
	xerialVersion     = 1
	// xerialBlockBytes is how much the Java library puts into a block.
	xerialBlockBytes = 32 << 10
	// snappyMaxRatio bounds what a block can yield: three bytes copy 64 at most.
	snappyMaxRatio = 22
)

var (
	errSnappySize    = errors.New("snappy: declared size cannot be")
	errXerialHeader  = errors.New("snappy: stream header of an unknown version")
	errXerialPartial = errors.New("snappy: stream ends inside a block")
)

type snappySource struct {
	rest   []byte
	xerial bool
}

func openSnappy(src []byte) source {
	return &snappySource{rest: src, xerial: len(src) >= xerialHeaderBytes && bytes.HasPrefix(src, xerialMagic)}
}

func (s *snappySource) fill(dst []byte) ([]byte, error) {
	if !s.xerial {
		dst, err := snappyBlock(dst, s.rest)
		s.rest = nil
		if err == nil {
			err = io.EOF
		}
		return dst, err
	}
	for bytes.HasPrefix(s.rest, xerialMagic) {
		if len(s.rest) < xerialHeaderBytes {
			return dst, errXerialPartial
		}
		if int32(binary.BigEndian.Uint32(s.rest[8:])) < xerialVersion {
			return dst, errXerialHeader
		}
		s.rest = s.rest[xerialHeaderBytes:]
	}
	if len(s.rest) == 0 {
		return dst, io.EOF
	}
	if len(s.rest) < 4 {
		return dst, errXerialPartial
	}
	size := binary.BigEndian.Uint32(s.rest)
	if uint64(size) > uint64(len(s.rest)-4) {
		return dst, errXerialPartial
	}
	block := s.rest[4 : 4+size]
	s.rest = s.rest[4+size:]
	return snappyBlock(dst, block)
}

func (s *snappySource) close() {}

// snappyBlock appends what a raw block holds.
func snappyBlock(dst, block []byte) ([]byte, error) {
	n, err := s2.DecodedLen(block)
	if err != nil {
		return dst, err
	}
	if n > snappyMaxRatio*len(block) {
		return dst, errSnappySize
	}
	grown := slices.Grow(dst, n)
	if _, err := s2.Decode(grown[len(dst):len(dst)+n], block); err != nil {
		return dst, err
	}
	return grown[:len(dst)+n], nil
}

// snappyCompress writes xerial's stream, which every client reads.
func snappyCompress(dst, src []byte) []byte {
	dst = append(dst, xerialMagic...)
	dst = binary.BigEndian.AppendUint32(dst, xerialVersion)
	dst = binary.BigEndian.AppendUint32(dst, xerialVersion)
	for len(src) > 0 {
		block := src[:min(len(src), xerialBlockBytes)]
		src = src[len(block):]
		at := len(dst)
		dst = slices.Grow(dst, 4+s2.MaxEncodedLen(len(block)))
		encoded := s2.EncodeSnappy(dst[at+4:cap(dst)], block)
		dst = dst[:at+4+len(encoded)]
		binary.BigEndian.PutUint32(dst[at:], uint32(len(encoded)))
	}
	return dst
}
