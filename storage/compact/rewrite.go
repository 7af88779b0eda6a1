package compact

import (
	"errors"
	"fmt"
	"math"

	"sluice/protocol/record"
	"sluice/storage/partlog"
	"sluice/storage/producer"
	"sluice/storage/segment"
)

// rewriter makes segments anew with what stays of them. It goes through the whole log up to where it is clean, as a key's older records may
// be anywhere.
type rewriter struct {
	cleaner *Cleaner
	task    Task
	run     *partlog.Cleaning
	offsets *offsetMap
	txns    *transactions

	last    map[record.ProducerID]producer.LastRecord
	cleaned *segment.Segment // that is being written
	// unsynced bytes of it
	unsynced int

	// Of the batch at hand.
	horizonPassed bool // its tombstones may go
	dropAll       bool
}

// rewrite puts one segment in the place of some. next is where the segment after them begins.
func (w *rewriter) rewrite(old []*segment.Segment, next int64) error {
	base := old[0].BaseOffset()
	cleaned, err := w.run.Create(base)
	if err != nil {
		return failed(w.run, nil, err)
	}
	w.cleaned, w.unsynced, w.last = cleaned, 0, w.run.LastRecords()
	w.cleaner.out = w.cleaner.out[:0]
	w.txns.kept = func(t segment.AbortedTxn) error {
		if err := cleaned.AppendAborted(t); err != nil {
			return w.run.Fault(err)
		}
		return nil
	}
	if err := w.fill(old, next); err != nil {
		return errors.Join(err, w.run.Discard(cleaned))
	}
	w.cleaner.stats.SegmentsBefore += len(old)
	w.cleaner.stats.SegmentsAfter++
	w.cleaner.stats.WrittenBytes += cleaned.Size()
	return nil
}

func (w *rewriter) fill(old []*segment.Segment, next int64) error {
	for i, s := range old {
		end := next
		if i+1 < len(old) {
			end = old[i+1].BaseOffset()
		}
		aborted, err := w.run.Aborted(s.BaseOffset(), end)
		if err != nil {
			return failed(w.run, nil, err)
		}
		w.txns.add(aborted)
		if err := w.cleaner.batches(w.run, s, 0, &w.cleaner.stats.ReadBytes, w.batch); err != nil {
			return failed(w.run, s, err)
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	return w.run.Replace(w.cleaned, old, w.task.NowMs)
}

// batch adds what stays of a batch to what is to be written.
func (w *rewriter) batch(b record.Batch) error {
	retention := record.Retention{Keep: w.keep, KeepEmpty: w.keepEmpty(b), DeleteHorizonMs: w.task.NowMs + w.task.DeleteRetentionMs}
	w.horizonPassed = b.HasDeleteHorizon() && b.BaseTimestamp() <= w.task.NowMs
	if b.IsControl() {
		idle, err := w.txns.control(b)
		if err != nil {
			return bad(err)
		}
		// A marker that decides about nothing any more gets a delete horizon first, as a consumer may just be reading what it decided about.
		w.dropAll, retention.SetHorizon = idle && w.horizonPassed, idle
		retention.Keep = func(record.View) bool { return !w.dropAll }
	} else {
		w.dropAll = w.txns.records(b)
	}
	stats := &w.cleaner.stats
	if w.dropAll && !retention.KeepEmpty {
		stats.ReadRecords += int64(b.Count())
		return nil
	}
	out, counts, err := w.cleaner.filter.Apply(w.cleaner.out, b, retention)
	w.cleaner.out = out
	stats.ReadRecords += int64(counts.Read)
	stats.KeptRecords += int64(counts.Kept)
	if err != nil {
		return bad(err)
	}
	if len(out) >= w.cleaner.BufferBytes {
		return w.flush()
	}
	return nil
}

func bad(err error) error {
	// What the disk did is not the batch's fault.
	var fault *partlog.Fault
	if errors.As(err, &fault) {
		return err
	}
	return &badBatch{err: err}
}

// keep decides about a record of a batch that was not aborted.
func (w *rewriter) keep(v record.View) bool {
	switch {
	case w.dropAll:
		return false
	case v.Offset > w.offsets.last:
		return true
	case v.Key == nil:
		w.cleaner.stats.NoKeyRecords++
		return false
	}
	return v.Offset >= w.offsets.get(v.Key) && (v.HasValue || !w.horizonPassed)
}

// keepEmpty says whether a batch stays even without records: because its producer's next sequence is told by it, or the end of the log.
func (w *rewriter) keepEmpty(b record.Batch) bool {
	if b.NextOffset() == w.task.HighWatermark {
		return true
	}
	last, ok := w.last[b.ProducerID()]
	if !b.HasProducerID() || !ok {
		return false
	}
	if last.Offset != record.NoOffset {
		return b.LastOffset() == last.Offset
	}
	return b.IsControl() && b.ProducerEpoch() == last.Epoch
}

// flush writes what has been collected.
func (w *rewriter) flush() error {
	out := w.cleaner.out
	if len(out) == 0 {
		return nil
	}
	w.cleaner.out = out[:0]
	if cap(out) > maxKeptBytes {
		w.cleaner.out = nil
	}
	if w.cleaned.Size()+int64(len(out)) > math.MaxInt32 {
		return &badBatch{err: fmt.Errorf("compacted segment would have more than %d bytes", math.MaxInt32)}
	}
	if err := w.cleaner.Pace(len(out)); err != nil {
		return err
	}
	if err := w.cleaned.Append(out, w.task.IndexIntervalBytes); err != nil {
		return w.run.Fault(err)
	}
	if w.unsynced += len(out); w.unsynced >= syncBytes {
		w.unsynced = 0
		if err := w.cleaned.SyncLog(); err != nil {
			return w.run.Fault(err)
		}
	}
	return nil
}

// syncBytes are brought to the disk at a time: whoever waits for the end of a compaction does not wait for much of it.
const syncBytes = 16 << 20
