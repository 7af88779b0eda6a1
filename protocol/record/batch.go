// Package record reads, checks and writes record batches of message format 2, the unit in which Kafka sends and stores records.
//
// A Batch is a view over bytes: nothing is decoded until asked for, and a batch is stored and sent as it arrived.
//
//	offset  bytes  field
//	     0      8  base offset
//	     8      4  length of all that follows this field
//	    12      4  partition leader epoch
//	    16      1  magic, 2
//	    17      4  CRC-32C of all that follows this field
//	    21      2  attributes: 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
//	    23      4  last offset delta
//	    27      8  base timestamp, ms since 1970; with attribute 6 the delete horizon
//	    35      8  maximum timestamp
//	    43      8  producer id
//	    51      2  producer epoch
//	    53      4  base sequence
//	    57      4  count of records
//	    61      …  records, compressed as one stream if there is a codec
package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"sluice/protocol/compress"
)

// LeaderEpoch counts the leaders of a partition.
type LeaderEpoch int32

// ProducerID is the id that a broker gave to an idempotent or transactional producer.
type ProducerID int64

// ProducerEpoch fences earlier incarnations of a producer with the same id.
type ProducerEpoch int16

// What stands in a batch for a value that is absent.
const (
	NoLeaderEpoch   LeaderEpoch   = -1
	NoProducerID    ProducerID    = -1
	NoProducerEpoch ProducerEpoch = -1
	NoSequence      int32         = -1
	NoTimestamp     int64         = -1
	NoOffset        int64         = -1
)

// TimestampType says who set the timestamps of a batch.
type TimestampType int8

// The timestamp types.
const (
	CreateTime    TimestampType = 0 // the producer
	LogAppendTime TimestampType = 1 // the broker: every record carries the batch's maximum timestamp
)

// String gives the name used by the config message.timestamp.type.
func (t TimestampType) String() string {
	if t == LogAppendTime {
		return "LogAppendTime"
	}
	return "CreateTime"
}

const (
	// HeaderBytes is the size of a batch without its records, and so of the smallest one.
	HeaderBytes = 61
	// CurrentMagic is the one message format in use; formats 0 and 1 ended with Kafka 4.0.
	CurrentMagic = 2

	baseOffsetAt      = 0
	lengthAt          = 8
	leaderEpochAt     = 12
	magicAt           = 16
	crcAt             = 17
	attributesAt      = 21
	lastOffsetDeltaAt = 23
	baseTimestampAt   = 27
	maxTimestampAt    = 35
	producerIDAt      = 43
	producerEpochAt   = 51
	baseSequenceAt    = 53
	countAt           = 57

	// prefixBytes is what precedes the part that the length field counts.
	prefixBytes = 12
	// minLength is the smallest length field in any message format (format 0).
	minLength = 14
)

const (
	codecBits          = 0x07
	logAppendTimeBit   = 0x08
	transactionalBit   = 0x10
	controlBit         = 0x20
	deleteHorizonBit   = 0x40
	knownAttributeBits = codecBits | logAppendTimeBit | transactionalBit | controlBit | deleteHorizonBit
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is exactly one batch, header included. Its methods may be called on what Split returned; on fewer than
// HeaderBytes bytes they panic.
type Batch []byte

// Corrupt means that bytes are not a well-formed batch.
type Corrupt struct {
	Reason     string
	Position   int  // of the fault, from the start of the bytes that were given
	Incomplete bool // the bytes ended too early, and more of them may make a batch: the normal end of a fetch or of a torn write
}

func (c *Corrupt) Error() string {
	return fmt.Sprintf("corrupt record batch at byte %d: %s", c.Position, c.Reason)
}

// Split takes the first batch off b, without copying and without looking past the header: sizes and magic are checked,
// CRC and records are not. The error is a *Corrupt, also for an empty b.
func Split(b []byte) (first Batch, rest []byte, err error) {
	if len(b) <= magicAt {
		return nil, b, &Corrupt{Reason: "the header is cut short", Position: len(b), Incomplete: true}
	}
	length := int32(binary.BigEndian.Uint32(b[lengthAt:]))
	if magic := b[magicAt]; magic != CurrentMagic {
		return nil, b, &Corrupt{Reason: fmt.Sprintf("magic is %d, want %d", int8(magic), CurrentMagic), Position: magicAt}
	}
	if length < HeaderBytes-prefixBytes {
		return nil, b, &Corrupt{Reason: fmt.Sprintf("length field is %d, the least is %d", length, HeaderBytes-prefixBytes), Position: lengthAt}
	}
	if int64(length)+prefixBytes > int64(len(b)) {
		return nil, b, &Corrupt{Reason: fmt.Sprintf("batch of %d bytes is cut short after %d", int64(length)+prefixBytes, len(b)), Position: len(b), Incomplete: true}
	}
	size := int(length) + prefixBytes
	return Batch(b[:size:size]), b[size:], nil
}

// SizeOf reads from the first bytes of a batch, at least 12, how many bytes the whole batch has. The result may be
// anything that an int32 plus 12 can hold if the bytes are corrupt.
func SizeOf(b []byte) int64 {
	return int64(int32(binary.BigEndian.Uint32(b[lengthAt:]))) + prefixBytes
}

// BaseOffset is the offset of the first record that the batch had when it was written.
func (b Batch) BaseOffset() int64 { return int64(binary.BigEndian.Uint64(b[baseOffsetAt:])) }

// LastOffset is the offset of the last record that the batch had when it was written, inclusive: compaction may have removed it.
func (b Batch) LastOffset() int64 { return b.BaseOffset() + int64(b.LastOffsetDelta()) }

// NextOffset is the first offset after the batch.
func (b Batch) NextOffset() int64 { return b.LastOffset() + 1 }

// LeaderEpoch is the epoch of the leader that appended the batch.
func (b Batch) LeaderEpoch() LeaderEpoch {
	return LeaderEpoch(binary.BigEndian.Uint32(b[leaderEpochAt:]))
}

// Magic is the message format.
func (b Batch) Magic() int8 { return int8(b[magicAt]) }

// CRC is the checksum that the batch carries.
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[crcAt:]) }

// ValidCRC computes the checksum and compares.
func (b Batch) ValidCRC() bool { return b.CRC() == b.computeCRC() }

func (b Batch) computeCRC() uint32 { return crc32.Checksum(b[attributesAt:], castagnoli) }

func (b Batch) stampCRC() { binary.BigEndian.PutUint32(b[crcAt:], b.computeCRC()) }

// Attributes are the raw attribute bits.
func (b Batch) Attributes() int16 { return int16(binary.BigEndian.Uint16(b[attributesAt:])) }

// Codec is how the records are compressed; it need not be a valid one.
func (b Batch) Codec() compress.Codec { return compress.Codec(b.Attributes() & codecBits) }

// TimestampType says who set the timestamps.
func (b Batch) TimestampType() TimestampType {
	if b.Attributes()&logAppendTimeBit != 0 {
		return LogAppendTime
	}
	return CreateTime
}

// IsTransactional says whether the batch belongs to a transaction.
func (b Batch) IsTransactional() bool { return b.Attributes()&transactionalBit != 0 }

// IsControl says whether the batch holds control records, which clients do not deliver.
func (b Batch) IsControl() bool { return b.Attributes()&controlBit != 0 }

// HasDeleteHorizon says whether compaction has set when the batch's tombstones or marker may go; BaseTimestamp then is that time.
func (b Batch) HasDeleteHorizon() bool { return b.Attributes()&deleteHorizonBit != 0 }

// LastOffsetDelta is LastOffset minus BaseOffset.
func (b Batch) LastOffsetDelta() int32 {
	return int32(binary.BigEndian.Uint32(b[lastOffsetDeltaAt:]))
}

// BaseTimestamp is what the records' timestamp deltas count from, in ms since 1970.
func (b Batch) BaseTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[baseTimestampAt:])) }

// MaxTimestamp is the largest timestamp of the records in ms since 1970, or NoTimestamp.
func (b Batch) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[maxTimestampAt:])) }

// ProducerID is NoProducerID for a producer without idempotence.
func (b Batch) ProducerID() ProducerID { return ProducerID(binary.BigEndian.Uint64(b[producerIDAt:])) }

// HasProducerID says whether the producer is idempotent or transactional.
func (b Batch) HasProducerID() bool { return b.ProducerID() > NoProducerID }

// ProducerEpoch is the epoch of the producer id.
func (b Batch) ProducerEpoch() ProducerEpoch {
	return ProducerEpoch(binary.BigEndian.Uint16(b[producerEpochAt:]))
}

// BaseSequence is the sequence number of the first record, or NoSequence.
func (b Batch) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(b[baseSequenceAt:])) }

// LastSequence is the sequence number of the last record, inclusive, or NoSequence. Sequences go on with 0 after MaxInt32.
func (b Batch) LastSequence() int32 {
	base := b.BaseSequence()
	if base == NoSequence {
		return NoSequence
	}
	return AdvanceSequence(base, b.LastOffsetDelta())
}

// AdvanceSequence adds to a sequence number; 0 follows MaxInt32.
func AdvanceSequence(sequence, by int32) int32 {
	if sequence > math.MaxInt32-by {
		return by - (math.MaxInt32 - sequence) - 1
	}
	return sequence + by
}

// Count is the number of records that the header declares.
func (b Batch) Count() int32 { return int32(binary.BigEndian.Uint32(b[countAt:])) }

// SetBaseOffset moves the batch to another offset. The CRC does not cover it.
func (b Batch) SetBaseOffset(offset int64) {
	binary.BigEndian.PutUint64(b[baseOffsetAt:], uint64(offset))
}

// SetLeaderEpoch stamps the epoch of the appending leader. The CRC does not cover it.
func (b Batch) SetLeaderEpoch(epoch LeaderEpoch) {
	binary.BigEndian.PutUint32(b[leaderEpochAt:], uint32(epoch))
}

// SetLogAppendTime gives all records of the batch the time ms (since 1970) and renews the CRC.
func (b Batch) SetLogAppendTime(ms int64) { b.setMaxTimestamp(LogAppendTime, ms) }

// setMaxTimestamp sets timestamp type and maximum and renews the CRC, if either differs.
func (b Batch) setMaxTimestamp(t TimestampType, ms int64) {
	if b.TimestampType() == t && b.MaxTimestamp() == ms {
		return
	}
	attributes := b.Attributes() & knownAttributeBits &^ logAppendTimeBit
	if t == LogAppendTime {
		attributes |= logAppendTimeBit
	}
	binary.BigEndian.PutUint16(b[attributesAt:], uint16(attributes))
	binary.BigEndian.PutUint64(b[maxTimestampAt:], uint64(ms))
	b.stampCRC()
}

// payload is the records, compressed if there is a codec.
func (b Batch) payload() []byte { return b[HeaderBytes:] }
