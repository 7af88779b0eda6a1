package replica

import (
	"sluice/protocol/record"
	"sluice/replication/partition"
	"sluice/storage/partlog"
)

// Timestamps of ListOffsets with a meaning of their own.
const (
	latestTimestamp        = -1
	earliestTimestamp      = -2
	maxTimestamp           = -3
	earliestLocalTimestamp = -4 // without tiered storage the same as the earliest
	// -5 (the last tiered offset) and -6 (the first that waits to be tiered) do not exist without tiered storage.
)

// leading returns the replica's role if it leads in the leader epoch that the asker believes in.
func (r *Replica) leading(asked record.LeaderEpoch) (*role, error) {
	now := r.role.Load()
	if now.gone != nil {
		return nil, now.gone
	}
	return now, partition.CheckLeader(r.set.nodeID(), now.leader, now.leaderEpoch, asked)
}

// end is where reading stops under an isolation, exclusive.
func (r *Replica) end(isolation partition.Isolation, highWatermark, lastStableOffset int64) int64 {
	switch isolation {
	case partition.ReadCommitted:
		return lastStableOffset
	case partition.ReadLogEnd:
		return r.log().LogEndOffset()
	default:
		return highWatermark
	}
}

// Readable tells a waiting reader how far it could read now, exclusive, or why it could not.
func (r *Replica) Readable(leaderEpoch record.LeaderEpoch, isolation partition.Isolation) (endOffset int64, err error) {
	if _, err := r.leading(leaderEpoch); err != nil {
		return record.NoOffset, err
	}
	highWatermark := r.highWatermark.Load()
	if isolation == partition.ReadUncommitted {
		return highWatermark, nil
	}
	return r.end(isolation, highWatermark, r.log().LastStableOffset(highWatermark)), nil
}

// Read finds the batches that q asks for. The slice must be closed.
func (r *Replica) Read(q partition.ReadQuery) (partition.ReadResult, partlog.Slice, error) {
	if q.Follower != nil {
		return r.readForFollower(q)
	}
	now, err := r.leading(q.LeaderEpoch)
	if err != nil {
		return partition.ReadResult{}, partlog.Slice{}, err
	}
	return r.read(q, now)
}

func (r *Replica) read(q partition.ReadQuery, now *role) (partition.ReadResult, partlog.Slice, error) {
	// These are read before the records are: what is appended meanwhile must not make the result contradict itself.
	highWatermark := r.highWatermark.Load()
	result := partition.ReadResult{
		HighWatermark: highWatermark, LastStableOffset: r.log().LastStableOffset(highWatermark),
		LogStartOffset: r.log().LogStartOffset(), LeaderEpoch: now.leaderEpoch,
	}
	if q.LastFetchedEpoch != record.NoLeaderEpoch {
		var err error
		if result.Diverging, err = r.diverging(q, result.LogStartOffset); err != nil || result.Diverging != nil {
			return result, partlog.Slice{}, err
		}
	}
	end := r.end(q.Isolation, highWatermark, result.LastStableOffset)
	if q.Offset == end && q.Offset >= result.LogStartOffset || q.MaxBytes <= 0 && !q.AtLeastOne {
		// Nothing to be read: most partitions of most fetches. The log need not be asked.
		if logEndOffset := r.log().LogEndOffset(); q.Offset < result.LogStartOffset || q.Offset > logEndOffset {
			return result, partlog.Slice{}, &partition.OffsetOutOfRange{Requested: q.Offset, LogStartOffset: result.LogStartOffset, UpTo: logEndOffset}
		}
		return result, partlog.Slice{FetchOffset: q.Offset}, nil
	}
	slice, err := r.log().Read(q.Offset, q.MaxBytes, q.AtLeastOne, end)
	if err != nil {
		return result, partlog.Slice{}, r.check(err)
	}
	return result, slice, nil
}

// readForFollower reads and notes how far the follower is, which may commit records.
func (r *Replica) readForFollower(q partition.ReadQuery) (partition.ReadResult, partlog.Slice, error) {
	result, slice, moved, err := r.readAndNote(q)
	if moved {
		r.changed()
	}
	return result, slice, err
}

func (r *Replica) readAndNote(q partition.ReadQuery) (result partition.ReadResult, slice partlog.Slice, moved bool, err error) {
	now, err := r.leading(q.LeaderEpoch)
	if err != nil {
		return result, slice, false, err
	}
	fetch := *q.Follower
	fetch.LeaderEndOffset = r.log().LogEndOffset()
	if result, slice, err = r.read(q, now); err != nil || result.Diverging != nil {
		return result, slice, false, err
	}
	r.writer.Lock()
	defer r.writer.Unlock()
	before := r.writer.state.HighWatermark()
	if err := r.writer.state.FollowerFetched(fetch, q.LeaderEpoch); err != nil {
		slice.Close()
		return result, partlog.Slice{}, false, err
	}
	r.advanceLocked(r.config.Load(), fetch.NowMs)
	return result, slice, r.writer.state.HighWatermark() != before || fetch.LogStartOffset > 0, nil
}

// diverging compares the asker's last epoch with the log.
func (r *Replica) diverging(q partition.ReadQuery, logStartOffset int64) (*partition.EpochEnd, error) {
	epoch, endOffset := r.log().EndOffsetForEpoch(q.LastFetchedEpoch)
	outOfRange := &partition.OffsetOutOfRange{Requested: q.Offset, LogStartOffset: logStartOffset, UpTo: r.log().LogEndOffset()}
	switch {
	case epoch == record.NoLeaderEpoch || endOffset == record.NoOffset:
		return nil, outOfRange
	case q.Offset < logStartOffset:
		return nil, outOfRange
	case epoch < q.LastFetchedEpoch || endOffset < q.Offset:
		return &partition.EpochEnd{LeaderEpoch: epoch, EndOffset: endOffset}, nil
	default:
		return nil, nil
	}
}

// AbortedTransactions lists the aborted transactions that touch the offsets from (inclusive) to upTo (exclusive).
func (r *Replica) AbortedTransactions(from, upTo int64) ([]partlog.AbortedTransaction, error) {
	aborted, err := r.log().AbortedTransactions(from, upTo)
	if err != nil {
		return nil, r.check(err)
	}
	return aborted, nil
}

var nothingFound = partition.TimestampOffset{Offset: record.NoOffset, TimestampMs: record.NoTimestamp, LeaderEpoch: record.NoLeaderEpoch}

// ListOffset answers a search by time, or one of the special timestamps of ListOffsets.
func (r *Replica) ListOffset(timestampMs int64, isolation partition.Isolation, leaderEpoch record.LeaderEpoch) (partition.TimestampOffset, error) {
	now, err := r.leading(leaderEpoch)
	if err != nil {
		return nothingFound, err
	}
	highWatermark := r.highWatermark.Load()
	upTo := r.end(isolation, highWatermark, r.log().LastStableOffset(highWatermark))
	// A new leader does not know what is committed until the high watermark has reached the start of its epoch.
	var unknown error
	if isolation != partition.ReadLogEnd && highWatermark < now.epochStartOffset {
		unknown = &partition.OffsetNotAvailable{HighWatermark: highWatermark, EpochStartOffset: now.epochStartOffset}
	}
	switch timestampMs {
	case latestTimestamp:
		if unknown != nil {
			return nothingFound, unknown
		}
		return partition.TimestampOffset{Offset: upTo, TimestampMs: record.NoTimestamp, LeaderEpoch: now.leaderEpoch}, nil
	case earliestTimestamp, earliestLocalTimestamp:
		start := r.log().LogStartOffset()
		return partition.TimestampOffset{Offset: start, TimestampMs: record.NoTimestamp, LeaderEpoch: r.log().EpochForOffset(start)}, nil
	}
	var found partlog.TimestampOffset
	var ok bool
	switch {
	case timestampMs == maxTimestamp:
		found, ok, err = r.log().OffsetOfMaxTimestamp(upTo)
	case timestampMs >= 0:
		found, ok, err = r.log().OffsetForTimestamp(timestampMs, upTo)
	default:
		return nothingFound, nil
	}
	switch {
	case err != nil:
		return nothingFound, r.check(err)
	case !ok:
		return nothingFound, unknown
	default:
		return partition.TimestampOffset{Offset: found.Offset, TimestampMs: found.TimestampMs, LeaderEpoch: found.LeaderEpoch}, nil
	}
}

// EndOffsetForEpoch returns the largest epoch of the log that is not above epoch, and where it ends.
func (r *Replica) EndOffsetForEpoch(leaderEpoch, epoch record.LeaderEpoch) (partition.EpochEnd, error) {
	if _, err := r.leading(leaderEpoch); err != nil {
		return partition.EpochEnd{LeaderEpoch: record.NoLeaderEpoch, EndOffset: record.NoOffset}, err
	}
	found, endOffset := r.log().EndOffsetForEpoch(epoch)
	return partition.EpochEnd{LeaderEpoch: found, EndOffset: endOffset}, nil
}

// highWatermarkOffset asks DeleteRecords to delete all that is committed.
const highWatermarkOffset = -1

// DeleteRecords moves the log start to offset, -1 meaning the high watermark, and returns the low watermark of all live replicas,
// and the offset that this must reach.
func (r *Replica) DeleteRecords(offset int64) (lowWatermark, wanted int64, err error) {
	lowWatermark, wanted, err = r.deleteRecords(offset)
	if err != nil {
		return record.NoOffset, record.NoOffset, r.check(err)
	}
	r.changed()
	return lowWatermark, wanted, nil
}

func (r *Replica) deleteRecords(offset int64) (lowWatermark, wanted int64, err error) {
	r.writer.Lock()
	defer r.writer.Unlock()
	if _, err := r.leading(record.NoLeaderEpoch); err != nil {
		return 0, 0, err
	}
	if !r.config.Load().Log.Delete {
		return 0, 0, &partition.DeletionRefused{Topic: r.topic}
	}
	highWatermark := r.writer.state.HighWatermark()
	if offset == highWatermarkOffset {
		offset = highWatermark
	}
	if offset < 0 || offset > highWatermark {
		return 0, 0, &partition.OffsetOutOfRange{Requested: offset, LogStartOffset: r.log().LogStartOffset(), UpTo: highWatermark}
	}
	if err := r.log().AdvanceLogStartOffset(offset); err != nil {
		return 0, 0, err
	}
	return r.lowWatermarkLocked(), offset, nil
}

// LowWatermark is the smallest log start offset of the live replicas.
func (r *Replica) LowWatermark() (int64, error) {
	r.writer.Lock()
	defer r.writer.Unlock()
	if _, err := r.leading(record.NoLeaderEpoch); err != nil {
		return record.NoOffset, err
	}
	return r.lowWatermarkLocked(), nil
}

func (r *Replica) lowWatermarkLocked() int64 {
	return r.writer.state.LowWatermark(r.log().LogStartOffset(), r.set.alive)
}
