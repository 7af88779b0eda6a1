package record

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/protocol/uuid"
)

// controls are the contents of testdata/control.vectors.
var controls = map[string]Control{
	"abort":           EndTxnMarker{Commit: false, CoordinatorEpoch: 7},
	"commit":          EndTxnMarker{Commit: true, CoordinatorEpoch: -1},
	"leader-change":   LeaderChange{LeaderID: 2, Voters: []int32{1, 2}, GrantingVoters: []int32{2}},
	"snapshot-header": SnapshotHeader{LastContainedLogTimestampMs: 1700000000000},
	"snapshot-footer": SnapshotFooter{},
	"kraft-version":   KRaftVersion{KRaftVersion: 1},
	"voters": Voters{Voters: []Voter{
		{ID: 1, DirectoryID: uuid.UUID{7: 1, 15: 2}, MaxKRaftVersion: 1, Endpoints: []VoterEndpoint{
			{Name: "CONTROLLER", Host: "host-1", Port: 9093}, {Name: "OTHER", Host: "host-2", Port: 65535}}},
		{ID: 2, Endpoints: []VoterEndpoint{}},
	}},
}

// Control records are written and read byte for byte as Kafka's classes do it.
func TestControl_AsKafkaWritesIt(t *testing.T) {
	lines := fieldsOf(t, "testdata/control.vectors", 3)
	if len(lines) != len(controls) {
		t.Errorf("%d vectors, want %d", len(lines), len(controls))
	}
	for _, f := range lines {
		want := controls[f[0]]
		r := ControlRecord(want, 99)
		if key, value := hex.EncodeToString(r.Key), hex.EncodeToString(r.Value); key != f[1] || value != f[2] || r.TimestampMs != 99 {
			t.Errorf("%s: written as %s %s, want %s %s", f[0], key, value, f[1], f[2])
		}
		got, err := ParseControl(r)
		if err != nil {
			t.Errorf("%s: %v", f[0], err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: want(-) got(+):\n%s", f[0], diff)
		}
		for cut := range r.Value {
			if got, err := ParseControl(Record{Key: r.Key, Value: r.Value[:cut]}); err == nil {
				t.Errorf("%s: cut after %d bytes reads as %+v", f[0], cut, got)
			}
		}
	}
}

// A type from the future is told apart from a key that is damaged.
func TestControl_UnknownAndMalformed(t *testing.T) {
	c, err := ParseControl(Record{Key: []byte{0, 0, 0, 99}, Value: []byte{0, 0}})
	if err != nil || c != (UnknownControl{Type: 99}) {
		t.Errorf("got %+v, %v", c, err)
	}
	if typ, err := ParseControlType([]byte{0, 3, 0, 1, 9}); err != nil || typ != ControlCommit {
		t.Errorf("a newer version of the key: %d, %v", typ, err)
	}
	for _, key := range [][]byte{nil, {0, 0, 0}, {0xff, 0xff, 0, 1}} {
		if c, err := ParseControl(Record{Key: key, Value: make([]byte, 20)}); err == nil {
			t.Errorf("key %x: %+v", key, c)
		}
	}
	if c, err := ParseControl(Record{Key: []byte{0, 0, 0, 1}, Value: []byte{0xff, 0xff, 0, 0, 0, 0}}); err == nil {
		t.Errorf("value of a negative version: %+v", c)
	}
}
