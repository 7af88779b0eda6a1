package replica

import (
	"context"
	"math"
	"sync"
	"time"

	"go.uber.org/zap"

	"sluice/storage/logdir"
)

// Run does the background work until ctx ends, at Kafka's intervals: flush, retain, compact, write checkpoints, forget idle
// producers.
func (s *Set) Run(ctx context.Context) error {
	initial := func() int64 { return s.options.Broker().InitialTaskDelayMs }
	jobs := []struct {
		first, interval func() int64
		do              func()
	}{
		{initial, func() int64 { return s.options.Broker().RetentionCheckIntervalMs }, s.retain},
		{nil, func() int64 { return s.options.Broker().FileDeleteDelayMs }, s.makeRoom},
		{initial, func() int64 { return s.options.Broker().FlushSchedulerIntervalMs }, s.flushDue},
		{initial, func() int64 { return s.options.Broker().FlushOffsetCheckpointIntervalMs }, s.checkpointRecoveryPoints},
		{initial, func() int64 { return s.options.Broker().FlushStartOffsetCheckpointIntervalMs }, s.checkpointLogStartOffsets},
		{nil, func() int64 { return s.options.Broker().HighWatermarkCheckpointIntervalMs }, s.checkpointHighWatermarks},
		{nil, func() int64 { return s.options.Broker().ProducerIDExpirationCheckIntervalMs }, s.expireProducers},
	}
	var wait sync.WaitGroup
	for _, job := range jobs {
		wait.Go(func() {
			first := job.first
			if first == nil {
				first = job.interval
			}
			for timer := time.NewTimer(interval(first())); ; timer.Reset(interval(job.interval())) {
				select {
				case <-ctx.Done():
					timer.Stop()
					return
				case <-timer.C:
					job.do()
				}
			}
		})
	}
	wait.Go(func() { s.runCleaner(ctx) })
	wait.Wait()
	return ctx.Err()
}

// interval is a duration of at least a millisecond; Kafka's way to say never is the largest number.
func interval(ms int64) time.Duration {
	const longestMs = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(ms, 1), longestMs)) * time.Millisecond
}

// usable lists the replicas that are neither deleted nor offline.
func (s *Set) usable() []*Replica {
	all := s.replicas()
	usable := all[:0]
	for _, r := range all {
		if r.Gone() == nil {
			usable = append(usable, r)
		}
	}
	return usable
}

// retain deletes what topics no longer keep.
func (s *Set) retain() {
	for _, r := range s.usable() {
		before := r.LogStartOffset()
		deleted, err := r.log().Retain(s.options.NowMs(), r.HighWatermark())
		if err != nil {
			s.report(r, "delete old segments", err)
			continue
		}
		if deleted > 0 {
			s.options.Log.Info("deleted old segments", zap.String("topic", r.topic), zap.Int32("partition", r.index),
				zap.Int("segments", deleted), zap.Int64("log_start_offset", r.LogStartOffset()))
		}
		if r.LogStartOffset() != before {
			r.changed()
		}
	}
}

// makeRoom removes what was deleted, and creates what had no room.
func (s *Set) makeRoom() {
	s.removeDeleted()
	s.openMissing()
}

// removeDeleted removes the files of topics that were deleted a while ago.
func (s *Set) removeDeleted() {
	for _, d := range s.dirs {
		if d.offlineError() != nil {
			continue
		}
		if _, err := d.dir.RemoveDeleted(s.options.NowMs(), s.options.Broker().FileDeleteDelayMs); err != nil {
			s.fail(d, err)
		}
	}
}

// flushDue flushes the logs whose flush.ms has passed.
func (s *Set) flushDue() {
	for _, r := range s.usable() {
		if !r.log().FlushDue(s.options.NowMs()) {
			continue
		}
		if err := r.flushTo(r.LogEndOffset()); err != nil {
			s.report(r, "flush", err)
		}
	}
}

// expireProducers forgets the sequences of idle producers.
func (s *Set) expireProducers() {
	expirationMs := s.options.Broker().ProducerIDExpirationMs
	for _, r := range s.usable() {
		r.log().SetProducerIDExpiration(expirationMs)
		r.log().ExpireProducers(s.options.NowMs())
	}
}

// report logs trouble with one log, and takes its directory offline where that is due.
func (s *Set) report(r *Replica, attempt string, err error) {
	if r.Gone() != nil { // deleted or taken offline meanwhile
		return
	}
	s.options.Log.Error("background work on a log failed", zap.String("topic", r.topic), zap.Int32("partition", r.index),
		zap.String("attempt", attempt), zap.Error(r.check(err)))
}

// offsetsOf collects one offset of each usable replica in a directory. keep may leave some out.
func (s *Set) offsetsOf(d *directory, offset func(*Replica) (at int64, keep bool)) offsets {
	collected := offsets{}
	for _, r := range s.usable() {
		if r.dir != d {
			continue
		}
		if at, keep := offset(r); keep {
			collected[logdir.TopicPartition{Topic: r.topic, Partition: r.index}] = at
		}
	}
	return collected
}

// The checkpoint files, by the names under which directory.written remembers them.
const (
	recoveryPoints  = "recovery points"
	logStartOffsets = "log start offsets"
	highWatermarks  = "high watermarks"
)

func (s *Set) checkpointRecoveryPoints() {
	s.checkpointAll(recoveryPoints, (*logdir.Dir).WriteRecoveryPoints, func(r *Replica) (int64, bool) { return r.log().RecoveryPoint(), true })
}

// SaveLogStartOffsets makes durable where logs start. On a full disk it does not, and the background work does it later.
func (s *Set) SaveLogStartOffsets() { s.checkpointLogStartOffsets() }

// checkpointLogStartOffsets leaves out the logs that start at 0: without an entry that is where they start.
func (s *Set) checkpointLogStartOffsets() {
	s.checkpointAll(logStartOffsets, (*logdir.Dir).WriteLogStartOffsets, func(r *Replica) (int64, bool) {
		at := r.LogStartOffset()
		return at, at > 0
	})
}

func (s *Set) checkpointHighWatermarks() {
	s.checkpointAll(highWatermarks, (*logdir.Dir).WriteHighWatermarks, func(r *Replica) (int64, bool) { return r.HighWatermark(), true })
}

func (s *Set) checkpointAll(name string, write func(*logdir.Dir, offsets) error, offset func(*Replica) (int64, bool)) {
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	for _, d := range s.dirs {
		if d.offlineError() != nil || s.full(d) { // a full disk has the older checkpoint, with which recovery takes longer
			continue
		}
		err := d.checkpoint(name, s.offsetsOf(d, offset), func(next offsets) error { return write(d.dir, next) })
		if err != nil {
			s.options.Log.Error("a checkpoint could not be written", zap.String("checkpoint", name), zap.String("dir", d.Path()), zap.Error(err))
			if !outOfSpace(err) || d.dir.Failure() != nil {
				s.fail(d, err)
			}
		}
	}
}
