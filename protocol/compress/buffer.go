package compress

import "sync"

// Buffer is memory borrowed from a pool.
type Buffer struct{ B []byte }

var buffers = sync.Pool{New: func() any { return new(Buffer) }}

// BorrowBuffer returns an empty buffer, to be used by appending to B.
func BorrowBuffer() *Buffer { return buffers.Get().(*Buffer) }

// Release gives the buffer back. Neither it nor B may be used again. A buffer that has grown very large is left to the
// garbage collector.
func (b *Buffer) Release() {
	if cap(b.B) > maxPooledBytes {
		return
	}
	b.B = b.B[:0]
	buffers.Put(b)
}
