package txn

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// kafkaRecords are records that Apache Kafka 4.4.0 wrote.
func kafkaRecords(t testing.TB) (records []record.Record) {
	t.Helper()
	text, err := os.ReadFile("testdata/kafka-4.4.0-batches.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		b, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		batch, rest, err := record.Split(b)
		if err != nil || len(rest) != 0 || !batch.ValidCRC() {
			t.Fatalf("%s: %v", line, err)
		}
		for r, err := range batch.Records(0) {
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, r)
		}
	}
	if len(records) < 10 {
		t.Fatalf("%d records", len(records))
	}
	return records
}

// Kafka's records are read, and written again byte for byte.
func TestKafkaRecords(t *testing.T) {
	h := newHarness(t, 2)
	for _, r := range kafkaRecords(t) {
		parsed, err := h.m.Parse(r.Key, r.Value)
		if err != nil {
			t.Fatal(err)
		}
		key := parsed.AppendKey(nil)
		value, tombstone := parsed.AppendValue(nil)
		if !bytes.Equal(key, r.Key) || !bytes.Equal(value, r.Value) || tombstone != (r.Value == nil) {
			t.Errorf("record %x %x is written as %x %x (tombstone %v)", r.Key, r.Value, key, value, tombstone)
		}
		h.m.Replay(r.Offset, machine.NoProducer, parsed)
	}
	h.wantStatus("h1-id", CompleteAbort)
	h.wantIdentity("h1-id", machine.Producer{ID: 110, Epoch: 2})
	h.wantStatus("h3-gold-4", CompleteCommit)
}

// The same requests lead to the records that Kafka wrote for them, but for the time.
func TestKafkaRecords_SameFromRequests(t *testing.T) {
	h := newHarness(t, 2)
	h.nextID = 109
	p := h.mustInit("h1-id")
	for _, commit := range []bool{true, false} {
		h.wantErr(h.add("h1-id", p, 2, parts("h1-transactional", 0)), nil)
		p = h.mustEnd("h1-id", p, commit, true)
	}
	for i, r := range kafkaRecords(t)[:len(h.log)] {
		kafka, err := h.m.Parse(r.Key, r.Value)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := h.m.Parse(h.log[i].key, h.log[i].value)
		if err != nil {
			t.Fatal(err)
		}
		s := ours.(*stateRecord)
		s.state.updatedMs = kafka.(*stateRecord).state.updatedMs
		if s.state.startMs >= 0 {
			s.state.startMs = kafka.(*stateRecord).state.startMs
		}
		value, _ := s.AppendValue(nil)
		if !bytes.Equal(h.log[i].key, r.Key) || !bytes.Equal(value, r.Value) {
			t.Errorf("record %d is\n%x %x, in Kafka\n%x %x", i, h.log[i].key, value, r.Key, r.Value)
		}
	}
}

// Bytes of any kind are a state, an unknown type or an error.
func FuzzParse(f *testing.F) {
	for _, r := range kafkaRecords(f) {
		f.Add(r.Key, r.Value)
	}
	f.Add([]byte{0, 7}, []byte{})
	m := New(func() *Config { return &Config{} }, nil)
	f.Fuzz(func(t *testing.T, key, value []byte) {
		parsed, err := m.Parse(key, value)
		if err != nil {
			return
		}
		again, tombstone := parsed.AppendValue([]byte{})
		if tombstone {
			again = nil
		}
		if _, err := m.Parse(parsed.AppendKey(nil), again); err != nil {
			t.Errorf("%x %x is written so that it cannot be read: %v", key, value, err)
		}
		m.Replay(0, machine.NoProducer, parsed)
	})
}
