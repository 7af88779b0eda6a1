package segment

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"sluice/protocol/record"
)

// AbortedTxn is an entry of a transaction index: a transaction that was aborted by a marker in the segment.
type AbortedTxn struct {
	ProducerID  record.ProducerID
	FirstOffset int64 // of its records
	LastOffset  int64 // of its marker, inclusive
	// LastStableOffset is what it was when the marker had been appended (exclusive): an aborted transaction with a record below
	// it has its entry before this one, or is this one.
	LastStableOffset int64
}

// txnIndex is the file of aborted transactions, in the order of their markers. Most segments have none and no file. An entry is a version,
// 0, in 2 bytes, then producer id, first, last and last stable offset, 8 bytes each.
type txnIndex struct {
	handle  handle
	entries atomic.Int64 // that are in the file

	// of the writer
	written  bool // the file exists
	unsynced bool // it has changed since it was synced
}

const (
	txnEntryBytes   = 34
	txnEntryVersion = 0
)

func encodeTxnEntry(b []byte, t AbortedTxn) {
	binary.BigEndian.PutUint16(b, txnEntryVersion)
	binary.BigEndian.PutUint64(b[2:], uint64(t.ProducerID))
	binary.BigEndian.PutUint64(b[10:], uint64(t.FirstOffset))
	binary.BigEndian.PutUint64(b[18:], uint64(t.LastOffset))
	binary.BigEndian.PutUint64(b[26:], uint64(t.LastStableOffset))
}

func decodeTxnEntry(b []byte) (AbortedTxn, error) {
	if v := binary.BigEndian.Uint16(b); v != txnEntryVersion {
		return AbortedTxn{}, fmt.Errorf("transaction index entry has version %d", int16(v))
	}
	return AbortedTxn{
		ProducerID:       record.ProducerID(binary.BigEndian.Uint64(b[2:])),
		FirstOffset:      int64(binary.BigEndian.Uint64(b[10:])),
		LastOffset:       int64(binary.BigEndian.Uint64(b[18:])),
		LastStableOffset: int64(binary.BigEndian.Uint64(b[26:])),
	}, nil
}

func (x *txnIndex) append(t AbortedTxn) error {
	f, err := x.handle.create()
	if err != nil {
		return err
	}
	defer x.handle.release()
	var b [txnEntryBytes]byte
	encodeTxnEntry(b[:], t)
	n := x.entries.Load()
	x.written, x.unsynced = true, true
	if _, err := f.WriteAt(b[:], n*txnEntryBytes); err != nil {
		return err
	}
	x.entries.Store(n + 1)
	return nil
}

// each calls f with the entries in order until it returns false.
func (x *txnIndex) each(f func(AbortedTxn) bool) error {
	n := x.entries.Load()
	if n == 0 {
		return nil
	}
	file, err := x.handle.acquire()
	if err != nil {
		return err
	}
	defer x.handle.release()
	block := blocks.Get().(*[blockBytes]byte)
	defer blocks.Put(block)
	const perBlock = blockBytes / txnEntryBytes
	for i := int64(0); i < n; i += perBlock {
		b := block[:min(perBlock, n-i)*txnEntryBytes]
		if err := readFull(file, b, i*txnEntryBytes); err != nil {
			return err
		}
		for ; len(b) > 0; b = b[txnEntryBytes:] {
			t, err := decodeTxnEntry(b)
			if err != nil {
				return err
			}
			if !f(t) {
				return nil
			}
		}
	}
	return nil
}

// truncateTo removes the entries of markers at offset or later.
func (x *txnIndex) truncateTo(offset int64) error {
	keep := int64(0)
	if err := x.each(func(t AbortedTxn) bool {
		if t.LastOffset >= offset {
			return false
		}
		keep++
		return true
	}); err != nil {
		return err
	}
	return x.resize(keep)
}

// resize keeps the first n entries.
func (x *txnIndex) resize(n int64) error {
	if n == x.entries.Load() {
		return nil
	}
	f, err := x.handle.acquire()
	if err != nil {
		return err
	}
	defer x.handle.release()
	x.unsynced = true
	x.entries.Store(n)
	return f.Truncate(n * txnEntryBytes)
}

func (x *txnIndex) sync() error {
	if !x.unsynced {
		return nil
	}
	f, err := x.handle.acquire()
	if err != nil {
		return err
	}
	defer x.handle.release()
	if err := f.Sync(); err != nil {
		return err
	}
	x.unsynced = false
	return nil
}
