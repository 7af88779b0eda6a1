package api

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/replication/metadata"
)

// change answers a request with what the controller makes of it. The operation waits for the disk. Where it fails as a whole, rejected makes
// the answer.
func (h *Handlers) change(c *Context, timeoutMs int32, op metadata.Op, rejected func(code int16, message *string) kmsg.Response) Reply {
	return c.beside(func() kmsg.Response {
		response, err := h.do(c, int64(timeoutMs), op)
		if err != nil {
			return rejected(c.errorFor(err))
		}
		return response
	})
}

// beside answers with what work returns, which runs beside the connection's reader. A fault in it ends this connection and no other, as one in
// a handler does.
func (c *Context) beside(work func() kmsg.Response) Reply {
	pending := c.Request.Pending()
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				c.handlers.Log.Error("panic while serving a request", zap.Any("panic", fault), zap.Int16("api", c.Key),
					zap.Int16("version", c.Version), zap.ByteString("stack", debug.Stack()))
				pending.Hangup("internal error")
			}
		}()
		c.complete(pending, Respond(work()))
	}()
	return Reply{kind: replyPending, pending: pending}
}

// do runs a controller operation for at most the given time. It goes on when the connection ends: a client that asks again finds it done.
func (h *Handlers) do(c *Context, timeoutMs int64, op metadata.Op) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c), time.Duration(max(timeoutMs, 0))*time.Millisecond)
	defer cancel()
	response, err := h.Controller.Do(ctx, op)
	if errors.Is(err, context.DeadlineExceeded) {
		err = &metadata.Error{Code: kerr.RequestTimedOut.Code} // without a message, as in Kafka
	}
	return response, err
}
