package quorum

import (
	"fmt"
	"math"

	"sluice/internal/assert"
	"sluice/protocol/record"
)

// follower fetches from the leader of its epoch. A voter whose fetches go unanswered for too long stands for election.
type follower struct {
	deadline int64
	fetched  bool // the leader has answered a fetch in this epoch
}

func newFollower(c *Core) *follower {
	if !c.voters.has(c.config.ID) {
		return &follower{deadline: math.MaxInt64}
	}
	return &follower{deadline: c.nowMs + c.config.FetchTimeoutMs}
}

func (c *Core) becomeFollower(epoch record.LeaderEpoch, leaderID NodeID) {
	assert.That(leaderID != c.config.ID && leaderID != NoNode, "replica %d cannot follow %d", c.config.ID, leaderID)
	assert.That(epoch > c.epoch || epoch == c.epoch && c.role.kind() != Leader, "%s in epoch %d cannot follow in epoch %d", c.role.kind(), c.epoch, epoch)
	c.leave()
	if epoch > c.epoch {
		c.epoch, c.votedID = epoch, NoNode
	}
	c.leaderID = leaderID
	f := newFollower(c)
	c.role = f
	f.fetch(c)
}

// fetch asks for more once all that was received is durable, for the request itself says so to the leader.
func (f *follower) fetch(c *Core) {
	if c.persistedEnd < c.log.end {
		return
	}
	c.request(c.leaderID, FetchRequest{Epoch: c.epoch, Offset: c.log.end, LastFetchedEpoch: c.log.lastEpoch(), HighWatermark: c.highWatermark})
}

func (*follower) kind() Role { return Follower }

func (f *follower) deadlineMs(c *Core) int64 {
	if c.persistedEnd < c.log.end {
		return f.deadline
	}
	return min(f.deadline, c.retryMs(c.leaderID))
}

func (f *follower) tick(c *Core) {
	if c.nowMs >= f.deadline {
		c.becomeProspective()
		return
	}
	f.fetch(c)
}

// grants: a follower that has not reached its leader yet may tell another that it would vote for it.
func (f *follower) grants(_ *Core, _ NodeID, logUpToDate, preVote bool) bool {
	return preVote && !f.fetched && logUpToDate
}

// fetchResponse appends what the leader sent, or cuts the log where it parts from the leader's.
func (c *Core) fetchResponse(from NodeID, m FetchResponse) error {
	f, ok := c.role.(*follower)
	if !ok || from != c.leaderID {
		return nil
	}
	if d := m.Diverging; d != nil {
		if d.EndOffset < 0 || d.EndOffset < c.highWatermark {
			return fmt.Errorf("leader %d of epoch %d asks to truncate to offset %d, below the high watermark %d", from, c.epoch, d.EndOffset, c.highWatermark)
		}
		offset := d.EndOffset
		if epoch, end := c.log.endOffsetFor(d.Epoch); epoch == d.Epoch {
			offset = min(offset, end)
		} else {
			offset = end
		}
		if offset < c.highWatermark {
			return fmt.Errorf("leader %d of epoch %d parts from this log at offset %d, below the high watermark %d", from, c.epoch, offset, c.highWatermark)
		}
		c.log.truncate(offset)
		c.persistedEnd = min(c.persistedEnd, offset)
		c.ready.TruncateTo = offset
	}
	for _, b := range m.Batches {
		if !c.continues(b) {
			return fmt.Errorf("leader %d of epoch %d sent a batch at offset %d of epoch %d; the log ends at %d in epoch %d", from, c.epoch, b.BaseOffset, b.Epoch, c.log.end, c.log.lastEpoch())
		}
		c.log.append(b.Epoch, b.Count)
		c.ready.Append = append(c.ready.Append, b)
	}
	if m.HighWatermark > c.highWatermark {
		// The leader may know of more than this log has.
		c.highWatermark = max(c.highWatermark, min(m.HighWatermark, c.log.end))
	}
	f.fetched = true
	if f.deadline != math.MaxInt64 {
		f.deadline = c.nowMs + c.config.FetchTimeoutMs
	}
	f.fetch(c)
	return nil
}

// continues reports whether a batch is the next of the log, and of an epoch that the leader can have.
func (c *Core) continues(b Batch) bool {
	return b.Count > 0 && b.BaseOffset == c.log.end && b.Epoch >= c.log.lastEpoch() && b.Epoch <= c.epoch
}
