// WriteTxnMarkers, versions 1 to 2.
//
//	1: flexible. 2: the version of transactions (KIP-1228).
//
// A coordinator has the end markers of transactions written by the leaders of their partitions, or an administrator ends a transaction that
// nobody else does (the abort command of Kafka's transactions tool). Offsets of groups take effect with the marker in their partition of
// __consumer_offsets.
//
// Differences from Apache Kafka: results are in the order of the request.
package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

func (h *Handlers) writeTxnMarkers(c *Context, request *kmsg.WriteTxnMarkersRequest) Reply {
	response := request.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	response.Markers = make([]kmsg.WriteTxnMarkersResponseMarker, len(request.Markers))
	count := 0
	for i, m := range request.Markers {
		result := &response.Markers[i]
		result.ProducerID = m.ProducerID
		result.Topics = make([]kmsg.WriteTxnMarkersResponseMarkerTopic, len(m.Topics))
		for j, t := range m.Topics {
			result.Topics[j].Topic = t.Topic
			result.Topics[j].Partitions = make([]kmsg.WriteTxnMarkersResponseMarkerTopicPartition, len(t.Partitions))
			count += len(t.Partitions)
		}
	}
	reply, complete := c.Pending()
	all := newCountdown(count, func() {
		response.Markers = answeredOnce(response.Markers)
		complete(response)
	})
	for i, m := range request.Markers {
		of := marker{
			producer:         machine.Producer{ID: m.ProducerID, Epoch: m.ProducerEpoch},
			coordinatorEpoch: m.CoordinatorEpoch,
			commit:           m.Committed,
			version:          int16(m.TransactionVersion),
		}
		for j, t := range m.Topics {
			for k, p := range t.Partitions {
				result := &response.Markers[i].Topics[j].Partitions[k]
				result.Partition = p
				if refused := refusedMarker(&m); refused != nil {
					result.ErrorCode = refused.Code
					all.done()
					continue
				}
				h.markers.write(of, t.Topic, p, func(err error) {
					result.ErrorCode = c.code(err)
					all.done()
				})
			}
		}
	}
	return reply
}

// refusedMarker is what is wrong with a marker whatever the partition holds: no producer, no epoch or no version, at which Kafka fails, or an epoch
// below none, which is behind every other.
func refusedMarker(m *kmsg.WriteTxnMarkersRequestMarker) *kerr.Error {
	switch {
	case m.ProducerID == -1 || m.ProducerEpoch == -1 || m.TransactionVersion == -1:
		return kerr.UnknownServerError
	case m.ProducerEpoch < -1:
		return kerr.InvalidProducerEpoch
	case m.CoordinatorEpoch < -1:
		return kerr.TransactionCoordinatorFenced
	}
	return nil
}

// answeredOnce leaves out markers for no partition, and those of a producer that has one before.
func answeredOnce(markers []kmsg.WriteTxnMarkersResponseMarker) []kmsg.WriteTxnMarkersResponseMarker {
	told := make(map[int64]bool, len(markers))
	return slices.DeleteFunc(markers, func(m kmsg.WriteTxnMarkersResponseMarker) bool {
		hasPartitions := slices.ContainsFunc(m.Topics, func(t kmsg.WriteTxnMarkersResponseMarkerTopic) bool { return len(t.Partitions) > 0 })
		if !hasPartitions || told[m.ProducerID] {
			return true
		}
		told[m.ProducerID] = true
		return false
	})
}
