package group

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// codeOf is the Kafka error code of an error made by this package: a *kerr.Error, or nil.
func codeOf(err error) int16 {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*kerr.Error](err); ok {
		return e.Code
	}
	return kerr.UnknownServerError.Code
}

// OperationError is what a client is told when the coordinator's log, and not the machine, failed an operation: the codes that a producer
// would get are replaced by those that a member of a group understands. All others stay.
func OperationError(err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*kerr.Error](err)
	if !ok {
		return err
	}
	switch e {
	case kerr.NetworkException:
		return kerr.CoordinatorLoadInProgress
	case kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.RequestTimedOut:
		return kerr.CoordinatorNotAvailable
	case kerr.NotLeaderForPartition, kerr.KafkaStorageError:
		return kerr.NotCoordinator
	case kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidFetchSize:
		return kerr.UnknownServerError
	}
	return e
}
