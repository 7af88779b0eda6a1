package metadata

import (
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
)

// producerIDBlock is how many producer ids a broker gets at a time.
const producerIDBlock = 1000

// AllocateProducerIDs hands a block of producer ids to a broker. The response is a *kmsg.AllocateProducerIDsResponse.
func AllocateProducerIDs(req *kmsg.AllocateProducerIDsRequest) Op {
	return func(m *Machine, _ int64) (Result, error) {
		resp := req.ResponseKind().(*kmsg.AllocateProducerIDsResponse)
		first := max(m.next.nextProducerID, 0)
		if b, known := m.next.brokers.get(BrokerID(req.BrokerID)); !known || b.Epoch != BrokerEpoch(req.BrokerEpoch) {
			resp.ErrorCode = kerr.StaleBrokerEpoch.Code
			return Result{Response: resp}, nil
		}
		if first > math.MaxInt64-producerIDBlock {
			resp.ErrorCode = kerr.UnknownServerError.Code // all ids are used up
			return Result{Response: resp}, nil
		}
		resp.ProducerIDStart, resp.ProducerIDLen = first, producerIDBlock
		record := logrecord.NewProducerIDsRecord()
		record.BrokerID, record.BrokerEpoch, record.NextProducerID = req.BrokerID, req.BrokerEpoch, first+producerIDBlock
		return Result{Records: []logrecord.ClusterRecord{record}, Response: resp}, nil
	}
}

func (m *Machine) replayProducerIDs(r *logrecord.ProducerIDsRecord) error {
	if r.NextProducerID <= m.next.nextProducerID {
		return fmt.Errorf("next producer id %d is not above %d", r.NextProducerID, m.next.nextProducerID)
	}
	m.next.nextProducerID = r.NextProducerID
	return nil
}
