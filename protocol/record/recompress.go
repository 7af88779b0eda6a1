package record

import (
	"encoding/binary"
	"errors"

	"sluice/protocol/compress"
)

// recompress checks the records and writes them with another codec. Records are the same bytes in every codec, so that
// only what is around them changes.
func (w *walk) recompress(target compress.Codec) (Batch, *Invalid) {
	payload := w.batch.payload()
	if codec := w.batch.Codec(); codec != compress.None {
		limit := min(w.maxDecompressed(), maxRecompressedBytes)
		if target == compress.None {
			limit = min(limit, max(w.rules.MaxMessageBytes-HeaderBytes, 0))
		}
		scratch := compress.BorrowBuffer()
		defer scratch.Release()
		var err error
		if scratch.B, err = compress.Decompress(scratch.B, codec, payload, limit); err != nil {
			if errors.Is(err, compress.ErrTooLarge) && target == compress.None {
				return nil, invalid(KindTooLarge, "record batch exceeds the limit of %d bytes (max.message.bytes) without compression", w.rules.MaxMessageBytes)
			}
			return nil, w.undecodable(err)
		}
		payload = scratch.B
	}
	if refused := w.plain(payload); refused != nil {
		return nil, refused
	}
	if w.count > 0 {
		return w.batch, nil
	}
	if w.impossible {
		return nil, invalid(KindUnreadable, "a negative timestamp cannot be written anew")
	}
	out, err := compress.Compress(make([]byte, HeaderBytes, HeaderBytes+len(payload)), target, w.rules.Compression.Level, payload)
	if err != nil {
		return nil, invalid(KindUnsupportedCompression, "record batch cannot be compressed: %v", err)
	}
	if len(out) > w.rules.MaxMessageBytes {
		return nil, tooLarge(len(out), w.rules.MaxMessageBytes)
	}
	batch := Batch(out)
	copy(batch, w.batch[:HeaderBytes])
	binary.BigEndian.PutUint32(batch[lengthAt:], uint32(len(out)-prefixBytes))
	attributes := w.batch.Attributes()&(transactionalBit|controlBit|logAppendTimeBit) | int16(target)
	binary.BigEndian.PutUint16(batch[attributesAt:], uint16(attributes))
	batch.stampCRC()
	return batch, nil
}
