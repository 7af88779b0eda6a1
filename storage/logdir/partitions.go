package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"sluice/protocol/uuid"
	"sluice/storage/checkpoint"
)

// Partition is the folder of one partition.
type Partition struct {
	TopicPartition
	Kind Kind // Current or Future
	Path string
	// TopicID is zero where the folder does not say it: the power failed after the folder had been made and before anything in it was
	// flushed, so what is in it was never promised to anybody.
	TopicID uuid.UUID
}

// InconsistentTopicID is the error of creating a partition whose folder is there and belongs to another topic of the same name.
type InconsistentTopicID struct {
	TopicPartition
	Stored, Wanted uuid.UUID
}

func (e *InconsistentTopicID) Error() string {
	return fmt.Sprintf("the folder of %s belongs to the topic id %s, not %s", e.TopicPartition, e.Stored, e.Wanted)
}

// scan lists the directory.
func (d *Dir) scan() error {
	d.mu.current, d.mu.future, d.mu.created = map[TopicPartition]uuid.UUID{}, map[TopicPartition]string{}, map[TopicPartition]bool{}
	entries, err := d.fs.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		name := e.Name()
		tp, kind, err := ParseDirName(name)
		switch {
		case err != nil:
			d.mu.ignored = append(d.mu.ignored, name)
		case tp.Topic == MetadataTopic:
		case kind == Deleted:
			d.mu.deleted = append(d.mu.deleted, deletion{name, math.MinInt64})
		case kind == Stray:
			d.mu.stray = append(d.mu.stray, name)
		case kind == Future:
			if other, ok := d.mu.future[tp]; ok {
				return fmt.Errorf("two copies of %s are under way, %s and %s: remove one", tp, other, name)
			}
			d.mu.future[tp] = name
		default:
			if d.mu.current[tp], err = d.topicID(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// topicID reads which topic a folder belongs to; zero if it does not say.
func (d *Dir) topicID(name string) (uuid.UUID, error) {
	id, err := checkpoint.ReadPartitionMetadata(d.fs, d.file(name))
	if corrupt := (*checkpoint.Corrupt)(nil); errors.As(err, &corrupt) {
		d.mu.warnings = append(d.mu.warnings, fmt.Errorf("the folder's topic is unknown: %w", err))
		return uuid.UUID{}, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return uuid.UUID{}, nil
	}
	return id, err
}

// Partitions lists the partitions in the directory, current before future, in order. The controller's log is not among them.
func (d *Dir) Partitions() []Partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	partitions := make([]Partition, 0, len(d.mu.current)+len(d.mu.future))
	for _, tp := range sortedPartitions(d.mu.current) {
		partitions = append(partitions, Partition{tp, Current, d.PartitionPath(tp), d.mu.current[tp]})
	}
	for _, tp := range sortedPartitions(d.mu.future) {
		partitions = append(partitions, Partition{TopicPartition: tp, Kind: Future, Path: d.file(d.mu.future[tp])})
	}
	return partitions
}

// Count is the number of partitions, current and future.
func (d *Dir) Count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.mu.current) + len(d.mu.future)
}

// Ignored names the folders in the directory that are none of a partition.
func (d *Dir) Ignored() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.mu.ignored...)
}

// Strays names the folders of partitions that this broker was found not to have. They are kept until somebody removes them by hand.
func (d *Dir) Strays() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.mu.stray...)
}

// PartitionPath is where the current log of a partition is, whether or not it exists.
func (d *Dir) PartitionPath(tp TopicPartition) string { return d.file(DirName(tp)) }

// CreatePartition makes the folder of a partition and returns its path. A folder that is there already is kept if it is of the same topic;
// of another one it is *InconsistentTopicID. It survives a crash of the process; SyncCreated makes it survive one of the machine.
func (d *Dir) CreatePartition(tp TopicPartition, topicID uuid.UUID) (string, error) {
	if !validTopic(tp.Topic) || tp.Partition < 0 {
		return "", fmt.Errorf("create %q partition %d: not the name of a partition", tp.Topic, tp.Partition)
	}
	if topicID.IsZero() {
		return "", fmt.Errorf("create %s: no topic id", tp)
	}
	d.mu.Lock()
	stored, exists := d.mu.current[tp]
	d.mu.Unlock()
	dir := d.PartitionPath(tp)
	switch {
	case exists && stored == topicID:
		return dir, d.usable()
	case exists && !stored.IsZero():
		return "", &InconsistentTopicID{TopicPartition: tp, Stored: stored, Wanted: topicID}
	}
	err := d.do(func() error {
		if err := d.fs.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return d.writeTopicID(dir, topicID)
	})
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.current[tp] = topicID
	d.mu.created[tp] = true
	return dir, nil
}

// writeTopicID writes partition.metadata without waiting for the disk, as creating a thousand topics must not take thousands of waits. A
// torn file reads as none, which is right for a folder without flushed records.
func (d *Dir) writeTopicID(dir string, topicID uuid.UUID) error {
	f, err := d.fs.OpenFile(dir+"/"+checkpoint.PartitionMetadataFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(checkpoint.AppendPartitionMetadata(nil, topicID), 0)
	return errors.Join(err, f.Close())
}

// SyncCreated makes the folders durable that CreatePartition has made since the last call. Whoever promises that records are flushed calls
// it first; it costs next to nothing when there are none. WriteRecoveryPoints and MarkCleanShutdown do.
func (d *Dir) SyncCreated() error {
	d.mu.Lock()
	created := d.mu.created
	if len(created) > 0 {
		d.mu.created = map[TopicPartition]bool{}
	}
	d.mu.Unlock()
	if len(created) == 0 {
		return d.usable()
	}
	return d.do(func() error {
		if err := d.syncPartitions(sortedPartitions(created)); err != nil {
			return err
		}
		return d.fs.SyncDir(d.path)
	})
}

// syncedAtOnce is how many folders are synced at a time: a disk syncs many files together nearly as fast as one.
const syncedAtOnce = 64

func (d *Dir) syncPartitions(all []TopicPartition) error {
	var next atomic.Int64
	errs := make([]error, min(len(all), syncedAtOnce))
	var wait sync.WaitGroup
	for worker := range errs {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(all) && errs[worker] == nil; i = int(next.Add(1)) - 1 {
				if err := d.syncPartition(d.PartitionPath(all[i])); !errors.Is(err, fs.ErrNotExist) { // else deleted meanwhile
					errs[worker] = err
				}
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (d *Dir) syncPartition(dir string) error {
	f, err := d.fs.OpenFile(dir+"/"+checkpoint.PartitionMetadataFile, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return d.fs.SyncDir(dir)
}

// DeletePartition renames the folder of a partition so that RemoveDeleted finds it; the name is free for a new partition at once. A
// partition that is not there is no error. Its log must be closed; reads that still hold its files go on.
func (d *Dir) DeletePartition(tp TopicPartition, nowMs int64) error {
	name, err := d.setAside(tp, Deleted)
	if err != nil || name == "" {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.deleted = append(d.mu.deleted, deletion{name, nowMs})
	return nil
}

// MarkStray renames the folder of a partition that this broker is not to have, so that it is out of the way but not lost, and returns the
// new path. A partition that is not there gives no path.
func (d *Dir) MarkStray(tp TopicPartition) (string, error) {
	name, err := d.setAside(tp, Stray)
	if err != nil || name == "" {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.stray = append(d.mu.stray, name)
	return d.file(name), nil
}

// setAside renames a partition's folder and returns its new name, none if there is no such partition. The rename need not be durable: a
// folder that comes back under its old name is recognized by its topic id.
func (d *Dir) setAside(tp TopicPartition, kind Kind) (string, error) {
	d.mu.Lock()
	_, exists := d.mu.current[tp]
	d.mu.Unlock()
	if !exists {
		return "", d.usable()
	}
	var name string
	err := d.do(func() (err error) {
		if name, err = markedName(tp, kind, d.o.Random); err != nil {
			return err
		}
		return d.fs.Rename(d.PartitionPath(tp), d.file(name))
	})
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.current, tp)
	delete(d.mu.created, tp)
	return name, nil
}

// RemoveDeleted removes the folders of partitions that were deleted delayMs ago or earlier, those that were found so at open first, and
// returns how many there were.
func (d *Dir) RemoveDeleted(nowMs, delayMs int64) (int, error) {
	removed := 0
	for {
		name, ok := d.nextDeleted(nowMs - delayMs)
		if !ok {
			return removed, d.usable()
		}
		if err := d.do(func() error { return d.fs.RemoveAll(d.file(name)) }); err != nil {
			return removed, err
		}
		removed++
	}
}

// nextDeleted takes the oldest deletion out of the queue if it is not younger than the limit.
func (d *Dir) nextDeleted(limitMs int64) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.mu.deleted) == 0 || d.mu.deleted[0].sinceMs > limitMs {
		return "", false
	}
	next := d.mu.deleted[0]
	d.mu.deleted = d.mu.deleted[1:]
	return next.name, true
}
