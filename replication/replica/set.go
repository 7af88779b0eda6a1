package replica

import (
	"context"

	"go.uber.org/zap"

	"sluice/protocol/uuid"
	"sluice/replication/metadata"
	"sluice/replication/partition"
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
	InitialTaskDelayMs                   int64 // log.initial.task.delay.ms
	HighWatermarkCheckpointIntervalMs    int64 // replica.high.watermark.checkpoint.interval.ms
	ProducerIDExpirationMs               int64 // producer.id.expiration.ms
	ProducerIDExpirationCheckIntervalMs  int64 // producer.id.expiration.check.interval.ms
	ReplicaLagTimeMaxMs                  int64 // replica.lag.time.max.ms
}

// TopicConfig are the settings of one topic that its replicas act on. It is not modified once handed over.
type TopicConfig struct {
	Log               partlog.Config
	MinInSyncReplicas int // min.insync.replicas
}

// Options say what a Set works with.
type Options struct {
	NodeID metadata.BrokerID
	FS     vfs.FS
	Dirs   []*logdir.Dir // open and locked; the Set closes them
	Log    *zap.Logger
	NowMs  func() int64
	// Broker and Topic return the settings in force. Topic is asked again when a delta says that configs have changed.
	Broker func() BrokerConfig
	Topic  func(topic string) *TopicConfig
	// Changed is called, in the goroutine that caused it, when something that a reader may wait for has changed in the replica with that
	// Serial: its log end, high watermark, log start, leader, or that it is gone. It must not block.
	Changed func(serial uint64)
	// Progress is told, at start, of each log that has been opened. May be nil.
	Progress func(opened, total int)
}

// Set holds this broker's replicas.
type Set struct{}

// NewSet makes a set without replicas. Apply with the first delta opens those on disk.
func NewSet(o Options) *Set { panic("not written yet") }

// Apply makes the set follow a metadata delta: replicas are created, opened, deleted, made leader or follower, or configured anew. When it
// returns, what the delta asks of this broker is in force. Calls must not overlap and must be in order. Trouble with one partition is
// logged and is that partition's alone.
func (s *Set) Apply(d *metadata.Delta) { panic("not written yet") }

// Get returns the replica of a partition, or a *partition.Unknown or *partition.StorageOffline.
func (s *Set) Get(topic string, index int32) (*Replica, error) { panic("not written yet") }

// GetByID is Get for a topic id.
func (s *Set) GetByID(topic uuid.UUID, index int32) (*Replica, error) { panic("not written yet") }

// LogDirs describes the log directories and what is in them.
func (s *Set) LogDirs() []partition.LogDir { panic("not written yet") }

// Run does the background work until ctx ends.
func (s *Set) Run(ctx context.Context) error { panic("not written yet") }

// Close flushes and closes every log, writes the checkpoints and the marks of a clean shutdown, and closes the log directories.
func (s *Set) Close() error { panic("not written yet") }
