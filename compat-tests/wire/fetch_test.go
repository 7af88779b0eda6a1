package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
	"sluice/protocol/compress"
	"sluice/protocol/record"
)

// TestV15_LongPoll: an incremental fetch that names nothing waits, for new data or its time.
func TestV15_LongPoll(t *testing.T) {
	address := broker(t)
	c := sluicetest.Dial(t, address)
	topic := fresh("v15")
	createTopic(t, c, topic, 1)
	open := fetchRequest(topic, [16]byte{}, 0, 0)
	open.SessionEpoch, open.MaxWaitMillis = 0, 10
	resp := sluicetest.Ask[*kmsg.FetchResponse](c, open, 12)
	if resp.ErrorCode != none || resp.SessionID == 0 {
		t.Fatalf("error %d, session %d", resp.ErrorCode, resp.SessionID)
	}
	epoch := int32(0)
	next := func(minBytes int32) *kmsg.FetchRequest {
		epoch++
		req := kmsg.NewPtrFetchRequest()
		req.ReplicaID, req.SessionID, req.SessionEpoch = -1, resp.SessionID, epoch
		req.MaxBytes, req.MinBytes, req.MaxWaitMillis = 1<<20, minBytes, 300
		return req
	}
	for range 5 {
		start := time.Now()
		got := sluicetest.Ask[*kmsg.FetchResponse](c, next(1), 12)
		if took := time.Since(start); took < 280*time.Millisecond || got.ErrorCode != none || len(got.Topics) != 0 {
			t.Errorf("an idle fetch took %v, error %d, %d topics", took, got.ErrorCode, len(got.Topics))
		}
	}
	writer := sluicetest.Dial(t, address)
	waiting := next(1)
	waiting.MaxWaitMillis = 10_000
	c.Send(waiting, 12)
	if got := produce(writer, topic, 0, batch(t, plain(), values(1000, "wake")...)); got.ErrorCode != none {
		t.Fatalf("produce: error %d", got.ErrorCode)
	}
	start := time.Now()
	woken := c.Receive().(*kmsg.FetchResponse)
	if took := time.Since(start); took > 2*time.Second || len(woken.Topics) != 1 || len(woken.Topics[0].Partitions[0].RecordBatches) == 0 {
		t.Errorf("woken after %v with %d topics", took, len(woken.Topics))
	}

	// Less than min_bytes waits the whole time and then gives what there is.
	few := fetchRequest(topic, [16]byte{}, 0, 0)
	few.MinBytes, few.MaxWaitMillis = 100_000, 300
	start = time.Now()
	got := sluicetest.Ask[*kmsg.FetchResponse](c, few, 12)
	if took := time.Since(start); took < 280*time.Millisecond || len(got.Topics[0].Partitions[0].RecordBatches) == 0 {
		t.Errorf("fewer bytes than wanted: after %v, %d bytes", took, len(got.Topics[0].Partitions[0].RecordBatches))
	}
}

// TestV16_FetchByteLimits: the first batch is whole above every limit, the next partitions then give none, and nobody starves.
func TestV16_FetchByteLimits(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	topic := fresh("v16")
	const partitions = 20
	createTopic(t, c, topic, partitions, "max.message.bytes", "2000000")
	big := bytes.Repeat([]byte("x"), 1_500_000)
	if got := produce(c, topic, 0, batch(t, plain(), record.Record{TimestampMs: 1000, Value: big})); got.ErrorCode != none {
		t.Fatalf("produce: error %d", got.ErrorCode)
	}
	for p := int32(1); p < partitions; p++ {
		if got := produce(c, topic, p, batch(t, plain(), record.Record{TimestampMs: 1000, Value: big[:50_000]})); got.ErrorCode != none {
			t.Fatalf("produce: error %d", got.ErrorCode)
		}
	}
	all := func(maxBytes, partitionMaxBytes int32) *kmsg.FetchRequest {
		req := fetchRequest(topic, [16]byte{}, 0, 0)
		req.MaxBytes = maxBytes
		req.Topics[0].Partitions[0].PartitionMaxBytes = partitionMaxBytes
		for p := int32(1); p < partitions; p++ {
			more := kmsg.NewFetchRequestTopicPartition()
			more.Partition, more.PartitionMaxBytes = p, partitionMaxBytes
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, more)
		}
		return req
	}
	sizes := func(resp *kmsg.FetchResponse) (total int, first int, nonEmpty int) {
		for _, p := range resp.Topics[0].Partitions {
			n := len(p.RecordBatches)
			total += n
			if p.Partition == 0 {
				first = n
			}
			if n > 0 {
				nonEmpty++
			}
		}
		return total, first, nonEmpty
	}
	if total, first, nonEmpty := sizes(sluicetest.Ask[*kmsg.FetchResponse](c, all(1024, 1024), 12)); first < 1_500_000 || nonEmpty != 1 || total != first {
		t.Errorf("max_bytes 1024: %d bytes, %d of them the first partition's, from %d partitions", total, first, nonEmpty)
	}
	if total, _, nonEmpty := sizes(sluicetest.Ask[*kmsg.FetchResponse](c, all(1_700_000, 1<<20), 12)); total > 1_700_000 || nonEmpty < 2 {
		t.Errorf("max_bytes 1700000: %d bytes from %d partitions", total, nonEmpty)
	}
	// In a session every partition gets its turn.
	req := all(60_000, 1<<20)
	req.SessionEpoch = 0
	resp := sluicetest.Ask[*kmsg.FetchResponse](c, req, 12)
	session, served := resp.SessionID, map[int32]bool{}
	for epoch := int32(1); len(served) < partitions && epoch < 60; epoch++ {
		next := kmsg.NewPtrFetchRequest()
		next.ReplicaID, next.SessionID, next.SessionEpoch, next.MaxBytes, next.MinBytes, next.MaxWaitMillis = -1, session, epoch, 60_000, 1, 100
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				served[p.Partition] = served[p.Partition] || len(p.RecordBatches) > 0
				if len(p.RecordBatches) > 0 {
					moved := kmsg.NewFetchRequestTopicPartition()
					moved.Partition, moved.FetchOffset, moved.PartitionMaxBytes = p.Partition, 1, 1<<20
					next.Topics = append(next.Topics, kmsg.FetchRequestTopic{Topic: topic.Topic, Partitions: []kmsg.FetchRequestTopicPartition{moved}})
				} else {
					delete(served, p.Partition)
				}
			}
		}
		resp = sluicetest.Ask[*kmsg.FetchResponse](c, next, 12)
	}
	if len(served) < partitions {
		t.Errorf("only %d of %d partitions were served", len(served), partitions)
	}
}

// TestV17_FetchLayout: every version decodes to the last byte; an empty partition has no records, which is not null.
func TestV17_FetchLayout(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	topic := fresh("v17")
	id := createTopic(t, c, topic, 2)
	if got := produce(c, topic, 1, batch(t, plain(), values(1000, "v")...)); got.ErrorCode != none {
		t.Fatalf("produce: error %d", got.ErrorCode)
	}
	for version := int16(4); version <= 18; version++ {
		req := fetchRequest(topic, id, 0, 0)
		full := kmsg.NewFetchRequestTopicPartition()
		full.Partition, full.PartitionMaxBytes = 1, 1<<20
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, full)
		resp := sluicetest.Ask[*kmsg.FetchResponse](c, req, version)
		if resp.ErrorCode != none || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 {
			t.Fatalf("v%d: error %d, %+v", version, resp.ErrorCode, resp.Topics)
		}
		for _, p := range resp.Topics[0].Partitions {
			if p.ErrorCode != none || p.PreferredReadReplica != -1 || p.RecordBatches == nil || (len(p.RecordBatches) > 0) != (p.Partition == 1) {
				t.Errorf("v%d partition %d: error %d, preferred replica %d, records %v", version, p.Partition, p.ErrorCode, p.PreferredReadReplica, p.RecordBatches)
			}
			if want := int64(p.Partition); p.HighWatermark != want || p.LastStableOffset != want {
				t.Errorf("v%d partition %d: high watermark %d, last stable offset %d", version, p.Partition, p.HighWatermark, p.LastStableOffset)
			}
		}
		if version < 13 && resp.Topics[0].Topic != topic || version >= 13 && resp.Topics[0].TopicID != id {
			t.Errorf("v%d: topic %q %x", version, resp.Topics[0].Topic, resp.Topics[0].TopicID)
		}
	}
	for offset, want := range map[int64]int16{2: offsetOutOfRange, 1: none, -5: offsetOutOfRange} {
		if got := fetch(c, topic, 1, offset); got.ErrorCode != want {
			t.Errorf("offset %d: error %d, want %d", offset, got.ErrorCode, want)
		}
	}
}

// TestV18_OffsetsByTime: the offset is the record's, not its batch's.
func TestV18_OffsetsByTime(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	records := func(stamps ...int64) []record.Record {
		var all []record.Record
		for _, s := range stamps {
			all = append(all, record.Record{TimestampMs: s, Value: []byte("v")})
		}
		return all
	}
	gzip := plain()
	gzip.Codec = compress.Gzip
	for _, test := range []struct {
		name    string
		batches [][]byte
		want    map[int64][2]int64 // time → offset, timestamp
	}{
		{"four batches", [][]byte{batch(t, plain(), records(2)...), batch(t, plain(), records(4)...), batch(t, plain(), records(6)...), batch(t, plain(), records(8)...)},
			map[int64][2]int64{0: {0, 2}, 2: {0, 2}, 3: {1, 4}, 4: {1, 4}, 5: {2, 6}, 7: {3, 8}, 8: {3, 8}, 9: {-1, -1}, -1: {4, -1}, -2: {0, -1}}},
		{"one batch", [][]byte{batch(t, plain(), records(2, 4, 6, 8)...)},
			map[int64][2]int64{0: {0, 2}, 3: {1, 4}, 6: {2, 6}, 7: {3, 8}, 9: {-1, -1}, -1: {4, -1}, -2: {0, -1}}},
		{"one gzip batch", [][]byte{batch(t, gzip, records(2, 4, 6, 8)...)},
			map[int64][2]int64{0: {0, 2}, 3: {1, 4}, 6: {2, 6}, 7: {3, 8}, 9: {-1, -1}}},
		{"out of order", [][]byte{batch(t, plain(), records(5)...), batch(t, plain(), records(1)...), batch(t, plain(), records(9)...), batch(t, plain(), records(3)...)},
			map[int64][2]int64{0: {0, 5}, 5: {0, 5}, 6: {2, 9}, 9: {2, 9}, 10: {-1, -1}, -3: {2, 9}}},
		{"empty", nil, map[int64][2]int64{-1: {0, -1}, -2: {0, -1}, 0: {-1, -1}, 5: {-1, -1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			topic := fresh("v18")
			createTopic(t, c, topic, 1)
			for _, b := range test.batches {
				if got := produce(c, topic, 0, b); got.ErrorCode != none {
					t.Fatalf("produce: error %d", got.ErrorCode)
				}
			}
			for at, want := range test.want {
				got := listOffset(c, topic, 0, at)
				if got.ErrorCode != none || got.Offset != want[0] || got.Timestamp != want[1] {
					t.Errorf("time %d: offset %d, timestamp %d, error %d; want %v", at, got.Offset, got.Timestamp, got.ErrorCode, want)
				}
			}
		})
	}
}

// TestV19_LeaderEpochs: an older epoch is fenced, a newer one unknown, and where each epoch ended is told.
func TestV19_LeaderEpochs(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	topic := fresh("v19")
	createTopic(t, c, topic, 1)
	if got := produce(c, topic, 0, batch(t, plain(), values(1000, "a", "b")...)); got.ErrorCode != none {
		t.Fatalf("produce: error %d", got.ErrorCode)
	}
	epoch := metadata(c, 12, false, topic).Topics[0].Partitions[0].LeaderEpoch
	codes := map[int32]int16{epoch: none, epoch + 1: unknownLeaderEpoch, -1: none}
	if epoch > 0 {
		codes[epoch-1] = fencedLeaderEpoch
	}
	for asked, want := range codes {
		if got := listOffsetEpoch(c, topic, 0, latest, asked); got.ErrorCode != want {
			t.Errorf("ListOffsets with epoch %d: error %d, want %d", asked, got.ErrorCode, want)
		}
		req := fetchRequest(topic, [16]byte{}, 0, 0)
		req.Topics[0].Partitions[0].CurrentLeaderEpoch = asked
		if got := sluicetest.Ask[*kmsg.FetchResponse](c, req, 12).Topics[0].Partitions[0]; got.ErrorCode != want {
			t.Errorf("Fetch with epoch %d: error %d, want %d", asked, got.ErrorCode, want)
		}
	}
	end := func(current, asked int32) kmsg.OffsetForLeaderEpochResponseTopicPartition {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.ReplicaID = -1
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.CurrentLeaderEpoch, p.LeaderEpoch = current, asked
		req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p}}}
		return sluicetest.Ask[*kmsg.OffsetForLeaderEpochResponse](c, req, 4).Topics[0].Partitions[0]
	}
	if got := end(-1, epoch); got.ErrorCode != none || got.LeaderEpoch != epoch || got.EndOffset != 2 {
		t.Errorf("end of epoch %d: %+v", epoch, got)
	}
	if got := end(-1, epoch+5); got.ErrorCode != none || got.LeaderEpoch != -1 || got.EndOffset != -1 {
		t.Errorf("end of a future epoch: %+v", got)
	}
	if got := end(epoch+1, epoch); got.ErrorCode != unknownLeaderEpoch {
		t.Errorf("asked in a future epoch: error %d", got.ErrorCode)
	}
	stored, _, err := record.Split(fetch(c, topic, 0, 0).RecordBatches)
	if err != nil || stored.LeaderEpoch() != record.LeaderEpoch(epoch) {
		t.Errorf("the batch has epoch %d, the partition %d (%v)", stored.LeaderEpoch(), epoch, err)
	}
}

// TestV19_LeaderEpochsOverARestart: the epoch rises, the old one's end is remembered, and never goes down.
func TestV19_LeaderEpochsOverARestart(t *testing.T) {
	p := own(t)
	c := sluicetest.Dial(t, p.Address)
	topic := fresh("v19-restart")
	createTopic(t, c, topic, 1)
	produce(c, topic, 0, batch(t, plain(), values(1000, "a", "b")...))
	before := metadata(c, 12, false, topic).Topics[0].Partitions[0].LeaderEpoch
	for _, restart := range []func(){p.Restart, func() { p.Kill(); p.Launch(); p.WaitReady() }} {
		restart()
		c = sluicetest.Dial(t, p.Address)
		now := metadata(c, 12, false, topic).Topics[0].Partitions[0].LeaderEpoch
		if now <= before {
			t.Errorf("leader epoch %d after a restart, %d before", now, before)
		}
		if got := listOffsetEpoch(c, topic, 0, latest, before); got.ErrorCode != fencedLeaderEpoch {
			t.Errorf("asked in the old epoch: error %d, want %d", got.ErrorCode, fencedLeaderEpoch)
		}
		produce(c, topic, 0, batch(t, plain(), values(1000, "c")...))
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.ReplicaID = -1
		asked := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		asked.LeaderEpoch = 0
		req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{asked}}}
		if got := sluicetest.Ask[*kmsg.OffsetForLeaderEpochResponse](c, req, 4).Topics[0].Partitions[0]; got.LeaderEpoch != 0 || got.EndOffset != 2 {
			t.Errorf("end of epoch 0: %+v", got)
		}
		before = now
	}
}
