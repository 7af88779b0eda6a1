package segment

import (
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"sluice/protocol/record"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recoverBytes is how much of a log is read at once.
const recoverBytes = 1 << 20

var recoverBuffers = sync.Pool{New: func() any { return new([recoverBytes]byte) }}

// Recover reads the whole log of a segment, checks each batch and cuts the log at the first that is torn, corrupt or out of order. The
// indexes are made anew; the transaction index is emptied, for the caller to fill from what it learns. visit is called for each batch, in
// order; header is all of a control batch and at least the header of others. An error of visit ends the recovery. The result is the number
// of bytes that were cut off.
func (s *Segment) Recover(indexIntervalBytes int, visit func(header record.Batch) error) (cut int64, err error) {
	if err := s.resetIndexes(); err != nil {
		return 0, err
	}
	if err := s.txns.resize(0); err != nil {
		return 0, err
	}
	s.recent.Store(new(recentBatches))
	f, err := s.log.acquire()
	if err != nil {
		return 0, err
	}
	defer s.log.release()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	buf := recoverBuffers.Get().(*[recoverBytes]byte)
	defer recoverBuffers.Put(buf)
	r := checker{file: f, limit: size, buf: buf[:], next: s.baseOffset}
	for {
		b, at, err := r.batch()
		if errors.Is(err, errEnd) {
			break
		}
		if err != nil {
			return 0, err
		}
		if !s.fits(at.NextOffset - 1) {
			r.position = at.Position
			break
		}
		if err := s.index(b, at.Position, int(at.Bytes), indexIntervalBytes); err != nil {
			return 0, err
		}
		if err := visit(b); err != nil {
			return 0, err
		}
	}
	s.size.Store(r.position)
	s.nextOffset.Store(r.lastNext(s.baseOffset))
	if cut = size - r.position; cut > 0 {
		if err := f.Truncate(r.position); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
	}
	s.suspect.Store(false)
	return cut, s.Finish()
}

// Visit calls f for the batches that end after offset up to the end of the segment, as Recover does but without checking them, until f
// returns false.
func (s *Segment) Visit(offset int64, f func(header record.Batch) (bool, error)) error {
	return s.eachFrom(offset, func(header record.Batch, at Location, load func() (record.Batch, error)) (bool, error) {
		if at.NextOffset <= offset {
			return true, nil
		}
		if !header.IsControl() {
			return f(header)
		}
		if at.Bytes > recoverBytes {
			return false, &record.Corrupt{Reason: "control batch is too large", Position: int(at.Position)}
		}
		b, err := load()
		if err != nil {
			return false, err
		}
		return f(b)
	})
}

// checker reads batches and checks all that can be checked without decompressing.
type checker struct {
	file     io.ReaderAt
	position int64 // of the next batch
	limit    int64
	next     int64 // the smallest offset the next batch may have
	any      bool
	buf      []byte
	bufStart int64
	bufLen   int
}

// lastNext is the offset after the last good batch, or base if there was none.
func (c *checker) lastNext(base int64) int64 {
	if c.any {
		return c.next
	}
	return base
}

// batch returns the next batch if it is good, else errEnd. The batch is whole if it fits the buffer, else it is cut off after the header or
// later.
func (c *checker) batch() (record.Batch, Location, error) {
	if c.position+record.HeaderBytes > c.limit {
		return nil, Location{}, errEnd
	}
	if err := c.fill(record.HeaderBytes); err != nil {
		return nil, Location{}, err
	}
	b := record.Batch(c.view())
	size := record.SizeOf(b)
	if b.Magic() != record.CurrentMagic || size < record.HeaderBytes || size > c.limit-c.position {
		return nil, Location{}, errEnd
	}
	if err := c.fill(min(size, int64(len(c.buf)))); err != nil {
		return nil, Location{}, err
	}
	b = record.Batch(c.view())
	if int64(len(b)) >= size {
		b = b[:size]
	}
	if b.LastOffsetDelta() < 0 || b.BaseOffset() < c.next || b.IsControl() && int64(len(b)) < size {
		return nil, Location{}, errEnd
	}
	sum, err := c.sum(b, size)
	if err != nil {
		return nil, Location{}, err
	}
	if sum != b.CRC() {
		return nil, Location{}, errEnd
	}
	at := Location{b.BaseOffset(), b.NextOffset(), c.position, size}
	c.position += size
	c.next, c.any = at.NextOffset, true
	return b, at, nil
}

// view is what the buffer holds from the position on.
func (c *checker) view() []byte { return c.buf[c.position-c.bufStart : c.bufLen] }

// fill makes sure that the buffer holds n bytes from the position on; n is at most the buffer's size and does not go beyond the limit.
func (c *checker) fill(n int64) error {
	if c.bufLen > 0 && c.position >= c.bufStart && c.position+n <= c.bufStart+int64(c.bufLen) {
		return nil
	}
	m := min(int64(len(c.buf)), c.limit-c.position)
	c.bufStart, c.bufLen = c.position, 0
	if err := readFull(c.file, c.buf[:m], c.position); err != nil {
		return err
	}
	c.bufLen = int(m)
	return nil
}

// sum computes the checksum of a batch of which b is the beginning or all. What the buffer does not hold is read in pieces, so that a wrong
// size costs no memory.
func (c *checker) sum(b record.Batch, size int64) (uint32, error) {
	const covered = 21 // the checksum covers all from the attributes on
	sum := crc32.Checksum(b[covered:], castagnoli)
	if int64(len(b)) == size {
		return sum, nil
	}
	piece := blocks.Get().(*[blockBytes]byte)
	defer blocks.Put(piece)
	for done := int64(len(b)); done < size; {
		p := piece[:min(blockBytes, size-done)]
		if err := readFull(c.file, p, c.position+done); err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, castagnoli, p)
		done += int64(len(p))
	}
	return sum, nil
}
