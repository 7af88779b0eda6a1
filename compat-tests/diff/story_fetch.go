package diff

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func fetchStories() []Scenario {
	var list []Scenario
	for _, v := range testedVersions(kmsg.Fetch) {
		if v >= 7 {
			list = append(list, Scenario{Name: fmt.Sprintf("fetch/session v%d", v), Steps: func(r *Run) { fetchSession(r, v) }})
		}
		list = append(list, Scenario{Name: fmt.Sprintf("fetch/where and how much v%d", v), Steps: func(r *Run) { fetchLimits(r, v) }})
	}
	for _, v := range testedVersions(kmsg.ListOffsets) {
		list = append(list, Scenario{Name: fmt.Sprintf("offsets/times v%d", v), Steps: func(r *Run) { offsetsForTimes(r, v) }})
	}
	return list
}

// wanted is a partition in a fetch request.
type wanted struct {
	topic     string
	partition int32
	offset    int64
}

// fetchMany asks for several partitions in a session.
func fetchMany(s *side, session, epoch int32, partitions ...wanted) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.ReplicaState.ID = -1, -1
	req.MaxBytes, req.MinBytes, req.MaxWaitMillis = 1<<20, 1, 30
	req.SessionID, req.SessionEpoch = session, epoch
	for _, w := range partitions {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch, p.LastFetchedEpoch = w.partition, w.offset, 1<<20, -1, -1
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = w.topic, idOf(s, w.topic)
		if t.TopicID == ([16]byte{}) {
			t.TopicID = [16]byte{9} // nobody's: with none, Apache Kafka fails while it makes the answer
		}
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
	}
	return req
}

func forget(req *kmsg.FetchRequest, s *side, topic string, partitions ...int32) *kmsg.FetchRequest {
	f := kmsg.NewFetchRequestForgottenTopic()
	f.Topic, f.TopicID, f.Partitions = topic, idOf(s, topic), partitions
	req.ForgottenTopics = append(req.ForgottenTopics, f)
	return req
}

func fetchSession(r *Run, v int16) {
	t, u := r.name("t"), r.name("u")
	r.topic(t, 3)
	r.topic(u, 1)
	r.fill(t, 0, "a", "b")
	keep := func(s *side, resp *kmsg.FetchResponse) { s.keep("session", resp.SessionID) }
	session := func(s *side) int32 { return get[int32](s, "session") }
	in := func(step string, epoch int32, partitions ...wanted) {
		ask[*kmsg.FetchResponse](r, step, v, func(s *side) kmsg.Request { return fetchMany(s, session(s), epoch, partitions...) })
	}
	ask(r, "open", v, func(s *side) kmsg.Request {
		return fetchMany(s, 0, 0, wanted{t, 0, 0}, wanted{t, 1, 0}, wanted{u, 0, 0})
	}, keep)
	in("nothing new, partition 0 again", 1)
	in("moved on", 2, wanted{t, 0, 2})
	r.fill(t, 1, "c")
	r.fill(u, 0, "d", "e")
	in("new in two", 3)
	in("both moved on", 4, wanted{t, 1, 1}, wanted{u, 0, 2})
	in("one more added", 5, wanted{t, 2, 0})
	r.fill(t, 2, "f")
	in("new in the added", 6)
	ask[*kmsg.FetchResponse](r, "one forgotten", v, func(s *side) kmsg.Request { return forget(fetchMany(s, session(s), 7), s, t, 2) })
	r.fill(t, 2, "g")
	r.fill(t, 0, "h")
	in("of the forgotten nothing", 8)
	in("out of range", 9, wanted{t, 0, 99})
	in("out of range again", 10)
	in("in range again", 11, wanted{t, 0, 3})
	in("a partition that is not there", 12, wanted{t, 9, 0})
	in("still not there", 13)
	in("an unknown topic", 14, wanted{r.name("nobody"), 0, 0})
	in("an old epoch", 3)
	in("an epoch too high", 99)
	in("the right epoch after wrong ones", 15)
	ask[*kmsg.FetchResponse](r, "a session that nobody has", v, func(s *side) kmsg.Request { return fetchMany(s, 12345, 1) })
	ask[*kmsg.FetchResponse](r, "a session id and epoch 0", v, func(s *side) kmsg.Request { return fetchMany(s, session(s), 0, wanted{t, 0, 0}) }, keep)
	in("in the new session", 1)
	in("closed", -1)
	in("after it was closed", 2)
	ask[*kmsg.FetchResponse](r, "epoch -1 of no session", v, func(s *side) kmsg.Request { return fetchMany(s, 0, -1, wanted{t, 0, 0}) })
	ask[*kmsg.FetchResponse](r, "epoch 5 of no session", v, func(s *side) kmsg.Request { return fetchMany(s, 0, 5, wanted{t, 0, 0}) })
	ask(r, "an empty session", v, func(s *side) kmsg.Request { return fetchMany(s, 0, 0) }, keep)
	ask(r, "open for what is not there", v, func(s *side) kmsg.Request { return fetchMany(s, 0, 0, wanted{r.name("nobody"), 0, 0}, wanted{t, 0, 4}) }, keep)
	in("and again", 1)

	ask(r, "open for a topic that is deleted", v, func(s *side) kmsg.Request { return fetchMany(s, 0, 0, wanted{u, 0, 2}, wanted{t, 0, 4}) }, keep)
	deletion := kmsg.NewPtrDeleteTopicsRequest()
	deletion.TimeoutMillis, deletion.TopicNames = 10_000, []string{u}
	ask[*kmsg.DeleteTopicsResponse](r, "delete", 5, same(deletion))
	askSettled[*kmsg.MetadataResponse](r, "deleted", 9, same(metadata(false, u)))
	time.Sleep(50 * time.Millisecond) // Apache Kafka's replicas follow its metadata a moment later
	in("after the deletion", 1)
}

func fetchLimits(r *Run, v int16) {
	t := r.name("t")
	r.topic(t, 4)
	for range 3 {
		r.fill(t, 0, strings.Repeat("x", 1000))
		r.fill(t, 1, strings.Repeat("y", 1000))
	}
	for _, offset := range []int64{0, 1, 2, 3, 4, -1, -2, 1 << 40} {
		ask[*kmsg.FetchResponse](r, fmt.Sprintf("offset %d", offset), v, func(s *side) kmsg.Request { return fetch(t, idOf(s, t), 0, offset) })
	}
	for _, size := range []int32{0, 1, 100, 1061, 1073, 1074, 1075, 1076, 2200, 4000} {
		ask[*kmsg.FetchResponse](r, fmt.Sprintf("%d bytes of a partition", size), v, func(s *side) kmsg.Request {
			req := fetchMany(s, 0, -1, wanted{t, 0, 0}, wanted{t, 1, 0}, wanted{t, 2, 0})
			for i := range req.Topics {
				req.Topics[i].Partitions[0].PartitionMaxBytes = size
			}
			return req
		})
		ask[*kmsg.FetchResponse](r, fmt.Sprintf("%d bytes in all", size), v, func(s *side) kmsg.Request {
			req := fetchMany(s, 0, -1, wanted{t, 0, 0}, wanted{t, 1, 1}, wanted{t, 0, 2})
			req.MaxBytes = size
			return req
		})
	}
	for _, epoch := range []int32{-2, 0, 1, 7} {
		ask[*kmsg.FetchResponse](r, fmt.Sprintf("leader epoch %d", epoch), v, func(s *side) kmsg.Request {
			req := fetch(t, idOf(s, t), 0, 0)
			req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
			return req
		})
		ask[*kmsg.FetchResponse](r, fmt.Sprintf("last fetched epoch %d", epoch), v, func(s *side) kmsg.Request {
			req := fetch(t, idOf(s, t), 0, 0)
			req.Topics[0].Partitions[0].LastFetchedEpoch = epoch
			return req
		})
	}
	del := kmsg.NewPtrDeleteRecordsRequest()
	dt := kmsg.NewDeleteRecordsRequestTopic()
	dt.Topic = t
	dp := kmsg.NewDeleteRecordsRequestTopicPartition()
	dp.Offset = 2
	dt.Partitions = append(dt.Partitions, dp)
	del.Topics, del.TimeoutMillis = append(del.Topics, dt), 5000
	ask[*kmsg.DeleteRecordsResponse](r, "delete records", 2, same(del))
	for _, offset := range []int64{0, 1, 2, 3} {
		ask[*kmsg.FetchResponse](r, fmt.Sprintf("offset %d after deletion", offset), v, func(s *side) kmsg.Request { return fetch(t, idOf(s, t), 0, offset) })
	}
	for _, isolation := range []int8{0, 1} {
		for _, least := range []int32{0, 1, 3000, 5000} {
			ask[*kmsg.FetchResponse](r, fmt.Sprintf("isolation %d, at least %d bytes", isolation, least), v, func(s *side) kmsg.Request {
				req := fetchMany(s, 0, -1, wanted{t, 0, 2}, wanted{t, 1, 0})
				req.IsolationLevel, req.MinBytes = isolation, least
				return req
			})
		}
	}
	ask[*kmsg.FetchResponse](r, "some that are not there", v, func(s *side) kmsg.Request {
		return fetchMany(s, 0, -1, wanted{t, 3, 0}, wanted{t, 9, 0}, wanted{r.name("nobody"), 0, 0}, wanted{t, 1, 0})
	})
}

func offsetsForTimes(r *Run, v int16) {
	t := r.name("t")
	r.topic(t, 3)
	r.fill(t, 0, "a", "b", "c")
	r.fill(t, 0, "d", "e")
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = t
	for _, ms := range []int64{baseTime, baseTime + 1, baseTime + 2, baseTime + 3, baseTime - 1, 0, -1, -2, -3, -4, -5, -6, -7} {
		for _, epoch := range []int32{-1, 0, 1} {
			one := *req
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Timestamp, p.CurrentLeaderEpoch = ms, epoch
			asked := topic
			asked.Partitions = []kmsg.ListOffsetsRequestTopicPartition{p}
			p.Partition = 1
			asked.Partitions = append(asked.Partitions, p)
			p.Partition = 9
			asked.Partitions = append(asked.Partitions, p)
			one.Topics = []kmsg.ListOffsetsRequestTopic{asked}
			ask[*kmsg.ListOffsetsResponse](r, fmt.Sprintf("time %d, epoch %d", ms, epoch), v, same(&one))
		}
	}
}
