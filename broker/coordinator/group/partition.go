package group

import (
	"math"
	"unicode/utf16"
)

// Partition returns which of the topic's partitions holds a group: the absolute value of Java's hash of its id, modulo their number.
func Partition(groupID string, partitions int32) int32 {
	h := javaHash(groupID)
	if h == math.MinInt32 {
		return 0 // has no absolute value; Kafka takes 0
	}
	if h < 0 {
		h = -h
	}
	return h % partitions
}

// javaHash is java.lang.String.hashCode: over UTF-16 code units.
func javaHash(s string) int32 {
	var h int32
	for _, r := range s {
		if hi, lo := utf16.EncodeRune(r); hi != '\ufffd' {
			h = 31*(31*h+hi) + lo
		} else {
			h = 31*h + r
		}
	}
	return h
}

// utf16Len is java.lang.String.length.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
