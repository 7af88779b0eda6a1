package record

import (
	"fmt"

	"sluice/protocol/compress"
)

// walk goes over the records of a batch that is validated.
type walk struct {
	batch Batch
	rules Rules

	// Set by prepare, so that the common case of a record is a few comparisons.
	baseTimestamp int64
	checkTime     bool // records with a timestamp must lie within the limits
	appendTime    bool // the producer claims log-append time
	maxRecord     int  // limit for one record that was compressed; 0 = none

	index        int32 // of the record at hand
	maxTimestamp int64 // NoTimestamp if there is none
	impossible   bool  // some timestamp is below NoTimestamp, which Kafka can keep but not write
	maxAt        int32 // index of the first record that has it

	errors  []RecordError
	count   int  // of bad records, also of those that are not in errors
	badTime bool // a timestamp was among what is bad
}

func (w *walk) prepare() {
	w.baseTimestamp = w.batch.BaseTimestamp()
	w.checkTime = w.rules.TimestampType == CreateTime
	w.appendTime = w.batch.TimestampType() == LogAppendTime
	if w.batch.Codec() != compress.None {
		w.maxRecord = w.rules.MaxRecordBytes
	}
}

// plain walks over records that are not compressed. It does not allocate unless a record is bad.
func (w *walk) plain(payload []byte) *Invalid {
	at := 0
	for range w.batch.Count() {
		next, timestampDelta, offsetDelta, hasKey, ok := glance(payload, at)
		if !ok || w.maxRecord > 0 && next-at > w.maxRecord {
			s, fault := scan(payload, at)
			if fault != "" {
				return w.malformed(fault)
			}
			if w.maxRecord > 0 && s.length > w.maxRecord {
				return w.recordTooLarge(s.length)
			}
			next, timestampDelta, offsetDelta, hasKey = s.next, s.timestampDelta, s.offsetDelta, s.hasKey
		}
		if refused := w.record(timestampDelta, offsetDelta, hasKey); refused != nil {
			return refused
		}
		at = next
	}
	if at != len(payload) {
		return w.malformed(faultRemaining)
	}
	return nil
}

// record checks one record and moves on to the next.
func (w *walk) record(timestampDelta int64, offsetDelta int32, hasKey bool) *Invalid {
	if offsetDelta != w.index {
		return w.malformed(faultOffsets)
	}
	timestamp := w.baseTimestamp + timestampDelta
	if w.appendTime {
		timestamp = w.batch.MaxTimestamp()
	}
	switch {
	case w.rules.Compacted && !hasKey:
		w.bad(false, "a compacted topic does not take a record without a key")
	case w.checkTime && timestamp != NoTimestamp:
		// The differences wrap around as Kafka's do.
		age := w.rules.NowMs - timestamp
		if age > w.rules.BeforeMaxMs || -age > w.rules.AfterMaxMs {
			w.badTimestamp(timestamp)
		}
	case w.appendTime:
		w.bad(true, "a producer may not claim log-append time")
	}
	w.impossible = w.impossible || timestamp < NoTimestamp
	if timestamp > w.maxTimestamp {
		w.maxTimestamp, w.maxAt = timestamp, w.index
	}
	w.index++
	return nil
}

func (w *walk) badTimestamp(timestamp int64) {
	if w.count < maxRecordErrors {
		w.bad(true, fmt.Sprintf("Timestamp %d of message with offset %d is out of range. The timestamp should be within [%d, %d]",
			timestamp, w.index, w.rules.NowMs-w.rules.BeforeMaxMs, w.rules.NowMs+w.rules.AfterMaxMs))
		return
	}
	w.bad(true, "")
}

// bad notes that the record at hand is refused.
func (w *walk) bad(timestamp bool, message string) {
	w.count++
	w.badTime = w.badTime || timestamp
	if len(w.errors) < maxRecordErrors {
		w.errors = append(w.errors, RecordError{BatchIndex: w.index, Message: message})
	}
}

// verdict sums up what is wrong with single records.
func (w *walk) verdict() *Invalid {
	if w.count == 0 {
		return nil
	}
	kind := KindInvalidRecord
	message := fmt.Sprintf("%d records are refused, the first because %s", w.count, w.errors[0].Message)
	if w.badTime {
		kind = KindInvalidTimestamp
		message = "One or more records have been rejected due to invalid timestamp"
	}
	return &Invalid{Kind: kind, Message: message, RecordErrors: w.errors}
}

func (w *walk) malformed(fault string) *Invalid {
	return invalid(KindInvalidRecord, "record %d of %d is malformed: %s", w.index, w.batch.Count(), fault)
}

func (w *walk) recordTooLarge(size int) *Invalid {
	return invalid(KindInvalidRecord, "record %d of %d bytes exceeds the limit of %d (max.decompressed.message.bytes)", w.index, size, w.maxRecord)
}
