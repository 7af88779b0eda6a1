package partition

// HighWatermark is the end of what is committed, exclusive.
func (s *State) HighWatermark() int64 { return s.highWatermark }

// AdvanceHighWatermark raises the leader's high watermark to the smallest log end among the replicas that count, and reports whether it
// moved. These are the replicas in sync, and the ones about to be: a replica that keeps up is waited for, or it could stay just behind
// the high watermark for ever. Below min.insync.replicas nothing is committed.
func (s *State) AdvanceHighWatermark(logEndOffset int64, minimum int, nowMs, lagTimeMaxMs int64) bool {
	if !s.Leads() || len(s.registration.ISR) < s.effectiveMinimum(minimum) {
		return false
	}
	committed := logEndOffset
	for i := range s.followers {
		f := &s.followers[i]
		if f.logEndOffset < committed && (s.inSync(f.id) || f.caughtUp(logEndOffset, nowMs, lagTimeMaxMs)) {
			committed = f.logEndOffset
		}
	}
	if committed <= s.highWatermark {
		return false
	}
	s.highWatermark = committed
	return true
}

// FollowHighWatermark takes the leader's high watermark, which a follower learns with each fetch, and reports whether its own moved. It
// never exceeds what the follower's log holds.
func (s *State) FollowHighWatermark(leaders, logStartOffset, logEndOffset int64) bool {
	next := min(max(leaders, logStartOffset), logEndOffset)
	if next == s.highWatermark {
		return false
	}
	s.highWatermark = next
	return true
}

// LogStartMoved keeps the high watermark from falling below the log's start.
func (s *State) LogStartMoved(logStartOffset int64) {
	s.highWatermark = max(s.highWatermark, logStartOffset)
}
