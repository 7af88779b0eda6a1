package server

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"sluice/protocol/frame"
)

const (
	batchRequests = 64        // answers written together at most
	batchBytes    = 256 << 10 // of them in memory, after which no further answer joins
	outBytes      = 16 << 10  // small pieces are copied together up to this
	copyBytes     = 2 << 10   // a piece up to this is copied rather than given to writev
	sendfileBytes = 16 << 10  // a file range below this is read and copied: cheaper than a system call of its own
	preadBytes    = 64 << 10  // step in which a file is read where sendfile is not possible
)

// writer is the part of a Conn that only the goroutine that set queue.writing touches.
type writer struct {
	out     *Buffer     // pieces copied together; vectors point into it
	from    int         // part of out before this is in vectors
	vectors net.Buffers // what to write next, but for the end of out
	array   [6][]byte   // under vectors, for the common case
	armedAt time.Time   // when the deadline was last set
}

// flushDue reports that answers should not wait for those of the next request.
func (c *Conn) flushDue() bool {
	q := &c.queue
	q.Lock()
	defer q.Unlock()
	return q.count >= batchRequests || q.owed >= batchBytes || (q.last != nil && q.last.state == stateReady && (q.last.kind == replyHangup || q.last.response.ThrottleMs > 0))
}

// flush writes what is ready, unless another goroutine does so already.
func (c *Conn) flush() {
	q := &c.queue
	q.Lock()
	if !q.writable() {
		q.Unlock()
		return
	}
	q.writing = true
	q.Unlock()
	c.writeReady()
}

// writeReady writes every answer whose turn it is. The caller has set queue.writing.
func (c *Conn) writeReady() {
	q := &c.queue
	var taken [batchRequests]*Request
	for {
		batch := taken[:0]
		bytes := 0
		q.Lock()
		for len(batch) < batchRequests && bytes < batchBytes && q.first != nil && q.first.state == stateReady {
			r := q.pop()
			r.state = stateGone
			batch = append(batch, r)
			bytes += r.owed
			if throttle := r.response.ThrottleMs; throttle > 0 {
				// Muted before the client has the answer, or its next request could slip through.
				if until := time.Now().Add(time.Duration(throttle) * time.Millisecond); until.After(q.mutedUntil) {
					q.mutedUntil = until
				}
			}
		}
		if len(batch) == 0 {
			q.writing = false
			q.changed.Broadcast()
			q.Unlock()
			return
		}
		q.Unlock()

		if err := c.writeBatch(batch); err != nil {
			c.close(writeEnded(err))
		}
		now := time.Now()
		for i, r := range batch {
			r.response.finish()
			r.over(now)
			taken[i] = nil
		}
		q.Lock()
		q.owed -= bytes
		q.count -= len(batch)
		q.sentAt = now
		q.changed.Broadcast()
		q.Unlock()
		c.server.budget.release(bytes)
	}
}

// writeBatch writes answers. After an error the connection must end.
func (c *Conn) writeBatch(batch []*Request) error {
	w := &c.writer
	w.out = NewBuffer(outBytes)
	w.vectors = w.array[:0]
	defer w.reset()
	for _, r := range batch {
		switch r.kind {
		case replyNone:
			continue
		case replyHangup:
			if err := c.flushVectors(); err != nil {
				return err
			}
			return r.reason
		}
		if err := c.putResponse(&r.response); err != nil {
			return err
		}
	}
	return c.flushVectors()
}

// writeEnded turns an error of writing into the reason to close; nil when the client just went away.
func writeEnded(err error) error {
	var network net.Error
	var source *sourceError
	switch {
	case errors.As(err, &source):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errNotRead
	case errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe), errors.As(err, &network), errors.As(err, new(syscall.Errno)):
		return nil
	}
	return err
}

var errNotRead = errors.New("the client does not take its answers")

// reset leaves nothing of a batch behind: an idle connection holds no buffer.
func (w *writer) reset() {
	w.out.Free()
	*w = writer{armedAt: w.armedAt}
}

func (c *Conn) putResponse(r *Response) error {
	size := r.Size()
	if size > maxResponseBytes {
		return fmt.Errorf("answer of %d bytes does not fit a frame", size)
	}
	if err := c.makeRoom(frame.LengthBytes); err != nil {
		return err
	}
	c.writer.out.B = binary.BigEndian.AppendUint32(c.writer.out.B, uint32(size))
	if r.Head != nil {
		if err := c.put(r.Head.B); err != nil {
			return err
		}
	}
	for i := range r.Segments {
		s := &r.Segments[i]
		var err error
		if s.Source == nil {
			err = c.put(s.Bytes)
		} else {
			err = c.putFile(s.Source, s.Offset, s.Length)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxResponseBytes is what the signed length in front of a frame can say.
const maxResponseBytes = 1<<31 - 1

// put adds bytes to what is written next. Large pieces are not copied: they stay as they are until flushVectors.
func (c *Conn) put(b []byte) error {
	w := &c.writer
	if len(b) <= copyBytes {
		if err := c.makeRoom(len(b)); err != nil {
			return err
		}
		w.out.B = append(w.out.B, b...)
		return nil
	}
	w.seal()
	w.vectors = append(w.vectors, b)
	if len(w.vectors) >= maxVectors {
		return c.flushVectors()
	}
	return nil
}

// makeRoom sees to it that n bytes, at most outBytes, can be added to out without moving it: vectors point into it.
func (c *Conn) makeRoom(n int) error {
	if len(c.writer.out.B)+n <= cap(c.writer.out.B) {
		return nil
	}
	return c.flushVectors()
}

// maxVectors is below what one writev or sendmsg takes (1024).
const maxVectors = 512

// seal moves what was copied into the vectors.
func (w *writer) seal() {
	if w.from < len(w.out.B) {
		w.vectors = append(w.vectors, w.out.B[w.from:])
		w.from = len(w.out.B)
	}
}

// flushVectors writes all that was put.
func (c *Conn) flushVectors() error {
	w := &c.writer
	var err error
	switch {
	case len(w.vectors) > 0:
		w.seal()
		err = c.writeVectors()
	case len(w.out.B) > 0:
		err = c.write(w.out.B)
	}
	w.sent()
	return err
}

// sent empties the writer for the next pieces.
func (w *writer) sent() {
	w.out.B, w.from = w.out.B[:0], 0
	w.vectors = w.array[:0]
}

func (c *Conn) write(b []byte) error {
	for {
		c.armWrite()
		n, err := c.socket.Write(b)
		if err == nil || !c.progressed(int64(n), err) {
			return err
		}
		b = b[n:]
	}
}

func (c *Conn) writeVectors() error {
	w := &c.writer
	for len(w.vectors) > 0 {
		c.armWrite()
		n, err := w.vectors.WriteTo(c.socket)
		if err != nil && !c.progressed(n, err) {
			return err
		}
	}
	return nil
}

// armWrite sets the deadline by which a byte must be taken.
func (c *Conn) armWrite() {
	w := &c.writer
	now := time.Now()
	timeout := c.server.limits.Load().WriteTimeout
	if now.Sub(w.armedAt) > timeout/armedFor {
		w.armedAt = now
		c.socket.SetWriteDeadline(now.Add(timeout + timeout/armedFor))
	}
}

// progressed reports that writing may go on after err: the deadline has passed, but the client takes what it is sent.
func (c *Conn) progressed(n int64, err error) bool {
	if n <= 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if _, encrypted := c.socket.(*tls.Conn); encrypted {
		return false // a TLS connection cannot go on after a partial write
	}
	c.writer.armedAt = time.Time{}
	return true
}

// putFile adds a range of a file.
func (c *Conn) putFile(source io.ReaderAt, offset, length int64) error {
	if length <= 0 {
		return nil
	}
	w := &c.writer
	if length < sendfileBytes {
		if err := c.makeRoom(int(length)); err != nil {
			return err
		}
		start := len(w.out.B)
		w.out.B = w.out.B[:start+int(length)]
		return readRange(source, w.out.B[start:], offset)
	}
	if handled, err := c.sendfile(source, offset, length); handled || err != nil {
		return err
	}
	return c.copyFile(source, offset, length)
}

// copyFile sends a range of a file through a buffer.
func (c *Conn) copyFile(source io.ReaderAt, offset, length int64) error {
	if err := c.flushVectors(); err != nil {
		return err
	}
	buffer := NewBuffer(preadBytes)
	defer buffer.Free()
	for length > 0 {
		chunk := buffer.B[:min(length, int64(cap(buffer.B)))]
		if err := readRange(source, chunk, offset); err != nil {
			return err
		}
		if err := c.write(chunk); err != nil {
			return err
		}
		offset += int64(len(chunk))
		length -= int64(len(chunk))
	}
	return nil
}

// sourceError says that the file under an answer failed. The connection ends: its client has been promised the bytes.
type sourceError struct{ err error }

func (s *sourceError) Error() string { return "sending a log segment: " + s.err.Error() }
func (s *sourceError) Unwrap() error { return s.err }

var errTruncated = errors.New("truncated meanwhile")

func readRange(source io.ReaderAt, b []byte, offset int64) error {
	n, err := source.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errTruncated
	}
	return &sourceError{err}
}
