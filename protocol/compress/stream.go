package compress

import (
	"io"
	"sync"
)

// WindowBytes is how many bytes Stream.Peek can show at once.
const WindowBytes = 64 << 10

// Stream shows what a compressed record batch holds piece by piece, in little memory however much there is.
type Stream struct {
	codec source
	name  Codec
	buf   []byte // decompressed and not discarded: buf[at:]
	at    int
	total int // decompressed so far
	max   int
	err   error // what ended the decompression; io.EOF if it was complete
	keeps bool  // buffers are handed out for good, and not reused
}

// streams keeps Streams for their buffers, which have WindowBytes of capacity and room for a decoder to write into.
var streams = sync.Pool{New: func() any { return &Stream{buf: make([]byte, 0, 2*WindowBytes)} }}

// maxPooledBytes is the largest buffer that goes back to the pool.
const maxPooledBytes = 2 << 20

// OpenStream begins to decompress src. The stream fails with ErrTooLarge after maxBytes bytes. Close must be called.
func OpenStream(c Codec, src []byte, maxBytes int) (*Stream, error) {
	from, err := openSource(c, src)
	if err != nil {
		return nil, decodeError(c, err)
	}
	s := streams.Get().(*Stream)
	*s = Stream{codec: from, name: c, buf: s.buf[:0], max: maxBytes}
	return s, nil
}

// OpenKeptStream is like OpenStream, but what Peek shows may be kept: its memory is not used again. Peek may show more
// than WindowBytes at once. Memory that is not kept is free after the next Peek or Discard, so that a large batch can be
// walked over in little of it.
func OpenKeptStream(c Codec, src []byte, maxBytes int) (*Stream, error) {
	from, err := openSource(c, src)
	if err != nil {
		return nil, decodeError(c, err)
	}
	chunk := min(4*len(src), WindowBytes) + minReadBytes
	return &Stream{codec: from, name: c, buf: make([]byte, 0, chunk), max: maxBytes, keeps: true}, nil
}

// Peek shows the next n bytes, n not above WindowBytes, or all that are left if they are fewer. They stay valid until
// the next call of any method, unless the stream is a kept one. The error is ErrTooLarge or a *Corrupt; once reported it stays.
func (s *Stream) Peek(n int) ([]byte, error) {
	for len(s.buf)-s.at < n && s.err == nil {
		s.fill()
	}
	if s.err != nil && s.err != io.EOF {
		return nil, s.err
	}
	return s.buf[s.at:min(len(s.buf), s.at+n)], nil
}

// Buffered shows all that is decompressed and not discarded.
func (s *Stream) Buffered() []byte { return s.buf[s.at:] }

// Discard skips n bytes. It reports false if there are not as many.
func (s *Stream) Discard(n int) (bool, error) {
	for {
		skip := min(n, len(s.buf)-s.at)
		s.at += skip
		if n -= skip; n == 0 {
			return true, nil
		}
		if s.err == io.EOF {
			return false, nil
		}
		if s.err != nil {
			return false, s.err
		}
		s.fill()
	}
}

// fill decompresses some more behind what is there.
func (s *Stream) fill() {
	if s.keeps {
		s.buf = s.buf[s.at:]
	} else if s.at > 0 {
		s.buf = s.buf[:copy(s.buf, s.buf[s.at:])]
	}
	s.at = 0
	if cap(s.buf)-len(s.buf) < minReadBytes {
		s.buf = append(make([]byte, 0, max(WindowBytes, 2*len(s.buf))), s.buf...)
	}
	before := len(s.buf)
	var err error
	s.buf, err = s.codec.fill(s.buf)
	s.total += len(s.buf) - before
	switch {
	case s.total > s.max:
		s.err = ErrTooLarge
	case err == io.EOF:
		s.err = err
	case err != nil:
		s.err = decodeError(s.name, err)
	}
}

// Close gives back what the stream borrowed. Neither it nor what Peek returned may be used again.
func (s *Stream) Close() {
	s.codec.close()
	s.codec = nil
	if cap(s.buf) <= maxPooledBytes && !s.keeps {
		streams.Put(s)
	}
}
