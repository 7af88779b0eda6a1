package controller

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
	"sluice/replication/metadata"
	"sluice/storage/checkpoint"
	"sluice/storage/vfs"
)

// FormatOptions describe new log directories.
type FormatOptions struct {
	FS              vfs.FS
	Dirs            []string // log.dirs, and metadata.log.dir if that is set
	MetadataDir     string   // metadata.log.dir, one of Dirs; empty for the first of them
	ClusterID       string
	NodeID          metadata.BrokerID
	Features        []metadata.Feature
	IgnoreFormatted bool // leave directories alone that are formatted already, instead of refusing
	Random          io.Reader
	NowMs           int64
}

// Format makes log directories of a node of a cluster, as Kafka's storage tool does: meta.properties in each, and in the metadata log
// directory the snapshot with the records that the cluster begins with. A directory counts as formatted once meta.properties is there, which
// is therefore written last.
func Format(o FormatOptions) error {
	switch {
	case o.NodeID < 0:
		return fmt.Errorf("node.id %d is negative", o.NodeID)
	case o.ClusterID == "":
		return errors.New("a cluster id is needed")
	case len(o.Dirs) == 0:
		return errors.New("at least one log directory is needed")
	}
	if o.MetadataDir == "" {
		o.MetadataDir = o.Dirs[0]
	}
	if !slices.Contains(o.Dirs, o.MetadataDir) {
		return fmt.Errorf("the metadata log directory %s is not one of the log directories %v", o.MetadataDir, o.Dirs)
	}
	unformatted, err := o.unformatted()
	if err != nil {
		return err
	}
	for _, dir := range unformatted {
		if err := o.format(dir); err != nil {
			return fmt.Errorf("format %s: %w", dir, err)
		}
	}
	return nil
}

// unformatted returns the directories that are to be formatted, after a check that all others are of the same node.
func (o *FormatOptions) unformatted() ([]string, error) {
	var empty []string
	for _, dir := range o.Dirs {
		m, err := checkpoint.ReadMetaProperties(o.FS, dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			empty = append(empty, dir)
		case err != nil:
			return nil, err
		case m.ClusterID != o.ClusterID || m.NodeID != int32(o.NodeID):
			return nil, fmt.Errorf("log directory %s belongs to node %d of cluster %s", dir, m.NodeID, m.ClusterID)
		case !o.IgnoreFormatted:
			return nil, fmt.Errorf("log directory %s is already formatted; --ignore-formatted leaves it alone and formats the others", dir)
		}
	}
	return empty, nil
}

func (o *FormatOptions) format(dir string) error {
	if err := makeDurableDir(o.FS, dir); err != nil {
		return err
	}
	if dir == o.MetadataDir {
		if err := o.writeBootstrap(dir + "/" + partitionDir); err != nil {
			return err
		}
	}
	id, err := uuid.New(o.Random)
	if err != nil {
		return err
	}
	return checkpoint.WriteMetaProperties(o.FS, dir, checkpoint.MetaProperties{Version: 1, ClusterID: o.ClusterID, NodeID: int32(o.NodeID), DirectoryID: id})
}

// makeDurableDir makes a directory whose name survives a crash, with its missing parents.
func makeDurableDir(fsys vfs.FS, dir string) error {
	var missing []string
	for d := path.Clean(dir); ; d = path.Dir(d) {
		if _, err := fsys.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, d)
		if d == path.Dir(d) {
			break
		}
	}
	if err := fsys.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range missing {
		if err := fsys.SyncDir(path.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

func (o *FormatOptions) writeBootstrap(dir string) error {
	if err := makeDurableDir(o.FS, dir); err != nil {
		return err
	}
	records := metadata.BootstrapRecords(o.Features)
	if len(records) == 0 {
		return errors.New("the table of features has no level for metadata.version")
	}
	latest := func(r logrecord.ClusterRecord) int16 {
		return metadata.RecordVersion(metadata.LatestMetadataVersion, r)
	}
	content, err := snapshotBytes(records, latest, o.NowMs, o.NowMs)
	if err != nil {
		return err
	}
	return writeSnapshotFile(o.FS, dir, snapshotID{}, content)
}
