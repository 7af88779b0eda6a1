package config

import "slices"

// Topic returns the snapshot of a topic with the given overrides. They were checked when they were set; one that is not valid any
// more is passed over.
func (b *Broker) Topic(overrides map[string]string) *Topic {
	if len(overrides) == 0 && b.topic != nil {
		return b.topic
	}
	v := b.topicValues(overrides)
	t := &Topic{
		CleanupPolicyCompact:          slices.Contains(v.list("cleanup.policy"), "compact"),
		CleanupPolicyDelete:           slices.Contains(v.list("cleanup.policy"), "delete"),
		CompressionType:               v.text("compression.type"),
		CompressionGzipLevel:          v.int("compression.gzip.level"),
		CompressionLz4Level:           v.int("compression.lz4.level"),
		CompressionZstdLevel:          v.int("compression.zstd.level"),
		DeleteRetentionMs:             v.int64("delete.retention.ms"),
		FileDeleteDelayMs:             v.int64("file.delete.delay.ms"),
		FlushMessages:                 v.int64("flush.messages"),
		FlushMs:                       v.int64("flush.ms"),
		IndexIntervalBytes:            v.int("index.interval.bytes"),
		MaxCompactionLagMs:            v.int64("max.compaction.lag.ms"),
		MaxDecompressedMessageBytes:   v.int("max.decompressed.message.bytes"),
		MaxMessageBytes:               v.int("max.message.bytes"),
		MessageTimestampAfterMaxMs:    v.int64("message.timestamp.after.max.ms"),
		MessageTimestampBeforeMaxMs:   v.int64("message.timestamp.before.max.ms"),
		MessageTimestampLogAppendTime: v.text("message.timestamp.type") == "LogAppendTime",
		MinCleanableDirtyRatio:        v.double("min.cleanable.dirty.ratio"),
		MinCompactionLagMs:            v.int64("min.compaction.lag.ms"),
		MinInsyncReplicas:             v.int("min.insync.replicas"),
		RetentionBytes:                v.int64("retention.bytes"),
		RetentionMs:                   v.int64("retention.ms"),
		SegmentBytes:                  v.int("segment.bytes"),
		SegmentIndexBytes:             v.int("segment.index.bytes"),
		SegmentJitterMs:               v.int64("segment.jitter.ms"),
		SegmentMs:                     v.int64("segment.ms"),
		UncleanLeaderElectionEnable:   v.bool("unclean.leader.election.enable"),
	}
	if internal := v.get("internal.segment.bytes", Int); !internal.null {
		t.SegmentBytes = int(internal.number)
	}
	return t
}

// topicValues are the values in force of a topic: its overrides, then the broker's.
func (b *Broker) topicValues(overrides map[string]string) values {
	v := values{table: topicTable, byKey: make(map[string]value, len(topicTable.rows))}
	for _, row := range topicTable.rows {
		v.byKey[row.Name] = b.topicValue(row, overrides)
	}
	return v
}

func (b *Broker) topicValue(row *Row, overrides map[string]string) value {
	if text, ok := overrides[row.Name]; ok {
		if v, why := row.parse(text); why == nil {
			return v
		}
	}
	return b.inherited(row)
}

// inherited is the value of a topic's or group's key that has no value of its own.
func (b *Broker) inherited(row *Row) value {
	for _, s := range row.Synonyms {
		v := b.values.byKey[s.Name]
		if v.null {
			continue
		}
		if s.Factor != 1 {
			v.number *= s.Factor
		}
		if row.Name == "retention.ms" { // any negative number of hours means no limit
			v.number = max(v.number, -1)
		}
		if brokerTable.byName[s.Name].Type == List && row.Type != List { // streams.assignor.name: the first of the list
			v.text = v.list[0]
		}
		return v
	}
	return row.defaultValue()
}
