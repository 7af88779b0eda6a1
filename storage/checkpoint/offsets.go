package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"sluice/storage/vfs"
)

// Names of the offset checkpoints in a log directory.
const (
	RecoveryPointFile  = "recovery-point-offset-checkpoint" // first offset not known flushed
	LogStartOffsetFile = "log-start-offset-checkpoint"      // first offset readable; only where it is not the first segment's
	HighWatermarkFile  = "replication-offset-checkpoint"    // first offset not known replicated
	CleanerOffsetFile  = "cleaner-offset-checkpoint"        // first offset not yet compacted
)

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the partition as Kafka writes it, and the name of its folder: "topic-0".
func (tp TopicPartition) String() string { return tp.Topic + "-" + strconv.Itoa(int(tp.Partition)) }

// Compare orders by topic, then partition.
func (tp TopicPartition) Compare(other TopicPartition) int {
	return cmp.Or(cmp.Compare(tp.Topic, other.Topic), cmp.Compare(tp.Partition, other.Partition))
}

// AppendOffsets appends the file with these offsets, ordered by partition, to dst.
func AppendOffsets(dst []byte, offsets map[TopicPartition]int64) []byte {
	order := slices.SortedFunc(maps.Keys(offsets), TopicPartition.Compare)
	return AppendEntries(dst, len(order), func(dst []byte, i int) []byte {
		tp := order[i]
		dst = append(dst, tp.Topic...)
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, int64(tp.Partition), 10)
		dst = append(dst, ' ')
		return strconv.AppendInt(dst, offsets[tp], 10)
	})
}

// ParseOffsets reads an offset checkpoint; name is for errors. Of two entries for a partition the last one counts, as in Kafka.
func ParseOffsets(name string, content []byte) (map[TopicPartition]int64, error) {
	offsets := map[TopicPartition]int64{}
	err := ParseEntries(name, content, func(line string) error {
		fields, err := Fields(line, 3)
		if err != nil {
			return err
		}
		partition, err := Int("partition", fields[1], 32)
		if err != nil {
			return err
		}
		offset, err := Int("offset", fields[2], 64)
		if err != nil {
			return err
		}
		offsets[TopicPartition{fields[0], int32(partition)}] = offset
		return nil
	})
	if err != nil {
		return nil, err
	}
	return offsets, nil
}

// WriteOffsets replaces an offset checkpoint atomically. Offsets must be at least 0, topic names without white space.
func WriteOffsets(fsys vfs.FS, name string, offsets map[TopicPartition]int64) error {
	for tp, offset := range offsets {
		if offset < 0 {
			return fmt.Errorf("replace %s: offset %d of %s", name, offset, tp)
		}
	}
	return WriteFile(fsys, name, AppendOffsets(nil, offsets))
}

// ReadOffsets reads an offset checkpoint. A file that does not exist has no offsets.
func ReadOffsets(fsys vfs.FS, name string) (map[TopicPartition]int64, error) {
	content, err := ReadFile(fsys, name, MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return map[TopicPartition]int64{}, nil
	}
	if err != nil {
		return nil, err
	}
	return ParseOffsets(name, content)
}
