// Package coordinator runs coordinator machines over the partitions of an internal topic: it loads a machine from a partition's log when
// this node becomes its leader, runs operations on it one at a time, appends the records that they want, and answers once these are
// committed.
package coordinator

import (
	"context"

	"go.uber.org/zap"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// Machine is a coordinator's state. Only the runtime calls it, never from two goroutines at a time.
type Machine interface {
	// Parse decodes a record of the log; machine.ErrUnknownRecord when its type is not known. Slices may alias key and value.
	Parse(key, value []byte) (machine.Record, error)
	// Replay applies a record, and keeps no slice of it that the caller may change.
	Replay(offset int64, p machine.Producer, r machine.Record)
	// ReplayEndTxn applies the end of a producer's transaction.
	ReplayEndTxn(p machine.Producer, commit bool)
	// Loaded is called once, after all of the log has been replayed. Timers start here.
	Loaded(nowMs int64) machine.Effects
	// Deadline is when Expire wants to be called next.
	Deadline() (atMs int64, ok bool)
	// Expire runs one timer that is due at nowMs; false when none is.
	Expire(nowMs int64) (machine.Effects, bool)
}

// Log is one partition of the internal topic, as its leader sees it.
type Log interface {
	// Append writes one batch as the leader and returns the offset of its last record. The batch may be reused afterwards.
	Append(b record.Batch, nowMs int64) (lastOffset int64, err error)
	// Read returns whole batches from the one that holds fetchOffset on, up to the log end offset: at least one batch even when it is
	// larger than maxBytes, none at the log end.
	Read(fetchOffset int64, maxBytes int) ([]byte, error)
	// Offsets returns the log start offset (the first readable), the log end offset and the high watermark (both exclusive).
	Offsets() (logStartOffset, logEndOffset, highWatermark int64)
	// Watch has f called after each advance of the high watermark (exclusive), from any goroutine, until cancel is called. f does not block.
	Watch(f func(highWatermark int64)) (cancel func())
	// MaxBatchBytes is the largest batch that Append takes (max.message.bytes of the topic).
	MaxBatchBytes() int
}

// Options set up a Runtime.
type Options[M Machine] struct {
	Topic          string                  // name of the internal topic, for logs
	New            func(partition int32) M // a machine that has seen no record
	NowMs          func() int64
	WriteTimeoutMs func() int64 // how long a reply waits for its records to be committed (offsets.commit.timeout.ms)
	LoadBytes      int          // how much is read at a time when loading (offsets.load.buffer.size)
	Log            *zap.Logger
}

// A Runtime holds the machines of all partitions that this node leads.
type Runtime[M Machine] struct{}

// New returns a runtime without partitions.
func New[M Machine](o Options[M]) *Runtime[M] { panic("not written yet") }

// Load makes this node the coordinator of a partition: it reads the log and serves once all is replayed. An empty log serves when Load returns.
func (rt *Runtime[M]) Load(partition int32, epoch record.LeaderEpoch, log Log) {
	panic("not written yet")
}

// Unload ends this node's part as coordinator of a partition, unless it has been loaded under a later epoch.
func (rt *Runtime[M]) Unload(partition int32, epoch record.LeaderEpoch) { panic("not written yet") }

// Submit runs op on the partition's machine and calls done once, from any goroutine: with op's own error, or when its records and all
// before them are committed, or with the failure of that.
func (rt *Runtime[M]) Submit(partition int32, op func(m M, nowMs int64) (machine.Effects, error), done func(error)) {
	panic("not written yet")
}

// Park is Submit for a request that another operation may answer: done gets the Answer for the token that op was given.
func (rt *Runtime[M]) Park(partition int32, op func(m M, nowMs int64, t machine.Token) (machine.Effects, error), done func(response any, err error)) {
	panic("not written yet")
}

// SubmitAll runs op on every partition that serves or loads, once it serves.
func (rt *Runtime[M]) SubmitAll(op func(m M, nowMs int64) (machine.Effects, error), done func(partition int32, err error)) {
	panic("not written yet")
}

// Each calls f on every partition that serves, one after the other, and returns when all have been called. f only reads, and briefly.
func (rt *Runtime[M]) Each(ctx context.Context, f func(partition int32, m M)) error {
	panic("not written yet")
}

// Partitions are the partitions that serve, ascending.
func (rt *Runtime[M]) Partitions() []int32 { panic("not written yet") }

// Close fails what is parked and stops all timers.
func (rt *Runtime[M]) Close() { panic("not written yet") }
