package partlog

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"sluice/storage/segment"
)

// finishSwaps deals with what a crash has left of putting compacted segments in the place of others (segment.Swap), by Apache Kafka's rules.
// If all files of the new segment had been renamed once, it takes the place of those whose offsets it has; if not, it goes. What it leaves
// behind for a crash in between is again what it knows to deal with. changed says whether the folder has changed.
func (l *Log) finishSwaps(names []fs.DirEntry) (changed bool, err error) {
	var swaps []swapFile
	cleaned := int64(math.MaxInt64)
	for _, entry := range names {
		offset, suffix, ok := segment.ParseFileName(entry.Name())
		if !ok || entry.IsDir() {
			continue
		}
		switch {
		case strings.HasSuffix(suffix, segment.CleanedSuffix):
			cleaned = min(cleaned, offset)
		case strings.HasSuffix(suffix, segment.SwapSuffix):
			swaps = append(swaps, swapFile{entry, offset, strings.TrimSuffix(suffix, segment.SwapSuffix)})
		}
	}
	if len(swaps) == 0 {
		return false, nil
	}
	whole, err := l.wholeSwap(names, swaps)
	if err != nil {
		return false, err
	}
	if !whole || cleaned <= swaps[0].offset { // one segment at a time is swapped
		for _, f := range swaps {
			if err := l.fs.Remove(path.Join(l.dir, f.entry.Name())); err != nil {
				return false, err
			}
		}
		// Before the files go by which this is seen.
		return true, l.fs.SyncDir(l.dir)
	}
	for _, f := range swaps {
		if f.suffix != segment.LogSuffix {
			continue
		}
		if err := l.removeReplaced(names, f); err != nil {
			return false, err
		}
	}
	// The log first: as long as it has its name for swapping, all others of its offsets are older.
	for _, isLog := range []bool{true, false} {
		for _, f := range swaps {
			if isLog != (f.suffix == segment.LogSuffix) {
				continue
			}
			if err := l.fs.Rename(path.Join(l.dir, f.entry.Name()), path.Join(l.dir, segment.FileName(f.offset, f.suffix))); err != nil {
				return false, err
			}
			l.report(Recovery{SegmentBase: f.offset, Repaired: "compaction was interrupted, " + f.suffix + " file put in place"})
		}
		if err := l.fs.SyncDir(l.dir); err != nil {
			return false, err
		}
	}
	return true, nil
}

// swapFile is a file of a compacted segment that waits for its name.
type swapFile struct {
	entry  fs.DirEntry
	offset int64
	suffix string // that it will have
}

// wholeSwap says whether the logs to be put in place are all of whole batches. One that is damaged counts as whole if what it replaces is
// gone: it is recovered as any other.
func (l *Log) wholeSwap(names []fs.DirEntry, swaps []swapFile) (bool, error) {
	for _, f := range swaps {
		if f.suffix != segment.LogSuffix {
			continue
		}
		_, whole, err := l.swapEnd(f)
		if err != nil {
			return false, err
		}
		old := segment.FileName(f.offset, segment.LogSuffix)
		if !whole && slices.ContainsFunc(names, func(e fs.DirEntry) bool { return e.Name() == old }) {
			return false, nil
		}
	}
	return true, nil
}

func (l *Log) swapEnd(f swapFile) (end int64, whole bool, err error) {
	stat, err := f.entry.Info()
	if err != nil {
		return 0, false, err
	}
	return segment.SwapEnd(l.segmentOptions(f.offset), stat.Size())
}

// removeReplaced removes the files of the segments that a compacted log replaces.
func (l *Log) removeReplaced(names []fs.DirEntry, f swapFile) error {
	end, _, err := l.swapEnd(f)
	if err != nil {
		return err
	}
	end = max(end, f.offset+1)
	for _, entry := range names {
		offset, suffix, ok := segment.ParseFileName(entry.Name())
		if !ok || entry.IsDir() || offset < f.offset || offset >= end {
			continue
		}
		switch suffix {
		case segment.LogSuffix, segment.OffsetSuffix, segment.TimeSuffix, segment.TxnSuffix:
			if err := l.fs.Remove(path.Join(l.dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	// They must not come back beside what replaces them.
	return l.fs.SyncDir(l.dir)
}
