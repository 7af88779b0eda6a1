package metadata

import (
	"strings"
	"unicode/utf16"
)

// maxTopicName is the longest topic name, in UTF-16 units as Kafka counts; with a partition number it has to fit a file name.
const maxTopicName = 249

// ClusterMetadataTopic names the log of the cluster's metadata. It is no topic that clients can create.
const ClusterMetadataTopic = "__cluster_metadata"

// ValidateTopicName returns what is wrong with a topic name, in Kafka's words, or nil.
func ValidateTopicName(name string) *Error {
	var reason string
	switch {
	case name == "":
		reason = "the empty string is not allowed"
	case name == ".":
		reason = "'.' is not allowed"
	case name == "..":
		reason = "'..' is not allowed"
	case len(utf16.Encode([]rune(name))) > maxTopicName:
		reason = "the length of '" + name + "' is longer than the max allowed length 249"
	case strings.ContainsFunc(name, notInTopicName):
		reason = "'" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
	default:
		return nil
	}
	return &Error{codeInvalidTopic, "Topic name is invalid: " + reason}
}

func notInTopicName(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-')
}

// collisionKey is what the names of topics that collide have in common: metric names cannot tell dots from underscores. Names without either
// collide with nothing.
func collisionKey(name string) (key string, can bool) {
	if !strings.ContainsAny(name, "._") {
		return "", false
	}
	return strings.ReplaceAll(name, ".", "_"), true
}
