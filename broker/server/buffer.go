package server

import (
	"math/bits"
	"sync"
)

// Buffer is a byte slice from a pool of size classes.
type Buffer struct {
	B []byte
}

const (
	smallestClass = 9  // 512 bytes
	largestClass  = 21 // 2 MiB; larger buffers are left to the garbage collector
)

var pools [largestClass - smallestClass + 1]sync.Pool

// NewBuffer returns an empty buffer with room for at least size bytes. It may be grown with append.
func NewBuffer(size int) *Buffer {
	class := max(bits.Len(uint(max(size, 1)-1)), smallestClass)
	if class > largestClass {
		return &Buffer{B: make([]byte, 0, size)}
	}
	if b, ok := pools[class-smallestClass].Get().(*Buffer); ok {
		return b
	}
	return &Buffer{B: make([]byte, 0, 1<<class)}
}

// Free gives the buffer to whoever asks next. Nobody may use it, or a slice of it, afterwards.
func (b *Buffer) Free() {
	class := bits.Len(uint(cap(b.B))) - 1 // rounded down: append may have grown it to any size
	if class < smallestClass || class > largestClass {
		return
	}
	b.B = b.B[: 0 : 1<<class]
	pools[class-smallestClass].Put(b)
}
