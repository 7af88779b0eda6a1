package metadata

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
)

// CreatePartitions adds partitions to topics. The response is a *kmsg.CreatePartitionsResponse with one answer a topic name, in the order of
// the request.
func CreatePartitions(req *kmsg.CreatePartitionsRequest) Op {
	return func(m *Machine, _ int64) (Result, error) {
		resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
		tooLarge := m.createPartitionsTooLarge(req)
		named := make(map[string]int, len(req.Topics))
		for i := range req.Topics {
			named[req.Topics[i].Topic]++
		}
		var records []logrecord.ClusterRecord
		for i := range req.Topics {
			in := &req.Topics[i]
			count := named[in.Topic]
			if count < 0 {
				continue // a double, answered at its first place
			}
			named[in.Topic] = -1
			out := kmsg.NewCreatePartitionsResponseTopic()
			out.Topic = in.Topic
			rejected := tooLarge
			if rejected == nil && count > 1 {
				rejected = reject(kerr.InvalidRequest, "Duplicate topic name.")
			}
			if rejected == nil {
				var created []logrecord.ClusterRecord
				created, rejected = m.createPartitions(in)
				records = append(records, created...)
			}
			if rejected != nil {
				out.ErrorCode, out.ErrorMessage = rejected.Code, rejected.message()
			}
			resp.Topics = append(resp.Topics, out)
		}
		switch {
		case len(records) > maxRecordsPerOp:
			return Result{}, errTooLarge
		case req.ValidateOnly:
			records = nil
		}
		return Result{Records: records, Response: resp}, nil
	}
}

func (m *Machine) createPartitionsTooLarge(req *kmsg.CreatePartitionsRequest) *Error {
	var total int64
	for i := range req.Topics {
		if t, found := m.next.topics.get(req.Topics[i].Topic); found {
			total += max(0, int64(req.Topics[i].Count)-int64(len(t.Partitions)))
		}
		if total > maxPartitionsPerOp {
			return reject(kerr.PolicyViolation, "Excessively large number of additional partitions per request.")
		}
	}
	return nil
}

func (m *Machine) createPartitions(in *kmsg.CreatePartitionsRequestTopic) ([]logrecord.ClusterRecord, *Error) {
	t, found := m.next.topics.get(in.Topic)
	if !found {
		return nil, &Error{Code: kerr.UnknownTopicOrPartition.Code}
	}
	now := int32(len(t.Partitions))
	switch {
	case now == 0:
		return nil, reject(kerr.UnknownServerError, "Invalid state: topic %s appears to have no partitions.", in.Topic)
	case in.Count == now:
		return nil, reject(kerr.InvalidPartitions, "Topic already has %d partition(s).", now)
	case in.Count < now:
		return nil, reject(kerr.InvalidPartitions, "The topic %s currently has %d partition(s); %d would not be an increase.", in.Topic, now, in.Count)
	}
	additional, factor := in.Count-now, len(t.Partitions[0].Replicas)
	if in.Assignment != nil && len(in.Assignment) != int(additional) {
		return nil, reject(kerr.InvalidReplicaAssignment, "Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", additional, len(in.Assignment))
	}
	var replicas [][]BrokerID
	if in.Assignment != nil {
		for i := range in.Assignment {
			chosen := ids[BrokerID](in.Assignment[i].Replicas)
			if rejected := m.checkAssignment(chosen, factor); rejected != nil {
				return nil, rejected
			}
			if len(m.next.activeOf(chosen)) == 0 {
				return nil, allInactive(now + int32(i))
			}
			replicas = append(replicas, chosen)
		}
	} else {
		var rejected *Error
		if replicas, rejected = m.place(int(additional), factor); rejected != nil {
			return nil, rejected
		}
	}
	records := make([]logrecord.ClusterRecord, 0, len(replicas))
	for i, r := range replicas {
		records = append(records, m.newPartition(t.ID, now+int32(i), r, m.next.activeOf(r)))
	}
	return records, nil
}
