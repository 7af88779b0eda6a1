package config

import (
	"fmt"
	"slices"
	"strings"

	"sluice/internal/assert"
)

// values are the values in force of all keys of one table.
type values struct {
	table *table
	byKey map[string]value
}

func (v values) get(key string, types ...Type) value {
	row := v.table.byName[key]
	assert.That(row != nil && slices.Contains(types, row.Type), "%s is read as something that it is not in the table", key)
	return v.byKey[key]
}

func (v values) int(key string) int        { return int(v.get(key, Int, Short).number) }
func (v values) int16(key string) int16    { return int16(v.get(key, Int, Short).number) }
func (v values) int32(key string) int32    { return int32(v.get(key, Int, Short).number) }
func (v values) int64(key string) int64    { return v.get(key, Int, Short, Long).number }
func (v values) bool(key string) bool      { return v.get(key, Boolean).number == 1 }
func (v values) double(key string) float64 { return v.get(key, Double).double }
func (v values) text(key string) string    { return v.get(key, String, Class).text }
func (v values) list(key string) []string  { return v.get(key, List).list }
func (v values) null(key string) bool      { return v.byKey[key].null }
func (v values) setting(key string) value { // the first synonym that is not null, at the unit of the first one
	for _, s := range v.table.byName[key].Synonyms {
		if found := v.byKey[s.Name]; !found.null {
			if s.Factor != 1 {
				found.number *= s.Factor
			}
			return found
		}
	}
	return value{null: true}
}

// build reads l.set and makes the snapshot. Every problem is a *KeyError.
func build(l layers) (*Broker, []error) {
	v := values{table: brokerTable, byKey: make(map[string]value, len(brokerTable.rows))}
	var problems []error
	problem := func(key, format string, args ...any) {
		problems = append(problems, l.keyError(key, fmt.Sprintf(format, args...)))
	}
	for _, row := range brokerTable.rows {
		text, ok := l.set[row.Name]
		if !ok {
			v.byKey[row.Name] = row.defaultValue()
			continue
		}
		parsed, why := row.parse(text)
		if why != nil {
			problem(row.Name, "%s", row.explain(why))
			parsed = row.defaultValue()
		}
		v.byKey[row.Name] = parsed
	}
	for key, text := range l.set {
		if row := brokerRow(key); row != nil && row.Name != key { // a listener's own
			if _, why := row.parse(text); why != nil {
				problem(key, "%s", row.explain(why))
			}
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	b := &Broker{layers: l, values: v}
	b.fill(v)
	b.checkNode(problem)
	b.checkListeners(problem)
	b.checkRules(problem)
	if len(problems) > 0 {
		return nil, problems
	}
	b.topic = b.Topic(nil)
	return b, nil
}

// explain turns the message for clients into one for whoever wrote the file.
func (r *Row) explain(why *Invalid) string {
	message := why.Message
	if _, reason, ok := strings.Cut(message, " for configuration "+r.Name+": "); ok {
		message = reason
	}
	if r.Valid != nil && r.Valid.String() != "" {
		return message + "; accepted: " + r.Type.String() + " " + r.Valid.String()
	}
	return message
}

// keyError describes a problem with a key and where its value came from.
func (l layers) keyError(key, message string) *KeyError {
	e := &KeyError{Key: key, Message: message}
	if text, ok := l.own[key]; ok {
		e.Value, e.Source = text, sourceDynamic
	} else if text, ok := l.cluster[key]; ok {
		e.Value, e.Source = text, sourceDynamic
	} else if text, ok := l.static[key]; ok {
		e.Value, e.Source = text, l.origin[key]
	}
	if row := brokerRow(key); row != nil && row.Type == Password {
		e.Value = ""
	}
	return e
}

// fill sets every field that needs nothing but its own key.
func (b *Broker) fill(v values) {
	b.NodeID = v.int32("node.id")
	b.ProcessRoles = v.list("process.roles")
	b.IsBroker = slices.Contains(b.ProcessRoles, "broker")
	b.IsController = slices.Contains(b.ProcessRoles, "controller")
	b.BrokerRack = v.text("broker.rack")
	b.LogDirs = v.list("log.dirs")
	if len(b.LogDirs) == 0 {
		b.LogDirs = v.list("log.dir")
	}
	b.MetadataLogDir = v.text("metadata.log.dir")
	if b.MetadataLogDir == "" {
		b.MetadataLogDir = b.LogDirs[0]
	}
	b.NumRecoveryThreadsPerDataDir = v.int("num.recovery.threads.per.data.dir")
	b.RequestTimeoutMs = v.int64("request.timeout.ms")
	b.AutoCreateTopicsEnable = v.bool("auto.create.topics.enable")
	b.DeleteTopicEnable = v.bool("delete.topic.enable")
	b.NumPartitions = v.int32("num.partitions")
	b.DefaultReplicationFactor = v.int16("default.replication.factor")

	b.SocketRequestMaxBytes = v.int("socket.request.max.bytes")
	b.MaxConnections = v.int("max.connections")
	b.MaxConnectionsPerIP = v.int("max.connections.per.ip")
	b.MaxConnectionCreationRate = v.int("max.connection.creation.rate")
	b.ConnectionsMaxIdleMs = v.int64("connections.max.idle.ms")
	b.QueuedMaxRequestBytes = v.int64("queued.max.request.bytes")
	b.MaxRequestPartitionSizeLimit = v.int32("max.request.partition.size.limit")

	b.FetchMaxBytes = v.int("fetch.max.bytes")
	b.MaxIncrementalFetchSessionCacheSlots = v.int("max.incremental.fetch.session.cache.slots")
	b.ProducerIDExpirationMs = v.int64("producer.id.expiration.ms")
	b.ProducerIDExpirationCheckIntervalMs = v.int64("producer.id.expiration.check.interval.ms")

	b.LogFlushSchedulerIntervalMs = v.int64("log.flush.scheduler.interval.ms")
	b.LogFlushOffsetCheckpointIntervalMs = v.int64("log.flush.offset.checkpoint.interval.ms")
	b.LogFlushStartOffsetCheckpointIntervalMs = v.int64("log.flush.start.offset.checkpoint.interval.ms")
	b.LogRetentionCheckIntervalMs = v.int64("log.retention.check.interval.ms")
	b.LogCleanerEnable = v.bool("log.cleaner.enable")
	b.LogCleanerThreads = v.int("log.cleaner.threads")
	b.LogCleanerBackoffMs = v.int64("log.cleaner.backoff.ms")
	b.LogCleanerDedupeBufferSize = v.int64("log.cleaner.dedupe.buffer.size")
	b.LogCleanerIOBufferLoadFactor = v.double("log.cleaner.io.buffer.load.factor")
	b.LogCleanerIOBufferSize = v.int("log.cleaner.io.buffer.size")
	b.LogCleanerIOMaxBytesPerSecond = v.double("log.cleaner.io.max.bytes.per.second")
	b.LogInitialTaskDelayMs = v.int64("log.initial.task.delay.ms")

	b.ReplicaLagTimeMaxMs = v.int64("replica.lag.time.max.ms")
	b.ReplicaHighWatermarkCheckpointIntervalMs = v.int64("replica.high.watermark.checkpoint.interval.ms")
	b.UncleanLeaderElectionEnable = v.bool("unclean.leader.election.enable")
	b.MinInsyncReplicas = v.int("min.insync.replicas")

	b.GroupMinSessionTimeoutMs = v.int64("group.min.session.timeout.ms")
	b.GroupMaxSessionTimeoutMs = v.int64("group.max.session.timeout.ms")
	b.GroupInitialRebalanceDelayMs = v.int64("group.initial.rebalance.delay.ms")
	b.GroupMaxSize = v.int("group.max.size")
	b.OffsetMetadataMaxBytes = v.int("offset.metadata.max.bytes")
	b.OffsetsCommitTimeoutMs = v.int64("offsets.commit.timeout.ms")
	b.OffsetsLoadBufferSize = v.int("offsets.load.buffer.size")
	b.OffsetsRetentionMinutes = v.int64("offsets.retention.minutes")
	b.OffsetsRetentionCheckIntervalMs = v.int64("offsets.retention.check.interval.ms")
	b.OffsetsTopicNumPartitions = v.int32("offsets.topic.num.partitions")
	b.OffsetsTopicReplicationFactor = v.int16("offsets.topic.replication.factor")
	b.OffsetsTopicSegmentBytes = v.int("offsets.topic.segment.bytes")

	b.TransactionMaxTimeoutMs = v.int32("transaction.max.timeout.ms")
	b.TransactionalIDExpirationMs = v.int64("transactional.id.expiration.ms")
	b.TransactionalIDExpirationIntervalMs = v.int64("transaction.remove.expired.transaction.cleanup.interval.ms")
	b.TransactionPartitionVerification = v.bool("transaction.partition.verification.enable")
	b.AddPartitionsToTxnRetryBackoffMs = v.int64("add.partitions.to.txn.retry.backoff.ms")
	b.AddPartitionsToTxnRetryBackoffMaxMs = v.int64("add.partitions.to.txn.retry.backoff.max.ms")
	b.TransactionStateLogLoadBufferSize = v.int("transaction.state.log.load.buffer.size")
	b.TransactionStateLogNumPartitions = v.int32("transaction.state.log.num.partitions")
	b.TransactionStateLogReplicationFactor = v.int16("transaction.state.log.replication.factor")
	b.TransactionStateLogMinISR = v.int("transaction.state.log.min.isr")
	b.TransactionStateLogSegmentBytes = v.int("transaction.state.log.segment.bytes")
	b.ShareCoordinatorStateTopicNumPartitions = v.int32("share.coordinator.state.topic.num.partitions")
	b.ShareCoordinatorStateTopicReplicationFactor = v.int16("share.coordinator.state.topic.replication.factor")
	b.ShareCoordinatorStateTopicMinISR = v.int("share.coordinator.state.topic.min.isr")
	b.ShareCoordinatorStateTopicSegmentBytes = v.int("share.coordinator.state.topic.segment.bytes")

	b.ControllerQuorumBootstrapServers = v.list("controller.quorum.bootstrap.servers")
	b.BrokerHeartbeatIntervalMs = v.int64("broker.heartbeat.interval.ms")
	b.BrokerSessionTimeoutMs = v.int64("broker.session.timeout.ms")
	b.MetadataLogSegmentBytes = v.int("metadata.log.segment.bytes")
	if internal := v.get("internal.metadata.log.segment.bytes", Int); !internal.null {
		b.MetadataLogSegmentBytes = int(internal.number)
	}
	b.MetadataLogSegmentMs = v.int64("metadata.log.segment.ms")
}
