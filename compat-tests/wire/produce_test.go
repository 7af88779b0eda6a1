package wire

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
	"sluice/protocol/compress"
	"sluice/protocol/record"
)

// sealed gives a batch whose header was changed a CRC that is right again.
func sealed(b record.Batch) record.Batch {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// TestV06_RefusedBatches: a bad batch gets its own code, nothing of it is stored, and the partition beside it is served.
func TestV06_RefusedBatches(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	topic := fresh("v06")
	createTopic(t, c, topic, 2)
	compacted := fresh("v06-compacted")
	createTopic(t, c, compacted, 1, "cleanup.policy", "compact")
	strict := fresh("v06-strict")
	createTopic(t, c, strict, 1, "message.timestamp.after.max.ms", "3600000")

	now := time.Now().UnixMilli()
	valid := func() record.Batch { return batch(t, plain(), values(now, "a", "b", "c")...) }
	header := func(change func(b record.Batch)) []byte {
		b := valid()
		change(b)
		return sealed(b)
	}
	put32 := func(at int, v int32) func(record.Batch) {
		return func(b record.Batch) { binary.BigEndian.PutUint32(b[at:], uint32(v)) }
	}
	flipped := valid()
	flipped[len(flipped)-1] ^= 1
	control := plain()
	control.Control = true
	sequence := plain()
	sequence.ProducerID, sequence.ProducerEpoch = 1, 0
	for _, test := range []struct {
		name         string
		topic        string
		records      []byte
		want         int16
		recordErrors bool
	}{
		{"a flipped byte", topic, flipped, corruptMessage, false},
		{"base offset 5", topic, header(func(b record.Batch) { b.SetBaseOffset(5) }), invalidRecord, false},
		{"no records", topic, header(put32(57, 0)), invalidRecord, false},
		{"minus one record", topic, header(put32(57, -1)), invalidRecord, false},
		{"last offset delta 5", topic, header(put32(23, 5)), invalidRecord, false},
		{"count and delta of 4", topic, header(func(b record.Batch) { put32(57, 4)(b); put32(23, 3)(b) }), invalidRecord, false},
		{"two batches", topic, append(bytes.Clone(valid()), valid()...), invalidRecord, false},
		{"zero bytes", topic, []byte{}, invalidRecord, false},
		{"control", topic, batch(t, control, record.Record{TimestampMs: now, Key: []byte{0, 0, 0, 0}, Value: []byte{0, 0, 0, 0, 0, 0}}), invalidRecord, false},
		{"producer id without sequence", topic, batch(t, sequence, values(now, "a")...), invalidRecord, false},
		{"no key", compacted, batch(t, plain(), record.Record{TimestampMs: now, Key: []byte("k"), Value: []byte("v")}, record.Record{TimestampMs: now, Value: []byte("v")}), invalidRecord, true},
		{"two days ahead", strict, batch(t, plain(), values(now+48*3600*1000, "late")...), invalidTimestamp, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := listOffset(c, test.topic, 0, latest).Offset
			beside := listOffset(c, topic, 1, latest).Offset
			resp := sluicetest.Ask[*kmsg.ProduceResponse](c, produceRequest(-1, part{test.topic, 0, test.records}, part{topic, 1, valid()}), 9)
			if len(resp.Topics) != 2 && len(resp.Topics) != 1 {
				t.Fatalf("%d topics", len(resp.Topics))
			}
			for _, answered := range resp.Topics {
				for _, p := range answered.Partitions {
					if answered.Topic == topic && p.Partition == 1 {
						if p.ErrorCode != none || p.BaseOffset != beside {
							t.Errorf("the good one: error %d, offset %d, want %d", p.ErrorCode, p.BaseOffset, beside)
						}
						continue
					}
					if p.ErrorCode != test.want || p.BaseOffset != -1 {
						t.Errorf("error %d, offset %d; want error %d", p.ErrorCode, p.BaseOffset, test.want)
					}
					if test.recordErrors {
						if len(p.ErrorRecords) != 1 || p.ErrorMessage == nil {
							t.Errorf("record errors %+v, message %v", p.ErrorRecords, p.ErrorMessage)
						} else if want := map[bool]int32{true: 1, false: 0}[test.topic == compacted]; p.ErrorRecords[0].RelativeOffset != want {
							t.Errorf("the error is of record %d, want %d", p.ErrorRecords[0].RelativeOffset, want)
						}
					}
				}
			}
			if after := listOffset(c, test.topic, 0, latest).Offset; after != before {
				t.Errorf("end offset %d, before %d", after, before)
			}
		})
	}
}

// TestV07_LogAppendTime: the broker's time is in the acknowledgement, in the batch, and what is stored has a valid CRC.
func TestV07_LogAppendTime(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	for _, codec := range []compress.Codec{compress.None, compress.Gzip} {
		stamped, created := fresh("v07-log"), fresh("v07-create")
		createTopic(t, c, stamped, 1, "message.timestamp.type", "LogAppendTime")
		createTopic(t, c, created, 1)
		o := plain()
		o.Codec = codec
		three := func() record.Batch {
			return batch(t, o, record.Record{TimestampMs: 1000, Value: []byte("a")}, record.Record{TimestampMs: 2000, Value: []byte("b")}, record.Record{TimestampMs: 3000, Value: []byte("c")})
		}
		before := time.Now().UnixMilli()
		acked := produce(c, stamped, 0, three())
		after := time.Now().UnixMilli()
		if acked.LogAppendTime < before-1 || acked.LogAppendTime > after+1 {
			t.Errorf("codec %v: log append time %d is not between %d and %d", codec, acked.LogAppendTime, before, after)
		}
		stored, _, err := record.Split(fetch(c, stamped, 0, 0).RecordBatches)
		if err != nil {
			t.Fatal(err)
		}
		if !stored.ValidCRC() || stored.TimestampType() != record.LogAppendTime || stored.MaxTimestamp() != acked.LogAppendTime || stored.Codec() != codec {
			t.Errorf("codec %v: CRC valid %v, timestamp type %v, max timestamp %d, codec %v", codec, stored.ValidCRC(), stored.TimestampType(), stored.MaxTimestamp(), stored.Codec())
		}
		if acked := produce(c, created, 0, three()); acked.LogAppendTime != -1 {
			t.Errorf("codec %v: CreateTime topic acknowledged with time %d", codec, acked.LogAppendTime)
		}
		kept, _, err := record.Split(fetch(c, created, 0, 0).RecordBatches)
		if err != nil || kept.TimestampType() != record.CreateTime || kept.MaxTimestamp() != 3000 || kept.BaseTimestamp() != 1000 {
			t.Errorf("codec %v: %v, timestamps %d to %d", codec, err, kept.BaseTimestamp(), kept.MaxTimestamp())
		}
	}
}

// TestV08_SizeLimits: the limit is on the batch as it was received, the topic's own, and changes without a restart.
func TestV08_SizeLimits(t *testing.T) {
	address := broker(t)
	c := sluicetest.Dial(t, address)
	topic := fresh("v08")
	createTopic(t, c, topic, 1, "max.message.bytes", "10000")
	now := time.Now().UnixMilli()
	large := batch(t, plain(), values(now, strings.Repeat("x", 20_000))...)
	var thirty []string
	for range 30 {
		thirty = append(thirty, strings.Repeat("y", 1024))
	}
	o := plain()
	o.Codec = compress.Gzip
	for _, test := range []struct {
		name    string
		records []byte
		want    int16
	}{
		{"one record of 20 KB", large, messageTooLarge},
		{"thirty of 1 KB", batch(t, plain(), values(now, thirty...)...), messageTooLarge},
		{"thirty of 1 KB, gzip", batch(t, o, values(now, thirty...)...), none},
	} {
		if got := produce(c, topic, 0, test.records); got.ErrorCode != test.want {
			t.Errorf("%s: error %d, want %d", test.name, got.ErrorCode, test.want)
		}
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	raised := "30000"
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	r.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "max.message.bytes", Op: kmsg.IncrementalAlterConfigOpSet, Value: &raised}}
	req.Resources = append(req.Resources, r)
	if got := sluicetest.Ask[*kmsg.IncrementalAlterConfigsResponse](c, req, 1).Resources[0].ErrorCode; got != none {
		t.Fatalf("alter: error %d", got)
	}
	sluicetest.Until(t, 5*time.Second, "the raised limit", func() bool { return produce(c, topic, 0, bytes.Clone(large)).ErrorCode == none })

	huge := sluicetest.Dial(t, address)
	if _, err := huge.Write([]byte{0x06, 0x40, 0x00, 0x01}); err != nil { // 104857601
		t.Fatal(err)
	}
	huge.WantClosed(5 * time.Second)
}

func initProducerID(c *sluicetest.Raw) (id int64, epoch int16) {
	resp := sluicetest.Ask[*kmsg.InitProducerIDResponse](c, kmsg.NewPtrInitProducerIDRequest(), 4)
	return resp.ProducerID, resp.ProducerEpoch
}

// TestV09_IdempotentWindow: the last five batches are known again and answered with their offsets; a gap is refused.
func TestV09_IdempotentWindow(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	topic := fresh("v09")
	createTopic(t, c, topic, 1)
	id, epoch := initProducerID(c)
	send := func(sequence int32) kmsg.ProduceResponseTopicPartition {
		o := plain()
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = record.ProducerID(id), record.ProducerEpoch(epoch), sequence
		return produce(c, topic, 0, batch(t, o, values(1000, "v")...))
	}
	for sequence := range int32(6) {
		if got := send(sequence); got.ErrorCode != none || got.BaseOffset != int64(sequence) {
			t.Fatalf("sequence %d: error %d, offset %d", sequence, got.ErrorCode, got.BaseOffset)
		}
	}
	for _, sequence := range []int32{3, 1, 5, 2, 4} {
		if got := send(sequence); got.ErrorCode != none || got.BaseOffset != int64(sequence) {
			t.Errorf("sequence %d again: error %d, offset %d", sequence, got.ErrorCode, got.BaseOffset)
		}
	}
	for _, sequence := range []int32{0, 7} {
		if got := send(sequence); got.ErrorCode != outOfOrderSequence {
			t.Errorf("sequence %d: error %d, want %d", sequence, got.ErrorCode, outOfOrderSequence)
		}
	}
	if got := send(6); got.ErrorCode != none || got.BaseOffset != 6 {
		t.Errorf("sequence 6: error %d, offset %d", got.ErrorCode, got.BaseOffset)
	}
	if end := listOffset(c, topic, 0, latest).Offset; end != 7 {
		t.Errorf("end offset %d, want 7", end)
	}
}

// TestV10_IdempotentAfterIdleOrDeletion: records may be deleted, the producer goes on; a new epoch begins at sequence 0, the old one is fenced.
func TestV10_IdempotentAfterIdleOrDeletion(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	topic := fresh("v10")
	createTopic(t, c, topic, 1)
	id, epoch := initProducerID(c)
	send := func(epoch int16, sequence int32, count int) kmsg.ProduceResponseTopicPartition {
		o := plain()
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = record.ProducerID(id), record.ProducerEpoch(epoch), sequence
		return produce(c, topic, 0, batch(t, o, values(1000, strings.Split(strings.Repeat("v", count), "")...)...))
	}
	if got := send(epoch, 0, 2); got.ErrorCode != none {
		t.Fatalf("error %d", got.ErrorCode)
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 10_000
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 0, Offset: -1}}}}
	if got := sluicetest.Ask[*kmsg.DeleteRecordsResponse](c, req, 2).Topics[0].Partitions[0]; got.ErrorCode != none || got.LowWatermark != 2 {
		t.Fatalf("delete records: error %d, low watermark %d", got.ErrorCode, got.LowWatermark)
	}
	if got := send(epoch, 2, 1); got.ErrorCode != none || got.BaseOffset != 2 {
		t.Errorf("after its records are gone: error %d, offset %d", got.ErrorCode, got.BaseOffset)
	}
	if got := send(epoch+1, 3, 1); got.ErrorCode != outOfOrderSequence {
		t.Errorf("a new epoch that begins at 3: error %d, want %d", got.ErrorCode, outOfOrderSequence)
	}
	if got := send(epoch+1, 0, 1); got.ErrorCode != none {
		t.Errorf("a new epoch: error %d", got.ErrorCode)
	}
	if got := send(epoch, 3, 1); got.ErrorCode != invalidProducerEpoch {
		t.Errorf("the old epoch: error %d, want %d", got.ErrorCode, invalidProducerEpoch)
	}
}

// TestV10_ExpiredProducer: when the broker has forgotten an idle producer, any first sequence is taken.
func TestV10_ExpiredProducer(t *testing.T) {
	p := own(t, "--set", "producer.id.expiration.ms=200", "--set", "producer.id.expiration.check.interval.ms=50")
	c := sluicetest.Dial(t, p.Address)
	topic := fresh("v10-idle")
	createTopic(t, c, topic, 1)
	id, epoch := initProducerID(c)
	send := func(sequence int32) kmsg.ProduceResponseTopicPartition {
		o := plain()
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = record.ProducerID(id), record.ProducerEpoch(epoch), sequence
		return produce(c, topic, 0, batch(t, o, values(1000, "v")...))
	}
	if got := send(0); got.ErrorCode != none {
		t.Fatalf("error %d", got.ErrorCode)
	}
	describe := kmsg.NewPtrDescribeProducersRequest()
	describe.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	sluicetest.Until(t, 10*time.Second, "the producer is forgotten", func() bool {
		return len(sluicetest.Ask[*kmsg.DescribeProducersResponse](c, describe, 0).Topics[0].Partitions[0].ActiveProducers) == 0
	})
	if got := send(7); got.ErrorCode != none || got.BaseOffset != 1 {
		t.Errorf("sequence 7 of a forgotten producer: error %d, offset %d", got.ErrorCode, got.BaseOffset)
	}
}
