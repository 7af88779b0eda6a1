package group

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

// Kafka's records are read, mean what they meant there, and are written again byte for byte.
func TestKafkaRecords(t *testing.T) {
	m := New(func() *Config { return &Config{} })
	for _, r := range kafkaRecords(t) {
		parsed, err := m.Parse(r.Key, r.Value)
		if err != nil {
			t.Fatal(err)
		}
		key := parsed.AppendKey(nil)
		value, tombstone := parsed.AppendValue(nil)
		if !bytes.Equal(key, r.Key) || !bytes.Equal(value, r.Value) || tombstone != (r.Value == nil) {
			t.Errorf("record %x %x is written as %x %x (tombstone %v)", r.Key, r.Value, key, value, tombstone)
		}
		m.Replay(r.Offset, machine.NoProducer, parsed)
		g, ok := parsed.(*groupMetadataRecord)
		if !ok || g.value == nil {
			continue
		}
		// The group that was loaded writes the same record, but for one that never had members: its first record has no more than a time.
		if value, _ := groupRecord(m.groups[g.group], nil).AppendValue(nil); !bytes.Equal(value, r.Value) {
			t.Errorf("group is written as\n%x, in Kafka\n%x", value, r.Value)
		}
		if g := m.groups[g.group]; g.generation == 0 {
			if value, _ := emptyGroupRecord(g).AppendValue(nil); !bytes.Equal(value, r.Value) {
				t.Errorf("new group is written as\n%x, in Kafka\n%x", value, r.Value)
			}
		}
	}
	g := m.groups["gold-g"]
	if g.state != stateEmpty || g.generation != 3 || g.protocolType != "consumer" {
		t.Errorf("%+v", g)
	}
	if c := m.offsets.get("gold-g", "gold-t", 0); c.offset != 42 || c.leaderEpoch != 3 || c.metadata != "meta" || c.topicID == [16]byte{} {
		t.Errorf("%+v", c)
	}
	if c := m.offsets.get("gold-g", "gold-t2", 1); c != nil {
		t.Errorf("deleted offset is there: %+v", c)
	}
	if c := m.offsets.get("gold-s", "gold-t", 2); c.offset != 7 || c.expiresAtMs-c.committedAtMs != 3600_000 {
		t.Errorf("%+v", c)
	}
}
