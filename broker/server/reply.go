package server

import "io"

// Response is one answer, ready to be written: Head, then Segments.
type Response struct {
	Head       *Buffer   // first bytes after the four-byte size (the response header, often the whole answer); freed by the server; may be nil
	Segments   []Segment // what follows, in order
	ThrottleMs int32     // after this answer nothing is read from the connection for so long (milliseconds)
	Done       func()    // called once, when the answer has been written or dropped; may be nil. It must not block
}

// Segment is a piece of an answer: bytes, or a range of a file.
type Segment struct {
	Bytes  []byte      // the piece itself, unless Source is set
	Source io.ReaderAt // where to read the piece from; a *os.File or another syscall.Conn over a file is sent without copying where the system can
	Offset int64       // first byte of Source
	Length int64       // number of bytes of Source
}

// Size is the number of bytes that the answer has after its four-byte size.
func (r *Response) Size() int64 {
	size := int64(r.inMemory())
	for i := range r.Segments {
		if r.Segments[i].Source != nil {
			size += r.Segments[i].Length
		}
	}
	return size
}

// inMemory is the part of Size that is not in files.
func (r *Response) inMemory() int {
	size := 0
	if r.Head != nil {
		size = len(r.Head.B)
	}
	for i := range r.Segments {
		if r.Segments[i].Source == nil {
			size += len(r.Segments[i].Bytes)
		}
	}
	return size
}

// finish frees what the answer holds.
func (r *Response) finish() {
	if r.Head != nil {
		r.Head.Free()
	}
	if r.Done != nil {
		r.Done()
	}
	*r = Response{}
}

type replyKind uint8

const (
	replyHangup replyKind = iota // the zero Reply closes the connection: a forgotten answer must not leave a client waiting
	replyNow
	replyLater
	replyNone
)

// Reply is what a Dispatcher makes of one request.
type Reply struct {
	kind     replyKind
	response Response
	reason   error // of a hang-up
}

// Now answers at once.
func Now(r Response) Reply { return Reply{kind: replyNow, response: r} }

// Later answers when the Pending of the request is completed. Answers to later requests of the connection wait for it.
func Later(*Pending) Reply { return Reply{kind: replyLater} }

// None sends nothing, as for Produce with acks=0.
func None() Reply { return Reply{kind: replyNone} }

// Hangup closes the connection once the answers before this request are written. The reason goes to the log.
func Hangup(reason string) Reply { return Reply{kind: replyHangup, reason: hangup(reason)} }

// hangup is the reason of a connection that ends because the dispatcher says so.
type hangup string

func (h hangup) Error() string { return string(h) }
