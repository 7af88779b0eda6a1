// Package quorum is KRaft (KIP-595, KIP-996) as a pure core: elections by votes in epochs, replication by followers that fetch, and a high
// watermark that says what is committed. It reads no clock, draws no randomness of its own, and does no I/O: events go in by Step and Tick,
// and Ready says what has to be persisted, appended and sent, in an order that keeps the promises of the protocol.
//
// Terms are Kafka's. Offsets named "end" and high watermarks are exclusive.
package quorum

import (
	"errors"
	"fmt"
	"slices"

	"sluice/protocol/record"
)

// NodeID is a replica's node.id.
type NodeID int32

// NoNode stands for no leader or no vote.
const NoNode NodeID = -1

// Config is what a core is told once.
type Config struct {
	ID                NodeID
	Voters            []NodeID            // static voters; ID may be missing, then the replica is an observer
	ElectionTimeoutMs int64               // controller.quorum.election.timeout.ms; the actual one is drawn from [n, 2n)
	FetchTimeoutMs    int64               // controller.quorum.fetch.timeout.ms
	BackoffMaxMs      int64               // controller.quorum.election.backoff.max.ms
	RequestTimeoutMs  int64               // controller.quorum.request.timeout.ms: when an unanswered request is sent again
	FetchMaxWaitMs    int64               // how long a leader may hold back an empty answer to a fetch
	Random            func(n int64) int64 // uniform in [0, n)
}

// HardState is what must be on disk before a message that depends on it is sent: the file quorum-state.
type HardState struct {
	Epoch    record.LeaderEpoch
	LeaderID NodeID // known leader of Epoch
	VotedID  NodeID // whom this replica voted for in Epoch
}

// LogState describes the log as found at start; all of it counts as durable.
type LogState struct {
	StartOffset int64
	EndOffset   int64
	Epochs      []EpochStart // ascending
}

// A Core is one replica of the quorum.
type Core struct {
	config Config
	voters voters
	log    epochLog
	nowMs  int64

	epoch         record.LeaderEpoch
	leaderID      NodeID
	votedID       NodeID
	role          role
	highWatermark int64 // -1 while unknown
	persistedEnd  int64 // the log is durable up to here

	requests map[NodeID]*request
	ready    Ready
	saved    HardState
	told     Leadership
	toldHW   int64
}

// A role is one of the states of KRaft. Each has a file of its own.
type role interface {
	kind() Role
	tick(c *Core)
	// deadlineMs is when tick has something to do next.
	deadlineMs(c *Core) int64
	// grants decides a vote for another replica in the present epoch.
	grants(c *Core, from NodeID, logUpToDate, preVote bool) bool
}

// Role names the state of a replica.
type Role uint8

// The roles of KRaft.
const (
	Unattached Role = iota
	Prospective
	Candidate
	Leader
	Follower
	Resigned
)

func (r Role) String() string {
	return [...]string{"unattached", "prospective", "candidate", "leader", "follower", "resigned"}[r]
}

// New returns a core in the role that Kafka gives a restarted replica. A quorum of one is its own leader when New returns; what that takes
// to persist is in the first Ready.
func New(config Config, state HardState, log LogState, nowMs int64) (*Core, error) {
	if len(config.Voters) == 0 {
		return nil, errors.New("the quorum has no voters")
	}
	if log.StartOffset > 0 && len(config.Voters) > 1 {
		return nil, fmt.Errorf("the metadata log starts at offset %d: a quorum of %d needs snapshot transfer, which is not supported", log.StartOffset, len(config.Voters))
	}
	c := &Core{
		config: config, voters: newVoters(config.Voters), log: newEpochLog(log), nowMs: nowMs,
		epoch: state.Epoch, leaderID: state.LeaderID, votedID: state.VotedID,
		highWatermark: -1, persistedEnd: log.EndOffset, requests: map[NodeID]*request{}, saved: state, toldHW: -1,
	}
	c.ready.TruncateTo = -1
	c.told = Leadership{Role: Unattached, Epoch: -1, LeaderID: NoNode}
	switch {
	case state.Epoch < c.log.lastEpoch():
		// The file is behind the log, as when it was lost: no vote of that epoch is remembered.
		c.epoch, c.leaderID, c.votedID = c.log.lastEpoch(), NoNode, NoNode
		c.role = newUnattached(c)
	case state.LeaderID == config.ID:
		// A leader that restarts cannot lead the same epoch again: it may have lost what it appended last.
		c.role = newResigned(c, nil)
	case state.VotedID == config.ID:
		c.role = newCandidate(c)
	case state.LeaderID != NoNode:
		c.role = newFollower(c)
	default:
		c.role = newUnattached(c)
	}
	if c.voters.only(config.ID) && c.role.kind() != Candidate {
		c.becomeProspective()
	} else if d, ok := c.role.(*candidate); ok {
		d.advance(c)
	}
	return c, nil
}

// Tick lets time pass. nowMs never goes back; an earlier value counts as the latest seen.
func (c *Core) Tick(nowMs int64) {
	c.nowMs = max(c.nowMs, nowMs)
	for range 4 { // a role that ends may be followed by one that has to act at once
		kind := c.role.kind()
		c.role.tick(c)
		if c.role.kind() == kind {
			return
		}
	}
}

// NextTickMs is when Tick has something to do if no event comes before.
func (c *Core) NextTickMs() int64 { return c.role.deadlineMs(c) }

// Role is the replica's present state.
func (c *Core) Role() Role { return c.role.kind() }

// Epoch is the highest epoch that the replica has seen.
func (c *Core) Epoch() record.LeaderEpoch { return c.epoch }

// LeaderID is the leader of Epoch, NoNode when unknown.
func (c *Core) LeaderID() NodeID { return c.leaderID }

// HighWatermark is the end of what is known to be committed, exclusive; -1 while unknown.
func (c *Core) HighWatermark() int64 { return c.highWatermark }

// EndOffset is the end of the log including what Ready has not handed out yet.
func (c *Core) EndOffset() int64 { return c.log.end }

func (c *Core) electionTimeoutMs() int64 {
	return c.config.ElectionTimeoutMs + c.config.Random(max(c.config.ElectionTimeoutMs, 1))
}

// A voters set is the members whose majority decides.
type voters struct{ ids []NodeID }

func newVoters(ids []NodeID) voters {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	return voters{slices.Compact(sorted)}
}

func (v voters) has(id NodeID) bool  { _, found := slices.BinarySearch(v.ids, id); return found }
func (v voters) only(id NodeID) bool { return len(v.ids) == 1 && v.ids[0] == id }
func (v voters) majority() int       { return len(v.ids)/2 + 1 }

// A tally counts the votes of one election.
type tally struct {
	voters  voters
	granted map[NodeID]bool // absent: not answered yet
}

func newTally(v voters) tally { return tally{v, map[NodeID]bool{}} }

func (t tally) record(id NodeID, granted bool) {
	if t.voters.has(id) {
		t.granted[id] = granted
	}
}

func (t tally) count(answer bool) (n int) {
	for _, granted := range t.granted {
		if granted == answer {
			n++
		}
	}
	return n
}

func (t tally) won() bool  { return t.count(true) >= t.voters.majority() }
func (t tally) lost() bool { return len(t.voters.ids)-t.count(false) < t.voters.majority() }

// granting returns those who said yes, ascending.
func (t tally) granting() (ids []NodeID) {
	for _, id := range t.voters.ids {
		if t.granted[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// unanswered returns the voters that have not been heard from, ascending.
func (t tally) unanswered() (ids []NodeID) {
	for _, id := range t.voters.ids {
		if _, answered := t.granted[id]; !answered {
			ids = append(ids, id)
		}
	}
	return ids
}
