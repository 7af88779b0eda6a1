package group

import (
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

// firstGroupNotFound is the version of OffsetCommit from which on a commit with a generation to an unknown group says so.
const firstGroupNotFound = 9

// CommitOffsets commits offsets of a member or, with generation -1 and no member id, of anyone as long as the group is empty. Topics
// carry name and id; that they exist is the caller's to check. The response has the topics and partitions of the request, in order.
func (m *Machine) CommitOffsets(nowMs int64, req *kmsg.OffsetCommitRequest) (*kmsg.OffsetCommitResponse, machine.Effects, error) {
	o := m.begin(nowMs)
	if err := o.validateCommit(req); err != nil {
		return nil, o.effects, err
	}
	expiresAtMs := int64(neverExpires)
	if req.RetentionTimeMillis != -1 {
		// Kept where the log can say it: above zero, and without overflow.
		expiresAtMs = max(nowMs+min(req.RetentionTimeMillis, math.MaxInt64-nowMs), 1)
	}
	resp := kmsg.NewPtrOffsetCommitResponse()
	resp.Topics = make([]kmsg.OffsetCommitResponseTopic, len(req.Topics))
	for i, t := range req.Topics {
		partitions := make([]kmsg.OffsetCommitResponseTopicPartition, len(t.Partitions))
		for j, p := range t.Partitions {
			partitions[j].Partition = p.Partition
			var metadata string
			if p.Metadata != nil {
				metadata = *p.Metadata
			}
			if len(metadata) > o.cfg.OffsetMetadataMaxSize && utf16Len(metadata) > o.cfg.OffsetMetadataMaxSize {
				partitions[j].ErrorCode = kerr.OffsetMetadataTooLarge.Code
				continue
			}
			leaderEpoch, topicID := p.LeaderEpoch, t.TopicID
			if leaderEpoch < 0 {
				leaderEpoch = noLeaderEpoch
			}
			if expiresAtMs != neverExpires {
				leaderEpoch, topicID = noLeaderEpoch, [16]byte{} // the version of the record that has an expiry has neither
			}
			o.effects.Records = append(o.effects.Records, &offsetRecord{
				group:     req.Group,
				topic:     t.Topic,
				partition: p.Partition,
				offset: &committedOffset{
					offset:        p.Offset,
					leaderEpoch:   leaderEpoch,
					metadata:      metadata,
					committedAtMs: nowMs,
					expiresAtMs:   expiresAtMs,
					topicID:       topicID,
				},
			})
		}
		resp.Topics[i] = kmsg.OffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID, Partitions: partitions}
	}
	return resp, o.effects, nil
}

// validateCommit fences commits that do not come from a member of this generation. Those of members keep their sessions alive.
func (o *op) validateCommit(req *kmsg.OffsetCommitRequest) error {
	g := o.groups[req.Group]
	if g == nil {
		switch {
		case req.Generation < 0:
			return nil // replaying the offsets makes the group
		case req.Version >= firstGroupNotFound:
			return kerr.GroupIDNotFound
		}
		return kerr.IllegalGeneration
	}
	if req.Generation < 0 && g.state == stateEmpty {
		return nil
	}
	if req.Generation < 0 && req.MemberID == "" && req.InstanceID == nil {
		if g.state != stateEmpty {
			return kerr.UnknownMemberID
		}
	} else {
		if err := g.validateMember(req.MemberID, req.InstanceID); err != nil {
			return err
		}
		if req.Generation != g.generation {
			return kerr.IllegalGeneration
		}
	}
	if g.state == stateCompletingRebalance {
		return kerr.RebalanceInProgress
	}
	if member := g.byID[req.MemberID]; member != nil {
		o.restartHeartbeat(member, member.sessionTimeoutMs)
	}
	return nil
}
