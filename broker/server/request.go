package server

import (
	"time"

	"sluice/protocol/frame"
)

// Dispatcher turns requests into replies. Dispatch is called in request order by the connection's reader goroutine. It must not wait
// for other clients, nor for time to pass: such an answer is a Pending. A panic in it closes the connection.
type Dispatcher interface {
	Dispatch(r *Request) Reply
}

// Request is one request of a connection.
type Request struct {
	Conn       *Conn
	Header     frame.RequestHeader
	Body       []byte    // what follows the header; aliases the frame buffer, see Retain and Release
	ReceivedAt time.Time // when the last byte of the frame had arrived

	frame    *Buffer // under Body; nil once released
	charged  int     // bytes of the budget that the request holds until the reply is made
	size     int     // of the frame
	retained bool
	kind     replyKind

	// Below: guarded by Conn.queue.
	next       *Request
	state      replyState
	response   Response
	reason     error // of a hang-up
	dispatched time.Time
	completed  time.Time
	owed       int // bytes of the answer in memory, charged until it is written
}

// replyState is how far the reply to a request has come. Dispatch returning and a Pending being completed happen in either order.
type replyState uint8

const (
	stateDispatching    replyState = iota // no reply yet, not queued
	stateCompletedEarly                   // a Pending was completed before Dispatch returned
	stateWaiting                          // queued, its Pending not completed
	stateReady                            // queued, to be written or to hang up
	stateGone                             // written or dropped: a completion has no effect
)

// Retain keeps the frame buffer from being used again: the handler, or what it has called, holds a slice of Body beyond the moment the
// reply is made (for a Pending: is completed). It is called before that moment.
func (r *Request) Retain() { r.retained = true }

// Release says that nobody uses Body any more, ahead of the reply: a large frame need not stay in memory while the answer is awaited.
// It is called by the goroutine in which Dispatch runs.
func (r *Request) Release() {
	r.Body = nil
	r.recycle()
}

// Charge counts n bytes that the request holds beside its frame, until its reply is made or Release is called, as part of what all
// requests may hold together. It is false when that is far too much already: the request should be refused. It is called by the
// goroutine in which Dispatch runs.
func (r *Request) Charge(n int) bool {
	r.charged += n
	return r.Conn.server.budget.take(n)
}

// recycle gives the frame back. The caller is the only one to touch the frame: the reader before the request is queued, or whoever
// holds Conn.queue afterwards.
func (r *Request) recycle() {
	if r.charged > 0 {
		r.Conn.server.budget.release(r.charged)
		r.charged = 0
	}
	if r.frame != nil && !r.retained {
		r.frame.Free()
		r.Body = nil
	}
	r.frame = nil
}

// Pending makes the promise of an answer to this request.
func (r *Request) Pending() *Pending { return (*Pending)(r) }

// Pending is an answer that is not ready yet.
type Pending Request

// Complete delivers the answer, from any goroutine, without blocking. Only the first call counts; a response that comes when the
// connection is gone, or comes second, is dropped (and its Done called).
func (p *Pending) Complete(response Response) {
	(*Request)(p).complete(replyNow, response, nil)
}

// Omit ends the request without an answer.
func (p *Pending) Omit() { (*Request)(p).complete(replyNone, Response{}, nil) }

// Hangup closes the connection instead of answering, once the answers before this one are written.
func (p *Pending) Hangup(reason string) {
	(*Request)(p).complete(replyHangup, Response{}, hangup(reason))
}
