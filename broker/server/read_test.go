package server

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Frames of mixed sizes arrive whole however they are cut up on their way: the reader changes its buffer as they come.
func TestServer_FramesInPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	_, address := startTCP(t, echo, Limits{ResponseBytesPerConnection: 64 << 20})
	c := dial(t, address)
	var bodies []string
	var stream []byte
	for i := range 400 {
		most := []int{10, 200, 5_000, 20_000, 20_000, 100_000}[i/20%6] // runs of alike frames, as clients send them
		body := string(bytes.Repeat([]byte{byte(i)}, random.IntN(most)))
		bodies = append(bodies, body)
		stream = append(stream, requestBytes(int32(i), body)...)
	}
	go func() {
		for len(stream) > 0 {
			n := min(len(stream), 1+random.IntN([]int{10, 3_000, 200_000}[random.IntN(3)]))
			if _, err := c.Write(stream[:n]); err != nil {
				return
			}
			stream = stream[n:]
		}
	}()
	for i, body := range bodies {
		c.expect(int32(i), body)
	}
}

// The buffer is large while more waits in the socket, small while the rest of a request is awaited, and gone when there is nothing.
func TestReader_Buffer(t *testing.T) {
	var r reader
	var unread []byte // what r must have
	arrive := func(n int) {
		t.Helper()
		for room := r.room(); n > 0 && len(room) > 0; n-- {
			room[0] = byte(len(unread) + n)
			unread = append(unread, room[0])
			room = room[1:]
			r.to++
		}
	}
	take := func(n int) {
		r.from += n
		unread = unread[n:]
	}
	check := func(what string, size int) {
		t.Helper()
		if len(r.buffer) != size || !bytes.Equal(r.unread(), unread) {
			t.Fatalf("%s: buffer of %d bytes, want %d; %d unread, want %d", what, len(r.buffer), size, len(r.unread()), len(unread))
		}
	}
	check("at first", 0)
	arrive(100)
	check("the first bytes", readBufferBytes)
	take(90)
	r.settle()
	check("waiting for the rest", readBufferBytes)
	take(10)
	r.settle()
	check("waiting for anything", 0)

	r.usual, r.more = 10_000, true
	arrive(readBufferBytes - 5)
	check("more of medium frames", burstBytes)
	take(readBufferBytes - 10)
	arrive(1000)
	take(1)
	r.settle()
	check("waiting for a little, after much", readBufferBytes)
	take(len(unread))

	r.usual, r.more = 100_000, true
	arrive(readBufferBytes)
	check("more of large frames", readBufferBytes)
	take(readBufferBytes - 7)
	arrive(readBufferBytes)
	check("moved to the front", readBufferBytes)
	if len(unread) != readBufferBytes {
		t.Errorf("%d bytes fit", len(unread))
	}
}
