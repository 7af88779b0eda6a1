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

// recordError is what the members of a classic group are told when a record of the group was not committed.
func recordError(err error) error {
	e, ok := errors.AsType[*kerr.Error](err)
	if !ok {
		return kerr.UnknownServerError
	}
	switch e {
	case kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.RequestTimedOut:
		return kerr.CoordinatorNotAvailable
	case kerr.NotLeaderForPartition, kerr.KafkaStorageError:
		return kerr.NotCoordinator
	case kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidFetchSize:
		return kerr.UnknownServerError
	}
	return e
}
