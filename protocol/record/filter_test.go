package record

import (
	"bytes"
	"fmt"
	"testing"

	"sluice/protocol/compress"
)

// filterSeeds are batches of all kinds.
func filterSeeds(tb testing.TB) []Batch {
	tb.Helper()
	var seeds []Batch
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		o := Unattributed()
		o.Codec, o.BaseOffset, o.LeaderEpoch, o.ProducerID, o.ProducerEpoch, o.BaseSequence = codec, 100, 3, 5, 1, 9
		o.TimestampType, o.Transactional = TimestampType(codec&1), codec == compress.Gzip
		b := NewBuilder(o)
		for i := range 20 {
			r := Record{TimestampMs: int64(1000 + i*7%13), Key: []byte(fmt.Sprint("k", i%6)), Headers: []Header{{"h", nil}, {"i", []byte("x")}}}
			if i%4 > 0 {
				r.Value = bytes.Repeat([]byte{'v'}, i*10)
			}
			b.Add(r)
		}
		batch, err := b.Build()
		if err != nil {
			tb.Fatal(err)
		}
		seeds = append(seeds, batch)
	}
	return append(seeds, seeds[0].appendEmpty(nil))
}

// TestFilter_KeepsBatchFields: header fields stay, timestamps too, and the delete horizon is set once.
func TestFilter_KeepsBatchFields(t *testing.T) {
	var f Filter
	for _, b := range filterSeeds(t)[:5] {
		keep := func(v View) bool { return v.Offset%3 == 0 }
		out, counts, err := f.Apply([]byte("before"), b, Retention{Keep: keep, DeleteHorizonMs: 77})
		if err != nil || counts != (Filtered{Read: 20, Kept: 6}) || string(out[:6]) != "before" {
			t.Fatalf("%v: %+v %v", b.Codec(), counts, err)
		}
		got := Batch(out[6:])
		if got.BaseOffset() != 100 || got.LastOffset() != 119 || got.LeaderEpoch() != 3 || got.Attributes() != b.Attributes()|deleteHorizonBit ||
			got.ProducerID() != 5 || got.ProducerEpoch() != 1 || got.BaseSequence() != 9 || got.LastSequence() != 28 || got.BaseTimestamp() != 77 || !got.ValidCRC() {
			t.Errorf("%v: header %x", b.Codec(), got[:HeaderBytes])
		}
		// The horizon stays, also when another one is given.
		again, _, err := f.Apply(nil, got, Retention{Keep: func(v View) bool { return v.Offset != 102 }, DeleteHorizonMs: 99})
		if err != nil || Batch(again).BaseTimestamp() != 77 || Batch(again).Count() != 5 {
			t.Errorf("%v: the second time %v", b.Codec(), err)
		}
		same, _, err := f.Apply(nil, b, Retention{Keep: func(View) bool { return true }, DeleteHorizonMs: 99})
		if err != nil || bytes.Equal(same, b) {
			t.Errorf("%v: tombstones without a delete horizon: %v", b.Codec(), err)
		}
		if all, _, err := f.Apply(nil, got, Retention{Keep: func(View) bool { return true }}); err != nil || !bytes.Equal(all, got) {
			t.Errorf("%v: nothing to be done, and not the same bytes: %v", b.Codec(), err)
		}
	}
}

// TestFilter_NothingKept: no bytes, or only a header.
func TestFilter_NothingKept(t *testing.T) {
	var f Filter
	none := func(View) bool { return false }
	for _, b := range filterSeeds(t) {
		if out, _, err := f.Apply(nil, b, Retention{Keep: none}); err != nil || len(out) != 0 {
			t.Errorf("%d bytes: %v", len(out), err)
		}
		out, _, err := f.Apply(nil, b, Retention{Keep: none, KeepEmpty: true})
		got := Batch(out)
		if err != nil || len(out) != HeaderBytes || !got.ValidCRC() || got.Count() != 0 || got.LastOffset() != b.LastOffset() || got.MaxTimestamp() != b.MaxTimestamp() ||
			got.BaseTimestamp() != NoTimestamp || got.Codec() != compress.None || got.IsTransactional() != b.IsTransactional() || got.TimestampType() != b.TimestampType() {
			t.Errorf("%x: %v", out, err)
		}
	}
}

// FuzzFilter: whatever the bytes are, the result is an error or a batch with exactly the records that were to be kept.
func FuzzFilter(f *testing.F) {
	for i, b := range filterSeeds(f) {
		f.Add([]byte(b), uint32(0x5a5a5a5a)<<i, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, in []byte, mask uint32, empty bool) {
		b, _, err := Split(in)
		if err != nil {
			return
		}
		var filter Filter
		keeps := func(offset int64) bool { return mask>>(uint64(offset)%32)&1 == 1 }
		out, counts, err := filter.Apply(nil, b, Retention{Keep: func(v View) bool { return keeps(v.Offset) }, KeepEmpty: empty, DeleteHorizonMs: 5000})
		if err != nil {
			if len(out) != 0 {
				t.Fatalf("%d bytes with an error", len(out))
			}
			return
		}
		var want []Record
		for r, err := range b.Records(maxRecompressedBytes) {
			if err != nil {
				t.Fatalf("filtered without an error, read with: %v", err)
			}
			if keeps(r.Offset) {
				want = append(want, r)
			}
		}
		if counts.Kept != len(want) {
			t.Fatalf("%d records kept, want %d", counts.Kept, len(want))
		}
		if len(out) == 0 {
			if len(want) > 0 || empty {
				t.Fatal("nothing is left")
			}
			return
		}
		got, rest, err := Split(out)
		if err != nil || len(rest) > 0 || got.BaseOffset() != b.BaseOffset() || got.LastOffset() != b.LastOffset() || int(got.Count()) != len(want) {
			t.Fatalf("%v, %d bytes left, offsets %d to %d", err, len(rest), got.BaseOffset(), got.LastOffset())
		}
		i := 0
		for r, err := range got.Records(0) {
			if err != nil {
				t.Fatal(err)
			}
			if w := want[i]; r.Offset != w.Offset || r.TimestampMs != w.TimestampMs || !bytes.Equal(r.Key, w.Key) || (r.Value == nil) != (w.Value == nil) || !bytes.Equal(r.Value, w.Value) || len(r.Headers) != len(w.Headers) {
				t.Fatalf("record %+v, want %+v", r, w)
			}
			i++
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	for _, batch := range filterSeeds(b)[:5] {
		b.Run(batch.Codec().String(), func(b *testing.B) {
			var f Filter
			var out []byte
			b.ReportAllocs()
			b.SetBytes(int64(len(batch)))
			for b.Loop() {
				var err error
				if out, _, err = f.Apply(out[:0], batch, Retention{Keep: func(v View) bool { return v.Offset%2 == 0 }}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
