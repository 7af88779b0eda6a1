package replica

import (
	"errors"
	"fmt"
	"sync"

	"sluice/replication/metadata"
	"sluice/replication/partition"
	"sluice/storage/logdir"
)

// Close flushes and closes every log, writes the checkpoints and the marks of a clean shutdown, and closes the log directories. Run must
// have returned, and Apply is not called any more. Whoever asks for a replica is told that this broker does not lead it.
func (s *Set) Close() error {
	var errs []error
	replicas := s.usable()
	failed := s.closeLogs(replicas)
	for _, d := range s.dirs {
		errs = append(errs, failed[d], s.closeDirectory(d, replicas, failed[d] == nil))
	}
	return errors.Join(errs...)
}

// closingAtOnce is how many logs of a directory are closed at a time. Closing waits for the disk and not for the processor, and disks sync many
// files together nearly as fast as one.
const closingAtOnce = 64

// closeLogs closes logs, several at a time, and returns what went wrong in each directory.
func (s *Set) closeLogs(replicas []*Replica) map[*directory]error {
	var mu sync.Mutex
	failed := map[*directory]error{}
	var wait sync.WaitGroup
	room := make(chan struct{}, closingAtOnce*len(s.dirs))
	for _, r := range replicas {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			r.leave(&partition.NotLeader{LeaderID: partition.NoBroker, LeaderEpoch: r.role.Load().leaderEpoch})
			if err := r.log().Close(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[r.dir] = errors.Join(failed[r.dir], fmt.Errorf("close %s-%d: %w", r.topic, r.index, err))
			}
		})
	}
	wait.Wait()
	return failed
}

// closeDirectory writes what the next start needs. The shutdown is clean only when every log could be closed.
func (s *Set) closeDirectory(d *directory, replicas []*Replica, clean bool) error {
	if d.offlineError() != nil {
		return d.dir.Close()
	}
	points, starts, marks := offsets{}, offsets{}, offsets{}
	for _, r := range replicas {
		if r.dir != d {
			continue
		}
		tp := logdir.TopicPartition{Topic: r.topic, Partition: r.index}
		points[tp], marks[tp] = r.log().RecoveryPoint(), r.HighWatermark()
		if start := r.LogStartOffset(); start > 0 {
			starts[tp] = start
		}
	}
	err := errors.Join(d.dir.WriteRecoveryPoints(points), d.dir.WriteLogStartOffsets(starts), d.dir.WriteHighWatermarks(marks))
	if err == nil && clean {
		epoch := metadata.NoBrokerEpoch
		if s.options.BrokerEpoch != nil {
			epoch = s.options.BrokerEpoch()
		}
		err = d.dir.MarkCleanShutdown(int64(epoch))
	}
	return errors.Join(err, d.dir.Close())
}
