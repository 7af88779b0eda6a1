package compress

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"sluice/internal/assert"
)

const (
	// zstdMaxWindow is the largest window that a frame may ask for: 128 MiB, as the C and Java libraries have it by default.
	zstdMaxWindow = 128 << 20
	// zstdStreamWindow is the largest window that is decoded piece by piece, for that takes a buffer of the window's
	// size. Only the levels above 19 make frames with larger ones; such a frame is decoded as a whole, into memory that
	// grows with what it really holds, up to zstdWholeMax, and one at a time.
	zstdStreamWindow = 8 << 20
	zstdWholeMax     = zstdMaxWindow // the library does not allow less than the window
	// zstdWholeBytes is how much is decoded as a whole whatever the window: it is cheaper than piece by piece.
	zstdWholeBytes = 4 << 20
	// zstdBlockBytes is the most that a block can hold.
	zstdBlockBytes = 128 << 10
)

var (
	errZstdPartial = errors.New("zstd: frame ends early")
	errZstdContent = errors.New("zstd: frame declares more than its blocks can hold")
)

// zstdExtent walks over the headers of the frames and blocks in src, without decoding, for an upper bound of the output
// and for the largest window in use.
func zstdExtent(src []byte) (bound int64, window uint64, err error) {
	for len(src) > 0 {
		var h zstd.Header
		if err := h.Decode(src); err != nil {
			return 0, 0, err
		}
		if h.Skippable {
			size := uint64(h.HeaderSize) + uint64(h.SkippableSize)
			if size > uint64(len(src)) {
				return 0, 0, errZstdPartial
			}
			src = src[size:]
			continue
		}
		w := h.WindowSize
		if h.SingleSegment {
			w = h.FrameContentSize
		}
		window = max(window, w)
		src = src[h.HeaderSize:]
		frame := int64(0)
		for last := false; !last; {
			if len(src) < 3 {
				return 0, 0, errZstdPartial
			}
			header := uint32(src[0]) | uint32(src[1])<<8 | uint32(src[2])<<16
			last = header&1 != 0
			stored := int(header >> 3)
			yields := stored
			switch header >> 1 & 3 {
			case 1: // one byte, repeated
				stored = 1
			case 2: // compressed
				yields = zstdBlockBytes
			}
			if stored > len(src)-3 {
				return 0, 0, errZstdPartial
			}
			src = src[3+stored:]
			frame += int64(min(yields, zstdBlockBytes))
		}
		if h.HasFCS && h.FrameContentSize > uint64(frame) {
			return 0, 0, errZstdContent
		}
		bound += frame
		if h.HasCheckSum {
			if len(src) < 4 {
				return 0, 0, errZstdPartial
			}
			src = src[4:]
		}
	}
	return bound, window, nil
}

// zstdWhole decodes what is decoded as a whole. It may be used by several goroutines at once.
var zstdWhole = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(zstdWholeMax), zstd.WithDecoderMaxWindow(zstdMaxWindow), zstd.WithDecoderConcurrency(0))
	assert.That(err == nil, "zstd decoder options: %v", err)
	return d
})

func openZstd(src []byte) (source, error) {
	bound, window, err := zstdExtent(src)
	if err != nil {
		return nil, err
	}
	if window > zstdMaxWindow {
		return nil, zstd.ErrWindowSizeExceeded
	}
	if bound <= zstdWholeBytes {
		return &zstdWholeSource{src: src, bound: bound}, nil
	}
	if window > zstdStreamWindow {
		return &zstdWholeSource{src: src, bound: bound, large: true}, nil
	}
	z, _ := zstdSources.Get().(*zstdSource)
	if z == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdStreamWindow))
		if err != nil {
			return nil, err
		}
		z = &zstdSource{d: d}
	}
	z.in.Reset(src)
	if err := z.d.Reset(&z.in); err != nil {
		return nil, err
	}
	return z, nil
}

// zstdWholeSource decodes everything at its first use.
type zstdWholeSource struct {
	src   []byte
	bound int64 // of the output
	large bool  // the window is above zstdStreamWindow
}

// zstdLarge is held while a frame with a large window is decoded: a growing output is in memory twice.
var zstdLarge sync.Mutex

func (z *zstdWholeSource) fill(dst []byte) ([]byte, error) {
	if z.large {
		zstdLarge.Lock()
		defer zstdLarge.Unlock()
	}
	dst = slices.Grow(dst, int(min(z.bound, 4*int64(len(z.src)))))
	out, err := zstdWhole().DecodeAll(z.src, dst)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return dst, ErrTooLarge
	case err != nil:
		return dst, err
	}
	return out, io.EOF
}

func (z *zstdWholeSource) close() {}

// zstdSource decodes piece by piece.
type zstdSource struct {
	in bytes.Reader
	d  *zstd.Decoder
}

var zstdSources sync.Pool // of *zstdSource

func (z *zstdSource) fill(dst []byte) ([]byte, error) {
	n, err := z.d.Read(dst[len(dst):cap(dst)])
	return dst[:len(dst)+n], err
}

func (z *zstdSource) close() {
	z.in.Reset(nil)
	if z.d.Reset(nil) == nil {
		zstdSources.Put(z)
	}
}

// zstdEncoders has one encoder for each of the library's levels.
var zstdEncoders [zstd.SpeedBestCompression + 1]struct {
	once sync.Once
	e    *zstd.Encoder
	err  error
}

func zstdCompress(dst []byte, level int, src []byte) ([]byte, error) {
	speed := zstd.SpeedDefault
	if level != DefaultLevel {
		speed = zstd.EncoderLevelFromZstd(level)
	}
	slot := &zstdEncoders[speed]
	slot.once.Do(func() {
		slot.e, slot.err = zstd.NewWriter(nil,
			zstd.WithEncoderLevel(speed),
			zstd.WithWindowSize(zstdStreamWindow), // what every decoder is asked to support
			zstd.WithEncoderCRC(false),            // the batch has one
			zstd.WithZeroFrames(true))
	})
	if slot.err != nil {
		return dst, slot.err
	}
	return slot.e.EncodeAll(src, dst), nil
}
