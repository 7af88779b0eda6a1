package record

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"sluice/protocol/compress"
)

// loadBatch is what a busy producer sends: count records of size bytes that compress about fourfold.
func loadBatch(b *testing.B, codec compress.Codec, count, size int) Batch {
	o := Unattributed()
	o.Codec = codec
	builder := NewBuilder(o)
	for i := range count {
		value := bytes.Repeat(fmt.Appendf(nil, "%08x field=%d;", i*2654435761, i%7), size/10+1)[:size]
		builder.Add(Record{TimestampMs: oracleNowMs + int64(i/100), Key: fmt.Appendf(nil, "key-%06d", i), Value: value})
	}
	batch, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	return batch
}

var benchRules = Rules{BeforeMaxMs: 1 << 62, AfterMaxMs: 3_600_000, MaxMessageBytes: 1 << 30, NowMs: oracleNowMs}

func BenchmarkValidate(b *testing.B) {
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		for _, size := range []int{10, 100, 1000} {
			batch := loadBatch(b, codec, 1000, size)
			b.Run(fmt.Sprintf("%s/1000x%d", codec, size), func(b *testing.B) {
				b.SetBytes(int64(len(batch)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Validate(batch, benchRules); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds()/1e6, "Mrecords/s")
			})
		}
	}
}

func BenchmarkRecords(b *testing.B) {
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		batch := loadBatch(b, codec, 1000, 100)
		b.Run(codec.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range batch.Records(0) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds()/1e6, "Mrecords/s")
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	var records []Record
	for r := range loadBatch(b, compress.None, 100, 100).Records(0) {
		records = append(records, r)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewBuilder(Unattributed()).Add(records...).Build(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecompress(b *testing.B) {
	batch := loadBatch(b, compress.Lz4, 1000, 100)
	rules := benchRules
	rules.Compression = TargetCompression{Recompress: true, Codec: compress.Zstd}
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Validate(batch, rules); err != nil {
			b.Fatal(err)
		}
	}
}

// Validation of records that are not compressed does not allocate.
func TestValidate_PlainBatch_AllocatesNothing(t *testing.T) {
	batch := smallBatch(t, Unattributed())
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Validate(slices.Clip(batch), benchRules); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
