package broker

import (
	"go.uber.org/zap"

	"sluice/broker/coordinator"
	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
	"sluice/replication/metadata"
	"sluice/replication/replica"
)

// groups is the group coordinator of this node.
type groups struct {
	*coordinator.Runtime[*group.Machine]
	leads *leadership
	log   *zap.Logger
}

func newGroups(s *settings, replicas *replica.Set, nowMs func() int64, log *zap.Logger) *groups {
	machineConfig := func() *group.Config {
		b := s.broker.Load()
		return &group.Config{
			InitialRebalanceDelayMs: int32(b.GroupInitialRebalanceDelayMs),
			MaxSize:                 b.GroupMaxSize,
			OffsetMetadataMaxSize:   b.OffsetMetadataMaxBytes,
			OffsetsRetentionMs:      b.OffsetsRetentionMinutes * 60_000,
			OffsetsRetentionCheckMs: b.OffsetsRetentionCheckIntervalMs,
			MaxBatchBytes:           s.topic(group.Topic).api.MaxMessageBytes,
		}
	}
	runtime := coordinator.New(coordinator.Options[*group.Machine]{
		Topic:          group.Topic,
		New:            func(int32) *group.Machine { return group.New(machineConfig) },
		NowMs:          nowMs,
		WriteTimeoutMs: func() int64 { return s.broker.Load().OffsetsCommitTimeoutMs },
		LoadBytes:      s.started.OffsetsLoadBufferSize,
		Log:            log,
	})
	return &groups{Runtime: runtime, leads: newLeadership(group.Topic, runtime, s, replicas, log), log: log}
}

// apply loads and unloads partitions as their leadership comes and goes, and forgets the offsets of deleted topics.
func (g *groups) apply(d *metadata.Delta) {
	g.leads.apply(d)
	var deleted []group.DeletedTopic
	for _, t := range d.TopicsDeleted {
		if t.Name != group.Topic {
			deleted = append(deleted, group.DeletedTopic{Name: t.Name, ID: t.ID})
		}
	}
	if len(deleted) > 0 {
		g.SubmitAll("topics deleted", func(m *group.Machine, nowMs int64) (machine.Effects, error) {
			return m.TopicsDeleted(nowMs, deleted), nil
		})
	}
}

func (g *groups) close() error {
	g.Close()
	return nil
}
