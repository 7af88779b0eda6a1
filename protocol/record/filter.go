package record

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"

	"sluice/protocol/compress"
)

// View is what it takes to decide about a record.
type View struct {
	Offset   int64
	Key      []byte // nil = null; valid only while the function runs that it is given to
	HasValue bool   // without one the record is a tombstone
}

// Filter looks through batches and writes them with some of their records left out, as compaction does. It keeps its memory from batch to
// batch, so that one goroutine at a time may use it. The zero value is ready.
type Filter struct {
	plain []byte // decompressed records
	kept  []keptRecord
}

// keptRecord is a record that stays: where it begins after its timestamp, and where it ends.
type keptRecord struct {
	rest, end   int
	timestampMs int64
}

// Retention says which records of a batch stay, and how the batch is written.
type Retention struct {
	// Keep is asked about each record in order.
	Keep func(View) bool
	// KeepEmpty writes the header of a batch of which no record is kept; otherwise nothing of it is.
	KeepEmpty bool
	// DeleteHorizonMs is set in a batch that keeps a tombstone and has no delete horizon yet: from then on (ms since 1970) the tombstone may go.
	DeleteHorizonMs int64
	// SetHorizon sets it without a tombstone: in an end-transaction marker that nothing is left to be read for.
	SetHorizon bool
}

// Filtered counts what Apply did.
type Filtered struct {
	Read, Kept int // records
}

// Each calls f with the records in order until it returns false. Errors are those of Batch.Records; compressed batches above 256 MiB are too large.
func (f *Filter) Each(b Batch, each func(View) bool) error {
	payload, err := f.open(b)
	if err != nil {
		return err
	}
	at := 0
	for range b.Count() {
		s, fault := scan(payload, at)
		if fault != "" {
			return &Corrupt{Reason: fault, Position: HeaderBytes + at}
		}
		at = s.next
		if !each(b.view(&s, payload)) {
			return nil
		}
	}
	return allScanned(payload, at)
}

// Apply appends to dst what b becomes: the same bytes if every record is kept and no delete horizon is to be set, nothing, or a batch with fewer
// records. Offsets, epochs, sequences, timestamps and the codec stay, and the last offset too if its record goes.
func (f *Filter) Apply(dst []byte, b Batch, r Retention) ([]byte, Filtered, error) {
	payload, err := f.open(b)
	if err != nil {
		return dst, Filtered{}, err
	}
	f.kept = f.kept[:0]
	at, read, tombstone := 0, 0, false
	for range b.Count() {
		s, fault := scan(payload, at)
		if fault != "" {
			return dst, Filtered{}, &Corrupt{Reason: fault, Position: HeaderBytes + at}
		}
		read++
		if r.Keep(b.view(&s, payload)) {
			tombstone = tombstone || s.valueLen < 0
			f.kept = append(f.kept, b.keep(&s, payload, at))
		}
		at = s.next
	}
	if err := allScanned(payload, at); err != nil {
		return dst, Filtered{}, err
	}
	counts := Filtered{Read: read, Kept: len(f.kept)}
	setHorizon := (tombstone || r.SetHorizon) && !b.HasDeleteHorizon()
	switch {
	case len(f.kept) == 0 && r.KeepEmpty:
		return b.appendEmpty(dst), counts, nil
	case len(f.kept) == 0:
		return dst, counts, nil
	case len(f.kept) == read && !setHorizon:
		return append(dst, b...), counts, nil
	}
	baseTimestamp, attributes := f.kept[0].timestampMs, b.Attributes()&knownAttributeBits
	switch {
	case setHorizon:
		baseTimestamp, attributes = r.DeleteHorizonMs, attributes|deleteHorizonBit
	case b.HasDeleteHorizon():
		baseTimestamp = b.BaseTimestamp()
	}
	dst, err = f.rewrite(dst, b, payload, baseTimestamp, attributes)
	return dst, counts, err
}

// Shrink frees memory above so many bytes that large batches took.
func (f *Filter) Shrink(bytes int) {
	if cap(f.plain) > bytes {
		f.plain = nil
	}
	if cap(f.kept)*24 > bytes {
		f.kept = nil
	}
}

// open returns the records of a batch, decompressed.
func (f *Filter) open(b Batch) ([]byte, error) {
	payload := b.payload()
	if b.Codec() == compress.None || b.Count() == 0 && len(payload) == 0 {
		return payload, nil
	}
	var err error
	if f.plain, err = compress.Decompress(f.plain[:0], b.Codec(), payload, maxRecompressedBytes); err != nil {
		return nil, fmt.Errorf("records of the batch at offset %d: %w", b.BaseOffset(), err)
	}
	return f.plain, nil
}

func allScanned(payload []byte, at int) error {
	if at != len(payload) {
		return &Corrupt{Reason: faultRemaining, Position: HeaderBytes + at}
	}
	return nil
}

func (b Batch) view(s *scanned, payload []byte) View {
	v := View{Offset: b.BaseOffset() + int64(s.offsetDelta), HasValue: s.valueLen >= 0}
	if s.hasKey {
		v.Key = payload[s.key : s.key+s.keyLen : s.key+s.keyLen]
	}
	return v
}

// keep notes a record that begins at a position. The numbers in front are read once more, as they need not have their shortest form.
func (b Batch) keep(s *scanned, payload []byte, at int) keptRecord {
	_, at = varint(payload, at)
	_, at = varlong(payload, at+1)
	timestampMs := b.BaseTimestamp() + s.timestampDelta
	if b.TimestampType() == LogAppendTime {
		timestampMs = b.MaxTimestamp()
	}
	return keptRecord{rest: at, end: s.next, timestampMs: timestampMs}
}

// rewrite appends b with the records that are kept.
func (f *Filter) rewrite(dst []byte, b Batch, payload []byte, baseTimestamp int64, attributes int16) ([]byte, error) {
	start, codec := len(dst), b.Codec()
	dst = append(dst, b[:HeaderBytes]...)
	records := dst
	if codec != compress.None {
		scratch := compress.BorrowBuffer()
		defer scratch.Release()
		records = scratch.B[:0]
		defer func() { scratch.B = records }()
	}
	maxTimestamp := NoTimestamp
	for _, k := range f.kept {
		maxTimestamp = max(maxTimestamp, k.timestampMs)
		delta := k.timestampMs - baseTimestamp
		records = kbin.AppendVarint(records, int32(1+kbin.VarlongLen(delta)+k.end-k.rest))
		records = append(records, 0) // attributes
		records = kbin.AppendVarlong(records, delta)
		records = append(records, payload[k.rest:k.end]...)
	}
	if codec == compress.None {
		dst = records
	} else {
		var err error
		if dst, err = compress.Compress(dst, codec, 0, records); err != nil {
			return dst[:start], fmt.Errorf("compress the batch at offset %d: %w", b.BaseOffset(), err)
		}
	}
	out := Batch(dst[start:])
	if len(out)-prefixBytes > maxLength {
		return dst[:start], errBatchSize
	}
	binary.BigEndian.PutUint32(out[lengthAt:], uint32(len(out)-prefixBytes))
	binary.BigEndian.PutUint16(out[attributesAt:], uint16(attributes))
	binary.BigEndian.PutUint64(out[baseTimestampAt:], uint64(baseTimestamp))
	binary.BigEndian.PutUint64(out[maxTimestampAt:], uint64(maxTimestamp))
	binary.BigEndian.PutUint32(out[countAt:], uint32(len(f.kept)))
	out.stampCRC()
	return dst, nil
}

const maxLength = 1<<31 - 1

// appendEmpty appends b without any record: what is left says which offsets and sequences it had.
func (b Batch) appendEmpty(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, b[:HeaderBytes]...)
	out := Batch(dst[start:])
	binary.BigEndian.PutUint32(out[lengthAt:], HeaderBytes-prefixBytes)
	binary.BigEndian.PutUint16(out[attributesAt:], uint16(b.Attributes()&(logAppendTimeBit|transactionalBit|controlBit)))
	none := NoTimestamp
	binary.BigEndian.PutUint64(out[baseTimestampAt:], uint64(none))
	binary.BigEndian.PutUint32(out[countAt:], 0)
	out.stampCRC()
	return dst
}
