package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sluice/protocol/compress"
)

// fuzzLimit is the cap on decompression in the fuzz targets.
const fuzzLimit = 1 << 16

// addBatches seeds a target with batches of Kafka's Java producer, and with the cases of the validator.
func addBatches(f *testing.F, add func([]byte)) {
	for _, l := range javaLogs {
		for _, b := range javaLog(f, l.name) {
			if len(b) < 5000 {
				add(b)
			}
		}
	}
	cases, err := os.ReadFile("testdata/validate.cases")
	if err != nil {
		f.Fatal(err)
	}
	for i, line := range strings.Split(string(cases), "\n") {
		if fields := strings.Fields(line); i%7 == 0 && len(fields) == 9 {
			if b, err := hex.DecodeString(fields[8]); err == nil && len(b) < 1000 {
				add(b)
			}
		}
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// allowance is what decoding n bytes may allocate: pools that are filled, and a multiple of the input and of the cap.
func allowance(n int) uint64 { return 32<<20 + 200*uint64(n) }

// Split never reads past the end, and what it splits is all of the input.
func FuzzSplit(f *testing.F) {
	addBatches(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, in []byte) {
		for rest := in; ; {
			first, next, err := Split(rest)
			if err != nil {
				var corrupt *Corrupt
				if !errors.As(err, &corrupt) || !bytes.Equal(next, rest) {
					t.Errorf("error %v, %d bytes left of %d", err, len(next), len(rest))
				}
				return
			}
			if len(first) < HeaderBytes || len(first)+len(next) != len(rest) || int64(len(first)) != SizeOf(first) {
				t.Fatalf("split %d into %d and %d", len(rest), len(first), len(next))
			}
			first.ValidCRC()
			first.LastSequence()
			rest = next
		}
	})
}

// Records terminates, keeps its cap, allocates in proportion, and yields what a builder can write again.
func FuzzRecords(f *testing.F) {
	addBatches(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, in []byte) {
		batch, _, err := Split(in)
		if err != nil {
			return
		}
		var records []Record
		size := 0
		n := allocated(func() {
			for r, e := range batch.Records(fuzzLimit) {
				if e != nil {
					err = e
					break
				}
				size += len(r.Key) + len(r.Value)
				records = append(records, r)
			}
		})
		if n > allowance(len(in)) {
			t.Errorf("%d bytes allocated for %d", n, len(in))
		}
		if limit := max(fuzzLimit, len(in)); size > limit {
			t.Errorf("records of %d bytes", size)
		}
		if err != nil || len(records) == 0 || batch.TimestampType() == LogAppendTime {
			return
		}
		again, err := NewBuilder(BuilderOptions{BaseOffset: records[0].Offset}).Add(records...).Build()
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for r, err := range again.Records(0) {
			if err != nil || !bytes.Equal(r.Key, records[i].Key) || !bytes.Equal(r.Value, records[i].Value) || r.TimestampMs != records[i].TimestampMs ||
				len(r.Headers) != len(records[i].Headers) {
				t.Fatalf("record %d is %+v, %v, was %+v", i, r, err, records[i])
			}
			i++
		}
		if i != len(records) {
			t.Errorf("%d records of %d", i, len(records))
		}
	})
}

// What Validate lets through is an intact batch whose records can be read, as many as it says; its errors are *Invalid.
func FuzzValidate(f *testing.F) {
	addBatches(f, func(b []byte) { f.Add(b, byte(0), true); f.Add(b, byte(3), false) })
	f.Fuzz(func(t *testing.T, in []byte, mode byte, repair bool) {
		if repair && len(in) >= HeaderBytes { // damage behind an intact CRC is the interesting kind
			in = fixCRC(slices.Clone(in))
		}
		r := Rules{BeforeMaxMs: 1 << 62, AfterMaxMs: 1 << 62, MaxMessageBytes: 1 << 20, NowMs: oracleNowMs, MaxDecompressedBytes: fuzzLimit,
			TimestampType: TimestampType(mode >> 3 & 1), Compacted: mode>>4&1 != 0}
		if target := compress.Codec(mode & 7); target.Valid() && mode>>5&1 != 0 {
			r.Compression = TargetCompression{Recompress: true, Codec: target}
		}
		// Kafka keeps the maximum timestamp of a batch that claims log-append time where there is none, and so do we.
		claimed := len(in) >= HeaderBytes && Batch(in).TimestampType() == LogAppendTime && r.TimestampType == CreateTime
		var v Validated
		var err error
		if n := allocated(func() { v, err = Validate(in, r) }); n > allowance(len(in)) {
			t.Errorf("%d bytes allocated for %d", n, len(in))
		}
		if err != nil {
			var refused *Invalid
			if !errors.As(err, &refused) || refused.Kind < KindCorrupt || refused.Kind > KindUnreadable || refused.Message == "" {
				t.Errorf("error %#v", err)
			}
			return
		}
		b, rest, err := Split(v.Batch)
		if err != nil || len(rest) > 0 || !b.ValidCRC() {
			t.Fatalf("not an intact batch: %v, %d bytes left", err, len(rest))
		}
		next, latest := int64(0), NoTimestamp
		for rec, err := range b.Records(fuzzLimit) {
			if err != nil || rec.Offset != next {
				t.Fatalf("record %d has offset %d, %v", next, rec.Offset, err)
			}
			next++
			latest = max(latest, rec.TimestampMs)
		}
		if next != int64(b.Count()) || b.NextOffset() != next || v.MaxTimestampMs != b.MaxTimestamp() {
			t.Errorf("%d records of %d, maximum timestamp %d of %d", next, b.Count(), v.MaxTimestampMs, b.MaxTimestamp())
		}
		if latest != v.MaxTimestampMs && !claimed {
			t.Errorf("latest timestamp %d, maximum %d", latest, v.MaxTimestampMs)
		}
	})
}

// ParseControl reads what it writes, and never panics.
func FuzzParseControl(f *testing.F) {
	for _, c := range controls {
		r := ControlRecord(c, 0)
		f.Add(r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		var c Control
		var err error
		if n := allocated(func() { c, err = ParseControl(Record{Key: key, Value: value}) }); n > 1<<20+100*uint64(len(value)) {
			t.Errorf("%d bytes allocated for %d", n, len(value))
		}
		if err != nil {
			return
		}
		if _, unknown := c.(UnknownControl); unknown {
			return
		}
		again, err := ParseControl(ControlRecord(c, 0))
		if err != nil || again.ControlType() != c.ControlType() {
			t.Errorf("%+v is read as %+v, %v", c, again, err)
		}
	})
}
