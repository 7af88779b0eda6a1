package replica

import (
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"sluice/protocol/uuid"
	"sluice/replication/metadata"
	"sluice/replication/partition"
	"sluice/storage/compact"
	"sluice/storage/logdir"
	"sluice/storage/partlog"
	"sluice/storage/vfs"
)

// BrokerConfig are the broker's settings for all of its replicas, each with the meaning of its Kafka key.
type BrokerConfig struct {
	RecoveryThreads                      int   // num.recovery.threads.per.data.dir
	FlushSchedulerIntervalMs             int64 // log.flush.scheduler.interval.ms
	FlushOffsetCheckpointIntervalMs      int64 // log.flush.offset.checkpoint.interval.ms
	FlushStartOffsetCheckpointIntervalMs int64 // log.flush.start.offset.checkpoint.interval.ms
	RetentionCheckIntervalMs             int64 // log.retention.check.interval.ms
	FileDeleteDelayMs                    int64 // log.segment.delete.delay.ms
	InitialTaskDelayMs                   int64 // log.initial.task.delay.ms
	HighWatermarkCheckpointIntervalMs    int64 // replica.high.watermark.checkpoint.interval.ms
	ProducerIDExpirationMs               int64 // producer.id.expiration.ms
	ProducerIDExpirationCheckIntervalMs  int64 // producer.id.expiration.check.interval.ms
	ReplicaLagTimeMaxMs                  int64 // replica.lag.time.max.ms
	Cleaner                              CleanerConfig
}

// TopicConfig are the settings of one topic that its replicas act on. It is not modified once handed over.
type TopicConfig struct {
	Log               partlog.Config
	MinInSyncReplicas int // min.insync.replicas
	Compaction        compact.Policy
}

// Options say what a Set works with.
type Options struct {
	NodeID metadata.BrokerID
	FS     vfs.FS
	Dirs   []*logdir.Dir // open and locked; the Set closes them
	Log    *zap.Logger
	NowMs  func() int64
	// BrokerEpoch is this broker's registration, for the mark of a clean shutdown. May be nil.
	BrokerEpoch func() metadata.BrokerEpoch
	// Broker and Topic return the settings in force. They are asked again when a delta says that configs have changed.
	Broker func() *BrokerConfig
	Topic  func(topic string) *TopicConfig
	// Changed is called, in the goroutine that caused it, when something that a reader may wait for has changed in the replica with that
	// Serial: its log end, high watermark, log start, leader, or that it is gone. It must not block.
	Changed func(serial uint64)
	// Progress is told, at start, of each log that has been opened and of each segment that had to be scanned for it. May be nil; several
	// goroutines call it.
	Progress func(Opening)
	// Failed is told when a log directory has gone offline, and how many are left. May be nil. It must not block.
	Failed func(dir string, err error, online int)
}

// Opening is how far the logs have been opened at start.
type Opening struct {
	Opened, Logs    int // logs that are open, and all
	SegmentsScanned int // because they had not been flushed before the stop
}

// Set holds this broker's replicas.
type Set struct {
	options Options
	dirs    []*directory
	image   atomic.Pointer[metadata.Image]
	serials atomic.Uint64
	// lagTimeMaxMs is replica.lag.time.max.ms, at hand for every append.
	lagTimeMaxMs atomic.Int64

	applying sync.Mutex // one goroutine at a time changes which replicas there are
	started  bool       // the first delta has been applied; guarded by applying
	// opening counts, at start: logs to be opened, logs that are open, segments scanned for them.
	opening struct {
		logs, opened, scanned atomic.Int64
		done                  atomic.Bool
	}
	unopened atomic.Bool // some replicas have not been created for want of space

	checkpointing sync.Mutex // one job at a time writes checkpoints
	cleaner       cleaner

	table struct {
		sync.RWMutex
		topics map[string]*topic
		ids    map[uuid.UUID]*topic
	}
}

// topic is what the set knows of one topic. It is immutable; changes replace it.
type topic struct {
	name     string
	id       uuid.UUID
	replicas []*Replica // by partition number; nil where this broker has none
	missing  []error    // by partition number, where replicas has nil: why
}

// NewSet makes a set without replicas. Apply with the first delta opens those on disk.
func NewSet(o Options) *Set {
	s := &Set{options: o}
	s.lagTimeMaxMs.Store(o.Broker().ReplicaLagTimeMaxMs)
	for _, dir := range o.Dirs {
		s.dirs = append(s.dirs, newDirectory(dir))
	}
	s.table.topics = make(map[string]*topic)
	s.table.ids = make(map[uuid.UUID]*topic)
	return s
}

func (s *Set) nodeID() partition.BrokerID { return partition.BrokerID(s.options.NodeID) }

// Get returns the replica of a partition. The error is a *partition.Unknown when there is no such partition, *partition.NotLeader when this
// broker has no replica of it, *partition.StorageOffline.
func (s *Set) Get(name string, index int32) (*Replica, error) {
	s.table.RLock()
	t := s.table.topics[name]
	s.table.RUnlock()
	if t == nil {
		return nil, &partition.Unknown{Topic: name, Partition: index}
	}
	return t.replica(index)
}

// GetByID is Get for a topic id.
func (s *Set) GetByID(id uuid.UUID, index int32) (*Replica, error) {
	s.table.RLock()
	t := s.table.ids[id]
	s.table.RUnlock()
	if t == nil {
		return nil, &partition.Unknown{Topic: id.String(), Partition: index}
	}
	return t.replica(index)
}

func (t *topic) replica(index int32) (*Replica, error) {
	if index < 0 || int(index) >= len(t.replicas) {
		return nil, &partition.Unknown{Topic: t.name, Partition: index}
	}
	r := t.replicas[index]
	if r == nil {
		return nil, t.missing[index]
	}
	if err := r.Gone(); err != nil {
		return nil, err
	}
	return r, nil
}

// put makes t what the set knows of its topic.
func (s *Set) put(t *topic) {
	s.table.Lock()
	defer s.table.Unlock()
	s.table.topics[t.name] = t
	s.table.ids[t.id] = t
}

// take removes a topic and returns it, nil when it is not known.
func (s *Set) take(name string, id uuid.UUID) *topic {
	s.table.Lock()
	defer s.table.Unlock()
	t := s.table.ids[id]
	delete(s.table.ids, id)
	if named := s.table.topics[name]; named != nil && named.id == id {
		delete(s.table.topics, name)
	}
	return t
}

// find returns what the set knows of a topic, nil when it is not known.
func (s *Set) find(id uuid.UUID) *topic {
	s.table.RLock()
	defer s.table.RUnlock()
	return s.table.ids[id]
}

// replicas lists all replicas by topic and partition.
func (s *Set) replicas() []*Replica {
	s.table.RLock()
	topics := make([]*topic, 0, len(s.table.topics))
	for _, t := range s.table.ids {
		topics = append(topics, t)
	}
	s.table.RUnlock()
	slices.SortFunc(topics, func(a, b *topic) int {
		if a.name != b.name {
			if a.name < b.name {
				return -1
			}
			return 1
		}
		return a.id.Compare(b.id)
	})
	var all []*Replica
	for _, t := range topics {
		for _, r := range t.replicas {
			if r != nil {
				all = append(all, r)
			}
		}
	}
	return all
}

// alive reports whether a broker is registered and not fenced.
func (s *Set) alive(id partition.BrokerID) bool {
	image := s.image.Load()
	if image == nil {
		return false
	}
	broker, ok := image.Broker(metadata.BrokerID(id))
	return ok && !broker.Fenced
}

// fail takes a log directory, and every replica in it, offline.
func (s *Set) fail(d *directory, err error) {
	if !d.goOffline(err) {
		return
	}
	online := 0
	for _, other := range s.dirs {
		if other.offlineError() == nil {
			online++
		}
	}
	s.options.Log.Error("a log directory has failed and is offline now, with all partitions in it",
		zap.String("dir", d.Path()), zap.Error(err), zap.Int("directories_left", online))
	for _, r := range s.replicas() {
		if r.dir == d {
			r.leave(d.offlineError())
		}
	}
	if s.options.Failed != nil {
		s.options.Failed(d.Path(), err, online)
	}
}

// LogDirs describes the log directories and what is in them, in the order of the configuration.
func (s *Set) LogDirs() []partition.LogDir {
	all := s.replicas()
	described := make([]partition.LogDir, 0, len(s.dirs))
	for _, d := range s.dirs {
		l := partition.LogDir{Path: d.Path(), TotalBytes: -1, UsableBytes: -1}
		if l.Err = d.offlineError(); l.Err != nil {
			described = append(described, l)
			continue
		}
		if l.TotalBytes, l.UsableBytes, l.Err = d.dir.Usage(); l.Err != nil {
			s.fail(d, l.Err)
			described = append(described, l)
			continue
		}
		for _, r := range all {
			if r.dir == d && r.Gone() == nil {
				l.Replicas = append(l.Replicas, partition.LogDirReplica{
					Topic: r.topic, Partition: r.index, SizeBytes: r.SizeBytes(), OffsetLag: max(0, r.HighWatermark()-r.LogEndOffset()),
				})
			}
		}
		described = append(described, l)
	}
	return described
}
