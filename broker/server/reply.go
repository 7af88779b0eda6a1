package server

import "io"

// Response is one answer, ready to be written.
type Response struct {
	Segments   []Segment // everything after the four-byte size: response header and body, in order
	ThrottleMs int32     // after this answer nothing is read from the connection for so long (milliseconds)
	Done       func()    // called once, when the answer has been written or dropped; may be nil. It must not block
}

// Segment is a piece of an answer: bytes, or a range of a file.
type Segment struct {
	Bytes  []byte      // the piece itself, unless Source is set
	Source io.ReaderAt // where to read the piece from; a *os.File or a syscall.Conn over one is sent without copying where the system can
	Offset int64       // first byte of Source
	Length int64       // number of bytes of Source
}

func (s *Segment) length() int64 {
	if s.Source != nil {
		return s.Length
	}
	return int64(len(s.Bytes))
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
	pending  *Pending
	reason   string
}

// Now answers at once.
func Now(r Response) Reply { return Reply{kind: replyNow, response: r} }

// Later answers when p, made by Request.Pending, is completed. Answers to later requests of the connection wait for it.
func Later(p *Pending) Reply { return Reply{kind: replyLater, pending: p} }

// None sends nothing, as for Produce with acks=0.
func None() Reply { return Reply{kind: replyNone} }

// Hangup closes the connection once the answers before this request are written. The reason goes to the log.
func Hangup(reason string) Reply { return Reply{kind: replyHangup, reason: reason} }
