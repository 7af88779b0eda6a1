package quorum

import (
	"slices"
	"sort"

	"sluice/protocol/record"
)

// An EpochStart is the offset of the first record of an epoch.
type EpochStart struct {
	Epoch       record.LeaderEpoch
	StartOffset int64
}

// An epochLog is what the core knows of the log: where each epoch begins, and where the log ends.
type epochLog struct {
	starts []EpochStart // ascending in both fields
	end    int64
}

func newEpochLog(s LogState) epochLog { return epochLog{slices.Clone(s.Epochs), s.EndOffset} }

// lastEpoch is the epoch of the last record, 0 in an empty log.
func (l *epochLog) lastEpoch() record.LeaderEpoch {
	if len(l.starts) == 0 {
		return 0
	}
	return l.starts[len(l.starts)-1].Epoch
}

func (l *epochLog) append(epoch record.LeaderEpoch, count int64) (baseOffset int64) {
	if len(l.starts) == 0 || epoch > l.lastEpoch() {
		l.starts = append(l.starts, EpochStart{epoch, l.end})
	}
	baseOffset = l.end
	l.end += count
	return baseOffset
}

// endOffsetFor returns the largest epoch not above the given one and where it ends.
func (l *epochLog) endOffsetFor(epoch record.LeaderEpoch) (found record.LeaderEpoch, end int64) {
	i := sort.Search(len(l.starts), func(i int) bool { return l.starts[i].Epoch > epoch })
	if i == 0 {
		// Nothing that old: the common prefix is what precedes the first epoch.
		if len(l.starts) == 0 {
			return 0, l.end
		}
		return 0, l.starts[0].StartOffset
	}
	if i == len(l.starts) {
		return l.starts[i-1].Epoch, l.end
	}
	return l.starts[i-1].Epoch, l.starts[i].StartOffset
}

func (l *epochLog) truncate(offset int64) {
	i := sort.Search(len(l.starts), func(i int) bool { return l.starts[i].StartOffset >= offset })
	l.starts = l.starts[:i]
	l.end = min(l.end, offset)
}

// upToDate reports whether a log that ends with that epoch and offset is at least as long as this one.
func (l *epochLog) upToDate(lastEpoch record.LeaderEpoch, end int64) bool {
	if lastEpoch != l.lastEpoch() {
		return lastEpoch > l.lastEpoch()
	}
	return end >= l.end
}
