package api

import (
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/fetchsession"
	"sluice/broker/server"
	"sluice/replication/partition"
	"sluice/storage/partlog"
)

// This file writes the body of a Fetch answer. It does by hand what kmsg does for every other answer, as records are not to be copied
// into the body: they are file ranges between pieces of it. A test holds it against kmsg for every version.

// sessionError is the answer to a request whose session is not there, or not as it thinks.
func (f *fetchCall) sessionError(err error, sessionID int32) Reply {
	response := kmsg.NewPtrFetchResponse()
	response.ErrorCode = code(err)
	response.SessionID = sessionID
	return Respond(response)
}

// refuse is the answer to a request that makes no sense as a whole. It leaves the session alone.
func (f *fetchCall) refuse(err *kerr.Error) Reply {
	response := kmsg.NewPtrFetchResponse()
	response.ErrorCode, response.SessionID = err.Code, f.request.SessionID
	if f.context.Version >= 13 {
		return Respond(response) // nothing that names topics by their names
	}
	response.Topics = make([]kmsg.FetchResponseTopic, len(f.request.Topics))
	for i := range f.request.Topics {
		asked, answered := &f.request.Topics[i], &response.Topics[i]
		answered.Topic, answered.TopicID = asked.Topic, asked.TopicID
		answered.Partitions = make([]kmsg.FetchResponseTopicPartition, len(asked.Partitions))
		for j := range asked.Partitions {
			a := &answered.Partitions[j]
			a.Default()
			a.Partition, a.ErrorCode, a.HighWatermark, a.LastStableOffset, a.LogStartOffset = asked.Partitions[j].Partition, err.Code, -1, -1, -1
			a.AbortedTransactions, a.RecordBatches = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}, []byte{}
		}
	}
	return Respond(response)
}

// finish ends the session's part and encodes the answer.
func (f *fetchCall) finish() Reply {
	body := &fetchBody{version: f.context.Version, all: f.parts}
	for i := range f.parts.all {
		part := &f.parts.all[i]
		if f.tell(part) {
			f.parts.told = append(f.parts.told, part)
		}
	}
	body.told = f.parts.told
	body.sessionID = f.session.Finish(f.context.NowMs)
	if body.version >= 16 && f.follower == partition.NoBroker {
		body.brokers = f.leaders(body.told)
	}
	f.count(body.told)
	return body.reply()
}

// tell notes in the session what the client gets to know, and reports whether it is worth telling.
func (f *fetchCall) tell(part *fetchPart) bool {
	if part.code != 0 {
		part.result = partition.ReadResult{HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1}
	}
	return f.session.Tell(part.partition, fetchsession.Answer{
		HighWatermark: part.result.HighWatermark, LogStartOffset: part.result.LogStartOffset,
		HasRecords: part.slice.Bytes > 0, HasError: part.code != 0, HasHint: part.result.Diverging != nil,
	})
}

// leaders are the addresses of the brokers that the answer points to.
func (f *fetchCall) leaders(told []*fetchPart) []kmsg.FetchResponseBroker {
	var brokers []kmsg.FetchResponseBroker
	for i := range told {
		if told[i].leader == nil {
			continue
		}
		id := told[i].leader.LeaderID
		known := false
		for j := range brokers {
			known = known || brokers[j].NodeID == int32(id)
		}
		endpoint, rack, ok := leaderAddress(f.image, f.context.Listener, id)
		if ok && !known {
			brokers = append(brokers, kmsg.FetchResponseBroker{NodeID: int32(id), Host: endpoint.Host, Port: int32(endpoint.Port), Rack: rack})
		}
	}
	return brokers
}

// count is for the metrics.
func (f *fetchCall) count(told []*fetchPart) {
	for i := range told {
		traffic := f.handlers.Metrics.Topic(told[i].partition.Topic)
		switch {
		case told[i].code != 0:
			traffic.FetchFailed()
		case told[i].slice.Bytes > 0 && f.follower == partition.NoBroker:
			traffic.Fetched(told[i].slice.Bytes)
		}
	}
}

// fetchBody is the body of an answer.
type fetchBody struct {
	version   int16
	sessionID int32
	all       *fetchParts
	told      []*fetchPart // those of all that the answer mentions
	brokers   []kmsg.FetchResponseBroker

	buffer *server.Buffer
	cuts   []cut // ascending
}

// cut is a place in the buffer where records go.
type cut struct {
	at   int
	part *fetchPart
}

func (b *fetchBody) flexible() bool { return b.version >= 12 }

// reply encodes the body and hands it over together with the slices.
func (b *fetchBody) reply() Reply {
	with := 0
	for _, part := range b.told {
		if part.slice.Bytes > 0 {
			with++
		}
	}
	b.cuts = make([]cut, 0, with)
	b.buffer = server.NewBuffer(b.estimate())
	b.buffer.B = b.append(b.buffer.B)
	segments := make([]server.Segment, 0, 2*len(b.cuts)+1)
	at := 0
	for _, c := range b.cuts {
		slice := &c.part.slice
		segments = append(segments, server.Segment{Bytes: b.buffer.B[at:c.at]},
			server.Segment{Source: slice.File, Offset: slice.Position, Length: slice.Bytes})
		at = c.at
	}
	segments = append(segments, server.Segment{Bytes: b.buffer.B[at:]})
	return Raw(segments, RawOptions{Response: b.errors(), Done: b.done})
}

func (b *fetchBody) done() {
	b.all.free()
	b.buffer.Free()
}

// estimate is a size that the body, records left out, does not often exceed.
func (b *fetchBody) estimate() int {
	const head, part, topic = 32, 64, 32
	return head + len(b.told)*(part+topic)
}

// errors is the answer without anything but its errors, for the counters; nil if there are none.
func (b *fetchBody) errors() kmsg.Response {
	var response *kmsg.FetchResponse
	for i := range b.told {
		if b.told[i].code == 0 {
			continue
		}
		if response == nil {
			response = kmsg.NewPtrFetchResponse()
			response.Version = b.version
			response.Topics = make([]kmsg.FetchResponseTopic, 1)
		}
		response.Topics[0].Partitions = append(response.Topics[0].Partitions, kmsg.FetchResponseTopicPartition{ErrorCode: b.told[i].code})
	}
	if response == nil {
		return nil
	}
	return response
}

func (b *fetchBody) append(dst []byte) []byte {
	dst = kbin.AppendInt32(dst, 0) // throttle time
	if b.version >= 7 {
		dst = kbin.AppendInt16(dst, 0)
		dst = kbin.AppendInt32(dst, b.sessionID)
	}
	dst = b.appendLength(dst, b.runs())
	for from := 0; from < len(b.told); {
		to := b.runEnd(from)
		dst = b.appendTopic(dst, from, to)
		from = to
	}
	if b.flexible() {
		dst = b.appendTags(dst)
	}
	return dst
}

// runEnd is where the partitions end that follow parts[from] and are of the same topic: they are told under one heading.
func (b *fetchBody) runEnd(from int) int {
	first := &b.told[from].partition.Key
	to := from + 1
	for to < len(b.told) && b.told[to].partition.Key.TopicID == first.TopicID && b.told[to].partition.Key.Topic == first.Topic {
		to++
	}
	return to
}

func (b *fetchBody) runs() int {
	runs := 0
	for from := 0; from < len(b.told); from = b.runEnd(from) {
		runs++
	}
	return runs
}

func (b *fetchBody) appendTopic(dst []byte, from, to int) []byte {
	key := &b.told[from].partition.Key
	switch {
	case b.version >= 13:
		dst = append(dst, key.TopicID[:]...)
	case b.flexible():
		dst = kbin.AppendCompactString(dst, key.Topic)
	default:
		dst = kbin.AppendString(dst, key.Topic)
	}
	dst = b.appendLength(dst, to-from)
	for i := from; i < to; i++ {
		dst = b.appendPart(dst, i)
	}
	if b.flexible() {
		dst = append(dst, 0)
	}
	return dst
}

func (b *fetchBody) appendPart(dst []byte, i int) []byte {
	part := b.told[i]
	dst = kbin.AppendInt32(dst, part.partition.Key.Index)
	dst = kbin.AppendInt16(dst, part.code)
	dst = kbin.AppendInt64(dst, part.result.HighWatermark)
	dst = kbin.AppendInt64(dst, part.result.LastStableOffset)
	if b.version >= 5 {
		dst = kbin.AppendInt64(dst, part.result.LogStartOffset)
	}
	dst = b.appendAborted(dst, part.aborted, part.committed)
	if b.version >= 11 {
		dst = kbin.AppendInt32(dst, -1) // preferred replica
	}
	// The length of the records, and their place. No records are a length of 0: null is no message set to some clients.
	if b.flexible() {
		dst = kbin.AppendUvarint(dst, uint32(part.slice.Bytes)+1)
	} else {
		dst = kbin.AppendInt32(dst, int32(part.slice.Bytes))
	}
	if part.slice.Bytes > 0 {
		b.cuts = append(b.cuts, cut{len(dst), part})
	}
	if b.flexible() {
		dst = b.appendPartTags(dst, part)
	}
	return dst
}

func (b *fetchBody) appendAborted(dst []byte, aborted []partlog.AbortedTransaction, known bool) []byte {
	if !known {
		if b.flexible() {
			return append(dst, 0)
		}
		return kbin.AppendInt32(dst, -1)
	}
	dst = b.appendLength(dst, len(aborted))
	for _, a := range aborted {
		dst = kbin.AppendInt64(dst, int64(a.ProducerID))
		dst = kbin.AppendInt64(dst, a.FirstOffset)
		if b.flexible() {
			dst = append(dst, 0)
		}
	}
	return dst
}

// Tags of one partition.
const (
	divergingEpochTag = 0
	currentLeaderTag  = 1
	brokersTag        = 0 // of the whole body
)

func (b *fetchBody) appendPartTags(dst []byte, part *fetchPart) []byte {
	diverging, leader := part.result.Diverging, part.leader
	if leader != nil && (b.version < 16 || part.code != kerr.NotLeaderForPartition.Code && part.code != kerr.FencedLeaderEpoch.Code) {
		leader = nil
	}
	count := byte(0)
	if diverging != nil {
		count++
	}
	if leader != nil {
		count++
	}
	dst = append(dst, count)
	if diverging != nil {
		dst = append(dst, divergingEpochTag, 4+8+1)
		dst = kbin.AppendInt32(dst, int32(diverging.LeaderEpoch))
		dst = kbin.AppendInt64(dst, diverging.EndOffset)
		dst = append(dst, 0)
	}
	if leader != nil {
		dst = append(dst, currentLeaderTag, 4+4+1)
		dst = kbin.AppendInt32(dst, int32(leader.LeaderID))
		dst = kbin.AppendInt32(dst, int32(leader.LeaderEpoch))
		dst = append(dst, 0)
	}
	return dst
}

func (b *fetchBody) appendTags(dst []byte) []byte {
	if len(b.brokers) == 0 {
		return append(dst, 0)
	}
	var brokers []byte
	brokers = kbin.AppendCompactArrayLen(brokers, len(b.brokers))
	for i := range b.brokers {
		brokers = kbin.AppendInt32(brokers, b.brokers[i].NodeID)
		brokers = kbin.AppendCompactString(brokers, b.brokers[i].Host)
		brokers = kbin.AppendInt32(brokers, b.brokers[i].Port)
		brokers = kbin.AppendCompactNullableString(brokers, b.brokers[i].Rack)
		brokers = append(brokers, 0)
	}
	dst = append(dst, 1, brokersTag)
	dst = kbin.AppendUvarint(dst, uint32(len(brokers)))
	return append(dst, brokers...)
}

func (b *fetchBody) appendLength(dst []byte, length int) []byte {
	if b.flexible() {
		return kbin.AppendCompactArrayLen(dst, length)
	}
	return kbin.AppendArrayLen(dst, length)
}
