package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Serve calls a handler without a connection, for benchmarks. The request must be one that is answered at once.
func (h *Handlers) Serve(request kmsg.Request) Reply {
	c := &Context{Context: context.Background(), Key: request.Key(), Version: request.GetVersion(), NowMs: h.NowMs(), handlers: h}
	return h.table.find(c.Key).call(h, c, request)
}

// Finish does what the server does after an answer has been written, and returns the number of bytes of files in it.
func (r Reply) Finish() (fromFiles int64) {
	if r.raw == nil {
		return 0
	}
	for i := range r.raw.segments {
		fromFiles += r.raw.segments[i].Length
	}
	if r.raw.Done != nil {
		r.raw.Done()
	}
	return fromFiles
}
