package quorum

import "sluice/protocol/record"

// Ready is the work that the core has decided on. The driver does it in the order of the fields, and calls Persisted when the log is
// durable up to a new end.
type Ready struct {
	// State, when not nil, has to be durable before any of Messages is sent: they carry votes and claims of leadership.
	State *HardState
	// TruncateTo, when not negative, is where the log has to be cut before anything is appended.
	TruncateTo int64
	// Append has to be appended in this order.
	Append []Batch
	// Messages go out last. A FetchResponse with ReadFrom set has to be given the batches from there on.
	Messages []Envelope
	// Leadership, when not nil, has changed.
	Leadership *Leadership
	// HighWatermark is the end of what is committed, exclusive, when HighWatermarkMoved.
	HighWatermark      int64
	HighWatermarkMoved bool
}

// Empty reports whether there is nothing to do.
func (r *Ready) Empty() bool {
	return r.State == nil && r.TruncateTo < 0 && len(r.Append) == 0 && len(r.Messages) == 0 && r.Leadership == nil && !r.HighWatermarkMoved
}

// Leadership says who leads and what this replica is.
type Leadership struct {
	Role     Role
	Epoch    record.LeaderEpoch
	LeaderID NodeID
}

// A Batch is a number of records with consecutive offsets in one epoch.
type Batch struct {
	BaseOffset int64
	Count      int64
	Epoch      record.LeaderEpoch
	// Leader is set in the control batch that begins an epoch, Payload in any other: what Propose was given.
	Leader  *LeaderChange
	Payload any
}

// A LeaderChange is the control record at the start of an epoch.
type LeaderChange struct {
	LeaderID NodeID
	Voters   []NodeID
	Granting []NodeID
}

// Ready takes the work decided on since the last call.
func (c *Core) Ready() Ready {
	r := c.ready
	if state := (HardState{c.epoch, c.leaderID, c.votedID}); state != c.saved {
		c.saved = state
		r.State = &state
	}
	if now := (Leadership{c.role.kind(), c.epoch, c.leaderID}); now != c.told {
		c.told = now
		r.Leadership = &now
	}
	if c.highWatermark != c.toldHW {
		c.toldHW = c.highWatermark
		r.HighWatermark, r.HighWatermarkMoved = c.highWatermark, true
	}
	c.ready = Ready{TruncateTo: -1}
	return r
}

func (c *Core) send(to NodeID, m Message) {
	c.ready.Messages = append(c.ready.Messages, Envelope{To: to, Message: m})
}

// A request in flight to one peer; no second one is sent before it was answered or is overdue.
type request struct{ retryMs int64 }

// request sends m to a peer unless one is in flight.
func (c *Core) request(to NodeID, m Message) {
	r := c.requests[to]
	if r != nil && c.nowMs < r.retryMs {
		return
	}
	c.requests[to] = &request{retryMs: c.nowMs + c.config.RequestTimeoutMs}
	c.send(to, m)
}

// retryMs is when a request to a peer may be sent again.
func (c *Core) retryMs(to NodeID) int64 {
	if r := c.requests[to]; r != nil {
		return r.retryMs
	}
	return c.nowMs
}

// nextRequestMs is when no request is in flight any more that could still be answered in time.
func (c *Core) nextRequestMs() int64 {
	at := c.nowMs
	for _, r := range c.requests {
		at = max(at, r.retryMs)
	}
	return at
}
