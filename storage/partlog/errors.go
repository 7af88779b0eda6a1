package partlog

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by a log that has been closed.
var ErrClosed = errors.New("the log is closed")

// OffsetOutOfRange means that the log has no such offset.
type OffsetOutOfRange struct {
	Requested      int64
	LogStartOffset int64 // inclusive
	LogEndOffset   int64 // exclusive
}

func (e *OffsetOutOfRange) Error() string {
	return fmt.Sprintf("offset %d is out of range: the log has offsets from %d to before %d", e.Requested, e.LogStartOffset, e.LogEndOffset)
}

// TooLarge refuses a batch that is larger than MaxMessageBytes (Kafka's MESSAGE_TOO_LARGE, 10) or than a whole segment
// (RECORD_LIST_TOO_LARGE, 18).
type TooLarge struct {
	Bytes   int
	Max     int
	Segment bool // Max is the segment's size
}

func (e *TooLarge) Error() string {
	if e.Segment {
		return fmt.Sprintf("batch of %d bytes is larger than a segment of %d bytes", e.Bytes, e.Max)
	}
	return fmt.Sprintf("batch of %d bytes is larger than the largest allowed, %d bytes", e.Bytes, e.Max)
}

// UnexpectedOffset refuses batches from a leader that do not continue the log.
type UnexpectedOffset struct {
	Offset       int64 // of the first batch that does not fit
	LogEndOffset int64 // that it should have had, or more
}

func (e *UnexpectedOffset) Error() string {
	return fmt.Sprintf("batch at offset %d does not continue the log, which ends before %d", e.Offset, e.LogEndOffset)
}

// Fault is a failed disk operation. After a failed write or sync the log takes no more of them: what is on the disk is only known again
// after it has been reopened. The log directory should go offline.
type Fault struct {
	Op   string // what was attempted, as in "append"
	Path string // of the log's directory
	Err  error
}

func (e *Fault) Error() string { return fmt.Sprintf("%s: %s: %v", e.Path, e.Op, e.Err) }

// Unwrap gives the cause.
func (e *Fault) Unwrap() error { return e.Err }
