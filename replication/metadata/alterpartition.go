package metadata

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
)

// AlterPartition is how a leader reports its ISR and that it has recovered from an unclean election. The response is a
// *kmsg.AlterPartitionResponse.
func AlterPartition(req *kmsg.AlterPartitionRequest) Op {
	return func(m *Machine, _ int64) (Result, error) {
		resp := req.ResponseKind().(*kmsg.AlterPartitionResponse)
		if b, known := m.next.brokers.get(BrokerID(req.BrokerID)); !known || b.Epoch != BrokerEpoch(req.BrokerEpoch) {
			resp.ErrorCode = kerr.StaleBrokerEpoch.Code
			return Result{Response: resp}, nil
		}
		var records []logrecord.ClusterRecord
		for _, in := range req.Topics {
			out := kmsg.NewAlterPartitionResponseTopic()
			out.TopidID = in.TopicID // the field is misspelt in kmsg
			t, known := m.next.topicIDs.get(keyOf(uuid.UUID(in.TopicID)))
			for i := range in.Partitions {
				answer := kmsg.NewAlterPartitionResponseTopicPartition()
				answer.Partition = in.Partitions[i].Partition
				if !known {
					answer.ErrorCode = kerr.UnknownTopicID.Code
				} else if r := m.alterPartition(BrokerID(req.BrokerID), t, &in.Partitions[i], &answer); r != nil {
					records = append(records, r)
				}
				out.Partitions = append(out.Partitions, answer)
			}
			resp.Topics = append(resp.Topics, out)
		}
		return Result{Records: records, Response: resp}, nil
	}
}

func (m *Machine) alterPartition(leader BrokerID, t *Topic, in *kmsg.AlterPartitionRequestTopicPartition, answer *kmsg.AlterPartitionResponseTopicPartition) logrecord.ClusterRecord {
	isr, epochs := proposedISR(in)
	if code := m.checkAlterPartition(leader, t, in, isr, epochs); code != nil {
		answer.ErrorCode = code.Code
		return nil
	}
	p := t.Partitions[in.Partition]
	b := m.newPartitionChange(t, in.Partition, m.mayLead(m.next.active))
	if m.uncleanElection(t.Name) {
		b.election = electUnclean
	}
	b.isr, b.recovering = isr, in.LeaderRecoveryState == recovering
	r := b.build()
	if r != nil {
		next, err := p.merge(r)
		if err != nil {
			answer.ErrorCode = kerr.UnknownServerError.Code
			return nil
		}
		p = next
		if r.Leader != logrecord.NoLeaderChange && BrokerID(r.Leader) != leader {
			answer.ErrorCode = kerr.NewLeaderElected.Code // the change completes a reassignment that the leader is not part of
			return r
		}
	}
	answer.LeaderID, answer.LeaderEpoch, answer.PartitionEpoch = int32(p.Leader), int32(p.LeaderEpoch), int32(p.PartitionEpoch)
	answer.ISR, answer.LeaderRecoveryState = ids[int32](p.ISR), recoveryState(p.Recovering)
	if r == nil {
		return nil
	}
	return r
}

// proposedISR reads both forms of the request; the older one knows no broker epochs.
func proposedISR(in *kmsg.AlterPartitionRequestTopicPartition) (isr []BrokerID, epochs []BrokerEpoch) {
	for _, id := range in.NewISR {
		isr, epochs = append(isr, BrokerID(id)), append(epochs, NoBrokerEpoch)
	}
	for _, e := range in.NewEpochISR {
		isr, epochs = append(isr, BrokerID(e.BrokerID)), append(epochs, BrokerEpoch(e.BrokerEpoch))
	}
	return isr, epochs
}

func (m *Machine) checkAlterPartition(leader BrokerID, t *Topic, in *kmsg.AlterPartitionRequestTopicPartition, isr []BrokerID, epochs []BrokerEpoch) *kerr.Error {
	if in.Partition < 0 || int(in.Partition) >= len(t.Partitions) {
		return kerr.UnknownTopicOrPartition
	}
	p := &t.Partitions[in.Partition]
	sorted := sortedIDs(isr)
	switch {
	case in.LeaderEpoch > int32(p.LeaderEpoch), in.PartitionEpoch > int32(p.PartitionEpoch):
		return kerr.NotController // the leader has heard from a controller that this one has not
	case in.LeaderEpoch < int32(p.LeaderEpoch):
		return kerr.FencedLeaderEpoch
	case leader != p.Leader:
		return kerr.InvalidRequest
	case in.PartitionEpoch < int32(p.PartitionEpoch):
		return kerr.InvalidUpdateVersion
	case len(isr) == 0 || len(slices.Compact(sorted)) != len(isr) || !containsAll(p.Replicas, isr) || !slices.Contains(isr, leader):
		return kerr.InvalidRequest
	case in.LeaderRecoveryState == recovering && (len(isr) > 1 || !p.Recovering):
		return kerr.InvalidRequest
	case in.LeaderRecoveryState != recovering && in.LeaderRecoveryState != recovered:
		return kerr.InvalidRequest
	}
	for i, id := range isr {
		b, known := m.next.brokers.get(id)
		if !known || b.Fenced || b.InControlledShutdown || epochs[i] != NoBrokerEpoch && epochs[i] != b.Epoch {
			return kerr.IneligibleReplica
		}
	}
	return nil
}
