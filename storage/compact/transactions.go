package compact

import (
	"cmp"
	"slices"

	"sluice/protocol/record"
	"sluice/storage/segment"
)

// transactions follows the transactions in a log as its batches come by, in order of offsets: which batches were aborted, and which markers
// have nothing left that they decide about. An aborted transaction is known from its entry in a transaction index before its first batch comes.
type transactions struct {
	pending   []segment.AbortedTxn // that begin later, by first offset
	aborted   map[record.ProducerID]*abortedTxn
	committed map[record.ProducerID]bool // producers with a batch of a transaction that was not aborted
	// kept is told of each aborted transaction of which batches were seen, when its marker comes. Nil: nobody is.
	kept func(segment.AbortedTxn) error
}

// abortedTxn is a transaction that has begun and whose marker has not come yet.
type abortedTxn struct {
	entry segment.AbortedTxn
	seen  bool // a batch of it
}

func newTransactions() *transactions {
	return &transactions{aborted: map[record.ProducerID]*abortedTxn{}, committed: map[record.ProducerID]bool{}}
}

// add makes aborted transactions known, also some that are known already.
func (t *transactions) add(entries []segment.AbortedTxn) {
	if len(entries) == 0 {
		return
	}
	t.pending = append(t.pending, entries...)
	slices.SortStableFunc(t.pending, func(a, b segment.AbortedTxn) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
}

// reach lets the transactions begin that do so at or before an offset.
func (t *transactions) reach(offset int64) {
	n := 0
	for ; n < len(t.pending) && t.pending[n].FirstOffset <= offset; n++ {
		if id := t.pending[n].ProducerID; t.aborted[id] == nil {
			t.aborted[id] = &abortedTxn{entry: t.pending[n]}
		}
	}
	t.pending = t.pending[n:]
}

// records says whether a batch of records was aborted.
func (t *transactions) records(b record.Batch) (aborted bool) {
	t.reach(b.LastOffset())
	if !b.IsTransactional() {
		return false
	}
	if x := t.aborted[b.ProducerID()]; x != nil {
		x.seen = true
		return true
	}
	t.committed[b.ProducerID()] = true
	return false
}

// control says whether a control batch is a marker of a transaction of which no batch is left.
func (t *transactions) control(b record.Batch) (idle bool, err error) {
	t.reach(b.LastOffset())
	for r, err := range b.Records(0) {
		if err != nil {
			return false, err
		}
		c, err := record.ParseControl(r)
		if err != nil {
			return false, err
		}
		marker, ok := c.(record.EndTxnMarker)
		if !ok {
			return false, nil
		}
		return t.end(b.ProducerID(), marker.Commit)
	}
	return true, nil // a marker that has gone already
}

func (t *transactions) end(id record.ProducerID, commit bool) (idle bool, err error) {
	if commit {
		idle = !t.committed[id]
		delete(t.committed, id)
		return idle, nil
	}
	x := t.aborted[id]
	delete(t.aborted, id)
	if x == nil || !x.seen {
		return true, nil
	}
	if t.kept != nil {
		err = t.kept(x.entry)
	}
	return false, err
}
