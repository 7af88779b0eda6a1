package replica

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"go.uber.org/zap"

	"sluice/protocol/record"
	"sluice/protocol/uuid"
	"sluice/replication/metadata"
	"sluice/replication/partition"
	"sluice/storage/logdir"
	"sluice/storage/partlog"
)

// Apply makes the set follow a metadata delta: replicas are created, opened, deleted, made leader or follower, or configured anew. When it
// returns, what the delta asks of this broker is in force. Calls must not overlap and must be in order; Options.Topic must already answer
// by what the delta brings. Trouble with one partition is logged and is that partition's alone.
//
// The first delta must bring an image that has caught up with the cluster: what is on the disk and not in it is set aside as stray.
func (s *Set) Apply(d *metadata.Delta) {
	s.applying.Lock()
	defer s.applying.Unlock()
	s.image.Store(d.Next)
	for _, t := range d.TopicsDeleted {
		s.deleteTopic(t)
	}
	if !s.started {
		s.setStraysAside(d.Next)
	}
	plan := s.plan(d)
	s.open(plan)
	s.started = true
	s.enact(plan)
	s.configure(d)
	if s.cleaner.stale {
		// Else a topic of the same name might be taken, after a restart, for one that was compacted.
		s.cleaner.stale = false
		s.checkpointCleaned()
	}
}

// enact puts the topics of a plan, whose replicas have been opened, into force.
func (s *Set) enact(p *plan) {
	nowMs := s.options.NowMs()
	for _, c := range p.changes {
		s.put(c.topic)
		for _, i := range c.partitions {
			if r := c.topic.replicas[i]; r != nil {
				r.register(&c.registered.Partitions[i], nowMs)
			}
		}
	}
}

// plan is what a delta asks for: topics as they are to be, with the replicas that have yet to be opened.
type plan struct {
	changes []change
	jobs    []job
}

type change struct {
	topic      *topic
	registered *metadata.Topic
	partitions []int32
}

// job is one replica to be opened or created.
type job struct {
	topic *topic
	index int32
	dir   *directory
}

func (s *Set) plan(d *metadata.Delta) *plan {
	p := &plan{}
	for _, t := range d.TopicsCreated {
		all := make([]int32, len(t.Partitions))
		for i := range all {
			all[i] = int32(i)
		}
		s.planTopic(p, t, all)
	}
	for _, c := range d.TopicsChanged {
		s.planTopic(p, c.Topic, c.Partitions)
	}
	return p
}

func (s *Set) planTopic(p *plan, t *metadata.Topic, changed []int32) {
	next := &topic{name: t.Name, id: t.ID, replicas: make([]*Replica, len(t.Partitions)), missing: make([]error, len(t.Partitions))}
	if known := s.find(t.ID); known != nil {
		copy(next.replicas, known.replicas)
		copy(next.missing, known.missing)
	}
	for _, i := range changed {
		registered := &t.Partitions[i]
		at := slices.Index(registered.Replicas, s.options.NodeID)
		switch {
		case at < 0:
			if r := next.replicas[i]; r != nil { // moved away by a reassignment
				s.deleteReplica(r)
				next.replicas[i] = nil
			}
			next.missing[i] = &partition.NotLeader{LeaderID: partition.BrokerID(registered.Leader), LeaderEpoch: registered.LeaderEpoch}
		case next.replicas[i] == nil:
			tp := logdir.TopicPartition{Topic: t.Name, Partition: i}
			assigned := uuid.UnassignedDirectory
			if at < len(registered.Directories) {
				assigned = registered.Directories[at]
			}
			dir := s.directoryFor(tp, t.ID, assigned)
			if dir == nil {
				next.missing[i] = s.noDirectory()
				continue
			}
			dir.planned++
			p.jobs = append(p.jobs, job{topic: next, index: i, dir: dir})
		}
	}
	p.changes = append(p.changes, change{topic: next, registered: t, partitions: changed})
}

// directoryFor finds where a replica is, or is to be: in the directory that already has it, in the assigned one, or else in the one with
// the fewest replicas. It returns nil when no directory is left.
func (s *Set) directoryFor(tp logdir.TopicPartition, id, assigned uuid.UUID) *directory {
	var fewest *directory
	for _, d := range s.dirs {
		if d.holds(tp, id) {
			return d
		}
		if d.offlineError() == nil && (fewest == nil || d.planned < fewest.planned) {
			fewest = d
		}
	}
	for _, d := range s.dirs {
		if d.dir.ID() == assigned && d.offlineError() == nil {
			return d
		}
	}
	return fewest
}

// noDirectory is the error of a replica that no directory is left for.
func (s *Set) noDirectory() error {
	for _, d := range s.dirs {
		if err := d.offlineError(); err != nil {
			return err
		}
	}
	return &partition.StorageOffline{}
}

// open does the plan's jobs: in each directory several at a time, so that a slow one does not hold up the others.
func (s *Set) open(p *plan) {
	queues := map[*directory][]job{}
	for _, j := range p.jobs {
		queues[j.dir] = append(queues[j.dir], j)
	}
	s.opening.logs.Store(int64(len(p.jobs)))
	var wait sync.WaitGroup
	for _, queue := range queues {
		var next atomic.Int64
		for range min(len(queue), max(1, s.options.Broker().RecoveryThreads)) {
			wait.Go(func() {
				for i := int(next.Add(1)) - 1; i < len(queue); i = int(next.Add(1)) - 1 {
					j := queue[i]
					j.topic.replicas[j.index], j.topic.missing[j.index] = s.openReplica(j)
					s.opening.opened.Add(1)
					s.tellProgress()
				}
			})
		}
	}
	wait.Wait()
	s.opening.done.Store(true)
	for _, j := range p.jobs {
		if j.topic.replicas[j.index] == nil {
			j.dir.planned--
		}
	}
}

func (s *Set) openReplica(j job) (*Replica, error) {
	tp := logdir.TopicPartition{Topic: j.topic.name, Partition: j.index}
	config := s.options.Topic(j.topic.name)
	found := unknown
	if !s.started && j.dir.holds(tp, j.topic.id) {
		found = j.dir.found(tp)
	} else if s.full(j.dir) {
		s.unopened.Store(true)
		s.tellFull(j.dir, syscall.ENOSPC)
		return nil, &partition.StorageFull{Dir: j.dir.Path(), Err: syscall.ENOSPC}
	}
	log, err := s.openLog(j.dir, j.topic.name, j.topic.id, j.index, config, found)
	if err != nil {
		return nil, s.openFailed(j, tp, err)
	}
	r := &Replica{set: s, serial: s.serials.Add(1), topic: j.topic.name, topicID: j.topic.id, index: j.index, dir: j.dir}
	r.current.Store(log)
	r.cleanedTo.Store(found.cleanedTo)
	r.config.Store(config)
	r.writer.state = partition.NewState(s.nodeID(), found.highWatermark, log.LogStartOffset(), log.LogEndOffset())
	r.highWatermark.Store(r.writer.state.HighWatermark())
	r.role.Store(&role{leader: partition.NoBroker, leaderEpoch: record.NoLeaderEpoch, epochStartOffset: record.NoOffset})
	return r, nil
}

func (s *Set) openLog(d *directory, name string, id uuid.UUID, index int32, config *TopicConfig, found checkpoints) (*partlog.Log, error) {
	path, err := d.dir.CreatePartition(logdir.TopicPartition{Topic: name, Partition: index}, id)
	if err != nil {
		return nil, err
	}
	return partlog.Open(partlog.Options{
		FS: s.options.FS, Dir: path, Config: &config.Log,
		LogStartOffset: found.logStartOffset, RecoveryPoint: found.recoveryPoint, CleanedTo: max(found.cleanedTo, 0), CleanShutdown: found.clean,
		ProducerIDExpirationMs: s.options.Broker().ProducerIDExpirationMs,
		NowMs:                  s.options.NowMs(),
		JitterSeed:             jitterSeed(id, index),
		Progress:               s.recovering,
		Background:             func(work func()) { go work() },
	})
}

// openMissing creates the replicas for which there was no space before.
func (s *Set) openMissing() {
	if !s.unopened.Load() {
		return
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	s.unopened.Store(false)
	image, p := s.image.Load(), &plan{}
	for t := range image.Topics() {
		known := s.find(t.ID)
		if known == nil {
			continue
		}
		var missing []int32
		for i, err := range known.missing {
			if full := (*partition.StorageFull)(nil); known.replicas[i] == nil && errors.As(err, &full) {
				missing = append(missing, int32(i))
			}
		}
		if missing != nil {
			s.planTopic(p, t, missing)
		}
	}
	s.open(p)
	s.enact(p)
}

// openFailed logs why a replica could not be opened and returns what to tell those who ask for it.
func (s *Set) openFailed(j job, tp logdir.TopicPartition, err error) error {
	s.options.Log.Error("a partition could not be opened", zap.Stringer("partition", tp), zap.String("dir", j.dir.Path()), zap.Error(err))
	if outOfSpace(err) && j.dir.dir.Failure() == nil {
		return &partition.StorageFull{Dir: j.dir.Path(), Err: err}
	}
	s.fail(j.dir, err)
	return j.dir.offlineError()
}

func (s *Set) tellProgress() {
	if s.options.Progress != nil && !s.opening.done.Load() {
		s.options.Progress(Opening{Opened: int(s.opening.opened.Load()), Logs: int(s.opening.logs.Load()), SegmentsScanned: int(s.opening.scanned.Load())})
	}
}

func (s *Set) recovering(r partlog.Recovery) {
	if r.SegmentsLeft > 0 {
		s.opening.scanned.Add(1)
		s.tellProgress()
	}
	if r.TruncatedBytes > 0 || r.Repaired != "" || r.SegmentsDropped > 0 {
		s.options.Log.Warn("a log was repaired when it was opened", zap.String("dir", r.Dir), zap.Int64("segment", r.SegmentBase),
			zap.Int64("truncated_bytes", r.TruncatedBytes), zap.Int("segments_dropped", r.SegmentsDropped), zap.String("repaired", r.Repaired))
		return
	}
	if ce := s.options.Log.Check(zap.DebugLevel, "scanning an unflushed segment"); ce != nil {
		ce.Write(zap.String("dir", r.Dir), zap.Int64("segment", r.SegmentBase), zap.Int("segments_left", r.SegmentsLeft))
	}
}

// jitterSeed gives each log its own jitter, the same at every start.
func jitterSeed(id uuid.UUID, index int32) uint64 {
	var seed uint64
	for _, b := range id[8:] {
		seed = seed<<8 | uint64(b)
	}
	return seed ^ uint64(uint32(index))
}

// register takes what the metadata says about the partition.
func (r *Replica) register(p *metadata.Partition, nowMs int64) {
	if flushesFirst(r.config.Load()) { // what a crash has left in the log counts once it is flushed, as everything there
		if err := r.flushTo(r.LogEndOffset()); err != nil {
			r.set.report(r, "flush", err)
		}
	}
	r.writer.Lock()
	if r.role.Load().gone != nil {
		r.writer.Unlock()
		return
	}
	state, end := r.writer.state, r.log().LogEndOffset()
	changed := state.Register(registrationOf(p), end, nowMs)
	if changed == partition.Stale {
		r.writer.Unlock()
		return
	}
	if changed == partition.Leads {
		r.log().AssignEpochStart(p.LeaderEpoch, end)
	}
	r.advanceLocked(r.config.Load(), nowMs)
	r.role.Store(&role{
		leader: partition.BrokerID(p.Leader), leaderEpoch: p.LeaderEpoch, epochStartOffset: state.EpochStartOffset(),
	})
	r.writer.Unlock()
	r.changed()
}

func registrationOf(p *metadata.Partition) partition.Registration {
	return partition.Registration{
		Replicas: brokerIDs(p.Replicas), ISR: brokerIDs(p.ISR), Adding: brokerIDs(p.Adding), Removing: brokerIDs(p.Removing),
		Leader: partition.BrokerID(p.Leader), LeaderEpoch: p.LeaderEpoch, Epoch: partition.Epoch(p.PartitionEpoch),
	}
}

func brokerIDs(ids []metadata.BrokerID) []partition.BrokerID {
	if len(ids) == 0 {
		return nil
	}
	converted := make([]partition.BrokerID, len(ids))
	for i, id := range ids {
		converted[i] = partition.BrokerID(id)
	}
	return converted
}

// leave ends the use of the replica: from here on everybody gets err.
func (r *Replica) leave(err error) {
	r.writer.Lock()
	now := *r.role.Load()
	if now.gone == nil {
		now.gone = err
		r.role.Store(&now)
	}
	r.writer.Unlock()
	r.changed()
}

func (s *Set) deleteTopic(t *metadata.Topic) {
	known := s.take(t.Name, t.ID)
	if known == nil {
		return
	}
	for _, r := range known.replicas {
		if r != nil {
			s.deleteReplica(r)
		}
	}
}

// deleteReplica ends the use of a replica and gives its folder up; the files are removed some time later.
func (s *Set) deleteReplica(r *Replica) {
	offline := r.Gone()
	r.leave(&partition.Unknown{Topic: r.topic, Partition: r.index})
	if offline != nil {
		return
	}
	r.dir.planned--
	s.cleaner.wait(r)
	s.cleaner.stale = s.cleaner.stale || r.cleanedTo.Load() >= 0
	r.log().Discard()
	if err := r.dir.dir.DeletePartition(logdir.TopicPartition{Topic: r.topic, Partition: r.index}, s.options.NowMs()); err != nil {
		s.fail(r.dir, err)
	}
}

// configure hands changed configs to the logs.
func (s *Set) configure(d *metadata.Delta) {
	for _, resource := range d.ConfigsChanged {
		switch resource.Type {
		case metadata.TopicResource:
			s.table.RLock()
			t := s.table.topics[resource.Name]
			s.table.RUnlock()
			if t != nil {
				s.configureTopic(t)
			}
		case metadata.BrokerResource:
			s.Reconfigure()
			return
		}
	}
}

// Reconfigure asks for the settings again, those of every topic too: the broker's own, which are the topics' defaults, have changed.
func (s *Set) Reconfigure() {
	s.lagTimeMaxMs.Store(s.options.Broker().ReplicaLagTimeMaxMs)
	s.table.RLock()
	topics := make([]*topic, 0, len(s.table.ids))
	for _, t := range s.table.ids {
		topics = append(topics, t)
	}
	s.table.RUnlock()
	for _, t := range topics {
		s.configureTopic(t)
	}
}

func (s *Set) configureTopic(t *topic) {
	config := s.options.Topic(t.name)
	for _, r := range t.replicas {
		if r != nil && r.Gone() == nil {
			r.config.Store(config)
			r.log().SetConfig(&config.Log)
			r.advance(config, s.options.NowMs()) // min.insync.replicas may have held the high watermark back
			r.changed()
		}
	}
}
