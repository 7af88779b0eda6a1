package logrecord

import (
	"bytes"
	"runtime"
	"testing"

	"sluice/protocol/record"
)

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// allowance is what parsing n bytes may allocate.
func allowance(n int) uint64 { return 64<<10 + 200*uint64(n) }

// A record that parses is written as bytes that parse to the same; no input allocates more than in proportion.
func FuzzParseCluster(f *testing.F) {
	for _, v := range vectors(f) {
		if v.kind == "cluster" {
			f.Add(v.bytes)
		}
	}
	for _, file := range []string{"testdata/cluster_metadata.log", "testdata/bootstrap.checkpoint"} {
		n := 0
		eachRecord(f, file, func(r record.Record) {
			if n++; n%10 == 0 {
				f.Add(r.Value)
			}
		}, func(record.Record) {})
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var r ClusterRecord
		var version int16
		var err error
		if n := allocated(func() { r, version, err = ParseClusterVersion(value) }); n > allowance(len(value)) {
			t.Errorf("%d bytes allocated for %d", n, len(value))
		}
		if err != nil {
			return
		}
		once := AppendCluster(nil, r, version)
		again, _, err := ParseClusterVersion(once)
		if err != nil {
			t.Fatalf("%x is written as %x: %v", value, once, err)
		}
		if twice := AppendCluster(nil, again, version); !bytes.Equal(once, twice) {
			t.Errorf("%x, then %x", once, twice)
		}
	})
}

// Keys and values of group records: what parses is written as bytes that parse to the same.
func FuzzParseGroup(f *testing.F) {
	for _, v := range vectors(f) {
		if v.kind == "group" {
			f.Add(v.bytes)
		}
	}
	n := 0
	eachRecord(f, "testdata/consumer_offsets.log", func(r record.Record) {
		if n++; n%5 == 0 {
			f.Add(r.Key)
			f.Add(r.Value)
		}
	}, func(record.Record) {})
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := allocated(func() {
			ParseGroupKey(b)
			ParseOffsetCommitValue(b)
			ParseGroupMetadataValue(b)
		}); n > 3*allowance(len(b)) {
			t.Errorf("%d bytes allocated for %d", n, len(b))
		}
		if k, err := ParseGroupKey(b); err == nil && k.Type == KeyOffsetCommit {
			if again, err := ParseGroupKey(AppendOffsetCommitKey(nil, k.Group, k.Topic, k.Partition)); err != nil || again != k {
				t.Errorf("%+v is read as %+v, %v", k, again, err)
			}
		}
		if v, err := ParseOffsetCommitValue(b); err == nil {
			v.Version = 0
			again, err := ParseOffsetCommitValue(AppendOffsetCommitValue(nil, v))
			if err != nil || again.Offset != v.Offset || again.Metadata != v.Metadata {
				t.Errorf("%+v is read as %+v, %v", v, again, err)
			}
		}
		if v, err := ParseGroupMetadataValue(b); err == nil {
			again, err := ParseGroupMetadataValue(AppendGroupMetadataValue(nil, v))
			if err != nil || again.Generation != v.Generation || len(again.Members) != len(v.Members) {
				t.Errorf("%+v is read as %+v, %v", v, again, err)
			}
		}
	})
}
