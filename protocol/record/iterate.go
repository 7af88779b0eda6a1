package record

import "iter"

// Header is one header of a record. Keys may repeat.
type Header struct {
	Key   string
	Value []byte // nil = null
}

// Record is one decoded record.
type Record struct {
	Offset      int64
	TimestampMs int64  // ms since 1970, or NoTimestamp
	Key         []byte // nil = null
	Value       []byte // nil = null, a tombstone where the topic is compacted
	Headers     []Header
}

// Records decodes the records in order. Offsets are resolved, and with log-append time each record carries the batch's
// maximum timestamp. Key, Value and header values alias the batch, or the decompressed copy of it. maxDecompressedBytes
// bounds what a compressed batch may decompress to; 0 or less means the package's own limit. An error is a *Corrupt,
// compress.ErrTooLarge, compress.ErrUnknownCodec or *compress.Corrupt (wrapped), and ends the sequence. The CRC is not checked.
func (b Batch) Records(maxDecompressedBytes int) iter.Seq2[Record, error] {
	panic("not written yet")
}
