package metadata

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
)

// ElectLeaders elects preferred or unclean leaders. The response is a *kmsg.ElectLeadersResponse.
func ElectLeaders(req *kmsg.ElectLeadersRequest) Op {
	return func(m *Machine, _ int64) (Result, error) {
		resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
		how := electPreferred
		switch req.ElectionType {
		case 0:
		case 1:
			how = electUnclean
		default:
			return Result{}, reject(kerr.InvalidRequest, "Unknown election type %d", req.ElectionType)
		}
		var records []logrecord.ClusterRecord
		answer := func(topic string, partitions []int32, all bool) {
			out := kmsg.NewElectLeadersResponseTopic()
			out.Topic = topic
			for _, p := range partitions {
				r, rejected := m.electLeader(topic, p, how)
				if r != nil {
					records = append(records, r)
				}
				if all && rejected != nil && rejected.Code == kerr.ElectionNotNeeded.Code {
					continue // who asks for all partitions hears of those that it is about
				}
				partition := kmsg.NewElectLeadersResponseTopicPartition()
				partition.Partition = p
				if rejected != nil {
					partition.ErrorCode, partition.ErrorMessage = rejected.Code, rejected.message()
				}
				out.Partitions = append(out.Partitions, partition)
			}
			resp.Topics = append(resp.Topics, out)
		}
		if req.Topics == nil {
			for name, t := range m.next.topics.all() {
				partitions := make([]int32, len(t.Partitions))
				for i := range partitions {
					partitions[i] = int32(i)
				}
				answer(name, partitions, true)
			}
		}
		for _, t := range req.Topics {
			answer(t.Topic, t.Partitions, false)
		}
		if len(records) > maxRecordsPerOp {
			return Result{}, errTooLarge
		}
		return Result{Records: records, Response: resp}, nil
	}
}

func (m *Machine) electLeader(topic string, index int32, how election) (logrecord.ClusterRecord, *Error) {
	t, found := m.next.topics.get(topic)
	if !found {
		return nil, reject(kerr.UnknownTopicOrPartition, "No such topic as %s", topic)
	}
	if index < 0 || int(index) >= len(t.Partitions) {
		return nil, reject(kerr.UnknownTopicOrPartition, "No such partition as %s-%d", topic, index)
	}
	p := &t.Partitions[index]
	if len(p.Replicas) == 0 {
		return nil, described(kerr.EligibleLeadersNotAvailable)
	}
	if how == electPreferred && p.Leader == p.Replicas[0] || how == electUnclean && p.Leader != NoBroker {
		return nil, described(kerr.ElectionNotNeeded)
	}
	b := m.newPartitionChange(t, index, m.mayLead(m.next.active))
	b.election = how
	if r := b.build(); r != nil {
		return r, nil
	}
	if how == electPreferred {
		return nil, described(kerr.PreferredLeaderNotAvailable)
	}
	return nil, described(kerr.EligibleLeadersNotAvailable)
}

// described is an error with the text that belongs to its code.
func described(code *kerr.Error) *Error { return &Error{code.Code, code.Description} }
