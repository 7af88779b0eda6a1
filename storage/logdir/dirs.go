package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"sluice/protocol/uuid"
	"sluice/storage/checkpoint"
	"sluice/storage/vfs"
)

// Dirs are the log directories of one broker, in the order of its configuration.
type Dirs []*Dir

// OpenAll opens the directories of one broker. One that cannot be read or written is in the result, offline from the start, as long as
// another one works. What a person has to decide is an error: a directory that is in use, belongs to another cluster or node, has a copy of
// another's id, or is given twice; and that none is formatted, unless Create is set. A new directory beside formatted ones is formatted.
func OpenAll(fsys vfs.FS, paths []string, o Options) (Dirs, error) {
	if len(paths) == 0 {
		return nil, errors.New("no log directory is configured")
	}
	seen := map[string]bool{}
	for _, p := range paths {
		if seen[path.Clean(p)] {
			return nil, fmt.Errorf("log directory %s is configured twice", p)
		}
		seen[path.Clean(p)] = true
	}
	if first, ok := firstFormatted(fsys, paths); ok {
		o.Create = true
		if o.ClusterID == "" {
			o.ClusterID = first.ClusterID
		}
		if o.NodeID < 0 {
			o.NodeID = first.NodeID
		}
	}
	var dirs Dirs
	for _, p := range paths {
		d, err := Open(fsys, p, o)
		if broken := (*ioFault)(nil); errors.As(err, &broken) {
			d, err = &Dir{fs: fsys, path: path.Clean(p), o: o}, nil
			d.Fail(broken.err)
		}
		if err != nil {
			return nil, errors.Join(err, dirs.Close())
		}
		dirs = append(dirs, d)
	}
	if err := dirs.check(); err != nil {
		return nil, errors.Join(err, dirs.Close())
	}
	return dirs, nil
}

// firstFormatted returns the first meta.properties that can be read.
func firstFormatted(fsys vfs.FS, paths []string) (checkpoint.MetaProperties, bool) {
	for _, p := range paths {
		m, err := checkpoint.ReadMetaProperties(fsys, path.Clean(p))
		if err == nil && m.ClusterID != "" && m.NodeID >= 0 {
			return m, true
		}
	}
	return checkpoint.MetaProperties{}, false // what is wrong is said when the directories are opened
}

// check looks for what only all directories together show.
func (dirs Dirs) check() error {
	if len(dirs.Live()) == 0 {
		reasons := make([]error, len(dirs))
		for i, d := range dirs {
			reasons[i] = d.Failure()
		}
		return fmt.Errorf("no log directory works: %w", errors.Join(reasons...))
	}
	ids, partitions := map[uuid.UUID]*Dir{}, map[TopicPartition]*Dir{}
	for _, d := range dirs.Live() {
		if other, ok := ids[d.ID()]; ok {
			return fmt.Errorf("log directories %s and %s have the same directory id %s: one is a copy of the other", other.path, d.path, d.ID())
		}
		ids[d.ID()] = d
		for _, p := range d.Partitions() {
			if p.Kind != Current {
				continue
			}
			if other, ok := partitions[p.TopicPartition]; ok {
				return fmt.Errorf("%s is in %s and in %s: remove the folder in the directory that failed last", p.TopicPartition, other.path, d.path)
			}
			partitions[p.TopicPartition] = d
		}
	}
	return nil
}

// Live are the directories that work.
func (dirs Dirs) Live() Dirs {
	return slices.DeleteFunc(slices.Clone(dirs), func(d *Dir) bool { return d.Failure() != nil })
}

// Close closes all directories.
func (dirs Dirs) Close() error {
	var errs []error
	for _, d := range dirs {
		if err := d.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
