package record

import (
	"encoding/binary"
	"fmt"
	"math"

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

// DefaultMaxDecompressedBytes is how much a batch may decompress to unless told otherwise. It bounds time rather than
// memory, since batches are decompressed piece by piece. A batch that is recompressed has to be in memory as a whole, and
// may have maxRecompressedBytes at most.
const (
	DefaultMaxDecompressedBytes = 1 << 30
	maxRecompressedBytes        = 256 << 20
)

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
	KindUnreadable                             // UNKNOWN_SERVER_ERROR (-1): bytes in which Kafka comes to grief
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

// maxRecordErrors bounds how many bad records of a batch are told one by one: a batch of the default size could hold
// more than a hundred thousand.
const maxRecordErrors = 10_000

const (
	faultRemaining = "bytes are left over behind the last record"
	faultOffsets   = "offsets of the records are not consecutive"
)

// Validate checks the records of one partition in a Produce request, which must be one batch, against the rules, and
// makes it ready to be appended: maximum timestamp and timestamp type are set, it is recompressed if the topic wants so.
// b is changed in place. The error is an *Invalid.
//
// It refuses what Apache Kafka refuses, with the same code, but for this. Kafka stores batches that are not compressed
// with offsets that are not consecutive, and steps over compressed records whose fields do not fill their length; here
// both are INVALID_RECORD. No correct client can tell.
func Validate(b []byte, r Rules) (Validated, error) {
	batch, refused := onlyBatch(b, r)
	if refused == nil {
		refused = checkHeader(batch, r)
	}
	if refused != nil {
		return Validated{}, refused
	}
	if r.Origin == Replication {
		return Validated{Batch: batch, MaxTimestampMs: batch.MaxTimestamp()}, nil
	}
	w := walk{batch: batch, rules: r, maxTimestamp: NoTimestamp}
	w.prepare()
	codec, target := batch.Codec(), batch.Codec()
	if r.Compression.Recompress && !(codec == compress.None && batch.IsControl()) {
		target = r.Compression.Codec
	}
	switch {
	case codec != target:
		if batch, refused = w.recompress(target); refused != nil {
			return Validated{}, refused
		}
	case codec == compress.None:
		refused = w.plain(batch.payload())
	default:
		refused = w.compressed()
	}
	if refused == nil {
		refused = w.verdict()
	}
	if refused != nil {
		return Validated{}, refused
	}
	v := Validated{Batch: batch, Recompressed: codec != target, MaxTimestampMs: w.maxTimestamp, OffsetOfMaxTimestampDelta: int64(w.maxAt)}
	if r.TimestampType == LogAppendTime {
		v.MaxTimestampMs, v.OffsetOfMaxTimestampDelta = r.NowMs, 0
	}
	batch.setMaxTimestamp(r.TimestampType, v.MaxTimestampMs)
	return v, nil
}

// onlyBatch finds the one batch in b, and judges the bytes behind it as Kafka does: too few of them to be a batch are
// cut off, another batch is refused.
func onlyBatch(b []byte, r Rules) (Batch, *Invalid) {
	size, refused := nextBatch(b)
	switch {
	case refused != nil:
		return nil, refused
	case size == 0:
		return nil, invalid(KindInvalidRecord, "a produce request must have one record batch for each partition, this has none")
	case b[magicAt] != CurrentMagic:
		return nil, invalid(KindInvalidRecord, "record batches must have magic %d, this has %d", CurrentMagic, b[magicAt])
	case size < HeaderBytes:
		return nil, invalid(KindCorrupt, "record batch of %d bytes, the least is %d", size, HeaderBytes)
	}
	batch := Batch(b[:size:size])
	if r.NoZstd && batch.Codec() == compress.Zstd {
		return nil, invalid(KindUnsupportedCompression, "this version of the produce request does not allow zstd")
	}
	if second, refused := nextBatch(b[size:]); refused != nil {
		return nil, refused
	} else if second > 0 {
		return nil, invalid(KindInvalidRecord, "a produce request must have exactly one record batch for each partition, this has more")
	}
	return batch, nil
}

// IsTransactional says whether the first batch in b, of whatever format, belongs to a transaction. The error is an *Invalid: its length or its magic
// is impossible.
func IsTransactional(b []byte) (bool, error) {
	size, refused := nextBatch(b)
	if refused != nil {
		return false, refused
	}
	return size >= HeaderBytes && b[magicAt] == CurrentMagic && Batch(b[:size]).IsTransactional(), nil
}

// nextBatch gives the size of the batch of any format that b begins with, 0 if b ends before it does.
func nextBatch(b []byte) (int, *Invalid) {
	if len(b) < prefixBytes {
		return 0, nil
	}
	length := int32(binary.BigEndian.Uint32(b[lengthAt:]))
	if length < minLength {
		return 0, invalid(KindCorrupt, "Record size %d is less than the minimum record overhead (%d)", length, minLength)
	}
	if len(b) <= magicAt {
		return 0, nil
	}
	if magic := b[magicAt]; magic > CurrentMagic {
		return 0, invalid(KindCorrupt, "Invalid magic found in record: %d", int8(magic))
	}
	if length > math.MaxInt32-prefixBytes {
		return 0, invalid(KindUnreadable, "record batch with a length field of %d", length)
	}
	if int64(length)+prefixBytes > int64(len(b)) {
		return 0, nil
	}
	return int(length) + prefixBytes, nil
}

// checkHeader checks what does not need the records.
func checkHeader(b Batch, r Rules) *Invalid {
	if r.Origin == Client && b.BaseOffset() != 0 {
		return invalid(KindInvalidRecord, "the base offset of a record batch must be 0 in a produce request, it is %d", b.BaseOffset())
	}
	if r.Origin != Replication && len(b) > r.MaxMessageBytes {
		return tooLarge(len(b), r.MaxMessageBytes)
	}
	if !b.ValidCRC() {
		return invalid(KindCorrupt, "record batch is corrupt: its checksum is %#x, computed is %#x", b.CRC(), b.computeCRC())
	}
	if !b.Codec().Valid() {
		return invalid(KindUnreadable, "record batch with unknown compression codec %d", int8(b.Codec()))
	}
	if r.Origin != Client {
		return nil
	}
	count, delta := b.Count(), b.LastOffsetDelta()
	switch {
	case int64(delta)+1 <= 0:
		return invalid(KindInvalidRecord, "record batch with an impossible offset range [0, %d]", delta)
	case count <= 0:
		return invalid(KindInvalidRecord, "record batch with an impossible count of records %d", count)
	case int64(delta)+1 != int64(count):
		return invalid(KindInvalidRecord, "record batch with offset range [0, %d] and %d records", delta, count)
	case b.IsControl():
		return invalid(KindInvalidRecord, "clients may not write control records")
	case b.HasProducerID() && b.BaseSequence() < 0:
		return invalid(KindInvalidRecord, "record batch of producer id %d with sequence number %d", b.ProducerID(), b.BaseSequence())
	}
	return nil
}

func tooLarge(size, limit int) *Invalid {
	return invalid(KindTooLarge, "record batch of %d bytes exceeds the limit of %d bytes (max.message.bytes)", size, limit)
}
