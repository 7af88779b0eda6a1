package diff

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"reflect"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// rule is one normalisation: a field of a response in which two brokers may differ, and how far.
type rule struct {
	// equal compares the values instead of the plain comparison.
	equal func(c *comparison, path, at string, k, s reflect.Value)
	// sortBy puts the elements of a list into an order of our own, where Apache Kafka's comes from a hash map.
	sortBy func(e reflect.Value) string
	// leaveOut takes elements out of a list.
	leaveOut func(e reflect.Value) bool
}

// laterInternalTopics are internal topics of coordinators that Sluice does not have yet; Apache Kafka creates them at the first request.
var laterInternalTopics = map[string]bool{"__transaction_state": true, "__share_group_state": true}

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
	byTopic      = rule{sortBy: textField("Topic")}
	byName       = rule{sortBy: textField("Name")}
	byGroup      = rule{sortBy: textField("Group")}
	counter      = rule{equal: bothPositive}
	notPendingID = rule{leaveOut: func(e reflect.Value) bool { return !servedBySluice(int16(e.FieldByName("ApiKey").Int())) }}
	notPending   = rule{leaveOut: func(e reflect.Value) bool { return pendingFeatures[textField("Name")(e)] != "" }, sortBy: textField("Name")}
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
	"DescribeProducersResponse.Topics[].Partitions[].ActiveProducers[].ProducerID": producerID,
	"FetchResponse.Topics[].Partitions[].AbortedTransactions[].ProducerID":         producerID,
	"JoinGroupResponse.MemberID":                                                   memberID,
	"JoinGroupResponse.LeaderID":                                                   memberID,
	"JoinGroupResponse.Members[].MemberID":                                         memberID,
	"DescribeGroupsResponse.Groups[].Members[].MemberID":                           memberID,
	"LeaveGroupResponse.Members[].MemberID":                                        memberID,
	"ProduceResponse.Topics[].Partitions[].LogAppendTime":                          instant,
	"FetchResponse.Topics[].Partitions[].RecordBatches":                            batches,

	// Where the two listen and keep their files.
	"MetadataResponse.Brokers[].Port":             port,
	"FindCoordinatorResponse.Port":                port,
	"FindCoordinatorResponse.Coordinators[].Port": port,
	"DescribeClusterResponse.Brokers[].Port":      port,
	"ProduceResponse.Brokers[].Port":              port,
	"FetchResponse.Brokers[].Port":                port,
	"DescribeLogDirsResponse.Dirs[].Dir":          directory,
	"DescribeLogDirsResponse.Dirs[].TotalBytes":   diskBytes,
	"DescribeLogDirsResponse.Dirs[].UsableBytes":  diskBytes,

	// Apache Kafka takes these out of hash maps: no client can rely on the order.
	"MetadataResponse.Topics":                            byTopic,
	"DescribeLogDirsResponse.Dirs[].Topics":              byTopic,
	"DescribeLogDirsResponse.Dirs[].Topics[].Partitions": {sortBy: numberField("Partition")},
	"DescribeConfigsResponse.Resources[].Configs":        byName,
	"CreateTopicsResponse.Topics[].Configs":              byName,
	"ListGroupsResponse.Groups":                          byGroup,

	// What Sluice does not serve yet is in pending.md.
	"ApiVersionsResponse.ApiKeys":           notPendingID,
	"ApiVersionsResponse.SupportedFeatures": notPending,
	"ApiVersionsResponse.FinalizedFeatures": notPending,

	// The offset of the metadata log at which the features were seen: each broker has written records of its own.
	"ApiVersionsResponse.FinalizedFeaturesEpoch": counter,
}

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

// numberField orders by a number: as text of one width.
func numberField(name string) func(reflect.Value) string {
	return func(e reflect.Value) string { return fmt.Sprintf("%020d", e.FieldByName(name).Int()) }
}

// bothPositive compares sizes of disks: both absent, or both there.
func bothPositive(c *comparison, path, at string, k, s reflect.Value) {
	if (k.Int() > 0) != (s.Int() > 0) || k.Int() <= 0 && k.Int() != s.Int() {
		c.differ(path, at, show(k), show(s))
	}
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

// sameBatches compares the batches of two fetched partitions one by one. With log append time, the time is the broker's own.
func sameBatches(c *comparison, path, at string, k, s reflect.Value) {
	kb, kErr := splitBatches(k.Bytes())
	sb, sErr := splitBatches(s.Bytes())
	if kErr != nil || sErr != nil || len(kb) != len(sb) || k.IsNil() != s.IsNil() {
		c.differ(path, at, fmt.Sprintf("%d batches, %v: %s", len(kb), kErr, show(k)), fmt.Sprintf("%d batches, %v: %s", len(sb), sErr, show(s)))
		return
	}
	for i := range kb {
		if kb[i].Attributes&sb[i].Attributes&logAppendTime != 0 {
			sameInstant(c, path+".MaxTimestamp", at, reflect.ValueOf(kb[i].MaxTimestamp), reflect.ValueOf(sb[i].MaxTimestamp))
			kb[i].MaxTimestamp, sb[i].MaxTimestamp = 0, 0
		}
		producerID.equal(c, path+".ProducerID", at, reflect.ValueOf(kb[i].ProducerID), reflect.ValueOf(sb[i].ProducerID))
		kb[i].ProducerID, sb[i].ProducerID = 0, 0
		c.walk(path+".batch", at+".batch["+strconv.Itoa(i)+"]", reflect.ValueOf(kb[i]), reflect.ValueOf(sb[i]))
	}
}

func splitBatches(b []byte) ([]recordBatch, error) {
	var batches []recordBatch
	for len(b) > 0 {
		if len(b) < 12 {
			return batches, fmt.Errorf("%d bytes after the last batch", len(b))
		}
		size := int64(int32(binary.BigEndian.Uint32(b[8:]))) + 12
		if size < 61 || size > int64(len(b)) {
			return batches, fmt.Errorf("a batch of %d bytes in %d", size, len(b))
		}
		one := b[:size]
		b = b[size:]
		var parsed kmsg.RecordBatch
		if err := parsed.ReadFrom(one); err != nil {
			return batches, err
		}
		batches = append(batches, recordBatch{
			parsed.FirstOffset, parsed.Length, parsed.PartitionLeaderEpoch, parsed.Magic,
			crc32.Checksum(one[21:], crc32.MakeTable(crc32.Castagnoli)) == uint32(parsed.CRC),
			parsed.Attributes, parsed.LastOffsetDelta, parsed.FirstTimestamp, parsed.MaxTimestamp,
			parsed.ProducerID, parsed.ProducerEpoch, parsed.FirstSequence, parsed.NumRecords, bytes.Clone(parsed.Records),
		})
	}
	return batches, nil
}
