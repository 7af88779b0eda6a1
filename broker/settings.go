package broker

import (
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"sluice/broker/config"
	"sluice/replication/metadata"
	"sluice/replication/replica"
	"sluice/storage/compact"
	"sluice/storage/partlog"
)

// settings hold the configuration in force: what the broker was started with, and over it what the cluster's metadata says. Readers get
// immutable snapshots.
type settings struct {
	started *config.Broker
	log     *zap.Logger
	image   atomic.Pointer[metadata.Image]
	broker  atomic.Pointer[config.Broker]

	// defaults serve every topic without configs of its own, topics the others that were asked for since configs last changed.
	defaults atomic.Pointer[topicSettings]
	topics   sync.Map // topic name → *topicSettings
}

// topicSettings is one snapshot in the form that each layer reads.
type topicSettings struct {
	api     *config.Topic
	replica *replica.TopicConfig
}

func newSettings(started *config.Broker, log *zap.Logger) *settings {
	s := &settings{started: started, log: log}
	s.use(started)
	return s
}

// apply takes in what a delta brings. It reports whether the broker's own settings have changed.
func (s *settings) apply(d *metadata.Delta) (brokerChanged bool) {
	s.image.Store(d.Next)
	for _, r := range d.ConfigsChanged {
		switch r.Type {
		case metadata.TopicResource:
			s.topics.Delete(r.Name)
		case metadata.BrokerResource:
			brokerChanged = true
		}
	}
	if brokerChanged {
		cluster := d.Next.Configs(metadata.ConfigResource{Type: metadata.BrokerResource})
		own := d.Next.Configs(metadata.ConfigResource{Type: metadata.BrokerResource, Name: strconv.Itoa(int(s.started.NodeID))})
		next, warnings := s.started.WithDynamic(cluster, own)
		for _, w := range warnings {
			s.log.Warn("configuration", zap.String("key", w.Key), zap.String("source", w.Source), zap.String("problem", w.Message))
		}
		s.use(next)
	}
	return brokerChanged
}

func (s *settings) use(b *config.Broker) {
	s.broker.Store(b)
	s.defaults.Store(newTopicSettings(b.Topic(nil)))
	s.topics.Clear()
}

func (s *settings) topic(name string) *topicSettings {
	if known, ok := s.topics.Load(name); ok {
		return known.(*topicSettings)
	}
	image, broker := s.image.Load(), s.broker.Load()
	if image == nil {
		return s.defaults.Load()
	}
	overrides := image.Configs(metadata.ConfigResource{Type: metadata.TopicResource, Name: name})
	if len(overrides) == 0 {
		return s.defaults.Load()
	}
	made := newTopicSettings(broker.Topic(overrides))
	// A delta may have come in between: what was made of an older image, or of older settings of the broker, must not stay.
	if s.topics.Store(name, made); s.image.Load() != image || s.broker.Load() != broker {
		s.topics.Delete(name)
	}
	return made
}

func newTopicSettings(t *config.Topic) *topicSettings {
	return &topicSettings{api: t, replica: &replica.TopicConfig{
		MinInSyncReplicas: t.MinInsyncReplicas,
		Compaction: compact.Policy{
			MinCleanableRatio: t.MinCleanableDirtyRatio,
			MinLagMs:          t.MinCompactionLagMs,
			MaxLagMs:          t.MaxCompactionLagMs,
			DeleteRetentionMs: t.DeleteRetentionMs,
		},
		Log: partlog.Config{
			SegmentBytes:       t.SegmentBytes,
			SegmentMs:          t.SegmentMs,
			SegmentJitterMs:    t.SegmentJitterMs,
			SegmentIndexBytes:  t.SegmentIndexBytes,
			IndexIntervalBytes: t.IndexIntervalBytes,
			RetentionMs:        t.RetentionMs,
			RetentionBytes:     t.RetentionBytes,
			FileDeleteDelayMs:  t.FileDeleteDelayMs,
			FlushMessages:      t.FlushMessages,
			FlushMs:            t.FlushMs,
			MaxMessageBytes:    t.MaxMessageBytes,
			MaxDecompressed:    t.MaxDecompressedMessageBytes,
			LogAppendTime:      t.MessageTimestampLogAppendTime,
			Delete:             t.CleanupPolicyDelete,
			Compact:            t.CleanupPolicyCompact,
		},
	}}
}

func (s *settings) replicaBroker() *replica.BrokerConfig {
	b := s.broker.Load()
	return &replica.BrokerConfig{
		RecoveryThreads:                      b.NumRecoveryThreadsPerDataDir,
		FlushSchedulerIntervalMs:             b.LogFlushSchedulerIntervalMs,
		FlushOffsetCheckpointIntervalMs:      b.LogFlushOffsetCheckpointIntervalMs,
		FlushStartOffsetCheckpointIntervalMs: b.LogFlushStartOffsetCheckpointIntervalMs,
		RetentionCheckIntervalMs:             b.LogRetentionCheckIntervalMs,
		FileDeleteDelayMs:                    b.Topic(nil).FileDeleteDelayMs,
		InitialTaskDelayMs:                   b.LogInitialTaskDelayMs,
		HighWatermarkCheckpointIntervalMs:    b.ReplicaHighWatermarkCheckpointIntervalMs,
		ProducerIDExpirationMs:               b.ProducerIDExpirationMs,
		ProducerIDExpirationCheckIntervalMs:  b.ProducerIDExpirationCheckIntervalMs,
		ReplicaLagTimeMaxMs:                  b.ReplicaLagTimeMaxMs,
		Cleaner: replica.CleanerConfig{
			Enable:              b.LogCleanerEnable,
			Threads:             b.LogCleanerThreads,
			BackoffMs:           b.LogCleanerBackoffMs,
			DedupeBufferBytes:   b.LogCleanerDedupeBufferSize,
			LoadFactor:          b.LogCleanerIOBufferLoadFactor,
			IOBufferBytes:       b.LogCleanerIOBufferSize,
			IOMaxBytesPerSecond: b.LogCleanerIOMaxBytesPerSecond,
		},
	}
}

// durability says in a few words which promise an acknowledgement of acks=all carries on this node alone.
func (s *settings) durability(ephemeral bool) string {
	switch t := s.defaults.Load().api; {
	case ephemeral:
		return "in memory: nothing survives the end of the process"
	case t.FlushMessages <= 1:
		return "fsync before acknowledgement: survives a power failure"
	case t.FlushMs < math.MaxInt64:
		return "page cache, fsync every " + strconv.FormatInt(t.FlushMs, 10) + " ms: survives a kill; a power failure may cost what was not flushed"
	default:
		return "page cache: survives a kill; a power failure may cost what was not flushed"
	}
}
