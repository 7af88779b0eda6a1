package broker

import (
	"errors"
	"io"
	"sync"

	"go.uber.org/zap"

	"sluice/broker/api"
	"sluice/broker/coordinator"
	"sluice/protocol/record"
	"sluice/replication/metadata"
	"sluice/replication/partition"
	"sluice/replication/replica"
)

// A loader is a coordinator's runtime: it serves the partitions that it has loaded.
type loader interface {
	Load(partition int32, epoch record.LeaderEpoch, log coordinator.Log)
	Unload(partition int32, epoch record.LeaderEpoch)
}

// leadership follows which partitions of a coordinator's topic this node leads, and has them loaded and unloaded.
type leadership struct {
	topic    string
	runtime  loader
	nodeID   metadata.BrokerID
	settings *settings
	replicas *replica.Set
	log      *zap.Logger
	epochs   sync.Map // int32 → record.LeaderEpoch: under which a partition was loaded last
}

func newLeadership(topic string, runtime loader, s *settings, replicas *replica.Set, log *zap.Logger) *leadership {
	return &leadership{topic: topic, runtime: runtime, nodeID: metadata.BrokerID(s.started.NodeID), settings: s, replicas: replicas, log: log}
}

// apply loads and unloads partitions as their leadership comes and goes.
func (l *leadership) apply(d *metadata.Delta) {
	for _, t := range d.TopicsCreated {
		if t.Name == l.topic {
			for i := range t.Partitions {
				l.follow(t, int32(i))
			}
		}
	}
	for _, c := range d.TopicsChanged {
		if c.Topic.Name == l.topic {
			for _, i := range c.Partitions {
				l.follow(c.Topic, i)
			}
		}
	}
	for _, t := range d.TopicsDeleted {
		if t.Name == l.topic {
			for i, p := range t.Partitions {
				l.runtime.Unload(int32(i), p.LeaderEpoch+1)
			}
		}
	}
}

func (l *leadership) follow(t *metadata.Topic, index int32) {
	p := &t.Partitions[index]
	if p.Leader != l.nodeID {
		l.runtime.Unload(index, p.LeaderEpoch)
		return
	}
	r, err := l.replicas.Get(t.Name, index)
	if err != nil {
		l.log.Error("cannot coordinate", zap.String("topic", t.Name), zap.Int32("partition", index), zap.Error(err))
		return
	}
	l.epochs.Store(index, p.LeaderEpoch)
	l.runtime.Load(index, p.LeaderEpoch, &coordinatorLog{replica: r, epoch: p.LeaderEpoch, maxBatchBytes: func() int { return l.settings.topic(l.topic).api.MaxMessageBytes }})
}

// epoch is the leader epoch under which a partition was loaded last.
func (l *leadership) epoch(index int32) record.LeaderEpoch {
	if e, ok := l.epochs.Load(index); ok {
		return e.(record.LeaderEpoch)
	}
	return record.NoLeaderEpoch
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
