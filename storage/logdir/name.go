package logdir

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sluice/storage/checkpoint"
)

// TopicPartition names one partition.
type TopicPartition = checkpoint.TopicPartition

// MetadataTopic is the topic of the cluster's metadata; its log is the controller's and no partition like others.
const MetadataTopic = "__cluster_metadata"

// maxNameBytes is the longest name that file systems allow.
const maxNameBytes = 255

// maxTopicBytes is the longest topic name that Kafka allows.
const maxTopicBytes = 249

// Kind says what the folder of a partition is.
type Kind int

// The kinds of folders, with the name that each has in the file system.
const (
	Current Kind = iota // topic-0: the partition's log
	Future              // topic-0.ID-future: the copy that a move to this directory is filling
	Deleted             // topic-0.ID-delete: to be removed
	Stray               // topic-0.ID-stray: of a partition that this broker is not to have; kept for its owner to decide
)

func (k Kind) String() string { return [...]string{"current", "future", "deleted", "stray"}[k] }

var suffixes = map[Kind]string{Future: "-future", Deleted: "-delete", Stray: "-stray"}

// DirName is the name of a partition's folder.
func DirName(tp TopicPartition) string { return tp.String() }

// markedName is the name of a folder that is not the current one. The id, from random, keeps several of one partition apart. The topic is
// cut where the name would be too long for the file system, as Kafka does, but not that of a future folder, which needs it.
func markedName(tp TopicPartition, kind Kind, random io.Reader) (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", fmt.Errorf("name a %s folder: %w", kind, err)
	}
	id[6] = id[6]&0x0f | 0x40 // the form of a random UUID, which Kafka uses
	id[8] = id[8]&0x3f | 0x80
	tail := "-" + strconv.Itoa(int(tp.Partition)) + "." + hex.EncodeToString(id[:]) + suffixes[kind]
	topic := tp.Topic
	if kind != Future {
		topic = topic[:min(len(topic), maxNameBytes-len(tail))]
	}
	return topic + tail, nil
}

// ParseDirName reads the name of a partition's folder. The topic of a deleted or stray folder may be cut.
func ParseDirName(name string) (TopicPartition, Kind, error) {
	fail := func(reason string) (TopicPartition, Kind, error) {
		return TopicPartition{}, 0, fmt.Errorf("%.300q is not the name of a partition's folder: %s", name, reason)
	}
	kind, stem := Current, name
	for k, suffix := range suffixes {
		marked, ok := strings.CutSuffix(name, suffix)
		if !ok {
			continue
		}
		dot := strings.LastIndexByte(marked, '.')
		if dot < 0 || dot == len(marked)-1 {
			return fail("no id before " + suffix)
		}
		kind, stem = k, marked[:dot]
	}
	dash := strings.LastIndexByte(stem, '-')
	if dash < 0 {
		return fail("no dash")
	}
	topic, number := stem[:dash], stem[dash+1:]
	partition, err := strconv.ParseInt(number, 10, 32)
	if err != nil || strconv.FormatInt(partition, 10) != number {
		return fail("no partition number after the last dash")
	}
	if !validTopic(topic) {
		return fail("no topic can have that name")
	}
	return TopicPartition{Topic: topic, Partition: int32(partition)}, kind, nil
}

// validTopic holds the rule of Kafka for topic names, which also keeps a name from leaving the directory.
func validTopic(topic string) bool {
	if topic == "" || topic == "." || topic == ".." || len(topic) > maxTopicBytes {
		return false
	}
	for i := range len(topic) {
		c := topic[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}
