package quorum

import (
	"cmp"
	"math"
	"slices"
)

// leader appends, serves fetches, and moves the high watermark to what a majority of voters has made durable.
type leader struct {
	epochStart int64 // offset of the epoch's leader change record
	progress   map[NodeID]*progress
	waiting    map[NodeID]waitingFetch
	fetched    map[NodeID]bool // voters heard from since the quorum was last seen alive
	quorumMs   int64           // when the leader gives up unless a majority fetches before
	beginMs    int64           // when to remind voters that do not fetch
}

// progress is what is known of one other voter.
type progress struct {
	end       int64 // durable there up to here, exclusive; -1 unknown
	fetchedMs int64
}

// A waitingFetch is held back until there is something to answer.
type waitingFetch struct {
	request    FetchRequest
	deadlineMs int64
}

func (c *Core) becomeLeader(granting []NodeID) {
	c.leave()
	c.leaderID, c.votedID = c.config.ID, NoNode
	l := &leader{
		epochStart: c.log.end,
		progress:   map[NodeID]*progress{},
		waiting:    map[NodeID]waitingFetch{},
		fetched:    map[NodeID]bool{},
		quorumMs:   c.nowMs + c.checkQuorumMs(),
		beginMs:    c.nowMs,
	}
	for _, id := range c.voters.ids {
		if id != c.config.ID {
			l.progress[id] = &progress{end: -1, fetchedMs: math.MinInt64 / 2}
		}
	}
	c.role = l
	l.append(c, Batch{Count: 1, Leader: &LeaderChange{LeaderID: c.config.ID, Voters: c.voters.ids, Granting: granting}})
	l.tick(c)
}

// checkQuorumMs is how long a leader believes in a majority that it does not hear from.
func (c *Core) checkQuorumMs() int64 { return c.config.FetchTimeoutMs * 3 / 2 }

func (l *leader) append(c *Core, b Batch) (baseOffset int64) {
	b.Epoch = c.epoch
	b.BaseOffset = c.log.append(c.epoch, b.Count)
	c.ready.Append = append(c.ready.Append, b)
	l.answerWaiting(c)
	return b.BaseOffset
}

// advance moves the high watermark. A record counts as committed only once one of the leader's own epoch is, for a majority that has an
// older record may still lose it to a leader with a later epoch.
func (l *leader) advance(c *Core) {
	ends := make([]int64, 0, len(c.voters.ids))
	for _, id := range c.voters.ids {
		if p := l.progress[id]; p != nil {
			ends = append(ends, p.end)
		} else {
			ends = append(ends, c.persistedEnd) // its own
		}
	}
	slices.SortFunc(ends, func(a, b int64) int { return cmp.Compare(b, a) })
	end := ends[len(ends)/2]
	if end > l.epochStart && end > c.highWatermark {
		c.highWatermark = end
		l.answerWaiting(c)
	}
}

func (*leader) kind() Role { return Leader }

func (l *leader) grants(*Core, NodeID, bool, bool) bool { return false }

func (l *leader) deadlineMs(c *Core) int64 {
	if len(l.progress) == 0 {
		return math.MaxInt64
	}
	at := min(l.quorumMs, l.beginMs)
	for _, w := range l.waiting {
		at = min(at, w.deadlineMs)
	}
	return at
}

func (l *leader) tick(c *Core) {
	if len(l.progress) == 0 {
		return // a quorum of one has no one to lose
	}
	if c.nowMs >= l.quorumMs {
		l.resign(c)
		return
	}
	if c.nowMs >= l.beginMs {
		interval := c.config.FetchTimeoutMs / 2
		for _, id := range c.voters.ids {
			if p := l.progress[id]; p != nil && c.nowMs-p.fetchedMs >= interval {
				c.request(id, BeginQuorumEpochRequest{Epoch: c.epoch})
			}
		}
		l.beginMs = c.nowMs + interval
	}
	for _, id := range sortedKeys(l.waiting) {
		if w := l.waiting[id]; c.nowMs >= w.deadlineMs {
			delete(l.waiting, id)
			c.send(id, FetchResponse{Known: c.known(NoError), HighWatermark: c.highWatermark, ReadFrom: -1})
		}
	}
}

// resign ends leadership and tells the voters who should succeed: whoever has most of the log.
func (l *leader) resign(c *Core) {
	successors := sortedKeys(l.progress)
	slices.SortStableFunc(successors, func(a, b NodeID) int { return cmp.Compare(l.progress[b].end, l.progress[a].end) })
	c.leave()
	next := newResigned(c, successors)
	c.role = next
	next.tick(c)
}

// fetchRequest serves a follower.
func (c *Core) fetchRequest(from NodeID, m FetchRequest) {
	refuse := func(e ErrorKind) {
		c.send(from, FetchResponse{Known: c.known(e), HighWatermark: -1, ReadFrom: -1})
	}
	l, leads := c.role.(*leader)
	switch {
	case m.Offset < 0 || m.LastFetchedEpoch < 0 || m.LastFetchedEpoch > m.Epoch || from < 0:
		refuse(InvalidRequest)
	case m.Epoch < c.epoch:
		refuse(FencedLeaderEpoch)
	case m.Epoch > c.epoch:
		refuse(UnknownLeaderEpoch)
	case !leads:
		refuse(NotLeaderOrFollower)
	default:
		l.serve(c, from, m)
	}
}

func (l *leader) serve(c *Core, from NodeID, m FetchRequest) {
	if epoch, end := c.log.endOffsetFor(m.LastFetchedEpoch); m.Offset > 0 && (epoch != m.LastFetchedEpoch || end < m.Offset) {
		c.send(from, FetchResponse{Known: c.known(NoError), HighWatermark: c.highWatermark, Diverging: &EpochEnd{epoch, end}, ReadFrom: -1})
		return
	}
	if p := l.progress[from]; p != nil {
		p.end, p.fetchedMs = m.Offset, c.nowMs
		l.fetched[from] = true
		if len(l.fetched) >= c.voters.majority()-1 {
			clear(l.fetched)
			l.quorumMs = c.nowMs + c.checkQuorumMs()
		}
		l.advance(c)
	}
	w := waitingFetch{m, c.nowMs + c.config.FetchMaxWaitMs}
	if !l.answer(c, from, w) {
		l.waiting[from] = w
	}
}

// answer responds when there are records or a high watermark that the follower does not know.
func (l *leader) answer(c *Core, to NodeID, w waitingFetch) bool {
	r := FetchResponse{Known: c.known(NoError), HighWatermark: c.highWatermark, ReadFrom: -1}
	if w.request.Offset < c.log.end {
		r.ReadFrom = w.request.Offset
	} else if c.highWatermark <= w.request.HighWatermark {
		return false
	}
	c.send(to, r)
	return true
}

func (l *leader) answerWaiting(c *Core) {
	for _, id := range sortedKeys(l.waiting) {
		if l.answer(c, id, l.waiting[id]) {
			delete(l.waiting, id)
		}
	}
}

func (l *leader) refuseWaiting(c *Core) {
	for _, id := range sortedKeys(l.waiting) {
		c.send(id, FetchResponse{Known: c.known(NotLeaderOrFollower), HighWatermark: -1, ReadFrom: -1})
	}
	clear(l.waiting)
}

func sortedKeys[V any](m map[NodeID]V) []NodeID {
	keys := make([]NodeID, 0, len(m))
	for id := range m {
		keys = append(keys, id)
	}
	slices.Sort(keys)
	return keys
}
