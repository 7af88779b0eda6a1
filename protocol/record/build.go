package record

import "sluice/protocol/compress"

// BuilderOptions are the header fields of a batch to be built. The zero value of ProducerID, ProducerEpoch, BaseSequence
// and LeaderEpoch is a value like any other: set them to the No… constants if there is none.
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

// Builder collects records to a batch.
type Builder struct {
	options BuilderOptions
}

// NewBuilder starts a batch.
func NewBuilder(o BuilderOptions) *Builder { return &Builder{options: o} }

// Add appends records. Their Offset is ignored: they get consecutive offsets from the base offset on. With log-append
// time the last TimestampMs that is largest counts for all. Add copies what it is given. It returns the builder.
func (b *Builder) Add(records ...Record) *Builder { panic("not written yet") }

// Count is the number of records added.
func (b *Builder) Count() int { panic("not written yet") }

// SizeBytes is the size of the batch without compression, header included.
func (b *Builder) SizeBytes() int { panic("not written yet") }

// Build returns the batch, with its CRC. It fails if there are no records, or too many or too large ones for one batch.
func (b *Builder) Build() (Batch, error) { panic("not written yet") }
