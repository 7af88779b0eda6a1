package api

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/config"
	"sluice/broker/delayed"
	"sluice/broker/metrics"
	"sluice/protocol/compress"
	"sluice/protocol/record"
	"sluice/protocol/uuid"
	"sluice/replication/metadata"
	"sluice/replication/partition"
	"sluice/storage/partlog"
)

// Produce, versions 3 to 13; ApiVersions names 0 as the lowest, as Apache Kafka does, because librdkafka drops compression otherwise.
//
//	3   record batches of format 2 only, transactional id
//	5   log start offset in the answer
//	7   zstd
//	8   record errors and error message
//	9   flexible
//	10  leader and its address in the answer, where a client asked the wrong broker (KIP-951)
//	11  TRANSACTION_ABORTABLE (KIP-890)
//	12  partitions join a transaction with the first write (KIP-890, version 2 of transactions)
//	13  topic ids instead of names
//
// Each partition is validated in the connection's goroutine and then appended under the partition's writer. With acks=all the answer waits
// until the high watermark has passed the records; the next request of the connection does not wait for that. With acks=0 there is no
// answer, and an error closes the connection so that the client looks for the leader anew.
//
// A batch of a transaction that the partition has not open yet goes by the transaction's coordinator, see produce_transactional.go.
//
// Where we differ from Apache Kafka: records that are null are INVALID_RECORD, as empty ones are; Kafka never answers such a request.
//
// KIPs: 98, 110, 360, 467, 516, 890, 951.

// Replicas are the partitions that this broker holds.
type Replicas interface {
	// Get returns the replica of a partition. The error is a *partition.Unknown when there is no such partition, *partition.NotLeader when
	// this broker has no replica of it, *partition.StorageOffline.
	Get(topic string, index int32) (Replica, error)
	// LogDirs describes the log directories and what is in them.
	LogDirs() []partition.LogDir
	// SaveLogStartOffsets makes durable where logs start: what DeleteRecords has deleted does not come back after a crash.
	SaveLogStartOffsets()
}

// Replica is this broker's copy of one partition: what the handlers, each in its own file, need of it. See package replica for the methods.
type Replica interface {
	Serial() uint64 // names the replica as long as the process runs
	TopicID() uuid.UUID
	LogStartOffset() int64
	ReplicaWriter  // here
	MarkerAppender // markers.go
	ReplicaReader  // 01_fetch.go
	OffsetFinder   // 02_list_offsets.go
	RecordDeleter  // 21_delete_records.go
	EpochFinder    // 23_offset_for_leader_epoch.go
	ProducerLister // 61_describe_producers.go
}

// ReplicaWriter is what Produce needs of a replica.
type ReplicaWriter interface {
	Append(b record.Batch, q partition.AppendQuery, origin partlog.Origin, nowMs int64) (partition.AppendResult, error)
	Committed(endOffset int64) (bool, error)
	// OpenTransaction says whether the producer, in that epoch, has a transaction open here. If not, asOf is for a record.Verification. An
	// epoch that is over is an error.
	OpenTransaction(id record.ProducerID, epoch record.ProducerEpoch) (open bool, asOf int64, err error)
}

// adminClient is the client id by which Kafka's own tools may write to internal topics.
const adminClient = "__admin_client"

func (h *Handlers) produce(c *Context, request *kmsg.ProduceRequest) Reply {
	nameOnce(request)
	p := &produceCall{handlers: h, context: c, request: request, response: newProduceResponse(request)}
	if refused := p.refusal(); refused != nil {
		p.refuseAll(refused)
		return p.reply()
	}
	for i := range request.Topics {
		p.topic(i)
	}
	if len(p.held) > 0 {
		return p.transactional()
	}
	if p.waits() {
		return p.park()
	}
	return p.reply()
}

// produceCall is one Produce request being served.
type produceCall struct {
	handlers *Handlers
	context  *Context
	request  *kmsg.ProduceRequest
	response *kmsg.ProduceResponse
	failed   bool
	held     []produceWrite // batches of transactions, which wait until all others are written
	uncommitted
}

// produceWrite is a validated batch on its way into a partition.
type produceWrite struct {
	replica      Replica
	topic        string
	batch        record.Batch
	answer       *kmsg.ProduceResponseTopicPartition
	traffic      *metrics.Topic
	verification record.Verification // of a batch of a transaction, as are:
	joining      joining
	err          error
}

func newProduceResponse(request *kmsg.ProduceRequest) *kmsg.ProduceResponse {
	response := kmsg.NewPtrProduceResponse()
	response.Topics = make([]kmsg.ProduceResponseTopic, len(request.Topics))
	count := 0
	for i := range request.Topics {
		count += len(request.Topics[i].Partitions)
	}
	partitions := make([]kmsg.ProduceResponseTopicPartition, count)
	for i := range request.Topics {
		asked, answered := &request.Topics[i], &response.Topics[i]
		answered.Topic, answered.TopicID = asked.Topic, asked.TopicID
		answered.Partitions, partitions = partitions[:len(asked.Partitions)], partitions[len(asked.Partitions):]
		for j := range asked.Partitions {
			a := &answered.Partitions[j]
			a.Default()
			a.Partition = asked.Partitions[j].Partition
			a.BaseOffset, a.LogAppendTime, a.LogStartOffset = record.NoOffset, record.NoTimestamp, record.NoOffset
		}
	}
	return response
}

// refusal is what is wrong with the request as a whole.
func (p *produceCall) refusal() error {
	for i := range p.request.Topics {
		for j := range p.request.Topics[i].Partitions {
			transactional, err := record.IsTransactional(p.request.Topics[i].Partitions[j].Records)
			if err != nil {
				return err
			}
			if transactional {
				if p.request.TransactionID == nil {
					return kerr.TransactionalIDAuthorizationFailed
				}
				return nil
			}
		}
	}
	return nil
}

// refuseAll answers for every partition with what is wrong with the request. Records that are corrupt in a way that is seen at this point come with
// the reason.
func (p *produceCall) refuseAll(err error) {
	var invalid *record.Invalid
	saysWhy := errors.As(err, &invalid) && invalid.Kind == record.KindCorrupt
	for i := range p.response.Topics {
		for j := range p.response.Topics[i].Partitions {
			a := &p.response.Topics[i].Partitions[j]
			p.fail(a, nil, err)
			if saysWhy {
				a.ErrorMessage = &invalid.Message
			}
		}
	}
}

// nameOnce leaves of every partition that the request names more than once what it says last, in the place where it is named first, and no topic
// without partitions.
func nameOnce(request *kmsg.ProduceRequest) {
	if !namesTwice(request) {
		return
	}
	type topicKey struct {
		name string
		id   uuid.UUID
	}
	type partitionKey struct {
		topic int
		index int32
	}
	var topics []kmsg.ProduceRequestTopic
	topicAt, partitionAt := map[topicKey]int{}, map[partitionKey]int{}
	for i := range request.Topics {
		t := &request.Topics[i]
		for _, q := range t.Partitions {
			key := topicKey{t.Topic, t.TopicID}
			n, ok := topicAt[key]
			if !ok {
				n = len(topics)
				topicAt[key] = n
				topics = append(topics, kmsg.ProduceRequestTopic{Topic: t.Topic, TopicID: t.TopicID})
			}
			at, ok := partitionAt[partitionKey{n, q.Partition}]
			if ok {
				topics[n].Partitions[at] = q
				continue
			}
			partitionAt[partitionKey{n, q.Partition}] = len(topics[n].Partitions)
			topics[n].Partitions = append(topics[n].Partitions, q)
		}
	}
	request.Topics = topics
}

// namesTwice says whether nameOnce could have something to do. It allocates nothing, and is quick for the few topics, and the partitions in ascending
// order, that clients send.
func namesTwice(request *kmsg.ProduceRequest) bool {
	const few = 32
	if len(request.Topics) > few {
		return true
	}
	for i := range request.Topics {
		t := &request.Topics[i]
		if len(t.Partitions) == 0 {
			return true
		}
		for j := range request.Topics[:i] {
			if earlier := &request.Topics[j]; earlier.Topic == t.Topic && earlier.TopicID == t.TopicID {
				return true
			}
		}
		for j := 1; j < len(t.Partitions); j++ {
			if t.Partitions[j].Partition <= t.Partitions[j-1].Partition {
				return true
			}
		}
	}
	return false
}

// topic appends what the request has for one topic.
func (p *produceCall) topic(i int) {
	asked, answered := &p.request.Topics[i], &p.response.Topics[i]
	name := asked.Topic
	if p.context.Version >= 13 {
		t, ok := p.handlers.Controller.Image().TopicByID(asked.TopicID)
		if !ok {
			for j := range answered.Partitions {
				p.fail(&answered.Partitions[j], nil, kerr.UnknownTopicID)
			}
			return
		}
		name = t.Name
	}
	settings := p.handlers.TopicConfig(name)
	traffic := p.handlers.Metrics.Topic(name)
	for j := range asked.Partitions {
		a := &answered.Partitions[j]
		replica, err := p.handlers.Replicas.Get(name, asked.Partitions[j].Partition)
		w := produceWrite{replica: replica, topic: name, answer: a, traffic: traffic}
		if err == nil {
			w.batch, err = p.validate(name, settings, asked.Partitions[j].Records)
		}
		switch {
		case err != nil:
			if !isOneBatch(asked.Partitions[j].Records) {
				replica = nil // Kafka looks at the form of a request before it looks at its partitions
			}
			p.fail(a, replica, err)
			traffic.ProduceFailed()
		case w.batch.IsTransactional():
			p.held = append(p.held, w)
		default:
			p.write(&w)
		}
	}
}

// validate holds the batch of one partition against the topic's settings.
func (p *produceCall) validate(name string, settings *config.Topic, records []byte) (record.Batch, error) {
	acks := p.request.Acks
	if isOneBatch(records) { // what is not, is told first
		switch {
		case acks != -1 && acks != 0 && acks != 1:
			return nil, kerr.InvalidRequiredAcks
		case isInternalTopic(name) && p.context.ClientID != adminClient:
			return nil, kerr.InvalidTopicException
		}
	}
	valid, err := record.Validate(records, rulesOf(settings, p.context))
	if err != nil {
		return nil, err
	}
	return valid.Batch, nil
}

// write appends a batch and answers for its partition.
func (p *produceCall) write(w *produceWrite) {
	const all = -1
	count, size := int(w.batch.Count()), len(w.batch)
	query := partition.AppendQuery{RequiredAcks: p.request.Acks, LeaderEpoch: record.NoLeaderEpoch, Verification: w.verification}
	result, err := w.replica.Append(w.batch, query, record.Client, p.context.NowMs)
	if err != nil {
		p.fail(w.answer, w.replica, err)
		w.traffic.ProduceFailed()
		return
	}
	w.answer.BaseOffset, w.answer.LogAppendTime, w.answer.LogStartOffset = result.BaseOffset, result.LogAppendTimeMs, result.LogStartOffset
	if p.request.Acks == all && result.HighWatermark <= result.LastOffset {
		p.await(w.replica, result.LastOffset+1, w.answer)
	}
	w.traffic.Produced(count, size)
}

// isOneBatch reports whether the records of a partition are one batch of the current format, as a Produce request must have them.
func isOneBatch(records []byte) bool {
	_, rest, err := record.Split(records)
	if err != nil || len(rest) == 0 {
		return err == nil
	}
	_, _, err = record.Split(rest)
	return err != nil
}

// rulesOf are the topic's settings that a client's batch is held against.
func rulesOf(t *config.Topic, c *Context) record.Rules {
	rules := record.Rules{
		BeforeMaxMs: t.MessageTimestampBeforeMaxMs, AfterMaxMs: t.MessageTimestampAfterMaxMs,
		Compacted: t.CleanupPolicyCompact, MaxMessageBytes: t.MaxMessageBytes,
		MaxRecordBytes: t.MaxDecompressedMessageBytes,
		NowMs:          c.NowMs, NoZstd: c.Version < 7, Origin: record.Client,
	}
	if t.MessageTimestampLogAppendTime {
		rules.TimestampType = record.LogAppendTime
	}
	switch t.CompressionType {
	case "uncompressed":
		rules.Compression = record.TargetCompression{Recompress: true, Codec: compress.None}
	case "gzip":
		rules.Compression = record.TargetCompression{Recompress: true, Codec: compress.Gzip, Level: t.CompressionGzipLevel}
	case "snappy":
		rules.Compression = record.TargetCompression{Recompress: true, Codec: compress.Snappy}
	case "lz4":
		rules.Compression = record.TargetCompression{Recompress: true, Codec: compress.Lz4, Level: t.CompressionLz4Level}
	case "zstd":
		rules.Compression = record.TargetCompression{Recompress: true, Codec: compress.Zstd, Level: t.CompressionZstdLevel}
	}
	return rules
}

// fail puts an error into one partition's answer. replica is nil when there is none.
func (p *produceCall) fail(a *kmsg.ProduceResponseTopicPartition, replica Replica, err error) {
	p.failed = true
	a.ErrorCode = p.context.code(err)
	if replica != nil && tellsLogStart(a.ErrorCode) {
		a.LogStartOffset = replica.LogStartOffset()
	}
	// Kafka tells records and message of what is wrong with single records, and nothing of other errors.
	var invalid *record.Invalid
	if errors.As(err, &invalid) && len(invalid.RecordErrors) > 0 {
		a.ErrorMessage = &invalid.Message
		a.ErrorRecords = make([]kmsg.ProduceResponseTopicPartitionErrorRecord, len(invalid.RecordErrors))
		for i := range invalid.RecordErrors {
			e := &invalid.RecordErrors[i]
			a.ErrorRecords[i].RelativeOffset, a.ErrorRecords[i].ErrorMessage = e.BatchIndex, &e.Message
		}
	}
	var notLeader *partition.NotLeader
	if errors.As(err, &notLeader) && p.context.Version >= 10 {
		a.CurrentLeader.LeaderID, a.CurrentLeader.LeaderEpoch = int32(notLeader.LeaderID), int32(notLeader.LeaderEpoch)
		p.response.Brokers = p.nameLeader(p.response.Brokers, notLeader.LeaderID)
	}
}

// tellsLogStart says for which errors Kafka fills in the log start offset: all that are not about the partition, its size limit or its storage.
func tellsLogStart(code int16) bool {
	switch code {
	case kerr.UnknownTopicOrPartition.Code, kerr.NotLeaderForPartition.Code, kerr.MessageTooLarge.Code, kerr.RecordListTooLarge.Code,
		kerr.CorruptMessage.Code, kerr.UnsupportedCompressionType.Code, kerr.KafkaStorageError.Code, kerr.InvalidRequiredAcks.Code, kerr.InvalidTopicException.Code,
		kerr.InvalidProducerIDMapping.Code:
		return false
	}
	return true
}

// nameLeader adds a leader's address to the list if it is known and not there yet.
func (p *produceCall) nameLeader(brokers []kmsg.ProduceResponseBroker, id partition.BrokerID) []kmsg.ProduceResponseBroker {
	for i := range brokers {
		if brokers[i].NodeID == int32(id) {
			return brokers
		}
	}
	endpoint, rack, ok := leaderAddress(p.handlers.Controller.Image(), p.context.Listener, id)
	if !ok {
		return brokers
	}
	return append(brokers, kmsg.ProduceResponseBroker{NodeID: int32(id), Host: endpoint.Host, Port: int32(endpoint.Port), Rack: rack})
}

// leaderAddress is where a broker can be reached by clients of a listener.
func leaderAddress(image *metadata.Image, listener string, id partition.BrokerID) (endpoint metadata.Endpoint, rack *string, ok bool) {
	broker, ok := image.Broker(metadata.BrokerID(id))
	if !ok || broker.Fenced {
		return endpoint, nil, false
	}
	endpoint, ok = broker.Endpoints[listener]
	if broker.Rack != "" {
		rack = &broker.Rack
	}
	return endpoint, rack, ok
}

func (p *produceCall) reply() Reply {
	if p.request.Acks != 0 {
		return Respond(p.response)
	}
	if p.failed {
		return Hangup("an error with acks=0")
	}
	return NoReply()
}

// uncommitted are the partitions of an acks=all Produce whose records are in the log and not committed yet. As an operation it waits until
// they are, or cannot be any more.
type uncommitted struct {
	waiting  []committing
	complete func()
}

type committing struct {
	replica   Replica
	endOffset int64 // exclusive
	answer    *kmsg.ProduceResponseTopicPartition
	settled   bool
}

func (p *produceCall) await(replica Replica, endOffset int64, a *kmsg.ProduceResponseTopicPartition) {
	p.waiting = append(p.waiting, committing{replica: replica, endOffset: endOffset, answer: a})
}

func (p *produceCall) waits() bool { return len(p.waiting) > 0 }

func (p *produceCall) park() Reply {
	p.context.Request.Release() // the records are in the log
	reply, complete := p.context.Pending()
	p.complete = func() { complete(p.response) }
	p.wait()
	return reply
}

// wait parks until the records are committed.
func (p *produceCall) wait() {
	keys := make([]delayed.Key, len(p.waiting))
	for i := range p.waiting {
		keys[i] = delayed.Key(p.waiting[i].replica.Serial())
	}
	p.handlers.Waiting.Park(p.context, p, keys, milliseconds(p.request.TimeoutMillis))
}

// Ready implements delayed.Operation.
func (p *produceCall) Ready(key delayed.Key) bool {
	open := 0
	for i := range p.waiting {
		w := &p.waiting[i]
		if w.settled {
			continue
		}
		if key != delayed.AnyKey && key != delayed.Key(w.replica.Serial()) {
			open++
			continue
		}
		done, err := w.replica.Committed(w.endOffset)
		switch {
		case err != nil:
			p.fail(w.answer, nil, err)
			w.settled = true
		case done:
			w.settled = true
		default:
			open++
		}
	}
	return open == 0
}

// Finish implements delayed.Operation. What is not committed in time is told so; it may still be.
func (p *produceCall) Finish(delayed.Outcome) {
	for i := range p.waiting {
		if w := &p.waiting[i]; !w.settled {
			p.fail(w.answer, nil, kerr.RequestTimedOut)
		}
	}
	p.complete()
}

// milliseconds is a time to wait as requests have it; below zero counts as zero.
func milliseconds(ms int32) time.Duration { return time.Duration(max(ms, 0)) * time.Millisecond }
