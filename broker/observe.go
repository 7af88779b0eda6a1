package broker

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"sluice/broker/admin"
	"sluice/broker/coordinator/group"
	"sluice/broker/metrics"
	"sluice/replication/metadata"
	"sluice/replication/replica"
)

// openAdmin serves metrics and health, unless it is turned off.
func (b *Broker) openAdmin() error {
	if b.config.Admin == "" || b.config.Admin == "off" {
		return nil
	}
	var err error
	b.admin, err = admin.New(admin.Options{
		Address: b.config.Admin, Metrics: b.metrics.Handler(), Ready: b.Ready, Log: b.log,
		Version: admin.Version{Version: b.config.Version},
	})
	if err != nil {
		return fmt.Errorf("the admin server cannot listen on %s (another address: --admin HOST:PORT, none: --admin off): %w", b.config.Admin, err)
	}
	b.closers = append(b.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return b.admin.Shutdown(ctx)
	})
	b.admin.Serve()
	return nil
}

// groupWalkTimeout bounds how long a scrape waits for the partitions of the group coordinator.
const groupWalkTimeout = 5 * time.Second

// metricsState is what a scrape walks.
func metricsState(nodeID metadata.BrokerID, image func() *metadata.Image, replicas *replica.Set, g *groups) metrics.State {
	return metrics.State{
		Partitions: func(yield func(metrics.Partition) bool) {
			for t := range image().Topics() {
				for i := range t.Partitions {
					p := &t.Partitions[i]
					r, err := replicas.Get(t.Name, int32(i))
					if err != nil {
						continue // of another broker, or its storage is offline
					}
					if !yield(metrics.Partition{
						Topic: t.Name, Partition: int32(i), SizeBytes: r.SizeBytes(),
						LogStartOffset: r.LogStartOffset(), LogEndOffset: r.LogEndOffset(), HighWatermark: r.HighWatermark(),
						Leader: p.Leader == nodeID, UnderReplicated: p.Leader == nodeID && len(p.ISR) < len(p.Replicas),
					}) {
						return
					}
				}
			}
		},
		Cleaner: func() metrics.Cleaner {
			c := replicas.Cleaner()
			return metrics.Cleaner{
				DirtiestRatio: c.DirtiestRatio, LastRunMs: c.LastRunMs, Uncleanable: c.Uncleanable, Logs: c.Logs,
				ReadBytes: c.ReadBytes, WrittenBytes: c.WrittenBytes, RemovedRecords: c.ReadRecords - c.KeptRecords,
			}
		},
		Groups: func(yield func(metrics.Group) bool) {
			var all []metrics.Group
			g.walk(func(m *group.Machine) {
				for one := range m.Summaries() {
					all = append(all, metrics.Group{Group: one.Group, State: one.State, Members: one.Members})
				}
			})
			each(all, yield)
		},
		Lags: func(yield func(metrics.Lag) bool) {
			var all []metrics.Lag
			g.walk(func(m *group.Machine) {
				for c := range m.Commits() {
					if r, err := replicas.Get(c.Topic, c.Partition); err == nil {
						all = append(all, metrics.Lag{Group: c.Group, Topic: c.Topic, Partition: c.Partition, Records: max(0, r.HighWatermark()-c.Offset)})
					}
				}
			})
			each(all, yield)
		},
	}
}

// each yields what was gathered: a slow reader of the metrics must not hold up a coordinator.
func each[T any](all []T, yield func(T) bool) {
	for _, one := range all {
		if !yield(one) {
			return
		}
	}
}

func (g *groups) walk(visit func(m *group.Machine)) {
	ctx, cancel := context.WithTimeout(context.Background(), groupWalkTimeout)
	defer cancel()
	if err := g.Each(ctx, func(_ int32, m *group.Machine) { visit(m) }); err != nil {
		g.log.Warn("the metrics of groups are incomplete", zap.Error(err))
	}
}
