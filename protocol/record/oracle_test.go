package record

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sluice/protocol/compress"
)

var writeCases = flag.Bool("write-validate-cases", false, "write testdata/validate.cases anew; testdata/ValidateBatches.java then answers them")

// validateCase is a batch and rules, to be judged by Kafka's own classes and by Validate.
type validateCase struct {
	name  string
	rules Rules
	batch []byte
}

const oracleNowMs = 1_700_000_000_000

// fixCRC makes a batch whose fields were changed intact again.
func fixCRC(b []byte) []byte {
	if len(b) >= HeaderBytes {
		Batch(b).stampCRC()
	}
	return b
}

// smallBatch has a few records with all that a record can have.
func smallBatch(t testing.TB, o BuilderOptions, records ...Record) []byte {
	if len(records) == 0 {
		records = []Record{
			{TimestampMs: oracleNowMs, Key: []byte("a"), Value: []byte("one")},
			{TimestampMs: oracleNowMs + 5, Key: []byte("b"), Headers: []Header{{"h", []byte("v")}, {"n", nil}}},
			{TimestampMs: oracleNowMs - 7, Key: []byte{}, Value: []byte(strings.Repeat("three", 9))},
		}
	}
	b, err := NewBuilder(o).Add(records...).Build()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// largeRecords fill several blocks of every codec, some of which do not compress.
func largeRecords() []Record {
	noise := make([]byte, 3000)
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	r := Record{TimestampMs: oracleNowMs, Key: []byte("k"), Value: bytes.Repeat([]byte("so far, so repetitive. "), 4000)}
	return []Record{r, {TimestampMs: oracleNowMs, Key: noise}, r}
}

// validateCases are the cases of testdata/validate.cases: each field of the header at its edges, and random damage to the records.
func validateCases(t testing.TB) []validateCase {
	plain := Rules{BeforeMaxMs: 1 << 62, AfterMaxMs: 3_600_000, MaxMessageBytes: 1000, NowMs: oracleNowMs}
	var cases []validateCase
	add := func(name string, r Rules, b []byte) {
		cases = append(cases, validateCase{strings.ReplaceAll(name, " ", "-"), r, b})
	}
	with := func(change func(r *Rules)) Rules {
		r := plain
		change(&r)
		return r
	}
	rules := []struct {
		name string
		r    Rules
	}{
		{"create", plain},
		{"append", with(func(r *Rules) { r.TimestampType = LogAppendTime })},
		{"compacted", with(func(r *Rules) { r.Compacted = true })},
		{"after", with(func(r *Rules) { r.AfterMaxMs = 4 })},
		{"before", with(func(r *Rules) { r.BeforeMaxMs = 6 })},
		{"small", with(func(r *Rules) { r.MaxMessageBytes = 100 })},
	}
	null := Record{TimestampMs: oracleNowMs, Value: []byte("no key")}
	keyed := Record{TimestampMs: oracleNowMs + 2, Key: []byte("k"), Value: []byte("v")}
	timeless := Record{TimestampMs: NoTimestamp, Key: []byte("k")}
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		o := Unattributed()
		o.Codec = codec
		for _, r := range rules {
			add(fmt.Sprintf("%s-%s", codec, r.name), r.r, smallBatch(t, o))
			add(fmt.Sprintf("%s-%s-nulls", codec, r.name), r.r, smallBatch(t, o, keyed, null, keyed, null, timeless))
			add(fmt.Sprintf("%s-%s-timeless", codec, r.name), r.r, smallBatch(t, o, timeless, timeless))
		}
		for target := compress.None; target <= compress.Zstd; target++ {
			r := plain
			r.Compression = TargetCompression{Recompress: true, Codec: target}
			add(fmt.Sprintf("%s-to-%s", codec, target), r, smallBatch(t, o))
			r.TimestampType, r.Compacted = LogAppendTime, true
			add(fmt.Sprintf("%s-to-%s-nulls", codec, target), r, smallBatch(t, o, keyed, null, keyed, null))
		}
		field := func(name string, at, size int, values ...int64) {
			for _, v := range values {
				b := smallBatch(t, o)
				var full [8]byte
				binary.BigEndian.PutUint64(full[:], uint64(v))
				copy(b[at:at+size], full[8-size:])
				add(fmt.Sprintf("%s-%s-%d", codec, name, v), plain, fixCRC(b))
			}
		}
		field("base-offset", baseOffsetAt, 8, 5, -1)
		field("leader-epoch", leaderEpochAt, 4, 7, -2)
		field("magic", magicAt, 1, 0, 1, 3, -1)
		field("length", lengthAt, 4, -1, 0, 13, 14, 48, 49, 1<<31-1)
		field("last-offset-delta", lastOffsetDeltaAt, 4, -2, -1, 0, 1, 3, 1<<31-1)
		field("count", countAt, 4, -1, 0, 1, 2, 4, 1<<31-1)
		field("max-timestamp", maxTimestampAt, 8, -1, 0, oracleNowMs+1, 1<<62)
		field("base-timestamp", baseTimestampAt, 8, -1, 0, oracleNowMs+1, 1<<62, -1<<63)
		field("sequence-without-id", baseSequenceAt, 4, 0, 9)
		for _, bits := range []int64{logAppendTimeBit, transactionalBit, controlBit, deleteHorizonBit, 0x80, 0x4000} {
			field("attributes", attributesAt, 2, int64(codec)|bits)
		}
		producer := o
		producer.ProducerID, producer.ProducerEpoch = 77, 1
		for _, sequence := range []int32{-1, 0, 1<<31 - 1, -5} {
			producer.BaseSequence = sequence
			add(fmt.Sprintf("%s-sequence-%d", codec, sequence), plain, smallBatch(t, producer))
		}
		large := plain
		large.MaxMessageBytes = 1 << 20
		for _, level := range []int{0, 1, 5, 12} {
			o := o
			o.Level = level
			add(fmt.Sprintf("%s-large-level-%d", codec, level), large, smallBatch(t, o, largeRecords()...))
		}
		flipped := smallBatch(t, o)
		flipped[len(flipped)-1] ^= 1
		add(codec.String()+"-flipped", plain, flipped)
		one := smallBatch(t, o)
		add(codec.String()+"-twice", plain, append(slices.Clone(one), one...))
		for _, tail := range []int{1, 11, 12, 16, 17, 40} {
			add(fmt.Sprintf("%s-tail-%d", codec, tail), plain, append(slices.Clone(one), one[:tail]...))
			add(fmt.Sprintf("%s-zeros-%d", codec, tail), plain, append(slices.Clone(one), make([]byte, tail)...))
			add(fmt.Sprintf("%s-cut-%d", codec, tail), plain, one[:tail])
		}
	}
	unknown := smallBatch(t, Unattributed())
	unknown[attributesAt+1] |= 5
	add("codec-5", plain, fixCRC(unknown))
	add("empty", plain, nil)

	// Damage that the CRC does not show: bytes of records changed, put in, taken out.
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 220 {
		o := Unattributed()
		b := smallBatch(t, o, keyed, null, keyed)
		r := rules[i%2*2].r
		if i >= 160 { // the same, compressed after the damage
			o.Codec = compress.Gzip
		}
		at := HeaderBytes + rnd.IntN(len(b)-HeaderBytes)
		switch i % 4 {
		case 0:
			b[at] = byte(rnd.Uint32())
		case 1:
			b[at] ^= 1 << rnd.IntN(8)
		case 2:
			b = slices.Insert(b, at, byte(rnd.Uint32()))
		case 3:
			b = slices.Delete(b, at, at+1)
		}
		if o.Codec != compress.None {
			payload, err := compress.Compress(nil, o.Codec, 0, b[HeaderBytes:])
			if err != nil {
				t.Fatal(err)
			}
			b = append(b[:HeaderBytes:HeaderBytes], payload...)
			b[attributesAt+1] = byte(o.Codec)
		}
		binary.BigEndian.PutUint32(b[lengthAt:], uint32(len(b)-prefixBytes))
		add(fmt.Sprintf("damage-%d-%s", i, o.Codec), r, fixCRC(b))
	}
	return cases
}

// line is a case as the Java program reads it.
func (c validateCase) line() string {
	target := "producer"
	if c.rules.Compression.Recompress {
		target = c.rules.Compression.Codec.String()
	}
	batch := hex.EncodeToString(c.batch)
	if batch == "" {
		batch = "-"
	}
	return fmt.Sprintf("%s %s %d %d %t %d %s %d %s", c.name, c.rules.TimestampType, c.rules.BeforeMaxMs, c.rules.AfterMaxMs,
		c.rules.Compacted, c.rules.MaxMessageBytes, target, c.rules.NowMs, batch)
}

func parseCase(t *testing.T, f []string) validateCase {
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	c := validateCase{name: f[0], rules: Rules{BeforeMaxMs: number(f[2]), AfterMaxMs: number(f[3]), Compacted: f[4] == "true",
		MaxMessageBytes: int(number(f[5])), NowMs: number(f[7])}}
	if f[1] == LogAppendTime.String() {
		c.rules.TimestampType = LogAppendTime
	}
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		if codec.String() == f[6] {
			c.rules.Compression = TargetCompression{Recompress: true, Codec: codec}
		}
	}
	if f[8] != "-" {
		var err error
		if c.batch, err = hex.DecodeString(f[8]); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// fieldsOf reads a file of lines with n fields each.
func fieldsOf(t *testing.T, name string, n int) [][]string {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all [][]string
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) != n {
			t.Fatalf("%s: %d fields in %.60q", name, len(fields), scanner.Text())
		}
		all = append(all, fields)
	}
	return all
}

// codes are the numbers that the protocol has for the kinds.
var codes = map[Kind]int{KindCorrupt: 2, KindTooLarge: 10, KindInvalidTimestamp: 32, KindUnsupportedCompression: 76, KindInvalidRecord: 87, KindUnreadable: -1}

// Validate answers each case as Kafka's classes do: the code, the indexes of the bad records, and on success the stored
// bytes. The differences are those that Validate's comment declares.
func TestValidate_AsKafka(t *testing.T) {
	if *writeCases {
		var lines strings.Builder
		for _, c := range validateCases(t) {
			if len(c.batch) > 20_000 {
				continue // large and not compressed
			}
			fmt.Fprintln(&lines, c.line())
		}
		if err := os.WriteFile("testdata/validate.cases", []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	answers := map[string][]string{}
	for _, fields := range fieldsOf(t, "testdata/validate.answers", 4) {
		answers[fields[0]] = fields[1:]
	}
	var cases []validateCase
	for _, fields := range fieldsOf(t, "testdata/validate.cases", 9) {
		cases = append(cases, parseCase(t, fields))
	}
	if len(cases) < 700 {
		t.Fatalf("only %d cases", len(cases))
	}
	differ := 0
	for _, c := range cases {
		kafka := answers[c.name]
		if kafka == nil {
			t.Errorf("%s: Kafka was not asked", c.name)
			continue
		}
		code, _ := strconv.Atoi(kafka[0])
		v, err := Validate(slices.Clone(c.batch), c.rules)
		got, indexes := 0, "-"
		var refused *Invalid
		if errors.As(err, &refused) {
			got = codes[refused.Kind]
			var list []string
			for _, e := range refused.RecordErrors {
				list = append(list, strconv.Itoa(int(e.BatchIndex)))
			}
			if len(list) > 0 {
				indexes = strings.Join(list, ",")
			}
		} else if err != nil {
			t.Fatalf("%s: error is a %T: %v", c.name, err, err)
		}
		if got != code || indexes != kafka[1] {
			if declared(code, got, refused) {
				differ++
				t.Logf("%s: code %d (%v), Kafka answers %d for records %s", c.name, got, err, code, kafka[1])
				continue
			}
			t.Errorf("%s: code %d for records %s (%v), Kafka answers %d for records %s", c.name, got, indexes, err, code, kafka[1])
			continue
		}
		if err != nil {
			continue
		}
		v.Batch.SetLeaderEpoch(NoLeaderEpoch) // the log stamps it; Kafka's validator has it from the log
		if v.Recompressed {
			sameRecords(t, c.name, v.Batch, kafka[2])
		} else if stored := hex.EncodeToString(v.Batch); stored != kafka[2] {
			t.Errorf("%s: stored\n%s, Kafka stores\n%s", c.name, stored, kafka[2])
		}
	}
	t.Logf("%d cases, of which %d differ as declared", len(cases), differ)
}

// declared says whether a difference to Kafka is meant.
func declared(kafka, ours int, refused *Invalid) bool {
	const unknownServerError = -1
	switch {
	case kafka == unknownServerError: // records in which Kafka runs into an exception that it did not expect
		return ours == codes[KindInvalidRecord] && strings.Contains(refused.Message, "malformed")
	case ours != codes[KindInvalidRecord]:
		return false
	case kafka == ours: // malformed records as a whole, where Kafka stepped over them and found fault with one
		return strings.Contains(refused.Message, "malformed")
	case kafka == 0: // stored by Kafka although a record is not what its length says, or not where the header says
		return strings.Contains(refused.Message, faultOffsets) || strings.Contains(refused.Message, faultLeftOver) || strings.Contains(refused.Message, faultFields)
	}
	return false
}

// sameRecords compares batches that different compressors wrote.
func sameRecords(t *testing.T, name string, got Batch, want string) {
	b, err := hex.DecodeString(want)
	if err != nil {
		t.Fatal(err)
	}
	if !got.ValidCRC() {
		t.Errorf("%s: bad CRC after recompression", name)
	}
	header := func(b Batch) []byte {
		h := slices.Clone(b[:HeaderBytes])
		clear(h[lengthAt:leaderEpochAt])
		clear(h[crcAt:attributesAt])
		return h
	}
	if g, w := header(got), header(b); !slices.Equal(g, w) {
		t.Errorf("%s: header\n%x, Kafka's is\n%x", name, g, w)
	}
	payload := func(b Batch) []byte {
		p, err := compress.Decompress(nil, b.Codec(), b.payload(), 1<<20)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return p
	}
	if g, w := payload(got), payload(b); !slices.Equal(g, w) {
		t.Errorf("%s: records\n%x, Kafka's are\n%x", name, g, w)
	}
}
