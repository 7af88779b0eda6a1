package wire

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
	"sluice/protocol/record"
)

// Error codes that only transactions have.
const (
	topicAuthorizationFailed int16 = 29
	invalidTxnState          int16 = 48
	invalidProducerIDMapping int16 = 49
	invalidTxnTimeout        int16 = 50
	concurrentTransactions   int16 = 51
	operationNotAttempted    int16 = 55
	unstableOffsetCommit     int16 = 88
	producerFenced           int16 = 90
	transactionalIDNotFound  int16 = 105
	invalidRegularExpression int16 = 128
	transactionAbortable     int16 = 120
)

// txnVersions are the versions of the requests that a client of one version of transactions sends.
type txnVersions struct {
	v2                                          bool
	init, produce, add, addOffsets, end, commit int16
}

var (
	txnV1 = txnVersions{false, 4, 11, 3, 3, 4, 4}
	txnV2 = txnVersions{true, 5, 12, -1, -1, 5, 5}
)

// A txnProducer is a transactional producer that does what it is told, step by step.
type txnProducer struct {
	*sluicetest.Raw
	t *testing.T
	txnVersions
	transactionalID string
	timeoutMs       int32
	id              int64
	epoch           int16
	sequences       map[string]int32
}

// producerOf is a producer that has not asked for its id.
func producerOf(t *testing.T, address, transactionalID string, v txnVersions) *txnProducer {
	t.Helper()
	p := &txnProducer{
		Raw: sluicetest.Dial(t, address), t: t, txnVersions: v, transactionalID: transactionalID, timeoutMs: 60_000,
		id: -1, epoch: -1, sequences: map[string]int32{},
	}
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorType = 1
	find.CoordinatorKeys = []string{transactionalID}
	sluicetest.Until(t, 20*time.Second, "a transaction coordinator", func() bool {
		return sluicetest.Ask[*kmsg.FindCoordinatorResponse](p.Raw, find, 4).Coordinators[0].ErrorCode == none
	})
	return p
}

// initialized is producerOf with an id.
func initialized(t *testing.T, address, transactionalID string, v txnVersions) *txnProducer {
	t.Helper()
	p := producerOf(t, address, transactionalID, v)
	p.mustInit()
	return p
}

func (p *txnProducer) initAt(version int16, id int64, epoch int16) *kmsg.InitProducerIDResponse {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &p.transactionalID, p.timeoutMs
	req.ProducerID, req.ProducerEpoch = id, epoch
	return sluicetest.Ask[*kmsg.InitProducerIDResponse](p.Raw, req, version)
}

// mustInit asks for an id as a new producer, as often as it takes.
func (p *txnProducer) mustInit() {
	p.t.Helper()
	p.patiently("InitProducerId", func() int16 {
		resp := p.initAt(p.init, -1, -1)
		p.id, p.epoch, p.sequences = resp.ProducerID, resp.ProducerEpoch, map[string]int32{}
		return resp.ErrorCode
	})
}

// patiently repeats a request while the coordinator asks to come back.
func (p *txnProducer) patiently(what string, ask func() int16) {
	p.t.Helper()
	var code int16
	sluicetest.Until(p.t, 20*time.Second, what, func() bool {
		code = ask()
		switch code {
		case concurrentTransactions, coordinatorLoading, coordinatorNotAvailable, notCoordinator, 19: // and NOT_ENOUGH_REPLICAS
			return false
		}
		return true
	})
	if code != none {
		p.t.Fatalf("%s: error %d", what, code)
	}
}

func (p *txnProducer) addAt(version int16, topic string, partitions ...int32) []kmsg.AddPartitionsToTxnResponseTopicPartition {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.transactionalID, p.id, p.epoch
	req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: partitions}}
	return sluicetest.Ask[*kmsg.AddPartitionsToTxnResponse](p.Raw, req, version).Topics[0].Partitions
}

// writeAt sends one record to one partition, in the producer's transaction and next in sequence.
func (p *txnProducer) writeAt(version int16, topic string, partition int32, sequence int32, value string) int16 {
	o := record.BuilderOptions{
		ProducerID: record.ProducerID(p.id), ProducerEpoch: record.ProducerEpoch(p.epoch), BaseSequence: sequence, Transactional: true,
		LeaderEpoch: record.NoLeaderEpoch,
	}
	req := produceRequest(-1, part{topic, partition, batch(p.t, o, values(time.Now().UnixMilli(), value)...)})
	req.TransactionID = &p.transactionalID
	return sluicetest.Ask[*kmsg.ProduceResponse](p.Raw, req, version).Topics[0].Partitions[0].ErrorCode
}

// write writes one record as the client would, registering the partition first if it has to.
func (p *txnProducer) write(topic string, partition int32, value string) {
	p.t.Helper()
	if !p.v2 {
		p.patiently("AddPartitionsToTxn", func() int16 { return p.addAt(p.add, topic, partition)[0].ErrorCode })
	}
	key := fmt.Sprint(topic, partition)
	p.patiently("Produce", func() int16 { return p.writeAt(p.produce, topic, partition, p.sequences[key], value) })
	p.sequences[key]++
}

func (p *txnProducer) endAt(version int16, commit bool) *kmsg.EndTxnResponse {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.transactionalID, p.id, p.epoch, commit
	return sluicetest.Ask[*kmsg.EndTxnResponse](p.Raw, req, version)
}

// finish ends the transaction, and takes over what the producer is to go on with.
func (p *txnProducer) finish(commit bool) {
	p.t.Helper()
	var resp *kmsg.EndTxnResponse
	p.patiently("EndTxn", func() int16 {
		resp = p.endAt(p.txnVersions.end, commit)
		return resp.ErrorCode
	})
	if p.v2 {
		p.id, p.epoch, p.sequences = resp.ProducerID, resp.ProducerEpoch, map[string]int32{}
	}
}

func (p *txnProducer) commitOffsetAt(version int16, group, topic string, topicID [16]byte, offset int64) int16 {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = p.transactionalID, p.id, p.epoch, group
	req.Generation = -1
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset, partition.LeaderEpoch = offset, -1
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: topic, TopicID: topicID, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{partition}}}
	return sluicetest.Ask[*kmsg.TxnOffsetCommitResponse](p.Raw, req, version).Topics[0].Partitions[0].ErrorCode
}

func (p *txnProducer) commitOffset(group, topic string, offset int64) {
	p.t.Helper()
	if !p.v2 {
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = p.transactionalID, p.id, p.epoch, group
		p.patiently("AddOffsetsToTxn", func() int16 { return sluicetest.Ask[*kmsg.AddOffsetsToTxnResponse](p.Raw, req, p.addOffsets).ErrorCode })
	}
	p.patiently("TxnOffsetCommit", func() int16 { return p.commitOffsetAt(p.txnVersions.commit, group, topic, [16]byte{}, offset) })
}

// committedEnd waits until all transactions of a partition are ended, and returns where it ends.
func committedEnd(t *testing.T, c *sluicetest.Raw, topic string, partition int32) int64 {
	t.Helper()
	var end int64
	sluicetest.Until(t, 20*time.Second, "the end of all transactions of "+topic, func() bool {
		end = listOffset(c, topic, partition, latest).Offset
		return stableEnd(c, topic, partition) == end
	})
	return end
}

// stableEnd is the last stable offset as ListOffsets tells it.
func stableEnd(c *sluicetest.Raw, topic string, partition int32) int64 {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, 1
	asked := kmsg.NewListOffsetsRequestTopicPartition()
	asked.Partition, asked.Timestamp, asked.CurrentLeaderEpoch = partition, latest, -1
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{asked}}}
	return sluicetest.Ask[*kmsg.ListOffsetsResponse](c, req, 7).Topics[0].Partitions[0].Offset
}

func fetchIsolated(c *sluicetest.Raw, topic string, partition int32, offset int64, isolation int8) kmsg.FetchResponseTopicPartition {
	req := fetchRequest(topic, [16]byte{}, partition, offset)
	req.IsolationLevel = isolation
	return sluicetest.Ask[*kmsg.FetchResponse](c, req, 12).Topics[0].Partitions[0]
}

// visible are the values that a consumer shows for one partition, by the rules of its isolation.
func visible(t *testing.T, c *sluicetest.Raw, topic string, partition int32, isolation int8) (shown []string) {
	t.Helper()
	for offset := int64(0); ; {
		p := fetchIsolated(c, topic, partition, offset, isolation)
		if p.ErrorCode != none {
			t.Fatalf("fetch %s at %d: error %d", topic, offset, p.ErrorCode)
		}
		if len(p.RecordBatches) == 0 {
			return shown
		}
		aborted := map[record.ProducerID]bool{}
		ahead := p.AbortedTransactions
		slices.SortFunc(ahead, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
			return cmp.Compare(a.FirstOffset, b.FirstOffset)
		})
		for rest := p.RecordBatches; len(rest) > 0; {
			b, after, err := record.Split(rest)
			if err != nil {
				t.Fatal(err)
			}
			rest = after
			for len(ahead) > 0 && ahead[0].FirstOffset <= b.LastOffset() {
				aborted[record.ProducerID(ahead[0].ProducerID)] = true
				ahead = ahead[1:]
			}
			offset = b.NextOffset()
			for r, err := range b.Records(0) {
				if err != nil {
					t.Fatal(err)
				}
				if b.IsControl() {
					if m, err := record.ParseControl(r); err != nil {
						t.Fatal(err)
					} else if _, ok := m.(record.EndTxnMarker); ok {
						delete(aborted, b.ProducerID())
					}
				} else if isolation == 0 || !b.IsTransactional() || !aborted[b.ProducerID()] {
					shown = append(shown, string(r.Value))
				}
			}
		}
	}
}

func bothVersions(t *testing.T, run func(t *testing.T, v txnVersions)) {
	for name, v := range map[string]txnVersions{"v1": txnV1, "v2": txnV2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, v)
		})
	}
}

// TestV11_AbortedRecords: who reads uncommitted gets aborted records and no list of them; who reads committed gets the list and shows nothing.
func TestV11_AbortedRecords(t *testing.T) {
	address := broker(t)
	bothVersions(t, func(t *testing.T, v txnVersions) {
		c := sluicetest.Dial(t, address)
		topic := fresh("v11")
		createTopic(t, c, topic, 1)
		p := initialized(t, address, fresh("v11"), v)
		p.write(topic, 0, "a")

		open := fetchIsolated(c, topic, 0, 0, 0)
		if len(open.RecordBatches) == 0 || open.LastStableOffset != 0 || open.HighWatermark != 1 || len(open.AbortedTransactions) != 0 {
			t.Errorf("open, uncommitted: %+v", open)
		}
		if got := fetchIsolated(c, topic, 0, 0, 1); len(got.RecordBatches) != 0 || got.LastStableOffset != 0 || got.HighWatermark != 1 {
			t.Errorf("open, committed: %+v", got)
		}
		if end := stableEnd(c, topic, 0); end != 0 {
			t.Errorf("the last stable offset is %d", end)
		}
		id := p.id
		p.finish(false)
		if end := committedEnd(t, c, topic, 0); end != 2 {
			t.Errorf("the partition ends at %d: a record and its marker", end)
		}
		uncommitted := fetchIsolated(c, topic, 0, 0, 0)
		if len(uncommitted.AbortedTransactions) != 0 || uncommitted.LastStableOffset != 2 {
			t.Errorf("aborted, uncommitted: %+v", uncommitted)
		}
		committed := fetchIsolated(c, topic, 0, 0, 1)
		if len(committed.AbortedTransactions) != 1 || committed.AbortedTransactions[0].ProducerID != id || committed.AbortedTransactions[0].FirstOffset != 0 {
			t.Errorf("aborted, committed: %+v", committed)
		}
		p.write(topic, 0, "b")
		p.finish(true)
		committedEnd(t, c, topic, 0)
		if got := fmt.Sprint(visible(t, c, topic, 0, 0), visible(t, c, topic, 0, 1)); got != "[a b] [b]" {
			t.Errorf("shown: %s", got)
		}
		if got := fetchIsolated(c, topic, 0, 2, 1); len(got.AbortedTransactions) != 0 {
			t.Errorf("past the aborted transaction: %+v", got)
		}
	})
}

// TestV12_TimeoutBounds: a transaction's timeout is above zero and within the broker's limit.
func TestV12_TimeoutBounds(t *testing.T) {
	p := producerOf(t, broker(t), fresh("v12"), txnV1)
	for timeoutMs, want := range map[int32]int16{3_600_000: invalidTxnTimeout, 900_001: invalidTxnTimeout, 0: invalidTxnTimeout, -1: invalidTxnTimeout} {
		p.timeoutMs = timeoutMs
		if code := p.initAt(4, -1, -1).ErrorCode; code != want {
			t.Errorf("timeout %d: error %d, want %d", timeoutMs, code, want)
		}
	}
	p.timeoutMs = 900_000
	p.mustInit()
	p.transactionalID = ""
	if code := p.initAt(4, -1, -1).ErrorCode; code != invalidRequest {
		t.Errorf("empty transactional id: error %d", code)
	}
	p.transactionalID = fresh("v12")
	for _, half := range []struct {
		id    int64
		epoch int16
	}{{5, -1}, {-1, 5}} {
		if code := p.initAt(4, half.id, half.epoch).ErrorCode; code != invalidRequest {
			t.Errorf("id %d, epoch %d: error %d", half.id, half.epoch, code)
		}
	}
}

// TestV12_TimedOutTransaction: the broker aborts it, fences its producer, and lets readers go on.
func TestV12_TimedOutTransaction(t *testing.T) {
	address := broker(t)
	bothVersions(t, func(t *testing.T, v txnVersions) {
		c := sluicetest.Dial(t, address)
		topic := fresh("v12")
		createTopic(t, c, topic, 1)
		p := producerOf(t, address, fresh("v12"), v)
		p.timeoutMs = 1000
		p.mustInit()
		p.write(topic, 0, "lost")
		if code := produce(c, topic, 0, batch(t, plain(), values(time.Now().UnixMilli(), "after")...)).ErrorCode; code != none {
			t.Fatalf("produce beside: error %d", code)
		}
		sluicetest.Until(t, 30*time.Second, "the abort", func() bool { return stableEnd(c, topic, 0) == 3 })
		if got := fmt.Sprint(visible(t, c, topic, 0, 1)); got != "[after]" {
			t.Errorf("shown: %s", got)
		}
		if code := p.writeAt(v.produce, topic, 0, 1, "late"); code != invalidProducerEpoch {
			t.Errorf("Produce: error %d, want %d", code, invalidProducerEpoch)
		}
		for version, want := range map[int16]int16{1: invalidProducerEpoch, 2: producerFenced, 4: producerFenced} {
			if code := p.endAt(version, true).ErrorCode; code != want {
				t.Errorf("EndTxn %d: error %d, want %d", version, code, want)
			}
		}
		if code := p.endAt(5, true).ErrorCode; code != invalidTxnState {
			t.Errorf("EndTxn 5: error %d, want %d: the epoch is that of its own abort", code, invalidTxnState)
		}
		before := p.epoch
		p.mustInit()
		if p.epoch < before+2 {
			t.Errorf("epoch %d after %d", p.epoch, before)
		}
	})
}

// TestV12_SecondProducer: it aborts what the first has open, and the first is told so in the codes of each version.
func TestV12_SecondProducer(t *testing.T) {
	address := broker(t)
	bothVersions(t, func(t *testing.T, v txnVersions) {
		c := sluicetest.Dial(t, address)
		topic := fresh("v12")
		createTopic(t, c, topic, 1)
		first := initialized(t, address, fresh("v12"), v)
		first.write(topic, 0, "of the first")
		second := producerOf(t, address, first.transactionalID, v)
		if code := second.initAt(v.init, -1, -1).ErrorCode; code != concurrentTransactions {
			t.Errorf("InitProducerId over an open transaction: error %d", code)
		}
		second.mustInit()
		if second.id != first.id || second.epoch != first.epoch+2 {
			t.Errorf("second has %d/%d, first %d/%d", second.id, second.epoch, first.id, first.epoch)
		}
		for version, want := range map[int16]int16{0: invalidProducerEpoch, 1: invalidProducerEpoch, 2: producerFenced, 3: producerFenced, 5: producerFenced} {
			if code := first.endAt(version, true).ErrorCode; code != want {
				t.Errorf("EndTxn %d: error %d, want %d", version, code, want)
			}
		}
		for version, want := range map[int16]int16{0: invalidProducerEpoch, 1: invalidProducerEpoch, 2: producerFenced, 3: producerFenced} {
			if code := first.addAt(version, topic, 0)[0].ErrorCode; code != want {
				t.Errorf("AddPartitionsToTxn %d: error %d, want %d", version, code, want)
			}
		}
		for version, want := range map[int16]int16{3: invalidProducerEpoch, 4: producerFenced, 5: producerFenced} {
			if code := first.initAt(version, first.id, first.epoch).ErrorCode; code != want {
				t.Errorf("InitProducerId %d with the old epoch: error %d, want %d", version, code, want)
			}
		}
		if code := first.writeAt(v.produce, topic, 0, 1, "late"); code != invalidProducerEpoch {
			t.Errorf("Produce: error %d", code)
		}
		second.write(topic, 0, "of the second")
		second.finish(true)
		committedEnd(t, c, topic, 0)
		if got := fmt.Sprint(visible(t, c, topic, 0, 1)); got != "[of the second]" {
			t.Errorf("shown: %s", got)
		}
	})
}

// TestKIP360_ProducerRecovers: a producer that keeps its id gets the next epoch, and the same one when it asks again.
func TestKIP360_ProducerRecovers(t *testing.T) {
	p := initialized(t, broker(t), fresh("kip360"), txnV2)
	for range 2 {
		if resp := p.initAt(5, p.id, p.epoch); resp.ErrorCode != none || resp.ProducerID != p.id || resp.ProducerEpoch != p.epoch+1 {
			t.Errorf("%+v after epoch %d", resp, p.epoch)
		}
	}
	if code := p.initAt(5, p.id+1_000_000, p.epoch).ErrorCode; code != producerFenced {
		t.Errorf("another id: error %d", code)
	}
}

// offsetStable asks for a group's offset, with or without waiting for transactions.
func offsetStable(c *sluicetest.Raw, group, topic string, stable bool) committed {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = stable
	one := kmsg.NewOffsetFetchRequestGroup()
	one.Group = group
	one.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, Partitions: []int32{0}}}
	req.Groups = append(req.Groups, one)
	g := sluicetest.Ask[*kmsg.OffsetFetchResponse](c, req, 8).Groups[0]
	if g.ErrorCode != none {
		return committed{-1, -1, g.ErrorCode}
	}
	p := g.Topics[0].Partitions[0]
	return committed{p.Offset, p.LeaderEpoch, p.ErrorCode}
}

// TestV13_PendingOffsets: offsets in a transaction count with its commit; who wants stable ones is told that they are not, meanwhile.
func TestV13_PendingOffsets(t *testing.T) {
	address := broker(t)
	bothVersions(t, func(t *testing.T, v txnVersions) {
		c := sluicetest.Dial(t, address)
		topic, group := fresh("v13"), fresh("v13")
		createTopic(t, c, topic, 1)
		waitForCoordinator(t, c, group)
		mustCommit(t, c, 8, commitRequest(group, topic, [16]byte{}, 10, -1))
		p := producerOf(t, address, fresh("v13"), v)
		p.timeoutMs = 5000
		p.mustInit()
		wantPending := func() {
			t.Helper()
			if got := offsetStable(c, group, topic, true); got.code != unstableOffsetCommit {
				t.Errorf("stable offset while pending: %+v", got)
			}
			if got := offsetStable(c, group, topic, false); got.code != none || got.offset != 10 {
				t.Errorf("offset while pending: %+v", got)
			}
		}
		wantStable := func(offset int64) {
			t.Helper()
			var got committed
			sluicetest.Until(t, 30*time.Second, "a stable offset", func() bool {
				got = offsetStable(c, group, topic, true)
				return got.code != unstableOffsetCommit
			})
			if got.code != none || got.offset != offset {
				t.Errorf("stable offset %+v, want %d", got, offset)
			}
		}
		p.commitOffset(group, topic, 20)
		wantPending()
		p.finish(false)
		wantStable(10)

		p.commitOffset(group, topic, 20)
		wantPending()
		// The producer is gone; its time is up in a few seconds.
		wantStable(10)

		p.mustInit()
		p.commitOffset(group, topic, 30)
		p.finish(true)
		wantStable(30)
		if code := p.commitOffsetAt(v.commit, "", topic, [16]byte{}, 1); code != invalidGroupID {
			t.Errorf("empty group id: error %d", code)
		}
	})
}

// TestV13_UnregisteredOffsets: without AddOffsetsToTxn a client of version 1 cannot leave offsets pending for ever.
func TestV13_UnregisteredOffsets(t *testing.T) {
	address := broker(t)
	c := sluicetest.Dial(t, address)
	topic, group := fresh("v13"), fresh("v13")
	createTopic(t, c, topic, 1)
	waitForCoordinator(t, c, group)
	p := initialized(t, address, fresh("v13"), txnV1)
	for version, want := range map[int16]int16{0: invalidTxnState, 3: invalidTxnState, 4: transactionAbortable} {
		if code := p.commitOffsetAt(version, group, topic, [16]byte{}, 1); code != want {
			t.Errorf("TxnOffsetCommit %d: error %d, want %d", version, code, want)
		}
	}
	if got := offsetStable(c, group, topic, true); got.code != none || got.offset != -1 {
		t.Errorf("%+v", got)
	}
}

// TestV14_Features: version 2 of transactions is finalized, and said so as clients expect.
func TestV14_Features(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	for _, version := range []int16{3, 4} {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "wire", "1"
		resp := sluicetest.Ask[*kmsg.ApiVersionsResponse](c, req, version)
		if resp.FinalizedFeaturesEpoch < 0 {
			t.Errorf("version %d: epoch %d", version, resp.FinalizedFeaturesEpoch)
		}
		finalized, supported := int16(-1), false
		for _, f := range resp.FinalizedFeatures {
			if f.Name == "transaction.version" {
				finalized = f.MaxVersionLevel
			}
		}
		for _, f := range resp.SupportedFeatures {
			supported = supported || f.Name == "transaction.version"
		}
		if finalized != 2 || supported != (version >= 4) {
			t.Errorf("version %d: finalized %d, supported %v: before 4 features that begin with 0 are left out", version, finalized, supported)
		}
	}
}

// TestV14_Version2: partitions and groups join a transaction as they are written to, each transaction has an epoch, and what comes late is refused.
func TestV14_Version2(t *testing.T) {
	address := broker(t)
	c := sluicetest.Dial(t, address)
	topic, group := fresh("v14"), fresh("v14")
	createTopic(t, c, topic, 2)
	waitForCoordinator(t, c, group)
	p := initialized(t, address, fresh("v14"), txnV2)
	id, epoch := p.id, p.epoch
	p.write(topic, 0, "a")
	p.commitOffset(group, topic, 7)
	if code := p.writeAt(12, topic, 1, 5, "no beginning"); code != outOfOrderSequence {
		t.Errorf("sequence 5 without state: error %d, want %d", code, outOfOrderSequence)
	}
	var ended *kmsg.EndTxnResponse
	p.patiently("EndTxn", func() int16 {
		ended = p.endAt(5, true)
		return ended.ErrorCode
	})
	if ended.ProducerID != id || ended.ProducerEpoch != epoch+1 {
		t.Fatalf("EndTxn: %+v, want %d/%d", ended, id, epoch+1)
	}
	committedEnd(t, c, topic, 0)
	p.patiently("EndTxn, sent again", func() int16 {
		again := p.endAt(5, true)
		if again.ErrorCode == none && (again.ProducerID != id || again.ProducerEpoch != epoch+1) {
			t.Errorf("EndTxn, sent again: %+v", again)
		}
		return again.ErrorCode
	})
	if code := p.endAt(5, false).ErrorCode; code != invalidTxnState {
		t.Errorf("abort of what was committed: error %d", code)
	}
	if code := p.writeAt(12, topic, 0, 1, "late"); code != invalidProducerEpoch {
		t.Errorf("a record of the finished epoch: error %d", code)
	}
	if code := p.writeAt(12, topic, 1, 0, "late"); code != invalidProducerEpoch {
		t.Errorf("a record of the finished epoch for another partition: error %d", code)
	}
	p.epoch = ended.ProducerEpoch
	p.sequences = map[string]int32{}
	if code := p.endAt(5, true).ErrorCode; code != invalidTxnState {
		t.Errorf("commit of nothing: error %d", code)
	}
	p.finish(false) // of nothing
	if p.epoch != epoch+2 {
		t.Errorf("epoch %d after the abort of nothing", p.epoch)
	}
	p.write(topic, 0, "b")
	p.finish(true)
	if committedEnd(t, c, topic, 0); fmt.Sprint(visible(t, c, topic, 0, 1)) != "[a b]" {
		t.Errorf("shown: %v", visible(t, c, topic, 0, 1))
	}
	if got := offsetStable(c, group, topic, true); got.offset != 7 {
		t.Errorf("%+v", got)
	}
}

// TestV14_Version1: clients of version 1 keep their epoch; what they did not register is refused, so that no transaction hangs.
func TestV14_Version1(t *testing.T) {
	address := broker(t)
	c := sluicetest.Dial(t, address)
	topic := fresh("v14")
	createTopic(t, c, topic, 2)
	p := initialized(t, address, fresh("v14"), txnV1)
	id, epoch := p.id, p.epoch
	if code := p.endAt(3, true).ErrorCode; code != invalidTxnState {
		t.Errorf("commit of nothing: error %d", code)
	}
	for version, want := range map[int16]int16{3: invalidTxnState, 9: invalidTxnState, 10: invalidTxnState, 11: transactionAbortable} {
		if code := p.writeAt(version, topic, 0, 0, "unregistered"); code != want {
			t.Errorf("Produce %d without AddPartitionsToTxn: error %d, want %d", version, code, want)
		}
	}
	codes := fmt.Sprint(p.addAt(3, topic, 0, 7)[0].ErrorCode, p.addAt(3, topic, 0, 7)[1].ErrorCode)
	if codes != fmt.Sprint(operationNotAttempted, unknownTopicOrPartition) && codes != fmt.Sprint(unknownTopicOrPartition, operationNotAttempted) {
		t.Errorf("a partition that does not exist: errors %s", codes)
	}
	for range 2 {
		p.write(topic, 0, "a")
		if code := p.writeAt(9, topic, 1, 0, "unregistered"); code != invalidTxnState {
			t.Errorf("Produce to a partition that was not added: error %d", code)
		}
		p.finish(true)
		end := committedEnd(t, c, topic, 0)
		if code := p.writeAt(9, topic, 0, p.sequences[fmt.Sprint(topic, 0)], "late"); code != invalidTxnState {
			t.Errorf("a record after the end: error %d", code)
		}
		if now := committedEnd(t, c, topic, 0); now != end {
			t.Errorf("the partition ends at %d, before %d", now, end)
		}
	}
	if p.id != id || p.epoch != epoch {
		t.Errorf("producer %d/%d, at first %d/%d", p.id, p.epoch, id, epoch)
	}
	if code := p.endAt(3, true).ErrorCode; code != none && code != concurrentTransactions {
		t.Errorf("EndTxn, sent again: error %d", code)
	}
	if code := p.endAt(3, false).ErrorCode; code != invalidTxnState {
		t.Errorf("abort of what was committed: error %d", code)
	}
	p.transactionalID = fresh("unknown")
	if code := p.endAt(3, true).ErrorCode; code != invalidProducerIDMapping {
		t.Errorf("EndTxn of an unknown id: error %d", code)
	}
	if code := p.writeAt(9, topic, 1, 0, "x"); code != invalidProducerIDMapping {
		t.Errorf("Produce of an unknown id: error %d", code)
	}
	if code := p.addAt(3, topic, 0)[0].ErrorCode; code != invalidProducerIDMapping {
		t.Errorf("AddPartitionsToTxn of an unknown id: error %d", code)
	}
}

// TestTransactions_Described: an administrator sees transactions, finds one that hangs, and ends it.
func TestTransactions_Described(t *testing.T) {
	address := broker(t)
	c := sluicetest.Dial(t, address)
	topic := fresh("described")
	createTopic(t, c, topic, 1)
	p := initialized(t, address, fresh("described"), txnV1)
	p.write(topic, 0, "a")

	describe := kmsg.NewPtrDescribeTransactionsRequest()
	describe.TransactionalIDs = []string{p.transactionalID, "", fresh("nobody")}
	described := sluicetest.Ask[*kmsg.DescribeTransactionsResponse](c, describe, 0).TransactionStates
	if d := described[0]; d.ErrorCode != none || d.State != "Ongoing" || d.ProducerID != p.id || d.ProducerEpoch != p.epoch || d.TimeoutMillis != p.timeoutMs ||
		d.StartTimestamp <= 0 || len(d.Topics) != 1 || d.Topics[0].Topic != topic || len(d.Topics[0].Partitions) != 1 {
		t.Errorf("%+v", d)
	}
	if described[1].ErrorCode != invalidRequest || described[2].ErrorCode != transactionalIDNotFound {
		t.Errorf("%+v", described[1:])
	}
	list := func(change func(*kmsg.ListTransactionsRequest)) *kmsg.ListTransactionsResponse {
		req := kmsg.NewPtrListTransactionsRequest()
		req.DurationFilterMillis = -1
		pattern := p.transactionalID[:len(p.transactionalID)-1] + "."
		req.TransactionalIDPattern = &pattern
		change(req)
		return sluicetest.Ask[*kmsg.ListTransactionsResponse](c, req, 2)
	}
	for _, test := range []struct {
		name   string
		change func(*kmsg.ListTransactionsRequest)
		listed int
	}{
		{"by pattern", func(*kmsg.ListTransactionsRequest) {}, 1},
		{"by state", func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Ongoing"} }, 1},
		{"by another state", func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Empty", "Dead"} }, 0},
		{"by producer", func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{p.id} }, 1},
		{"by another producer", func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{p.id + 1_000_000} }, 0},
		{"of an hour", func(r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = 3_600_000 }, 0},
	} {
		if resp := list(test.change); resp.ErrorCode != none || len(resp.TransactionStates) != test.listed {
			t.Errorf("%s: %+v", test.name, resp)
		}
	}
	if resp := list(func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Wrong"} }); len(resp.UnknownStateFilters) != 1 || len(resp.TransactionStates) != 0 {
		t.Errorf("unknown state: %+v", resp)
	}
	broken := "a)(b"
	if resp := list(func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = &broken }); resp.ErrorCode != invalidRegularExpression {
		t.Errorf("broken pattern: %+v", resp)
	}

	producers := kmsg.NewPtrDescribeProducersRequest()
	producers.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: []int32{0}}}
	active := sluicetest.Ask[*kmsg.DescribeProducersResponse](c, producers, 0).Topics[0].Partitions[0].ActiveProducers
	if len(active) != 1 || active[0].ProducerID != p.id || active[0].CurrentTxnStartOffset != 0 {
		t.Fatalf("%+v", active)
	}
	abort := kmsg.NewPtrWriteTxnMarkersRequest()
	marker := kmsg.NewWriteTxnMarkersRequestMarker()
	marker.ProducerID, marker.ProducerEpoch, marker.CoordinatorEpoch = p.id, p.epoch, active[0].CoordinatorEpoch
	marker.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: topic, Partitions: []int32{0, 9}}}
	abort.Markers = append(abort.Markers, marker)
	codes := map[int32]int16{}
	for _, r := range sluicetest.Ask[*kmsg.WriteTxnMarkersResponse](c, abort, 1).Markers[0].Topics[0].Partitions {
		codes[r.Partition] = r.ErrorCode
	}
	if codes[0] != none || codes[9] != unknownTopicOrPartition {
		t.Errorf("WriteTxnMarkers: errors %v", codes)
	}
	if end := stableEnd(c, topic, 0); end != 2 {
		t.Errorf("the last stable offset is %d", end)
	}
}

// TestTransactions_Pipelined: a producer's requests that are in flight at once are appended in their order, also when the first of them has to
// wait for the partition to join the transaction.
func TestTransactions_Pipelined(t *testing.T) {
	address := broker(t)
	c := sluicetest.Dial(t, address)
	topic := fresh("pipelined")
	createTopic(t, c, topic, 1)
	bothVersions(t, func(t *testing.T, v txnVersions) {
		p := initialized(t, address, fresh("pipelined"), v)
		for round := range 5 {
			if !v.v2 {
				p.patiently("AddPartitionsToTxn", func() int16 { return p.addAt(p.add, topic, 0)[0].ErrorCode })
			}
			key := fmt.Sprint(topic, 0)
			const inFlight = 5
			for i := range int32(inFlight) {
				o := record.BuilderOptions{
					ProducerID: record.ProducerID(p.id), ProducerEpoch: record.ProducerEpoch(p.epoch), BaseSequence: p.sequences[key] + i,
					Transactional: true, LeaderEpoch: record.NoLeaderEpoch,
				}
				req := produceRequest(-1, part{topic, 0, batch(t, o, values(time.Now().UnixMilli(), "x")...)})
				req.TransactionID = &p.transactionalID
				p.Send(req, v.produce)
			}
			last := int64(-1)
			for i := range inFlight {
				got := p.Receive().(*kmsg.ProduceResponse).Topics[0].Partitions[0]
				if got.ErrorCode != none || got.BaseOffset <= last {
					t.Fatalf("round %d, request %d: error %d, offset %d after %d", round, i, got.ErrorCode, got.BaseOffset, last)
				}
				last = got.BaseOffset
			}
			p.sequences[key] += inFlight
			p.finish(round%2 == 0)
			if !v.v2 {
				committedEnd(t, p.Raw, topic, 0) // the next batches of the same epoch must not meet the end of this transaction
			}
		}
	})
}

// TestTransactions_OverARestart: what is open stays open, what is decided is carried out, and times still run out.
func TestTransactions_OverARestart(t *testing.T) {
	b := own(t)
	for name, v := range map[string]txnVersions{"v1": txnV1, "v2": txnV2} {
		c := sluicetest.Dial(t, b.Address)
		topic, group := fresh("restart"), fresh("restart")
		createTopic(t, c, topic, 1)
		waitForCoordinator(t, c, group)
		p := initialized(t, b.Address, fresh("restart"), v)
		p.write(topic, 0, "aborted before")
		p.finish(false)
		p.write(topic, 0, "kept")
		p.commitOffset(group, topic, 5)
		left := producerOf(t, b.Address, fresh("left"), v)
		left.timeoutMs = 3000
		left.mustInit()
		left.write(topic, 0, "left behind")

		b.Kill()
		b.Launch()
		b.WaitReady()
		c, p.Raw = sluicetest.Dial(t, b.Address), sluicetest.Dial(t, b.Address)
		waitForCoordinator(t, c, group)
		if got := offsetStable(c, group, topic, true); got.code != unstableOffsetCommit {
			t.Errorf("%s: stable offset after the restart: %+v", name, got)
		}
		if got := fmt.Sprint(visible(t, c, topic, 0, 1)); got != "[]" {
			t.Errorf("%s: shown after the restart: %s", name, got)
		}
		p.write(topic, 0, "kept as well")
		p.finish(true)
		committedEnd(t, c, topic, 0)
		if got := fmt.Sprint(visible(t, c, topic, 0, 1)); got != "[kept kept as well]" {
			t.Errorf("%s: shown: %s", name, got)
		}
		if got := offsetStable(c, group, topic, true); got.code != none || got.offset != 5 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestTransactions_DeletedTopic: a topic that is deleted takes its part of a transaction with it, and the rest is carried out.
func TestTransactions_DeletedTopic(t *testing.T) {
	address := broker(t)
	bothVersions(t, func(t *testing.T, v txnVersions) {
		c := sluicetest.Dial(t, address)
		gone, stays := fresh("gone"), fresh("stays")
		createTopic(t, c, gone, 1)
		createTopic(t, c, stays, 1)
		p := initialized(t, address, fresh("deleted"), v)
		p.write(gone, 0, "a")
		p.write(stays, 0, "b")
		deleteTopic(t, c, gone)
		p.finish(true)
		committedEnd(t, c, stays, 0)
		if got := fmt.Sprint(visible(t, c, stays, 0, 1)); got != "[b]" {
			t.Errorf("shown: %s", got)
		}
		p.write(stays, 0, "c")
		p.finish(true)
	})
}

// TestTransactions_InternalTopics: a client cannot make a coordinator's log part of its transaction.
func TestTransactions_InternalTopics(t *testing.T) {
	p := initialized(t, broker(t), fresh("internal"), txnV1)
	if code := p.addAt(3, "__transaction_state", 0)[0].ErrorCode; code != topicAuthorizationFailed {
		t.Errorf("error %d, want %d", code, topicAuthorizationFailed)
	}
}
