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
	if err := o.validateCommit(committer{req.Group, req.MemberID, req.InstanceID, req.Generation}, req.Version >= firstGroupNotFound, false); err != nil {
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
			metadata, ok := o.metadata(p.Metadata)
			if !ok {
				partitions[j].ErrorCode = kerr.OffsetMetadataTooLarge.Code
				continue
			}
			leaderEpoch, topicID := p.LeaderEpoch, t.TopicID
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

// metadata is what a client wants to be kept beside an offset; false when it is too long.
func (o *op) metadata(m *string) (string, bool) {
	if m == nil {
		return "", true
	}
	return *m, len(*m) <= o.cfg.OffsetMetadataMaxSize || utf16Len(*m) <= o.cfg.OffsetMetadataMaxSize
}

// A committer is who commits offsets, as the request says.
type committer struct {
	group, memberID string
	instanceID      *string
	generation      int32
}

// validateCommit fences commits that do not come from a member of this generation. Those of members keep their sessions alive. In a transaction
// neither is the state of the group looked at nor has the session to do with it: who does not say of what generation it is is let in.
func (o *op) validateCommit(c committer, saysNotFound, transactional bool) error {
	g := o.groups[c.group]
	if g == nil {
		switch {
		case c.generation < 0:
			return nil // replaying the offsets makes the group
		case saysNotFound:
			return kerr.GroupIDNotFound
		}
		return kerr.IllegalGeneration
	}
	if c.generation < 0 && g.state == stateEmpty {
		return nil
	}
	if c.generation < 0 && c.memberID == "" && c.instanceID == nil {
		if !transactional && g.state != stateEmpty {
			return kerr.UnknownMemberID
		}
	} else {
		if err := g.validateMember(c.memberID, c.instanceID); err != nil {
			return err
		}
		if c.generation != g.generation {
			return kerr.IllegalGeneration
		}
	}
	if transactional {
		return nil
	}
	if g.state == stateCompletingRebalance {
		return kerr.RebalanceInProgress
	}
	if member := g.byID[c.memberID]; member != nil {
		o.restartHeartbeat(member, member.sessionTimeoutMs)
	}
	return nil
}
