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
// maximum timestamp. Key, Value and header values alias the batch, or decompressed memory that is not reused: of a
// compressed batch only the pieces that the caller keeps stay in memory. maxDecompressedBytes bounds what such a batch may
// decompress to; 0 or less means DefaultMaxDecompressedBytes, and so does more than that. An error is a *Corrupt, or wraps
// compress.ErrTooLarge, compress.ErrUnknownCodec or a *compress.Corrupt; it ends the sequence. The CRC is not checked.
func (b Batch) Records(maxDecompressedBytes int) iter.Seq2[Record, error] {
	if b.Codec() == compress.None {
		return b.plainRecords
	}
	if maxDecompressedBytes <= 0 {
		maxDecompressedBytes = DefaultMaxDecompressedBytes
	}
	maxDecompressedBytes = min(maxDecompressedBytes, DefaultMaxDecompressedBytes)
	return func(yield func(Record, error) bool) { b.compressedRecords(maxDecompressedBytes, yield) }
}

func (b Batch) plainRecords(yield func(Record, error) bool) {
	payload := b.payload()
	at := 0
	for range b.Count() {
		s, fault := scan(payload, at)
		if fault != "" {
			yield(Record{}, &Corrupt{Reason: fault, Position: HeaderBytes + at})
			return
		}
		at = s.next
		if !yield(b.resolve(&s, payload), nil) {
			return
		}
	}
	if at != len(payload) {
		yield(Record{}, &Corrupt{Reason: faultRemaining, Position: HeaderBytes + at})
	}
}

func (b Batch) compressedRecords(maxBytes int, yield func(Record, error) bool) {
	fail := func(err error) {
		yield(Record{}, fmt.Errorf("records of the batch at offset %d: %w", b.BaseOffset(), err))
	}
	count := b.Count()
	if count == 0 && len(b.payload()) == 0 {
		return
	}
	stream, err := compress.OpenKeptStream(b.Codec(), b.payload(), maxBytes)
	if err != nil {
		fail(err)
		return
	}
	defer stream.Close()
	for range count {
		head, err := stream.Peek(maxVarintBytes)
		if err != nil {
			fail(err)
			return
		}
		// A length that is no number, or not a sensible one, is scan's to report.
		if length, n := varint(head, 0); n > 0 && length > 0 {
			if head, err = stream.Peek(n + int(length)); err != nil {
				fail(err)
				return
			}
		}
		s, fault := scan(head, 0)
		if fault != "" {
			fail(&Corrupt{Reason: fault, Position: HeaderBytes})
			return
		}
		r := b.resolve(&s, head)
		if _, err := stream.Discard(s.next); err != nil {
			fail(err)
			return
		}
		if !yield(r, nil) {
			return
		}
	}
	left, err := stream.Peek(1)
	if err != nil {
		fail(err)
	} else if len(left) > 0 {
		fail(&Corrupt{Reason: faultRemaining, Position: HeaderBytes})
	}
}

// resolve gives the record that was scanned in payload its offset and timestamp.
func (b Batch) resolve(s *scanned, payload []byte) Record {
	r := s.decode(payload)
	r.Offset = b.BaseOffset() + int64(s.offsetDelta)
	r.TimestampMs = b.BaseTimestamp() + s.timestampDelta
	if b.TimestampType() == LogAppendTime {
		r.TimestampMs = b.MaxTimestamp()
	}
	return r
}
