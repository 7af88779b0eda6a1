package diff

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The bounds of the APIs of the transaction coordinator, and a transaction from its beginning to its end.

// transactional is a transactional id of a scenario's own, of which producer n has the n-th epoch.
func transactional(r *Run, n int) string { return r.name(fmt.Sprintf("x%d", n)) }

// initTransactional asks for a producer id of a transactional id, and keeps it and its epoch under the id.
func (r *Run) initTransactional(step, id string) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &id, 60_000
	req.ProducerID, req.ProducerEpoch = -1, -1
	ask(r, step, 4, same(req), func(s *side, resp *kmsg.InitProducerIDResponse) {
		s.keep(id, resp.ProducerID)
		s.keep(id+" epoch", resp.ProducerEpoch)
	})
}

func addPartitions(r *Run, s *side, id string, partitions ...int32) *kmsg.AddPartitionsToTxnRequest {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = id, get[int64](s, id), get[int16](s, id+" epoch")
	t := kmsg.NewAddPartitionsToTxnRequestTopic()
	t.Topic, t.Partitions = r.name("t"), partitions
	req.Topics = append(req.Topics, t)
	one := kmsg.NewAddPartitionsToTxnRequestTransaction()
	one.TransactionalID, one.ProducerID, one.ProducerEpoch, one.VerifyOnly = id, req.ProducerID, req.ProducerEpoch, false
	ot := kmsg.NewAddPartitionsToTxnRequestTransactionTopic()
	ot.Topic, ot.Partitions = r.name("t"), partitions
	one.Topics = append(one.Topics, ot)
	req.Transactions = append(req.Transactions, one)
	return req
}

func addOffsets(s *side, id, group string) *kmsg.AddOffsetsToTxnRequest {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = id, get[int64](s, id), get[int16](s, id+" epoch"), group
	return req
}

// begin makes a transaction under way, with one partition in it.
func (r *Run) begin(id string) {
	r.initTransactional("producer id", id)
	ask[*kmsg.AddPartitionsToTxnResponse](r, "begin", 3, func(s *side) kmsg.Request { return addPartitions(r, s, id, 0) })
}

func endTxn(s *side, id string, commit bool) *kmsg.EndTxnRequest {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = id, get[int64](s, id), get[int16](s, id+" epoch"), commit
	return req
}

func describeTransactions(ids ...string) *kmsg.DescribeTransactionsRequest {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = ids
	return req
}

// seeTransaction compares what is told of producer n's transaction, once its markers are written.
func seeTransaction(r *Run, step string, version int16, n int) {
	askSettled[*kmsg.DescribeTransactionsResponse](r, step+", then described", 0, same(describeTransactions(transactional(r, n))))
}

const ownIDs = "each broker counts producer ids for itself: by chance it is the transaction's"

var transactionSubjects = []subject{
	{
		key:     kmsg.AddPartitionsToTxn,
		prepare: func(r *Run) { r.topic(r.name("t"), 2) },
		each:    func(r *Run, version int16, n int) { r.initTransactional("producer id", transactional(r, n)) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			return addPartitions(r, s, transactional(r, n), 0, 1)
		},
		after: seeTransaction,
		skip: map[string]string{
			"Transactions = null":  neverAnswers,
			"Transactions = empty": neverAnswers,
		},
	},
	{
		key:  kmsg.AddOffsetsToTxn,
		each: func(r *Run, version int16, n int) { r.initTransactional("producer id", transactional(r, n)) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			return addOffsets(s, transactional(r, n), r.name("g"))
		},
		after: seeTransaction,
	},
	{
		key:     kmsg.EndTxn,
		prepare: func(r *Run) { r.topic(r.name("t"), 1) },
		each:    func(r *Run, version int16, n int) { r.begin(transactional(r, n)) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			return endTxn(s, transactional(r, n), true)
		},
		after: seeTransaction,
	},
	{
		key:     kmsg.WriteTxnMarkers,
		prepare: func(r *Run) { r.topic(r.name("t"), 2) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrWriteTxnMarkersRequest()
			m := kmsg.NewWriteTxnMarkersRequestMarker()
			m.ProducerID, m.Committed = int64(900_000+n), true
			t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
			t.Topic, t.Partitions = r.name("t"), []int32{0, 1}
			m.Topics = append(m.Topics, t)
			req.Markers = append(req.Markers, m)
			return req
		},
		after: lookAtEnds,
		skip: map[string]string{
			"Markers[].Topics = the first twice":              neverAnswers,
			"Markers[].Topics[].Partitions = the first twice": neverAnswers,
			"Markers[].Topics[].Partitions[] = 1":             neverAnswers,
		},
	},
	{
		key:     kmsg.TxnOffsetCommit,
		alone:   true, // see verified
		prepare: func(r *Run) { r.topic(r.name("t"), 2) },
		each: func(r *Run, version int16, n int) {
			r.initTransactional("producer id", transactional(r, n))
			ask[*kmsg.AddOffsetsToTxnResponse](r, "begin", 3, func(s *side) kmsg.Request { return addOffsets(s, transactional(r, n), r.name("g")) })
		},
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			id := transactional(r, n)
			req := kmsg.NewPtrTxnOffsetCommitRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Generation = id, get[int64](s, id), get[int16](s, id+" epoch"), r.name("g"), -1
			t := kmsg.NewTxnOffsetCommitRequestTopic()
			t.Topic, t.TopicID = r.name("t"), idOf(s, r.name("t"))
			p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			p.Offset, p.Metadata = int64(n), pointer("note")
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			return req
		},
	},
	{
		key:     kmsg.DescribeTransactions,
		prepare: func(r *Run) { r.topic(r.name("t"), 1); r.begin(transactional(r, 0)) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			return describeTransactions(transactional(r, 0))
		},
	},
	{
		key:     kmsg.ListTransactions,
		prepare: func(r *Run) { r.topic(r.name("t"), 1); r.begin(transactional(r, 0)) },
		valid: func(r *Run, s *side, version int16, n int) kmsg.Request {
			req := kmsg.NewPtrListTransactionsRequest()
			req.StateFilters, req.ProducerIDFilters = []string{"Ongoing"}, []int64{get[int64](s, transactional(r, 0))}
			req.DurationFilterMillis, req.TransactionalIDPattern = -1, pointer(".*")
			return req
		},
		skip: map[string]string{
			"ProducerIDFilters[] = 0": ownIDs,
			"ProducerIDFilters[] = 1": ownIDs,
			"ProducerIDFilters[] = 5": ownIDs,
		},
	},
}

func transactionStories() []Scenario {
	var list []Scenario
	needs := []kmsg.Key{kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn, kmsg.EndTxn, kmsg.TxnOffsetCommit, kmsg.DescribeTransactions}
	for _, commit := range []bool{true, false} {
		for _, v := range []int16{3, 9, 11, 12, 13} {
			list = append(list, Scenario{
				Alone: true, // see verified
				Name:  fmt.Sprintf("transactions/one, commit %v, produce v%d", commit, v),
				Needs: needs,
				Steps: func(r *Run) { oneTransaction(r, v, commit) },
			})
		}
	}
	return list
}

// verified: Apache Kafka asks the transaction coordinator for several requests at once, and answers all of them with the code that one of them knows,
// TRANSACTION_ABORTABLE or INVALID_TXN_STATE. What it refuses is the same answer each time only while nobody else writes in transactions.

// oneTransaction writes and commits offsets in a transaction, and looks at it from outside before and after its end.
func oneTransaction(r *Run, v int16, commit bool) {
	t, x := r.name("t"), r.name("x")
	r.topic(t, 2)
	read := func(step string) {
		for _, isolation := range []int8{0, 1} {
			ask[*kmsg.FetchResponse](r, fmt.Sprintf("%s, fetched with isolation %d", step, isolation), 12, func(s *side) kmsg.Request {
				req := fetch(t, idOf(s, t), 0, 0)
				req.IsolationLevel = isolation
				return req
			})
			req := listOffsets(t, -1, 0)
			req.IsolationLevel = isolation
			ask[*kmsg.ListOffsetsResponse](r, fmt.Sprintf("%s, its end with isolation %d", step, isolation), 7, same(req))
		}
		for _, stable := range []bool{false, true} {
			req := offsetFetch(r.name("g"), t)
			req.RequireStable = stable
			ask[*kmsg.OffsetFetchResponse](r, fmt.Sprintf("%s, offsets, stable %v", step, stable), 7, same(req))
		}
		askSettled[*kmsg.DescribeTransactionsResponse](r, step+", described", 0, same(describeTransactions(x)))
	}
	put := func(step string, sequence int32, epochBack int16) {
		ask[*kmsg.ProduceResponse](r, step, v, func(s *side) kmsg.Request {
			o := from(get[int64](s, x), get[int16](s, x+" epoch")-epochBack, sequence)
			o.Transactional = true
			req := produce(t, idOf(s, t), -1, 0, batch(o, "in the transaction"))
			req.TransactionID = &x
			return req
		})
	}
	r.initTransactional("producer id", x)
	if v < 12 { // from version 12 on the first write brings a partition in
		put("before the partition is in it", 0, 0)
		ask[*kmsg.AddPartitionsToTxnResponse](r, "begin", 3, func(s *side) kmsg.Request { return addPartitions(r, s, x, 0) })
	}
	put("in the transaction", 0, 0)
	r.fill(t, 0, "outside")
	ask[*kmsg.AddOffsetsToTxnResponse](r, "a group too", 3, func(s *side) kmsg.Request {
		return addOffsets(s, x, r.name("g"))
	})
	ask[*kmsg.TxnOffsetCommitResponse](r, "its offsets", 3, func(s *side) kmsg.Request {
		req := kmsg.NewPtrTxnOffsetCommitRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Generation = x, get[int64](s, x), get[int16](s, x+" epoch"), r.name("g"), -1
		topic := kmsg.NewTxnOffsetCommitRequestTopic()
		topic.Topic = t
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Offset = 5
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		return req
	})
	read("under way")
	ask[*kmsg.EndTxnResponse](r, "end", 3, func(s *side) kmsg.Request { return endTxn(s, x, commit) })
	askSettled[*kmsg.DescribeTransactionsResponse](r, "ended", 0, same(describeTransactions(x)))
	r.until("the markers are written", func(s *side) bool {
		resp, ok := s.once("poll", describeTransactions(x), 0).(*kmsg.DescribeTransactionsResponse)
		return ok && (resp.TransactionStates[0].State == "CompleteCommit" || resp.TransactionStates[0].State == "CompleteAbort")
	})
	read("ended")
	ask[*kmsg.EndTxnResponse](r, "end again", 3, func(s *side) kmsg.Request { return endTxn(s, x, commit) })
	ask[*kmsg.EndTxnResponse](r, "end the other way", 3, func(s *side) kmsg.Request { return endTxn(s, x, !commit) })
	r.initTransactional("a producer that comes after", x)
	put("the producer before it", 1, 1)
	ask[*kmsg.EndTxnResponse](r, "nothing to end", 3, func(s *side) kmsg.Request { return endTxn(s, x, commit) })
}
