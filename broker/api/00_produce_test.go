package api_test

import (
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/compress"
	"sluice/protocol/record"
)

// restamp computes the CRC of a batch anew after a test has changed it.
func restamp(b record.Batch) record.Batch {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// V06: what a broker must refuse, and that it harms nothing beside it.
func TestV06_BatchesThatMustBeRefused(t *testing.T) {
	edit := func(change func(b record.Batch)) func(t *testing.T) []byte {
		return func(t *testing.T) []byte {
			b := newBatch(t, "a", "b")
			change(b)
			return restamp(b)
		}
	}
	for _, test := range []struct {
		name    string
		configs []string
		records func(t *testing.T) []byte
		want    *kerr.Error
		indexes []int32 // of the records that are told
	}{
		{name: "flipped payload byte", records: func(t *testing.T) []byte { b := newBatch(t, "a"); b[len(b)-1] ^= 1; return b }, want: kerr.CorruptMessage},
		{name: "base offset 5", records: edit(func(b record.Batch) { b.SetBaseOffset(5) }), want: kerr.InvalidRecord},
		{name: "count 0", records: edit(func(b record.Batch) { binary.BigEndian.PutUint32(b[57:], 0) }), want: kerr.InvalidRecord},
		{name: "count -1", records: edit(func(b record.Batch) { binary.BigEndian.PutUint32(b[57:], 1<<32-1) }), want: kerr.InvalidRecord},
		{name: "last offset delta", records: edit(func(b record.Batch) { binary.BigEndian.PutUint32(b[23:], 5) }), want: kerr.InvalidRecord},
		{name: "more records declared than there are", records: edit(func(b record.Batch) {
			binary.BigEndian.PutUint32(b[57:], 3)
			binary.BigEndian.PutUint32(b[23:], 2)
		}), want: kerr.InvalidRecord},
		{name: "fewer records declared than there are", records: edit(func(b record.Batch) {
			binary.BigEndian.PutUint32(b[57:], 1)
			binary.BigEndian.PutUint32(b[23:], 0)
		}), want: kerr.InvalidRecord},
		{name: "two batches", records: func(t *testing.T) []byte { return append(newBatch(t, "a"), newBatch(t, "b")...) }, want: kerr.InvalidRecord},
		{name: "no records", records: func(*testing.T) []byte { return []byte{} }, want: kerr.InvalidRecord},
		{name: "control batch", records: edit(func(b record.Batch) { b[22] |= 0x20 }), want: kerr.InvalidRecord},
		{name: "producer id without sequence", records: func(t *testing.T) []byte {
			o := sequenced(7, 0, record.NoSequence)
			return buildBatch(t, o, "a")
		}, want: kerr.InvalidRecord},
		{name: "no key in a compacted topic", configs: []string{"cleanup.policy", "compact"}, records: func(t *testing.T) []byte {
			return newBatch(t, "a=1", "=2", "b=3", "=4")
		}, want: kerr.InvalidRecord, indexes: []int32{1, 3}},
		{name: "too far ahead", configs: []string{"message.timestamp.after.max.ms", "3600000"}, records: func(t *testing.T) []byte {
			o := plainOptions()
			o.timestamps = []int64{nowMs(), nowMs() + 2*86_400_000}
			return buildBatch(t, o, "a", "b")
		}, want: kerr.InvalidTimestamp, indexes: []int32{1}},
		{name: "format 1", records: func(*testing.T) []byte {
			b := make([]byte, 40)
			binary.BigEndian.PutUint32(b[8:], 28)
			b[16] = 1
			return b
		}, want: kerr.InvalidRecord},
	} {
		t.Run(test.name, func(t *testing.T) {
			world(t, nil, func(w *partitionsWorld) {
				w.create("t", 3, test.configs...)
				c := w.dial()
				good := func() []byte { return newBatch(w.t, "k=good") }
				answer := ask[*kmsg.ProduceResponse](c, produceRequest(9, -1, "t", good(), test.records(t), good()))
				for i, p := range answer.Topics[0].Partitions {
					if i != 1 && (p.ErrorCode != 0 || p.BaseOffset != 0) {
						t.Errorf("good partition %d: code %d, offset %d", i, p.ErrorCode, p.BaseOffset)
					}
				}
				bad := answer.Topics[0].Partitions[1]
				if bad.ErrorCode != test.want.Code || bad.BaseOffset != -1 || bad.LogAppendTime != -1 {
					t.Errorf("code %d (%v), offset %d; want %v", bad.ErrorCode, kerr.ErrorForCode(bad.ErrorCode), bad.BaseOffset, test.want)
				}
				var indexes []int32
				for _, e := range bad.ErrorRecords {
					indexes = append(indexes, e.RelativeOffset)
					if e.ErrorMessage == nil || *e.ErrorMessage == "" {
						t.Error("a record without its error message")
					}
				}
				if len(indexes) != len(test.indexes) {
					t.Fatalf("records %v told, want %v", indexes, test.indexes)
				}
				for i := range indexes {
					if indexes[i] != test.indexes[i] {
						t.Fatalf("records %v told, want %v", indexes, test.indexes)
					}
				}
				if (bad.ErrorMessage != nil) != (len(indexes) > 0) {
					t.Errorf("message %v", bad.ErrorMessage)
				}
				if end := c.latest("t", 1); end != 0 {
					t.Errorf("the log ends at %d, want 0", end)
				}
			})
		})
	}
}

// latest is the end of a partition as consumers see it.
func (c *client) latest(topic string, index int32) int64 {
	c.w.t.Helper()
	return c.listOffset(11, topic, index, -1).Offset
}

func (c *client) listOffset(version int16, topic string, index int32, timestamp int64) kmsg.ListOffsetsResponseTopicPartition {
	c.w.t.Helper()
	return ask[*kmsg.ListOffsetsResponse](c, listOffsetsRequest(version, topic, index, timestamp)).Topics[0].Partitions[0]
}

func listOffsetsRequest(version int16, topic string, index int32, timestamp int64) *kmsg.ListOffsetsRequest {
	q := kmsg.NewPtrListOffsetsRequest()
	q.SetVersion(version)
	q.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = index, timestamp, -1
	t.Partitions = append(t.Partitions, p)
	q.Topics = append(q.Topics, t)
	return q
}

// V07: with LogAppendTime the broker's time shows in the acknowledgement, the batch and every record.
func TestV07_LogAppendTime(t *testing.T) {
	for _, codec := range []compress.Codec{compress.None, compress.Gzip} {
		world(t, nil, func(w *partitionsWorld) {
			w.create("stamped", 1, "message.timestamp.type", "LogAppendTime")
			w.create("client", 1)
			c := w.dial()
			options := plainOptions()
			options.Codec, options.timestamps = codec, []int64{1000, 2000, 3000}
			for topic, want := range map[string][]int64{"stamped": {nowMs(), nowMs(), nowMs()}, "client": {1000, 2000, 3000}} {
				p := c.produce(topic, buildBatch(w.t, options, "a", "b", "c"))
				wantAck := int64(-1)
				if topic == "stamped" {
					wantAck = nowMs()
				}
				if p.ErrorCode != 0 || p.LogAppendTime != wantAck {
					w.t.Errorf("%s: code %d, log append time %d, want %d", topic, p.ErrorCode, p.LogAppendTime, wantAck)
				}
				fetched := ask[*kmsg.FetchResponse](c, fetchRequest(12, topic, w.topicIDs[topic], 0)).Topics[0].Partitions[0].RecordBatches
				b, _, err := record.Split(fetched)
				if err != nil || !b.ValidCRC() || b.MaxTimestamp() != want[2] || (b.TimestampType() == record.LogAppendTime) != (topic == "stamped") {
					w.t.Errorf("%s: batch with %v, maximum timestamp %d, CRC good %v, %v", topic, b.TimestampType(), b.MaxTimestamp(), b.ValidCRC(), err)
				}
				i := 0
				for r := range b.Records(0) {
					if r.TimestampMs != want[i] {
						w.t.Errorf("%s: record %d has time %d, want %d", topic, i, r.TimestampMs, want[i])
					}
					i++
				}
			}
		})
	}
}

// V08: the size limit is the topic's, on the batch as received, and changes while it runs.
func TestV08_SizeLimits(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 2, "max.message.bytes", "10000")
		c := w.dial()
		kilobyte := string(make([]byte, 1000))
		values := make([]string, 30)
		for i := range values {
			values[i] = kilobyte
		}
		big, many := newBatch(w.t, string(make([]byte, 20_000))), newBatch(w.t, values...)
		packed := plainOptions()
		packed.Codec = compress.Gzip
		for _, refused := range []record.Batch{big, many} {
			answer := ask[*kmsg.ProduceResponse](c, produceRequest(9, -1, "t", refused, newBatch(w.t, "k=v"))).Topics[0].Partitions
			if answer[0].ErrorCode != kerr.MessageTooLarge.Code || answer[1].ErrorCode != 0 {
				w.t.Errorf("codes %d and %d, want MESSAGE_TOO_LARGE and none", answer[0].ErrorCode, answer[1].ErrorCode)
			}
		}
		if p := c.produce("t", buildBatch(w.t, packed, values...)); p.ErrorCode != 0 {
			w.t.Errorf("compressed: code %d", p.ErrorCode)
		}
		w.configure("t", "max.message.bytes", "1000000")
		for _, taken := range []record.Batch{big, many} {
			if p := c.produce("t", taken); p.ErrorCode != 0 {
				w.t.Errorf("under the new limit: code %d", p.ErrorCode)
			}
		}
	})
}

// V09: the last five batches of a producer are known again when they are sent again.
func TestV09_RetriedBatches(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 1)
		c := w.dial()
		init := kmsg.NewPtrInitProducerIDRequest()
		init.SetVersion(4)
		init.ProducerID, init.ProducerEpoch = -1, -1
		id := ask[*kmsg.InitProducerIDResponse](c, init)
		if id.ErrorCode != 0 || id.ProducerEpoch != 0 {
			w.t.Fatalf("%+v", id)
		}
		send := func(sequence int32, wantCode int16, wantOffset int64) {
			w.t.Helper()
			p := c.produce("t", buildBatch(w.t, sequenced(id.ProducerID, 0, sequence), "v"))
			if p.ErrorCode != wantCode || p.BaseOffset != wantOffset {
				w.t.Errorf("sequence %d: code %d, offset %d; want %d, %d", sequence, p.ErrorCode, p.BaseOffset, wantCode, wantOffset)
			}
		}
		for sequence := range int32(6) {
			send(sequence, 0, int64(sequence))
		}
		for _, sequence := range []int32{3, 1, 5, 2, 4} {
			send(sequence, 0, int64(sequence))
		}
		outOfOrder := kerr.OutOfOrderSequenceNumber.Code
		send(0, outOfOrder, -1)
		send(7, outOfOrder, -1)
		send(6, 0, 6)
		if end := c.latest("t", 0); end != 7 {
			w.t.Errorf("the log ends at %d, want 7", end)
		}
		// Several in flight are judged in the order of their arrival.
		var inFlight []kmsg.Request
		for sequence := int32(7); sequence < 12; sequence++ {
			inFlight = append(inFlight, produceRequest(9, -1, "t", buildBatch(w.t, sequenced(id.ProducerID, 0, sequence), "v")))
		}
		c.sendAll(inFlight...)
		for i, q := range inFlight {
			p := await[*kmsg.ProduceResponse](c, q).Topics[0].Partitions[0]
			if p.ErrorCode != 0 || p.BaseOffset != int64(7+i) {
				w.t.Errorf("in flight: code %d, offset %d", p.ErrorCode, p.BaseOffset)
			}
		}
		w.restart()
		c = w.dial()
		send(11, 0, 11)
		send(13, outOfOrder, -1)
		send(12, 0, 12)
	})
}

// V10: a producer whose state or records are gone, and one that comes back with another epoch.
func TestV10_IdleProducersAndDeletedRecords(t *testing.T) {
	world(t, map[string]string{"producer.id.expiration.ms": "10000"}, func(w *partitionsWorld) {
		w.create("t", 1)
		c := w.dial()
		send := func(id int64, epoch int16, sequence int32, want *kerr.Error) {
			w.t.Helper()
			wantCode := int16(0)
			if want != nil {
				wantCode = want.Code
			}
			if p := c.produce("t", buildBatch(w.t, sequenced(id, epoch, sequence), "v")); p.ErrorCode != wantCode {
				w.t.Errorf("producer %d epoch %d sequence %d: code %d, want %v", id, epoch, sequence, p.ErrorCode, want)
			}
		}
		// (a) idle for longer than its state is kept
		send(1, 0, 0, nil)
		send(1, 0, 1, nil)
		w.pass(11 * time.Second)
		send(1, 0, 2, nil)
		// (b) its records are deleted
		send(2, 0, 0, nil)
		send(2, 0, 1, nil)
		remove := kmsg.NewPtrDeleteRecordsRequest()
		remove.SetVersion(2)
		remove.TimeoutMillis = 1000
		topic := kmsg.NewDeleteRecordsRequestTopic()
		topic.Topic = "t"
		topic.Partitions = []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 0, Offset: -1}}
		remove.Topics = append(remove.Topics, topic)
		if p := ask[*kmsg.DeleteRecordsResponse](c, remove).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.LowWatermark != 5 {
			w.t.Errorf("delete records: %+v", p)
		}
		send(2, 0, 2, nil)
		// (c) a new epoch begins with 0
		send(2, 1, 3, kerr.OutOfOrderSequenceNumber)
		send(2, 1, 0, nil)
		// (d) the old epoch is fenced
		send(2, 0, 3, kerr.InvalidProducerEpoch)

		describe := kmsg.NewPtrDescribeProducersRequest()
		describe.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "t", Partitions: []int32{0, 9}}, {Topic: "nothing", Partitions: []int32{0}}}
		described := ask[*kmsg.DescribeProducersResponse](c, describe)
		if p := described.Topics[0].Partitions[1]; p.ErrorCode != kerr.UnknownTopicOrPartition.Code {
			w.t.Errorf("partition 9: code %d", p.ErrorCode)
		}
		if p := described.Topics[1].Partitions[0]; p.ErrorCode != kerr.UnknownTopicOrPartition.Code || p.ErrorMessage == nil {
			w.t.Errorf("topic that is not there: code %d, %v", p.ErrorCode, p.ErrorMessage)
		}
		active := described.Topics[0].Partitions[0].ActiveProducers
		if len(active) != 2 || active[1].ProducerID != 2 || active[1].ProducerEpoch != 1 || active[1].LastSequence != 0 || active[1].CurrentTxnStartOffset != -1 {
			w.t.Errorf("active producers: %+v", active)
		}
	})
}

func TestProduce_Acks(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 1)
		c := w.dial()
		for _, acks := range []int16{2, -2, 100} {
			p := ask[*kmsg.ProduceResponse](c, produceRequest(9, acks, "t", newBatch(w.t, "v"))).Topics[0].Partitions[0]
			if p.ErrorCode != kerr.InvalidRequiredAcks.Code || p.BaseOffset != -1 {
				w.t.Errorf("acks %d: %+v", acks, p)
			}
		}
		// acks=0 has no answer; what follows it does.
		c.send(produceRequest(9, 0, "t", newBatch(w.t, "v")))
		if end := c.latest("t", 0); end != 1 {
			w.t.Errorf("the log ends at %d, want 1", end)
		}
		// V03 c: and an error with acks=0 closes the connection.
		c.send(produceRequest(9, 0, "nothing", newBatch(w.t, "v")))
		if !c.closed() {
			w.t.Error("the connection is open")
		}
	})
}

// TestProduce_EveryVersion checks names and ids, and that each version can be decoded by its schema.
func TestProduce_EveryVersion(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		id := w.create("t", 1)
		c := w.dial()
		for version := int16(3); version <= 13; version++ {
			q := produceRequest(version, -1, "t", newBatch(w.t, "v"))
			q.Topics[0].TopicID = id
			answer := ask[*kmsg.ProduceResponse](c, q)
			p := answer.Topics[0].Partitions[0]
			if p.ErrorCode != 0 || p.BaseOffset != int64(version-3) || p.LogAppendTime != -1 {
				w.t.Errorf("version %d: %+v", version, p)
			}
		}
		unknown := produceRequest(13, -1, "", newBatch(w.t, "v"))
		unknown.Topics[0].TopicID = [16]byte{9}
		if p := ask[*kmsg.ProduceResponse](c, unknown).Topics[0].Partitions[0]; p.ErrorCode != kerr.UnknownTopicID.Code {
			w.t.Errorf("unknown topic id: code %d", p.ErrorCode)
		}
		for topic, want := range map[string]int16{"nothing": kerr.UnknownTopicOrPartition.Code, "__consumer_offsets": kerr.UnknownTopicOrPartition.Code} {
			if p := c.produce(topic, newBatch(w.t, "v")); p.ErrorCode != want {
				w.t.Errorf("%s: code %d, want %d", topic, p.ErrorCode, want)
			}
		}
		w.create("__consumer_offsets", 1)
		if p := c.produce("__consumer_offsets", newBatch(w.t, "v")); p.ErrorCode != kerr.InvalidTopicException.Code {
			w.t.Errorf("internal topic: code %d", p.ErrorCode)
		}
		zstd := plainOptions()
		zstd.Codec = compress.Zstd
		for version, want := range map[int16]int16{6: kerr.UnsupportedCompressionType.Code, 7: 0} {
			if p := ask[*kmsg.ProduceResponse](c, produceRequest(version, -1, "t", buildBatch(w.t, zstd, "v"))).Topics[0].Partitions[0]; p.ErrorCode != want {
				w.t.Errorf("zstd in version %d: code %d, want %d", version, p.ErrorCode, want)
			}
		}
	})
}

// TestProduce_Transactional: nobody has begun a transaction here, so no producer id belongs to a transactional id.
func TestProduce_Transactional(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 2)
		c := w.dial()
		options := sequenced(5, 0, 0)
		options.Transactional = true
		q := produceRequest(9, -1, "t", buildBatch(w.t, options, "v"), newBatch(w.t, "v"))
		for i, p := range ask[*kmsg.ProduceResponse](c, q).Topics[0].Partitions {
			if p.ErrorCode != kerr.TransactionalIDAuthorizationFailed.Code {
				w.t.Errorf("without a transactional id, partition %d: code %d", i, p.ErrorCode)
			}
		}
	})
}

// TestInitProducerID_Blocks draws more ids than a block has: none twice, none missing.
func TestInitProducerID_Blocks(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		c := w.dial()
		q := kmsg.NewPtrInitProducerIDRequest()
		q.SetVersion(4)
		for want := range int64(2100) {
			got := ask[*kmsg.InitProducerIDResponse](c, q)
			if got.ErrorCode != 0 || got.ProducerID != want || got.ProducerEpoch != 0 {
				w.t.Fatalf("%+v, want producer id %d", got, want)
			}
		}
		q.ProducerID = 5 // without its epoch
		if got := ask[*kmsg.InitProducerIDResponse](c, q); got.ErrorCode != kerr.InvalidRequest.Code {
			w.t.Errorf("%+v", got)
		}
	})
}

// TestProduce_NamedTwice: of a partition that is named twice the last records count, in the place of the first; a topic without partitions is not answered.
func TestProduce_NamedTwice(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 2)
		c := w.dial()
		q := produceRequest(9, -1, "t", newBatch(w.t, "lost"), newBatch(w.t, "b"))
		again := produceRequest(9, -1, "t", newBatch(w.t, "a", "a"))
		q.Topics = append(q.Topics, kmsg.ProduceRequestTopic{Topic: "t"}, again.Topics[0])
		answer := ask[*kmsg.ProduceResponse](c, q)
		if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 2 {
			w.t.Fatalf("%+v", answer.Topics)
		}
		next := ask[*kmsg.ProduceResponse](c, produceRequest(9, -1, "t", newBatch(w.t, "x"), newBatch(w.t, "x"))).Topics[0].Partitions
		if next[0].BaseOffset != 2 || next[1].BaseOffset != 1 {
			w.t.Errorf("the next offsets are %d and %d, want 2 and 1", next[0].BaseOffset, next[1].BaseOffset)
		}
	})
}

// TestProduce_CorruptInOne: a batch whose length or magic is impossible fails the whole request, with the reason.
func TestProduce_CorruptInOne(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 2)
		broken := newBatch(w.t, "v")
		broken[16] = 9
		q := produceRequest(9, -1, "t", newBatch(w.t, "v"), broken)
		for _, p := range ask[*kmsg.ProduceResponse](w.dial(), q).Topics[0].Partitions {
			if p.ErrorCode != kerr.CorruptMessage.Code || p.ErrorMessage == nil || *p.ErrorMessage != "Invalid magic found in record: 9" {
				w.t.Errorf("%+v", p)
			}
		}
	})
}
