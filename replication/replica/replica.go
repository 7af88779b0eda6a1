package replica

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"sluice/protocol/record"
	"sluice/protocol/uuid"
	"sluice/replication/partition"
	"sluice/storage/partlog"
	"sluice/storage/producer"
)

// Replica is this broker's copy of one partition. All methods may be called from any goroutine.
//
// Whoever appends, or changes the replica's role, does so in its own goroutine while holding the writer: there is no goroutine for a
// partition, and so none to wake. Readers take no lock; they work on the published role and high watermark.
type Replica struct {
	set     *Set
	serial  uint64
	topic   string
	topicID uuid.UUID
	index   int32
	dir     *directory

	current       atomic.Pointer[partlog.Log] // the log; another one after it had to be reopened
	config        atomic.Pointer[TopicConfig]
	role          atomic.Pointer[role]
	highWatermark atomic.Int64 // copy of the state's, for readers
	cleanedTo     atomic.Int64 // the end (exclusive) of what was compacted, -1 if nothing was; the cleaner's

	writer struct {
		sync.Mutex
		state      *partition.State
		reopenedMs int64 // when the log was last reopened, or tried to
	}
	// flush lets writers whose records must be on the disk before they are acknowledged share one sync.
	flush     sync.Mutex
	listeners listeners
}

// role is what readers need to know of the replica's part in the cluster. It is immutable.
type role struct {
	leader           partition.BrokerID
	leaderEpoch      record.LeaderEpoch
	epochStartOffset int64
	gone             error // the replica is deleted or its storage offline: the error for whoever asks
}

func (r *Replica) log() *partlog.Log { return r.current.Load() }

// Serial identifies the replica in this process; a topic that is deleted and created again has another.
func (r *Replica) Serial() uint64 { return r.serial }

// Topic is the topic's name.
func (r *Replica) Topic() string { return r.topic }

// TopicID is the topic's id.
func (r *Replica) TopicID() uuid.UUID { return r.topicID }

// Index is the partition's number.
func (r *Replica) Index() int32 { return r.index }

// Leader returns the leader's id and epoch, partition.NoBroker when there is none.
func (r *Replica) Leader() (partition.BrokerID, record.LeaderEpoch) {
	now := r.role.Load()
	return now.leader, now.leaderEpoch
}

// Gone is nil as long as the replica can be used, else why it cannot: *partition.Unknown after its deletion, *partition.StorageOffline.
func (r *Replica) Gone() error { return r.role.Load().gone }

// HighWatermark is the end of what is committed, exclusive.
func (r *Replica) HighWatermark() int64 { return r.highWatermark.Load() }

// LastStableOffset is the end of what read_committed readers see, exclusive.
func (r *Replica) LastStableOffset() int64 { return r.log().LastStableOffset(r.highWatermark.Load()) }

// LogStartOffset is the first offset of the log, inclusive.
func (r *Replica) LogStartOffset() int64 { return r.log().LogStartOffset() }

// LogEndOffset is the offset of the next record, exclusive end of the log.
func (r *Replica) LogEndOffset() int64 { return r.log().LogEndOffset() }

// SizeBytes is the size of the log on the disk.
func (r *Replica) SizeBytes() int64 { return r.log().SizeBytes() }

// Append appends one validated batch as the leader. It returns once the batch is in the log (and flushed, where the topic says so before
// the acknowledgement); whether it is committed shows in the result's high watermark. b is patched in place and free again on return.
func (r *Replica) Append(b record.Batch, q partition.AppendQuery, origin partlog.Origin, nowMs int64) (partition.AppendResult, error) {
	appendTo := func(l *partlog.Log, epoch record.LeaderEpoch) (partlog.AppendInfo, error) {
		if b.IsTransactional() {
			return l.AppendTransactional(b, epoch, origin, q.Verification, nowMs)
		}
		return l.AppendAsLeader(b, epoch, origin, nowMs)
	}
	return r.write(q, appendTo, nowMs)
}

// AppendMarker is Append for the end marker of a transaction, of a coordinator with that version of transactions.
func (r *Replica) AppendMarker(b record.Batch, q partition.AppendQuery, transactionVersion int16, nowMs int64) (partition.AppendResult, error) {
	r.LastStableOffset() // tells the log what is committed, also when nobody reads it: it need not remember the markers of that
	appendTo := func(l *partlog.Log, epoch record.LeaderEpoch) (partlog.AppendInfo, error) {
		return l.AppendMarker(b, epoch, transactionVersion, nowMs)
	}
	return r.write(q, appendTo, nowMs)
}

// OpenTransaction says whether the producer, in that epoch, has a transaction open here. If not, asOf is for a record.Verification. An epoch
// that is over is an error.
func (r *Replica) OpenTransaction(id record.ProducerID, epoch record.ProducerEpoch) (open bool, asOf int64, err error) {
	if _, err := r.leading(record.NoLeaderEpoch); err != nil {
		return false, record.NoOffset, err
	}
	return r.log().OpenTransaction(id, epoch)
}

// FlushesFirst says whether an append waits for the disk.
func (r *Replica) FlushesFirst() bool { return flushesFirst(r.config.Load()) }

type appendFunc func(l *partlog.Log, epoch record.LeaderEpoch) (partlog.AppendInfo, error)

func (r *Replica) write(q partition.AppendQuery, appendTo appendFunc, nowMs int64) (partition.AppendResult, error) {
	config := r.config.Load()
	result, err := r.append(q, appendTo, config, nowMs)
	if err != nil {
		return result, r.check(err)
	}
	if flushesFirst(config) && !result.Duplicate {
		if err := r.flushTo(result.LastOffset + 1); err != nil {
			return result, r.check(err)
		}
		r.advance(config, nowMs)
		result.HighWatermark = r.highWatermark.Load()
	} else if flushesNowAndThen(config) {
		if err := r.syncFolder(); err != nil { // what the log flushes by itself is not durable without its folder
			return result, r.check(err)
		}
	}
	r.changed()
	return result, nil
}

func (r *Replica) append(q partition.AppendQuery, appendTo appendFunc, config *TopicConfig, nowMs int64) (partition.AppendResult, error) {
	r.writer.Lock()
	defer r.writer.Unlock()
	if err := r.role.Load().gone; err != nil {
		return partition.AppendResult{}, err
	}
	state := r.writer.state
	if err := state.CheckAppend(q, config.MinInSyncReplicas); err != nil {
		return partition.AppendResult{}, err
	}
	epoch := state.Registration().LeaderEpoch
	info, err := appendTo(r.log(), epoch)
	if err != nil && r.reopenedLocked(err, nowMs) {
		info, err = appendTo(r.log(), epoch)
	}
	if err != nil {
		return partition.AppendResult{}, err
	}
	if !flushesFirst(config) {
		r.advanceLocked(config, nowMs)
	}
	return partition.AppendResult{
		BaseOffset: info.BaseOffset, LastOffset: info.LastOffset,
		LogAppendTimeMs: info.LogAppendTimeMs, LogStartOffset: info.LogStartOffset,
		LeaderEpoch: epoch, HighWatermark: state.HighWatermark(), Duplicate: info.Duplicate,
	}, nil
}

// Committed tells, for a batch that was appended with acks=all, whether its offsets (end exclusive) are committed, and then whether by as many replicas
// as the topic asks for. It fails when this broker does not lead any more.
func (r *Replica) Committed(endOffset int64) (bool, error) {
	now := r.role.Load()
	if now.gone != nil {
		return false, now.gone
	}
	if err := partition.CheckLeader(r.set.nodeID(), now.leader, now.leaderEpoch, record.NoLeaderEpoch); err != nil {
		return false, err
	}
	if r.highWatermark.Load() < endOffset {
		return false, nil
	}
	r.writer.Lock()
	defer r.writer.Unlock()
	return true, r.writer.state.CheckCommitted(r.config.Load().MinInSyncReplicas)
}

// flushesFirst says whether records must be on the disk before they are acknowledged: flush.messages=1. Any larger interval leaves some
// records unflushed anyway, and is the log's own business.
func flushesFirst(c *TopicConfig) bool { return c.Log.FlushMessages <= 1 }

// flushesNowAndThen says whether the log flushes by itself, after so many records.
func flushesNowAndThen(c *TopicConfig) bool {
	return !flushesFirst(c) && c.Log.FlushMessages < math.MaxInt64
}

// syncFolder makes the log's folder durable, if it is new.
func (r *Replica) syncFolder() error {
	if err := r.dir.dir.SyncCreated(); err != nil {
		return &partlog.Fault{Op: "flush", Path: r.dir.Path(), Err: err}
	}
	return nil
}

// flushTo makes everything below endOffset durable. Writers that come while a flush is under way wait for it and then share the next.
func (r *Replica) flushTo(endOffset int64) error {
	r.flush.Lock()
	defer r.flush.Unlock()
	if r.log().RecoveryPoint() >= endOffset {
		return nil
	}
	if err := r.syncFolder(); err != nil {
		return err
	}
	return r.log().Flush()
}

func (r *Replica) advance(config *TopicConfig, nowMs int64) {
	r.writer.Lock()
	defer r.writer.Unlock()
	r.advanceLocked(config, nowMs)
}

// advanceLocked lets the high watermark follow the log end; where records must be flushed first, the end of what is flushed.
func (r *Replica) advanceLocked(config *TopicConfig, nowMs int64) {
	end := r.log().LogEndOffset()
	if flushesFirst(config) {
		end = r.log().RecoveryPoint()
	}
	if r.writer.state.AdvanceHighWatermark(end, config.MinInSyncReplicas, nowMs, r.set.lagTimeMaxMs.Load()) {
		r.highWatermark.Store(r.writer.state.HighWatermark())
	}
}

// changed tells those who wait that the replica has changed. It is called without the writer.
func (r *Replica) changed() {
	r.listeners.tell(&r.highWatermark)
	r.set.options.Changed(r.serial)
}

// OnCommit calls f with each new high watermark, ascending, in the goroutine that moved it, until stop is called. f must not block nor append.
func (r *Replica) OnCommit(f func(highWatermark int64)) (stop func()) { return r.listeners.add(f) }

// ActiveProducers lists the producers whose sequences the log remembers, by id.
func (r *Replica) ActiveProducers(nowMs int64) ([]producer.State, error) {
	if err := r.Gone(); err != nil {
		return nil, err
	}
	return r.log().ActiveProducers(nowMs), nil
}

// check looks at an error of the log before it is handed on: a fault takes the log directory offline, and what came from a replica that is
// gone by now is told so.
func (r *Replica) check(err error) error {
	if gone := r.Gone(); gone != nil {
		return gone
	}
	var fault *partlog.Fault
	if !errors.As(err, &fault) {
		return err
	}
	if outOfSpace(fault) {
		r.set.tellFull(r.dir, fault)
		return &partition.StorageFull{Dir: r.dir.Path(), Err: fault}
	}
	r.set.fail(r.dir, fault)
	return r.Gone()
}
