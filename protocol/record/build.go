package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kbin"

	"sluice/protocol/compress"
)

// BuilderOptions are the header fields of a batch to be built. The zero value of ProducerID, ProducerEpoch, BaseSequence
// and LeaderEpoch is a value like any other: set them to the No… constants if there is none, or start from Unattributed.
type BuilderOptions struct {
	Codec         compress.Codec
	Level         int // as compress.Compress has it; 0 is the codec's default
	TimestampType TimestampType
	ProducerID    ProducerID
	ProducerEpoch ProducerEpoch
	BaseSequence  int32
	Transactional bool
	Control       bool
	LeaderEpoch   LeaderEpoch
	BaseOffset    int64
}

// Unattributed returns the options of a batch without compression, producer id and leader epoch, at offset 0.
func Unattributed() BuilderOptions {
	return BuilderOptions{ProducerID: NoProducerID, ProducerEpoch: NoProducerEpoch, BaseSequence: NoSequence, LeaderEpoch: NoLeaderEpoch}
}

// Builder collects records to a batch.
type Builder struct {
	options       BuilderOptions
	b             []byte // header, zeros until Build, and records
	count         int
	baseTimestamp int64
	maxTimestamp  int64
}

var (
	errNoRecords = errors.New("record batch without records")
	errBatchSize = errors.New("record batch above 2 GiB")
)

// NewBuilder starts a batch.
func NewBuilder(o BuilderOptions) *Builder {
	return &Builder{options: o, b: make([]byte, HeaderBytes, 512), maxTimestamp: NoTimestamp}
}

// Add copies records into the batch and returns the builder. Their Offset is ignored: they get consecutive offsets from
// the base offset on. With log-append time the largest of their timestamps counts for all.
func (b *Builder) Add(records ...Record) *Builder {
	for i := range records {
		b.add(&records[i])
	}
	return b
}

func (b *Builder) add(r *Record) {
	if b.count == 0 {
		b.baseTimestamp = r.TimestampMs
	}
	b.maxTimestamp = max(b.maxTimestamp, r.TimestampMs)
	timestampDelta, offsetDelta := r.TimestampMs-b.baseTimestamp, int32(b.count)
	b.count++

	size := 1 + kbin.VarlongLen(timestampDelta) + kbin.VarintLen(offsetDelta) +
		bytesLen(r.Key) + bytesLen(r.Value) + kbin.VarintLen(int32(len(r.Headers)))
	for _, h := range r.Headers {
		size += kbin.VarintLen(int32(len(h.Key))) + len(h.Key) + bytesLen(h.Value)
	}
	b.b = kbin.AppendVarint(b.b, int32(size))
	b.b = append(b.b, 0) // attributes
	b.b = kbin.AppendVarlong(b.b, timestampDelta)
	b.b = kbin.AppendVarint(b.b, offsetDelta)
	b.b = kbin.AppendVarintBytes(b.b, r.Key)
	b.b = kbin.AppendVarintBytes(b.b, r.Value)
	b.b = kbin.AppendVarint(b.b, int32(len(r.Headers)))
	for _, h := range r.Headers {
		b.b = kbin.AppendVarintString(b.b, h.Key)
		b.b = kbin.AppendVarintBytes(b.b, h.Value)
	}
}

func bytesLen(v []byte) int {
	if v == nil {
		return 1
	}
	return kbin.VarintLen(int32(len(v))) + len(v)
}

// Count is the number of records added.
func (b *Builder) Count() int { return b.count }

// SizeBytes is the size of the batch without compression, header included.
func (b *Builder) SizeBytes() int { return len(b.b) }

// Build returns the batch, with its CRC. It fails if there are no records or more bytes than a batch can have. The
// builder must not be used again: the batch may be made in its memory.
func (b *Builder) Build() (Batch, error) {
	if b.count == 0 {
		return nil, errNoRecords
	}
	if len(b.b) > math.MaxInt32 {
		return nil, errBatchSize
	}
	o := &b.options
	batch := Batch(b.b)
	if o.Codec != compress.None {
		out, err := compress.Compress(make([]byte, HeaderBytes, HeaderBytes+len(b.b)/2), o.Codec, o.Level, b.b[HeaderBytes:])
		if err != nil {
			return nil, fmt.Errorf("compress record batch: %w", err)
		}
		batch = out
	}
	attributes := int16(o.Codec) & codecBits
	if o.TimestampType == LogAppendTime {
		attributes |= logAppendTimeBit
	}
	if o.Transactional {
		attributes |= transactionalBit
	}
	if o.Control {
		attributes |= controlBit
	}
	batch.SetBaseOffset(o.BaseOffset)
	batch.SetLeaderEpoch(o.LeaderEpoch)
	batch[magicAt] = CurrentMagic
	binary.BigEndian.PutUint32(batch[lengthAt:], uint32(len(batch)-prefixBytes))
	binary.BigEndian.PutUint16(batch[attributesAt:], uint16(attributes))
	binary.BigEndian.PutUint32(batch[lastOffsetDeltaAt:], uint32(b.count-1))
	binary.BigEndian.PutUint64(batch[baseTimestampAt:], uint64(b.baseTimestamp))
	binary.BigEndian.PutUint64(batch[maxTimestampAt:], uint64(b.maxTimestamp))
	binary.BigEndian.PutUint64(batch[producerIDAt:], uint64(o.ProducerID))
	binary.BigEndian.PutUint16(batch[producerEpochAt:], uint16(o.ProducerEpoch))
	binary.BigEndian.PutUint32(batch[baseSequenceAt:], uint32(o.BaseSequence))
	binary.BigEndian.PutUint32(batch[countAt:], uint32(b.count))
	batch.stampCRC()
	return batch, nil
}
