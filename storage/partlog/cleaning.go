package partlog

import (
	"errors"
	"os"
	"path"
	"slices"

	"sluice/protocol/record"
	"sluice/storage/producer"
	"sluice/storage/segment"
)

// ErrChanged means that a log was truncated, or that segments were deleted, while it was compacted.
var ErrChanged = errors.New("the log has changed while it was compacted")

// Closed lists the segments before the active one and says where that one begins.
func (l *Log) Closed() (segments []*segment.Segment, activeBaseOffset int64) {
	all := l.list()
	last := len(all) - 1
	return all[:last:last], all[last].BaseOffset()
}

// Truncated is the lowest offset that the log was truncated to since it was asked for last; ok is false if it was not.
func (l *Log) Truncated() (offset int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	offset, ok = l.truncatedTo, l.truncatedSince
	l.truncatedTo, l.truncatedSince = 0, false
	return offset, ok
}

// noteTruncation is told of each truncation.
func (l *Log) noteTruncation(offset int64) {
	if !l.truncatedSince || offset < l.truncatedTo {
		l.truncatedTo, l.truncatedSince = offset, true
	}
}

// Cleaning is a compaction of a log. It runs beside everything else that is done with the log, and is in vain when that is a truncation.
type Cleaning struct {
	log         *Log
	truncations int64
	all         []*segment.Segment
}

// StartCleaning begins a compaction. There must be one at a time.
func (l *Log) StartCleaning() *Cleaning {
	c := &Cleaning{log: l, truncations: l.truncations.Load()}
	c.all, _ = l.Closed()
	return c
}

// Segments lists the segments, without the active one, that begin before an offset.
func (c *Cleaning) Segments(before int64) []*segment.Segment {
	n := len(c.all)
	for n > 0 && c.all[n-1].BaseOffset() >= before {
		n--
	}
	return slices.Clone(c.all[:n])
}

// Changed says whether the log has been truncated since the start: what is read of it need not make sense.
func (c *Cleaning) Changed() bool { return c.log.truncations.Load() != c.truncations }

// Fault makes a fault of an error of reading or writing files.
func (c *Cleaning) Fault(err error) error {
	return &Fault{Op: "compact", Path: c.log.dir, Err: err}
}

// Aborted lists the aborted transactions with records between two offsets and a marker at or after the first, as far as the indexes have them.
func (c *Cleaning) Aborted(from, upTo int64) ([]segment.AbortedTxn, error) {
	var aborted []segment.AbortedTxn
	segments := c.log.list()
	for i := max(floor(segments, from), 0); i < len(segments); i++ {
		done := false
		if err := segments[i].Aborted(func(t segment.AbortedTxn) bool {
			if t.LastOffset >= from && t.FirstOffset < upTo {
				aborted = append(aborted, t)
			}
			done = t.LastStableOffset >= upTo
			return !done
		}); err != nil {
			return nil, c.Fault(err)
		}
		if done {
			break
		}
	}
	return aborted, nil
}

// LastRecords gives the last batch of each producer.
func (c *Cleaning) LastRecords() map[record.ProducerID]producer.LastRecord {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	return c.log.producers.LastRecords()
}

// Create begins the segment that is to take the place of others from an offset on. Either Replace or Discard ends it.
func (c *Cleaning) Create(base int64) (*segment.Segment, error) {
	l := c.log
	if err := l.removeCleaned(base); err != nil {
		return nil, c.Fault(err)
	}
	l.mu.Lock()
	o := l.segmentOptions(base)
	l.mu.Unlock()
	s := segment.NewCleaned(o)
	if err := s.Create(); err != nil {
		return nil, errors.Join(c.Fault(err), c.Discard(s))
	}
	return s, nil
}

// removeCleaned removes the files that a compaction which failed may have left.
func (l *Log) removeCleaned(base int64) error {
	for _, suffix := range []string{segment.LogSuffix, segment.OffsetSuffix, segment.TimeSuffix, segment.TxnSuffix} {
		name := segment.FileName(base, suffix+segment.CleanedSuffix)
		if err := l.fs.Remove(path.Join(l.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Discard gives a segment up that was begun with Create.
func (c *Cleaning) Discard(cleaned *segment.Segment) error {
	cleaned.Close()
	if err := c.log.removeCleaned(cleaned.BaseOffset()); err != nil {
		return c.Fault(err)
	}
	return nil
}

// Replace puts a segment in the place of others, for readers and on the disk, where it is durable before. Their files are removed later. With
// ErrChanged and segment.ErrInUse nothing has happened.
func (c *Cleaning) Replace(cleaned *segment.Segment, old []*segment.Segment, nowMs int64) error {
	l := c.log
	if err := c.complete(cleaned); err != nil {
		return c.Fault(err)
	}
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writable(); err != nil {
		return err
	}
	l.at(nowMs)
	segments := l.list()
	at := slices.Index(segments, old[0])
	if c.Changed() || at < 0 || at+len(old) >= len(segments) || !slices.Equal(segments[at:at+len(old)], old) {
		return ErrChanged
	}
	// Readers whose files vanish under them look again.
	l.truncations.Add(1)
	defer func() { c.truncations = l.truncations.Add(1) }()
	if err := segment.Swap(cleaned, old); err != nil {
		if errors.Is(err, segment.ErrInUse) {
			return err
		}
		return l.failed("put a compacted segment in place", err)
	}
	cleaned.NamesSynced(cleaned.Names())
	replaced := append(slices.Clone(segments[:at]), cleaned)
	l.publish(append(replaced, segments[at+len(old):]...))
	if err := l.giveUp(old); err != nil {
		return l.failed("delete compacted segments", err)
	}
	return nil
}

// complete makes a segment durable that nothing is added to any more.
func (c *Cleaning) complete(cleaned *segment.Segment) error {
	if err := cleaned.Finish(); err != nil {
		return err
	}
	if err := cleaned.Idle(); err != nil {
		return err
	}
	if err := cleaned.SyncLog(); err != nil {
		return err
	}
	if err := cleaned.SyncIndexes(); err != nil {
		return err
	}
	return c.log.fs.SyncDir(c.log.dir)
}

// giveUp has the files of replaced segments removed later. The snapshot of the first one's offset now belongs to what has replaced it.
func (l *Log) giveUp(old []*segment.Segment) error {
	atMs := l.nowMs + l.config.Load().FileDeleteDelayMs
	for i, s := range old {
		if j := slices.Index(l.rolled, s); j >= 0 {
			l.rolled = slices.Delete(slices.Clone(l.rolled), j, j+1)
		}
		l.doomed = append(l.doomed, doomed{atMs: atMs, segment: s})
		if i == 0 {
			continue
		}
		snapshot, err := l.snapshots.MarkDeleted(s.BaseOffset())
		if err != nil {
			return err
		}
		if snapshot != "" {
			l.doomed = append(l.doomed, doomed{atMs: atMs, path: snapshot})
		}
	}
	return nil
}
