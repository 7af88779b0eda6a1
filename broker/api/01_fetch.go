package api

import (
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/delayed"
	"sluice/broker/fetchsession"
	"sluice/protocol/record"
	"sluice/replication/metadata"
	"sluice/replication/partition"
	"sluice/storage/partlog"
)

// Fetch, versions 4 to 18.
//
//	4   isolation level, last stable offset and aborted transactions
//	5   log start offset
//	6   KAFKA_STORAGE_ERROR (older versions see NOT_LEADER_OR_FOLLOWER in its place)
//	7   incremental sessions (KIP-227)
//	9   current leader epoch (KIP-320)
//	10  zstd (older versions get it all the same, as Kafka 4 has it)
//	11  rack and preferred replica (KIP-392)
//	12  flexible; last fetched epoch and diverging epoch (KIP-595)
//	13  topic ids instead of names (KIP-516)
//	15  replica state (KIP-903)
//	16  leader and its address, where a client asked the wrong broker (KIP-951)
//	17  replica directory id (KIP-853)
//	18  high watermark of the asker (KIP-1166)
//
// The answer is a list of encoded bytes and file ranges: records are not copied. It comes at once when enough bytes are there, something
// failed, or the request does not want to wait; else the request is parked, and finishes in the goroutine of whoever moves the high
// watermark of one of its partitions.
//
// Byte limits: a partition gives at most its own limit and what is left of the request's, which is itself bounded by fetch.max.bytes; but
// the first batch of the first partition that has one is whole. In a session, partitions that gave records go to the end of the line.
//
// Where we differ from Apache Kafka: there is no replica selector, so the preferred replica is always -1. What all sessions remember together is bounded: beyond it a client gets no session.

// ReplicaReader is what Fetch needs of a replica.
type ReplicaReader interface {
	Read(q partition.ReadQuery) (partition.ReadResult, partlog.Slice, error)
	// Readable tells how far a waiting reader could read, exclusive, or why it could not.
	Readable(leaderEpoch record.LeaderEpoch, isolation partition.Isolation) (endOffset int64, err error)
	AbortedTransactions(from, upTo int64) ([]partlog.AbortedTransaction, error)
}

func (h *Handlers) fetch(c *Context, request *kmsg.FetchRequest) Reply {
	f := newFetchCall(h, c, request)
	if request.IsolationLevel < int8(partition.ReadUncommitted) || request.IsolationLevel > int8(partition.ReadCommitted) {
		return f.refuse(kerr.UnknownServerError)
	}
	session, err := h.Sessions.Begin(sessionRequest(request), c.NowMs)
	if err != nil {
		return f.sessionError(err, fetchsession.NoSession)
	}
	f.session = session
	if !session.Enter() {
		return f.sessionError(fetchsession.ErrInvalidEpoch, session.SessionID())
	}
	f.read()
	if f.answersNow() {
		return f.finish()
	}
	return f.park()
}

// consumer is the replica id of those that are none. -2 is a consumer for debugging.
const consumer = -1

// fetchCall is one Fetch request being served.
type fetchCall struct {
	handlers *Handlers
	context  *Context
	request  *kmsg.FetchRequest
	session  *fetchsession.Fetch

	follower           partition.BrokerID // partition.NoBroker for consumers
	isolation          partition.Isolation
	minBytes, maxBytes int

	image   *metadata.Image
	parts   *fetchParts // as the session's partitions, in order; nil while parked
	bytes   int64       // that the slices hold
	failed  bool        // reading some partition failed, or showed that the asker's log diverges
	readers int         // partitions that could be read at all

	watching []watchedPart // while parked
	complete func(Reply)
}

// fetchPart is what is known about one partition at one reading.
type fetchPart struct {
	partition *fetchsession.Partition
	replica   Replica // nil if there is none
	code      int16
	result    partition.ReadResult
	slice     partlog.Slice
	leader    *partition.NotLeader // where to look instead, if code says so
	aborted   []partlog.AbortedTransaction
	committed bool // aborted is to be given, even if it is empty. Kafka gives it for partitions that do not exist, too
}

func newFetchCall(h *Handlers, c *Context, request *kmsg.FetchRequest) *fetchCall {
	f := &fetchCall{handlers: h, context: c, request: request, follower: partition.NoBroker}
	f.maxBytes = min(int(request.MaxBytes), h.Config().FetchMaxBytes)
	f.minBytes = min(int(request.MinBytes), f.maxBytes)
	if id := replicaID(request); id >= 0 {
		f.follower, f.isolation = partition.BrokerID(id), partition.ReadLogEnd
	} else if request.IsolationLevel == int8(partition.ReadCommitted) {
		f.isolation = partition.ReadCommitted
	}
	return f
}

func replicaID(request *kmsg.FetchRequest) int32 {
	if request.Version >= 15 {
		return request.ReplicaState.ID
	}
	return request.ReplicaID
}

// sessionRequest is what the request says about its session. What is kept there outlives the request; nothing of it aliases the frame.
func sessionRequest(request *kmsg.FetchRequest) fetchsession.Request {
	q := fetchsession.Request{
		SessionID: request.SessionID, Epoch: request.SessionEpoch,
		TopicIDs: request.Version >= 13, Follower: replicaID(request) >= 0,
	}
	count := 0
	for i := range request.Topics {
		count += len(request.Topics[i].Partitions)
	}
	if count > 0 {
		q.Partitions = make([]*fetchsession.Partition, 0, count)
	}
	asked := make([]fetchsession.Partition, count)
	for i := range request.Topics {
		t := &request.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			asked[0] = fetchsession.Partition{
				Key: fetchsession.Key{TopicID: t.TopicID, Topic: t.Topic, Index: p.Partition}, Topic: t.Topic,
				FetchOffset: p.FetchOffset, LogStartOffset: p.LogStartOffset, MaxBytes: p.PartitionMaxBytes,
				LeaderEpoch: orNoEpoch(p.CurrentLeaderEpoch), LastFetchedEpoch: orNoEpoch(p.LastFetchedEpoch),
			}
			q.Partitions = append(q.Partitions, &asked[0])
			asked = asked[1:]
		}
	}
	for i := range request.ForgottenTopics {
		t := &request.ForgottenTopics[i]
		for _, index := range t.Partitions {
			q.Forget = append(q.Forget, fetchsession.Key{TopicID: t.TopicID, Topic: t.Topic, Index: index})
		}
	}
	return q
}

// orNoEpoch takes every negative leader epoch for none.
func orNoEpoch(epoch int32) int32 { return max(epoch, int32(record.NoLeaderEpoch)) }

// read looks up and reads every partition of the session. It is called between Enter and Leave or Finish.
func (f *fetchCall) read() {
	partitions := f.session.Partitions()
	f.image = f.handlers.Controller.Image()
	f.parts = newFetchParts(len(partitions))
	f.bytes, f.failed, f.readers = 0, false, 0
	left := int64(f.maxBytes)
	for i, p := range partitions {
		part := &f.parts.all[i]
		if part.partition = p; f.find(part) {
			f.readPart(part, min(left, int64(p.MaxBytes)))
		}
		left = max(0, left-part.slice.Bytes)
	}
}

// fetchParts is the room for one reading. It is pooled: with many partitions it is larger than all else that a fetch needs.
type fetchParts struct {
	all  []fetchPart
	told []*fetchPart // those that the answer mentions
}

var fetchPartsPool = sync.Pool{New: func() any { return new(fetchParts) }}

func newFetchParts(count int) *fetchParts {
	p := fetchPartsPool.Get().(*fetchParts)
	p.all = slices.Grow(p.all, count)[:count]
	return p
}

// free closes the slices and gives the room back.
func (p *fetchParts) free() {
	for i := range p.all {
		p.all[i].slice.Close()
	}
	clear(p.all)
	clear(p.told)
	p.all, p.told = p.all[:0], p.told[:0]
	fetchPartsPool.Put(p)
}

// found is what a session remembers about a partition between fetches.
type found struct {
	image   *metadata.Image
	replica Replica
}

// find looks for the replica of a partition. A topic or partition that does not exist is told when the fetch ends, and does not end it;
// trouble with one that exists does. Kafka makes that difference too.
func (f *fetchCall) find(part *fetchPart) bool {
	p := part.partition
	known, ok := p.Handle.(*found)
	if ok && known.image == f.image {
		f.readers++
		part.replica = known.replica
		return true
	}
	if p.Topic == "" && f.context.Version >= 13 {
		t, ok := f.image.TopicByID(p.Key.TopicID)
		if !ok {
			part.code, part.committed = kerr.UnknownTopicID.Code, true
			return false
		}
		p.Topic = t.Name
	}
	t, ok := f.image.Topic(p.Topic)
	if !ok || p.Key.Index < 0 || int(p.Key.Index) >= len(t.Partitions) {
		part.code, part.committed = kerr.UnknownTopicOrPartition.Code, true
		return false
	}
	f.readers++
	replica, err := f.handlers.Replicas.Get(p.Topic, p.Key.Index)
	if err == nil && !p.Key.TopicID.IsZero() && replica.TopicID() != p.Key.TopicID {
		err = kerr.InconsistentTopicID
	}
	if err != nil {
		f.fail(part, err)
		return false
	}
	if known == nil {
		known = new(found)
		p.Handle = known
	}
	known.image, known.replica = f.image, replica
	part.replica = replica
	return true
}

// readPart reads one partition. The first one that has a batch gives it whole. A limit below zero is an error where there is something to give,
// and only there.
func (f *fetchCall) readPart(part *fetchPart, limit int64) {
	p := part.partition
	q := partition.ReadQuery{
		Offset:   p.FetchOffset,
		MaxBytes: int(max(0, limit)), AtLeastOne: f.bytes == 0 || limit < 0,
		LeaderEpoch: record.LeaderEpoch(p.LeaderEpoch), LastFetchedEpoch: record.LeaderEpoch(p.LastFetchedEpoch),
		Isolation: f.isolation,
	}
	if f.follower != partition.NoBroker {
		q.Follower = &partition.FollowerFetch{Broker: f.follower, FetchOffset: p.FetchOffset, LogStartOffset: p.LogStartOffset, NowMs: f.context.NowMs}
	}
	var err error
	part.result, part.slice, err = part.replica.Read(q)
	if err == nil && limit < 0 && part.slice.FirstBatchBytes > 0 {
		err = kerr.UnknownServerError
	}
	if part.slice.Bytes < part.slice.FirstBatchBytes { // not even one batch fits: nothing is better than a piece
		part.slice.Close()
		part.slice = partlog.Slice{}
	}
	if err == nil && f.isolation == partition.ReadCommitted && part.result.Diverging == nil {
		part.committed = true
		if part.slice.Bytes > 0 {
			part.aborted, err = abortedIn(part, p.FetchOffset)
		}
	}
	if err != nil {
		f.fail(part, err)
		return
	}
	f.failed = f.failed || part.result.Diverging != nil
	f.bytes += part.slice.Bytes
}

// abortedIn lists the aborted transactions that touch the batches of a part. The end of these is looked up only where there is something to
// leave out: most logs have no aborted transaction at all.
func abortedIn(part *fetchPart, fetchOffset int64) ([]partlog.AbortedTransaction, error) {
	all, err := part.replica.AbortedTransactions(fetchOffset, part.result.LastStableOffset)
	if err != nil || len(all) == 0 {
		return all, err
	}
	end, err := part.slice.UpperBound()
	if err != nil || end >= part.result.LastStableOffset {
		return all, err
	}
	return part.replica.AbortedTransactions(fetchOffset, end)
}

// fail puts an error in the place of what was read of a partition.
func (f *fetchCall) fail(part *fetchPart, err error) {
	part.slice.Close()
	part.slice, part.replica, part.committed = partlog.Slice{}, nil, false
	part.partition.Handle = nil // look anew next time
	f.failed = true
	part.code = f.context.code(err)
	if part.code == kerr.KafkaStorageError.Code && f.context.Version <= 5 {
		part.code = kerr.NotLeaderForPartition.Code
	}
	switch e := err.(type) {
	case *partition.NotLeader:
		part.leader = e
	case *partition.FencedLeaderEpoch:
		part.leader = &partition.NotLeader{LeaderID: f.leaderOf(part.partition), LeaderEpoch: e.Current}
	}
}

// leaderOf is who leads a partition as far as the metadata says.
func (f *fetchCall) leaderOf(p *fetchsession.Partition) partition.BrokerID {
	if t, ok := f.image.Topic(p.Topic); ok && int(p.Key.Index) < len(t.Partitions) {
		return partition.BrokerID(t.Partitions[p.Key.Index].Leader)
	}
	return partition.NoBroker
}

func (f *fetchCall) answersNow() bool {
	return f.request.MaxWaitMillis <= 0 || f.readers == 0 || f.failed || f.bytes >= int64(f.minBytes)
}

// watchedPart is one partition of a parked fetch. It is a copy: a newer request may change the session meanwhile.
type watchedPart struct {
	serial      delayed.Key
	replica     Replica
	fetchOffset int64
	maxBytes    int64
	leaderEpoch record.LeaderEpoch
	available   int64
}

func (f *fetchCall) park() Reply {
	f.watching = make([]watchedPart, 0, f.readers)
	keys := make([]delayed.Key, 0, f.readers)
	for i := range f.parts.all {
		part := &f.parts.all[i]
		if part.replica == nil {
			continue
		}
		w := watchedPart{
			serial: delayed.Key(part.replica.Serial()), replica: part.replica, fetchOffset: part.partition.FetchOffset,
			maxBytes: int64(part.partition.MaxBytes), leaderEpoch: record.LeaderEpoch(part.partition.LeaderEpoch),
		}
		f.watching = append(f.watching, w)
		keys = append(keys, w.serial)
	}
	f.parts.free()
	f.parts = nil
	f.session.Leave()
	f.context.Request.Release()
	reply, complete := f.context.PendingReply()
	f.complete = complete
	f.handlers.Waiting.Park(f.context, f, keys, milliseconds(f.request.MaxWaitMillis))
	return reply
}

// Ready implements delayed.Operation.
func (f *fetchCall) Ready(key delayed.Key) bool {
	if key == delayed.AnyKey && f.handlers.stopping.Load() {
		return true
	}
	total := int64(0)
	for i := range f.watching {
		w := &f.watching[i]
		if key == delayed.AnyKey || key == w.serial {
			if f.look(w) {
				return true
			}
		}
		total += w.available
	}
	return total >= int64(f.minBytes)
}

// look finds out how much a partition has to give by now. It returns true when the fetch should not wait any longer, whatever there is.
func (f *fetchCall) look(w *watchedPart) (now bool) {
	end, err := w.replica.Readable(w.leaderEpoch, f.isolation)
	switch {
	case err != nil || w.fetchOffset > end:
		return true
	case w.fetchOffset == end:
		w.available = 0
		return false
	case f.minBytes <= 1:
		return true
	}
	// How many bytes there are, only the log knows. What ends before the end is in an older segment, and worth an answer at once.
	query := partition.ReadQuery{
		Offset: w.fetchOffset, MaxBytes: int(max(0, w.maxBytes)), LeaderEpoch: w.leaderEpoch, LastFetchedEpoch: record.NoLeaderEpoch,
		Isolation: f.isolation,
	}
	_, slice, err := w.replica.Read(query)
	if err != nil {
		return true
	}
	defer slice.Close()
	query.Offset = end - 1
	_, last, err := w.replica.Read(query)
	if err != nil {
		return true
	}
	defer last.Close()
	w.available = min(max(slice.Bytes, 0), w.maxBytes)
	return slice.File != nil && last.File != nil && slice.File.Name() != last.File.Name()
}

// Finish implements delayed.Operation.
func (f *fetchCall) Finish(o delayed.Outcome) {
	f.watching = nil
	if o == delayed.Cancelled && f.context.Err() != nil {
		f.complete(Hangup("the client is gone")) // there is nobody to read for
		return
	}
	if !f.session.Enter() {
		f.complete(f.sessionError(fetchsession.ErrInvalidEpoch, f.session.SessionID()))
		return
	}
	f.context.NowMs = f.handlers.NowMs()
	f.read()
	f.complete(f.finish())
}
