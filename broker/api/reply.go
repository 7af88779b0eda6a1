package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/server"
)

// Reply is what a handler makes of a request: an answer now, a promise, nothing, or the end of the connection.
type Reply struct {
	kind     replyKind
	response kmsg.Response
	raw      *rawBody
	pending  *server.Pending
	reason   string
}

type replyKind uint8

const (
	replyHangup replyKind = iota // the zero Reply: a forgotten answer must not leave a client waiting
	replyRespond
	replyRaw
	replyPending
	replyNone
)

// Respond answers with a message, in the version of the request.
func Respond(r kmsg.Response) Reply { return Reply{kind: replyRespond, response: r} }

// NoReply sends nothing, as for Produce with acks=0.
func NoReply() Reply { return Reply{kind: replyNone} }

// Hangup closes the connection once the answers before this request are written. The reason goes to the log.
func Hangup(reason string) Reply { return Reply{kind: replyHangup, reason: reason} }

// RawOptions describe a body given to Raw.
type RawOptions struct {
	Response   kmsg.Response // what the segments encode, for the error counters only (Records may be empty); may be nil
	ThrottleMs int32         // already in the body; the connection is muted for so long
	Done       func()        // called once when the segments have been written or dropped: the place to close file slices; may be nil
}

type rawBody struct {
	segments []server.Segment
	RawOptions
}

// Raw answers with a body that the handler has encoded, file ranges among it. The segments begin after the response header, which is put
// in front here.
func Raw(segments []server.Segment, o RawOptions) Reply {
	return Reply{kind: replyRaw, raw: &rawBody{segments, o}}
}

// Pending promises an answer: the handler returns the Reply, and complete is called later, once, from any goroutine; it does not block.
// A second call, and a call when the connection is gone, do nothing.
func (c *Context) Pending() (reply Reply, complete func(kmsg.Response)) {
	reply, completeReply := c.PendingReply()
	return reply, func(r kmsg.Response) { completeReply(Respond(r)) }
}

// PendingReply is Pending for answers that are Raw, NoReply or Hangup.
func (c *Context) PendingReply() (reply Reply, complete func(Reply)) {
	pending := c.Request.Pending()
	return Reply{kind: replyPending, pending: pending}, func(r Reply) { c.complete(pending, r) }
}
