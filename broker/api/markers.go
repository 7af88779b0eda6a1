package api

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"sluice/broker/coordinator"
	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
	"sluice/broker/coordinator/txn"
	"sluice/broker/delayed"
	"sluice/protocol/record"
	"sluice/replication/metadata"
	"sluice/replication/partition"
)

// MarkerWriter writes end markers of transactions to the partitions that this node leads: for its own coordinator, and for others.
type MarkerWriter struct {
	Replicas Replicas
	Groups   Groups
	Waiting  *delayed.Purgatory
	Image    func() *metadata.Image
	NowMs    func() int64
	Log      *zap.Logger
}

// MarkerAppender is what a replica offers for markers.
type MarkerAppender interface {
	// AppendMarker appends the end marker of a transaction, of that version of transactions.
	AppendMarker(b record.Batch, q partition.AppendQuery, transactionVersion int16, nowMs int64) (partition.AppendResult, error)
	// FlushesFirst says whether an append waits for the disk.
	FlushesFirst() bool
}

// markerTimeout is how long a marker waits to be committed before it counts as failed, and is tried again.
const markerTimeout = 30 * time.Second

// manyMarkers is from how many partitions on markers are not written in the goroutine of who asks.
const manyMarkers = 32

// A marker is the end of a transaction, for any partition.
type marker struct {
	producer         machine.Producer
	coordinatorEpoch int32
	commit           bool
	version          int16
}

// CarryOut writes the markers of a transaction that this node's coordinator has decided. done gets the partitions that are left to be tried
// again; it may be called before CarryOut returns.
func (w *MarkerWriter) CarryOut(m txn.Markers, coordinatorEpoch record.LeaderEpoch, done func(left txn.Partitions)) {
	of := marker{producer: m.Producer, coordinatorEpoch: int32(coordinatorEpoch), commit: m.Commit, version: m.Version}
	count, slow := 0, false
	for _, t := range m.Partitions {
		count += len(t.Partitions)
		slow = slow || w.isSlow(t)
	}
	results := make([]error, count)
	all := newCountdown(count, func() { done(w.left(m, results)) })
	write := func() {
		i := 0
		for _, t := range m.Partitions {
			for _, p := range t.Partitions {
				result := &results[i]
				i++
				w.write(of, t.Topic, p, func(err error) {
					*result = err
					all.done()
				})
			}
		}
	}
	if slow || count > manyMarkers {
		go write()
	} else {
		write()
	}
}

// isSlow says whether writing to a partition means waiting for the disk.
func (w *MarkerWriter) isSlow(t txn.TopicPartitions) bool {
	if t.Topic == group.Topic {
		return false // its coordinator has a goroutine of its own
	}
	for _, p := range t.Partitions {
		if r, err := w.Replicas.Get(t.Topic, p); err == nil && r.FlushesFirst() {
			return true
		}
	}
	return false
}

// left are the partitions whose markers are to be tried again.
func (w *MarkerWriter) left(m txn.Markers, results []error) (left txn.Partitions) {
	i := 0
	for _, t := range m.Partitions {
		var again []int32
		for _, p := range t.Partitions {
			if err := results[i]; err != nil && !w.settled(m, t.Topic, p, err) {
				again = append(again, p)
			}
			i++
		}
		if len(again) > 0 {
			left = append(left, txn.TopicPartitions{Topic: t.Topic, Partitions: again})
		}
	}
	return left
}

// settled says whether a partition needs no marker any more although none could be written.
func (w *MarkerWriter) settled(m txn.Markers, topic string, partition int32, err error) bool {
	fields := []zap.Field{
		zap.String("transactionalId", m.TransactionalID), zap.String("topic", topic), zap.Int32("partition", partition),
		zap.Int64("producerId", m.Producer.ID), zap.Int16("producerEpoch", m.Producer.Epoch), zap.Error(err),
	}
	t, exists := w.Image().Topic(topic)
	switch {
	case !exists || int(partition) >= len(t.Partitions):
		return true // deleted, with all that was open in it
	case errors.Is(err, kerr.InvalidProducerEpoch), errors.Is(err, kerr.TransactionCoordinatorFenced):
		// What was open there has been ended by a later epoch, of the producer or of its coordinator.
		w.Log.Warn("a transaction's end marker was refused, and is not needed", fields...)
		return true
	}
	w.Log.Info("a transaction's end marker could not be written, and is tried again", fields...)
	return false
}

// write writes one marker. done gets a *kerr.Error as WriteTxnMarkers answers it, or nil.
func (w *MarkerWriter) write(m marker, topic string, index int32, done func(error)) {
	if topic == group.Topic {
		w.Groups.EndTransaction(index, coordinator.EndTransaction{
			Producer: m.producer, CoordinatorEpoch: m.coordinatorEpoch, Commit: m.commit, Version: m.version,
		}, func(err error) {
			switch {
			case errors.Is(err, kerr.CoordinatorNotAvailable), errors.Is(err, kerr.CoordinatorLoadInProgress), errors.Is(err, kerr.NotCoordinator):
				err = kerr.NotLeaderForPartition // what the transaction's coordinator understands: not yet
			}
			done(err)
		})
		return
	}
	if isInternalTopic(topic) {
		done(kerr.TopicAuthorizationFailed) // a coordinator's log is written by its coordinator only
		return
	}
	replica, err := w.Replicas.Get(topic, index)
	if err != nil {
		done(KafkaError(err))
		return
	}
	nowMs := w.NowMs()
	b, err := record.EndTxnBatch(record.ProducerID(m.producer.ID), record.ProducerEpoch(m.producer.Epoch),
		record.EndTxnMarker{Commit: m.commit, CoordinatorEpoch: m.coordinatorEpoch}, nowMs)
	if err != nil {
		done(err)
		return
	}
	const all = -1
	result, err := replica.AppendMarker(b, partition.AppendQuery{RequiredAcks: all, LeaderEpoch: record.NoLeaderEpoch}, m.version, nowMs)
	if err != nil {
		done(KafkaError(err))
		return
	}
	if result.HighWatermark > result.LastOffset {
		done(nil)
		return
	}
	w.Waiting.Park(context.Background(), &markerCommit{replica: replica, endOffset: result.LastOffset + 1, done: done}, []delayed.Key{delayed.Key(replica.Serial())}, markerTimeout)
}

// markerCommit waits until a marker is committed.
type markerCommit struct {
	replica   Replica
	endOffset int64 // exclusive
	done      func(error)
	err       error
}

// Ready implements delayed.Operation.
func (w *markerCommit) Ready(delayed.Key) bool {
	committed, err := w.replica.Committed(w.endOffset)
	w.err = KafkaError(err)
	return committed || err != nil
}

// Finish implements delayed.Operation.
func (w *markerCommit) Finish(o delayed.Outcome) {
	if o != delayed.Satisfied {
		w.err = kerr.RequestTimedOut
	}
	w.done(w.err)
}
