package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/storage/checkpoint"
	"sluice/storage/epoch"
	"sluice/storage/logdir"
	"sluice/storage/segment"
)

// logVerifier verifies one log: each segment once from start to end, with everything that speaks of it beside it.
type logVerifier struct {
	*verifier
	job           *job
	decode        decoder // of an internal topic, else nil
	start         int64   // the first offset that the log may be read from
	recoveryPoint int64   // below it everything is whole, even after a crash

	next      int64 // the least offset that may follow
	gaps      bool  // offsets are missing between batches: the log was compacted
	lastEpoch record.LeaderEpoch
	epochs    *epochVerifier
	producers *producerVerifier
	buffer    []byte
}

// verifyLog verifies the log of a folder.
func (v *verifier) verifyLog(j *job) {
	l := &logVerifier{verifier: v, job: j, lastEpoch: record.NoLeaderEpoch, recoveryPoint: math.MaxInt64, start: v.points[checkpoint.LogStartOffsetFile][j.tp]}
	if !v.found.Clean {
		l.recoveryPoint = v.points[checkpoint.RecoveryPointFile][j.tp]
		if j.tp.Topic == logdir.MetadataTopic {
			l.recoveryPoint = 0 // it has no checkpoint
		}
	}
	switch j.tp.Topic {
	case logdir.MetadataTopic, "__consumer_offsets", "__transaction_state":
		l.decode = decoderFor(j.tp.Topic)
	}
	entries, err := v.fs.ReadDir(path.Join(v.dir, j.folder))
	if err != nil {
		l.fault(j.folder, "cannot be read: %v", err)
		j.broken = true
		return
	}
	l.verify(entries)
}

func (l *logVerifier) fault(file, format string, args ...any) {
	l.job.faults = append(l.job.faults, fileFaults{file: file, places: []string{fmt.Sprintf(format, args...)}})
}

// collect adds what is wrong in the file of a printer, of which reading ended with err.
func (l *logVerifier) collect(p *printer, err error) {
	if f, faulty := faultsOf(path.Join(l.job.folder, p.base), p, err); faulty {
		l.job.faults = append(l.job.faults, f)
	}
}

func (l *logVerifier) printer(base string) *printer {
	return l.verifier.printer(path.Join(l.job.folder, base))
}

func (l *logVerifier) verify(entries []fs.DirEntry) {
	files := map[string]bool{}
	var bases, snapshots []int64
	for _, e := range entries {
		files[e.Name()] = true
		switch offset, suffix, ok := segment.ParseFileName(e.Name()); {
		case ok && suffix == segment.LogSuffix:
			bases = append(bases, offset)
		case ok && suffix == segment.SnapshotSuffix:
			snapshots = append(snapshots, offset)
		}
	}
	slices.Sort(bases)
	slices.Sort(snapshots)
	if l.found.Clean && !files[checkpoint.PartitionMetadataFile] && l.job.kind == logdir.Current {
		l.fault(path.Join(l.job.folder, checkpoint.PartitionMetadataFile), "is missing")
	}
	l.epochs = newEpochVerifier(l, files[epoch.FileName])
	l.producers = &producerVerifier{l: l, snapshots: snapshots, seen: map[record.ProducerID]seenProducer{}}
	for _, e := range entries {
		l.other(e.Name(), bases)
	}
	if len(bases) > 0 {
		l.next = bases[0]
	}
	for i, base := range bases {
		following := int64(-1)
		if i+1 < len(bases) {
			following = bases[i+1]
		}
		l.segment(base, following, files)
	}
	l.job.end = l.next
	if !l.job.broken {
		l.producers.before(math.MaxInt64)
		l.epochs.finish(l.next)
	}
	l.epochs.collect()
}

// other checks a file that is not of a segment.
func (l *logVerifier) other(name string, bases []int64) {
	base, suffix, ok := segment.ParseFileName(name)
	switch {
	case ok && (suffix == segment.OffsetSuffix || suffix == segment.TimeSuffix || suffix == segment.TxnSuffix):
		if _, found := slices.BinarySearch(bases, base); !found && l.found.Clean {
			l.fault(path.Join(l.job.folder, name), "no %s goes with it", segment.FileName(base, segment.LogSuffix))
		}
	case path.Ext(name) == ".checkpoint":
		p := l.printer(name)
		l.collect(p, l.metadataSnapshot(p))
	case name == checkpoint.PartitionMetadataFile, name == "quorum-state":
		f, _ := formatOf(name)
		p := l.printer(name)
		l.collect(p, f.print(p))
	}
}

// segment verifies one segment. following is the base offset of the next one, -1 for the last.
func (l *logVerifier) segment(base, following int64, files map[string]bool) {
	if following >= 0 {
		l.gaps = l.gaps || l.next < base
	}
	if l.next > base {
		l.fault(path.Join(l.job.folder, segment.FileName(base, segment.LogSuffix)), "the segment before it ends at offset %d", l.next)
	}
	l.next = base
	s := &segmentVerifier{logVerifier: l, base: base, following: following, p: l.printer(segment.FileName(base, segment.LogSuffix))}
	s.loadIndexes(files)
	err := s.scan()
	s.finishIndexes()
	l.collect(s.p, err)
	s.collectIndexes()
	if err != nil || s.torn {
		l.job.broken = true
	}
}

// segmentVerifier walks over the batches of one segment, and over its indexes along with them.
type segmentVerifier struct {
	*logVerifier
	base, following int64
	p               *printer
	torn            bool // the rest cannot be read
	maxMs           int64

	offsets *offsetVerifier
	times   *timeVerifier
	aborted *abortedVerifier
}

func (s *segmentVerifier) scan() (err error) {
	f, err := s.fs.Open(s.p.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	s.maxMs = record.NoTimestamp
	position := int64(0)
	for position < size {
		var ok bool
		if s.buffer, ok, err = s.p.readBatch(f, s.buffer, position, size); err != nil {
			return err
		}
		if !ok {
			break
		}
		s.batch(record.Batch(s.buffer), position)
		position += int64(len(s.buffer))
	}
	switch {
	case position < size && s.p.damaged.Places > 0:
		s.torn = true
	case position < size && (s.found.Clean || s.following >= 0): // zeros in front of an end that was never written are Kafka's log.preallocate
		s.p.damageAt(position, "%d zeros follow the last batch", size-position)
	}
	return nil
}

func (s *segmentVerifier) batch(b record.Batch, position int64) {
	s.job.batches++
	first, last := b.BaseOffset(), b.LastOffset()
	s.producers.before(first)
	if !b.ValidCRC() {
		s.p.damageAt(position, "the checksum is not that of the batch's bytes")
	}
	switch {
	case first < s.next:
		s.p.damageAt(position, "the batch begins at offset %d, but the one before it or the file's name makes %d the least", first, s.next)
	case s.following >= 0 && last >= s.following:
		s.p.damageAt(position, "the batch ends at offset %d, but the next segment begins at %d", last, s.following)
	case last-s.base > math.MaxInt32:
		s.p.damageAt(position, "the batch ends at offset %d, too far from the segment's first for its indexes", last)
	}
	s.gaps = s.gaps || first > s.next
	s.next = b.NextOffset()
	if e := b.LeaderEpoch(); e >= 0 {
		if e < s.lastEpoch {
			s.p.damageAt(position, "leader epoch %d after %d", e, s.lastEpoch)
		}
		s.lastEpoch = e
		s.epochs.batch(first, e)
	} else if e != record.NoLeaderEpoch {
		s.p.damageAt(position, "leader epoch %d", e)
	}
	marker := s.records(b, position)
	s.maxMs = max(s.maxMs, b.MaxTimestamp())
	s.offsets.batch(position, first, last)
	s.times.batch(first, last, s.maxMs, b.MaxTimestamp())
	s.aborted.batch(first, last, b.ProducerID(), marker)
	s.producers.batch(b, marker, s.aborted)
}

// records checks the records of a batch and returns the marker of a transaction's end that it may be.
func (s *segmentVerifier) records(b record.Batch, position int64) (marker *record.EndTxnMarker) {
	for r, err := range b.Records(s.p.maxDecompressedBytes()) {
		if err != nil {
			s.p.damageAt(position, "%v", err)
			return nil
		}
		s.job.count++
		if r.TimestampMs > b.MaxTimestamp() {
			s.p.damageAt(position, "record at offset %d: timestamp %d is above the batch's largest, %d", r.Offset, r.TimestampMs, b.MaxTimestamp())
		}
		switch {
		case b.IsControl():
			control, err := record.ParseControl(r)
			if err != nil {
				s.p.damageAt(position, "record at offset %d: %v", r.Offset, err)
			}
			if m, ok := control.(record.EndTxnMarker); ok {
				marker = &m
			}
		case s.decode != nil:
			if _, err := s.decode(s.p, r); err != nil {
				s.p.damageAt(position, "record at offset %d: %v", r.Offset, err)
			}
		}
	}
	return marker
}

// metadataSnapshot checks a snapshot of the cluster's metadata, which stands between a header and a footer.
func (l *logVerifier) metadataSnapshot(p *printer) (err error) {
	f, err := p.fs.Open(p.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	var buffer []byte
	header, footer := false, false
	for position := int64(0); position < size; position += int64(len(buffer)) {
		var ok bool
		if buffer, ok, err = p.readBatch(f, buffer, position, size); err != nil || !ok {
			return err
		}
		b := record.Batch(buffer)
		if !b.ValidCRC() {
			p.damageAt(position, "the checksum is not that of the batch's bytes")
		}
		for r, err := range b.Records(p.maxDecompressedBytes()) {
			if err == nil && b.IsControl() {
				var control record.Control
				control, err = record.ParseControl(r)
				switch control.(type) {
				case record.SnapshotHeader:
					header = true
				case record.SnapshotFooter:
					footer = true
				}
			} else if err == nil {
				_, err = logrecord.ParseCluster(r.Value)
			}
			if err != nil {
				p.damageAt(position, "%v", err)
				break
			}
		}
	}
	if !header || !footer {
		p.damage(wholeFile, "a snapshot begins with a header and ends with a footer")
	}
	return nil
}
