package api

import (
	"fmt"
	"runtime/debug"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/broker/server"
	"sluice/protocol/frame"
)

// Dispatch finds the row of a request, decodes it and calls its handler. A key or version without a row, and a body that cannot be
// decoded, end the connection, as in Apache Kafka; bytes after the body are ignored, also as there.
func (h *Handlers) Dispatch(r *server.Request) server.Reply {
	c := h.newContext(r)
	row := h.table.find(c.Key)
	if row == nil {
		return server.Hangup(fmt.Sprintf("unknown API key %d", c.Key))
	}
	if c.Version < row.min || c.Version > row.max {
		if c.Key == int16(kmsg.ApiVersions) {
			c.Version = 0
			return server.Now(c.encode(unsupportedApiVersions(row)))
		}
		return server.Hangup(fmt.Sprintf("%s version %d, which is not served (%d to %d are)", row.name, c.Version, row.min, row.max))
	}
	request := kmsg.RequestForKey(c.Key)
	request.SetVersion(c.Version)
	if err := decode(request, r); err != nil {
		return server.Hangup(fmt.Sprintf("malformed %s request, version %d: %v", row.name, c.Version, err))
	}
	reply := row.call(h, c, request)
	switch reply.kind {
	case replyRespond:
		return server.Now(c.encode(reply.response))
	case replyRaw:
		return server.Now(c.encodeRaw(reply.raw))
	case replyPending:
		return server.Later(reply.pending)
	case replyNone:
		return server.None()
	}
	return server.Hangup(c.hangupReason(reply.reason))
}

func (h *Handlers) newContext(r *server.Request) *Context {
	software := r.Conn.ClientSoftware()
	c := &Context{
		Context:               r.Conn.Context(),
		Listener:              r.Conn.Listener(),
		LocalAddr:             r.Conn.LocalAddr(),
		RemoteAddr:            r.Conn.RemoteAddr(),
		ClientSoftwareName:    software.Name,
		ClientSoftwareVersion: software.Version,
		Key:                   r.Header.Key,
		Version:               r.Header.Version,
		CorrelationID:         r.Header.CorrelationID,
		NowMs:                 h.NowMs(),
		Request:               r,
		handlers:              h,
	}
	if r.Header.ClientID != nil {
		c.ClientID = *r.Header.ClientID
	}
	return c
}

// complete answers a pending request.
func (c *Context) complete(pending *server.Pending, r Reply) {
	defer func() {
		// The caller is a coordinator, a timer, another client's request: a fault in encoding this answer is not theirs.
		if fault := recover(); fault != nil {
			c.handlers.Log.Error("panic while answering a request", zap.Any("panic", fault), zap.Int16("api", c.Key),
				zap.Int16("version", c.Version), zap.ByteString("stack", debug.Stack()))
			pending.Hangup("internal error")
		}
	}()
	switch r.kind {
	case replyRespond:
		pending.Complete(c.encode(r.response))
	case replyRaw:
		pending.Complete(c.encodeRaw(r.raw))
	case replyNone:
		pending.Omit()
	default:
		pending.Hangup(c.hangupReason(r.reason))
	}
}

func (c *Context) hangupReason(reason string) string {
	return fmt.Sprintf("%s version %d: %s", kmsg.NameForKey(c.Key), c.Version, reason)
}

// leastResponseBytes is the smallest first size of the buffer that a response is encoded into.
const leastResponseBytes = 512

func (c *Context) header(size int) *server.Buffer {
	head := server.NewBuffer(size)
	head.B = frame.AppendResponseHeader(head.B, c.Key, c.Version, c.CorrelationID)
	return head
}

func (c *Context) encode(response kmsg.Response) server.Response {
	response.SetVersion(c.Version)
	last := &c.handlers.responseBytes[c.Key] // encoded for a key that has a row
	head := c.header(max(int(last.Load()), leastResponseBytes))
	head.B = response.AppendTo(head.B)
	last.Store(int32(len(head.B)))
	out := server.Response{Head: head}
	if throttled, ok := response.(kmsg.ThrottleResponse); ok {
		out.ThrottleMs, _ = throttled.Throttle() // versions that say "before the answer" are muted after it too, as by Kafka since 2.0
	}
	c.account(response, out.ThrottleMs)
	return out
}

func (c *Context) encodeRaw(raw *rawBody) server.Response {
	c.account(raw.Response, raw.ThrottleMs)
	return server.Response{Head: c.header(0), Segments: raw.segments, ThrottleMs: raw.ThrottleMs, Done: raw.Done}
}

// account counts the errors of a response, which may be nil, and writes the request log.
func (c *Context) account(response kmsg.Response, throttleMs int32) {
	metrics := c.handlers.Metrics
	if throttleMs > 0 {
		metrics.Throttled(c.Key, throttleMs)
	}
	failed := int16(0) // the first error
	if response != nil {
		eachCode(response, func(code int16) {
			metrics.Errored(c.Key, code, 1)
			if failed == 0 {
				failed = code
			}
		})
	}
	if entry := c.handlers.Log.Check(zap.DebugLevel, "request"); entry != nil {
		entry.Write(zap.String("api", kmsg.NameForKey(c.Key)), zap.Int16("version", c.Version), zap.Int32("correlation", c.CorrelationID),
			zap.String("client", c.ClientID), zap.String("listener", c.Listener), zap.Stringer("remote", c.RemoteAddr),
			zap.Int16("error", failed), zap.Int32("throttleMs", throttleMs), zap.Int64("ms", c.handlers.NowMs()-c.NowMs))
	}
}
