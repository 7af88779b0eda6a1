package quorum

import "math"

// resigned was the leader of this epoch and will not be again. It tells the voters, and goes on in the next epoch when its time is up.
type resigned struct {
	successors []NodeID
	pending    map[NodeID]bool // voters that have not acknowledged
	deadline   int64
}

func newResigned(c *Core, successors []NodeID) *resigned {
	r := &resigned{successors: successors, pending: map[NodeID]bool{}, deadline: c.nowMs + c.electionTimeoutMs()}
	for _, id := range c.voters.ids {
		if id != c.config.ID {
			r.pending[id] = true
		}
	}
	if !c.voters.has(c.config.ID) {
		r.deadline = math.MaxInt64
	}
	return r
}

func (*resigned) kind() Role { return Resigned }

func (r *resigned) acknowledged(from NodeID) { delete(r.pending, from) }

func (r *resigned) deadlineMs(c *Core) int64 {
	at := r.deadline
	for id := range r.pending {
		at = min(at, c.retryMs(id))
	}
	return at
}

func (r *resigned) tick(c *Core) {
	if c.nowMs >= r.deadline {
		c.becomeUnattached(c.epoch+1, NoNode)
		return
	}
	for _, id := range sortedKeys(r.pending) {
		c.request(id, EndQuorumEpochRequest{Epoch: c.epoch, PreferredSuccessors: r.successors})
	}
}

// grants: it may tell another that it would vote for it in the next epoch.
func (r *resigned) grants(_ *Core, _ NodeID, logUpToDate, preVote bool) bool {
	return preVote && logUpToDate
}
