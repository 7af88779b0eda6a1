package server

import (
	"time"

	"sluice/protocol/frame"
)

// Dispatcher turns requests into replies. Dispatch is called in request order by the connection's reader goroutine. It must not wait
// for other clients, nor for time to pass: such an answer is a Pending.
type Dispatcher interface {
	Dispatch(r *Request) Reply
}

// Request is one request of a connection.
type Request struct {
	Conn       *Conn
	Header     frame.RequestHeader
	Body       []byte    // what follows the header; aliases the frame buffer, see Retain and Release
	ReceivedAt time.Time // when the last byte of the frame had arrived
}

// Retain keeps the frame buffer from being used again: the handler, or what it has called, holds a slice of Body beyond the moment the
// reply is made (for a Pending: is completed).
func (r *Request) Retain() { panic("not written yet") }

// Release says that nobody uses Body any more, ahead of the reply: a large frame need not stay in memory while the answer is awaited.
func (r *Request) Release() { panic("not written yet") }

// Pending makes the promise of an answer to this request.
func (r *Request) Pending() *Pending { panic("not written yet") }

// Pending is an answer that is not ready yet.
type Pending struct{}

// Complete delivers the answer, from any goroutine, without blocking. Only the first call counts; a response that comes when the
// connection is gone, or comes second, is dropped (and its Done called).
func (p *Pending) Complete(r Response) { panic("not written yet") }

// Hangup closes the connection instead of answering, once the answers before this one are written.
func (p *Pending) Hangup(reason string) { panic("not written yet") }
