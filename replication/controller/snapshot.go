package controller

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/storage/checkpoint"
	"sluice/storage/vfs"
)

// A snapshotID names a snapshot: the end of the log that it stands for, exclusive, and the epoch of the last record before that end. The
// one at offset 0 holds what a new cluster begins with.
type snapshotID struct {
	endOffset int64
	epoch     record.LeaderEpoch
}

const (
	checkpointSuffix = ".checkpoint"
	// oldBootstrapFile is where Kafka before 4.4 put the bootstrap records, in the metadata log directory.
	oldBootstrapFile = "bootstrap.checkpoint"
	// maxSnapshotBytes bounds what is read into memory: far above what ten million partitions take.
	maxSnapshotBytes = 2 << 30
)

func (s snapshotID) fileName() string {
	return fmt.Sprintf("%020d-%010d%s", s.endOffset, s.epoch, checkpointSuffix)
}

func parseSnapshotName(name string) (snapshotID, bool) {
	base, found := strings.CutSuffix(name, checkpointSuffix)
	end, epoch, cut := strings.Cut(base, "-")
	if !found || !cut || len(end) != 20 || len(epoch) != 10 {
		return snapshotID{}, false
	}
	endOffset, err := strconv.ParseInt(end, 10, 64)
	number, err2 := strconv.ParseInt(epoch, 10, 32)
	if err != nil || err2 != nil || endOffset < 0 || number < 0 {
		return snapshotID{}, false
	}
	return snapshotID{endOffset, record.LeaderEpoch(number)}, true
}

// readSnapshot calls each with every metadata record of a snapshot file.
func readSnapshot(fsys vfs.FS, path string, each func(logrecord.ClusterRecord) error) error {
	bytes, err := checkpoint.ReadFile(fsys, path, maxSnapshotBytes)
	if err != nil {
		return err
	}
	header, footer := false, false
	for len(bytes) > 0 {
		b, rest, err := record.Split(bytes)
		if err != nil {
			return fmt.Errorf("snapshot %s: %w", path, err)
		}
		if bytes = rest; !b.ValidCRC() {
			return fmt.Errorf("snapshot %s: the batch at offset %d has a wrong checksum", path, b.BaseOffset())
		}
		for r, err := range b.Records(maxBatchBytes) {
			if err != nil {
				return fmt.Errorf("snapshot %s: %w", path, err)
			}
			if footer {
				return fmt.Errorf("snapshot %s: there are records behind its footer", path)
			}
			if b.IsControl() {
				control, err := record.ParseControl(r)
				if err != nil {
					return fmt.Errorf("snapshot %s: %w", path, err)
				}
				switch control.(type) {
				case record.SnapshotHeader:
					header = true
				case record.SnapshotFooter:
					footer = true
				}
				if err := checkControl(r); err != nil {
					return fmt.Errorf("snapshot %s: %w", path, err)
				}
				continue
			}
			value, err := logrecord.ParseCluster(r.Value)
			if err != nil {
				return fmt.Errorf("snapshot %s: offset %d: %w", path, r.Offset, err)
			}
			if err := each(value); err != nil {
				return fmt.Errorf("snapshot %s: %w", path, err)
			}
		}
	}
	if !header || !footer {
		return fmt.Errorf("snapshot %s is cut short: it has no header or no footer", path)
	}
	return nil
}

// bootstrapRecords reads what format has left, and falls back on what this program would have written.
func (c *Controller) bootstrapRecords() ([]logrecord.ClusterRecord, error) {
	for _, path := range []string{c.dir + "/" + snapshotID{}.fileName(), c.options.Dir + "/" + oldBootstrapFile} {
		var records []logrecord.ClusterRecord
		err := readSnapshot(c.options.FS, path, func(r logrecord.ClusterRecord) error {
			records = append(records, r)
			return nil
		})
		if err == nil {
			return records, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no bootstrap records (%s): the directory has not been formatted", snapshotID{}.fileName())
}

// loadSnapshot replays the newest snapshot after the bootstrap one, if there is any.
func (c *Controller) loadSnapshot() error {
	entries, err := c.options.FS.ReadDir(c.dir)
	if err != nil {
		return err
	}
	newest := snapshotID{}
	for _, e := range entries {
		if id, ok := parseSnapshotName(e.Name()); ok && id.endOffset > newest.endOffset {
			newest = id
		}
	}
	if newest.endOffset == 0 {
		return nil
	}
	err = readSnapshot(c.options.FS, c.dir+"/"+newest.fileName(), func(r logrecord.ClusterRecord) error {
		return c.machine.ReplaySnapshot(newest.endOffset, r)
	})
	if err != nil {
		return err
	}
	c.machine.SkipTo(newest.endOffset - 1)
	if c.partition.LogEndOffset() < newest.endOffset {
		return c.partition.TruncateFullyAndStartAt(newest.endOffset)
	}
	return nil
}

// snapshotBytes is the content of a snapshot file as Kafka writes it: a header, the records, a footer.
func snapshotBytes(records []logrecord.ClusterRecord, metadataVersion func(logrecord.ClusterRecord) int16, lastContainedLogTimestampMs, nowMs int64) ([]byte, error) {
	var out []byte
	offset := int64(0)
	add := func(control bool, batch ...record.Record) error {
		o := record.Unattributed()
		o.Control, o.BaseOffset, o.LeaderEpoch = control, offset, 0
		b, err := record.NewBuilder(o).Add(batch...).Build()
		if err != nil {
			return err
		}
		offset += int64(len(batch))
		out = append(out, b...)
		return nil
	}
	values := make([]record.Record, 0, len(records))
	for _, r := range records {
		values = append(values, record.Record{TimestampMs: nowMs, Value: logrecord.AppendCluster(nil, r, metadataVersion(r))})
	}
	err := errors.Join(
		add(true, record.ControlRecord(record.SnapshotHeader{LastContainedLogTimestampMs: lastContainedLogTimestampMs}, nowMs)),
		add(false, values...),
		add(true, record.ControlRecord(record.SnapshotFooter{}, nowMs)),
	)
	return out, err
}

// writeSnapshotFile puts a snapshot in place. The final file is read-only, as Kafka's are.
func writeSnapshotFile(fsys vfs.FS, dir string, id snapshotID, content []byte) (err error) {
	path := dir + "/" + id.fileName()
	part := path + ".part"
	f, err := fsys.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o444)
	if errors.Is(err, fs.ErrPermission) {
		// A read-only leftover of an attempt that a crash cut short.
		if err = fsys.Remove(part); err == nil {
			f, err = fsys.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o444)
		}
	}
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(content, 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(part, path); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}
