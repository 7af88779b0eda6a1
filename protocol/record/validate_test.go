package record

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/protocol/compress"
)

// refusal runs Validate and returns its *Invalid.
func refusal(t *testing.T, b []byte, r Rules) *Invalid {
	t.Helper()
	v, err := Validate(b, r)
	var refused *Invalid
	if !errors.As(err, &refused) {
		t.Fatalf("not refused: %+v, %v", v, err)
	}
	return refused
}

var usual = Rules{BeforeMaxMs: 1 << 62, AfterMaxMs: 3_600_000, MaxMessageBytes: 1 << 20, NowMs: oracleNowMs}

// Records without keys in a compacted topic are told one by one.
func TestValidate_NullKeysInCompactedTopic_ListsThem(t *testing.T) {
	key, null := Record{TimestampMs: oracleNowMs, Key: []byte("k")}, Record{TimestampMs: oracleNowMs}
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		o := Unattributed()
		o.Codec = codec
		r := usual
		r.Compacted = true
		refused := refusal(t, smallBatch(t, o, key, null, key, null), r)
		message := "a compacted topic does not take a record without a key"
		if diff := cmp.Diff([]RecordError{{1, message}, {3, message}}, refused.RecordErrors); diff != "" || refused.Kind != KindInvalidRecord {
			t.Errorf("%s: kind %d, want(-) got(+):\n%s", codec, refused.Kind, diff)
		}
		empty := Record{TimestampMs: oracleNowMs, Key: []byte{}}
		if _, err := Validate(smallBatch(t, o, empty), r); err != nil {
			t.Errorf("%s: an empty key is a key: %v", codec, err)
		}
	}
}

// A timestamp out of range decides the kind, also beside records that are bad for another reason.
func TestValidate_TimestampOutOfRange(t *testing.T) {
	twoDays := Record{TimestampMs: oracleNowMs + 2*86_400_000, Key: []byte("k")}
	r := usual
	r.Compacted = true
	refused := refusal(t, smallBatch(t, Unattributed(), Record{TimestampMs: oracleNowMs}, twoDays), r)
	if refused.Kind != KindInvalidTimestamp || len(refused.RecordErrors) != 2 || refused.RecordErrors[1].BatchIndex != 1 {
		t.Errorf("got %+v", refused)
	}
	if m := refused.RecordErrors[1].Message; !strings.Contains(m, "Timestamp 1700172800000") || !strings.Contains(m, "1700003600000]") {
		t.Errorf("message %q", m)
	}
	for _, edge := range []struct {
		timestamp int64
		ok        bool
	}{{oracleNowMs + r.AfterMaxMs, true}, {oracleNowMs + r.AfterMaxMs + 1, false}, {oracleNowMs - 50, true}, {oracleNowMs - 51, false}, {NoTimestamp, true}} {
		r.BeforeMaxMs = 50
		_, err := Validate(smallBatch(t, Unattributed(), Record{TimestampMs: edge.timestamp, Key: []byte("k")}), r)
		if (err == nil) != edge.ok {
			t.Errorf("timestamp %d: %v", edge.timestamp, err)
		}
	}
}

// With log-append time all records get the broker's clock, whatever they carried, and the CRC stays right.
func TestValidate_LogAppendTime_StampsTheBatch(t *testing.T) {
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		o := Unattributed()
		o.Codec = codec
		r := usual
		r.TimestampType = LogAppendTime
		v, err := Validate(smallBatch(t, o, Record{TimestampMs: 1000}, Record{TimestampMs: 2000}, Record{TimestampMs: 1 << 60}), r)
		if err != nil {
			t.Fatal(err)
		}
		if !v.Batch.ValidCRC() || v.Batch.TimestampType() != LogAppendTime || v.MaxTimestampMs != oracleNowMs || v.OffsetOfMaxTimestampDelta != 0 {
			t.Errorf("%s: got %+v", codec, v)
		}
		for rec, err := range v.Batch.Records(0) {
			if err != nil || rec.TimestampMs != oracleNowMs {
				t.Errorf("%s: record of %d, %v", codec, rec.TimestampMs, err)
			}
		}
	}
}

// Size is judged on the batch as it came, and again on what it becomes.
func TestValidate_TooLarge(t *testing.T) {
	o := Unattributed()
	o.Codec = compress.Gzip
	repeats := Record{TimestampMs: oracleNowMs, Value: []byte(strings.Repeat("large ", 5000))}
	packed := smallBatch(t, o, repeats)
	r := usual
	r.MaxMessageBytes = 10_000
	if _, err := Validate(slices.Clone(packed), r); err != nil {
		t.Errorf("fits compressed: %v", err)
	}
	r.Compression = TargetCompression{Recompress: true}
	if refused := refusal(t, slices.Clone(packed), r); refused.Kind != KindTooLarge {
		t.Errorf("stored without compression it does not fit: %+v", refused)
	}
	r.Compression = TargetCompression{}
	r.MaxMessageBytes = len(packed) - 1
	if refused := refusal(t, packed, r); refused.Kind != KindTooLarge {
		t.Errorf("got %+v", refused)
	}
}

// The limits on what a compressed batch holds are kept, for records that fit the decompressor's window and larger ones.
func TestValidate_DecompressedLimits(t *testing.T) {
	for _, size := range []int{1000, compress.WindowBytes - 20, compress.WindowBytes, compress.WindowBytes + 1, 5 * compress.WindowBytes} {
		for codec := compress.Gzip; codec <= compress.Zstd; codec++ {
			o := Unattributed()
			o.Codec = codec
			value := []byte(strings.Repeat("0123456789", size/10+1))[:size]
			large := Record{TimestampMs: oracleNowMs + 3, Key: []byte("k"), Value: value, Headers: []Header{{"h", nil}, {"i", value[:100]}}}
			small := Record{TimestampMs: oracleNowMs, Key: []byte("k")}
			batch := smallBatch(t, o, small, large, large, small)
			payload, err := compress.Decompress(nil, codec, Batch(batch).payload(), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			_, start := varint(payload, 0)
			s, fault := scan(payload, start+int(payload[0]>>1)) // the second record
			if fault != "" {
				t.Fatal(fault)
			}
			r := usual
			r.Compacted = true
			r.MaxRecordBytes, r.MaxDecompressedBytes = s.length, len(payload)
			v, err := Validate(slices.Clone(batch), r)
			if err != nil {
				t.Errorf("%s %d: at its limits: %v", codec, size, err)
			}
			if v.MaxTimestampMs != oracleNowMs+3 || v.OffsetOfMaxTimestampDelta != 1 {
				t.Errorf("%s %d: got %+v", codec, size, v)
			}
			r.MaxRecordBytes--
			for _, recompress := range []bool{false, true} {
				r.Compression.Recompress = recompress
				if refused := refusal(t, slices.Clone(batch), r); refused.Kind != KindInvalidRecord || !strings.Contains(refused.Message, "max.decompressed.message.bytes") {
					t.Errorf("%s %d: record above the limit: %+v", codec, size, refused)
				}
			}
			r.Compression.Recompress = false
			r.MaxRecordBytes, r.MaxDecompressedBytes = 0, len(payload)-1
			if refused := refusal(t, slices.Clone(batch), r); refused.Kind != KindInvalidRecord {
				t.Errorf("%s %d: batch above the limit: %+v", codec, size, refused)
			}
		}
	}
}

// A large compressed record that is damaged is refused for the same reason as a small one.
func TestValidate_LargeRecordMalformed(t *testing.T) {
	value := make([]byte, 3*compress.WindowBytes)
	plain := smallBatch(t, Unattributed(), Record{TimestampMs: oracleNowMs, Key: []byte("key"), Value: value, Headers: []Header{{"h", []byte("v")}}})
	end := len(plain) - 1
	for _, c := range []struct {
		what string
		at   int
		to   byte
		want string
	}{
		{"header value longer than the record", end - 1, 20, faultFields},
		{"header value shorter", end - 1, 0, faultLeftOver},
		{"header key negative", end - 3, 1, faultHeaderKey},
		{"header count negative", end - 4, 1, faultHeaders},
		{"header count large", end - 4, 60, faultHeaders},
		{"key runs into the value", HeaderBytes + 6, 0x7e, faultLeftOver},
		{"record longer than the batch", HeaderBytes, plain[HeaderBytes] + 2, faultLeftOver},
	} {
		b := slices.Clone(plain)
		b[c.at] = c.to
		payload, err := compress.Compress(nil, compress.Lz4, 0, b[HeaderBytes:])
		if err != nil {
			t.Fatal(err)
		}
		b = append(b[:HeaderBytes], payload...)
		b[attributesAt+1] = byte(compress.Lz4)
		binary.BigEndian.PutUint32(b[lengthAt:], uint32(len(b)-prefixBytes))
		refused := refusal(t, fixCRC(b), usual)
		if refused.Kind != KindInvalidRecord || !strings.Contains(refused.Message, "malformed") {
			t.Errorf("%s: %+v", c.what, refused)
		}
		if !strings.Contains(refused.Message, c.want) {
			t.Errorf("%s: %q, want %q", c.what, refused.Message, c.want)
		}
	}
}

// A batch full of bad records does not make a response without bound.
func TestValidate_ManyBadRecords_AreCapped(t *testing.T) {
	records := make([]Record, maxRecordErrors+500)
	r := usual
	r.Compacted, r.AfterMaxMs = true, -1
	for i := range records {
		records[i] = Record{TimestampMs: oracleNowMs + 1, Key: []byte("k")}
	}
	refused := refusal(t, smallBatch(t, Unattributed(), records...), r)
	if refused.Kind != KindInvalidTimestamp || len(refused.RecordErrors) != maxRecordErrors {
		t.Errorf("kind %d, %d errors", refused.Kind, len(refused.RecordErrors))
	}
}

// What this broker writes itself may do more than a client; what comes from another replica is only checked for damage.
func TestValidate_OtherOrigins(t *testing.T) {
	o := BuilderOptions{ProducerID: 5, BaseSequence: NoSequence, Transactional: true, Control: true, BaseOffset: 70}
	marker := smallBatch(t, o, ControlRecord(EndTxnMarker{Commit: true, CoordinatorEpoch: 3}, oracleNowMs))
	r := usual
	r.Compression = TargetCompression{Recompress: true, Codec: compress.Gzip}
	if refused := refusal(t, slices.Clone(marker), r); refused.Kind != KindInvalidRecord {
		t.Errorf("control batch of a client: %+v", refused)
	}
	for _, origin := range []Origin{Coordinator, Replication} {
		r.Origin = origin
		v, err := Validate(slices.Clone(marker), r)
		if err != nil || v.Recompressed || !slices.Equal(v.Batch, marker) || v.MaxTimestampMs != oracleNowMs {
			t.Errorf("origin %d: %+v, %v", origin, v, err)
		}
		damaged := slices.Clone(marker)
		damaged[len(damaged)-1]++
		if refused := refusal(t, damaged, r); refused.Kind != KindCorrupt {
			t.Errorf("origin %d: damaged: %+v", origin, refused)
		}
	}
	o = Unattributed()
	o.Codec = compress.Zstd
	r = usual
	r.NoZstd = true
	if refused := refusal(t, smallBatch(t, o), r); refused.Kind != KindUnsupportedCompression {
		t.Errorf("zstd in an old request: %+v", refused)
	}
}

// Everything that was added comes back, in every codec, with offsets and timestamps resolved.
func TestBuilder_RecordsRoundTrip(t *testing.T) {
	want := []Record{
		{Offset: 1000, TimestampMs: 5, Key: nil, Value: []byte("v")},
		{Offset: 1001, TimestampMs: -1, Key: []byte{}, Value: nil, Headers: []Header{{"", []byte{}}, {"twice", []byte("1")}, {"twice", nil}}},
		{Offset: 1002, TimestampMs: 1 << 50, Key: []byte("k"), Value: make([]byte, 70_000)},
	}
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		o := BuilderOptions{Codec: codec, ProducerID: 9, ProducerEpoch: 2, BaseSequence: 1<<31 - 2, LeaderEpoch: 4, BaseOffset: 1000, Transactional: true}
		b, err := NewBuilder(o).Add(want...).Build()
		if err != nil {
			t.Fatal(err)
		}
		first, rest, err := Split(append(slices.Clone(b), "next"...))
		if err != nil || string(rest) != "next" || !slices.Equal(first, b) {
			t.Fatalf("%s: split: %v", codec, err)
		}
		if !b.ValidCRC() || b.Magic() != 2 || b.BaseOffset() != 1000 || b.LastOffset() != 1002 || b.NextOffset() != 1003 || b.LeaderEpoch() != 4 ||
			b.Codec() != codec || b.TimestampType() != CreateTime || !b.IsTransactional() || b.IsControl() || b.HasDeleteHorizon() ||
			b.LastOffsetDelta() != 2 || b.BaseTimestamp() != 5 || b.MaxTimestamp() != 1<<50 || b.ProducerID() != 9 || !b.HasProducerID() ||
			b.ProducerEpoch() != 2 || b.BaseSequence() != 1<<31-2 || b.LastSequence() != 0 || b.Count() != 3 {
			t.Errorf("%s: header %x", codec, []byte(b[:HeaderBytes]))
		}
		var got []Record
		for r, err := range b.Records(0) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		if diff := cmp.Diff(want, got, exactBytes); diff != "" {
			t.Errorf("%s: want(-) got(+):\n%s", codec, diff)
		}
		if codec == compress.None {
			continue
		}
		for _, err := range b.Records(1000) {
			if !errors.Is(err, compress.ErrTooLarge) {
				t.Errorf("%s: cap not kept: %v", codec, err)
			}
			break
		}
	}
	if _, err := NewBuilder(Unattributed()).Build(); err == nil {
		t.Error("a batch without records was built")
	}
}

// The patches of an append change what they should and leave the CRC right.
func TestBatch_Setters(t *testing.T) {
	b := Batch(smallBatch(t, Unattributed()))
	b.SetBaseOffset(77)
	b.SetLeaderEpoch(3)
	if !b.ValidCRC() || b.BaseOffset() != 77 || b.LastOffset() != 79 || b.LeaderEpoch() != 3 {
		t.Errorf("got %x", []byte(b[:HeaderBytes]))
	}
	crc := b.CRC()
	b.SetLogAppendTime(123)
	if !b.ValidCRC() || b.CRC() == crc || b.MaxTimestamp() != 123 || b.TimestampType() != LogAppendTime {
		t.Errorf("got %x", []byte(b[:HeaderBytes]))
	}
	if b.LastSequence() != NoSequence {
		t.Errorf("last sequence %d without a first", b.LastSequence())
	}
}

// Split tells an early end from bytes that can never be a batch.
func TestSplit_Malformed(t *testing.T) {
	good := smallBatch(t, Unattributed())
	change := func(at int, to byte) []byte {
		b := slices.Clone(good)
		b[at] = to
		return b
	}
	for _, c := range []struct {
		what       string
		b          []byte
		incomplete bool
	}{
		{"nothing", nil, true}, {"half a header", good[:16], true}, {"header without records", good[:HeaderBytes], true},
		{"last byte missing", good[:len(good)-1], true}, {"length of 4 GiB", change(lengthAt, 0x7f), true},
		{"negative length", change(lengthAt, 0x80), false}, {"length shorter than the header", change(lengthAt+3, 48), false},
		{"magic 0", change(magicAt, 0), false}, {"magic 1", change(magicAt, 1), false}, {"magic 3", change(magicAt, 3), false},
	} {
		_, rest, err := Split(c.b)
		var corrupt *Corrupt
		if !errors.As(err, &corrupt) || corrupt.Incomplete != c.incomplete || len(rest) != len(c.b) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// Walking over the records of a batch that decompresses to very much takes little memory.
func TestRecords_LargeBatch_InLittleMemory(t *testing.T) {
	for codec := compress.Gzip; codec <= compress.Zstd; codec++ {
		o := Unattributed()
		o.Codec = codec
		builder := NewBuilder(o)
		value := make([]byte, 10_000)
		for range 3000 {
			builder.Add(Record{Value: value})
		}
		b, err := builder.Build()
		if err != nil {
			t.Fatal(err)
		}
		walk := func() {
			n, size := 0, 0
			for r, err := range b.Records(0) {
				if err != nil {
					t.Fatal(err)
				}
				n, size = n+1, size+len(r.Value)
			}
			if n != 3000 || size != 3000*len(value) {
				t.Errorf("%s: %d records, %d bytes", codec, n, size)
			}
		}
		walk()
		if codec == compress.Zstd {
			continue // the decoder's window is a buffer of its own
		}
		before := liveHeap()
		peak := uint64(0)
		i := 0
		for range b.Records(0) {
			if i++; i%500 == 0 {
				peak = max(peak, liveHeap())
			}
		}
		if peak > before+4<<20 {
			t.Errorf("%s: %d bytes live during a walk over 30 MB", codec, peak-before)
		}
	}
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
