package logrecord

import (
	"bytes"
	"strings"
	"testing"

	"sluice/protocol/uuid"
)

// Tagged fields from the future are kept, in the order of their tags, among those that are known.
func TestCluster_UnknownTags_AreKept(t *testing.T) {
	r := NewPartitionChangeRecord()
	r.Leader = 4
	r.Directories = []uuid.UUID{{1}}
	r.UnknownTags = Tags{{Tag: 7, Value: []byte("seven")}, {Tag: 300, Value: nil}}
	// Version 1 does not know tag 7, which is LastKnownELR in version 2.
	b := AppendCluster(nil, r, 1)
	got, version, err := ParseClusterVersion(b)
	if err != nil {
		t.Fatal(err)
	}
	tags := got.(*PartitionChangeRecord).UnknownTags
	if len(tags) != 2 || tags[0].Tag != 7 || string(tags[0].Value) != "seven" || tags[1].Tag != 300 {
		t.Errorf("got %+v", tags)
	}
	if again := AppendCluster(nil, got, version); !bytes.Equal(again, b) {
		t.Errorf("written again:\n%x\nwant\n%x", again, b)
	}
}

// What is not a record of Kafka 4.4 is an error that says why.
func TestParseCluster_Malformed(t *testing.T) {
	topic := AppendCluster(nil, &TopicRecord{Name: "orders", TopicID: uuid.UUID{1}}, 0)
	change := func(at int, to ...byte) []byte {
		b := bytes.Clone(topic)
		copy(b[at:], to)
		return b
	}
	for _, c := range []struct {
		what string
		b    []byte
		want string
	}{
		{"nothing", nil, "enough data"},
		{"frame version 0", change(0, 0), "frame version 0"},
		{"frame version 2", change(0, 2), "frame version 2"},
		{"type 6, which was never used", change(1, 6), "unknown type 6"},
		{"type 30", change(1, 30), "unknown type 30"},
		{"type -1 as a varint", []byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0}, "unknown type 4294967295"},
		{"version 1", change(2, 1), "no version 1"},
		{"null name", change(3, 0), "null string"},
		{"name longer than the record", change(3, 200, 1), "exceeds"},
		{"cut short", topic[:len(topic)-3], "enough data"},
		{"bytes behind it", append(bytes.Clone(topic), 0), "1 bytes left over"},
		{"tags out of order", append(topic[:len(topic)-1:len(topic)-1], 2, 5, 0, 5, 0), "tag 5 follows tag 5"},
		{"tagged field longer than the record", append(topic[:len(topic)-1:len(topic)-1], 1, 5, 100), "tagged field 5"},
		{"known tag that is too short for its type", []byte{1, 17, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0}, "does not fill"},
		{"known tag that is too long for its type", []byte{1, 17, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 2, 1, 1}, "does not fill"},
	} {
		r, err := ParseCluster(c.b)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want %q", c.what, r, err, c.want)
		}
	}
}

// Writing a record in a version that lacks a field which is set would lose it: that is a fault of the caller.
func TestAppendCluster_FieldThatTheVersionLacks_Panics(t *testing.T) {
	withELR := NewPartitionRecord()
	withELR.EligibleLeaderReplicas = []int32{}
	inShutdown := NewRegisterBrokerRecord()
	inShutdown.InControlledShutdown = true
	for _, c := range []struct {
		what    string
		r       ClusterRecord
		version int16
	}{
		{"tagged field", withELR, 1}, {"plain field", inShutdown, 0}, {"version beyond the newest", new(TopicRecord), 1}, {"negative version", new(TopicRecord), -1},
		{"string that Kafka could not read", &TopicRecord{Name: strings.Repeat("x", 1<<15)}, 0},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: written", c.what)
				}
			}()
			AppendCluster(nil, c.r, c.version)
		}()
	}
}

// The result of parsing shares no memory with the input.
func TestParse_CopiesTheInput(t *testing.T) {
	in := AppendCluster(nil, &UserScramCredentialRecord{Name: "alice", Salt: []byte("salt"), UnknownTags: Tags{{Tag: 9, Value: []byte("tag")}}}, 0)
	r, err := ParseCluster(in)
	if err != nil {
		t.Fatal(err)
	}
	clear(in)
	got := r.(*UserScramCredentialRecord)
	if got.Name != "alice" || string(got.Salt) != "salt" || string(got.UnknownTags[0].Value) != "tag" {
		t.Errorf("got %+v", got)
	}
}

// Keys and values that are not what Kafka writes are errors; keys of types from the future are not.
func TestParseGroup_Malformed(t *testing.T) {
	if k, err := ParseGroupKey([]byte{0, 3, 0xff}); err != nil || k.Known() || k.Type != 3 {
		t.Errorf("key of type 3: %+v, %v", k, err)
	}
	key := AppendOffsetCommitKey(nil, "group", "topic", 3)
	for _, b := range [][]byte{nil, {0}, key[:len(key)-1], {0, 2, 0, 9}} {
		if k, err := ParseGroupKey(b); err == nil {
			t.Errorf("key %x: %+v", b, k)
		}
	}
	for _, b := range [][]byte{nil, {0}, {0, 5, 0, 0}, {0xff, 0xff, 0, 0}, {0, 3, 0, 0}, {0, 4, 0, 0}} {
		if v, err := ParseOffsetCommitValue(b); err == nil {
			t.Errorf("offset commit value %x: %+v", b, v)
		}
		if v, err := ParseGroupMetadataValue(b); err == nil {
			t.Errorf("group metadata value %x: %+v", b, v)
		}
	}
}

func BenchmarkParseCluster(b *testing.B) {
	r := NewPartitionRecord()
	r.Replicas, r.ISR, r.Directories = []int32{1, 2, 3}, []int32{1, 2, 3}, make([]uuid.UUID, 3)
	value := AppendCluster(nil, r, 2)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseCluster(value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendCluster(b *testing.B) {
	r := NewPartitionChangeRecord()
	r.ISR, r.Leader = []int32{1, 2, 3}, 2
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendCluster(dst[:0], r, 2)
	}
}
