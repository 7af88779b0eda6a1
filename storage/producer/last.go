package producer

import "sluice/protocol/record"

// LastRecord says where a producer's last batch of records is.
type LastRecord struct {
	Offset int64 // of its last record, inclusive; record.NoOffset if there is none in the current epoch
	Epoch  record.ProducerEpoch
}

// LastRecords gives the last batches of all producers. Compaction must not lose them: after a restart the sequences go on from there.
func (t *Table) LastRecords() map[record.ProducerID]LastRecord {
	all := make(map[record.ProducerID]LastRecord, len(t.producers))
	for id, e := range t.producers {
		l := LastRecord{Offset: record.NoOffset, Epoch: e.epoch}
		if a, ok := e.window.last(); ok {
			l.Offset = a.lastOffset
		}
		all[id] = l
	}
	return all
}
