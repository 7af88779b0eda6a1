package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"sluice/protocol/frame"
)

// firstStep is how much of a large frame must have arrived before more than the read buffer is spent on it, and growth by how much the
// memory may run ahead of what has arrived; but a frame may have room from the start for as much as the frame before it filled, up to
// trustedBytes. A claimed length costs nothing.
const (
	firstStep    = readBufferBytes - frame.LengthBytes
	growth       = 8
	trustedBytes = 1 << 20
)

// burstBytes is read at once where that much may be waiting.
const burstBytes = 64 << 10

// armedFor is the part of a timeout by which a deadline may come late, so that it is not set anew for each read or write.
const armedFor = 16

var (
	errIdle         = errors.New("idle")
	errDraining     = errors.New("the broker stops")
	errDisconnected = errors.New("the client is gone")
	errNoMemory     = errors.New("too many requests in memory (queued.max.request.bytes)")

	longAgo = time.Unix(1, 0)
)

// reader is the part of a Conn that only its reader goroutine touches.
type reader struct {
	held     *Buffer // under buffer
	buffer   []byte  // nil while there is nothing unread and the socket is empty
	from, to int     // unread part of buffer
	usual    int     // bytes of the frame before or, if it is more, half of what this was before
	more     bool    // the last read did not find the end of what the socket has
	socket   directReader
	activeAt time.Time // when a byte was last read
	armedAt  time.Time // the activeAt for which the deadline was last set
	clientID *string   // of the request before
}

func (r *reader) init(socket net.Conn) {
	r.activeAt = time.Now()
	r.socket.init(socket, r)
}

// room is where to read to, behind what is unread, which is less than readBufferBytes. While the socket has more, and frames are not so
// large that they are better read to where they belong, it is for several requests: they are read, and so answered, in one go.
func (r *reader) room() []byte {
	size := readBufferBytes
	if r.more && r.usual <= burstBytes/2 {
		size = burstBytes
	}
	switch {
	case len(r.buffer) < size:
		r.resize(size)
	case r.from == r.to || len(r.buffer)-r.to < len(r.buffer)/2:
		r.to = copy(r.buffer, r.unread())
		r.from = 0
	}
	return r.buffer[r.to:]
}

// settle gives back what is not needed to wait for more.
func (r *reader) settle() {
	r.more = false
	switch {
	case r.from == r.to:
		r.resize(0)
	case len(r.buffer) > readBufferBytes:
		r.resize(readBufferBytes)
	}
}

// resize moves what is unread to a buffer of size bytes, to none if size is 0.
func (r *reader) resize(size int) {
	unread, old := r.unread(), r.held
	r.held, r.buffer = nil, nil
	if size > 0 {
		r.held = NewBuffer(size)
		r.buffer = r.held.B[:size]
	}
	r.from, r.to = 0, copy(r.buffer, unread)
	if old != nil {
		old.Free()
	}
}

func (r *reader) unread() []byte { return r.buffer[r.from:r.to] }

// frameBuffered reports whether a whole further frame is at hand.
func (r *reader) frameBuffered() bool { return frame.Complete(r.unread()) }

// nextRequest reads one frame and its header.
func (c *Conn) nextRequest() (*Request, error) {
	length, err := c.frameLength()
	if err != nil {
		return nil, err
	}
	if length > readBufferBytes { // what fits the buffer costs next to nothing: heartbeats go on when memory is short
		c.server.awaitMemory(func() bool { return c.ctx.Err() != nil || c.server.draining.Load() })
	}
	r := &Request{Conn: c, size: frame.LengthBytes + length}
	err = c.readFrame(r, length)
	c.arriving.held.Store(0)
	if err != nil {
		r.recycle()
		return nil, err
	}
	if r.Header, r.Body, err = frame.ParseRequestHeader(r.frame.B, c.reader.clientID); err != nil {
		r.recycle()
		return nil, err
	}
	c.reader.clientID = r.Header.ClientID
	r.ReceivedAt = time.Now()
	return r, nil
}

// frameLength reads up to the length of the next frame, and takes it out of the buffer.
func (c *Conn) frameLength() (int, error) {
	r := &c.reader
	for r.to-r.from < frame.LengthBytes {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	maxBytes := c.server.limits.Load().FrameBytes
	if frameCap := int(c.frameCap.Load()); frameCap > 0 {
		maxBytes = min(maxBytes, frameCap)
	}
	length, err := frame.Length(r.unread(), maxBytes)
	if err != nil {
		return 0, fmt.Errorf("%w%s", err, foreign(r.unread()))
	}
	r.from += frame.LengthBytes
	return length, nil
}

// foreign guesses what speaks another protocol to us; such peers show up as absurd lengths.
func foreign(b []byte) string {
	switch first := binary.BigEndian.Uint32(b); {
	case first>>16 == 0x1603:
		return " (a TLS client on a plaintext listener?)"
	case first == 0x47455420, first == 0x504f5354, first == 0x48454144: // "GET ", "POST", "HEAD"
		return " (an HTTP client?)"
	}
	return ""
}

// readFrame fills r.frame with length bytes.
func (c *Conn) readFrame(r *Request, length int) error {
	in := &c.reader
	for in.to-in.from < min(length, firstStep) {
		if err := c.fill(); err != nil {
			return err
		}
	}
	have := min(in.to-in.from, length)
	if err := c.growFrame(r, length, have); err != nil {
		return err
	}
	r.frame.B = append(r.frame.B, in.buffer[in.from:in.from+have]...)
	in.from += have
	for have < length {
		if room := min(cap(r.frame.B), length); have == room {
			if err := c.growFrame(r, length, have); err != nil {
				return err
			}
		}
		n, err := c.read(r.frame.B[have:min(cap(r.frame.B), length)])
		if err != nil {
			return err
		}
		have += n
		r.frame.B = r.frame.B[:have]
	}
	in.usual = max(length, in.usual/2)
	return nil
}

// growFrame makes room for more of a frame of which have bytes have arrived.
func (c *Conn) growFrame(r *Request, length, have int) error {
	old := r.frame
	r.frame = NewBuffer(min(length, max(growth*have, readBufferBytes, min(c.reader.usual, trustedBytes))))
	if old != nil {
		r.frame.B = append(r.frame.B, old.B...)
		old.Free()
	}
	added := cap(r.frame.B) - r.charged
	r.charged += added
	c.arriving.held.Store(int64(r.charged))
	if !c.server.budget.take(added) {
		return errNoMemory
	}
	return nil
}

// fill reads at least one byte into the buffer. A caller asks for less than readBufferBytes.
func (c *Conn) fill() error {
	n, err := c.read(nil)
	c.reader.to += n
	return err
}

// read reads at least one byte into p or, if it is nil, behind what is unread. The error says why the connection ends.
func (c *Conn) read(p []byte) (int, error) {
	r := &c.reader
	for {
		idle := c.server.limits.Load().IdleTimeout
		if r.activeAt.Sub(r.armedAt) > idle/armedFor {
			r.armedAt = r.activeAt
			c.socket.SetReadDeadline(r.activeAt.Add(idle + idle/armedFor))
			if c.server.draining.Load() {
				c.drain()
			}
		}
		n, err := c.receive(p)
		if n > 0 {
			r.activeAt = time.Now()
			c.arriving.bytes.Add(int64(n))
			return n, nil
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, errDisconnected
		}
		if c.server.draining.Load() {
			return 0, errDraining
		}
		// A client that awaits an answer, or has just got one, is not idle.
		c.queue.Lock()
		if r.activeAt.Before(c.queue.sentAt) {
			r.activeAt = c.queue.sentAt
		}
		if c.queue.count > 0 {
			r.activeAt = time.Now()
		}
		c.queue.Unlock()
		r.armedAt = time.Time{}
		if since := time.Since(r.activeAt); since >= idle {
			return 0, fmt.Errorf("%w for %v (connections.max.idle.ms)", errIdle, since.Round(time.Second))
		}
	}
}

// receive is read without the care for time.
func (c *Conn) receive(p []byte) (int, error) {
	if c.reader.socket.direct() {
		return c.reader.socket.read(p)
	}
	if p == nil {
		p = c.reader.room()
	}
	return c.socket.Read(p)
}
