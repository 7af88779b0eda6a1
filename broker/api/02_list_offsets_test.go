package api_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/compress"
)

// V18: a search by time finds the record, whatever batches it is in, and the same one after a restart.
func TestV18_ListOffsetsByTime(t *testing.T) {
	type answer struct{ offset, timestamp int64 }
	ascending := map[int64]answer{
		0: {0, 2}, 1: {0, 2}, 2: {0, 2}, 3: {1, 4}, 4: {1, 4}, 5: {2, 6}, 6: {2, 6}, 7: {3, 8}, 8: {3, 8}, 9: {-1, -1},
		-1: {4, -1}, -2: {0, -1}, -3: {3, 8}, -4: {0, -1}, -5: {-1, -1}, -6: {-1, -1},
	}
	layouts := []struct {
		name    string
		codec   compress.Codec
		batches [][]int64
		want    map[int64]answer
	}{
		{name: "four batches", batches: [][]int64{{2}, {4}, {6}, {8}}, want: ascending},
		{name: "one batch", batches: [][]int64{{2, 4, 6, 8}}, want: ascending},
		{name: "one gzip batch", codec: compress.Gzip, batches: [][]int64{{2, 4, 6, 8}}, want: ascending},
		{name: "out of order", batches: [][]int64{{5}, {1}, {9}, {3}}, want: map[int64]answer{6: {2, 9}, 1: {0, 5}, 5: {0, 5}, 9: {2, 9}, 10: {-1, -1}, -3: {2, 9}}},
		{name: "out of order in one batch", batches: [][]int64{{5, 1, 9, 3}}, want: map[int64]answer{6: {2, 9}, 2: {0, 5}, -3: {2, 9}}},
		{name: "empty", want: map[int64]answer{0: {-1, -1}, 5: {-1, -1}, -1: {0, -1}, -2: {0, -1}, -3: {-1, -1}, -4: {0, -1}}},
	}
	world(t, nil, func(w *partitionsWorld) {
		c := w.dial()
		for i, layout := range layouts {
			topic := fmt.Sprintf("t%d", i)
			w.create(topic, 1)
			for _, timestamps := range layout.batches {
				options := plainOptions()
				options.Codec, options.timestamps = layout.codec, timestamps
				c.produce(topic, buildBatch(w.t, options, make([]string, len(timestamps))...))
			}
		}
		check := func() {
			for i, layout := range layouts {
				for timestamp, want := range layout.want {
					p := c.listOffset(11, fmt.Sprintf("t%d", i), 0, timestamp)
					if p.ErrorCode != 0 || p.Offset != want.offset || p.Timestamp != want.timestamp {
						w.t.Errorf("%s, time %d: code %d, offset %d, time %d; want %+v", layout.name, timestamp, p.ErrorCode, p.Offset, p.Timestamp, want)
					}
				}
			}
		}
		check()
		w.restart()
		c = w.dial()
		check()
	})
}

func TestListOffsets_VersionsAndErrors(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 1)
		c := w.dial()
		c.produce("t", newBatch(w.t, "a", "b"))
		for version := int16(1); version <= 11; version++ {
			p := c.listOffset(version, "t", 0, -1)
			wantEpoch := int32(-1)
			if version >= 4 {
				wantEpoch = 0
			}
			if p.ErrorCode != 0 || p.Offset != 2 || p.Timestamp != -1 || p.LeaderEpoch != wantEpoch {
				w.t.Errorf("version %d: %+v", version, p)
			}
			for timestamp, since := range map[int64]int16{-3: 7, -4: 8, -5: 9, -6: 11, -7: 99} {
				wantCode := int16(0)
				if version < since {
					wantCode = kerr.UnsupportedVersion.Code
				}
				if p := c.listOffset(version, "t", 0, timestamp); p.ErrorCode != wantCode {
					w.t.Errorf("version %d, timestamp %d: code %d, want %d", version, timestamp, p.ErrorCode, wantCode)
				}
			}
		}
		q := listOffsetsRequest(7, "t", 0, -1)
		q.Topics[0].Partitions = append(q.Topics[0].Partitions, q.Topics[0].Partitions[0], kmsg.ListOffsetsRequestTopicPartition{Partition: 5, Timestamp: -1, CurrentLeaderEpoch: -1})
		q.Topics = append(q.Topics, listOffsetsRequest(7, "missing", 0, -1).Topics...)
		answer := ask[*kmsg.ListOffsetsResponse](c, q)
		for i, want := range []*kerr.Error{kerr.InvalidRequest, kerr.UnknownTopicOrPartition} {
			if p := answer.Topics[0].Partitions[i]; p.ErrorCode != want.Code || p.Offset != -1 || p.Timestamp != -1 {
				w.t.Errorf("partition %d of the request: %+v, want %v", i, p, want)
			}
		}
		if p := answer.Topics[1].Partitions[0]; p.ErrorCode != kerr.UnknownTopicOrPartition.Code {
			w.t.Errorf("topic that is not there: %+v", p)
		}
	})
}

func TestDeleteRecords(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 2)
		w.create("compacted", 1, "cleanup.policy", "compact")
		w.create("__consumer_offsets", 1)
		c := w.dial()
		c.produce("t", newBatch(w.t, "a", "b", "c"), newBatch(w.t, "d"))
		c.produce("compacted", newBatch(w.t, "k=v"))
		for version := int16(0); version <= 2; version++ {
			q := kmsg.NewPtrDeleteRecordsRequest()
			q.SetVersion(version)
			for _, t := range []struct {
				topic   string
				offsets []int64
			}{{"t", []int64{2, 5}}, {"compacted", []int64{-1}}, {"__consumer_offsets", []int64{-1}}, {"missing", []int64{0}}} {
				topic := kmsg.DeleteRecordsRequestTopic{Topic: t.topic}
				for i, offset := range t.offsets {
					topic.Partitions = append(topic.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Partition: int32(i), Offset: offset})
				}
				q.Topics = append(q.Topics, topic)
			}
			answer := ask[*kmsg.DeleteRecordsResponse](c, q)
			got := fmt.Sprint(answer.Topics[0].Partitions[0].ErrorCode, answer.Topics[0].Partitions[0].LowWatermark, answer.Topics[0].Partitions[1].ErrorCode,
				answer.Topics[0].Partitions[1].LowWatermark, answer.Topics[1].Partitions[0].ErrorCode, answer.Topics[2].Partitions[0].ErrorCode, answer.Topics[3].Partitions[0].ErrorCode)
			want := fmt.Sprint(0, 2, kerr.OffsetOutOfRange.Code, -1, kerr.PolicyViolation.Code, kerr.InvalidTopicException.Code, kerr.UnknownTopicOrPartition.Code)
			if got != want {
				w.t.Errorf("version %d: %s, want %s", version, got, want)
			}
		}
		if p := c.listOffset(5, "t", 0, -2); p.Offset != 2 {
			w.t.Errorf("the log starts at %d, want 2", p.Offset)
		}
	})
}

func TestDescribeLogDirs(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("a", 2)
		w.create("b", 1)
		c := w.dial()
		b := newBatch(w.t, "v")
		c.produce("a", nil, b)
		for version := int16(1); version <= 5; version++ {
			q := kmsg.NewPtrDescribeLogDirsRequest()
			q.SetVersion(version)
			answer := ask[*kmsg.DescribeLogDirsResponse](c, q)
			if len(answer.Dirs) != 1 || answer.Dirs[0].ErrorCode != 0 || answer.Dirs[0].Dir != "/d1" || len(answer.Dirs[0].Topics) != 2 {
				w.t.Fatalf("version %d: %+v", version, answer)
			}
			p := answer.Dirs[0].Topics[0].Partitions
			if len(p) != 2 || p[0].Size != 0 || p[1].Size != int64(len(b)) || p[1].Partition != 1 || p[1].OffsetLag != 0 || p[1].IsFuture {
				w.t.Errorf("version %d: %+v", version, p)
			}
			q.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: "b", Partitions: []int32{0}}, {Topic: "a", Partitions: []int32{7}}}
			if answer := ask[*kmsg.DescribeLogDirsResponse](c, q); len(answer.Dirs[0].Topics) != 1 || answer.Dirs[0].Topics[0].Topic != "b" {
				w.t.Errorf("version %d, one topic: %+v", version, answer)
			}
			q.Topics = []kmsg.DescribeLogDirsRequestTopic{}
			if answer := ask[*kmsg.DescribeLogDirsResponse](c, q); len(answer.Dirs) != 1 || len(answer.Dirs[0].Topics) != 0 {
				w.t.Errorf("version %d, no topic: %+v", version, answer)
			}
		}
	})
}
