package durability

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/compat-tests/sluicetest"
)

// TestV18_AfterIndexLoss: lookups by time give the same after a clean stop and after a kill, with every index gone.
func TestV18_AfterIndexLoss(t *testing.T) {
	type found struct{ offset, timestamp int64 }
	cases := []struct {
		topic   string
		batches [][]int64 // timestamps
		codec   kgo.CompressionCodec
		want    map[int64]found
	}{
		{"four-batches", [][]int64{{2}, {4}, {6}, {8}}, kgo.NoCompression(), map[int64]found{0: {0, 2}, 2: {0, 2}, 3: {1, 4}, 8: {3, 8}, 9: {-1, -1}}},
		{"one-batch", [][]int64{{2, 4, 6, 8}}, kgo.NoCompression(), map[int64]found{0: {0, 2}, 3: {1, 4}, 6: {2, 6}, 7: {3, 8}, 9: {-1, -1}}},
		{"one-gzip-batch", [][]int64{{2, 4, 6, 8}}, kgo.GzipCompression(), map[int64]found{0: {0, 2}, 3: {1, 4}, 6: {2, 6}, 7: {3, 8}, 9: {-1, -1}}},
		{"out-of-order", [][]int64{{5}, {1}, {9}, {3}}, kgo.NoCompression(), map[int64]found{0: {0, 5}, 5: {0, 5}, 6: {2, 9}, 9: {2, 9}, 10: {-1, -1}}},
	}
	p := sluicetest.Start(t)
	for _, c := range cases {
		createTopic(t, p.Address, c.topic, 1, "message.timestamp.before.max.ms", "9223372036854775807", "retention.ms", "-1")
		cl := open(t, p.Address, kgo.ProducerBatchCompression(c.codec), kgo.DefaultProduceTopic(c.topic))
		for _, stamps := range c.batches {
			var records []*kgo.Record
			for _, ms := range stamps {
				records = append(records, &kgo.Record{Value: []byte("v"), Timestamp: time.UnixMilli(ms)})
			}
			if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		cl.Close()
	}
	check := func(when string) {
		t.Helper()
		adm := kadm.NewClient(open(t, p.Address))
		for _, c := range cases {
			for at, want := range c.want {
				offsets, err := adm.ListOffsetsAfterMilli(t.Context(), at, c.topic)
				if err != nil {
					t.Fatal(err)
				}
				o, _ := offsets.Lookup(c.topic, 0)
				if want.offset < 0 { // the client asks for the end in its place
					want = found{4, -1}
					if len(c.batches) == 1 {
						want.offset = int64(len(c.batches[0]))
					}
				}
				if got := (found{o.Offset, o.Timestamp}); got != want || o.Err != nil {
					t.Errorf("%s, %s: time %d is at %+v (%v), want %+v", when, c.topic, at, got, o.Err, want)
				}
			}
		}
	}
	check("before")
	for _, stop := range []struct {
		name string
		do   func()
	}{{"after a clean stop", p.Stop}, {"after a kill", p.Kill}} {
		stop.do()
		for _, pattern := range []string{"*.timeindex", "*.index"} {
			names, err := filepath.Glob(filepath.Join(p.DataDir, "*", pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		p.Launch()
		p.WaitReady()
		check(stop.name + " without indexes")
	}
}
