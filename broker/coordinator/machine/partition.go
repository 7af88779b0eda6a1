package machine

import (
	"math"
	"unicode/utf16"
)

// PartitionFor returns which of an internal topic's partitions holds a group or a transactional id: the absolute value of Java's hash of the
// id, modulo their number.
func PartitionFor(id string, partitions int32) int32 {
	h := JavaHash(id)
	if h == math.MinInt32 {
		return 0 // has no absolute value; Kafka takes 0
	}
	if h < 0 {
		h = -h
	}
	return h % partitions
}

// JavaHash is java.lang.String.hashCode: over UTF-16 code units.
func JavaHash(s string) int32 {
	var h int32
	for _, r := range s {
		if hi, lo := utf16.EncodeRune(r); hi != '�' {
			h = 31*(31*h+hi) + lo
		} else {
			h = 31*h + r
		}
	}
	return h
}
