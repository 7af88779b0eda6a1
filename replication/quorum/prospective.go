package quorum

import "sluice/internal/assert"

// prospective asks the voters whether they would vote for it, without disturbing an epoch that others may be content with (KIP-996).
type prospective struct {
	tally    tally
	deadline int64
}

func (c *Core) becomeProspective() {
	assert.That(c.voters.has(c.config.ID), "observer %d cannot stand for election", c.config.ID)
	assert.That(c.role.kind() != Leader && c.role.kind() != Prospective, "%s cannot become prospective", c.role.kind())
	c.leave()
	p := &prospective{newTally(c.voters), c.nowMs + c.electionTimeoutMs()}
	p.tally.record(c.config.ID, true)
	c.role = p
	p.advance(c)
}

func (p *prospective) advance(c *Core) {
	if p.tally.won() {
		c.becomeCandidate()
		return
	}
	c.askForVotes(p.tally, true)
}

// askForVotes sends a vote request to each voter that has not answered.
func (c *Core) askForVotes(t tally, preVote bool) {
	if t.lost() {
		return
	}
	for _, id := range t.unanswered() {
		c.request(id, VoteRequest{Epoch: c.epoch, LastEpoch: c.log.lastEpoch(), EndOffset: c.log.end, PreVote: preVote})
	}
}

func (*prospective) kind() Role { return Prospective }

func (p *prospective) deadlineMs(c *Core) int64 { return c.electionDeadlineMs(p.tally, p.deadline) }

func (c *Core) electionDeadlineMs(t tally, deadline int64) int64 {
	for _, id := range t.unanswered() {
		if !t.lost() {
			deadline = min(deadline, c.retryMs(id))
		}
	}
	return deadline
}

func (p *prospective) tick(c *Core) {
	if c.nowMs >= p.deadline {
		p.fail(c)
		return
	}
	c.askForVotes(p.tally, true)
}

// fail goes back to the leader that the epoch has, if it is known.
func (p *prospective) fail(c *Core) {
	if c.leaderID != NoNode && c.leaderID != c.config.ID {
		c.becomeFollower(c.epoch, c.leaderID)
		return
	}
	c.becomeUnattached(c.epoch, c.leaderID)
}

func (p *prospective) grants(c *Core, from NodeID, logUpToDate, preVote bool) bool {
	return c.uncommittedGrants(from, logUpToDate, preVote)
}

func (c *Core) voteResponse(from NodeID, m VoteResponse) {
	switch r := c.role.(type) {
	case *prospective:
		r.tally.record(from, m.Granted)
		if r.tally.lost() {
			r.fail(c)
			return
		}
		r.advance(c)
	case *candidate:
		r.tally.record(from, m.Granted)
		r.advance(c)
	}
}
