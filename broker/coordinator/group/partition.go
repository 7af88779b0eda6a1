package group

import (
	"unicode/utf16"

	"sluice/broker/coordinator/machine"
)

// Partition returns which of the topic's partitions holds a group.
func Partition(groupID string, partitions int32) int32 {
	return machine.PartitionFor(groupID, partitions)
}

// utf16Len is java.lang.String.length.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
