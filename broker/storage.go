package broker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"sluice/broker/config"
	"sluice/protocol/uuid"
	"sluice/replication/controller"
	"sluice/replication/metadata"
	"sluice/storage/checkpoint"
	"sluice/storage/logdir"
	"sluice/storage/vfs"
)

// memoryDir is where an ephemeral broker's log directory lies in its own file system.
const memoryDir = "/sluice"

// directories are the log directories of a configuration, as slash paths, and the one among or beside them that holds the metadata log.
func directories(c *config.Broker, ephemeral bool) (dirs []string, metadataDir string) {
	if ephemeral {
		return []string{memoryDir}, memoryDir
	}
	for _, dir := range c.LogDirs {
		if absolute, err := filepath.Abs(dir); err == nil {
			dir = absolute
		}
		dirs = append(dirs, filepath.ToSlash(dir))
	}
	metadataDir = c.MetadataLogDir
	if absolute, err := filepath.Abs(metadataDir); err == nil {
		metadataDir = absolute
	}
	return dirs, filepath.ToSlash(metadataDir)
}

// Format prepares the directories that a configuration names for a new cluster, and returns those that it has written.
func Format(c Config, clusterID string, ignoreFormatted bool) ([]string, error) {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	if err := checkServed(loaded); err != nil {
		return nil, err
	}
	dirs, metadataDir := directories(loaded, false)
	fsys := vfs.OS()
	var unformatted []string
	for _, dir := range withMetadataDir(dirs, metadataDir) {
		formatted, err := isFormatted(fsys, dir)
		switch {
		case err != nil:
			return nil, err
		case !formatted:
			unformatted = append(unformatted, dir)
		case !ignoreFormatted:
			return nil, fmt.Errorf("log directory %s is already formatted; --ignore-formatted leaves it as it is and formats the others", dir)
		}
	}
	err = controller.Format(controller.FormatOptions{
		FS: fsys, Dirs: dirs, MetadataDir: metadataDir, ClusterID: clusterID, NodeID: metadata.BrokerID(loaded.NodeID),
		Features: features, IgnoreFormatted: ignoreFormatted, Random: rand.Reader, NowMs: time.Now().UnixMilli(),
	})
	return unformatted, err
}

func withMetadataDir(dirs []string, metadataDir string) []string {
	if slices.Contains(dirs, metadataDir) {
		return dirs
	}
	return append(slices.Clone(dirs), metadataDir)
}

func isFormatted(fsys vfs.FS, dir string) (bool, error) {
	switch _, err := checkpoint.ReadMetaProperties(fsys, dir); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, fmt.Errorf("log directory %s: %w", dir, err)
	}
}

// openDirs opens and locks the log directories. In the dev profile, and in memory, empty ones are formatted first.
func openDirs(c Config, loaded *config.Broker, fsys vfs.FS) (opened logdir.Dirs, metadataDir string, err error) {
	dirs, metadataDir := directories(loaded, c.Ephemeral)
	if c.Dev || c.Ephemeral {
		if err := formatEmpty(fsys, dirs, metadataDir, metadata.BrokerID(loaded.NodeID)); err != nil {
			return nil, "", err
		}
	}
	opened, err = logdir.OpenAll(fsys, dirs, logdir.Options{NodeID: loaded.NodeID})
	if err != nil {
		if errors.Is(err, logdir.ErrNotFormatted) {
			return nil, "", fmt.Errorf("%w: run `sluice format --config FILE --cluster-id \"$(sluice random-uuid)\"` once", err)
		}
		return nil, "", err
	}
	for _, d := range opened {
		for _, w := range d.Warnings() {
			c.Log.Warn("log directory", zap.String("dir", d.Path()), zap.Error(w))
		}
		if err := d.Failure(); err != nil {
			c.Log.Error("log directory is offline", zap.String("dir", d.Path()), zap.Error(err))
		}
	}
	return opened, metadataDir, nil
}

// formatEmpty makes a new cluster where no directory belongs to one yet.
func formatEmpty(fsys vfs.FS, dirs []string, metadataDir string, nodeID metadata.BrokerID) error {
	for _, dir := range withMetadataDir(dirs, metadataDir) {
		if formatted, err := isFormatted(fsys, dir); err != nil || formatted {
			return err
		}
	}
	id, err := uuid.New(rand.Reader)
	if err != nil {
		return err
	}
	err = controller.Format(controller.FormatOptions{
		FS: fsys, Dirs: dirs, MetadataDir: metadataDir, ClusterID: id.String(), NodeID: nodeID, Features: features, Random: rand.Reader, NowMs: time.Now().UnixMilli(),
	})
	if err != nil {
		return fmt.Errorf("cannot prepare the data directory: %w", err)
	}
	return nil
}
