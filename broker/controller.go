package broker

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/api"
	"sluice/replication/controller"
	"sluice/replication/metadata"
)

// clusterController is the controller as the handlers know it: its failures are Kafka's errors.
type clusterController struct{ *controller.Controller }

var _ api.Controller = clusterController{}

// Do runs op on the controller machine and returns after its records are committed and Image shows them.
func (c clusterController) Do(ctx context.Context, op metadata.Op) (kmsg.Response, error) {
	response, err := c.Controller.Do(ctx, op)
	var fault *controller.Fault
	switch {
	case errors.Is(err, controller.ErrNotController):
		return nil, kerr.NotController
	case errors.As(err, &fault):
		return nil, kerr.KafkaStorageError
	}
	return response, err
}
