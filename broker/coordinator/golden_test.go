package coordinator

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"sluice/protocol/record"
)

// Batches are those that Apache Kafka 4.4.0 writes for the same records, byte for byte, header and all.
func TestKafkaBatches(t *testing.T) {
	text, err := os.ReadFile("group/testdata/kafka-4.4.0-batches.txt")
	if err != nil {
		t.Fatal(err)
	}
	batches := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		b, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		kafka := record.Batch(b)
		builder := newBuilder(0)
		for r, err := range kafka.Records(0) {
			if err != nil {
				t.Fatal(err)
			}
			builder.Add(r)
		}
		ours, err := builder.Build()
		if err != nil {
			t.Fatal(err)
		}
		ours.SetBaseOffset(kafka.BaseOffset())
		ours.SetLeaderEpoch(kafka.LeaderEpoch())
		if !bytes.Equal(ours, kafka) {
			t.Errorf("batch is\n%x, in Kafka\n%x", []byte(ours), []byte(kafka))
		}
		batches++
	}
	if batches < 10 {
		t.Fatalf("%d batches", batches)
	}
}
