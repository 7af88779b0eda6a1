package checkpoint

import (
	"fmt"
	"strings"

	"sluice/protocol/uuid"
	"sluice/storage/vfs"
)

// PartitionMetadataFile is the name of the file in a partition's folder that says of which topic it is, as a name can be used again.
const PartitionMetadataFile = "partition.metadata"

// AppendPartitionMetadata appends the file to dst. Like Kafka's, its last line is not ended.
func AppendPartitionMetadata(dst []byte, topicID uuid.UUID) []byte {
	return append(dst, "version: 0\ntopic_id: "+topicID.String()...)
}

// ParsePartitionMetadata reads the file; name is for errors.
func ParsePartitionMetadata(name string, content []byte) (topicID uuid.UUID, err error) {
	lines := lineReader{rest: string(content)}
	value := func(key string) (string, error) {
		line, _ := lines.next()
		k, v, ok := strings.Cut(line, ":")
		if !ok || k != key {
			return "", &Corrupt{Path: name, Line: max(1, lines.number), Reason: fmt.Sprintf("%s is not %q and its value", quote(line), key+":")}
		}
		return strings.TrimSpace(v), nil
	}
	version, err := value("version")
	if err != nil {
		return uuid.UUID{}, err
	}
	if _, err := Int("version", version, 32); err != nil {
		return uuid.UUID{}, &Corrupt{Path: name, Line: lines.number, Reason: err.Error()}
	}
	text, err := value("topic_id")
	if err != nil {
		return uuid.UUID{}, err
	}
	topicID, err = uuid.Parse(text)
	if err == nil && topicID.IsZero() {
		err = fmt.Errorf("topic id %s is reserved", text)
	}
	if err != nil {
		return uuid.UUID{}, &Corrupt{Path: name, Line: lines.number, Reason: err.Error()}
	}
	return topicID, nil
}

// WritePartitionMetadata replaces the file in a partition's folder atomically.
func WritePartitionMetadata(fsys vfs.FS, dir string, topicID uuid.UUID) error {
	return WriteFile(fsys, dir+"/"+PartitionMetadataFile, AppendPartitionMetadata(nil, topicID))
}

// ReadPartitionMetadata reads the file of a partition's folder; the error wraps fs.ErrNotExist where there is none.
func ReadPartitionMetadata(fsys vfs.FS, dir string) (topicID uuid.UUID, err error) {
	name := dir + "/" + PartitionMetadataFile
	content, err := ReadFile(fsys, name, maxMetaBytes)
	if err != nil {
		return uuid.UUID{}, err
	}
	return ParsePartitionMetadata(name, content)
}
