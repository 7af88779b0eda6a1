// Package compress holds the four compression codecs of record batches, each bounded in what it may produce from hostile bytes.
//
// It is the one protocol package that keeps pools: encoders and decoders are large and are reused between calls.
package compress

import (
	"errors"
	"fmt"
	"io"
	"slices"
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
// bytes, and with *Corrupt when src is not valid; dst is then returned as it was. Sizes that src merely declares are not
// trusted: memory grows with what src really yields, and passes the cap by little (with zstd windows above 8 MiB by at
// most 128 MiB). dst may be nil.
func Decompress(dst []byte, c Codec, src []byte, maxBytes int) ([]byte, error) {
	if c == None {
		if len(src) > maxBytes {
			return dst, ErrTooLarge
		}
		return append(dst, src...), nil
	}
	out, err := drain(dst, c, src, maxBytes)
	if err != nil {
		return dst, decodeError(c, err)
	}
	return out, nil
}

// drain decompresses all of src through the codec's source.
func drain(dst []byte, c Codec, src []byte, maxBytes int) ([]byte, error) {
	from, err := openSource(c, src)
	if err != nil {
		return dst, err
	}
	defer from.close()
	start := len(dst)
	for {
		if cap(dst)-len(dst) < minReadBytes {
			dst = slices.Grow(dst, max(minReadBytes, len(dst)-start))
		}
		if dst, err = from.fill(dst); err == io.EOF {
			err = nil
			if len(dst)-start > maxBytes {
				err = ErrTooLarge
			}
			return dst, err
		}
		if err == nil && len(dst)-start > maxBytes {
			err = ErrTooLarge
		}
		if err != nil {
			return dst, err
		}
	}
}

// decodeError wraps what a decoder reports.
func decodeError(c Codec, err error) error {
	if err == ErrTooLarge || err == ErrUnknownCodec {
		return err
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return &Corrupt{Codec: c, Err: err}
}

// minReadBytes is the room offered to a decoder that produces as much as there is room for.
const minReadBytes = 4 << 10

// source yields decompressed bytes piece by piece.
type source interface {
	// fill appends the next bytes to dst: a decoder of blocks grows dst as needed, others use the room that is there, of
	// which the caller provides at least minReadBytes. It may append nothing. io.EOF, alone or with the last bytes, ends it.
	fill(dst []byte) ([]byte, error)
	// close gives back what was borrowed; the source is not used again.
	close()
}

func openSource(c Codec, src []byte) (source, error) {
	switch c {
	case Gzip:
		return openGzip(src)
	case Snappy:
		return openSnappy(src), nil
	case Lz4:
		return openLz4(src)
	case Zstd:
		return openZstd(src)
	}
	return nil, ErrUnknownCodec
}

// Compress appends src in compressed form to dst and returns it. level has Kafka's meaning and range for the codec
// (gzip 1 to 9 or -1, lz4 1 to 17, zstd -131072 to 22); DefaultLevel stands for Kafka's default. Every Kafka client can
// read the result.
func Compress(dst []byte, c Codec, level int, src []byte) ([]byte, error) {
	switch c {
	case None:
		return append(dst, src...), nil
	case Gzip:
		return gzipCompress(dst, level, src)
	case Snappy:
		return snappyCompress(dst, src), nil
	case Lz4:
		return lz4Compress(dst, level, src)
	case Zstd:
		return zstdCompress(dst, level, src)
	}
	return dst, ErrUnknownCodec
}

// DefaultLevel selects the codec's default compression level, which is gzip 6, lz4 9 and zstd 3.
const DefaultLevel = 0
