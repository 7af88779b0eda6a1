package diff

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// rule is one normalisation: a field of a response in which two brokers may differ, and how far.
type rule struct {
	// equal compares the values instead of the plain comparison.
	equal func(c *comparison, path, at string, k, s reflect.Value)
	// sortBy puts the elements of a list into an order of our own, by these fields.
	sortBy []string
	// merge puts the pieces of one topic together before that.
	merge bool
	// leaveOut takes elements out of a list.
	leaveOut func(e reflect.Value) bool
}

// laterInternalTopics are internal topics of coordinators that Sluice does not have yet; Apache Kafka creates them at the first request.
var laterInternalTopics = map[string]bool{"__share_group_state": true}

var (
	topicID      = rule{equal: renamed("topic id", [16]byte{})}
	memberID     = rule{equal: renamed("member id", "")}
	producerID   = rule{equal: renamed("producer id", int64(-1))}
	sessionID    = rule{equal: renamed("session id", int32(0))}
	port         = rule{equal: renamed("port", int32(-1), int32(0))}
	clusterID    = rule{equal: renamed("cluster id")}
	instant      = rule{equal: sameInstant}
	directory    = rule{equal: renamed("directory")}
	diskBytes    = rule{equal: bothPositive}
	batches      = rule{equal: sameBatches}
	counter      = rule{equal: bothPositive}
	notPendingID = rule{leaveOut: func(e reflect.Value) bool { return !servedBySluice(int16(e.FieldByName("ApiKey").Int())) }}
	notPending   = rule{leaveOut: func(e reflect.Value) bool { return pendingFeatures[textField("Name")(e)] != "" }, sortBy: []string{"Name"}}
)

// rules is THE list of normalisations, by the path of the field. Everything that is not here is compared exactly, the order of lists included.
var rules = map[string]rule{
	// Chosen at random or counted by each broker for itself.
	"MetadataResponse.Topics[].TopicID":                                            topicID,
	"MetadataResponse.ClusterID":                                                   clusterID,
	"CreateTopicsResponse.Topics[].TopicID":                                        topicID,
	"DeleteTopicsResponse.Topics[].TopicID":                                        topicID,
	"ProduceResponse.Topics[].TopicID":                                             topicID,
	"FetchResponse.Topics[].TopicID":                                               topicID,
	"OffsetCommitResponse.Topics[].TopicID":                                        topicID,
	"OffsetFetchResponse.Groups[].Topics[].TopicID":                                topicID,
	"DescribeTopicPartitionsResponse.Topics[].TopicID":                             topicID,
	"DescribeClusterResponse.ClusterID":                                            clusterID,
	"FetchResponse.SessionID":                                                      sessionID,
	"InitProducerIDResponse.ProducerID":                                            producerID,
	"DescribeTransactionsResponse.TransactionStates[].ProducerID":                  producerID,
	"DescribeTransactionsResponse.TransactionStates[].StartTimestamp":              instant,
	"ListTransactionsResponse.TransactionStates[].ProducerID":                      producerID,
	"TxnOffsetCommitResponse.Topics[].TopicID":                                     topicID,
	"EndTxnResponse.ProducerID":                                                    producerID,
	"DescribeProducersResponse.Topics[].Partitions[].ActiveProducers[].ProducerID": producerID,
	"FetchResponse.Topics[].Partitions[].AbortedTransactions[].ProducerID":         producerID,
	"JoinGroupResponse.MemberID":                                                   memberID,
	"JoinGroupResponse.LeaderID":                                                   memberID,
	"JoinGroupResponse.Members[].MemberID":                                         memberID,
	"DescribeGroupsResponse.Groups[].Members[].MemberID":                           memberID,
	"LeaveGroupResponse.Members[].MemberID":                                        memberID,
	"ProduceResponse.Topics[].Partitions[].LogAppendTime":                          instant,
	"ListOffsetsResponse.Topics[].Partitions[].Timestamp":                          instant,
	"FetchResponse.Topics[].Partitions[].RecordBatches":                            batches,

	// Where the two listen and keep their files.
	"MetadataResponse.Brokers[].Port":               port,
	"FindCoordinatorResponse.Port":                  port,
	"FindCoordinatorResponse.Coordinators[].Port":   port,
	"DescribeClusterResponse.Brokers[].Port":        port,
	"ProduceResponse.Brokers[].Port":                port,
	"FetchResponse.Brokers[].Port":                  port,
	"DescribeConfigsResponse.Resources[].Configs[]": {equal: sameConfig},
	"DescribeLogDirsResponse.Dirs[].Dir":            directory,
	"DescribeLogDirsResponse.Dirs[].TotalBytes":     diskBytes,
	"DescribeLogDirsResponse.Dirs[].UsableBytes":    diskBytes,

	// Apache Kafka takes these out of hash maps: no client can rely on the order.
	"MetadataResponse.Topics":                                         sorted("Topic", "TopicID"),
	"ProduceResponse.Topics":                                          {sortBy: []string{"Topic", "TopicID"}, merge: true},
	"ProduceResponse.Topics[].Partitions":                             sorted("Partition"),
	"ListTransactionsResponse.TransactionStates":                      sorted("TransactionalID"),
	"ListOffsetsResponse.Topics":                                      sorted("Topic"),
	"ListOffsetsResponse.Topics[].Partitions":                         sorted("Partition"),
	"DeleteRecordsResponse.Topics":                                    sorted("Topic"),
	"DeleteRecordsResponse.Topics[].Partitions":                       sorted("Partition"),
	"DescribeLogDirsResponse.Dirs[].Topics":                           sorted("Topic"),
	"DescribeLogDirsResponse.Dirs[].Topics[].Partitions":              sorted("Partition"),
	"DescribeConfigsResponse.Resources[].Configs":                     sorted("Name"),
	"CreateTopicsResponse.Topics":                                     sorted("Topic"),
	"CreateTopicsResponse.Topics[].Configs":                           sorted("Name"),
	"DeleteTopicsResponse.Topics":                                     sorted("Topic", "TopicID"),
	"CreatePartitionsResponse.Topics":                                 sorted("Topic"),
	"ListGroupsResponse.Groups":                                       sorted("Group"),
	"ListConfigResourcesResponse.ConfigResources":                     sorted("Type", "Name"),
	"JoinGroupResponse.Members":                                       sorted("MemberID", "ProtocolMetadata"),
	"DescribeGroupsResponse.Groups[].Members":                         sorted("MemberID", "ProtocolMetadata"),
	"OffsetFetchResponse.Topics":                                      sorted("Topic"),
	"OffsetFetchResponse.Topics[].Partitions":                         sorted("Partition"),
	"OffsetFetchResponse.Groups[].Topics":                             sorted("Topic", "TopicID"),
	"OffsetFetchResponse.Groups[].Topics[].Partitions":                sorted("Partition"),
	"DescribeProducersResponse.Topics[].Partitions[].ActiveProducers": sorted("ProducerID"),

	// Apache Kafka answers what it refuses at once before what its coordinators answer, or after what its replicas do, and the coordinators'
	// answers by the partition of __consumer_offsets that
	// each group is in.
	"FetchResponse.Topics":                     {sortBy: []string{"Topic", "TopicID"}, merge: true},
	"FetchResponse.Topics[].Partitions":        sorted("Partition"),
	"OffsetCommitResponse.Topics":              sorted("Topic", "TopicID"),
	"OffsetCommitResponse.Topics[].Partitions": sorted("Partition"),
	"OffsetDeleteResponse.Topics":              sorted("Topic"),
	"OffsetDeleteResponse.Topics[].Partitions": sorted("Partition"),
	"DescribeGroupsResponse.Groups":            sorted("Group"),
	"DeleteGroupsResponse.Groups":              sorted("Group"),

	"DescribeTransactionsResponse.TransactionStates[].Topics":              sorted("Topic"),
	"DescribeTransactionsResponse.TransactionStates[].Topics[].Partitions": {sortBy: []string{""}},
	"DescribeTransactionsResponse.TransactionStates":                       sorted("TransactionalID"),
	"AddPartitionsToTxnResponse.Topics":                                    sorted("Topic"),
	"AddPartitionsToTxnResponse.Topics[].Partitions":                       sorted("Partition"),
	"AddPartitionsToTxnResponse.Transactions[].Topics":                     sorted("Topic"),
	"AddPartitionsToTxnResponse.Transactions[].Topics[].Partitions":        sorted("Partition"),
	"WriteTxnMarkersResponse.Markers[].Topics":                             sorted("Topic"),
	"WriteTxnMarkersResponse.Markers[].Topics[].Partitions":                sorted("Partition"),
	"TxnOffsetCommitResponse.Topics":                                       sorted("Topic", "TopicID"),
	"TxnOffsetCommitResponse.Topics[].Partitions":                          sorted("Partition"),

	// What Sluice does not serve yet is in pending.md.
	"ApiVersionsResponse.ApiKeys":           notPendingID,
	"ApiVersionsResponse.SupportedFeatures": notPending,
	"ApiVersionsResponse.FinalizedFeatures": notPending,

	// The offset of the metadata log at which the features were seen: each broker has written records of its own.
	"ApiVersionsResponse.FinalizedFeaturesEpoch": counter,
}

func sorted(fields ...string) rule { return rule{sortBy: fields} }

func textField(name string) func(reflect.Value) string {
	return func(e reflect.Value) string {
		f := e.FieldByName(name)
		if f.Kind() == reflect.Pointer {
			if f.IsNil() {
				return ""
			}
			f = f.Elem()
		}
		return f.String()
	}
}

// bothPositive compares sizes of disks: both absent, or both there.
func bothPositive(c *comparison, path, at string, k, s reflect.Value) {
	if (k.Int() > 0) != (s.Int() > 0) || k.Int() <= 0 && k.Int() != s.Int() {
		c.differ(path, at, show(k), show(s))
	}
}

// placeConfigs are configs whose values say where a broker listens and keeps its files.
var placeConfigs = map[string]bool{"listeners": true, "advertised.listeners": true, "controller.quorum.voters": true, "log.dirs": true}

// sameConfig compares a described config: all of it, but for where the broker is.
func sameConfig(c *comparison, path, at string, k, s reflect.Value) {
	if placeConfigs[k.FieldByName("Name").String()] {
		k, s = without(k), without(s)
	}
	c.fields(path, at, k, s)
}

// without is a described config without its values.
func without(v reflect.Value) reflect.Value {
	config := v.Interface().(kmsg.DescribeConfigsResponseResourceConfig)
	config.Value = nil
	config.ConfigSynonyms = slices.Clone(config.ConfigSynonyms)
	for i := range config.ConfigSynonyms {
		config.ConfigSynonyms[i].Value = nil
	}
	return reflect.ValueOf(&config).Elem()
}

// recordBatch is a batch as it is compared: the header's fields, whether the checksum is right, and the records as they are.
type recordBatch struct {
	FirstOffset                  int64
	Length                       int32
	PartitionLeaderEpoch         int32
	Magic                        int8
	ValidCRC                     bool
	Attributes                   int16
	LastOffsetDelta              int32
	FirstTimestamp, MaxTimestamp int64
	ProducerID                   int64
	ProducerEpoch                int16
	FirstSequence, NumRecords    int32
	Records                      []byte
}

// logAppendTime is the bit of a batch's attributes that says who stamped it.
const logAppendTime = 1 << 3

// controlBatch is the bit of a batch's attributes that says that it holds markers.
const controlBatch = 1 << 5

// sameBatches compares the batches of two fetched partitions one by one. With log append time, the time is the broker's own.
func sameBatches(c *comparison, path, at string, k, s reflect.Value) {
	kb, kRest := splitBatches(k.Bytes())
	sb, sRest := splitBatches(s.Bytes())
	if !bytes.Equal(kRest, sRest) || len(kb) != len(sb) || k.IsNil() != s.IsNil() {
		c.differ(path, at, fmt.Sprintf("%d batches and %d bytes: %s", len(kb), len(kRest), show(k)), fmt.Sprintf("%d batches and %d bytes: %s", len(sb), len(sRest), show(s)))
		return
	}
	for i := range kb {
		if kb[i].Attributes&sb[i].Attributes&logAppendTime != 0 {
			sameInstant(c, path+".MaxTimestamp", at, reflect.ValueOf(kb[i].MaxTimestamp), reflect.ValueOf(sb[i].MaxTimestamp))
			kb[i].MaxTimestamp, sb[i].MaxTimestamp = 0, 0
		}
		// Markers have the time at which their coordinator wrote them.
		if kb[i].Attributes&sb[i].Attributes&controlBatch != 0 {
			sameInstant(c, path+".FirstTimestamp", at, reflect.ValueOf(kb[i].FirstTimestamp), reflect.ValueOf(sb[i].FirstTimestamp))
			sameInstant(c, path+".MaxTimestamp", at, reflect.ValueOf(kb[i].MaxTimestamp), reflect.ValueOf(sb[i].MaxTimestamp))
			kb[i].FirstTimestamp, sb[i].FirstTimestamp, kb[i].MaxTimestamp, sb[i].MaxTimestamp = 0, 0, 0, 0
		}
		producerID.equal(c, path+".ProducerID", at, reflect.ValueOf(kb[i].ProducerID), reflect.ValueOf(sb[i].ProducerID))
		kb[i].ProducerID, sb[i].ProducerID = 0, 0
		c.walk(path+".batch", at+".batch["+strconv.Itoa(i)+"]", reflect.ValueOf(kb[i]), reflect.ValueOf(sb[i]))
	}
}

// splitBatches gives the whole batches, and the beginning of one that the limits have cut.
func splitBatches(b []byte) (batches []recordBatch, rest []byte) {
	for len(b) >= 12 {
		size := int64(int32(binary.BigEndian.Uint32(b[8:]))) + 12
		if size < 61 || size > int64(len(b)) {
			break
		}
		one := b[:size]
		var parsed kmsg.RecordBatch
		if parsed.ReadFrom(one) != nil {
			break
		}
		b = b[size:]
		batches = append(batches, recordBatch{
			parsed.FirstOffset, parsed.Length, parsed.PartitionLeaderEpoch, parsed.Magic,
			crc32.Checksum(one[21:], crc32.MakeTable(crc32.Castagnoli)) == uint32(parsed.CRC),
			parsed.Attributes, parsed.LastOffsetDelta, parsed.FirstTimestamp, parsed.MaxTimestamp,
			parsed.ProducerID, parsed.ProducerEpoch, parsed.FirstSequence, parsed.NumRecords, bytes.Clone(parsed.Records),
		})
	}
	return batches, b
}
