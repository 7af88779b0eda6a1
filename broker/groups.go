package broker

import (
	"errors"
	"io"

	"go.uber.org/zap"

	"sluice/broker/api"
	"sluice/broker/coordinator"
	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
	"sluice/replication/metadata"
	"sluice/replication/partition"
	"sluice/replication/replica"
)

// groups is the group coordinator of this node: it follows which partitions of __consumer_offsets the node leads.
type groups struct {
	*coordinator.Runtime[*group.Machine]
	nodeID   metadata.BrokerID
	replicas *replica.Set
	settings *settings
	log      *zap.Logger
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
	return &groups{
		nodeID: metadata.BrokerID(s.started.NodeID), replicas: replicas, settings: s, log: log,
		Runtime: coordinator.New(coordinator.Options[*group.Machine]{
			Topic:          group.Topic,
			New:            func(int32) *group.Machine { return group.New(machineConfig) },
			NowMs:          nowMs,
			WriteTimeoutMs: func() int64 { return s.broker.Load().OffsetsCommitTimeoutMs },
			LoadBytes:      s.started.OffsetsLoadBufferSize,
			Log:            log,
		}),
	}
}

// apply loads and unloads partitions as their leadership comes and goes, and forgets the offsets of deleted topics.
func (g *groups) apply(d *metadata.Delta) {
	for _, t := range d.TopicsCreated {
		if t.Name == group.Topic {
			for i := range t.Partitions {
				g.follow(t, int32(i))
			}
		}
	}
	for _, c := range d.TopicsChanged {
		if c.Topic.Name == group.Topic {
			for _, i := range c.Partitions {
				g.follow(c.Topic, i)
			}
		}
	}
	var deleted []group.DeletedTopic
	for _, t := range d.TopicsDeleted {
		if t.Name == group.Topic {
			for i, p := range t.Partitions {
				g.Unload(int32(i), p.LeaderEpoch+1)
			}
			continue
		}
		deleted = append(deleted, group.DeletedTopic{Name: t.Name, ID: t.ID})
	}
	if len(deleted) > 0 {
		g.SubmitAll("topics deleted", func(m *group.Machine, nowMs int64) (machine.Effects, error) {
			return m.TopicsDeleted(nowMs, deleted), nil
		})
	}
}

func (g *groups) follow(t *metadata.Topic, index int32) {
	p := &t.Partitions[index]
	if p.Leader != g.nodeID {
		g.Unload(index, p.LeaderEpoch)
		return
	}
	r, err := g.replicas.Get(t.Name, index)
	if err != nil {
		g.log.Error("cannot coordinate groups", zap.String("topic", t.Name), zap.Int32("partition", index), zap.Error(err))
		return
	}
	g.Load(index, p.LeaderEpoch, &coordinatorLog{replica: r, epoch: p.LeaderEpoch, maxBatchBytes: func() int { return g.settings.topic(group.Topic).api.MaxMessageBytes }})
}

func (g *groups) close() error {
	g.Close()
	return nil
}

// coordinatorLog is a replica as a coordinator writes and reads it, under the leadership for which it was loaded.
type coordinatorLog struct {
	replica       *replica.Replica
	epoch         record.LeaderEpoch
	maxBatchBytes func() int
}

var _ coordinator.Log = (*coordinatorLog)(nil)

func (l *coordinatorLog) Append(b record.Batch, v record.Verification, nowMs int64) (int64, error) {
	result, err := l.replica.Append(b, l.query(v), record.Coordinator, nowMs)
	return result.LastOffset, api.KafkaError(err)
}

func (l *coordinatorLog) AppendMarker(b record.Batch, transactionVersion int16, nowMs int64) (int64, error) {
	result, err := l.replica.AppendMarker(b, l.query(record.Verification{}), transactionVersion, nowMs)
	return result.LastOffset, api.KafkaError(err)
}

func (l *coordinatorLog) query(v record.Verification) partition.AppendQuery {
	const all = -1 // what a client was told must not be lost with one replica
	return partition.AppendQuery{RequiredAcks: all, LeaderEpoch: l.epoch, Verification: v}
}

func (l *coordinatorLog) Read(fetchOffset int64, maxBytes int) ([]byte, error) {
	_, slice, err := l.replica.Read(partition.ReadQuery{
		Offset: fetchOffset, MaxBytes: maxBytes, AtLeastOne: true, LeaderEpoch: l.epoch, LastFetchedEpoch: record.NoLeaderEpoch, Isolation: partition.ReadLogEnd,
	})
	if err != nil {
		return nil, api.KafkaError(err)
	}
	defer slice.Close()
	batches := make([]byte, slice.Bytes)
	if len(batches) == 0 {
		return nil, nil
	}
	if n, err := slice.File.ReadAt(batches, slice.Position); err != nil && (!errors.Is(err, io.EOF) || n < len(batches)) {
		return nil, err
	}
	return batches, nil
}

func (l *coordinatorLog) Offsets() (logStartOffset, logEndOffset, highWatermark int64) {
	return l.replica.LogStartOffset(), l.replica.LogEndOffset(), l.replica.HighWatermark()
}

func (l *coordinatorLog) Watch(f func(highWatermark int64)) (cancel func()) {
	return l.replica.OnCommit(f)
}

func (l *coordinatorLog) MaxBatchBytes() int { return l.maxBatchBytes() }
