package logrecord

import (
	"bytes"
	"os"
	"testing"

	"sluice/protocol/record"
)

// eachRecord calls visit for every record in a segment file that holds whole batches, and control for control records.
func eachRecord(t testing.TB, file string, visit func(record.Record), control func(record.Record)) {
	rest, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for len(rest) > 0 {
		var b record.Batch
		if b, rest, err = record.Split(rest); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !b.ValidCRC() {
			t.Fatalf("%s: bad CRC at offset %d", file, b.BaseOffset())
		}
		for r, err := range b.Records(0) {
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if b.IsControl() {
				control(r)
			} else {
				visit(r)
			}
		}
	}
}

// What a live Apache Kafka 4.4.0 has written parses, and is written again as the same bytes: a metadata log with topics
// created, changed and deleted, and the checkpoint of a freshly formatted node.
func TestCluster_LogOfKafka_RoundTrips(t *testing.T) {
	types := map[int16]int{}
	controls := map[record.ControlType]int{}
	for _, file := range []string{"testdata/cluster_metadata.log", "testdata/bootstrap.checkpoint"} {
		eachRecord(t, file, func(r record.Record) {
			c, version, err := ParseClusterVersion(r.Value)
			if err != nil {
				t.Fatalf("%s: offset %d: %v", file, r.Offset, err)
			}
			types[c.Key()]++
			if again := AppendCluster(nil, c, version); !bytes.Equal(again, r.Value) {
				t.Errorf("%s: offset %d: written again:\n%x\nwant\n%x", file, r.Offset, again, r.Value)
			}
		}, func(r record.Record) {
			c, err := record.ParseControl(r)
			if err != nil {
				t.Fatalf("%s: offset %d: %v", file, r.Offset, err)
			}
			controls[c.ControlType()]++
			if again := record.ControlRecord(c, r.TimestampMs); !bytes.Equal(again.Value, r.Value) || !bytes.Equal(again.Key, r.Key) {
				t.Errorf("%s: offset %d: control record written again:\n%x\nwant\n%x", file, r.Offset, again.Value, r.Value)
			}
		})
	}
	for _, key := range []int16{KeyRegisterBroker, KeyBrokerRegistrationChange, KeyRegisterController, KeyTopic, KeyPartition,
		KeyConfig, KeyFeatureLevel, KeyRemoveTopic, KeyProducerIDs, KeyNoOp, KeyBeginTransaction, KeyEndTransaction} {
		if types[key] == 0 {
			t.Errorf("no record of type %d in the log: the file does not show what it should", key)
		}
	}
	for _, c := range []record.ControlType{record.ControlLeaderChange, record.ControlSnapshotHeader, record.ControlSnapshotFooter} {
		if controls[c] == 0 {
			t.Errorf("no control record of type %d in the logs", c)
		}
	}
}

// What a live Apache Kafka 4.4.0 has written to __consumer_offsets for classic groups parses, and is written again as
// the same bytes.
func TestGroup_LogOfKafka_RoundTrips(t *testing.T) {
	var commits, states, tombstones int
	eachRecord(t, "testdata/consumer_offsets.log", func(r record.Record) {
		key, err := ParseGroupKey(r.Key)
		if err != nil {
			t.Fatalf("offset %d: %v", r.Offset, err)
		}
		var value []byte
		switch {
		case !key.Known():
			return
		case r.Value == nil:
			tombstones++
			return
		case key.IsOffsetCommit():
			commits++
			v, err := ParseOffsetCommitValue(r.Value)
			if err != nil {
				t.Fatalf("offset %d: %v", r.Offset, err)
			}
			value = AppendOffsetCommitValue(nil, v)
		default:
			states++
			v, err := ParseGroupMetadataValue(r.Value)
			if err != nil {
				t.Fatalf("offset %d: %v", r.Offset, err)
			}
			value = AppendGroupMetadataValue(nil, v)
		}
		if !bytes.Equal(value, r.Value) {
			t.Errorf("offset %d: written again:\n%x\nwant\n%x", r.Offset, value, r.Value)
		}
	}, func(record.Record) {})
	if commits == 0 || states == 0 || tombstones == 0 {
		t.Errorf("%d offset commits, %d group states, %d tombstones: the file does not show what it should", commits, states, tombstones)
	}
}
