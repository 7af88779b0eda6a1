package diff

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/compress"
	"sluice/protocol/record"
)

// someVersions are those of an API at which its answers change shape, as far as both brokers serve them.
func someVersions(key kmsg.Key, wanted ...int16) []int16 {
	var list []int16
	for _, v := range testedVersions(key) {
		for _, w := range wanted {
			if v == w {
				list = append(list, v)
			}
		}
	}
	return list
}

func produceStories() []Scenario {
	var list []Scenario
	for _, v := range testedVersions(kmsg.Produce) {
		list = append(list, Scenario{Name: fmt.Sprintf("produce/idempotence v%d", v), Steps: func(r *Run) { idempotence(r, v) }})
	}
	for _, v := range someVersions(kmsg.Produce, 3, 7, 8, 10, 13) {
		list = append(list,
			Scenario{Name: fmt.Sprintf("produce/batch headers v%d", v), Steps: func(r *Run) { batchHeaders(r, v) }},
			Scenario{Name: fmt.Sprintf("produce/several partitions v%d", v), Steps: func(r *Run) { severalPartitions(r, v) }},
			Scenario{Name: fmt.Sprintf("produce/topic settings v%d", v), Steps: func(r *Run) { topicSettings(r, v) }})
	}
	list = append(list,
		Scenario{Name: "produce/acks 0", Steps: acksZero},
		Scenario{Name: "produce/compressed", Steps: compressed})
	return list
}

// write produces a batch into partition 0 of the topic "t", then compares where the partition ends.
func write(r *Run, step string, version int16, records func(s *side) []byte) {
	ask[*kmsg.ProduceResponse](r, step, version, func(s *side) kmsg.Request {
		return produce(r.name("t"), idOf(s, r.name("t")), -1, 0, records(s))
	})
	ask[*kmsg.ListOffsetsResponse](r, step+", then its end", 7, same(listOffsets(r.name("t"), -1, 0)))
}

func idempotence(r *Run, v int16) {
	r.topic(r.name("t"), 1)
	r.producerID("p")
	r.producerID("q")
	by := func(name string, epoch int16, sequence int32, values ...string) func(s *side) []byte {
		return func(s *side) []byte { return batch(from(get[int64](s, name), epoch, sequence), values...) }
	}
	write(r, "first", v, by("p", 0, 0, "a", "b"))
	write(r, "next", v, by("p", 0, 2, "c"))
	write(r, "the same again", v, by("p", 0, 2, "c"))
	write(r, "an older one again", v, by("p", 0, 0, "a", "b"))
	write(r, "a gap", v, by("p", 0, 9, "x"))
	write(r, "a part of an old one", v, by("p", 0, 1, "b"))
	for i := range int32(6) {
		write(r, fmt.Sprintf("one more, %d", i), v, by("p", 0, 3+i, "d"))
	}
	write(r, "one that is not remembered any more", v, by("p", 0, 2, "c"))
	write(r, "a new epoch not from 0", v, by("p", 1, 5, "x"))
	write(r, "a new epoch", v, by("p", 1, 0, "e"))
	write(r, "the old epoch", v, by("p", 0, 9, "x"))
	write(r, "a negative epoch", v, by("p", -1, 0, "x"))
	write(r, "a negative sequence", v, by("p", 1, -1, "x"))
	write(r, "another producer not from 0", v, by("q", 0, 7, "f"))
	write(r, "another producer goes on", v, by("q", 0, 8, "g"))
	write(r, "an id that nobody was given", v, func(*side) []byte { return batch(from(987_654_321, 0, 0), "h") })
	write(r, "the greatest sequence", v, func(*side) []byte { return batch(from(987_654_322, 0, 2147483647), "i") })
	write(r, "and then 0", v, func(*side) []byte { return batch(from(987_654_322, 0, 0), "j") })
	write(r, "a transactional batch without a transaction", v, func(s *side) []byte {
		o := from(get[int64](s, "q"), 0, 9)
		o.Transactional = true
		return batch(o, "k")
	})
	req := kmsg.NewPtrDescribeProducersRequest()
	t := kmsg.NewDescribeProducersRequestTopic()
	t.Topic, t.Partitions = r.name("t"), []int32{0}
	req.Topics = append(req.Topics, t)
	ask[*kmsg.DescribeProducersResponse](r, "who writes", 0, same(req))
	ask[*kmsg.FetchResponse](r, "all of it", 12, func(s *side) kmsg.Request { return fetch(r.name("t"), idOf(s, r.name("t")), 0, 0) })
}

// sealed gives a batch whose header was changed a CRC that is right again.
func sealed(b []byte) []byte {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// batchHeaders changes each field of a batch's header, with a right checksum and without.
func batchHeaders(r *Run, v int16) {
	r.topic(r.name("t"), 1)
	fields := []struct {
		name      string
		at, width int
	}{
		{"base offset", 0, 8}, {"length", 8, 4}, {"leader epoch", 12, 4}, {"magic", 16, 1}, {"crc", 17, 4}, {"attributes", 21, 2},
		{"last offset delta", 23, 4}, {"base timestamp", 27, 8}, {"max timestamp", 35, 8}, {"producer id", 43, 8},
		{"producer epoch", 51, 2}, {"base sequence", 53, 4}, {"count", 57, 4},
	}
	put := func(b []byte, at, width int, value int64) {
		for i := range width {
			b[at+width-1-i] = byte(value >> (8 * i))
		}
	}
	for _, f := range fields {
		for _, value := range []int64{-1, 0, 1, 2, 3, 4, 8, 16, 32, 64, 128, -128, 1 << 31, 1<<31 - 1} {
			if f.name == "attributes" && value&7 != 0 && value != 3 && value != 4 && value != 1 && value != 2 {
				continue
			}
			write(r, fmt.Sprintf("%s %d", f.name, value), v, func(*side) []byte {
				b := batch(plain(), "a", "b", "c")
				put(b, f.at, f.width, value)
				if f.name == "crc" {
					return b
				}
				return sealed(b)
			})
		}
	}
	two := func() []byte { return append(bytes.Clone(batch(plain(), "a")), batch(plain(), "b")...) }
	for _, c := range []struct {
		name    string
		records []byte
	}{
		{"two batches", two()},
		{"a batch and half of one", two()[:100]},
		{"60 bytes", batch(plain(), "a")[:60]},
		{"61 bytes", batch(plain(), "a")[:61]},
		{"a byte more", append(batch(plain(), "a"), 0)},
		{"11 bytes", make([]byte, 11)},
		{"12 bytes", make([]byte, 12)},
		{"17 bytes", make([]byte, 17)},
		{"100 zero bytes", make([]byte, 100)},
		{"an old message set", oldMessage(0)},
		{"an old message set with times", oldMessage(1)},
	} {
		write(r, c.name, v, func(*side) []byte { return c.records })
	}
	// Each byte of the records themselves, each in a partition of its own.
	whole := batch(plain(), "a", "bc")
	r.topic(r.name("bytes"), int32(2*(len(whole)-61)))
	partition := int32(0)
	for at := 61; at < len(whole); at++ {
		for _, change := range []byte{0x01, 0x80} {
			b := bytes.Clone(whole)
			b[at] ^= change
			ask[*kmsg.ProduceResponse](r, fmt.Sprintf("byte %d xor %d", at, change), v, func(s *side) kmsg.Request {
				return produce(r.name("bytes"), idOf(s, r.name("bytes")), -1, partition, sealed(b))
			})
			partition++
		}
	}
}

// oldMessage is a message of the formats before batches, with the key and value of one letter.
func oldMessage(magic byte) []byte {
	var body []byte
	body = append(body, magic, 0)
	if magic == 1 {
		body = binary.BigEndian.AppendUint64(body, uint64(baseTime))
	}
	body = append(body, 0, 0, 0, 1, 'k', 0, 0, 0, 1, 'v')
	message := binary.BigEndian.AppendUint64(nil, 0)
	message = binary.BigEndian.AppendUint32(message, uint32(len(body)+4))
	message = binary.BigEndian.AppendUint32(message, crc32.ChecksumIEEE(body))
	return append(message, body...)
}

// severalPartitions writes to good and bad partitions in one request.
func severalPartitions(r *Run, v int16) {
	r.topic(r.name("t"), 3)
	r.topic(r.name("u"), 1)
	build := func(acks int16) func(s *side) kmsg.Request {
		return func(s *side) kmsg.Request {
			req := produce(r.name("t"), idOf(s, r.name("t")), acks, 0, batch(plain(), "a"))
			add := func(topic int, partition int32, records []byte) {
				p := kmsg.NewProduceRequestTopicPartition()
				p.Partition, p.Records = partition, records
				req.Topics[topic].Partitions = append(req.Topics[topic].Partitions, p)
			}
			add(0, 2, []byte{})
			add(0, 1, batch(plain(), "b", "c"))
			add(0, 7, batch(plain(), "d"))
			another := kmsg.NewProduceRequestTopic()
			another.Topic, another.TopicID = r.name("nobody"), [16]byte{9}
			req.Topics = append(req.Topics, another)
			add(1, 0, batch(plain(), "e"))
			another.Topic, another.TopicID = r.name("u"), idOf(s, r.name("u"))
			req.Topics = append(req.Topics, another)
			add(2, 0, batch(plain(), "f"))
			return req
		}
	}
	for _, acks := range []int16{-1, 1} {
		ask[*kmsg.ProduceResponse](r, fmt.Sprintf("acks %d", acks), v, build(acks))
	}
	for p := range int32(3) {
		ask[*kmsg.ListOffsetsResponse](r, fmt.Sprintf("the end of %d", p), 7, same(listOffsets(r.name("t"), -1, p)))
	}
}

// topicSettings writes to topics whose configs refuse or change batches.
func topicSettings(r *Run, v int16) {
	at := func(timestamps ...int64) func(*side) []byte {
		return func(*side) []byte {
			b := record.NewBuilder(plain())
			for _, ms := range timestamps {
				b.Add(record.Record{TimestampMs: ms, Key: []byte("k"), Value: []byte("v")})
			}
			built, _ := b.Build()
			return built
		}
	}
	keyless := func(*side) []byte {
		b := record.NewBuilder(plain())
		b.Add(record.Record{TimestampMs: baseTime, Key: []byte("k"), Value: []byte("v")})
		b.Add(record.Record{TimestampMs: baseTime, Value: []byte("v")})
		b.Add(record.Record{TimestampMs: baseTime, Key: []byte{}, Value: nil})
		built, _ := b.Build()
		return built
	}
	for _, topic := range []struct {
		name    string
		configs []string
	}{
		{"plain", nil},
		{"compacted", []string{"cleanup.policy", "compact"}},
		{"both", []string{"cleanup.policy", "compact,delete"}},
		{"append time", []string{"message.timestamp.type", "LogAppendTime"}},
		{"short past", []string{"message.timestamp.before.max.ms", "1000"}},
		{"short future", []string{"message.timestamp.after.max.ms", "1000"}},
		{"small", []string{"max.message.bytes", "100"}},
		{"small segments", []string{"segment.bytes", "1048576", "max.message.bytes", "2000000"}},
		{"two replicas wanted", []string{"min.insync.replicas", "2"}},
		{"recompressed", []string{"compression.type", "gzip"}},
	} {
		part := *r
		part.prefix += topic.name[:1] + topic.name[len(topic.name)-1:] + "-"
		part.topic(part.name("t"), 1, topic.configs...)
		say := func(step string) string { return topic.name + ": " + step }
		if topic.name != "recompressed" { // the bytes of two compressors differ
			write(&part, say("keyless"), v, keyless)
			write(&part, say("old times"), v, at(baseTime, baseTime-1))
		}
		write(&part, say("time -1"), v, at(-1))
		write(&part, say("time -2"), v, at(-2, 5))
		write(&part, say("time 0"), v, at(0))
		write(&part, say("time in the year 2100"), v, at(4_102_444_800_000))
		write(&part, say("1.5 MB"), v, func(*side) []byte { return batch(plain(), string(bytes.Repeat([]byte("x"), 1_500_000))) })
		write(&part, say("900 kB"), v, func(*side) []byte { return batch(plain(), string(bytes.Repeat([]byte("x"), 900_000))) })
		if topic.name != "recompressed" {
			ask[*kmsg.FetchResponse](&part, say("all of it"), 12, func(s *side) kmsg.Request {
				return fetch(part.name("t"), idOf(s, part.name("t")), 0, 0)
			})
		}
		for _, special := range []int64{-3, 0, 1, baseTime} {
			ask[*kmsg.ListOffsetsResponse](&part, say(fmt.Sprintf("offset for time %d", special)), 7, same(listOffsets(part.name("t"), special, 0)))
		}
	}
}

// acksZero writes without wanting an answer: the next answer on the connection is the next request's, and a fault closes it.
func acksZero(r *Run) {
	r.topic(r.name("t"), 1)
	for _, c := range []struct {
		name      string
		topic     string
		partition int32
		records   []byte
	}{
		{"good", r.name("t"), 0, batch(plain(), "a")},
		{"no such partition", r.name("t"), 7, batch(plain(), "a")},
		{"no such topic", r.name("nobody"), 0, batch(plain(), "a")},
		{"corrupt", r.name("t"), 0, append(batch(plain(), "a")[:61], 0)},
		{"good again", r.name("t"), 0, batch(plain(), "b")},
	} {
		for _, v := range someVersions(kmsg.Produce, 3, 9, 12) {
			r.both(func(_ int, s *side) {
				req := produce(c.topic, idOf(s, c.topic), 0, c.partition, c.records)
				req.SetVersion(v)
				connection := s.conn(r.on)
				connection.send(appendFrame(req, 0), req.ResponseKind())
				connection.waiting = connection.waiting[:len(connection.waiting)-1]
			})
			ask[*kmsg.ListOffsetsResponse](r, fmt.Sprintf("after %s v%d", c.name, v), 7, same(listOffsets(r.name("t"), -1, 0)))
		}
	}
}

// compressed writes batches of every codec, and bytes that claim to be.
func compressed(r *Run) {
	r.topic(r.name("t"), 1)
	for _, v := range someVersions(kmsg.Produce, 3, 6, 7, 9, 13) {
		for codec := compress.Gzip; codec <= compress.Zstd; codec++ {
			good := func(*side) []byte {
				o := plain()
				o.Codec = codec
				return batch(o, "a", "b", "c")
			}
			write(r, fmt.Sprintf("codec %d v%d", codec, v), v, good)
			write(r, fmt.Sprintf("codec %d, garbled v%d", codec, v), v, func(s *side) []byte {
				b := good(s)
				for i := 61; i < len(b); i++ {
					b[i] ^= 0x55
				}
				return sealed(b)
			})
			write(r, fmt.Sprintf("codec %d, cut v%d", codec, v), v, func(s *side) []byte {
				b := good(s)
				b = b[:len(b)-3]
				binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
				return sealed(b)
			})
			write(r, fmt.Sprintf("codec %d, not compressed v%d", codec, v), v, func(*side) []byte {
				b := batch(plain(), "a")
				b[22] |= byte(codec)
				return sealed(b)
			})
		}
	}
	for _, v := range someVersions(kmsg.Fetch, 4, 9, 10, 12) {
		ask[*kmsg.FetchResponse](r, "all of it", v, func(s *side) kmsg.Request { return fetch(r.name("t"), idOf(s, r.name("t")), 0, 0) })
	}
}
