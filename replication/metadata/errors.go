package metadata

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// An Error is a rejection with Kafka's error code and message.
type Error struct {
	Code    int16
	Message string // empty: the client shows the code's own text
}

func (e *Error) Error() string {
	if e.Message == "" {
		return kerr.ErrorForCode(e.Code).Error()
	}
	return fmt.Sprintf("%s (error code %d)", e.Message, e.Code)
}

// message is the response's error message: null when there is none.
func (e *Error) message() *string {
	if e.Message == "" {
		return nil
	}
	return &e.Message
}

func reject(code *kerr.Error, format string, args ...any) *Error {
	return &Error{code.Code, fmt.Sprintf(format, args...)}
}

var codeInvalidTopic = kerr.InvalidTopicException.Code

// maxRecordsPerOp bounds what one request may write; Kafka has the same bound.
const maxRecordsPerOp = 10000

var errTooLarge = &Error{kerr.PolicyViolation.Code, "Unable to perform excessively large batch operation."}
