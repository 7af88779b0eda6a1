package api

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/server"
)

// Bounds on what decoding a request may allocate beside the frame itself. An array whose elements are nearly empty, or a body full of
// unknown tagged fields, takes up to thirty times its bytes in memory; requests of real clients take about twice.
const (
	smallBodyBytes   = 32 << 10 // what smaller bodies allocate is not looked at
	decodedBase      = 1 << 20
	decodedPerByte   = 8
	decodedMost      = 64 << 20
	decodedMinCharge = 64 << 10 // what is below is not worth counting
)

var (
	errImpossible = errors.New("it ends early, holds an impossible length, or null where none may be")
	errMemory     = errors.New("too many requests in memory (queued.max.request.bytes)")
)

// decode reads the body of a request, whose version is set. Record bytes and other byte fields alias the body. The body is walked first: it
// is refused when its structure would take too much memory, or has null where the schema has none, which kmsg takes for empty.
func decode(request kmsg.Request, r *server.Request) error {
	w := walker{b: r.Body, limit: min(decodedBase+decodedPerByte*len(r.Body), decodedMost)}
	w.walk(layoutOf(request))
	if w.bad {
		return errImpossible
	}
	if len(r.Body) > smallBodyBytes {
		switch {
		case w.memory > w.limit:
			return fmt.Errorf("its %d bytes hold more than %d bytes of structure", len(r.Body), w.limit)
		case w.memory > decodedMinCharge && !r.Charge(w.memory):
			return errMemory
		}
	}
	if request.ReadFrom(r.Body) != nil {
		return errImpossible // kmsg has one error, and it speaks of responses
	}
	return nil
}
