package api

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/server"
	"sluice/replication/metadata"
)

// faultyController is a Controller with a fault in every operation.
type faultyController struct{ oneImage }

func (faultyController) Do(context.Context, metadata.Op) (kmsg.Response, error) { panic("a fault") }

// A fault in what runs beside the reader ends the connection that asked for it, and nobody else's.
func TestBeside_Fault(t *testing.T) {
	h := frontHandlers()
	h.Controller = faultyController{oneImage{h.Controller.Image()}}
	dial := serve(t, h, server.Limits{})
	bystander := dial()
	asking := dial()
	request := kmsg.NewPtrCreatePartitionsRequest()
	request.TimeoutMillis = 1000
	asking.send(kmsg.CreatePartitions, 0, 1, request.AppendTo(nil))
	if !asking.closed() {
		t.Error("the connection is not closed")
	}
	bystander.send(kmsg.ApiVersions, 3, 1, apiVersionsBody(3, nil))
	bystander.apiVersionsResponse(3, 1)
}
