package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/uuid"
	"sluice/storage/vfs"
)

// BenchmarkProduce appends one batch of 16 records of 1 KiB a request, as a producer with the default batch size does.
func BenchmarkProduce(b *testing.B) {
	for name, fs := range map[string]func() (vfs.FS, string){
		"memory": func() (vfs.FS, string) { return vfs.NewMem(), "/d1" },
		"disk":   func() (vfs.FS, string) { return vfs.OS(), b.TempDir() },
	} {
		b.Run(name, func(b *testing.B) {
			disk, dir := fs()
			w := newPartitionsWorld(b, disk, map[string]string{"log.dirs": dir})
			defer w.stop()
			w.create("t", 1, "segment.bytes", "104857600", "retention.bytes", "0")
			values := make([]string, 16)
			for i := range values {
				values[i] = strings.Repeat("x", 1024)
			}
			// Each request is decoded anew: a handler patches the batch in the frame.
			request := produceRequest(12, 1, "t", newBatch(b, values...))
			frame := request.AppendTo(nil)
			copied := make([]byte, len(frame))
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				copy(copied, frame)
				q := kmsg.NewPtrProduceRequest()
				q.SetVersion(12)
				if err := q.ReadFrom(copied); err != nil {
					b.Fatal(err)
				}
				w.handlers.Serve(q).Finish()
			}
		})
	}
}

// BenchmarkFetch answers the next request of a session over so many partitions: one of them has a batch that the client has not seen.
func BenchmarkFetch(b *testing.B) {
	for _, partitions := range []int{1, 100} {
		for _, news := range []int{1, partitions} {
			b.Run(fmt.Sprintf("partitions=%d/with_records=%d", partitions, news), func(b *testing.B) {
				w := newPartitionsWorld(b, vfs.OS(), map[string]string{"log.dirs": b.TempDir()})
				defer w.stop()
				w.create("t", partitions)
				c := w.dial()
				records := make([][]byte, partitions)
				for i := range records {
					records[i] = newBatch(b, strings.Repeat("x", 1024))
				}
				c.produce("t", records...)
				q := fetchRequest(12, "t", uuid.UUID{}, make([]int64, partitions)...)
				for i := news; i < partitions; i++ {
					q.Topics[0].Partitions[i].FetchOffset = 1
				}
				q.SessionEpoch = 0
				session := ask[*kmsg.FetchResponse](c, q).SessionID
				next := incremental(session, 0, 500, 1)
				b.ReportAllocs()
				for b.Loop() {
					next.SessionEpoch++
					if got := w.handlers.Serve(next).Finish(); got < int64(1024*news) {
						b.Fatalf("%d bytes of records", got)
					}
				}
			})
		}
	}
}
