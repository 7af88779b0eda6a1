package partlog

import (
	"fmt"
	"testing"

	"sluice/protocol/record"
	"sluice/storage/vfs"
)

func build(tb testing.TB, pid record.ProducerID, seq int32, ts int64, values ...string) record.Batch {
	tb.Helper()
	b := record.NewBuilder(record.BuilderOptions{ProducerID: pid, ProducerEpoch: 0, BaseSequence: seq, LeaderEpoch: -1})
	for _, v := range values {
		b.Add(record.Record{TimestampMs: ts, Value: []byte(v)})
	}
	batch, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return batch
}

func TestSmoke(t *testing.T) {
	fs := vfs.NewMem()
	c := DefaultConfig()
	c.SegmentBytes = 500
	c.IndexIntervalBytes = 100
	l, err := Open(Options{FS: fs, Dir: "/d/t-0", Config: c, NowMs: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		info, err := l.AppendAsLeader(build(t, -1, -1, int64(1000+i), fmt.Sprint("value", i), "x"), 3, Client, 1000)
		if err != nil || info.BaseOffset != int64(2*i) {
			t.Fatal(i, info, err)
		}
	}
	for i := int64(0); i < 40; i++ {
		s, err := l.Read(i, 1<<20, true, 40)
		if err != nil || s.Bytes == 0 {
			t.Fatal(i, s, err)
		}
		s.Close()
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	names, _ := fs.ReadDir("/d/t-0")
	for _, n := range names {
		st, _ := n.Info()
		t.Log(n.Name(), st.Size())
	}
	l, err = Open(Options{FS: fs, Dir: "/d/t-0", Config: c, NowMs: 1000, CleanShutdown: true})
	if err != nil || l.LogEndOffset() != 40 || l.LatestEpoch() != 3 {
		t.Fatal(l, err)
	}
}
