package config

// Broker is an immutable snapshot of the broker's configuration. Code reads its typed fields; a dynamic change makes a new
// snapshot (WithDynamic) and publishes the pointer. Fields are named after their Kafka key (message.max.bytes is
// MessageMaxBytes); those that end in Ms, Seconds, Minutes or Bytes carry that unit. Where Kafka has the same setting at
// several units (log.retention.hours, .minutes, .ms) only the Ms field exists, already resolved.
type Broker struct {
	// Node and roles.
	NodeID                       int32
	ProcessRoles                 []string // "broker", "controller"
	IsBroker, IsController       bool
	BrokerRack                   string // empty when unset
	LogDirs                      []string
	MetadataLogDir               string // where __cluster_metadata-0 lives; never empty
	NumRecoveryThreadsPerDataDir int
	RequestTimeoutMs             int64
	AutoCreateTopicsEnable       bool
	DeleteTopicEnable            bool
	NumPartitions                int32
	DefaultReplicationFactor     int16

	// Network.
	Listeners                    []Listener // every listener, controller ones too
	AdvertisedListeners          []Listener // of the broker role; those derived from listeners when advertised.listeners is unset
	ControllerListenerNames      []string
	InterBrokerListenerName      string
	InterBrokerSecurityProtocol  SecurityProtocol
	SocketRequestMaxBytes        int
	MaxConnections               int
	MaxConnectionsPerIP          int
	MaxConnectionsPerIPOverrides map[string]int
	MaxConnectionCreationRate    int   // a second
	ConnectionsMaxIdleMs         int64 // negative: never
	QueuedMaxRequestBytes        int64 // not above 0: the server's own bound
	MaxRequestPartitionSizeLimit int32

	// Produce and fetch.
	FetchMaxBytes                        int
	MaxIncrementalFetchSessionCacheSlots int
	ProducerIDExpirationMs               int64
	ProducerIDExpirationCheckIntervalMs  int64

	// Log.
	LogFlushSchedulerIntervalMs             int64
	LogFlushOffsetCheckpointIntervalMs      int64
	LogFlushStartOffsetCheckpointIntervalMs int64
	LogRetentionCheckIntervalMs             int64
	LogCleanerEnable                        bool
	LogCleanerThreads                       int
	LogCleanerBackoffMs                     int64
	LogCleanerDedupeBufferSize              int64 // bytes
	LogCleanerIOBufferLoadFactor            float64
	LogCleanerIOBufferSize                  int // bytes
	LogCleanerIOMaxBytesPerSecond           float64
	LogInitialTaskDelayMs                   int64

	// Replication.
	ReplicaLagTimeMaxMs                      int64
	ReplicaHighWatermarkCheckpointIntervalMs int64
	UncleanLeaderElectionEnable              bool
	MinInsyncReplicas                        int

	// Classic groups and offsets.
	GroupMinSessionTimeoutMs        int64
	GroupMaxSessionTimeoutMs        int64
	GroupInitialRebalanceDelayMs    int64
	GroupMaxSize                    int
	OffsetMetadataMaxBytes          int
	OffsetsCommitTimeoutMs          int64
	OffsetsLoadBufferSize           int // bytes
	OffsetsRetentionMinutes         int64
	OffsetsRetentionCheckIntervalMs int64
	OffsetsTopicNumPartitions       int32
	OffsetsTopicReplicationFactor   int16
	OffsetsTopicSegmentBytes        int

	// Transactions.
	TransactionMaxTimeoutMs              int32
	TransactionalIDExpirationMs          int64
	TransactionalIDExpirationIntervalMs  int64 // transaction.remove.expired.transaction.cleanup.interval.ms
	TransactionPartitionVerification     bool
	AddPartitionsToTxnRetryBackoffMs     int64
	AddPartitionsToTxnRetryBackoffMaxMs  int64
	TransactionStateLogLoadBufferSize    int // bytes
	TransactionStateLogNumPartitions     int32
	TransactionStateLogReplicationFactor int16
	TransactionStateLogMinISR            int
	TransactionStateLogSegmentBytes      int

	// Share state.
	ShareCoordinatorStateTopicNumPartitions     int32
	ShareCoordinatorStateTopicReplicationFactor int16
	ShareCoordinatorStateTopicMinISR            int
	ShareCoordinatorStateTopicSegmentBytes      int

	// Metadata quorum.
	ControllerQuorumVoters           []Voter
	ControllerQuorumBootstrapServers []string // host:port
	BrokerHeartbeatIntervalMs        int64
	BrokerSessionTimeoutMs           int64
	MetadataLogSegmentBytes          int
	MetadataLogSegmentMs             int64

	layers layers
	values values
	topic  *Topic // what a topic without overrides has
}

// Topic is an immutable snapshot of one topic's configuration: its own overrides over the broker's values.
type Topic struct {
	CleanupPolicyCompact, CleanupPolicyDelete bool
	CompressionType                           string // "producer" keeps the client's
	CompressionGzipLevel                      int
	CompressionLz4Level                       int
	CompressionZstdLevel                      int
	DeleteRetentionMs                         int64
	FileDeleteDelayMs                         int64
	FlushMessages                             int64
	FlushMs                                   int64
	IndexIntervalBytes                        int
	MaxCompactionLagMs                        int64
	MaxDecompressedMessageBytes               int
	MaxMessageBytes                           int
	MessageTimestampAfterMaxMs                int64
	MessageTimestampBeforeMaxMs               int64
	MessageTimestampLogAppendTime             bool // message.timestamp.type=LogAppendTime
	MinCleanableDirtyRatio                    float64
	MinCompactionLagMs                        int64
	MinInsyncReplicas                         int
	RetentionBytes                            int64 // -1: unlimited
	RetentionMs                               int64 // -1: unlimited
	SegmentBytes                              int
	SegmentIndexBytes                         int
	SegmentJitterMs                           int64
	SegmentMs                                 int64
	UncleanLeaderElectionEnable               bool
}
