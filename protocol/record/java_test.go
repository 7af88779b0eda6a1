package record

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/protocol/compress"
)

// javaRecord is record i of the topics that testdata/ProduceBatches.java filled.
func javaRecord(i int) Record {
	r := Record{Offset: int64(i), TimestampMs: 1700000000000 + 1000*int64(i%30), Key: fmt.Appendf(nil, "key-%d", i)}
	r.Value = []byte(strings.Repeat(fmt.Sprintf("value-%d-", i), i*5))
	if i%5 == 1 {
		r.Key = nil
	}
	if i%7 == 3 {
		r.Value = nil
	}
	if i%4 == 2 {
		r.Headers = []Header{{"kind", bytes.Repeat([]byte("x"), i)}, {"none", nil}}
	}
	return r
}

const javaRecords = 40

// exactBytes tells nil from empty, and is quicker than what cmp does to byte slices.
var exactBytes = cmp.Comparer(func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) })

// javaLog is a segment file that Apache Kafka 4.4.0 wrote from what its Java producer sent.
func javaLog(t testing.TB, name string) []Batch {
	rest, err := os.ReadFile("testdata/" + name + ".log")
	if err != nil {
		t.Fatal(err)
	}
	var batches []Batch
	for len(rest) > 0 {
		var b Batch
		if b, rest, err = Split(rest); err != nil {
			t.Fatal(err)
		}
		if !b.ValidCRC() {
			t.Fatalf("%s: bad CRC at offset %d", name, b.BaseOffset())
		}
		batches = append(batches, b)
	}
	return batches
}

var javaLogs = []struct {
	name  string
	codec compress.Codec
}{
	{"none", compress.None}, {"gzip", compress.Gzip}, {"snappy", compress.Snappy}, {"lz4", compress.Lz4}, {"zstd", compress.Zstd},
	{"zstd-level22", compress.Zstd}, {"recompressed", compress.Zstd}, {"logappend", compress.Gzip}, {"transactional", compress.None},
}

// Batches of the Java producer, in every codec, decode to the records that were sent.
func TestRecords_OfJavaProducer(t *testing.T) {
	for _, l := range javaLogs {
		t.Run(l.name, func(t *testing.T) {
			var got []Record
			for _, b := range javaLog(t, l.name) {
				if b.IsControl() {
					continue
				}
				if b.Codec() != l.codec {
					t.Errorf("codec %s", b.Codec())
				}
				for r, err := range b.Records(1 << 20) {
					if err != nil {
						t.Fatal(err)
					}
					if l.name == "logappend" {
						if b.TimestampType() != LogAppendTime || r.TimestampMs != b.MaxTimestamp() || r.TimestampMs < 1700000100000 {
							t.Fatalf("timestamp %d of type %s", r.TimestampMs, b.TimestampType())
						}
						r.TimestampMs = javaRecord(len(got)).TimestampMs
					}
					got = append(got, r)
				}
			}
			var want []Record
			for i := range javaRecords {
				want = append(want, javaRecord(i))
			}
			if l.name == "transactional" { // the same again, aborted, behind the commit marker
				for i := range javaRecords {
					r := javaRecord(i)
					r.Offset += javaRecords + 1
					want = append(want, r)
				}
			}
			if diff := cmp.Diff(want, got, exactBytes); diff != "" {
				t.Errorf("want(-) got(+):\n%s", diff)
			}
		})
	}
}

// The builder writes the same bytes as the Java producer.
func TestBuilder_SameBytesAsJavaProducer(t *testing.T) {
	want := javaLog(t, "none")[0]
	o := Unattributed()
	o.LeaderEpoch = 0                                                       // the broker's stamp
	o.ProducerID, o.ProducerEpoch = want.ProducerID(), want.ProducerEpoch() // the producer is idempotent by default
	o.BaseSequence = 0
	b := NewBuilder(o)
	for i := range javaRecords {
		b.Add(javaRecord(i))
	}
	size := b.SizeBytes()
	got, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("built\n%x\nwant\n%x", got[:HeaderBytes], want[:HeaderBytes])
	}
	if size != len(want) {
		t.Errorf("size %d before, %d after", size, len(want))
	}
}

// The markers of a live transaction coordinator parse, and are built again as the same bytes.
func TestControl_EndTxnMarkersOfKafka(t *testing.T) {
	var markers []EndTxnMarker
	for _, b := range javaLog(t, "transactional") {
		if !b.IsTransactional() || !b.HasProducerID() {
			t.Errorf("batch at %d is not transactional", b.BaseOffset())
		}
		if !b.IsControl() {
			continue
		}
		for r, err := range b.Records(0) {
			if err != nil {
				t.Fatal(err)
			}
			c, err := ParseControl(r)
			if err != nil {
				t.Fatal(err)
			}
			markers = append(markers, c.(EndTxnMarker))
			o := BuilderOptions{ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), BaseSequence: NoSequence, Transactional: true,
				Control: true, LeaderEpoch: b.LeaderEpoch(), BaseOffset: b.BaseOffset()}
			again, err := NewBuilder(o).Add(ControlRecord(c, r.TimestampMs)).Build()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(again, b) {
				t.Errorf("built\n%x\nwant\n%x", again, b)
			}
		}
	}
	if diff := cmp.Diff([]EndTxnMarker{{Commit: true}, {Commit: false}}, markers); diff != "" {
		t.Errorf("want(-) got(+):\n%s", diff)
	}
}

// What Kafka stored is what Validate makes of what the Java producer sent, in every codec.
func TestValidate_BatchOfJavaProducer_AsKafkaStoredIt(t *testing.T) {
	for _, l := range javaLogs[:6] {
		t.Run(l.name, func(t *testing.T) {
			stored := javaLog(t, l.name)[0]
			sent := Batch(bytes.Clone(stored))
			v, err := Validate(sent, Rules{BeforeMaxMs: 1 << 62, AfterMaxMs: 1 << 62, MaxMessageBytes: len(sent), NowMs: 1800000000000})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(v.Batch, stored) || v.Recompressed || v.MaxTimestampMs != 1700000029000 || v.OffsetOfMaxTimestampDelta != 29 {
				t.Errorf("got %+v", v)
			}
		})
	}
}
