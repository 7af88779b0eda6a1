package record

import (
	"fmt"
	"iter"

	"sluice/protocol/compress"
)

// Header is one header of a record. Keys may repeat.
type Header struct {
	Key   string
	Value []byte // nil = null
}

// Record is one decoded record.
type Record struct {
	Offset      int64
	TimestampMs int64  // ms since 1970, or NoTimestamp
	Key         []byte // nil = null
	Value       []byte // nil = null, a tombstone where the topic is compacted
	Headers     []Header
}

// Records decodes the records in order. Offsets are resolved, and with log-append time each record carries the batch's
// maximum timestamp. Key, Value and header values alias the batch, or the decompressed copy of it, which is not reused.
// maxDecompressedBytes bounds what a compressed batch may decompress to; 0 or less means DefaultMaxDecompressedBytes. An
// error is a *Corrupt, or wraps compress.ErrTooLarge, compress.ErrUnknownCodec or a *compress.Corrupt; it ends the
// sequence. The CRC is not checked.
func (b Batch) Records(maxDecompressedBytes int) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		payload := []byte(b.payload())
		if codec := b.Codec(); codec != compress.None {
			if maxDecompressedBytes <= 0 {
				maxDecompressedBytes = DefaultMaxDecompressedBytes
			}
			var err error
			if payload, err = compress.Decompress(nil, codec, payload, maxDecompressedBytes); err != nil {
				yield(Record{}, fmt.Errorf("records of the batch at offset %d: %w", b.BaseOffset(), err))
				return
			}
		}
		base, baseTimestamp, maxTimestamp := b.BaseOffset(), b.BaseTimestamp(), b.MaxTimestamp()
		appendTime := b.TimestampType() == LogAppendTime
		at := 0
		for range b.Count() {
			s, fault := scan(payload, at)
			if fault != "" {
				yield(Record{}, &Corrupt{Reason: fault, Position: HeaderBytes + at})
				return
			}
			at = s.next
			r := s.decode(payload)
			r.Offset = base + int64(s.offsetDelta)
			r.TimestampMs = baseTimestamp + s.timestampDelta
			if appendTime {
				r.TimestampMs = maxTimestamp
			}
			if !yield(r, nil) {
				return
			}
		}
		if at != len(payload) {
			yield(Record{}, &Corrupt{Reason: faultRemaining, Position: HeaderBytes + at})
		}
	}
}
