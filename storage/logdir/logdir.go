// Package logdir is a data directory: its lock, whose it is, the folders of its partitions, its checkpoints, and whether it still works.
// A broker has one or several (log.dirs); trouble with one takes that one offline and no other.
//
// The layout is Kafka's:
//
//	.lock                              held while a process uses the directory
//	meta.properties                    cluster, node and directory id
//	.kafka_cleanshutdown               there while stopped after a clean shutdown
//	recovery-point-offset-checkpoint   and the other offset checkpoints, see package checkpoint
//	topic-0/                           a partition; see Kind for the other names
//	__cluster_metadata-0/              the controller's log, which this package leaves alone
//
// Nothing runs in the background: the caller decides when checkpoints are written and deleted folders removed.
package logdir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"sluice/protocol/uuid"
	"sluice/storage/checkpoint"
	"sluice/storage/vfs"
)

const lockFile = ".lock"

// Options say whose directory is to be opened.
type Options struct {
	// ClusterID must be the directory's, if not empty. It is needed to create.
	ClusterID string
	// NodeID must be the directory's; -1 accepts any. It is needed to create.
	NodeID int32
	// Create lets a directory without meta.properties become this node's. Otherwise it is refused with ErrNotFormatted.
	Create bool
	// Random is where ids come from; crypto/rand's reader if nil.
	Random io.Reader
	// OnFailure is called once when the directory goes offline, in the goroutine that found the trouble. It must not block. May be nil.
	OnFailure func(d *Dir, reason error)
}

// ErrNotFormatted is wrapped by the error for a directory that has no meta.properties.
var ErrNotFormatted = errors.New("the directory is not formatted, it has no meta.properties")

// Offline is the error of everything that is asked of a directory after it has failed.
type Offline struct {
	Path   string
	Reason error // what happened first
}

func (e *Offline) Error() string {
	return fmt.Sprintf("log directory %s is offline: %v", e.Path, e.Reason)
}
func (e *Offline) Unwrap() error { return e.Reason }

// Dir is one log directory. Its methods may be called from several goroutines; writes of one checkpoint must not overlap.
//
// An I/O error in any of them takes the directory offline, as one that a caller met and reports with Fail does.
type Dir struct {
	fs   vfs.FS
	path string
	o    Options
	meta checkpoint.MetaProperties
	lock io.Closer

	clean         bool
	previousEpoch int64
	checkpoints   map[string]map[TopicPartition]int64 // as read when opened, by file name

	mu struct {
		sync.Mutex
		failure  error
		closed   bool
		current  map[TopicPartition]uuid.UUID
		future   map[TopicPartition]string // folder name
		created  map[TopicPartition]bool   // since the last SyncCreated
		stray    []string
		deleted  []deletion
		ignored  []string
		warnings []error
	}
}

// deletion is a folder that waits to be removed.
type deletion struct {
	name    string
	sinceMs int64 // the least value for one that was found at open
}

// ioFault is an error that tells of the device or the rights on it and not of what a person has configured. OpenAll goes on without such a
// directory.
type ioFault struct {
	path, what string
	err        error
}

func (e *ioFault) Error() string {
	return fmt.Sprintf("log directory %s %s: %v", e.path, e.what, e.err)
}
func (e *ioFault) Unwrap() error { return e.err }

func (d *Dir) fault(what string, err error) error { return &ioFault{d.path, what, err} }

// Open locks the directory, creating it if it is missing, checks that it belongs to the node of the options and reads its checkpoints. The
// mark of a clean shutdown is taken: from here until MarkCleanShutdown, a crash is one. A caller that gives up before it opens any log
// leaves the mark again with MarkCleanShutdown if CleanShutdown was true.
//
// Errors are sentences for the person who starts the program. The error wraps vfs.ErrLocked when another process uses the directory, and
// ErrNotFormatted when it has no meta.properties and Create is not set.
func Open(fsys vfs.FS, dir string, o Options) (*Dir, error) {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	d := &Dir{fs: fsys, path: path.Clean(dir), o: o}
	if err := d.makeDir(); err != nil {
		return nil, d.fault("cannot be created or is not a directory", err)
	}
	lock, err := fsys.Lock(d.file(lockFile))
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("log directory %s is in use: another running broker holds %s: %w", d.path, d.file(lockFile), vfs.ErrLocked)
	}
	if err != nil {
		return nil, d.fault("cannot be locked", err)
	}
	d.lock = lock
	if err := d.load(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

func (d *Dir) file(name string) string { return d.path + "/" + name }

// makeDir creates the directory and its parents, and makes the new names durable.
func (d *Dir) makeDir() error {
	var missing []string
	for dir := d.path; ; dir = path.Dir(dir) {
		info, err := d.fs.Stat(dir)
		if err == nil && !info.IsDir() {
			return &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a directory")}
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || path.Dir(dir) == dir {
			return err
		}
		missing = append(missing, dir)
	}
	if len(missing) == 0 {
		return nil
	}
	if err := d.fs.MkdirAll(d.path, 0o755); err != nil {
		return err
	}
	for _, dir := range slices.Backward(missing) {
		if err := d.fs.SyncDir(path.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}

// load reads everything of the directory but its partitions' files.
func (d *Dir) load() error {
	if err := d.loadMeta(); err != nil {
		return err
	}
	if err := d.scan(); err != nil {
		return d.fault("cannot be read", err)
	}
	d.checkpoints = map[string]map[TopicPartition]int64{}
	for _, name := range []string{checkpoint.RecoveryPointFile, checkpoint.LogStartOffsetFile, checkpoint.HighWatermarkFile, checkpoint.CleanerOffsetFile} {
		offsets, err := checkpoint.ReadOffsets(d.fs, d.file(name))
		if corrupt := (*checkpoint.Corrupt)(nil); errors.As(err, &corrupt) {
			// Without the file recovery starts at the beginning, which is slow and safe. Kafka does the same.
			d.mu.warnings = append(d.mu.warnings, fmt.Errorf("checkpoint is unreadable and taken for empty: %w", err))
			offsets, err = map[TopicPartition]int64{}, nil
		}
		if err != nil {
			return d.fault("has a checkpoint that cannot be read", err)
		}
		d.checkpoints[name] = offsets
	}
	clean, epoch, err := checkpoint.TakeCleanShutdown(d.fs, d.path)
	if err != nil {
		return d.fault("cannot be written", err)
	}
	d.clean, d.previousEpoch = clean, epoch
	return nil
}

// loadMeta reads meta.properties, or writes it where the options allow.
func (d *Dir) loadMeta() error {
	m, err := checkpoint.ReadMetaProperties(d.fs, d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !d.o.Create {
			return fmt.Errorf("log directory %s: %w", d.path, ErrNotFormatted)
		}
		if d.o.ClusterID == "" || d.o.NodeID < 0 {
			return fmt.Errorf("log directory %s: a cluster id and a node id are needed to format it", d.path)
		}
		m = checkpoint.MetaProperties{}
	case err != nil:
		return d.fault("has a meta.properties that cannot be read", err)
	default:
		if err := d.checkOwner(m); err != nil {
			return err
		}
	}
	changed := m
	changed.Version = 1
	if changed.ClusterID == "" {
		changed.ClusterID = d.o.ClusterID
	}
	if m.Version == 0 && d.o.NodeID >= 0 {
		changed.NodeID = d.o.NodeID
	}
	if changed.DirectoryID.IsZero() {
		if changed.DirectoryID, err = uuid.New(d.o.Random); err != nil {
			return fmt.Errorf("log directory %s: make a directory id: %w", d.path, err)
		}
	}
	if changed.ClusterID == "" || changed.NodeID < 0 {
		return fmt.Errorf("log directory %s: meta.properties has no cluster id or no node id, and none is configured", d.path)
	}
	if changed != m {
		if err := checkpoint.WriteMetaProperties(d.fs, d.path, changed); err != nil {
			return d.fault("cannot be written", err)
		}
	}
	d.meta = changed
	return nil
}

func (d *Dir) checkOwner(m checkpoint.MetaProperties) error {
	if d.o.ClusterID != "" && m.ClusterID != "" && m.ClusterID != d.o.ClusterID {
		return fmt.Errorf("log directory %s belongs to the cluster %s, but this broker is set up for the cluster %s: use another directory, or set the cluster id that the directory has",
			d.path, m.ClusterID, d.o.ClusterID)
	}
	if d.o.NodeID >= 0 && m.NodeID >= 0 && m.NodeID != d.o.NodeID {
		return fmt.Errorf("log directory %s belongs to node %d, but node.id is %d: set node.id=%d if its content was moved here, or use another directory for a new node",
			d.path, m.NodeID, d.o.NodeID, m.NodeID)
	}
	return nil
}

// Path is the directory, cleaned.
func (d *Dir) Path() string { return d.path }

// ID is the id by which the controller knows the directory.
func (d *Dir) ID() uuid.UUID { return d.meta.DirectoryID }

// ClusterID is the cluster that the directory belongs to.
func (d *Dir) ClusterID() string { return d.meta.ClusterID }

// NodeID is the node that the directory belongs to.
func (d *Dir) NodeID() int32 { return d.meta.NodeID }

// CleanShutdown tells whether the directory was left by a clean shutdown, so that its logs need no recovery.
func (d *Dir) CleanShutdown() bool { return d.clean }

// PreviousBrokerEpoch is the epoch of the broker that shut down cleanly, -1 if none did or it did not say.
func (d *Dir) PreviousBrokerEpoch() int64 {
	if !d.clean {
		return checkpoint.NoBrokerEpoch
	}
	return d.previousEpoch
}

// RecoveryPoints are the offsets below which each log was known flushed when the directory was opened. The caller must not modify the map,
// nor those of the next two methods.
func (d *Dir) RecoveryPoints() map[TopicPartition]int64 {
	return d.checkpoints[checkpoint.RecoveryPointFile]
}

// LogStartOffsets are the first readable offsets when the directory was opened, of logs where it is not the start of the first segment.
func (d *Dir) LogStartOffsets() map[TopicPartition]int64 {
	return d.checkpoints[checkpoint.LogStartOffsetFile]
}

// HighWatermarks are the high watermarks, exclusive, when the directory was opened.
func (d *Dir) HighWatermarks() map[TopicPartition]int64 {
	return d.checkpoints[checkpoint.HighWatermarkFile]
}

// CleanerOffsets are the first offsets not yet compacted, when the directory was opened.
func (d *Dir) CleanerOffsets() map[TopicPartition]int64 {
	return d.checkpoints[checkpoint.CleanerOffsetFile]
}

// WriteRecoveryPoints replaces the recovery points of all logs in the directory.
func (d *Dir) WriteRecoveryPoints(offsets map[TopicPartition]int64) error {
	if err := d.SyncCreated(); err != nil {
		return err
	}
	return d.writeOffsets(checkpoint.RecoveryPointFile, offsets)
}

// WriteLogStartOffsets replaces the log start offsets of all logs in the directory.
func (d *Dir) WriteLogStartOffsets(offsets map[TopicPartition]int64) error {
	return d.writeOffsets(checkpoint.LogStartOffsetFile, offsets)
}

// WriteHighWatermarks replaces the high watermarks of all logs in the directory.
func (d *Dir) WriteHighWatermarks(offsets map[TopicPartition]int64) error {
	return d.writeOffsets(checkpoint.HighWatermarkFile, offsets)
}

// WriteCleanerOffsets replaces the compaction offsets of all logs in the directory.
func (d *Dir) WriteCleanerOffsets(offsets map[TopicPartition]int64) error {
	return d.writeOffsets(checkpoint.CleanerOffsetFile, offsets)
}

func (d *Dir) writeOffsets(name string, offsets map[TopicPartition]int64) error {
	return d.do(func() error { return checkpoint.WriteOffsets(d.fs, d.file(name), offsets) })
}

// MarkCleanShutdown says that every log of the directory is flushed and closed. It must be the last write.
func (d *Dir) MarkCleanShutdown(brokerEpoch int64) error {
	if err := d.SyncCreated(); err != nil {
		return err
	}
	return d.do(func() error { return checkpoint.WriteCleanShutdown(d.fs, d.path, brokerEpoch) })
}

// Usage returns the size of the volume and the bytes that may still be written; -1 where unknown.
func (d *Dir) Usage() (totalBytes, freeBytes int64, err error) {
	totalBytes, freeBytes = -1, -1
	err = d.do(func() (err error) {
		totalBytes, freeBytes, err = d.fs.Usage(d.path)
		return err
	})
	return totalBytes, freeBytes, err
}

// Warnings are troubles that did not keep the directory from being opened, for the log.
func (d *Dir) Warnings() []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.mu.warnings)
}

// Failure is nil while the directory works, else an *Offline.
func (d *Dir) Failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.failure
}

// Fail takes the directory offline. The first reason stays; later ones are ignored. The lock is kept until Close.
func (d *Dir) Fail(reason error) {
	d.mu.Lock()
	first := d.mu.failure == nil && !d.mu.closed
	if first {
		d.mu.failure = &Offline{Path: d.path, Reason: reason}
	}
	d.mu.Unlock()
	if first && d.o.OnFailure != nil {
		d.o.OnFailure(d, reason)
	}
}

// do runs an operation unless the directory is offline, and takes it offline if the operation fails.
func (d *Dir) do(op func() error) error {
	if err := d.usable(); err != nil {
		return err
	}
	if err := op(); err != nil {
		d.Fail(err)
		return fmt.Errorf("log directory %s: %w", d.path, err)
	}
	return nil
}

func (d *Dir) usable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return &fs.PathError{Op: "use", Path: d.path, Err: fs.ErrClosed}
	}
	return d.mu.failure
}

// Close gives the lock back. It writes nothing.
func (d *Dir) Close() error {
	d.mu.Lock()
	closed := d.mu.closed
	d.mu.closed = true
	d.mu.Unlock()
	if closed {
		return &fs.PathError{Op: "close", Path: d.path, Err: fs.ErrClosed}
	}
	if d.lock == nil { // offline from the start
		return nil
	}
	return d.lock.Close()
}

// sortedPartitions orders keys so that nothing depends on the order of a map.
func sortedPartitions[V any](m map[TopicPartition]V) []TopicPartition {
	return slices.SortedFunc(maps.Keys(m), TopicPartition.Compare)
}
