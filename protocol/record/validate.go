package record

import (
	"fmt"

	"sluice/protocol/compress"
)

// Origin says who appends a batch: what is checked depends on whom to trust.
type Origin int8

// The origins of a batch.
const (
	Client      Origin = iota // a Produce request: everything is checked
	Coordinator               // this broker itself: control records and offsets as they are allowed
	Replication               // another replica's log: the bytes must be intact, nothing is rewritten
)

// TargetCompression is the config compression.type of a topic with the level for that codec. The zero value keeps what
// the producer chose.
type TargetCompression struct {
	Recompress bool           // false: "producer"
	Codec      compress.Codec // None is "uncompressed"
	Level      int            // Kafka's compression.gzip.level, compression.lz4.level, compression.zstd.level
}

// Rules are the topic's settings that a batch is held against.
type Rules struct {
	TimestampType        TimestampType
	BeforeMaxMs          int64 // message.timestamp.before.max.ms
	AfterMaxMs           int64 // message.timestamp.after.max.ms
	Compacted            bool  // cleanup.policy has compact: records need keys
	MaxMessageBytes      int   // max.message.bytes, of the batch as it is received and as it is stored
	Compression          TargetCompression
	NowMs                int64
	MaxRecordBytes       int  // max.decompressed.message.bytes, of one record of a compressed batch; 0 = no such limit
	MaxDecompressedBytes int  // of a whole batch; 0 = DefaultMaxDecompressedBytes
	NoZstd               bool // the request's version (Produce before 7) does not allow zstd
	Origin               Origin
}

// DefaultMaxDecompressedBytes is how much a batch may decompress to unless told otherwise.
const DefaultMaxDecompressedBytes = 1 << 30

// Validated is a batch that may be appended; offsets still count from 0.
type Validated struct {
	Batch                     Batch // the input, patched in place; a new one if Recompressed
	Recompressed              bool
	MaxTimestampMs            int64 // NoTimestamp if no record has one
	OffsetOfMaxTimestampDelta int64 // of the first record with MaxTimestampMs, from the base offset
}

// Kind is what a refused batch is answered with.
type Kind int8

// The kinds, with Kafka's error codes.
const (
	KindCorrupt                Kind = iota + 1 // CORRUPT_MESSAGE (2)
	KindTooLarge                               // MESSAGE_TOO_LARGE (10)
	KindInvalidTimestamp                       // INVALID_TIMESTAMP (32)
	KindUnsupportedCompression                 // UNSUPPORTED_COMPRESSION_TYPE (76)
	KindInvalidRecord                          // INVALID_RECORD (87)
)

// RecordError is what is wrong with one record.
type RecordError struct {
	BatchIndex int32 // of the record in its batch, from 0
	Message    string
}

// Invalid is a refused batch.
type Invalid struct {
	Kind         Kind
	Message      string
	RecordErrors []RecordError // in order; empty if it is not about single records
}

func (i *Invalid) Error() string { return i.Message }

func invalid(kind Kind, format string, args ...any) *Invalid {
	return &Invalid{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Validate checks the records of one partition in a Produce request, which must be one batch, against the rules, and
// makes it ready to be appended: maximum timestamp and timestamp type are set, it is recompressed if the topic wants so.
// b is changed in place. The error is an *Invalid.
func Validate(b []byte, r Rules) (Validated, error) {
	panic("not written yet")
}
