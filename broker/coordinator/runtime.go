// Package coordinator runs coordinator machines over the partitions of an internal topic: it loads a machine from a partition's log when
// this node becomes its leader, runs operations on it one at a time, appends the records that they want, and answers once these are
// committed.
//
// A partition is an actor: whoever queues the first operation starts a goroutine that runs until the queue is empty. So idle partitions
// cost a little memory and a timer, busy ones do not wait for each other, and operations that queue up while a batch is being written
// share the next batch.
package coordinator

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// Machine is a coordinator's state. Only the runtime calls it, never from two goroutines at a time.
type Machine interface {
	// Parse decodes a record of the log; machine.ErrUnknownRecord when its type is not known. The result holds no slice of key or value.
	Parse(key, value []byte) (machine.Record, error)
	// Replay applies a record.
	Replay(offset int64, p machine.Producer, r machine.Record)
	// ReplayEndTxn applies the end of a producer's transaction.
	ReplayEndTxn(p machine.Producer, commit bool)
	// Loaded is called once, after all of the log has been replayed. Timers start here.
	Loaded(nowMs int64) machine.Effects
	// Deadline is when Expire wants to be called next, in ms since the epoch.
	Deadline() (atMs int64, ok bool)
	// Expire runs one timer that is due at nowMs; false when none is.
	Expire(nowMs int64) (machine.Effects, bool)
	// ClockMoved says that the clock behind nowMs was set by so much, or went on while the computer slept. Timers keep their distance.
	ClockMoved(byMs int64)
}

// Log is one partition of the internal topic, as its leader sees it. Its errors say with a *kerr.Error what went wrong where Kafka has a
// code for it: NotLeaderForPartition, KafkaStorageError, NotEnoughReplicas, MessageTooLarge …
type Log interface {
	// Append writes one batch as the leader and returns the offset of its last record. The batch may be reused afterwards. v is for a batch of
	// a transaction.
	Append(b record.Batch, v record.Verification, nowMs int64) (lastOffset int64, err error)
	// AppendMarker is Append for the end marker of a transaction, of that version of transactions.
	AppendMarker(b record.Batch, transactionVersion int16, nowMs int64) (lastOffset int64, err error)
	// Read returns batches from the one that holds fetchOffset on: the first is whole even when it is larger than maxBytes, the last may
	// be cut short. Below the log end offset there is always one.
	Read(fetchOffset int64, maxBytes int) ([]byte, error)
	// Offsets returns the log start offset (the first readable), the log end offset and the high watermark (both exclusive).
	Offsets() (logStartOffset, logEndOffset, highWatermark int64)
	// Watch has f called after each advance of the high watermark (exclusive), from any goroutine, also from within Append, until cancel
	// is called. f does not block.
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
	BaseSequence   int32        // in the header of batches: Kafka's coordinators do not agree on it
	// Inline runs an operation on an idle partition in the goroutine that submits it, which must not mind an append: a hop less where each
	// request of a client waits for the one before.
	Inline bool
	Log    *zap.Logger
}

// Bounds of the runtime.
const (
	maxQueued      = 1 << 16 // operations that wait for one partition; further ones fail with COORDINATOR_NOT_AVAILABLE
	maxLoads       = 2       // partitions that are loaded at the same time; the others wait
	maxLoadedBatch = 1 << 28 // bytes that a batch may decompress to when it is loaded
)

// maxDriftMs is how far the wall clock may be from the monotonic one before timers are moved. On a laptop that wakes up, members of groups
// must not be thrown out for the hours that nobody was awake.
const maxDriftMs = 1000

// A Runtime holds the machines of all partitions that this node leads.
type Runtime[M Machine] struct {
	options Options[M]
	loads   chan struct{} // holds a token for each partition that is being loaded
	started time.Time     // for its monotonic reading

	mu     sync.RWMutex
	shards map[int32]*shard[M]
}

// New returns a runtime without partitions.
func New[M Machine](o Options[M]) *Runtime[M] {
	return &Runtime[M]{options: o, loads: make(chan struct{}, maxLoads), started: time.Now(), shards: map[int32]*shard[M]{}}
}

// Load makes this node the coordinator of a partition: it reads the log and serves once all is replayed. A partition with an empty log
// serves when Load returns. A second call under the same epoch does nothing, one under a later epoch loads anew.
func (rt *Runtime[M]) Load(partition int32, epoch record.LeaderEpoch, log Log) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if s := rt.shards[partition]; s != nil {
		if s.epoch >= epoch {
			return
		}
		s.post(event[M]{kind: closeEvent})
	}
	s := newShard(rt, partition, epoch, log)
	rt.shards[partition] = s
	s.load()
}

// Unload ends this node's part as coordinator of a partition. epoch is the one under which another node leads now: a partition that has
// been loaded under a later one stays.
func (rt *Runtime[M]) Unload(partition int32, epoch record.LeaderEpoch) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if s := rt.shards[partition]; s != nil && s.epoch <= epoch {
		delete(rt.shards, partition)
		s.post(event[M]{kind: closeEvent})
	}
}

func (rt *Runtime[M]) shard(partition int32) *shard[M] {
	rt.mu.RLock()
	defer rt.mu.RUnlock()
	return rt.shards[partition]
}

// Submit runs op on the partition's machine and calls done once: with op's own error, or when its records and all before them are
// committed, or with the failure of that: a *kerr.Error, NotCoordinator and CoordinatorLoadInProgress among them. done is called from
// any goroutine, also from within Submit, and must not block.
func (rt *Runtime[M]) Submit(partition int32, op func(m M, nowMs int64) (machine.Effects, error), done func(error)) {
	s := rt.shard(partition)
	if s == nil || !s.post(event[M]{kind: opEvent, op: op, done: done}) {
		done(kerr.NotCoordinator)
	}
}

// An EndTransaction is the end of a transaction that has records in a partition.
type EndTransaction struct {
	Producer         machine.Producer
	CoordinatorEpoch int32 // of the transaction's coordinator
	Commit           bool
	Version          int16 // of transactions
}

// EndTransaction appends the end marker of a transaction and applies it. done is called as by Submit; with the log's error when it refuses the
// marker, which changes nothing.
func (rt *Runtime[M]) EndTransaction(partition int32, e EndTransaction, done func(error)) {
	s := rt.shard(partition)
	if s == nil || !s.post(event[M]{kind: endEvent, end: e, done: done}) {
		done(kerr.NotCoordinator)
	}
}

// Park is Submit for a request that another operation may answer: done gets the Answer for the token that op was given.
func (rt *Runtime[M]) Park(partition int32, op func(m M, nowMs int64, t machine.Token) (machine.Effects, error), done func(response any, err error)) {
	s := rt.shard(partition)
	if s == nil || !s.post(event[M]{kind: parkEvent, parkOp: op, parked: done}) {
		done(nil, kerr.NotCoordinator)
	}
}

// SubmitAll is Submit on every partition that serves, and on those that are being loaded once they serve. An error is logged.
func (rt *Runtime[M]) SubmitAll(name string, op func(m M, nowMs int64) (machine.Effects, error)) {
	rt.mu.RLock()
	defer rt.mu.RUnlock()
	for partition, s := range rt.shards {
		s.post(event[M]{kind: deferrableEvent, op: op, done: func(err error) {
			if err != nil {
				rt.options.Log.Error("operation on all partitions failed", zap.String("operation", name),
					zap.String("topic", rt.options.Topic), zap.Int32("partition", partition), zap.Error(err))
			}
		}})
	}
}

// Each calls f on every partition that serves, one after the other, and returns when all have been called. f only reads, and briefly:
// the partition stands still meanwhile.
func (rt *Runtime[M]) Each(ctx context.Context, f func(partition int32, m M)) error {
	for _, partition := range rt.Partitions() {
		s := rt.shard(partition)
		if s == nil {
			continue
		}
		called := make(chan struct{})
		look := func(m M) { f(partition, m) }
		if !s.post(event[M]{kind: lookEvent, look: look, looked: func() { close(called) }}) {
			continue
		}
		select {
		case <-called:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Partitions are the partitions of which this node is the coordinator, ascending; some may still be loading.
func (rt *Runtime[M]) Partitions() []int32 {
	rt.mu.RLock()
	defer rt.mu.RUnlock()
	return slices.Sorted(maps.Keys(rt.shards))
}

// Close unloads all partitions: what is parked fails, timers stop. No log is written once it has returned.
func (rt *Runtime[M]) Close() {
	rt.mu.Lock()
	shards := rt.shards
	rt.shards = map[int32]*shard[M]{}
	rt.mu.Unlock()
	for _, s := range shards {
		s.post(event[M]{kind: closeEvent})
	}
	for _, s := range shards {
		<-s.closed
	}
}
