package quorum

import (
	"math"
	"slices"

	"sluice/internal/assert"
	"sluice/protocol/record"
)

// unattached is a replica that knows no leader of its epoch, or knows one that it cannot reach. A voter stands for election when its time is up.
type unattached struct{ deadline int64 }

func newUnattached(c *Core) *unattached {
	if !c.voters.has(c.config.ID) {
		return &unattached{math.MaxInt64}
	}
	return &unattached{c.nowMs + c.electionTimeoutMs()}
}

// becomeUnattached enters a new epoch, or leaves a lost pre-vote for the same one.
func (c *Core) becomeUnattached(epoch record.LeaderEpoch, leaderID NodeID) {
	assert.That(epoch > c.epoch || epoch == c.epoch && c.role.kind() == Prospective, "%s in epoch %d cannot become unattached in epoch %d", c.role.kind(), c.epoch, epoch)
	next := newUnattached(c)
	// A voter that was waiting already keeps its deadline: others' elections must not put off its own for ever.
	switch r := c.role.(type) {
	case *unattached:
		next.deadline = r.deadline
	case *candidate:
		next.deadline = r.deadline
	case *follower:
		next.deadline = r.deadline
	case *resigned:
		next.deadline = r.deadline
	}
	c.leave()
	if epoch > c.epoch {
		c.epoch, c.votedID = epoch, NoNode
	}
	c.leaderID = leaderID
	c.role = next
}

// leave ends the present role's dealings with its peers.
func (c *Core) leave() {
	if l, ok := c.role.(*leader); ok {
		l.refuseWaiting(c)
	}
	clear(c.requests)
}

func (*unattached) kind() Role { return Unattached }

func (u *unattached) deadlineMs(c *Core) int64 {
	if c.voters.only(c.config.ID) {
		return u.deadline
	}
	return min(u.deadline, c.nextRequestMs())
}

func (u *unattached) tick(c *Core) {
	if c.nowMs >= u.deadline {
		c.becomeProspective()
		return
	}
	u.lookForLeader(c)
}

// lookForLeader fetches from any voter: the answer says who leads. One voter is asked at a time.
func (u *unattached) lookForLeader(c *Core) {
	others := slices.DeleteFunc(slices.Clone(c.voters.ids), func(id NodeID) bool { return id == c.config.ID })
	if len(others) > 0 && c.nowMs >= c.nextRequestMs() {
		clear(c.requests)
		to := others[c.config.Random(int64(len(others)))]
		c.request(to, FetchRequest{Epoch: c.epoch, Offset: c.log.end, LastFetchedEpoch: c.log.lastEpoch(), HighWatermark: c.highWatermark})
	}
}

func (u *unattached) grants(c *Core, from NodeID, logUpToDate, preVote bool) bool {
	return c.uncommittedGrants(from, logUpToDate, preVote)
}

// uncommittedGrants is the rule of unattached and prospective replicas.
func (c *Core) uncommittedGrants(from NodeID, logUpToDate, preVote bool) bool {
	switch {
	case preVote:
		return logUpToDate
	case c.votedID != NoNode:
		return c.votedID == from
	case c.leaderID != NoNode:
		return false
	}
	return logUpToDate
}
