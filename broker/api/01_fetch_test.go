package api_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/protocol/uuid"
	"sluice/replication/partition"
)

// incremental is the next request of a session, which changes nothing unless told.
func incremental(session, epoch, maxWaitMs, minBytes int32) *kmsg.FetchRequest {
	q := fetchRequest(12, "", uuid.UUID{})
	q.SessionID, q.SessionEpoch, q.MaxWaitMillis, q.MinBytes = session, epoch, maxWaitMs, minBytes
	return q
}

// session begins one over partitions of a topic from offset 0.
func (c *client) session(topic string, offsets ...int64) int32 {
	c.w.t.Helper()
	q := fetchRequest(12, topic, uuid.UUID{}, offsets...)
	q.SessionEpoch = 0
	answer := ask[*kmsg.FetchResponse](c, q)
	if answer.ErrorCode != 0 || answer.SessionID == 0 {
		c.w.t.Fatalf("no session: %+v", answer)
	}
	return answer.SessionID
}

// V15: an empty incremental request waits like any other.
func TestV15_LongPollOfAnIdleSession(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 3)
		c, producer := w.dial(), w.dial()
		session := c.session("t", 0, 0, 0)
		epoch := int32(0)
		for range 20 {
			epoch++
			start := time.Now()
			answer := ask[*kmsg.FetchResponse](c, incremental(session, epoch, 500, 1))
			if waited := time.Since(start); waited != 500*time.Millisecond || len(answer.Topics) != 0 || answer.SessionID != session {
				w.t.Fatalf("an idle fetch took %v and has %d topics", waited, len(answer.Topics))
			}
		}
		// A write in the middle of a wait ends it at once.
		epoch++
		q := incremental(session, epoch, 500, 1)
		start := time.Now()
		c.send(q)
		time.Sleep(200 * time.Millisecond)
		producer.produce("t", nil, newBatch(w.t, "v"))
		answer := await[*kmsg.FetchResponse](c, q)
		if waited := time.Since(start); waited != 200*time.Millisecond {
			w.t.Errorf("woken after %v, want 200 ms", waited)
		}
		if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 || answer.Topics[0].Partitions[0].Partition != 1 ||
			answer.Topics[0].Partitions[0].HighWatermark != 1 || !slices.Equal(valuesOf(w.t, answer.Topics[0].Partitions[0].RecordBatches, 0), []string{"v"}) {
			w.t.Errorf("the answer has %+v", answer.Topics)
		}
		// Too few bytes: the whole time, and then what there is.
		kilobyte := strings.Repeat("x", 1000)
		producer.produce("t", newBatch(w.t, kilobyte))
		epoch++
		start = time.Now()
		answer = ask[*kmsg.FetchResponse](c, incremental(session, epoch, 500, 100_000))
		if waited := time.Since(start); waited != 500*time.Millisecond || len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 2 {
			w.t.Errorf("waited %v and got %d topics", waited, len(answer.Topics))
		}
		// Enough of them, in several steps.
		epoch++
		q = incremental(session, epoch, 5000, 5000)
		c.send(q)
		for range 8 {
			time.Sleep(100 * time.Millisecond)
			producer.produce("t", newBatch(w.t, kilobyte))
		}
		for _, p := range await[*kmsg.FetchResponse](c, q).Topics[0].Partitions {
			// One was there, four more make it 5000 bytes.
			if got := len(valuesOf(w.t, p.RecordBatches, 0)); p.Partition == 0 && got != 5 {
				w.t.Errorf("the answer came after %d records, want 5", got)
			}
		}
	})
}

func TestFetch_WaitEndsWithTheClientTheTopicAndTheLeader(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("gone", 1)
		w.create("moved", 1)
		first, second, third := w.dial(), w.dial(), w.dial()
		q, moved := fetchRequest(12, "gone", uuid.UUID{}, 0), fetchRequest(12, "moved", uuid.UUID{}, 0)
		q.MaxWaitMillis, moved.MaxWaitMillis = 1<<31-1, 1<<31-1
		moved.Topics[0].Partitions[0].CurrentLeaderEpoch = 0
		first.send(q)
		second.send(q)
		third.send(moved)
		synctest.Wait()
		if w.waiting.Len() != 3 {
			w.t.Fatalf("%d fetches wait, want 3", w.waiting.Len())
		}
		first.conn.Close()
		synctest.Wait()
		if w.waiting.Len() != 2 {
			w.t.Errorf("%d fetches wait after a client has gone, want 2", w.waiting.Len())
		}
		w.remove("gone")
		if p := await[*kmsg.FetchResponse](second, q).Topics[0].Partitions[0]; p.ErrorCode != kerr.UnknownTopicOrPartition.Code {
			w.t.Errorf("deleted topic: code %d", p.ErrorCode)
		}
		w.elect("moved", 0)
		if p := await[*kmsg.FetchResponse](third, moved).Topics[0].Partitions[0]; p.ErrorCode != kerr.FencedLeaderEpoch.Code {
			w.t.Errorf("new leader epoch: code %d", p.ErrorCode)
		}
	})
}

// V16: the first batch is whole whatever the limits; otherwise they hold, and everybody gets a turn.
func TestV16_ByteLimits(t *testing.T) {
	world(t, map[string]string{"fetch.max.bytes": "200000"}, func(w *partitionsWorld) {
		const partitions = 30
		w.create("t", partitions, "max.message.bytes", "2000000")
		c := w.dial()
		records := make([][]byte, partitions)
		for i := range records {
			records[i] = newBatch(w.t, strings.Repeat("s", 20_000))
		}
		records[0] = newBatch(w.t, strings.Repeat("b", 1_500_000))
		c.produce("t", records...)
		sizes := func(answer *kmsg.FetchResponse) map[int32]int {
			got := map[int32]int{}
			for _, p := range answer.Topics[0].Partitions {
				if len(p.RecordBatches) > 0 {
					got[p.Partition] = len(p.RecordBatches)
				}
			}
			return got
		}
		q := fetchRequest(12, "t", uuid.UUID{}, make([]int64, partitions)...)
		q.MaxBytes = 1024
		for i := range q.Topics[0].Partitions {
			q.Topics[0].Partitions[i].PartitionMaxBytes = 1024
		}
		if got := sizes(ask[*kmsg.FetchResponse](c, q)); !maps.Equal(got, map[int32]int{0: len(records[0])}) {
			w.t.Errorf("above both limits: %v, want the first batch of partition 0 alone", got)
		}
		// The request's limit, and the broker's, which is smaller.
		for i := range q.Topics[0].Partitions {
			q.Topics[0].Partitions[i].PartitionMaxBytes = 1 << 20
		}
		q.Topics[0].Partitions = q.Topics[0].Partitions[1:]
		for limit, want := range map[int32]int{50_000: 50_000, 10_000_000: 200_000} {
			q.MaxBytes = limit
			total := 0
			for _, size := range sizes(ask[*kmsg.FetchResponse](c, q)) {
				total += size
			}
			if total > want || total < want-len(records[1]) {
				w.t.Errorf("max_bytes %d: %d bytes of records, want nearly %d", limit, total, want)
			}
		}
		// In a session every partition gets its turn although the first ones could fill every answer.
		start := fetchRequest(12, "t", uuid.UUID{}, make([]int64, partitions)...)
		start.SessionEpoch, start.MaxBytes = 0, 1
		answer := ask[*kmsg.FetchResponse](c, start)
		seen := map[int32]bool{}
		for epoch := int32(1); epoch <= partitions+1; epoch++ {
			for index := range sizes(answer) {
				seen[index] = true
			}
			next := incremental(answer.SessionID, epoch, 0, 1)
			next.MaxBytes = 1
			answer = ask[*kmsg.FetchResponse](c, next)
		}
		if len(seen) != partitions { // the first answer does not move any
			w.t.Errorf("after %d answers %d partitions had a turn", partitions, len(seen))
		}
	})
}

// V17: the exact layout of empty and full answers in every version. ask compares each with what kmsg writes.
func TestV17_LayoutInEveryVersion(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		full, empty := w.create("full", 1), w.create("empty", 2)
		c := w.dial()
		c.produce("full", newBatch(w.t, "a", "b"))
		for version := int16(4); version <= 18; version++ {
			for _, isolation := range []int8{0, 1} {
				q := fetchRequest(version, "full", full, 1)
				q.IsolationLevel = isolation
				other := fetchRequest(version, "empty", empty, 0, 0)
				q.Topics = append(q.Topics, other.Topics...)
				answer := ask[*kmsg.FetchResponse](c, q)
				if len(answer.Topics) != 2 || len(answer.Topics[0].Partitions) != 1 || len(answer.Topics[1].Partitions) != 2 {
					w.t.Fatalf("version %d: %+v", version, answer)
				}
				p, none := answer.Topics[0].Partitions[0], answer.Topics[1].Partitions[1]
				if p.ErrorCode != 0 || p.HighWatermark != 2 || p.LastStableOffset != 2 || version >= 5 && p.LogStartOffset != 0 {
					w.t.Errorf("version %d: %+v", version, p)
				}
				if got := valuesOf(w.t, p.RecordBatches, 1); !slices.Equal(got, []string{"b"}) {
					w.t.Errorf("version %d: values %v", version, got)
				}
				if none.Partition != 1 || none.RecordBatches == nil || len(none.RecordBatches) != 0 {
					w.t.Errorf("version %d: no records are %v, want length 0", version, none.RecordBatches)
				}
				if (none.AbortedTransactions != nil) != (isolation == 1) {
					w.t.Errorf("version %d, isolation %d: aborted transactions %v", version, isolation, none.AbortedTransactions)
				}
				if version >= 11 && p.PreferredReadReplica != -1 {
					w.t.Errorf("version %d: preferred replica %d", version, p.PreferredReadReplica)
				}
			}
		}
		// The bytes, once by hand: throttle time, code, session, one topic, one partition.
		c.send(fetchRequest(11, "empty", empty, 0))
		body, err := c.receive(fetchRequest(11, "empty", empty, 0))
		want := []byte("\x00\x00\x00\x00" + "\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x01" + "\x00\x05empty" + "\x00\x00\x00\x01" +
			"\x00\x00\x00\x00" + "\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" +
			"\xff\xff\xff\xff" + "\xff\xff\xff\xff" + "\x00\x00\x00\x00")
		if err != nil || !bytes.Equal(body, want) {
			w.t.Errorf("version 11, empty:\n%x, want\n%x; %v", body, want, err)
		}
	})
}

// V19, the part of Fetch, ListOffsets and OffsetForLeaderEpoch.
func TestV19_LeaderEpochs(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		id := w.create("t", 1)
		c := w.dial()
		c.produce("t", newBatch(w.t, "a", "b"))
		w.elect("t", 0) // epoch 1
		c.produce("t", newBatch(w.t, "c"))
		w.elect("t", 0) // epoch 2
		for epoch, want := range map[int32]int16{1: kerr.FencedLeaderEpoch.Code, 2: 0, 3: kerr.UnknownLeaderEpoch.Code, -1: 0} {
			for _, version := range []int16{9, 12, 18} {
				q := fetchRequest(version, "t", id, 0)
				q.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
				answer := ask[*kmsg.FetchResponse](c, q)
				p := answer.Topics[0].Partitions[0]
				if p.ErrorCode != want {
					w.t.Errorf("fetch version %d with epoch %d: code %d, want %d", version, epoch, p.ErrorCode, want)
				}
				hinted := p.CurrentLeader.LeaderID == 1 && p.CurrentLeader.LeaderEpoch == 2 && len(answer.Brokers) == 1 && answer.Brokers[0].Port == 9092
				if hinted != (version >= 16 && want == kerr.FencedLeaderEpoch.Code) {
					w.t.Errorf("fetch version %d with epoch %d: leader %+v, brokers %+v", version, epoch, p.CurrentLeader, answer.Brokers)
				}
			}
			list := listOffsetsRequest(11, "t", 0, -1)
			list.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
			if p := ask[*kmsg.ListOffsetsResponse](c, list).Topics[0].Partitions[0]; p.ErrorCode != want || want == 0 && (p.LeaderEpoch != 2 || p.Offset != 3) {
				w.t.Errorf("list offsets with epoch %d: %+v, want code %d", epoch, p, want)
			}
			if p := c.endOfEpoch(4, epoch, 2); p.ErrorCode != want {
				w.t.Errorf("offset for leader epoch with epoch %d: %+v, want code %d", epoch, p, want)
			}
		}
		for _, test := range []struct {
			epoch, found int32
			end          int64
		}{{0, 0, 2}, {1, 1, 3}, {2, 2, 3}, {7, -1, -1}} {
			for version := int16(2); version <= 4; version++ {
				if p := c.endOfEpoch(version, -1, test.epoch); p.ErrorCode != 0 || p.LeaderEpoch != test.found || p.EndOffset != test.end {
					w.t.Errorf("version %d, end of epoch %d: %+v, want %d of epoch %d", version, test.epoch, p, test.end, test.found)
				}
			}
		}
		// A reader whose log has gone another way is told where the ways part.
		q := fetchRequest(12, "t", id, 3)
		q.Topics[0].Partitions[0].LastFetchedEpoch = 0
		if p := ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.DivergingEpoch.Epoch != 0 || p.DivergingEpoch.EndOffset != 2 || len(p.RecordBatches) != 0 {
			w.t.Errorf("diverging: %+v", p)
		}
		// Batches carry the epoch of their append.
		b := ask[*kmsg.FetchResponse](c, fetchRequest(12, "t", id, 2)).Topics[0].Partitions[0].RecordBatches
		if epoch := b[15]; epoch != 1 {
			w.t.Errorf("the batch at offset 2 has leader epoch %d, want 1", epoch)
		}
	})
}

func (c *client) endOfEpoch(version int16, current, epoch int32) kmsg.OffsetForLeaderEpochResponseTopicPartition {
	c.w.t.Helper()
	q := kmsg.NewPtrOffsetForLeaderEpochRequest()
	q.SetVersion(version)
	q.ReplicaID = -2
	q.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{{CurrentLeaderEpoch: current, LeaderEpoch: epoch}}}}
	return ask[*kmsg.OffsetForLeaderEpochResponse](c, q).Topics[0].Partitions[0]
}

func TestFetch_OffsetsOutOfRange(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 2)
		c := w.dial()
		c.produce("t", newBatch(w.t, "a", "b"), newBatch(w.t, "c"))
		for offset, want := range map[int64]int16{0: 0, 1: 0, 2: 0, 3: kerr.OffsetOutOfRange.Code, -1: kerr.OffsetOutOfRange.Code} {
			q := fetchRequest(12, "t", uuid.UUID{}, offset, 0)
			q.MinBytes, q.MaxWaitMillis = 1, 100
			answer := ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions
			if answer[0].ErrorCode != want || answer[1].ErrorCode != 0 || len(answer[1].RecordBatches) == 0 {
				w.t.Errorf("offset %d: codes %d and %d, want %d and 0", offset, answer[0].ErrorCode, answer[1].ErrorCode, want)
			}
		}
	})
}

// TestFetch_Sessions walks through what a client does with a session, over topic names and over topic ids.
func TestFetch_Sessions(t *testing.T) {
	for _, version := range []int16{7, 12, 13, 18} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			world(t, nil, func(w *partitionsWorld) {
				first, second := w.create("first", 2), w.create("second", 1)
				c := w.dial()
				q := fetchRequest(version, "first", first, 0, 0)
				q.SessionEpoch = 0
				q.Topics = append(q.Topics, fetchRequest(version, "second", second, 0).Topics...)
				missing := fetchRequest(version, "missing", uuid.UUID{1: 9}, 0).Topics
				q.Topics = append(q.Topics, missing...)
				describe := func(answer *kmsg.FetchResponse) (told []string) {
					names := map[uuid.UUID]string{first: "first", second: "second", {1: 9}: "missing"}
					for _, topic := range answer.Topics {
						name := topic.Topic
						if version >= 13 {
							name = names[topic.TopicID]
						}
						for _, p := range topic.Partitions {
							told = append(told, fmt.Sprintf("%s-%d:%d:%s", name, p.Partition, p.ErrorCode, strings.Join(valuesOf(w.t, p.RecordBatches, 0), "")))
						}
					}
					return told
				}
				expect := func(answer *kmsg.FetchResponse, want ...string) {
					w.t.Helper()
					if got := describe(answer); answer.ErrorCode != 0 || !slices.Equal(got, want) {
						w.t.Errorf("code %d, told %v, want %v", answer.ErrorCode, got, want)
					}
				}
				unknown := kerr.UnknownTopicOrPartition.Code
				if version >= 13 {
					unknown = kerr.UnknownTopicID.Code
				}
				missingTold := fmt.Sprintf("missing-0:%d:", unknown)
				answer := ask[*kmsg.FetchResponse](c, q)
				expect(answer, "first-0:0:", "first-1:0:", "second-0:0:", missingTold)
				next := func(epoch int32, topics ...kmsg.FetchRequestTopic) *kmsg.FetchRequest {
					q := fetchRequest(version, "", uuid.UUID{})
					q.SessionID, q.SessionEpoch, q.Topics = answer.SessionID, epoch, topics
					return q
				}
				expect(ask[*kmsg.FetchResponse](c, next(1)), missingTold)
				c.produce("first", nil, newBatch(w.t, "x"))
				expect(ask[*kmsg.FetchResponse](c, next(2)), "first-1:0:x", missingTold)
				// From the next offset on, and without the topic that is missing.
				forgetting := next(3, fetchRequest(version, "first", first, 0, 1).Topics...)
				forgetting.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "missing", TopicID: uuid.UUID{1: 9}, Partitions: []int32{0}}}
				expect(ask[*kmsg.FetchResponse](c, forgetting))
				// A topic is deleted under the session, and another of the same name comes.
				w.remove("second")
				expect(ask[*kmsg.FetchResponse](c, next(4)), fmt.Sprintf("second-0:%d:", kerr.UnknownTopicOrPartition.Code))
				w.create("second", 1)
				recreated := "second-0:0:"
				if version >= 13 {
					recreated = fmt.Sprintf("second-0:%d:", kerr.InconsistentTopicID.Code)
				}
				expect(ask[*kmsg.FetchResponse](c, next(5)), recreated)

				wrong := func(q *kmsg.FetchRequest, want *kerr.Error) {
					w.t.Helper()
					if got := ask[*kmsg.FetchResponse](c, q); got.ErrorCode != want.Code || len(got.Topics) != 0 || got.SessionID != 0 {
						w.t.Errorf("code %d, session %d, %d topics; want %v alone", got.ErrorCode, got.SessionID, len(got.Topics), want)
					}
				}
				wrong(next(5), kerr.InvalidFetchSessionEpoch)
				stranger := next(6)
				stranger.SessionID = 4242
				wrong(stranger, kerr.FetchSessionIDNotFound)
				other := next(6)
				other.SetVersion(map[int16]int16{7: 13, 12: 13, 13: 12, 18: 12}[version])
				wrong(other, kerr.FetchSessionTopicIDError)
				// The end of the session.
				last := fetchRequest(version, "first", first, 0)
				last.SessionID, last.SessionEpoch = answer.SessionID, -1
				if got := ask[*kmsg.FetchResponse](c, last); got.SessionID != 0 {
					w.t.Errorf("session %d after the final epoch", got.SessionID)
				}
				wrong(next(6), kerr.FetchSessionIDNotFound)
			})
		})
	}
}

// TestFetch_Transactions reads a log with an open, an aborted and a committed transaction, as one that was written by Apache Kafka may have.
func TestFetch_Transactions(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		id := w.create("t", 1)
		replica, err := w.set.Get("t", 0)
		if err != nil {
			w.t.Fatal(err)
		}
		append := func(b record.Batch, origin record.Origin) {
			w.t.Helper()
			if _, err := replica.Append(b, partition.AppendQuery{RequiredAcks: 1, LeaderEpoch: record.NoLeaderEpoch}, origin, nowMs()); err != nil {
				w.t.Fatal(err)
			}
		}
		write := func(producer int64, value string) {
			o := sequenced(producer, 0, 0)
			o.Transactional = true
			append(buildBatch(w.t, o, value), record.Client)
		}
		end := func(producer int64, commit bool) {
			append(endMarker(w.t, producer, commit), record.Coordinator)
		}
		write(1, "aborted")
		write(2, "committed")
		end(1, false)
		end(2, true)
		write(3, "open")
		c := w.dial()
		for _, version := range []int16{4, 11, 12, 18} {
			q := fetchRequest(version, "t", id, 0)
			p := ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions[0]
			if p.HighWatermark != 5 || p.LastStableOffset != 4 || p.AbortedTransactions != nil || !slices.Contains(valuesOf(w.t, p.RecordBatches, 0), "open") {
				w.t.Errorf("version %d, read_uncommitted: %+v", version, p)
			}
			q.IsolationLevel = 1
			p = ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions[0]
			if p.HighWatermark != 5 || p.LastStableOffset != 4 || len(p.AbortedTransactions) != 1 || p.AbortedTransactions[0].ProducerID != 1 ||
				p.AbortedTransactions[0].FirstOffset != 0 || slices.Contains(valuesOf(w.t, p.RecordBatches, 0), "open") {
				w.t.Errorf("version %d, read_committed: %+v", version, p)
			}
		}
		list := listOffsetsRequest(7, "t", 0, -1)
		list.IsolationLevel = 1
		if p := ask[*kmsg.ListOffsetsResponse](c, list).Topics[0].Partitions[0]; p.Offset != 4 {
			w.t.Errorf("the latest offset for read_committed is %d, want 4", p.Offset)
		}
		// A reader of what is committed waits for the end of the transaction.
		waiting := fetchRequest(12, "t", id, 4)
		waiting.IsolationLevel, waiting.MaxWaitMillis = 1, 10_000
		start := time.Now()
		c.send(waiting)
		synctest.Wait()
		end(3, true)
		if p := await[*kmsg.FetchResponse](c, waiting).Topics[0].Partitions[0]; p.LastStableOffset != 6 || time.Since(start) != 0 {
			w.t.Errorf("after %v: %+v", time.Since(start), p)
		}
	})
}

// TestFetch_OfAnOldRequestOfASession: the session has gone on over another connection while a fetch waits.
func TestFetch_OfAnOldRequestOfASession(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 1)
		c, other := w.dial(), w.dial()
		session := c.session("t", 0)
		old := incremental(session, 1, 1000, 1)
		c.send(old)
		synctest.Wait()
		ask[*kmsg.FetchResponse](other, incremental(session, 2, 0, 1))
		answer := await[*kmsg.FetchResponse](c, old)
		if answer.ErrorCode != kerr.InvalidFetchSessionEpoch.Code || answer.SessionID != session {
			w.t.Errorf("code %d, session %d", answer.ErrorCode, answer.SessionID)
		}
	})
}

// V03 a: an answer that takes long holds back the ones after it, and no request.
func TestFetch_AnswersInOrderOnOneConnection(t *testing.T) {
	world(t, nil, func(w *partitionsWorld) {
		w.create("t", 1)
		c := w.dial()
		slow := fetchRequest(12, "t", uuid.UUID{}, 0)
		slow.MaxWaitMillis = 3000
		list := listOffsetsRequest(5, "t", 0, -2)
		start := time.Now()
		c.sendAll(slow, list)
		if answer := await[*kmsg.FetchResponse](c, slow); len(answer.Topics) != 1 {
			w.t.Errorf("%+v", answer)
		}
		if waited := time.Since(start); waited != 3*time.Second {
			w.t.Errorf("answered after %v", waited)
		}
		await[*kmsg.ListOffsetsResponse](c, list)
	})
}

// endMarker is what a transaction coordinator writes at the end of a transaction.
func endMarker(t testing.TB, producer int64, commit bool) record.Batch {
	t.Helper()
	o := sequenced(producer, 0, record.NoSequence).BuilderOptions
	o.Transactional, o.Control = true, true
	b, err := record.NewBuilder(o).Add(record.ControlRecord(record.EndTxnMarker{Commit: commit}, nowMs())).Build()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// remove deletes a topic.
func (w *partitionsWorld) remove(name string) {
	w.t.Helper()
	w.apply(&logrecord.RemoveTopicRecord{TopicID: w.topicIDs[name]})
}
