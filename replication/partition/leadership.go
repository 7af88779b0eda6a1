package partition

import (
	"slices"

	"sluice/internal/assert"
	"sluice/protocol/record"
)

// Registration is what the cluster's metadata says about one partition.
type Registration struct {
	Replicas, ISR, Adding, Removing []BrokerID
	Leader                          BrokerID // NoBroker when none
	LeaderEpoch                     record.LeaderEpoch
	Epoch                           Epoch
}

// State is one broker's view of a partition of which it holds a replica. It is not safe for concurrent use.
type State struct {
	local        BrokerID
	registration Registration
	// epochStartOffset is where the log ended when this broker became leader in the current leader epoch, -1 while it does not lead.
	// Until the high watermark has reached it, the leader does not know which of its records are committed.
	epochStartOffset int64
	// highWatermark never goes down while the log is not truncated.
	highWatermark int64
	followers     []follower // the other replicas, in the order of the assignment; kept by the leader only
}

// Change is what a new registration means for this broker.
type Change int8

const (
	// Stale: the registration is older than the one in force and was not taken.
	Stale Change = iota
	// Unchanged: leader and leader epoch are as before; the replicas in sync may differ.
	Unchanged
	// Leads: this broker leads from now on in a new leader epoch, which starts at the end of its log.
	Leads
	// Follows: another broker leads, or none, in a new leader epoch.
	Follows
)

// NewState is the state of a replica that has not seen a registration yet. The high watermark is the one that was saved last, put
// between the log's start and end.
func NewState(local BrokerID, savedHighWatermark, logStartOffset, logEndOffset int64) *State {
	return &State{
		local:            local,
		registration:     Registration{Leader: NoBroker, LeaderEpoch: record.NoLeaderEpoch, Epoch: -1},
		epochStartOffset: -1,
		highWatermark:    min(max(savedHighWatermark, logStartOffset), logEndOffset),
	}
}

// Register takes a registration. The high watermark may advance because of it: see AdvanceHighWatermark.
func (s *State) Register(r Registration, logEndOffset, nowMs int64) Change {
	if r.Epoch < s.registration.Epoch {
		return Stale
	}
	assert.That(r.LeaderEpoch >= s.registration.LeaderEpoch, "leader epoch went from %d back to %d", s.registration.LeaderEpoch, r.LeaderEpoch)
	ledBefore, newEpoch := s.Leads(), r.LeaderEpoch > s.registration.LeaderEpoch
	s.registration = r
	leads := s.Leads()
	if leads {
		s.assignFollowers(newEpoch, ledBefore, logEndOffset, nowMs)
	} else {
		s.followers, s.epochStartOffset = nil, -1
	}
	switch {
	case leads && newEpoch:
		s.epochStartOffset = logEndOffset
		return Leads
	case newEpoch || ledBefore && !leads:
		return Follows
	default:
		return Unchanged
	}
}

// Leads reports whether this broker leads the partition.
func (s *State) Leads() bool { return s.registration.Leader == s.local }

// Registration is the one in force; not to be modified.
func (s *State) Registration() Registration { return s.registration }

// EpochStartOffset is where the current leader epoch starts in the leader's log, -1 while this broker does not lead.
func (s *State) EpochStartOffset() int64 { return s.epochStartOffset }

// CheckAppend says whether the leader may append for q. minimum is the topic's min.insync.replicas.
func (s *State) CheckAppend(q AppendQuery, minimum int) error {
	if err := CheckLeader(s.local, s.registration.Leader, s.registration.LeaderEpoch, q.LeaderEpoch); err != nil {
		return err
	}
	if needed := s.effectiveMinimum(minimum); q.RequiredAcks == -1 && len(s.registration.ISR) < needed {
		return &NotEnoughReplicas{InSync: len(s.registration.ISR), Minimum: needed}
	}
	return nil
}

// CheckCommitted says whether an acks=all write that is below the high watermark is as safe as the topic asks for: replicas may have
// dropped out after the append.
func (s *State) CheckCommitted(minimum int) error {
	if !s.Leads() {
		return &NotLeader{LeaderID: s.registration.Leader, LeaderEpoch: s.registration.LeaderEpoch}
	}
	if needed := s.effectiveMinimum(minimum); len(s.registration.ISR) < needed {
		return &NotEnoughReplicas{InSync: len(s.registration.ISR), Minimum: needed, Appended: true}
	}
	return nil
}

// effectiveMinimum caps min.insync.replicas at the number of replicas, so that a topic of one replica can be written with a setting that
// was meant for three.
func (s *State) effectiveMinimum(minimum int) int { return min(minimum, len(s.registration.Replicas)) }

// CheckEpoch holds the leader epoch that an asker believes in (record.NoLeaderEpoch: any) against the current one.
func CheckEpoch(asked, current record.LeaderEpoch) error {
	switch {
	case asked == record.NoLeaderEpoch || asked == current:
		return nil
	case asked < current:
		return &FencedLeaderEpoch{Requested: asked, Current: current}
	default:
		return &UnknownLeaderEpoch{Requested: asked, Current: current}
	}
}

// CheckLeader is CheckEpoch, and then that the local broker leads.
func CheckLeader(local, leader BrokerID, current, asked record.LeaderEpoch) error {
	if err := CheckEpoch(asked, current); err != nil {
		return err
	}
	if leader != local {
		return &NotLeader{LeaderID: leader, LeaderEpoch: current}
	}
	return nil
}

// UnderReplicated reports whether this broker leads with fewer replicas in sync than are assigned; those that a reassignment adds do not count.
func (s *State) UnderReplicated() bool {
	return s.Leads() && len(s.registration.Replicas)-len(s.registration.Adding) > len(s.registration.ISR)
}

// UnderMinimum reports whether this broker leads with fewer replicas in sync than acks=all writes need.
func (s *State) UnderMinimum(minimum int) bool {
	return s.Leads() && len(s.registration.ISR) < s.effectiveMinimum(minimum)
}

func (s *State) inSync(id BrokerID) bool { return slices.Contains(s.registration.ISR, id) }
