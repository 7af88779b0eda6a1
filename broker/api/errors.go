package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/broker/fetchsession"
	"sluice/protocol/record"
	"sluice/replication/metadata"
	"sluice/replication/partition"
	"sluice/storage/partlog"
	"sluice/storage/producer"
)

// errorRows is THE mapping from errors of the lower layers to Kafka's codes. The first row that matches anywhere in the chain of wrapped
// errors wins.
var errorRows = []errorRow{
	// is(partlog.ErrX, kerr.Y),                               a sentinel
	// as[*partlog.OffsetOutOfRange](kerr.OffsetOutOfRange),   a type
	// pick(func(e *record.Invalid) *kerr.Error { … }),        a type whose fields decide
	pick(invalidRecords),
	as[*record.Corrupt](kerr.CorruptMessage),
	as[*partition.Unknown](kerr.UnknownTopicOrPartition),
	as[*partition.NotLeader](kerr.NotLeaderForPartition),
	as[*partition.FencedLeaderEpoch](kerr.FencedLeaderEpoch),
	as[*partition.UnknownLeaderEpoch](kerr.UnknownLeaderEpoch),
	pick(func(e *partition.NotEnoughReplicas) *kerr.Error {
		if e.Appended {
			return kerr.NotEnoughReplicasAfterAppend
		}
		return kerr.NotEnoughReplicas
	}),
	as[*partition.StorageOffline](kerr.KafkaStorageError),
	as[*partition.StorageFull](kerr.KafkaStorageError),
	as[*partition.DeletionRefused](kerr.PolicyViolation),
	as[*partition.OffsetOutOfRange](kerr.OffsetOutOfRange),
	as[*partition.OffsetNotAvailable](kerr.OffsetNotAvailable),
	as[*partlog.OffsetOutOfRange](kerr.OffsetOutOfRange),
	pick(func(e *partlog.TooLarge) *kerr.Error {
		if e.Segment {
			return kerr.RecordListTooLarge
		}
		return kerr.MessageTooLarge
	}),
	as[*partlog.Fault](kerr.KafkaStorageError),
	is(partlog.ErrClosed, kerr.NotLeaderForPartition),
	as[*partlog.UnexpectedOffset](kerr.UnknownServerError),
	as[*producer.OutOfOrderSequence](kerr.OutOfOrderSequenceNumber),
	as[*producer.InvalidProducerEpoch](kerr.InvalidProducerEpoch),
	as[*producer.InvalidTxnState](kerr.InvalidTxnState),
	as[*producer.CoordinatorFenced](kerr.TransactionCoordinatorFenced),
	is(fetchsession.ErrNotFound, kerr.FetchSessionIDNotFound),
	is(fetchsession.ErrInvalidEpoch, kerr.InvalidFetchSessionEpoch),
	is(fetchsession.ErrTopicIDs, kerr.FetchSessionTopicIDError),
	is(context.DeadlineExceeded, kerr.RequestTimedOut),
	is(context.Canceled, kerr.RequestTimedOut), // the client is gone, or the broker stops: nobody is to hear of it as a fault
	pickSaying(func(e *metadata.Error) (*kerr.Error, string) { return kerr.TypedErrorForCode(e.Code), e.Message }),
}

// invalidRecords maps what the validation of a client's batch found.
func invalidRecords(e *record.Invalid) *kerr.Error {
	switch e.Kind {
	case record.KindCorrupt:
		return kerr.CorruptMessage
	case record.KindTooLarge:
		return kerr.MessageTooLarge
	case record.KindInvalidTimestamp:
		return kerr.InvalidTimestamp
	case record.KindUnsupportedCompression:
		return kerr.UnsupportedCompressionType
	case record.KindUnreadable:
		return kerr.UnknownServerError
	default:
		return kerr.InvalidRecord
	}
}

type errorRow struct {
	// match returns nil when the row is not about err.
	match func(err error) *kerr.Error
	// message is what the client is told, when it is not the error's own text.
	message func(err error) string
	// about is a sentinel error, or an errorType; errors_test.go compares it with what the lower layers export.
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

// pickSaying is pick with a message of its own; an empty one leaves the message out.
func pickSaying[E error](decide func(E) (code *kerr.Error, message string)) errorRow {
	row := pick(func(e E) *kerr.Error {
		code, _ := decide(e)
		return code
	})
	row.message = func(err error) string {
		var e E
		errors.As(err, &e)
		_, message := decide(e)
		return message
	}
	return row
}

// errorType stands for the type E in a row.
type errorType[E error] struct{}

// lookup finds the row for err.
func lookup(err error) (code *kerr.Error, row *errorRow) {
	for i := range errorRows {
		if code := errorRows[i].match(err); code != nil {
			return code, &errorRows[i]
		}
	}
	return nil, nil
}

// code is the Kafka code of err: 0 for nil, that of an error of kerr, UNKNOWN_SERVER_ERROR when the table does not know it. Where a
// Context is at hand its method of the same name is better, as it logs what the table does not know.
func code(err error) int16 {
	code, _ := errorFor(err)
	return code
}

// errorFor is code with the message that goes beside it in responses that have one: what the error itself says, nil for no error or no
// message. The text of an error that the table does not know stays in the log.
func errorFor(err error) (int16, *string) {
	if err == nil {
		return 0, nil
	}
	code, row := lookup(err)
	if row == nil {
		if !errors.As(err, &code) {
			code = kerr.UnknownServerError
		}
		return code.Code, &code.Description
	}
	message := err.Error()
	if row.message != nil {
		message = row.message(err)
	}
	if message == "" {
		return code.Code, nil
	}
	return code.Code, &message
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
	if err == nil || c.handlers == nil {
		return
	}
	if _, row := lookup(err); row != nil || errors.As(err, new(*kerr.Error)) {
		return
	}
	c.handlers.Log.Error("unexpected error while serving a request", zap.Error(err), zap.String("api", kmsg.NameForKey(c.Key)),
		zap.Int16("version", c.Version), zap.String("client", c.ClientID))
}

// KafkaError is the error of Kafka's protocol that stands for err, nil for nil.
func KafkaError(err error) error {
	if err == nil {
		return nil
	}
	if found, _ := lookup(err); found != nil {
		return found
	}
	return err
}
