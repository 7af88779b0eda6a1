// Package compress holds the four compression codecs of record batches, each bounded in what it may produce from hostile bytes.
//
// It is the one protocol package that keeps pools: encoders and decoders are large and are reused between calls.
package compress

import (
	"errors"
	"fmt"
)

// Codec is the compression of a record batch, as bits 0 to 2 of the batch attributes number it.
type Codec int8

// The codecs of message format 2.
const (
	None Codec = iota
	Gzip
	Snappy
	Lz4
	Zstd
)

// Valid says whether c is a codec that this package knows; attribute bits can carry 5, 6 and 7, which are not.
func (c Codec) Valid() bool { return c >= None && c <= Zstd }

// String gives the name used in configs and by Kafka's tools.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case Lz4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("unknown(%d)", int8(c))
}

var (
	// ErrTooLarge means that the output would pass the caller's cap.
	ErrTooLarge = errors.New("decompressed data exceeds the cap")
	// ErrUnknownCodec means that the codec number has no codec.
	ErrUnknownCodec = errors.New("unknown compression codec")
)

// Corrupt means that the input is not what the codec writes.
type Corrupt struct {
	Codec Codec
	Err   error
}

func (c *Corrupt) Error() string { return fmt.Sprintf("%s: corrupt data: %v", c.Codec, c.Err) }
func (c *Corrupt) Unwrap() error { return c.Err }

// Decompress appends what src holds to dst and returns it. It fails with ErrTooLarge when that is more than maxBytes
// bytes, and with *Corrupt when src is not valid; memory in use never passes the cap by more than a constant, nor what
// src can truly yield: sizes that src merely declares are not trusted. dst may be nil.
func Decompress(dst []byte, c Codec, src []byte, maxBytes int) ([]byte, error) {
	panic("not written yet")
}

// Compress appends src in compressed form to dst and returns it. level has Kafka's meaning and range for the codec
// (gzip 1 to 9 or -1, lz4 1 to 17, zstd -131072 to 22); DefaultLevel stands for Kafka's default. Every Kafka client can read the result.
func Compress(dst []byte, c Codec, level int, src []byte) ([]byte, error) {
	panic("not written yet")
}

// DefaultLevel selects the codec's default compression level, which is gzip 6, lz4 9 and zstd 3.
const DefaultLevel = 0
