package api

import (
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// rows is THE list of APIs: what is here is dispatched, advertised by ApiVersions, fuzzed and listed in docs/APIS.md. The versions are
// inclusive and complete: a version that a handler does not serve whole is not in its row.
var rows = []row{
	//     key               min max  handler
	route(kmsg.Metadata, 0, 13, (*Handlers).metadata),
	route(kmsg.Produce, 3, 13, (*Handlers).produce).advertisedFrom(0),
	route(kmsg.Fetch, 4, 18, (*Handlers).fetch),
	route(kmsg.ListOffsets, 1, 11, (*Handlers).listOffsets),
	route(kmsg.OffsetCommit, 2, 10, (*Handlers).offsetCommit),
	route(kmsg.OffsetFetch, 1, 10, (*Handlers).offsetFetch),
	route(kmsg.FindCoordinator, 0, 6, (*Handlers).findCoordinator),
	route(kmsg.JoinGroup, 0, 9, (*Handlers).joinGroup),
	route(kmsg.Heartbeat, 0, 4, (*Handlers).heartbeat),
	route(kmsg.LeaveGroup, 0, 5, (*Handlers).leaveGroup),
	route(kmsg.SyncGroup, 0, 5, (*Handlers).syncGroup),
	route(kmsg.DescribeGroups, 0, 6, (*Handlers).describeGroups),
	route(kmsg.ListGroups, 0, 5, (*Handlers).listGroups),
	route(kmsg.DeleteRecords, 0, 2, (*Handlers).deleteRecords),
	route(kmsg.InitProducerID, 0, 5, (*Handlers).initProducerID),
	route(kmsg.AddPartitionsToTxn, 0, 5, (*Handlers).addPartitionsToTxn),
	route(kmsg.AddOffsetsToTxn, 0, 4, (*Handlers).addOffsetsToTxn),
	route(kmsg.EndTxn, 0, 5, (*Handlers).endTxn),
	route(kmsg.WriteTxnMarkers, 1, 2, (*Handlers).writeTxnMarkers),
	route(kmsg.TxnOffsetCommit, 0, 6, (*Handlers).txnOffsetCommit),
	route(kmsg.DescribeTransactions, 0, 0, (*Handlers).describeTransactions),
	route(kmsg.ListTransactions, 0, 2, (*Handlers).listTransactions),
	route(kmsg.OffsetForLeaderEpoch, 2, 4, (*Handlers).offsetForLeaderEpoch),
	route(kmsg.DescribeLogDirs, 1, 5, (*Handlers).describeLogDirs),
	route(kmsg.DescribeProducers, 0, 0, (*Handlers).describeProducers),
	route(kmsg.ApiVersions, 0, 5, (*Handlers).apiVersions),
	route(kmsg.CreateTopics, 2, 7, (*Handlers).createTopics),
	route(kmsg.DeleteTopics, 1, 6, (*Handlers).deleteTopics),
	route(kmsg.DescribeConfigs, 1, 4, (*Handlers).describeConfigs),
	route(kmsg.AlterConfigs, 0, 2, (*Handlers).alterConfigs),
	route(kmsg.CreatePartitions, 0, 3, (*Handlers).createPartitions),
	route(kmsg.DeleteGroups, 0, 3, (*Handlers).deleteGroups),
	route(kmsg.IncrementalAlterConfigs, 0, 1, (*Handlers).incrementalAlterConfigs),
	route(kmsg.OffsetDelete, 0, 0, (*Handlers).offsetDelete),
	route(kmsg.DescribeCluster, 0, 2, (*Handlers).describeCluster),
	route(kmsg.ListConfigResources, 0, 1, (*Handlers).listConfigResources),
	route(kmsg.DescribeTopicPartitions, 0, 0, (*Handlers).describeTopicPartitions),
}

// row is one API.
type row struct {
	key           int16
	name          string
	min, max      int16        // versions served, inclusive
	advertisedMin int16        // lowest version named by ApiVersions; below min only where Apache Kafka does the same
	request       reflect.Type // what the handler takes
	call          func(*Handlers, *Context, kmsg.Request) Reply
}

// route makes a row. The handler gets requests of its own type and of a version between min and max only.
func route[Q kmsg.Request](key kmsg.Key, min, max int16, handler func(*Handlers, *Context, Q) Reply) row {
	return row{
		key: int16(key), name: key.Name(), min: min, max: max, advertisedMin: min,
		request: reflect.TypeFor[Q](),
		call: func(h *Handlers, c *Context, request kmsg.Request) Reply {
			return handler(h, c, request.(Q))
		},
	}
}

// advertisedFrom lets ApiVersions name a lower version than is served.
func (r row) advertisedFrom(version int16) row {
	r.advertisedMin = version
	return r
}

// index finds rows by API key.
type index []*row

func indexRows(rows []row) index {
	table := make(index, kmsg.MaxKey+1)
	for i := range rows {
		table[rows[i].key] = &rows[i]
	}
	return table
}

// find returns nil for a key that has no row.
func (t index) find(key int16) *row {
	if key < 0 || int(key) >= len(t) {
		return nil
	}
	return t[key]
}
