package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// firstTransactionalNotFound is the version of TxnOffsetCommit from which on a commit with a generation to an unknown group says so.
const firstTransactionalNotFound = 6

// CommitTransactionalOffsets commits offsets that count once the producer's transaction is committed. Topics carry name and id; that they exist
// is the caller's to check, and so is what v says. The response has the topics and partitions of the request, in order.
func (m *Machine) CommitTransactionalOffsets(nowMs int64, req *kmsg.TxnOffsetCommitRequest, v record.Verification) (*kmsg.TxnOffsetCommitResponse, machine.Effects, error) {
	o := m.begin(nowMs)
	from := committer{req.Group, req.MemberID, req.InstanceID, req.Generation}
	if err := o.validateCommit(from, req.Version >= firstTransactionalNotFound, true); err != nil {
		return nil, o.effects, err
	}
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	resp.Topics = make([]kmsg.TxnOffsetCommitResponseTopic, len(req.Topics))
	for i, t := range req.Topics {
		partitions := make([]kmsg.TxnOffsetCommitResponseTopicPartition, len(t.Partitions))
		for j, p := range t.Partitions {
			partitions[j].Partition = p.Partition
			metadata, ok := o.metadata(p.Metadata)
			if !ok {
				partitions[j].ErrorCode = kerr.OffsetMetadataTooLarge.Code
				continue
			}
			o.effects.Records = append(o.effects.Records, &offsetRecord{
				group: req.Group, topic: t.Topic, partition: p.Partition,
				offset: &committedOffset{
					offset: p.Offset, leaderEpoch: max(p.LeaderEpoch, noLeaderEpoch), metadata: metadata,
					committedAtMs: nowMs, expiresAtMs: neverExpires, topicID: t.TopicID,
				},
			})
		}
		resp.Topics[i] = kmsg.TxnOffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID, Partitions: partitions}
	}
	if len(o.effects.Records) > 0 {
		o.effects.Transaction = &machine.Transaction{Producer: machine.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch}, Verification: v}
	}
	return resp, o.effects, nil
}
