package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"
)

// errorRows is THE mapping from errors of the lower layers to Kafka's codes. The first row that matches anywhere in the chain of wrapped
// errors wins.
var errorRows = []errorRow{
	// is(partlog.ErrX, kerr.Y),                     a sentinel
	// as[*partlog.OffsetOutOfRange](kerr.OffsetOutOfRange),  a type
	// pick(func(e *record.Invalid) *kerr.Error {...}),      a type whose fields decide
}

type errorRow struct {
	// match returns nil when the row is not about err.
	match func(err error) *kerr.Error
	// about is a sentinel error, or a reflect.Type; errors_test.go compares it with what the lower layers export.
	about any
}

// is maps a sentinel.
func is(sentinel error, code *kerr.Error) errorRow {
	return errorRow{about: sentinel, match: func(err error) *kerr.Error {
		if errors.Is(err, sentinel) {
			return code
		}
		return nil
	}}
}

// as maps an error type.
func as[E error](code *kerr.Error) errorRow {
	return pick(func(E) *kerr.Error { return code })
}

// pick maps an error type by its fields.
func pick[E error](decide func(E) *kerr.Error) errorRow {
	return errorRow{about: errorType[E]{}, match: func(err error) *kerr.Error {
		var e E
		if errors.As(err, &e) {
			return decide(e)
		}
		return nil
	}}
}

// errorType stands for the type E in a row.
type errorType[E error] struct{}

// lookup finds the Kafka error for err. An error of Kafka's own (kerr) stands for itself.
func lookup(err error) (*kerr.Error, bool) {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known, true
	}
	for i := range errorRows {
		if known := errorRows[i].match(err); known != nil {
			return known, true
		}
	}
	return kerr.UnknownServerError, false
}

// code is the Kafka code of err: 0 for nil, UNKNOWN_SERVER_ERROR when the table does not know it. Where a Context is at hand its method
// of the same name is better, as it logs what the table does not know.
func code(err error) int16 {
	if err == nil {
		return 0
	}
	known, _ := lookup(err)
	return known.Code
}

// errorFor is code with the message that goes beside it in responses that have one: the error's own text, nil for no error. The text of
// an error that the table does not know stays in the log.
func errorFor(err error) (int16, *string) {
	if err == nil {
		return 0, nil
	}
	known, ok := lookup(err)
	message := known.Description
	if ok {
		message = err.Error()
	}
	return known.Code, &message
}

// code is the function of the same name, and logs an error that the table does not know.
func (c *Context) code(err error) int16 {
	c.logUnknown(err)
	return code(err)
}

// errorFor is the function of the same name, and logs an error that the table does not know.
func (c *Context) errorFor(err error) (int16, *string) {
	c.logUnknown(err)
	return errorFor(err)
}

func (c *Context) logUnknown(err error) {
	if err == nil {
		return
	}
	if _, ok := lookup(err); !ok {
		c.handlers.Log.Error("unexpected error while serving a request", zap.Error(err),
			zap.Int16("api", c.Key), zap.Int16("version", c.Version), zap.String("client", c.ClientID))
	}
}
