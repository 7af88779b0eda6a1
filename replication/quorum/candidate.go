package quorum

// candidate has begun a new epoch, voted for itself, and asks the others for their votes.
type candidate struct {
	tally    tally
	deadline int64
}

func newCandidate(c *Core) *candidate {
	next := &candidate{newTally(c.voters), c.nowMs + c.electionTimeoutMs()}
	next.tally.record(c.config.ID, true)
	return next
}

func (c *Core) becomeCandidate() {
	c.leave()
	c.epoch++
	c.leaderID, c.votedID = NoNode, c.config.ID
	next := newCandidate(c)
	c.role = next
	next.advance(c)
}

func (d *candidate) advance(c *Core) {
	if d.tally.won() {
		c.becomeLeader(d.tally.granting())
		return
	}
	c.askForVotes(d.tally, false)
}

func (*candidate) kind() Role { return Candidate }

func (d *candidate) deadlineMs(c *Core) int64 { return c.electionDeadlineMs(d.tally, d.deadline) }

// tick: a lost election is waited out, so that its losers do not try again in lockstep.
func (d *candidate) tick(c *Core) {
	if c.nowMs >= d.deadline {
		c.becomeProspective()
		return
	}
	c.askForVotes(d.tally, false)
}

// grants: a candidate's own vote is given, but it may say that it would vote for another in the next epoch.
func (d *candidate) grants(_ *Core, _ NodeID, logUpToDate, preVote bool) bool {
	return preVote && logUpToDate
}
