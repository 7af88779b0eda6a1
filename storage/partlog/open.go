package partlog

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"sluice/protocol/record"
	"sluice/storage/epoch"
	"sluice/storage/producer"
	"sluice/storage/segment"
)

const (
	defaultProducerIDExpirationMs = 24 * 3600 * 1000
	defaultHandles                = 2048
)

// sharedHandles is for all logs that are given none: how many files a process may have open is a matter of the process.
var sharedHandles = sync.OnceValue(func() *segment.Handles { return segment.NewHandles(defaultHandles) })

// Open opens the log in a folder, which may be empty or missing. After an unclean stop the segments from the recovery point on are scanned and
// the log is cut at the first bad batch. The error is a *Fault.
func Open(o Options) (*Log, error) {
	l := &Log{fs: o.FS, dir: o.Dir, handles: o.Handles, background: o.Background, progress: o.Progress, jitterSeed: o.JitterSeed, nowMs: o.NowMs}
	if l.handles == nil {
		l.handles = sharedHandles()
	}
	if o.Config == nil {
		o.Config = DefaultConfig()
	}
	l.config.Store(o.Config)
	l.expirationMs.Store(o.ProducerIDExpirationMs)
	if o.ProducerIDExpirationMs == 0 {
		l.expirationMs.Store(defaultProducerIDExpirationMs)
	}
	l.lastFlushMs.Store(o.NowMs)
	l.cleanedTo = o.CleanedTo
	if err := l.open(o); err != nil {
		if l.segments.Load() != nil {
			l.closeFiles()
		}
		return nil, &Fault{Op: "open", Path: o.Dir, Err: err}
	}
	return l, nil
}

// folder is what the partition's folder holds.
type folder struct {
	segments  map[int64]segment.Files
	snapshots []int64
	epochs    bool // there is a leader-epoch-checkpoint
}

// readFolder lists the folder, and removes what is left of an earlier life.
func (l *Log) readFolder() (folder, error) {
	f := folder{segments: map[int64]segment.Files{}}
	if err := l.fs.MkdirAll(l.dir, 0o755); err != nil {
		return f, err
	}
	names, err := l.fs.ReadDir(l.dir)
	if err != nil {
		return f, err
	}
	if swapped, err := l.finishSwaps(names); err != nil {
		return f, err
	} else if swapped {
		if names, err = l.fs.ReadDir(l.dir); err != nil {
			return f, err
		}
	}
	var orphans []string
	for _, entry := range names {
		name := entry.Name()
		if entry.IsDir() {
			continue
		}
		if name == epoch.FileName {
			f.epochs = true
			continue
		}
		offset, suffix, ok := segment.ParseFileName(name)
		if !ok {
			continue
		}
		switch {
		case strings.HasSuffix(suffix, segment.DeletedSuffix), strings.HasSuffix(suffix, segment.CleanedSuffix):
			if err := l.fs.Remove(path.Join(l.dir, name)); err != nil {
				return f, err
			}
			continue
		case suffix == segment.SnapshotSuffix:
			f.snapshots = append(f.snapshots, offset)
			continue
		}
		stat, err := entry.Info()
		if err != nil {
			return f, err
		}
		files, known := f.segments[offset]
		if !known {
			files = segment.Files{Log: -1, Offsets: -1, Times: -1, Txns: -1}
		}
		switch suffix {
		case segment.LogSuffix:
			files.Log = stat.Size()
		case segment.OffsetSuffix:
			files.Offsets = stat.Size()
		case segment.TimeSuffix:
			files.Times = stat.Size()
		case segment.TxnSuffix:
			files.Txns = stat.Size()
		default:
			continue
		}
		if suffix != segment.LogSuffix {
			orphans = append(orphans, name)
		}
		f.segments[offset] = files
	}
	for _, name := range orphans {
		offset, _, _ := segment.ParseFileName(name)
		if f.segments[offset].Log >= 0 {
			continue
		}
		if err := l.fs.Remove(path.Join(l.dir, name)); err != nil {
			return f, err
		}
	}
	maps.DeleteFunc(f.segments, func(_ int64, files segment.Files) bool { return files.Log < 0 })
	return f, nil
}

func (l *Log) open(o Options) error {
	f, err := l.readFolder()
	if err != nil {
		return err
	}
	l.epochs = epoch.New(l.fs, l.dir)
	if f.epochs {
		if l.epochs, err = epoch.Open(l.fs, l.dir); err != nil {
			return err
		}
	}
	l.snapshots = producer.NewSnapshots(l.fs, l.dir, f.snapshots)
	l.start.Store(max(o.LogStartOffset, 0))
	l.recoveryPoint.Store(max(o.RecoveryPoint, 0))
	bases := slices.Sorted(maps.Keys(f.segments))
	if len(bases) == 0 {
		return l.openEmpty()
	}
	segments := make([]*segment.Segment, len(bases))
	for i, base := range bases {
		segments[i] = segment.Load(l.segmentOptions(base), f.segments[base])
	}
	l.publish(segments)
	recovered, err := l.openSegments(f, o.CleanShutdown)
	if err != nil {
		return err
	}
	end := l.last().NextOffset()
	if end < l.start.Load() {
		// The files were lost: what is left is older than what may be read.
		return l.startOver(l.start.Load())
	}
	l.end.Store(end)
	start := max(l.start.Load(), l.list()[0].BaseOffset())
	l.start.Store(start)
	if o.CleanShutdown && !recovered {
		l.recoveryPoint.Store(end)
	}
	l.recoveryPoint.Store(min(l.recoveryPoint.Load(), end))
	if err := l.epochs.TruncateFromEnd(end); err != nil {
		return err
	}
	l.epochs.TruncateFromStart(start)
	return l.openProducers(o.CleanShutdown, recovered)
}

// openEmpty begins a log at its start offset. Nothing is written.
func (l *Log) openEmpty() error {
	start := l.start.Load()
	l.publish([]*segment.Segment{l.newSegment(start)})
	l.end.Store(start)
	l.recoveryPoint.Store(start)
	l.producers.Reset(start)
	for _, at := range slices.Clone(l.snapshots.Offsets()) {
		if err := l.snapshots.Remove(at); err != nil {
			return err
		}
	}
	return l.epochs.TruncateFromEnd(start)
}

// openSegments checks the indexes of all segments and, if the log was not closed, the batches of those from the recovery point on.
func (l *Log) openSegments(f folder, clean bool) (recovered bool, err error) {
	segments := l.list()
	last := len(segments) - 1
	scanFrom := max(floor(segments, l.recoveryPoint.Load()), 0)
	if clean {
		scanFrom = len(segments)
	}
	interval := l.config.Load().IndexIntervalBytes
	for i, s := range segments[:min(scanFrom, len(segments))] {
		problem, err := s.Check(f.segments[s.BaseOffset()])
		if err != nil {
			return false, err
		}
		if problem != "" {
			l.report(Recovery{SegmentBase: s.BaseOffset(), Repaired: problem + ", rebuilt"})
			rebuilt, err := s.Rebuilt(interval)
			if err != nil {
				return false, err
			}
			s.Close()
			s, segments[i] = rebuilt, rebuilt // nobody reads yet
		}
		if i < last {
			continue
		}
		rest, err := s.LoadEnd(interval)
		if err != nil {
			return false, err
		}
		if rest > 0 {
			l.report(Recovery{SegmentBase: s.BaseOffset(), Repaired: fmt.Sprintf("%d bytes after the last whole batch of a log that was closed", rest)})
			scanFrom = last
		}
	}
	if scanFrom > last {
		return false, nil
	}
	return true, l.recoverFrom(scanFrom)
}

func (l *Log) report(r Recovery) {
	if l.progress != nil {
		r.Dir = l.dir
		l.progress(r)
	}
}

// recoverFrom scans the segments from the i-th on, makes their indexes and the state of epochs and producers anew, and cuts the log at the
// first bad batch or where a segment does not begin at the end of the one before.
func (l *Log) recoverFrom(i int) error {
	segments := l.list()
	base := segments[i].BaseOffset()
	for _, at := range slices.Clone(l.snapshots.Offsets()) {
		if at > base || at <= l.start.Load() {
			if err := l.snapshots.Remove(at); err != nil {
				return err
			}
		}
	}
	if err := l.loadProducers(base); err != nil {
		return err
	}
	for ; i < len(segments); i++ {
		s := segments[i]
		l.report(Recovery{SegmentBase: s.BaseOffset(), SegmentsLeft: len(segments) - i})
		cut, err := s.Recover(l.config.Load().IndexIntervalBytes, func(header record.Batch) error {
			l.producers.SetEndOffset(header.NextOffset())
			return l.learn(header, s)
		})
		if err != nil {
			return err
		}
		l.producers.SetEndOffset(s.NextOffset())
		if i == len(segments)-1 {
			if cut > 0 {
				l.report(Recovery{SegmentBase: s.BaseOffset(), TruncatedBytes: cut})
			}
			break
		}
		if gap := segments[i+1].BaseOffset() - s.NextOffset(); cut > 0 || gap < 0 || gap > 0 && gap <= math.MaxInt32 && segments[i+1].BaseOffset() > l.cleanedTo {
			l.report(Recovery{SegmentBase: s.BaseOffset(), TruncatedBytes: cut, SegmentsDropped: len(segments) - i - 1})
			l.publish(slices.Clone(segments[:i+1]))
			if err := l.discardFromEnd(segments[i+1:]); err != nil {
				return err
			}
			break
		}
		l.producers.SetEndOffset(segments[i+1].BaseOffset())
		if err := l.snapshots.Take(&l.producers); err != nil {
			return err
		}
		l.rolled = append(l.rolled, s)
	}
	// What was cut off or removed does not come back after another crash.
	return l.syncDir()
}

// openProducers makes the state of the producers, unless the recovery has.
func (l *Log) openProducers(clean, recovered bool) error {
	end := l.end.Load()
	if recovered {
		l.producers.SetEndOffset(end)
		return nil
	}
	if err := l.removeStraySnapshots(); err != nil {
		return err
	}
	if _, ok := l.snapshots.Latest(); !ok && clean {
		// A log without any snapshot that was closed has had no producer: so says Kafka, and reading all of it would take long.
		l.producers.Reset(end)
		return nil
	}
	return l.rebuildProducers(end)
}

// removeStraySnapshots removes the snapshots that belong to no segment, but for the one that was taken when the log was closed.
func (l *Log) removeStraySnapshots() error {
	segments := l.list()
	isBase := func(offset int64) bool {
		i := floor(segments, offset)
		return i >= 0 && segments[i].BaseOffset() == offset
	}
	latest, _ := l.snapshots.Latest()
	for _, at := range slices.Clone(l.snapshots.Offsets()) {
		if isBase(at) || at == latest && at > l.last().BaseOffset() {
			continue
		}
		if err := l.snapshots.Remove(at); err != nil {
			return err
		}
	}
	return nil
}

// replayVisitor takes in the batches that begin before an offset.
func (l *Log) replayVisitor(to int64) func(record.Batch) (bool, error) {
	return func(header record.Batch) (bool, error) {
		if header.BaseOffset() >= to {
			return false, nil
		}
		update, _, _, err := l.producers.Prepare(header, Replication, 0)
		if err == nil {
			l.producers.Apply(update)
		}
		return true, err
	}
}
