package dump

import (
	"sluice/protocol/record"
	"sluice/storage/epoch"
	"sluice/storage/segment"
)

// loadIndexes reads the segment's indexes. One that is missing is an empty one.
func (s *segmentVerifier) loadIndexes(files map[string]bool) {
	s.offsets = &offsetVerifier{p: s.printer(segment.FileName(s.base, segment.OffsetSuffix))}
	if files[s.offsets.p.base] {
		s.offsets.err = s.offsets.p.offsetEntries(func(e offsetEntry) { s.offsets.entries = append(s.offsets.entries, e) })
	}
	s.times = &timeVerifier{p: s.printer(segment.FileName(s.base, segment.TimeSuffix))}
	if files[s.times.p.base] {
		s.times.err = s.times.p.timeEntries(func(e timeEntry) { s.times.entries = append(s.times.entries, e) })
	}
	s.aborted = &abortedVerifier{p: s.printer(segment.FileName(s.base, segment.TxnSuffix))}
	if files[s.aborted.p.base] {
		s.aborted.err = s.aborted.p.abortedEntries(func(e abortedEntry) { s.aborted.entries = append(s.aborted.entries, e) })
	}
}

// finishIndexes checks what is left of the indexes behind the last batch. Behind a batch that cannot be read there is nothing to compare with.
func (s *segmentVerifier) finishIndexes() {
	if s.torn {
		return
	}
	s.offsets.finish()
	// A segment that was rolled has its largest timestamp in the index: its age is judged by that. After a crash the next start adds it.
	s.times.finish(s.maxMs, s.following >= 0 && s.following <= s.recoveryPoint)
	s.aborted.finish(s.next <= s.recoveryPoint)
}

func (s *segmentVerifier) collectIndexes() {
	s.collect(s.offsets.p, s.offsets.err)
	s.collect(s.times.p, s.times.err)
	s.collect(s.aborted.p, s.aborted.err)
}

// offsetVerifier compares an offset index with the batches. An entry names where a batch begins, and the last offset of that batch or, as
// Apache Kafka before 4.0 wrote it, of the last batch that was appended together with it.
type offsetVerifier struct {
	p       *printer
	err     error
	entries []offsetEntry
	waiting *offsetEntry // its position was met, its offset not yet
}

func (o *offsetVerifier) batch(position, first, last int64) {
	if o.waiting != nil && o.waiting.offset <= last {
		if o.waiting.offset < last {
			o.p.damageAt(o.waiting.at, "no batch ends at offset %d", o.waiting.offset)
		}
		o.waiting = nil
	}
	for len(o.entries) > 0 && o.entries[0].position < position {
		o.p.damageAt(o.entries[0].at, "no batch begins at byte %d of the log", o.entries[0].position)
		o.entries = o.entries[1:]
	}
	if len(o.entries) == 0 || o.entries[0].position > position {
		return
	}
	e := o.entries[0]
	o.entries = o.entries[1:]
	if o.waiting != nil {
		o.p.damageAt(o.waiting.at, "offset %d is beyond the batches up to the next entry", o.waiting.offset)
		o.waiting = nil
	}
	switch {
	case e.offset > last:
		o.waiting = &e
	case e.offset < last:
		o.p.damageAt(e.at, "offset %d, but the batch at byte %d of the log has %d to %d", e.offset, position, first, last)
	}
}

func (o *offsetVerifier) finish() {
	if o.waiting != nil {
		o.p.damageAt(o.waiting.at, "offset %d is beyond the end of the segment", o.waiting.offset)
	}
	for _, e := range o.entries {
		o.p.damageAt(e.at, "byte %d is beyond the last batch of the log", e.position)
	}
}

// timeVerifier compares a time index with the batches.
type timeVerifier struct {
	p       *printer
	err     error
	entries []timeEntry
	lastMs  int64 // of the last entry that was met
}

// batch is told of a batch; maxMs is the largest timestamp up to it, ownMs its own.
func (t *timeVerifier) batch(first, last, maxMs, ownMs int64) {
	for len(t.entries) > 0 && t.entries[0].offset <= last {
		e := t.entries[0]
		t.entries = t.entries[1:]
		t.lastMs = e.ms
		switch {
		case e.offset < first:
			t.p.damageAt(e.at, "no batch has offset %d", e.offset)
		case e.ms != maxMs:
			t.p.damageAt(e.at, "timestamp %s, but the largest up to offset %d is %s", timestamp(e.ms), last, timestamp(maxMs))
		case e.ms != ownMs:
			t.p.damageAt(e.at, "timestamp %s is not that of the batch with offset %d", timestamp(e.ms), e.offset)
		}
	}
}

// finish checks the end of the index. complete says that the largest timestamp must be in it.
func (t *timeVerifier) finish(maxMs int64, complete bool) {
	for _, e := range t.entries {
		t.p.damageAt(e.at, "offset %d is beyond the end of the segment", e.offset)
	}
	if complete && maxMs > max(t.lastMs, 0) {
		t.p.damage("the end of the file", "the segment's largest timestamp is %s, that of the last entry %s", timestamp(maxMs), timestamp(t.lastMs))
	}
}

// abortedVerifier compares a transaction index with the markers.
type abortedVerifier struct {
	p       *printer
	err     error
	entries []abortedEntry
	missing []abortedEntry // aborted transactions of which the log has data, without an entry
}

// batch is told of a batch; marker is what it is, if it ends a transaction of the producer.
func (a *abortedVerifier) batch(first, last int64, id record.ProducerID, marker *record.EndTxnMarker) {
	for len(a.entries) > 0 && a.entries[0].last <= last {
		e := a.entries[0]
		if e.last == last && marker != nil && !marker.Commit && e.producerID == int64(id) {
			return // the transaction itself is compared when its end is known
		}
		if e.last >= first { // else the marker was compacted away
			a.p.damageAt(e.at, "offset %d is no marker that aborts a transaction of producer %d", e.last, e.producerID)
		}
		a.entries = a.entries[1:]
	}
}

// ended is told of an aborted transaction by its marker. first is the offset of its first record that the log has, whole whether that must be
// where it began.
func (a *abortedVerifier) ended(id record.ProducerID, first, last int64, whole bool) {
	if len(a.entries) > 0 && a.entries[0].last == last {
		if e := a.entries[0]; whole && e.first != first || e.first > first {
			a.p.damageAt(e.at, "the transaction of producer %d begins at offset %d, not %d", id, first, e.first)
		}
		a.entries = a.entries[1:]
		return
	}
	a.missing = append(a.missing, abortedEntry{producerID: int64(id), first: first, last: last})
}

// unknown is told of a marker that aborts a transaction of which the log has no data, or none any more.
func (a *abortedVerifier) unknown(last int64) {
	if len(a.entries) > 0 && a.entries[0].last == last {
		a.entries = a.entries[1:]
	}
}

// finish checks the end of the index. complete says that no entry may be missing.
func (a *abortedVerifier) finish(complete bool) {
	for _, e := range a.entries {
		a.p.damageAt(e.at, "offset %d is beyond the end of the segment", e.last)
	}
	for _, m := range a.missing {
		if complete {
			a.p.damage("the end of the file", "the transaction of producer %d from offset %d, aborted at %d, is missing", m.producerID, m.first, m.last)
		}
	}
}

// epochVerifier compares the list of leader epochs with the batches.
type epochVerifier struct {
	l        *logVerifier
	p        *printer
	err      error
	entries  []epochEntry
	at       int // the entry that the last batch fell to
	reported record.LeaderEpoch
}

func newEpochVerifier(l *logVerifier, exists bool) *epochVerifier {
	e := &epochVerifier{l: l, p: l.printer(epoch.FileName), reported: record.NoLeaderEpoch}
	if exists {
		e.err = e.p.epochEntries(func(entry epochEntry) { e.entries = append(e.entries, entry) })
	}
	return e
}

// batch is told of a batch that was written in an epoch. What is in front of the log's start has no entry any more; what was not flushed
// before a crash gets one at the next start.
func (e *epochVerifier) batch(first int64, in record.LeaderEpoch) {
	if first < e.l.start || first >= e.l.recoveryPoint || in == e.reported {
		return
	}
	for e.at+1 < len(e.entries) && e.entries[e.at+1].start <= first {
		e.at++
	}
	switch {
	case len(e.entries) == 0 || e.entries[e.at].start > first:
		e.p.damage(wholeFile, "no epoch covers offset %d, which was written in epoch %d", first, in)
	case e.entries[e.at].epoch != int64(in):
		e.p.damage("epoch "+itoa(e.entries[e.at].epoch), "it covers offset %d, which was written in epoch %d", first, in)
	default:
		return
	}
	e.reported = in
}

func (e *epochVerifier) finish(end int64) {
	for _, entry := range e.entries {
		if entry.start > end && e.l.found.Clean {
			e.p.damage("epoch "+itoa(entry.epoch), "it begins at offset %d, beyond the log end offset %d", entry.start, end)
		}
	}
}

func (e *epochVerifier) collect() { e.l.collect(e.p, e.err) }
