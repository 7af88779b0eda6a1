package partlog

// Config is what a log takes from its topic's configs. Each field is named after the config; Kafka's defaults are in DefaultConfig. A Config
// that was given to a log is not modified afterwards: a change is a new one, by SetConfig.
type Config struct {
	SegmentBytes       int   // segment.bytes: a segment never grows past it
	SegmentMs          int64 // segment.ms: a segment is closed when its records span more
	SegmentJitterMs    int64 // segment.jitter.ms: at most this much of SegmentMs is taken off, at random, so that not all logs roll at once
	SegmentIndexBytes  int   // segment.index.bytes: a segment is closed when an index is that large
	IndexIntervalBytes int   // index.interval.bytes: an index entry is made when more bytes than this were appended since the last one
	RetentionMs        int64 // retention.ms; negative = for ever
	RetentionBytes     int64 // retention.bytes; negative = without limit
	FileDeleteDelayMs  int64 // file.delete.delay.ms: files of a deleted segment are removed that much later
	// FlushMessages is flush.messages: an append that leaves at least that many records unflushed flushes; MaxInt64 = never. With 1 the log
	// does nothing by itself: whoever answers the producer calls Flush before, so that several appends share one.
	FlushMessages   int64
	FlushMs         int64 // flush.ms: FlushDue says when so much time has passed since the last flush; MaxInt64 = never
	MaxMessageBytes int   // max.message.bytes of one batch, for AppendAsLeader
	MaxDecompressed int   // what one batch may decompress to when records are searched by time; 0 = record.DefaultMaxDecompressedBytes
	LogAppendTime   bool  // message.timestamp.type=LogAppendTime
	Delete          bool  // cleanup.policy has delete: RetentionMs and RetentionBytes count
	Compact         bool  // cleanup.policy has compact
}

// DefaultConfig has Kafka's defaults.
func DefaultConfig() *Config {
	const never = 1<<63 - 1
	return &Config{
		SegmentBytes:       1 << 30,
		SegmentMs:          7 * 24 * 3600 * 1000,
		SegmentIndexBytes:  10 << 20,
		IndexIntervalBytes: 4096,
		RetentionMs:        7 * 24 * 3600 * 1000,
		RetentionBytes:     -1,
		FileDeleteDelayMs:  60_000,
		FlushMessages:      never,
		FlushMs:            never,
		MaxMessageBytes:    1048588,
		Delete:             true,
	}
}
