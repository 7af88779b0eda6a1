package replica

import (
	"maps"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"

	"sluice/protocol/uuid"
	"sluice/replication/metadata"
	"sluice/replication/partition"
	"sluice/storage/logdir"
)

// offsets is the content of a checkpoint file.
type offsets = map[logdir.TopicPartition]int64

// directory is one log directory as the set uses it.
type directory struct {
	dir     *logdir.Dir
	planned int                                 // replicas in it, for choosing the emptiest; Apply's alone
	present map[logdir.TopicPartition]uuid.UUID // when opened; zero where the folder does not say which topic it is of
	offline atomic.Pointer[partition.StorageOffline]
	// toldFullMs is when the log last said that the directory is full, in ms since 1970; 0 for never.
	toldFullMs atomic.Int64

	// What the checkpoint files hold, so that an idle broker does not write them over and over; the background jobs' alone.
	written map[string]offsets
}

func newDirectory(dir *logdir.Dir) *directory {
	d := &directory{dir: dir, present: map[logdir.TopicPartition]uuid.UUID{}, written: map[string]offsets{}}
	for _, p := range dir.Partitions() {
		if p.Kind == logdir.Current {
			d.present[p.TopicPartition] = p.TopicID
		}
	}
	if err := dir.Failure(); err != nil {
		d.goOffline(err)
	}
	return d
}

// Path is the directory.
func (d *directory) Path() string { return d.dir.Path() }

// offlineError is nil while the directory works.
func (d *directory) offlineError() error {
	if err := d.offline.Load(); err != nil {
		return err
	}
	return nil
}

// goOffline reports whether the directory worked until now.
func (d *directory) goOffline(err error) bool {
	if !d.offline.CompareAndSwap(nil, &partition.StorageOffline{Dir: d.Path(), Err: err}) {
		return false
	}
	d.dir.Fail(err)
	return true
}

// holds reports whether the directory had the partition's log when it was opened.
func (d *directory) holds(tp logdir.TopicPartition, id uuid.UUID) bool {
	found, ok := d.present[tp]
	return ok && (found == id || found.IsZero())
}

// checkpoints is what the directory's files said about one log when it was opened.
type checkpoints struct {
	logStartOffset, recoveryPoint, highWatermark int64
	cleanedTo                                    int64 // -1 if the file has no entry
	clean                                        bool
}

// unknown is for a log that the files do not know.
var unknown = checkpoints{cleanedTo: -1}

func (d *directory) found(tp logdir.TopicPartition) checkpoints {
	c := checkpoints{
		logStartOffset: d.dir.LogStartOffsets()[tp], recoveryPoint: d.dir.RecoveryPoints()[tp], highWatermark: d.dir.HighWatermarks()[tp],
		cleanedTo: -1, clean: d.dir.CleanShutdown(),
	}
	if at, ok := d.dir.CleanerOffsets()[tp]; ok {
		c.cleanedTo = at
	}
	return c
}

// setStraysAside renames what the directories hold and the metadata does not give to this broker. It is kept for its owner to decide about.
func (s *Set) setStraysAside(image *metadata.Image) {
	for _, d := range s.dirs {
		if d.offlineError() != nil {
			continue
		}
		for _, p := range d.dir.Partitions() {
			if p.Kind != logdir.Current || s.assigned(image, p) {
				continue
			}
			path, err := d.dir.MarkStray(p.TopicPartition)
			if err != nil {
				s.fail(d, err)
				break
			}
			delete(d.present, p.TopicPartition)
			s.options.Log.Warn("a partition on the disk is not of a topic that exists, or not this broker's: set aside",
				zap.Stringer("partition", p.TopicPartition), zap.Stringer("topic_id", p.TopicID), zap.String("folder", path))
		}
	}
}

// assigned reports whether the metadata gives a partition on the disk to this broker.
func (s *Set) assigned(image *metadata.Image, p logdir.Partition) bool {
	t, ok := image.Topic(p.Topic)
	return ok && (t.ID == p.TopicID || p.TopicID.IsZero()) && int(p.Partition) < len(t.Partitions) &&
		slices.Contains(t.Partitions[p.Partition].Replicas, s.options.NodeID)
}

// checkpoint writes one offset of every log of the directory, if any of them differs from what was written last.
func (d *directory) checkpoint(name string, next offsets, write func(offsets) error) error {
	if before, ok := d.written[name]; ok && maps.Equal(before, next) {
		return nil
	}
	if err := write(next); err != nil {
		return err
	}
	d.written[name] = next
	return nil
}

// tellFullEveryMs is how often the log says that a directory is full, while writes to it fail.
const tellFullEveryMs = 30_000

// tellFull logs that a directory has no space left. Every failed write comes by here; one line in a while is enough.
func (s *Set) tellFull(d *directory, err error) {
	nowMs := s.options.NowMs()
	last := d.toldFullMs.Load()
	if last != 0 && nowMs-last < tellFullEveryMs || !d.toldFullMs.CompareAndSwap(last, nowMs) {
		return
	}
	s.options.Log.Error("a log directory is full: produce requests to it fail until there is space, what is there can be read",
		zap.String("dir", d.Path()), zap.Error(err))
}
