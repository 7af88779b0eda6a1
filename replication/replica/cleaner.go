package replica

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"sluice/storage/compact"
	"sluice/storage/logdir"
	"sluice/storage/partlog"
	"sluice/storage/segment"
)

// CleanerConfig are the settings of the compaction of logs, each with the meaning of its Kafka key.
type CleanerConfig struct {
	Enable              bool    // log.cleaner.enable
	Threads             int     // log.cleaner.threads: logs that are compacted at the same time
	BackoffMs           int64   // log.cleaner.backoff.ms
	DedupeBufferBytes   int64   // log.cleaner.dedupe.buffer.size, of all threads together
	LoadFactor          float64 // log.cleaner.io.buffer.load.factor
	IOBufferBytes       int     // log.cleaner.io.buffer.size, of all threads together
	IOMaxBytesPerSecond float64 // log.cleaner.io.max.bytes.per.second, of all threads together
}

// cleaner is what the threads that compact logs have in common.
type cleaner struct {
	throttle struct {
		sync.Mutex
		compact.Throttle
	}
	mu struct {
		sync.Mutex
		busy        map[*Replica]chan struct{} // being compacted; closed at the end
		uncleanable map[*Replica]error
		lastRunMs   int64 // when it was last looked for a log to compact
		dirtiest    float64
	}
	stale                    bool // checkpoints have replicas that were deleted; Apply's
	readBytes, writtenBytes  atomic.Int64
	readRecords, keptRecords atomic.Int64
	logs                     atomic.Int64
}

// CleanerState tells how far compaction is.
type CleanerState struct {
	DirtiestRatio float64        // of all compacted logs, the largest part of bytes that wait for compaction; 0 to 1
	LastRunMs     int64          // when the cleaner last looked for a log to compact, ms since 1970; 0 = never
	Uncleanable   map[string]int // by log directory: partitions that are not compacted any more because of what is in them
	Logs          int64          // that were compacted since the start; each time counts
	ReadBytes     int64          // that were read for it, twice where keys were learned too
	WrittenBytes  int64
	ReadRecords   int64
	KeptRecords   int64
}

// Cleaner tells how far compaction is.
func (s *Set) Cleaner() CleanerState {
	c := &s.cleaner
	state := CleanerState{
		Uncleanable: map[string]int{}, Logs: c.logs.Load(), ReadBytes: c.readBytes.Load(), WrittenBytes: c.writtenBytes.Load(),
		ReadRecords: c.readRecords.Load(), KeptRecords: c.keptRecords.Load(),
	}
	for _, d := range s.dirs {
		state.Uncleanable[d.Path()] = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	state.DirtiestRatio, state.LastRunMs = c.mu.dirtiest, c.mu.lastRunMs
	for r := range c.mu.uncleanable {
		state.Uncleanable[r.dir.Path()]++
	}
	return state
}

// runCleaner keeps as many threads running as are configured, until ctx ends.
func (s *Set) runCleaner(ctx context.Context) {
	var wait sync.WaitGroup
	defer wait.Wait()
	var running atomic.Int64 // threads have the numbers below it
	for {
		if n := running.Load(); s.cleanerThreads() > n && running.CompareAndSwap(n, n+1) {
			wait.Go(func() { s.runCleanerThread(ctx, n, &running) })
			continue
		}
		if !pause(ctx, max(s.options.Broker().Cleaner.BackoffMs, 1000)) {
			return
		}
	}
}

// cleanerThreads is how many there should be.
func (s *Set) cleanerThreads() int64 {
	config := s.options.Broker().Cleaner
	if !config.Enable {
		return 0
	}
	return int64(config.Threads)
}

// runCleanerThread compacts one log after the other. The thread with the highest number ends when there are too many.
func (s *Set) runCleanerThread(ctx context.Context, number int64, running *atomic.Int64) {
	var c compact.Cleaner
	for {
		surplus := number >= s.cleanerThreads()
		if surplus && running.CompareAndSwap(number+1, number) {
			return
		}
		if !surplus && s.cleanOne(ctx, &c) {
			continue
		}
		c.Release()
		s.checkpointCleaned() // of logs that were deleted or truncated
		if !pause(ctx, s.options.Broker().Cleaner.BackoffMs) {
			return
		}
	}
}

// pause reports whether ctx goes on.
func pause(ctx context.Context, ms int64) bool {
	timer := time.NewTimer(interval(ms))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// cleanOne compacts the dirtiest log that is due. It reports whether it has done so: then the next one may be due.
func (s *Set) cleanOne(ctx context.Context, c *compact.Cleaner) bool {
	if ctx.Err() != nil {
		return false
	}
	r, task := s.dirtiest()
	if r == nil {
		return false
	}
	defer s.cleaner.done(r)
	if !s.neverScanned(r, task) {
		return false
	}
	config := s.options.Broker().Cleaner
	threads := max(config.Threads, 1)
	task.MapBytes, task.LoadFactor = config.DedupeBufferBytes/int64(threads), config.LoadFactor
	c.BufferBytes = config.IOBufferBytes / threads / 2
	c.Pace = func(bytes int) error { return s.pace(ctx, r, bytes) }
	began := s.options.NowMs()
	to, stats, err := c.Clean(task)
	s.cleaner.count(stats)
	if err != nil {
		s.notCleaned(ctx, r, err)
		return false
	}
	r.cleanedTo.Store(to)
	s.checkpointCleaned()
	s.cleaner.logs.Add(1)
	s.options.Log.Info("compacted a log", zap.String("topic", r.topic), zap.Int32("partition", r.index),
		zap.Int64("dirty_from", task.Candidate.FirstDirtyOffset), zap.Int64("clean_to", to), zap.Int64("milliseconds", s.options.NowMs()-began),
		zap.Int64("bytes_before", stats.ReadBytes), zap.Int64("bytes_after", stats.WrittenBytes),
		zap.Int64("records_before", stats.ReadRecords), zap.Int64("records_after", stats.KeptRecords),
		zap.Int("segments_before", stats.SegmentsBefore), zap.Int("segments_after", stats.SegmentsAfter), zap.Float64("map_utilization", stats.MapUtilization))
	return true
}

// dirtiest chooses the log that is compacted next, and keeps other threads from it until done.
func (s *Set) dirtiest() (*Replica, compact.Task) {
	full := map[*directory]bool{}
	for _, d := range s.dirs {
		full[d] = d.offlineError() != nil || s.full(d) // compaction needs space before it gives some back
	}
	usable := s.usable()
	c := &s.cleaner
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.lastRunMs, c.mu.dirtiest = s.options.NowMs(), 0
	for r := range c.mu.uncleanable {
		if r.Gone() != nil {
			delete(c.mu.uncleanable, r)
		}
	}
	var chosen *Replica
	var task compact.Task
	for _, r := range usable {
		config := r.config.Load()
		if !config.Log.Compact || full[r.dir] || c.mu.busy[r] != nil || c.mu.uncleanable[r] != nil {
			continue
		}
		t, err := s.assess(r, config)
		if err != nil {
			s.report(r, "see what there is to compact", err)
			continue
		}
		c.mu.dirtiest = max(c.mu.dirtiest, t.Candidate.Ratio())
		if t.Candidate.Due(config.Compaction) && r.Gone() == nil && (chosen == nil || t.Candidate.Ratio() > task.Candidate.Ratio()) {
			chosen, task = r, t
		}
	}
	// A replica that has gone by now is not begun with: whoever deletes it looks after that whether it is busy.
	if chosen == nil || chosen.Gone() != nil {
		return nil, task
	}
	if c.mu.busy == nil {
		c.mu.busy = map[*Replica]chan struct{}{}
	}
	c.mu.busy[chosen] = make(chan struct{})
	return chosen, task
}

// assess finds out what of a log could be compacted.
func (s *Set) assess(r *Replica, config *TopicConfig) (compact.Task, error) {
	log := r.log()
	if at, ok := log.Truncated(); ok && at < r.cleanedTo.Load() {
		r.cleanedTo.Store(at)
	}
	highWatermark, nowMs := r.HighWatermark(), s.options.NowMs()
	candidate, err := compact.Assess(compact.StateOf(log, highWatermark, r.cleanedTo.Load()), config.Compaction, nowMs)
	if err != nil {
		return compact.Task{}, err
	}
	if candidate.Reset {
		s.options.Log.Info("the offset up to which a log was compacted does not fit it any more", zap.String("topic", r.topic), zap.Int32("partition", r.index),
			zap.Int64("clean_to", r.cleanedTo.Load()), zap.Int64("log_start_offset", log.LogStartOffset()), zap.Int64("log_end_offset", log.LogEndOffset()))
		r.cleanedTo.Store(candidate.FirstDirtyOffset)
	}
	return compact.Task{
		Log: log, Candidate: candidate, HighWatermark: highWatermark, NowMs: nowMs, DeleteRetentionMs: config.Compaction.DeleteRetentionMs,
		SegmentBytes: config.Log.SegmentBytes, IndexBytes: config.Log.SegmentIndexBytes, IndexIntervalBytes: config.Log.IndexIntervalBytes,
	}, nil
}

// neverScanned makes sure that what is going to be compacted counts as flushed after a crash: a scan would take a segment that does not reach
// to the next one for damaged.
func (s *Set) neverScanned(r *Replica, task compact.Task) bool {
	end := task.Candidate.FirstUncleanableOffset
	if task.Log.RecoveryPoint() < end {
		if err := r.flushTo(end); err != nil {
			s.report(r, "flush before compaction", err)
			return false
		}
	}
	s.checkpointRecoveryPoints()
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	return r.dir.written[recoveryPoints][logdir.TopicPartition{Topic: r.topic, Partition: r.index}] >= end
}

// notCleaned deals with a compaction that has failed.
func (s *Set) notCleaned(ctx context.Context, r *Replica, err error) {
	about := []zap.Field{zap.String("topic", r.topic), zap.Int32("partition", r.index), zap.Error(err)}
	var bad *compact.Uncleanable
	switch {
	case ctx.Err() != nil || r.Gone() != nil:
	case errors.As(err, &bad):
		s.options.Log.Error("a log cannot be compacted, and will not be tried again before a restart", about...)
		s.cleaner.mu.Lock()
		defer s.cleaner.mu.Unlock()
		if s.cleaner.mu.uncleanable == nil {
			s.cleaner.mu.uncleanable = map[*Replica]error{}
		}
		s.cleaner.mu.uncleanable[r] = err
	case errors.Is(err, partlog.ErrChanged), errors.Is(err, partlog.ErrClosed), errors.Is(err, segment.ErrInUse):
		s.options.Log.Debug("a compaction was in vain and is tried again", about...)
	default:
		s.report(r, "compact", err)
	}
}

func (c *cleaner) count(stats compact.Stats) {
	c.readBytes.Add(stats.IndexedBytes + stats.ReadBytes)
	c.writtenBytes.Add(stats.WrittenBytes)
	c.readRecords.Add(stats.ReadRecords)
	c.keptRecords.Add(stats.KeptRecords)
}

// done lets others have the replica.
func (c *cleaner) done(r *Replica) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.mu.busy[r])
	delete(c.mu.busy, r)
}

// wait returns when a replica that has gone is not being compacted any more, which is soon.
func (c *cleaner) wait(r *Replica) {
	c.mu.Lock()
	done := c.mu.busy[r]
	c.mu.Unlock()
	if done != nil {
		<-done
	}
}

var errGone = errors.New("the partition has gone")

// pace keeps all threads together to the rate that is configured.
func (s *Set) pace(ctx context.Context, r *Replica, bytes int) error {
	const step = 100 // ms, so that a deletion does not wait long
	for left := s.spend(bytes); ; left -= step {
		if r.Gone() != nil {
			return errGone
		}
		if left <= 0 {
			return ctx.Err()
		}
		if !pause(ctx, min(left, step)) {
			return ctx.Err()
		}
	}
}

func (s *Set) spend(bytes int) (pauseMs int64) {
	rate := s.options.Broker().Cleaner.IOMaxBytesPerSecond
	if rate == math.MaxFloat64 {
		return 0
	}
	t := &s.cleaner.throttle
	t.Lock()
	defer t.Unlock()
	return t.Spend(int64(bytes), rate, s.options.NowMs())
}

const cleanedOffsets = "compacted offsets"

// checkpointCleaned writes up to where logs have been compacted.
func (s *Set) checkpointCleaned() {
	s.checkpointAll(cleanedOffsets, (*logdir.Dir).WriteCleanerOffsets, func(r *Replica) (int64, bool) {
		at := r.cleanedTo.Load()
		return at, at >= 0
	})
}
