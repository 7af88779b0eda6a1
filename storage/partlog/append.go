package partlog

import (
	"errors"
	"math"

	"sluice/protocol/record"
	"sluice/storage/segment"
)

// AppendInfo is the result of an append.
type AppendInfo struct {
	BaseOffset      int64
	LastOffset      int64 // inclusive; BaseOffset - 1 if nothing was appended
	LogAppendTimeMs int64 // of a topic with LogAppendTime, and of a duplicate the time of its first append; else record.NoTimestamp
	LogStartOffset  int64
	MaxTimestampMs  int64 // record.NoTimestamp if there is none
	Duplicate       bool  // nothing was appended; the offsets are those of the first append
	Rolled          bool  // a new segment was begun
}

// AppendAsLeader appends one batch. It stamps the next offset and the epoch into b, and the time nowMs if the topic has LogAppendTime and
// the batch does not have it yet, and writes b as it then is. b may be reused as soon as it returns. The batch has been validated
// (record.Validate) before. Errors: *TooLarge, those of package producer, *Fault, ErrClosed.
func (l *Log) AppendAsLeader(b record.Batch, epoch record.LeaderEpoch, o Origin, nowMs int64) (AppendInfo, error) {
	return l.appendAsLeader(b, epoch, terms{origin: o}, nowMs)
}

// AppendTransactional is AppendAsLeader for a batch of records in a transaction. It fails with *producer.InvalidTxnState when the transaction
// is not open in this log and v says that it must have been verified.
func (l *Log) AppendTransactional(b record.Batch, epoch record.LeaderEpoch, o Origin, v record.Verification, nowMs int64) (AppendInfo, error) {
	return l.appendAsLeader(b, epoch, terms{origin: o, transactional: true, verification: v}, nowMs)
}

// AppendMarker is AppendAsLeader for an end-transaction marker of a coordinator with a transaction version (2 and later: each transaction
// has its own producer epoch, KIP-890).
func (l *Log) AppendMarker(b record.Batch, epoch record.LeaderEpoch, transactionVersion int16, nowMs int64) (AppendInfo, error) {
	return l.appendAsLeader(b, epoch, terms{origin: Coordinator, transactionVersion: transactionVersion}, nowMs)
}

// terms are on which a batch is appended.
type terms struct {
	origin             Origin
	transactionVersion int16 // of a marker
	transactional      bool
	verification       record.Verification // of a transactional batch
}

func (l *Log) appendAsLeader(b record.Batch, epoch record.LeaderEpoch, t terms, nowMs int64) (AppendInfo, error) {
	l.mu.Lock()
	info, err := l.appendBatch(b, epoch, t, nowMs)
	prepare := err == nil && l.wantsPreparing()
	l.mu.Unlock()
	if err != nil {
		return info, err
	}
	return info, l.afterAppend(info.Rolled, prepare)
}

// appendBatch is AppendAsLeader under the lock, and without flushing.
func (l *Log) appendBatch(b record.Batch, epoch record.LeaderEpoch, t terms, nowMs int64) (AppendInfo, error) {
	if err := l.writable(); err != nil {
		return AppendInfo{}, err
	}
	l.at(nowMs)
	c := l.config.Load()
	if len(b) > c.MaxMessageBytes {
		return AppendInfo{}, &TooLarge{Bytes: len(b), Max: c.MaxMessageBytes}
	}
	if len(b) > c.SegmentBytes {
		return AppendInfo{}, &TooLarge{Bytes: len(b), Max: c.SegmentBytes, Segment: true}
	}
	base := l.end.Load()
	b.SetBaseOffset(base)
	b.SetLeaderEpoch(epoch)
	if c.LogAppendTime && b.TimestampType() != record.LogAppendTime {
		b.SetLogAppendTime(nowMs)
	}
	info := AppendInfo{BaseOffset: base, LastOffset: b.LastOffset(), LogAppendTimeMs: record.NoTimestamp, LogStartOffset: l.start.Load(), MaxTimestampMs: b.MaxTimestamp()}
	if b.TimestampType() == record.LogAppendTime {
		info.LogAppendTimeMs = info.MaxTimestampMs
	}
	update, duplicate, isDuplicate, err := l.producers.Prepare(b, t.origin, t.transactionVersion)
	if t.transactional && !isDuplicate {
		if unverified := l.producers.CheckVerified(b, t.origin, t.verification); unverified != nil {
			err = unverified
		}
	}
	if err != nil {
		return AppendInfo{}, err
	}
	if isDuplicate {
		info.BaseOffset, info.LastOffset, info.Duplicate = duplicate.FirstOffset, duplicate.LastOffset, true
		info.LogAppendTimeMs, info.MaxTimestampMs = duplicate.TimestampMs, duplicate.TimestampMs
		return info, nil
	}
	if info.Rolled, err = l.makeRoom(c, run{bytes: len(b), first: base, last: info.LastOffset, maxTimestampMs: info.MaxTimestampMs}); err != nil {
		return AppendInfo{}, l.failed("roll", err)
	}
	if epoch >= 0 {
		l.epochs.Assign(epoch, base)
	}
	active := l.last()
	if err := active.Append(b, c.IndexIntervalBytes); err != nil {
		return AppendInfo{}, l.failed("append", err)
	}
	if ended, ok := l.producers.Apply(update); ok && ended.Aborted {
		if err := active.AppendAborted(segment.AbortedTxn{
			ProducerID: ended.ProducerID, FirstOffset: ended.FirstOffset, LastOffset: ended.LastOffset, LastStableOffset: ended.LastStableOffset,
		}); err != nil {
			return AppendInfo{}, l.failed("append to the transaction index", err)
		}
	}
	l.appended(info.LastOffset + 1)
	return info, nil
}

// appended makes batches up to end visible, which are in the active segment.
func (l *Log) appended(end int64) {
	l.producers.SetEndOffset(end)
	l.busy = true
	l.end.Store(end)
	if len(l.doomed) > 0 && l.doomed[0].atMs <= l.nowMs {
		if err := l.removeDoomed(false); err != nil {
			_ = l.failed("remove deleted segments", err) // the next append fails with it; this one is whole
		}
	}
}

// afterAppend flushes as the config wants it, and prepares the next segment, without the lock.
func (l *Log) afterAppend(rolled, prepare bool) error {
	if prepare {
		l.background(l.prepareRoll)
	}
	if rolled {
		if err := l.flushRolled(); err != nil {
			return err
		}
	}
	every := l.config.Load().FlushMessages
	if end := l.end.Load(); every > 1 && end-l.recoveryPoint.Load() >= every {
		return l.flushTo(end)
	}
	return nil
}

// run is batches that are appended to one segment in one write.
type run struct {
	bytes          int
	first, last    int64 // offsets, inclusive
	maxTimestampMs int64
}

// AppendAsFollower appends batches as another replica sent them, with their offsets and epochs. A batch cut short at the end is ignored.
// Errors: *record.Corrupt, *UnexpectedOffset, *TooLarge, *Fault, ErrClosed.
func (l *Log) AppendAsFollower(batches []byte, nowMs int64) (AppendInfo, error) {
	l.mu.Lock()
	info, err := l.appendBatches(batches, nowMs)
	prepare := err == nil && l.wantsPreparing()
	l.mu.Unlock()
	if err != nil {
		return info, err
	}
	return info, l.afterAppend(info.Rolled, prepare)
}

func (l *Log) appendBatches(batches []byte, nowMs int64) (AppendInfo, error) {
	if err := l.writable(); err != nil {
		return AppendInfo{}, err
	}
	l.at(nowMs)
	c := l.config.Load()
	batches, err := l.checkBatches(batches, c.SegmentBytes)
	if err != nil {
		return AppendInfo{}, err
	}
	end := l.end.Load()
	info := AppendInfo{BaseOffset: end, LastOffset: end - 1, LogAppendTimeMs: record.NoTimestamp, LogStartOffset: l.start.Load(), MaxTimestampMs: record.NoTimestamp}
	for first := true; len(batches) > 0; first = false {
		r := nextRun(batches, c.SegmentBytes)
		rolled, err := l.makeRoom(c, r)
		if err != nil {
			return AppendInfo{}, l.failed("roll", err)
		}
		if err := l.appendRun(batches[:r.bytes], c); err != nil {
			return AppendInfo{}, l.failed("append", err)
		}
		l.appended(r.last + 1)
		if first {
			info.BaseOffset = r.first
		}
		info.LastOffset, info.MaxTimestampMs, info.Rolled = r.last, max(info.MaxTimestampMs, r.maxTimestampMs), info.Rolled || rolled
		batches = batches[r.bytes:]
	}
	return info, nil
}

// checkBatches returns the whole batches that b begins with, if all of them are good and continue the log.
func (l *Log) checkBatches(b []byte, segmentBytes int) ([]byte, error) {
	next := l.end.Load()
	whole := 0
	for rest := b; len(rest) > 0; {
		batch, after, err := record.Split(rest)
		var corrupt *record.Corrupt
		if errors.As(err, &corrupt) && corrupt.Incomplete {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case batch.LastOffsetDelta() < 0:
			return nil, &record.Corrupt{Reason: "last offset is below the base offset", Position: whole}
		case batch.BaseOffset() < next:
			return nil, &UnexpectedOffset{Offset: batch.BaseOffset(), LogEndOffset: next}
		case batch.BaseOffset() > math.MaxInt64-1-math.MaxInt32:
			return nil, &record.Corrupt{Reason: "offset is too large", Position: whole}
		case len(batch) > segmentBytes:
			return nil, &TooLarge{Bytes: len(batch), Max: segmentBytes, Segment: true}
		case !batch.ValidCRC():
			return nil, &record.Corrupt{Reason: "checksum does not match", Position: whole}
		}
		if _, _, _, err := l.producers.Prepare(batch, Replication, 0); err != nil {
			return nil, err
		}
		next = batch.NextOffset()
		whole += len(batch)
		rest = after
	}
	return b[:whole], nil
}

// nextRun takes as many batches as fit one segment.
func nextRun(b []byte, segmentBytes int) run {
	var r run
	for len(b) > 0 {
		batch, rest, err := record.Split(b)
		if err != nil {
			break // cannot be: all were checked
		}
		if r.bytes == 0 {
			r = run{first: batch.BaseOffset(), maxTimestampMs: batch.MaxTimestamp()}
		} else if r.bytes+len(batch) > segmentBytes || batch.LastOffset()-r.first > math.MaxInt32 {
			break
		}
		r.bytes += len(batch)
		r.last = batch.LastOffset()
		r.maxTimestampMs = max(r.maxTimestampMs, batch.MaxTimestamp())
		b = rest
	}
	return r
}

func (l *Log) appendRun(b []byte, c *Config) error {
	active := l.last()
	if err := active.Append(b, c.IndexIntervalBytes); err != nil {
		return err
	}
	for len(b) > 0 {
		batch, rest, err := record.Split(b)
		if err != nil {
			return err
		}
		if err := l.learn(batch, active); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// learn takes in what a batch that another replica appended, or an earlier life of this one, says about epochs and producers. The batch may
// be only the header, unless it is a control batch.
func (l *Log) learn(b record.Batch, s *segment.Segment) error {
	if e := b.LeaderEpoch(); e >= 0 && e > l.epochs.LatestEpoch() {
		l.epochs.Assign(e, b.BaseOffset())
	}
	update, _, _, err := l.producers.Prepare(b, Replication, 0)
	if err != nil {
		return err
	}
	if ended, ok := l.producers.Apply(update); ok && ended.Aborted {
		return s.AppendAborted(segment.AbortedTxn{
			ProducerID: ended.ProducerID, FirstOffset: ended.FirstOffset, LastOffset: ended.LastOffset, LastStableOffset: ended.LastStableOffset,
		})
	}
	return nil
}
