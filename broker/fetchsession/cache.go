// Package fetchsession remembers what each fetcher asks for, so that a Fetch needs to name only what changed and its answer only what is
// new (KIP-227). Its limits, and the choice of whom to drop when it is full, are Apache Kafka's.
package fetchsession

import (
	"container/list"
	"errors"
	"math"
	"sync"
)

// Errors of Begin and Enter, each with one Kafka code.
var (
	ErrNotFound     = errors.New("no fetch session of that id")
	ErrInvalidEpoch = errors.New("the fetch session is at another epoch")
	ErrTopicIDs     = errors.New("the fetch session names its topics the other way: by id or by name")
)

// Epochs of a request with a fixed meaning. A session counts from 1 up and, at the largest number, starts at 1 again.
const (
	// InitialEpoch asks for everything that the request names, and for a new session.
	InitialEpoch int32 = 0
	// FinalEpoch asks for everything that the request names, and for no session. If one is named, it ends.
	FinalEpoch int32 = -1
)

// NoSession is the id that stands for none.
const NoSession int32 = 0

// minEvictionMs is how long a session is safe: from use, against anybody; from its creation, against those who ask with no better claim.
const minEvictionMs = 120_000

// maxPartitions bounds what all sessions remember together, some 200 bytes each. One more is not taken into a session: its fetcher goes on with
// full requests. Apache Kafka has no such bound.
const maxPartitions = 1 << 20

// Cache holds the sessions of a broker. Its methods may be called from any goroutine.
type Cache struct {
	slots    int
	randomID func() int32
	mu       struct {
		sync.Mutex
		sessions   map[int32]*session
		used       list.List // of *session, longest unused first
		partitions int
		evictions  int64
	}
}

// Stats are figures for the metrics.
type Stats struct {
	Sessions, Partitions int
	Evictions            int64 // since start
}

// New returns a cache for at most slots sessions. randomID supplies session ids; they should be hard to guess. Ids that are taken, or
// not above 0, are drawn again.
func New(slots int, randomID func() int32) *Cache {
	c := &Cache{slots: slots, randomID: randomID}
	c.mu.sessions = make(map[int32]*session)
	return c
}

// Stats returns the present figures.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{Sessions: len(c.mu.sessions), Partitions: c.mu.partitions, Evictions: c.mu.evictions}
}

// session is what one fetcher asks for. The cache's fields are guarded by the cache's lock, the others by the session's own. Where both
// are held, the cache's was taken first.
type session struct {
	id         int32
	privileged bool // of a follower
	topicIDs   bool
	createdMs  int64

	// The cache's.
	at         *list.Element
	lastUsedMs int64
	size       int  // partitions when used last
	old        bool // existed for longer than minEvictionMs when used last

	state struct {
		sync.Mutex
		epoch      int32
		partitions []*Partition // in the order in which they are served
		index      map[Key]*Partition
	}
}

func nextEpoch(epoch int32) int32 {
	if epoch == math.MaxInt32 {
		return 1
	}
	return epoch + 1
}

// find returns the session of an id.
func (c *Cache) find(id int32) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.sessions[id]
}

// remove ends the session of an id, if there is one.
func (c *Cache) remove(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.mu.sessions[id]; s != nil {
		c.removeLocked(s)
	}
}

func (c *Cache) removeLocked(s *session) {
	delete(c.mu.sessions, s.id)
	c.mu.used.Remove(s.at)
	c.mu.partitions -= s.size
}

// touch notes that s, with so many partitions now, is used.
func (c *Cache) touch(s *session, size int, nowMs int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.sessions[s.id] != s { // evicted meanwhile
		return
	}
	if c.mu.partitions+size-s.size > maxPartitions { // its next request is told that the session is gone
		c.removeLocked(s)
		return
	}
	c.touchLocked(s, size, nowMs)
	c.mu.used.MoveToBack(s.at)
}

func (c *Cache) touchLocked(s *session, size int, nowMs int64) {
	c.mu.partitions += size - s.size
	s.size, s.lastUsedMs = size, nowMs
	s.old = nowMs-s.createdMs > minEvictionMs
}

// add makes room for s, gives it an id and takes it in. It returns NoSession when there is no room.
func (c *Cache) add(s *session, size int, nowMs int64) int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.partitions+size > maxPartitions {
		return NoSession
	}
	if len(c.mu.sessions) >= c.slots && !c.evictLocked(s.privileged, size, nowMs) {
		return NoSession
	}
	for s.id = c.randomID(); s.id <= 0 || c.mu.sessions[s.id] != nil; {
		s.id = c.randomID()
	}
	s.createdMs = nowMs
	c.mu.sessions[s.id] = s
	s.at = c.mu.used.PushBack(s)
	c.touchLocked(s, size, nowMs)
	return s.id
}

// evictLocked drops one session in favour of a new one: the longest unused, if it has not been used for minEvictionMs; else, among those
// that the newcomer may displace, the one with the weakest claim, if that is weaker than the newcomer's. Followers have a stronger
// claim than consumers, and more partitions than fewer. A follower may displace any consumer, and anyone old; a consumer only the old.
func (c *Cache) evictLocked(privileged bool, size int, nowMs int64) bool {
	oldest := c.mu.used.Front()
	if oldest == nil { // no slots at all
		return false
	}
	weakest := oldest.Value.(*session)
	if nowMs-weakest.lastUsedMs <= minEvictionMs {
		weakest = nil
		for _, s := range c.mu.sessions {
			if (s.old || privileged && !s.privileged) && (weakest == nil || s.weaker(weakest.privileged, weakest.size, weakest.id)) {
				weakest = s
			}
		}
		if weakest == nil || !weakest.weaker(privileged, size, 0) {
			return false
		}
	}
	c.removeLocked(weakest)
	c.mu.evictions++
	return true
}

// weaker reports whether the claim of s is weaker than the one described; ids break ties.
func (s *session) weaker(privileged bool, size int, id int32) bool {
	if s.privileged != privileged {
		return privileged
	}
	if s.size != size {
		return s.size < size
	}
	return s.id < id
}
