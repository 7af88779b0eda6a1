package partition

import (
	"slices"

	"sluice/protocol/record"
)

// follower is what the leader knows of another replica. Offsets are exclusive ends; -1: not known.
type follower struct {
	id           BrokerID
	logEndOffset int64
	// logStartOffset of the follower's log, inclusive.
	logStartOffset int64
	// lastFetchMs and leaderEndAtFetch are when the follower fetched last, and where the leader's log ended then.
	lastFetchMs, leaderEndAtFetch int64
	// caughtUpMs is the last time at which the follower had all that the leader had.
	caughtUpMs int64
}

const neverMs = 0 // before any time that a broker lives in

// caughtUp reports whether the follower has everything, or had at most lagTimeMaxMs ago.
func (f *follower) caughtUp(leaderEndOffset, nowMs, lagTimeMaxMs int64) bool {
	return f.logEndOffset == leaderEndOffset || nowMs-f.caughtUpMs <= lagTimeMaxMs
}

// assignFollowers brings the list of followers in line with the registration. In a new leader epoch everything learnt before is void, and
// the replicas in sync count as caught up from now on: they get lagTimeMaxMs to show it.
func (s *State) assignFollowers(newEpoch, ledBefore bool, logEndOffset, nowMs int64) {
	previous := s.followers
	s.followers = make([]follower, 0, max(0, len(s.registration.Replicas)-1))
	for _, id := range s.registration.Replicas {
		if id == s.local {
			continue
		}
		f := follower{id: id, logEndOffset: -1, logStartOffset: -1, leaderEndAtFetch: -1, caughtUpMs: neverMs}
		if i := slices.IndexFunc(previous, func(p follower) bool { return p.id == id }); i >= 0 {
			f = previous[i]
		}
		if newEpoch {
			if !ledBefore {
				f.logEndOffset, f.logStartOffset = -1, -1
			}
			f.caughtUpMs, f.lastFetchMs, f.leaderEndAtFetch = neverMs, neverMs, -1
			if s.inSync(id) {
				f.caughtUpMs, f.lastFetchMs, f.leaderEndAtFetch = nowMs, nowMs, logEndOffset
			}
		}
		s.followers = append(s.followers, f)
	}
}

// FollowerFetch is a fetch by another replica that was served.
type FollowerFetch struct {
	Broker BrokerID
	// FetchOffset is the end of the follower's log, exclusive; LogStartOffset its start.
	FetchOffset, LogStartOffset int64
	// LeaderEndOffset is where the leader's log ended just before the read.
	LeaderEndOffset int64
	NowMs           int64
}

// FollowerFetched notes how far a follower is. The high watermark may advance because of it. Fetches of brokers that hold no replica, as
// far as the registration in force says, are errors: with an epoch they may come from a future registration.
func (s *State) FollowerFetched(q FollowerFetch, asked record.LeaderEpoch) error {
	f := s.follower(q.Broker)
	if f == nil {
		if asked != record.NoLeaderEpoch {
			return &UnknownLeaderEpoch{Requested: asked, Current: s.registration.LeaderEpoch}
		}
		return &NotLeader{LeaderID: s.registration.Leader, LeaderEpoch: s.registration.LeaderEpoch}
	}
	// A fetch from the leader's present end proves that the follower has all; one from where the leader ended at the previous fetch, that it had all then.
	switch {
	case q.FetchOffset >= q.LeaderEndOffset:
		f.caughtUpMs = max(f.caughtUpMs, q.NowMs)
	case f.leaderEndAtFetch >= 0 && q.FetchOffset >= f.leaderEndAtFetch:
		f.caughtUpMs = max(f.caughtUpMs, f.lastFetchMs)
	}
	f.logEndOffset, f.logStartOffset = q.FetchOffset, q.LogStartOffset
	f.leaderEndAtFetch = q.LeaderEndOffset
	f.lastFetchMs = max(f.lastFetchMs, q.NowMs)
	return nil
}

// CanJoin reports whether a replica outside of the ISR has reached what is committed, in this leader epoch, and so may join.
func (s *State) CanJoin(id BrokerID) bool {
	f := s.follower(id)
	return f != nil && !s.inSync(id) && f.logEndOffset >= s.highWatermark && f.logEndOffset >= s.epochStartOffset
}

// OutOfSync lists the replicas of the ISR that have not had everything for longer than lagTimeMaxMs, in the order of the assignment.
func (s *State) OutOfSync(logEndOffset, nowMs, lagTimeMaxMs int64) []BrokerID {
	var lagging []BrokerID
	for i := range s.followers {
		if f := &s.followers[i]; s.inSync(f.id) && !f.caughtUp(logEndOffset, nowMs, lagTimeMaxMs) {
			lagging = append(lagging, f.id)
		}
	}
	return lagging
}

// LowWatermark is the smallest log start among the leader and the followers that alive accepts: what all of them have deleted.
func (s *State) LowWatermark(logStartOffset int64, alive func(BrokerID) bool) int64 {
	for i := range s.followers {
		if f := &s.followers[i]; f.logStartOffset < logStartOffset && alive(f.id) {
			logStartOffset = f.logStartOffset
		}
	}
	return logStartOffset
}

func (s *State) follower(id BrokerID) *follower {
	for i := range s.followers {
		if s.followers[i].id == id {
			return &s.followers[i]
		}
	}
	return nil
}
