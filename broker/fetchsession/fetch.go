package fetchsession

import "sluice/protocol/uuid"

// Key names a partition in a session: by topic id, or by topic name in requests that have no ids.
type Key struct {
	TopicID uuid.UUID
	Topic   string
	Index   int32
}

// Partition is one partition that a fetcher asks for.
type Partition struct {
	Key Key // as in the request
	// Topic is the topic's name; with topic ids it is empty until it has been resolved.
	Topic string
	// What the fetcher asks for: see the Fetch request.
	FetchOffset      int64
	LogStartOffset   int64 // of a follower's log
	MaxBytes         int32
	LeaderEpoch      int32 // -1: not checked
	LastFetchedEpoch int32 // -1: not checked
	// Handle is the caller's, to keep what it has looked up for this partition from one fetch to the next.
	Handle any

	// What the fetcher was told last.
	highWatermark  int64
	logStartOffset int64
	served         bool // had records in the answer that is being made
}

// Request is what a Fetch request says about its session.
type Request struct {
	SessionID, Epoch int32
	TopicIDs         bool // the request names topics by id
	Follower         bool
	Partitions       []*Partition // as in the request, each with Key and what is asked for
	Forget           []Key
}

// Fetch is one Fetch request on its way through its session.
type Fetch struct {
	cache      *Cache
	session    *session           // nil for a full fetch
	epoch      int32              // that the session has while this request is its newest
	partitions []*Partition       // of a full fetch
	index      map[Key]*Partition // of a full fetch that asks for a session
	topicIDs   bool
	follower   bool
	moved      bool // some partition had records
}

// Begin finds or leaves the session that q names and takes its changes over. The error is ErrNotFound, ErrInvalidEpoch or ErrTopicIDs; the
// answer then holds nothing but its code.
func (c *Cache) Begin(q Request, nowMs int64) (*Fetch, error) {
	if q.Epoch == InitialEpoch || q.Epoch == FinalEpoch {
		if q.SessionID != NoSession {
			c.remove(q.SessionID)
		}
		return c.full(q, q.Epoch == InitialEpoch), nil
	}
	s := c.find(q.SessionID)
	if s == nil {
		return nil, ErrNotFound
	}
	s.state.Lock()
	defer s.state.Unlock()
	if s.state.epoch != q.Epoch {
		return nil, ErrInvalidEpoch
	}
	if s.topicIDs != q.TopicIDs {
		return nil, ErrTopicIDs
	}
	s.update(q)
	if len(s.state.partitions) == 0 {
		c.remove(s.id)
		return c.full(q, false), nil
	}
	s.state.epoch = nextEpoch(q.Epoch)
	c.touch(s, len(s.state.partitions), nowMs)
	return &Fetch{cache: c, session: s, epoch: s.state.epoch}, nil
}

// full is a fetch of what the request names and nothing else. A partition that is named twice keeps its first place, and is asked for as it is
// named last.
func (c *Cache) full(q Request, create bool) *Fetch {
	f := &Fetch{cache: c, partitions: q.Partitions, topicIDs: q.TopicIDs, follower: q.Follower}
	if !create && !namedTwice(q.Partitions) {
		return f
	}
	index := make(map[Key]*Partition, len(q.Partitions))
	f.partitions = q.Partitions[:0]
	for _, p := range q.Partitions {
		if known := index[p.Key]; known != nil {
			*known = *p
			continue
		}
		index[p.Key] = p
		f.partitions = append(f.partitions, p)
	}
	if create {
		f.index = index
	}
	return f
}

// namedTwice says whether some partition may be named more than once. With few partitions, as most have that fetch without a session, it is
// found out without an allocation.
func namedTwice(partitions []*Partition) bool {
	const few = 16
	if len(partitions) > few {
		return true
	}
	for i, p := range partitions {
		for _, earlier := range partitions[:i] {
			if earlier.Key == p.Key {
				return true
			}
		}
	}
	return false
}

// update takes over what the request adds, changes and forgets.
func (s *session) update(q Request) {
	for _, p := range q.Partitions {
		if known := s.state.index[p.Key]; known != nil {
			known.FetchOffset, known.LogStartOffset, known.MaxBytes = p.FetchOffset, p.LogStartOffset, p.MaxBytes
			known.LeaderEpoch, known.LastFetchedEpoch = p.LeaderEpoch, p.LastFetchedEpoch
			continue
		}
		p.highWatermark, p.logStartOffset = -1, -1
		s.state.partitions = append(s.state.partitions, p)
		s.state.index[p.Key] = p
	}
	forgotten := 0
	for _, key := range q.Forget {
		if s.state.index[key] != nil {
			delete(s.state.index, key)
			forgotten++
		}
	}
	if forgotten == 0 {
		return
	}
	kept := s.state.partitions[:0]
	for _, p := range s.state.partitions {
		if s.state.index[p.Key] == p {
			kept = append(kept, p)
		}
	}
	clear(s.state.partitions[len(kept):])
	s.state.partitions = kept
}

// Enter begins to use the fetch's partitions; Leave or Finish ends it, and must follow before anything waits. It returns false when a newer
// request has taken the session over while this one waited: the answer then is INVALID_FETCH_SESSION_EPOCH with SessionID, and neither
// Leave nor Finish is called.
func (f *Fetch) Enter() bool {
	if f.session == nil {
		return true
	}
	f.session.state.Lock()
	if f.session.state.epoch != f.epoch {
		f.session.state.Unlock()
		return false
	}
	return true
}

// Leave ends the use of the partitions without an answer: the fetch waits.
func (f *Fetch) Leave() {
	if f.session != nil {
		f.session.state.Unlock()
	}
}

// Partitions are those to serve, in order. To be used between Enter and Leave or Finish.
func (f *Fetch) Partitions() []*Partition {
	if f.session != nil {
		return f.session.state.partitions
	}
	return f.partitions
}

// SessionID is the session that the answer names: the one that the request belongs to, and after Finish the one that was made for it.
func (f *Fetch) SessionID() int32 {
	if f.session != nil {
		return f.session.id
	}
	return NoSession
}

// Answer is what a partition's part of the answer says, as far as it matters here.
type Answer struct {
	HighWatermark, LogStartOffset int64 // -1 when not known
	HasRecords                    bool
	HasError                      bool
	HasHint                       bool // a preferred replica or a diverging epoch
}

// Tell notes what the fetcher is told about p and reports whether the answer must mention p at all: always in a full fetch, in an
// incremental one only what is new.
func (f *Fetch) Tell(p *Partition, a Answer) bool {
	news := f.session == nil || a.HasRecords || a.HasError || a.HasHint || a.HighWatermark != p.highWatermark || a.LogStartOffset != p.logStartOffset
	p.highWatermark, p.logStartOffset = a.HighWatermark, a.LogStartOffset
	if a.HasError && f.session != nil {
		p.highWatermark = -1 // so that the recovery is told
	}
	p.served = a.HasRecords
	f.moved = f.moved || a.HasRecords
	return news
}

// Finish ends the fetch with an answer and returns the session id to put into it. Partitions that had records go to the end of the
// line, so that others get their turn when the answer's size is limited. A full fetch that asks for it becomes a session, if there is room.
func (f *Fetch) Finish(nowMs int64) int32 {
	if f.session == nil {
		if f.index != nil {
			f.start(nowMs)
		}
		return f.SessionID()
	}
	defer f.session.state.Unlock()
	if f.moved {
		f.session.rotate()
	}
	return f.session.id
}

func (s *session) rotate() {
	served := make([]*Partition, 0, len(s.state.partitions))
	rest := s.state.partitions[:0]
	for _, p := range s.state.partitions {
		if p.served {
			served = append(served, p)
		} else {
			rest = append(rest, p)
		}
	}
	s.state.partitions = append(rest, served...)
}

func (f *Fetch) start(nowMs int64) {
	s := &session{privileged: f.follower, topicIDs: f.topicIDs}
	s.state.epoch = nextEpoch(InitialEpoch)
	s.state.partitions = f.partitions
	s.state.index = f.index
	if f.cache.add(s, len(f.partitions), nowMs) != NoSession {
		f.session = s
	}
}
