package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"sluice/protocol/compress"
	"sluice/protocol/record"
	"sluice/storage/logdir"
	"sluice/storage/vfs"
)

// log prints the batches of a segment.
func (p *printer) log() error { return p.batches(decoderFor(p.topic())) }

// metadataSnapshot prints a snapshot of the cluster's metadata, which is a log of its own.
func (p *printer) metadataSnapshot() error { return p.batches(decoderFor(logdir.MetadataTopic)) }

func (p *printer) batches(decode decoder) (err error) {
	f, err := p.fs.Open(p.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	next, known := p.baseOffset() // the least offset that may follow
	if !known {
		next = math.MinInt64
	}
	var buffer []byte
	for position := int64(0); position < size; position += int64(len(buffer)) {
		var ok bool
		if buffer, ok, err = p.readBatch(f, buffer, position, size); err != nil || !ok {
			return err
		}
		b := record.Batch(buffer)
		p.batch(b, position)
		if first := b.BaseOffset(); first < next {
			p.damageAt(position, "the batch begins at offset %d, but the one before it or the file's name makes %d the least", first, next)
		}
		next = b.NextOffset()
		if p.o.Records {
			p.records(b, position, decode)
		}
	}
	return nil
}

// readBatch reads the batch at position. ok is false at the end of what can be read, about which all has been said then.
func (p *printer) readBatch(f vfs.File, buffer []byte, position, size int64) (_ []byte, ok bool, err error) {
	rest := size - position
	header := grow(buffer, min(rest, record.HeaderBytes))
	if err := readFull(f, header, position); err != nil {
		return nil, false, err
	}
	if zero, err := onlyZeros(f, header, position, size); err != nil || zero {
		if zero {
			p.printf("zeros position=%d size=%d", position, rest) // as log.preallocate leaves them
		}
		return nil, false, err
	}
	if rest < record.HeaderBytes {
		p.damageAt(position, "%d bytes are left, a batch has at least %d", rest, record.HeaderBytes)
		return nil, false, nil
	}
	bytes := record.SizeOf(header)
	if bytes > rest {
		p.damageAt(position, "a batch of %d bytes is cut short after %d", bytes, rest)
		return nil, false, nil
	}
	whole := header
	if bytes > record.HeaderBytes {
		whole = grow(header, bytes)
		if err := readFull(f, whole[record.HeaderBytes:], position+record.HeaderBytes); err != nil {
			return nil, false, err
		}
	}
	b, _, err := record.Split(whole)
	if corrupt := (*record.Corrupt)(nil); errors.As(err, &corrupt) {
		p.damageAt(position+int64(corrupt.Position), "%s", corrupt.Reason)
		return nil, false, nil
	}
	return b, err == nil, err
}

// grow returns n bytes of which the first are those of b.
func grow(b []byte, n int64) []byte {
	if n <= int64(cap(b)) {
		return b[:n]
	}
	grown := make([]byte, n)
	copy(grown, b)
	return grown
}

// readFull fills b; a file that ends early was cut while it was read.
func readFull(f vfs.File, b []byte, position int64) error {
	n, err := f.ReadAt(b, position)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s has become shorter than %d bytes meanwhile", f.Name(), position+int64(len(b)))
	}
	return err
}

// onlyZeros tells whether nothing but zeros follows from position on; header is what stands there.
func onlyZeros(f vfs.File, header []byte, position, size int64) (bool, error) {
	isZero := func(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }
	if !isZero(header) {
		return false, nil
	}
	var chunk [64 << 10]byte
	for position < size {
		part := chunk[:min(size-position, int64(len(chunk)))]
		if err := readFull(f, part, position); err != nil || !isZero(part) {
			return false, err
		}
		position += int64(len(part))
	}
	return true, nil
}

// batch prints the header of a batch.
func (p *printer) batch(b record.Batch, position int64) {
	fmt.Fprintf(p, "batch baseOffset=%d lastOffset=%d count=%d position=%d size=%d leaderEpoch=%d codec=%s",
		b.BaseOffset(), b.LastOffset(), b.Count(), position, len(b), b.LeaderEpoch(), b.Codec())
	first := "baseTimestamp"
	if b.HasDeleteHorizon() {
		first = "deleteHorizon"
	}
	fmt.Fprintf(p, " %s=%s maxTimestamp=%s timestampType=%s", first, timestamp(b.BaseTimestamp()), timestamp(b.MaxTimestamp()), b.TimestampType())
	if b.HasProducerID() {
		fmt.Fprintf(p, " producerId=%d producerEpoch=%d", b.ProducerID(), b.ProducerEpoch())
	}
	if b.BaseSequence() != record.NoSequence {
		fmt.Fprintf(p, " baseSequence=%d lastSequence=%d", b.BaseSequence(), b.LastSequence())
	}
	if b.IsTransactional() {
		fmt.Fprint(p, " transactional")
	}
	if b.IsControl() {
		fmt.Fprint(p, " control")
	}
	p.printf(" crc=0x%08x", b.CRC())
	if !b.ValidCRC() {
		p.damageAt(position, "the checksum is not that of the batch's bytes")
	}
}

// records prints what is in a batch.
func (p *printer) records(b record.Batch, position int64, decode decoder) {
	if b.IsControl() {
		decode = controlRecord
	}
	for r, err := range b.Records(p.maxDecompressedBytes()) {
		if corrupt := (*record.Corrupt)(nil); errors.As(err, &corrupt) {
			if b.Codec() == compress.None {
				p.damageAt(position+int64(corrupt.Position), "%s", corrupt.Reason)
			} else {
				p.damageAt(position, "byte %d of the decompressed records: %s", corrupt.Position-record.HeaderBytes, corrupt.Reason)
			}
			return
		}
		if err != nil {
			p.damageAt(position, "%v", err)
			return
		}
		text, err := decode(p, r)
		p.printf("  record offset=%d timestamp=%s %s", r.Offset, timestamp(r.TimestampMs), text)
		if err != nil {
			p.damageAt(position, "record at offset %d: %v", r.Offset, err)
		}
	}
}
