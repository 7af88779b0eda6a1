// Package api holds one handler per Kafka API, the table that lists them, and the mapping from the errors of lower layers to Kafka's
// codes. A handler validates, asks one domain function per item, and fills the response in request order; it owns no storage, takes no
// locks and reads no config by its string key.
package api

import (
	"context"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/broker/config"
	"sluice/broker/delayed"
	"sluice/broker/fetchsession"
	"sluice/broker/metrics"
	"sluice/replication/metadata"
)

// Deps is what the handlers stand on. The interfaces are declared in the file of the handlers that use them; the root package wires
// the concrete types. A field a handler needs and does not find here is added here.
type Deps struct {
	NodeID      metadata.BrokerID
	Log         *zap.Logger
	NowMs       func() int64                     // wall clock in milliseconds since 1970
	Config      func() *config.Broker            // the snapshot in force
	TopicConfig func(topic string) *config.Topic // the snapshot in force, broker defaults included
	Metrics     *metrics.Broker

	Controller   Controller
	Features     []metadata.Feature  // what this build can run
	Replicas     Replicas            // 00_produce.go
	Waiting      *delayed.Purgatory  // 00_produce.go, 01_fetch.go, 21_delete_records.go
	Sessions     *fetchsession.Cache // 01_fetch.go
	Listeners    Listeners           // 03_metadata.go
	Groups       Groups              // 08_offset_commit.go
	Transactions Transactions        // transactions.go
	LogLevels    LogLevels           // alterconfigs.go; nil: log levels cannot be seen or set
}

// Controller is the cluster's truth: the newest image, and the way to change it.
type Controller interface {
	// Image is the newest metadata that this node has applied. It is immutable.
	Image() *metadata.Image
	// Do runs op on the controller machine and returns after its records are committed and Image shows them.
	Do(ctx context.Context, op metadata.Op) (kmsg.Response, error)
}

// Handlers has one method per API, in the file NN_name.go.
type Handlers struct {
	Deps
	table         index
	responseBytes [kmsg.MaxKey + 1]atomic.Int32 // size of the last response by key: a good guess for the next
	producerIDs   *producerIDs                  // 22_init_producer_id.go
	markers       *MarkerWriter                 // 27_write_txn_markers.go
	lanes         lanes                         // produce_transactional.go
	stopping      atomic.Bool
}

// New makes the handlers of table.go over deps.
func New(deps Deps) *Handlers {
	if deps.Log == nil {
		deps.Log = zap.NewNop()
	}
	h := &Handlers{Deps: deps, table: indexRows(rows)}
	h.producerIDs = &producerIDs{deps: &h.Deps}
	h.markers = &MarkerWriter{Replicas: h.Replicas, Groups: h.Groups, Waiting: h.Waiting, Image: func() *metadata.Image { return h.Controller.Image() }, NowMs: h.NowMs, Log: h.Log}
	return h
}

// Stop answers every Fetch that waits for data with what there is, and makes no further one wait. The broker stops: it finishes what is in
// flight, and nobody shall have to wait for what will not come.
func (h *Handlers) Stop() {
	h.stopping.Store(true)
	h.Waiting.Recheck()
}
