package quorum

import "sluice/protocol/record"

// A Message is what replicas send each other.
type Message interface{ isMessage() }

// An Envelope is a message on its way out.
type Envelope struct {
	To      NodeID
	Message Message
}

// VoteRequest asks for a vote in Epoch, or with PreVote whether one would be given in the epoch after.
type VoteRequest struct {
	Epoch     record.LeaderEpoch
	LastEpoch record.LeaderEpoch // of the last record in the candidate's log
	EndOffset int64              // of the candidate's log
	PreVote   bool
}

// VoteResponse answers a VoteRequest. Like all responses it tells the epoch and leader that the sender knows.
type VoteResponse struct {
	Known
	Granted bool
}

// BeginQuorumEpochRequest makes the sender's leadership known.
type BeginQuorumEpochRequest struct{ Epoch record.LeaderEpoch }

// BeginQuorumEpochResponse acknowledges it.
type BeginQuorumEpochResponse struct{ Known }

// EndQuorumEpochRequest tells that the sender no longer leads. PreferredSuccessors begins with who should stand first.
type EndQuorumEpochRequest struct {
	Epoch               record.LeaderEpoch
	PreferredSuccessors []NodeID
}

// EndQuorumEpochResponse acknowledges it.
type EndQuorumEpochResponse struct{ Known }

// FetchRequest asks for records from Offset on and thereby says that all before it are durable at the sender.
type FetchRequest struct {
	Epoch            record.LeaderEpoch // current leader epoch
	Offset           int64
	LastFetchedEpoch record.LeaderEpoch
	HighWatermark    int64 // as the follower knows it
}

// FetchResponse answers a FetchRequest with batches or with where the logs part.
type FetchResponse struct {
	Known
	HighWatermark int64 // exclusive, -1 unknown
	// Diverging, when not nil, is the end of the last epoch that both logs may have in common.
	Diverging *EpochEnd
	// ReadFrom is the offset from which the driver fills Batches, -1 for none.
	ReadFrom int64
	Batches  []Batch
}

// An EpochEnd is an epoch and its end offset, exclusive.
type EpochEnd struct {
	Epoch     record.LeaderEpoch
	EndOffset int64
}

// Known is the head of each response.
type Known struct {
	Epoch    record.LeaderEpoch
	LeaderID NodeID
	Error    ErrorKind
}

// ErrorKind is why a request was not served.
type ErrorKind uint8

// The errors of the quorum's requests, named as Kafka's codes.
const (
	NoError ErrorKind = iota
	InvalidRequest
	FencedLeaderEpoch
	UnknownLeaderEpoch
	NotLeaderOrFollower
	InconsistentVoterSet
)

func (e ErrorKind) String() string {
	return [...]string{"none", "invalid-request", "fenced-leader-epoch", "unknown-leader-epoch", "not-leader-or-follower", "inconsistent-voter-set"}[e]
}

func (VoteRequest) isMessage()              {}
func (VoteResponse) isMessage()             {}
func (BeginQuorumEpochRequest) isMessage()  {}
func (BeginQuorumEpochResponse) isMessage() {}
func (EndQuorumEpochRequest) isMessage()    {}
func (EndQuorumEpochResponse) isMessage()   {}
func (FetchRequest) isMessage()             {}
func (FetchResponse) isMessage()            {}

func (c *Core) known(e ErrorKind) Known { return Known{c.epoch, c.leaderID, e} }
