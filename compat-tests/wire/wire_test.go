// Package wire sends requests at pinned versions, and bytes that are no requests, over plain connections, and checks the answers that
// Apache Kafka gives. Tests are named after the cases of public bug reports that they come from.
//
// WIRE_BOOTSTRAP=127.0.0.1:19092 runs them against a broker that runs already: against Apache Kafka they must pass too.
package wire

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
	"sluice/protocol/record"
)

// Error codes of Kafka that the tests name.
const (
	none                     int16 = 0
	offsetOutOfRange         int16 = 1
	corruptMessage           int16 = 2
	unknownTopicOrPartition  int16 = 3
	leaderNotAvailable       int16 = 5
	messageTooLarge          int16 = 10
	coordinatorLoading       int16 = 14
	coordinatorNotAvailable  int16 = 15
	notCoordinator           int16 = 16
	invalidTopic             int16 = 17
	illegalGeneration        int16 = 22
	inconsistentProtocol     int16 = 23
	invalidGroupID           int16 = 24
	unknownMemberID          int16 = 25
	invalidSessionTimeout    int16 = 26
	rebalanceInProgress      int16 = 27
	invalidTimestamp         int16 = 32
	unsupportedVersion       int16 = 35
	topicAlreadyExists       int16 = 36
	invalidPartitions        int16 = 37
	invalidReplicationFactor int16 = 38
	invalidReplicaAssignment int16 = 39
	invalidConfig            int16 = 40
	invalidRequest           int16 = 42
	outOfOrderSequence       int16 = 45
	invalidProducerEpoch     int16 = 47
	nonEmptyGroup            int16 = 68
	groupIDNotFound          int16 = 69
	fencedLeaderEpoch        int16 = 74
	unknownLeaderEpoch       int16 = 75
	memberIDRequired         int16 = 79
	fencedInstanceID         int16 = 82
	groupSubscribedToTopic   int16 = 86
	invalidRecord            int16 = 87
)

var shared struct {
	sync.Once
	*sluicetest.Process
}

// TestMain ends the broker that most tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if shared.Process != nil {
		shared.Kill()
	}
	os.Exit(code)
}

// broker is the address of a broker with default settings, shared by the tests.
func broker(t *testing.T) string {
	t.Helper()
	if address := os.Getenv("WIRE_BOOTSTRAP"); address != "" {
		return address
	}
	shared.Do(func() { shared.Process = sluicetest.StartShared(t) })
	if shared.Process == nil {
		t.Fatal("the shared broker did not start")
	}
	return shared.Address
}

// own starts a broker of the test's own, which is always ours.
func own(t *testing.T, args ...string) *sluicetest.Process {
	t.Helper()
	if os.Getenv("WIRE_BOOTSTRAP") != "" {
		t.Skip("SKIPPED: the test needs a broker with settings of its own")
	}
	return sluicetest.Start(t, args...)
}

// fresh is a name that nothing has yet.
func fresh(prefix string) string {
	suffix := make([]byte, 6)
	_, _ = rand.Read(suffix)
	return prefix + "-" + hex.EncodeToString(suffix)
}

// createTopic creates a topic with configs given as pairs, and returns its id once every partition has a leader.
func createTopic(t *testing.T, c *sluicetest.Raw, name string, partitions int32, configs ...string) [16]byte {
	t.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	for i := 0; i < len(configs); i += 2 {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = configs[i], &configs[i+1]
		topic.Configs = append(topic.Configs, config)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 10_000
	req.Topics = append(req.Topics, topic)
	resp := sluicetest.Ask[*kmsg.CreateTopicsResponse](c, req, 7)
	if code := resp.Topics[0].ErrorCode; code != none {
		t.Fatalf("create %s: error %d", name, code)
	}
	waitForLeaders(t, c, name)
	return resp.Topics[0].TopicID
}

func waitForLeaders(t *testing.T, c *sluicetest.Raw, name string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		resp := metadata(c, 12, false, name)
		ready := resp.Topics[0].ErrorCode == none
		for _, p := range resp.Topics[0].Partitions {
			// Apache Kafka's metadata can be a moment ahead of its replicas.
			ready = ready && p.ErrorCode == none && listOffset(c, name, p.Partition, latest).ErrorCode == none
		}
		if ready {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has no leaders: %+v", name, resp.Topics[0])
		}
	}
}

func metadata(c *sluicetest.Raw, version int16, create bool, topics ...string) *kmsg.MetadataResponse {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = create
	for i := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &topics[i]
		req.Topics = append(req.Topics, topic)
	}
	return sluicetest.Ask[*kmsg.MetadataResponse](c, req, version)
}

// batch builds a batch as a client would send it.
func batch(t *testing.T, o record.BuilderOptions, records ...record.Record) record.Batch {
	t.Helper()
	b := record.NewBuilder(o)
	for _, r := range records {
		b.Add(r)
	}
	built, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// plain are the options of a batch without a producer id.
func plain() record.BuilderOptions {
	return record.Unattributed()
}

func values(timestampMs int64, values ...string) []record.Record {
	var records []record.Record
	for _, v := range values {
		records = append(records, record.Record{TimestampMs: timestampMs, Key: []byte("k"), Value: []byte(v)})
	}
	return records
}

// part is the records for one partition in a Produce request.
type part struct {
	topic     string
	partition int32
	records   []byte
}

func produceRequest(acks int16, parts ...part) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 10_000
	for _, p := range parts {
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic = p.topic
		partition := kmsg.NewProduceRequestTopicPartition()
		partition.Partition, partition.Records = p.partition, p.records
		topic.Partitions = append(topic.Partitions, partition)
		req.Topics = append(req.Topics, topic)
	}
	return req
}

// produce sends one batch for one partition with acks=all, at version 9.
func produce(c *sluicetest.Raw, topic string, partition int32, records []byte) kmsg.ProduceResponseTopicPartition {
	resp := sluicetest.Ask[*kmsg.ProduceResponse](c, produceRequest(-1, part{topic, partition, records}), 9)
	return resp.Topics[0].Partitions[0]
}

// listOffset asks for the offset of one time in one partition, at version 7.
func listOffset(c *sluicetest.Raw, topic string, partition int32, timestampMs int64) kmsg.ListOffsetsResponseTopicPartition {
	return listOffsetEpoch(c, topic, partition, timestampMs, -1)
}

func listOffsetEpoch(c *sluicetest.Raw, topic string, partition int32, timestampMs int64, epoch int32) kmsg.ListOffsetsResponseTopicPartition {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	asked := kmsg.NewListOffsetsRequestTopicPartition()
	asked.Partition, asked.Timestamp, asked.CurrentLeaderEpoch = partition, timestampMs, epoch
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	t.Partitions = append(t.Partitions, asked)
	req.Topics = append(req.Topics, t)
	resp := sluicetest.Ask[*kmsg.ListOffsetsResponse](c, req, 7)
	return resp.Topics[0].Partitions[0]
}

const (
	latest   = int64(-1)
	earliest = int64(-2)
)

// fetchRequest asks for one partition from an offset on, without a session.
func fetchRequest(topic string, id [16]byte, partition int32, offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.ReplicaState.ID = -1, -1
	req.MaxBytes, req.MinBytes, req.MaxWaitMillis = 1<<20, 1, 500
	req.SessionID, req.SessionEpoch = 0, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic, id
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func fetch(c *sluicetest.Raw, topic string, partition int32, offset int64) kmsg.FetchResponseTopicPartition {
	resp := sluicetest.Ask[*kmsg.FetchResponse](c, fetchRequest(topic, [16]byte{}, partition, offset), 12)
	return resp.Topics[0].Partitions[0]
}
