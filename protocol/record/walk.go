package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"sluice/protocol/compress"
)

// walk goes over the records of a batch that is validated.
type walk struct {
	batch Batch
	rules Rules

	// Set by prepare, so that the common case of a record is a few comparisons.
	baseTimestamp int64
	checkTime     bool // records with a timestamp must lie within the limits
	appendTime    bool // the producer claims log-append time
	maxRecord     int  // limit for one record that was compressed; 0 = none

	index        int32 // of the record at hand
	maxTimestamp int64 // NoTimestamp if there is none
	maxAt        int32 // index of the first record that has it

	errors   []RecordError
	count    int  // of bad records, also of those that are not in errors
	timeless bool // a timestamp was among what is bad
}

func (w *walk) prepare() {
	w.baseTimestamp = w.batch.BaseTimestamp()
	w.checkTime = w.rules.TimestampType == CreateTime
	w.appendTime = w.batch.TimestampType() == LogAppendTime
	if w.batch.Codec() != compress.None {
		w.maxRecord = w.rules.MaxRecordBytes
	}
}

// plain walks over records that are not compressed. It does not allocate unless a record is bad.
func (w *walk) plain(payload []byte) *Invalid {
	at := 0
	for range w.batch.Count() {
		s, fault := scan(payload, at)
		if fault != "" {
			return w.malformed(fault)
		}
		if refused := w.record(s.timestampDelta, s.offsetDelta, s.hasKey); refused != nil {
			return refused
		}
		if w.maxRecord > 0 && s.length > w.maxRecord {
			return w.recordTooLarge(s.length)
		}
		at = s.next
	}
	if at != len(payload) {
		return w.malformed(faultRemaining)
	}
	return nil
}

// record checks one record and moves on to the next.
func (w *walk) record(timestampDelta int64, offsetDelta int32, hasKey bool) *Invalid {
	if offsetDelta != w.index {
		return w.malformed(faultOffsets)
	}
	timestamp := w.baseTimestamp + timestampDelta
	if w.appendTime {
		timestamp = w.batch.MaxTimestamp()
	}
	switch {
	case w.rules.Compacted && !hasKey:
		w.bad(false, "a compacted topic does not take a record without a key")
	case w.checkTime && timestamp != NoTimestamp:
		// The differences wrap around as Kafka's do.
		age := w.rules.NowMs - timestamp
		if age > w.rules.BeforeMaxMs || -age > w.rules.AfterMaxMs {
			w.badTimestamp(timestamp)
		}
	case w.appendTime:
		w.bad(true, "a producer may not claim log-append time")
	}
	if timestamp > w.maxTimestamp {
		w.maxTimestamp, w.maxAt = timestamp, w.index
	}
	w.index++
	return nil
}

func (w *walk) badTimestamp(timestamp int64) {
	if w.count < maxRecordErrors {
		w.bad(true, fmt.Sprintf("timestamp %d of the record at offset delta %d is out of range: it must lie within [%d, %d]",
			timestamp, w.index, w.rules.NowMs-w.rules.BeforeMaxMs, saturatingAdd(w.rules.NowMs, w.rules.AfterMaxMs)))
		return
	}
	w.bad(true, "")
}

func saturatingAdd(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// bad notes that the record at hand is refused.
func (w *walk) bad(timestamp bool, message string) {
	w.count++
	w.timeless = w.timeless || timestamp
	if len(w.errors) < maxRecordErrors {
		w.errors = append(w.errors, RecordError{BatchIndex: w.index, Message: message})
	}
}

// verdict sums up what is wrong with single records.
func (w *walk) verdict() *Invalid {
	if w.count == 0 {
		return nil
	}
	kind := KindInvalidRecord
	message := fmt.Sprintf("%d records are refused, the first because %s", w.count, w.errors[0].Message)
	if w.timeless {
		kind = KindInvalidTimestamp
		message = "records are refused because of their timestamps"
	}
	return &Invalid{Kind: kind, Message: message, RecordErrors: w.errors}
}

func (w *walk) malformed(fault string) *Invalid {
	return invalid(KindInvalidRecord, "record %d of %d is malformed: %s", w.index, w.batch.Count(), fault)
}

func (w *walk) recordTooLarge(size int) *Invalid {
	return invalid(KindInvalidRecord, "record %d of %d bytes exceeds the limit of %d (max.decompressed.message.bytes)", w.index, size, w.maxRecord)
}

// maxDecompressed is the limit for the whole batch.
func (w *walk) maxDecompressed() int {
	if w.rules.MaxDecompressedBytes > 0 {
		return w.rules.MaxDecompressedBytes
	}
	return DefaultMaxDecompressedBytes
}

// undecodable turns a decompressor's error into a refusal.
func (w *walk) undecodable(err error) *Invalid {
	if errors.Is(err, compress.ErrTooLarge) {
		return invalid(KindInvalidRecord, "record batch decompresses to more than is allowed")
	}
	return invalid(KindInvalidRecord, "record batch does not decompress: %v", err)
}

// compressed walks over compressed records that stay as they are. Memory is bounded by the decompressor's window,
// whatever the batch holds.
func (w *walk) compressed() *Invalid {
	stream, err := compress.OpenStream(w.batch.Codec(), w.batch.payload(), w.maxDecompressed())
	if err != nil {
		return w.undecodable(err)
	}
	defer stream.Close()
	for range w.batch.Count() {
		if refused := w.streamed(stream); refused != nil {
			return refused
		}
	}
	left, err := stream.Peek(1)
	if err != nil {
		return w.undecodable(err)
	}
	if len(left) > 0 {
		return w.malformed(faultRemaining)
	}
	return nil
}

// streamed checks the next record of a stream.
func (w *walk) streamed(stream *compress.Stream) *Invalid {
	length, n, refused := w.recordLength(stream)
	if refused != nil {
		return refused
	}
	if n+length > compress.WindowBytes {
		return w.streamedLarge(stream, n, length)
	}
	window, err := stream.Peek(n + length)
	if err != nil {
		return w.undecodable(err)
	}
	s, fault := scan(window, 0)
	if fault != "" {
		return w.malformed(fault)
	}
	if refused := w.record(s.timestampDelta, s.offsetDelta, s.hasKey); refused != nil {
		return refused
	}
	_, err = stream.Discard(s.next)
	if err != nil {
		return w.undecodable(err)
	}
	return nil
}

// recordLength reads the length in front of the next record, and how many bytes it takes, without moving on.
func (w *walk) recordLength(stream *compress.Stream) (length, n int, refused *Invalid) {
	head := stream.Buffered()
	if len(head) < maxVarintBytes {
		var err error
		if head, err = stream.Peek(maxVarintBytes); err != nil {
			return 0, 0, w.undecodable(err)
		}
	}
	v, n := varint(head, 0)
	switch {
	case n < 0:
		return 0, 0, w.malformed(faultLength)
	case v < 0:
		return 0, 0, w.malformed(faultNegative)
	case w.maxRecord > 0 && int(v) > w.maxRecord:
		return 0, 0, w.recordTooLarge(int(v))
	}
	return int(v), n, nil
}

const (
	maxVarintBytes  = 5
	maxVarlongBytes = 10
)

// streamedLarge checks a record that is larger than the window: field by field, keys and values skipped.
func (w *walk) streamedLarge(stream *compress.Stream, n, length int) *Invalid {
	f := fields{stream: stream, left: n + length}
	f.skip(n + 1) // length, attributes
	timestampDelta := f.varlong()
	offsetDelta := f.varint()
	keyLen := f.varint()
	f.skip(int(keyLen))
	f.skip(int(f.varint()))
	headers := f.varint()
	if headers < 0 || int(headers) > f.left {
		f.fail(faultHeaders)
	}
	for ; headers > 0 && f.fault == "" && f.err == nil; headers-- {
		key := f.varint()
		if key < 0 {
			f.fail(faultHeaderKey)
		}
		f.skip(int(key))
		f.skip(int(f.varint()))
	}
	switch {
	case f.err != nil:
		return w.undecodable(f.err)
	case f.fault != "":
		return w.malformed(f.fault)
	case f.left != 0:
		return w.malformed(faultLeftOver)
	}
	return w.record(timestampDelta, offsetDelta, keyLen >= 0)
}

// fields reads the fields of one record off a stream. After the first fault it yields zeros.
type fields struct {
	stream *compress.Stream
	left   int // bytes of the record
	fault  string
	err    error
}

func (f *fields) fail(fault string) {
	if f.fault == "" {
		f.fault = fault
	}
}

// skip steps over n bytes, over none if n is negative.
func (f *fields) skip(n int) {
	if n <= 0 || f.fault != "" || f.err != nil {
		return
	}
	if n > f.left {
		f.fail(faultFields)
		return
	}
	f.left -= n
	ok, err := f.stream.Discard(n)
	f.err = err
	if err == nil && !ok {
		f.fail(faultBeyondBatch)
	}
}

func (f *fields) peek(n int) []byte {
	if f.fault != "" || f.err != nil {
		return nil
	}
	b, err := f.stream.Peek(min(n, f.left))
	f.err = err
	return b
}

func (f *fields) varint() int32 {
	v, n := varint(f.peek(maxVarintBytes), 0)
	if n < 0 {
		f.fail(faultFields)
		return 0
	}
	f.skip(n)
	return v
}

func (f *fields) varlong() int64 {
	v, n := varlong(f.peek(maxVarlongBytes), 0)
	if n < 0 {
		f.fail(faultFields)
		return 0
	}
	f.skip(n)
	return v
}

// recompress checks the records and writes them with another codec. Records are the same bytes in every codec, so that
// only what is around them changes.
func (w *walk) recompress(target compress.Codec) (Batch, *Invalid) {
	payload := w.batch.payload()
	if codec := w.batch.Codec(); codec != compress.None {
		limit := min(w.maxDecompressed(), maxRecompressedBytes)
		if target == compress.None {
			limit = min(limit, max(w.rules.MaxMessageBytes-HeaderBytes, 0))
		}
		scratch := compress.BorrowBuffer()
		defer scratch.Release()
		var err error
		if scratch.B, err = compress.Decompress(scratch.B, codec, payload, limit); err != nil {
			if errors.Is(err, compress.ErrTooLarge) && target == compress.None {
				return nil, invalid(KindTooLarge, "record batch exceeds the limit of %d bytes (max.message.bytes) without compression", w.rules.MaxMessageBytes)
			}
			return nil, w.undecodable(err)
		}
		payload = scratch.B
	}
	if refused := w.plain(payload); refused != nil {
		return nil, refused
	}
	if w.count > 0 {
		return w.batch, nil
	}
	out, err := compress.Compress(make([]byte, HeaderBytes, HeaderBytes+len(payload)), target, w.rules.Compression.Level, payload)
	if err != nil {
		return nil, invalid(KindUnsupportedCompression, "record batch cannot be compressed: %v", err)
	}
	if len(out) > w.rules.MaxMessageBytes {
		return nil, tooLarge(len(out), w.rules.MaxMessageBytes)
	}
	batch := Batch(out)
	copy(batch, w.batch[:HeaderBytes])
	binary.BigEndian.PutUint32(batch[lengthAt:], uint32(len(out)-prefixBytes))
	attributes := w.batch.Attributes()&(transactionalBit|controlBit|logAppendTimeBit) | int16(target)
	binary.BigEndian.PutUint16(batch[attributesAt:], uint16(attributes))
	batch.stampCRC()
	return batch, nil
}
