package record

import (
	"math"
	"testing"
)

// sameAtAGlance checks that glance says of the record at b[at:] what scan says, or nothing.
func sameAtAGlance(t *testing.T, b []byte, at int) (ok bool) {
	t.Helper()
	next, timestampDelta, offsetDelta, hasKey, ok := glance(b, at)
	if !ok {
		return false
	}
	s, fault := scan(b, at)
	if fault != "" {
		t.Errorf("good at a glance, though %s: % x", fault, b[at:])
	}
	if next != s.next || timestampDelta != s.timestampDelta || offsetDelta != s.offsetDelta || hasKey != s.hasKey {
		t.Errorf("at a glance %d, %d, %d, %v, in full %+v: % x", next, timestampDelta, offsetDelta, hasKey, s, b[at:])
	}
	return true
}

// payloadOf is the records as a builder writes them, the first at offset delta 0, and something behind them.
func payloadOf(t *testing.T, records ...Record) []byte {
	t.Helper()
	b, err := NewBuilder(Unattributed()).Add(records...).Build()
	if err != nil {
		t.Fatal(err)
	}
	return append(b.payload(), 0xff, 0xff, 0xff)
}

func TestGlance_Record(t *testing.T) {
	bytes := func(n int) []byte { return make([]byte, n) }
	for _, c := range []struct {
		name   string
		record Record
		ok     bool
	}{
		{"null key", Record{Value: bytes(100)}, true},
		{"empty key", Record{Key: bytes(0), Value: bytes(100)}, true},
		{"null value", Record{Key: bytes(10)}, true},
		{"empty value", Record{Key: bytes(10), Value: bytes(0)}, true},
		{"nothing but nulls", Record{}, true},
		{"long key", Record{Key: bytes(5000), Value: bytes(3)}, true},
		{"long value", Record{Value: bytes(8000)}, true},
		{"too long a value", Record{Value: bytes(1 << 13)}, false},
		{"headers", Record{Value: bytes(9), Headers: []Header{{Key: "a", Value: bytes(1)}}}, false},
		{"two bytes of timestamp", Record{TimestampMs: -8192, Value: bytes(9)}, true},
		{"three bytes of timestamp", Record{TimestampMs: 8192, Value: bytes(9)}, false},
		{"any timestamp", Record{TimestampMs: math.MinInt64 + 1, Value: bytes(9)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := payloadOf(t, Record{Value: bytes(9)}, c.record)
			if !sameAtAGlance(t, b, 0) {
				t.Fatal("no plain record at a glance")
			}
			s, _ := scan(b, 0)
			if ok := sameAtAGlance(t, b, s.next); ok != c.ok {
				t.Errorf("ok is %v", ok)
			}
			for end := range b { // cut short
				sameAtAGlance(t, b[:end], s.next)
			}
			for i := s.next; i < min(len(b), s.next+100); i++ { // damaged
				for _, bit := range []byte{0x01, 0x02, 0x10, 0x80} {
					b[i] ^= bit
					sameAtAGlance(t, b, s.next)
					b[i] ^= bit
				}
			}
		})
	}
}

// What is good at a glance is good in full, and the same.
func FuzzGlance(f *testing.F) {
	addBatches(f, func(b []byte) { f.Add(b[min(len(b), HeaderBytes):], uint16(0)) })
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		if int(at) <= len(b) {
			sameAtAGlance(t, b, int(at))
		}
	})
}
