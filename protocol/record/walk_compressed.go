package record

import (
	"errors"

	"sluice/protocol/compress"
)

// compressed walks over compressed records that stay as they are. Memory is bounded by the decompressor's window,
// whatever the batch holds.
func (w *walk) compressed() *Invalid {
	stream, err := compress.OpenStream(w.batch.Codec(), w.batch.payload(), w.maxDecompressed())
	if err != nil {
		return w.undecodable(err)
	}
	defer stream.Close()
	for left := w.batch.Count(); left > 0; left-- {
		seen, refused := w.buffered(stream, left)
		if left -= seen; refused == nil && left > 0 {
			refused = w.streamed(stream)
		}
		if refused != nil {
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

// buffered checks the next records of a stream, most at most, as long as they are decompressed already and at a glance good.
func (w *walk) buffered(stream *compress.Stream, most int32) (seen int32, refused *Invalid) {
	window, at := stream.Buffered(), 0
	for seen < most {
		next, timestampDelta, offsetDelta, hasKey, ok := glance(window, at)
		if !ok || w.maxRecord > 0 && next-at > w.maxRecord {
			break
		}
		if refused := w.record(timestampDelta, offsetDelta, hasKey); refused != nil {
			return seen, refused
		}
		at = next
		seen++
	}
	if _, err := stream.Discard(at); err != nil {
		return seen, w.undecodable(err)
	}
	return seen, nil
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
	return invalid(KindUnreadable, "record batch does not decompress: %v", err)
}
