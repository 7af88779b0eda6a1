// Package epoch keeps the list of leader epochs of one partition's log with the offset at which each began. Followers and clients find
// with it where their log and the leader's part (KIP-101, KIP-320). It is stored in the partition's leader-epoch-checkpoint file.
package epoch

import "sluice/protocol/record"

// Entry says that the log's records from StartOffset on, up to the next entry's, were appended by the leader of Epoch.
type Entry struct {
	Epoch       record.LeaderEpoch
	StartOffset int64
}
