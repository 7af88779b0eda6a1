package broker

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/broker/config"
	"sluice/protocol/uuid"
	"sluice/replication/controller"
	"sluice/replication/metadata"
	"sluice/storage/logdir"
)

// registration is this broker's membership in the cluster: it registers once, then sends heartbeats, through the same operations that a
// controller serves to other brokers.
type registration struct {
	nodeID     metadata.BrokerID
	interval   time.Duration
	controller *controller.Controller
	dirs       logdir.Dirs
	log        *zap.Logger

	epoch    atomic.Int64 // metadata.BrokerEpoch
	unfenced atomic.Bool
}

func newRegistration(c *config.Broker, ctl *controller.Controller, dirs logdir.Dirs, log *zap.Logger) *registration {
	r := &registration{nodeID: metadata.BrokerID(c.NodeID), interval: time.Duration(c.BrokerHeartbeatIntervalMs) * time.Millisecond, controller: ctl, dirs: dirs, log: log}
	r.epoch.Store(int64(metadata.NoBrokerEpoch))
	return r
}

func (r *registration) brokerEpoch() metadata.BrokerEpoch {
	return metadata.BrokerEpoch(r.epoch.Load())
}

// register makes this process the cluster's broker of its id. listeners are what clients are told, with the ports that were bound.
func (r *registration) register(ctx context.Context, c *config.Broker, listeners []config.Listener, clusterID string, random io.Reader) error {
	incarnation, err := uuid.New(random)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrBrokerRegistrationRequest()
	req.Version = req.MaxVersion()
	req.BrokerID, req.ClusterID, req.IncarnationID = int32(r.nodeID), clusterID, incarnation
	if c.BrokerRack != "" {
		req.Rack = &c.BrokerRack
	}
	for _, l := range listeners {
		registered := kmsg.NewBrokerRegistrationRequestListener()
		registered.Name, registered.Host, registered.Port, registered.SecurityProtocol = l.Name, l.Host, uint16(l.Port), l.SecurityProtocol.ID()
		if l.Wildcard() {
			registered.Host = "localhost" // clients are told the address that they have reached; this one is for tools that read the metadata log
		}
		req.Listeners = append(req.Listeners, registered)
	}
	for _, f := range metadata.Served(features) {
		supported := kmsg.NewBrokerRegistrationRequestFeature()
		supported.Name, supported.MinSupportedVersion, supported.MaxSupportedVersion = f.Name, f.Min, f.Max
		req.Features = append(req.Features, supported)
	}
	req.PreviousBrokerEpoch = -1
	previous := map[int64]bool{}
	for _, d := range r.dirs.Live() {
		req.LogDirs = append(req.LogDirs, d.ID())
		if d.CleanShutdown() {
			previous[d.PreviousBrokerEpoch()] = true
		} else {
			previous[-1] = true
		}
	}
	if len(previous) == 1 {
		req.PreviousBrokerEpoch = slices.Collect(maps.Keys(previous))[0]
	}
	slices.SortFunc(req.LogDirs, func(a, b [16]byte) int { return slices.Compare(a[:], b[:]) })
	reply, err := r.controller.Do(ctx, metadata.RegisterBroker(req))
	if err != nil {
		return fmt.Errorf("register the broker: %w", err)
	}
	resp := reply.(*kmsg.BrokerRegistrationResponse)
	if resp.ErrorCode != 0 {
		return fmt.Errorf("register the broker: %w", kerr.ErrorForCode(resp.ErrorCode))
	}
	r.epoch.Store(resp.BrokerEpoch)
	return nil
}

// beat sends one heartbeat.
func (r *registration) beat(ctx context.Context, wantShutdown bool) (*kmsg.BrokerHeartbeatResponse, error) {
	req := kmsg.NewPtrBrokerHeartbeatRequest()
	req.Version = req.MaxVersion()
	req.BrokerID, req.BrokerEpoch = int32(r.nodeID), r.epoch.Load()
	req.CurrentMetadataOffset = r.controller.Image().Offset()
	req.WantShutdown = wantShutdown
	for _, d := range r.dirs {
		if d.Failure() != nil {
			req.OfflineLogDirs = append(req.OfflineLogDirs, d.ID())
		}
	}
	reply, err := r.controller.Do(ctx, metadata.BrokerHeartbeat(req))
	if err != nil {
		return nil, err
	}
	resp := reply.(*kmsg.BrokerHeartbeatResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	r.unfenced.Store(!resp.IsFenced)
	return resp, nil
}

// unfence sends heartbeats until the controller lets this broker lead partitions.
func (r *registration) unfence(ctx context.Context) error {
	for !r.unfenced.Load() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := r.beat(ctx, false); err != nil {
			return fmt.Errorf("broker heartbeat: %w", err)
		}
	}
	return nil
}

// run sends heartbeats until ctx ends.
func (r *registration) run(ctx context.Context) error {
	tick := time.NewTicker(r.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, err := r.beat(ctx, false); err != nil && ctx.Err() == nil {
			r.log.Warn("broker heartbeat failed", zap.Error(err))
		}
	}
}

// leave hands this broker's leaderships back: a controlled shutdown.
func (r *registration) leave(ctx context.Context) error {
	for {
		resp, err := r.beat(ctx, true)
		if err != nil {
			return fmt.Errorf("controlled shutdown: %w", err)
		}
		if resp.ShouldShutdown {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("controlled shutdown: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
