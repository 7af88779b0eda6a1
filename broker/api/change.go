package api

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/metadata"
)

// change answers a request with what the controller makes of it. The operation waits for the disk, so it runs beside the connection's
// reader. Where the operation as a whole fails, rejected makes the answer.
func (h *Handlers) change(c *Context, timeoutMs int32, op metadata.Op, rejected func(code int16, message *string) kmsg.Response) Reply {
	reply, complete := c.Pending()
	go func() {
		response, err := h.do(c, int64(timeoutMs), op)
		if err != nil {
			response = rejected(c.errorFor(err))
		}
		complete(response)
	}()
	return reply
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
