package dump

import (
	"math"
	"strconv"

	"sluice/protocol/record"
	"sluice/storage/segment"
)

// seenProducer is what the log says of a producer up to some offset.
type seenProducer struct {
	epoch        record.ProducerEpoch
	lastSequence int32
	lastOffset   int64 // of its last batch with data, -1 if there was none
	txnFirst     int64 // of the first batch of the transaction that is open, -1 if none is
	ended        bool  // a marker was met: the next transaction is known from its beginning
}

// producerVerifier compares the snapshots of the producers' state with the batches before each of them.
type producerVerifier struct {
	l         *logVerifier
	snapshots []int64 // that are still to be compared, ascending
	seen      map[record.ProducerID]seenProducer
}

func (v *producerVerifier) batch(b record.Batch, marker *record.EndTxnMarker, aborted *abortedVerifier) {
	if !b.HasProducerID() {
		return
	}
	s, known := v.seen[b.ProducerID()]
	if !known {
		s.lastOffset, s.txnFirst = record.NoOffset, record.NoOffset
	}
	switch {
	case marker != nil:
		if s.txnFirst >= 0 && !marker.Commit {
			aborted.ended(b.ProducerID(), s.txnFirst, b.LastOffset(), s.ended && !v.l.gaps)
		} else if !marker.Commit {
			aborted.unknown(b.LastOffset())
		}
		s.txnFirst, s.ended, s.epoch = record.NoOffset, true, b.ProducerEpoch()
	case !b.IsControl():
		s.epoch, s.lastSequence, s.lastOffset = b.ProducerEpoch(), b.LastSequence(), b.LastOffset()
		if b.IsTransactional() && s.txnFirst < 0 && b.Count() > 0 {
			s.txnFirst = b.BaseOffset()
		}
	}
	v.seen[b.ProducerID()] = s
}

// before compares the snapshots at or below an offset, which the log has reached.
func (v *producerVerifier) before(offset int64) {
	for len(v.snapshots) > 0 && v.snapshots[0] <= offset {
		at := v.snapshots[0]
		v.snapshots = v.snapshots[1:]
		p := v.l.printer(segment.FileName(at, segment.SnapshotSuffix))
		if offset == math.MaxInt64 && at > v.l.next && v.l.found.Clean {
			p.damage(wholeFile, "it is of offset %d, beyond the log end offset %d", at, v.l.next)
		}
		v.l.collect(p, p.producerEntries(func(uint16, uint32, int64) {}, func(e producerEntry) { v.compare(p, at, e) }))
	}
}

// compare compares one producer of a snapshot. What retention or compaction may have removed from the log is not missed there.
func (v *producerVerifier) compare(p *printer, at int64, e producerEntry) {
	s, known := v.seen[record.ProducerID(e.id)]
	switch {
	case e.lastOffset >= at || e.currentTxnFirstOffset >= at:
		p.damageAt(e.at, "producer %d: offset %d is not below that of the snapshot", e.id, max(e.lastOffset, e.currentTxnFirstOffset))
	case !known || s.lastOffset < 0 || e.lastOffset < 0:
	case e.lastOffset < s.lastOffset, e.lastOffset > s.lastOffset && !v.l.gaps:
		p.damageAt(e.at, "producer %d: last offset %d, but the log has its last batch before the snapshot at %d", e.id, e.lastOffset, s.lastOffset)
	case e.epoch < int16(s.epoch):
		p.damageAt(e.at, "producer %d: epoch %d, but the log has %d", e.id, e.epoch, s.epoch)
	case e.lastOffset == s.lastOffset && e.epoch == int16(s.epoch) && e.lastSequence != s.lastSequence:
		p.damageAt(e.at, "producer %d: last sequence %d, but the log has %d", e.id, e.lastSequence, s.lastSequence)
	case e.currentTxnFirstOffset >= 0 && s.txnFirst < 0 && s.ended:
		p.damageAt(e.at, "producer %d: a transaction from offset %d is open, but the log has its end", e.id, e.currentTxnFirstOffset)
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
