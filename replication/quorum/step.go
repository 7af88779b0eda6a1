package quorum

import (
	"errors"
	"fmt"

	"sluice/internal/assert"
	"sluice/protocol/record"
)

// ErrNotLeader is what a proposal to a replica that does not lead gets.
var ErrNotLeader = errors.New("not the leader of the quorum")

// Propose appends count records to the log of the leader of that epoch and returns the offset of the first. They are committed once the high
// watermark has passed them.
func (c *Core) Propose(epoch record.LeaderEpoch, count int64, payload any) (baseOffset int64, err error) {
	assert.That(count > 0, "proposal of %d records", count)
	l, ok := c.role.(*leader)
	if !ok || epoch != c.epoch {
		return 0, fmt.Errorf("%w: epoch %d, role %s in epoch %d", ErrNotLeader, epoch, c.role.kind(), c.epoch)
	}
	return l.append(c, Batch{Count: count, Payload: payload}), nil
}

// Persisted tells that the log is durable up to end, exclusive.
func (c *Core) Persisted(end int64) {
	assert.That(end <= c.log.end, "persisted up to %d of a log that ends at %d", end, c.log.end)
	c.persistedEnd = max(c.persistedEnd, end)
	switch r := c.role.(type) {
	case *leader:
		r.advance(c)
	case *follower:
		r.fetch(c)
	}
}

// Resign gives leadership up: the replica will not lead again in this epoch.
func (c *Core) Resign() {
	if l, ok := c.role.(*leader); ok {
		l.resign(c)
	}
}

// Step takes a message from another replica. What does not make sense is refused or ignored; no message is trusted to be well-formed.
func (c *Core) Step(from NodeID, m Message) error {
	if from == c.config.ID {
		return fmt.Errorf("message %T from the replica's own id %d", m, from)
	}
	switch m := m.(type) {
	case VoteRequest:
		c.send(from, c.vote(from, m))
	case BeginQuorumEpochRequest:
		c.send(from, BeginQuorumEpochResponse{c.known(c.begin(from, m))})
	case EndQuorumEpochRequest:
		c.send(from, EndQuorumEpochResponse{c.known(c.end(from, m))})
	case FetchRequest:
		c.fetchRequest(from, m)
	case VoteResponse:
		return c.response(from, m.Known, func() { c.voteResponse(from, m) })
	case BeginQuorumEpochResponse:
		return c.response(from, m.Known, func() {}) // it shows in the fetches that follow
	case EndQuorumEpochResponse:
		return c.response(from, m.Known, func() {
			if r, ok := c.role.(*resigned); ok {
				r.acknowledged(from)
			}
		})
	case FetchResponse:
		var err error
		return errors.Join(c.response(from, m.Known, func() { err = c.fetchResponse(from, m) }), err)
	default:
		return fmt.Errorf("unknown message %T from replica %d", m, from)
	}
	return nil
}

func (c *Core) vote(from NodeID, m VoteRequest) VoteResponse {
	illegalEpoch := m.LastEpoch >= m.Epoch
	if m.PreVote {
		illegalEpoch = m.LastEpoch > m.Epoch
	}
	if m.EndOffset < 0 || m.LastEpoch < 0 || illegalEpoch {
		return VoteResponse{Known: c.known(InvalidRequest)}
	}
	if e := c.voterRequest(from, m.Epoch); e != NoError {
		return VoteResponse{Known: c.known(e)}
	}
	if m.Epoch > c.epoch {
		c.becomeUnattached(m.Epoch, NoNode)
	}
	granted := c.role.grants(c, from, c.log.upToDate(m.LastEpoch, m.EndOffset), m.PreVote)
	if granted && !m.PreVote && c.votedID == NoNode {
		c.votedID = from
		if u, ok := c.role.(*unattached); ok {
			u.deadline = c.nowMs + c.electionTimeoutMs()
		}
	}
	return VoteResponse{Known: c.known(NoError), Granted: granted}
}

// voterRequest checks a request that only voters send and only voters answer.
func (c *Core) voterRequest(from NodeID, epoch record.LeaderEpoch) ErrorKind {
	switch {
	case epoch < c.epoch:
		return FencedLeaderEpoch
	case from < 0:
		return InvalidRequest
	case !c.voters.has(from):
		return InconsistentVoterSet
	}
	return NoError
}

func (c *Core) begin(from NodeID, m BeginQuorumEpochRequest) ErrorKind {
	if e := c.voterRequest(from, m.Epoch); e != NoError {
		return e
	}
	return c.follow(from, m.Epoch)
}

func (c *Core) end(from NodeID, m EndQuorumEpochRequest) ErrorKind {
	if e := c.voterRequest(from, m.Epoch); e != NoError {
		return e
	}
	if e := c.follow(from, m.Epoch); e != NoError {
		return e
	}
	if f, ok := c.role.(*follower); ok && c.leaderID == from {
		f.deadline = c.nowMs + c.successionBackoffMs(m.PreferredSuccessors)
	}
	return NoError
}

// follow takes note of the leader of an epoch that is not below the present one.
func (c *Core) follow(leaderID NodeID, epoch record.LeaderEpoch) ErrorKind {
	if epoch == c.epoch && c.leaderID != NoNode && leaderID != NoNode && c.leaderID != leaderID {
		return InvalidRequest // two leaders in one epoch: one of them is lying
	}
	switch {
	case leaderID == c.config.ID:
		if epoch > c.epoch {
			return InvalidRequest // this replica never led that epoch
		}
	case epoch > c.epoch && leaderID == NoNode:
		c.becomeUnattached(epoch, NoNode)
	case epoch > c.epoch, leaderID != NoNode && c.leaderID == NoNode:
		c.becomeFollower(epoch, leaderID)
	}
	return NoError
}

// response does what all responses have in common, then handle if the response belongs to the present epoch.
func (c *Core) response(from NodeID, k Known, handle func()) error {
	delete(c.requests, from)
	switch {
	case k.Epoch < c.epoch || k.Error == UnknownLeaderEpoch:
		return nil
	case k.Epoch > c.epoch || k.Error == FencedLeaderEpoch || k.Error == NotLeaderOrFollower:
		if e := c.follow(k.LeaderID, k.Epoch); e != NoError {
			return fmt.Errorf("replica %d says that %d leads epoch %d, which contradicts leader %d of epoch %d", from, k.LeaderID, k.Epoch, c.leaderID, c.epoch)
		}
		return nil
	case k.LeaderID != NoNode && c.leaderID == NoNode && k.LeaderID != c.config.ID:
		c.becomeFollower(k.Epoch, k.LeaderID)
	}
	if k.Error != NoError {
		return fmt.Errorf("replica %d refused a request in epoch %d: %s", from, k.Epoch, k.Error)
	}
	handle()
	return nil
}

// successionBackoffMs spreads the voters after a leader's farewell: the preferred one stands at once, each further one later.
func (c *Core) successionBackoffMs(successors []NodeID) int64 {
	position := len(successors)
	for i, id := range successors {
		if id == c.config.ID {
			position = i
			break
		}
	}
	switch {
	case position == 0 && len(successors) > 0:
		return 0
	case position >= len(successors):
		return c.config.BackoffMaxMs
	}
	base := c.config.BackoffMaxMs >> min(len(successors)-1, 62)
	return min(c.config.BackoffMaxMs, base<<min(position-1, 32))
}
