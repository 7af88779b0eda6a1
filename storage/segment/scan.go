package segment

import (
	"errors"
	"io"
	"sync"

	"sluice/protocol/record"
)

// scanner walks over the headers of batches in a file, from a position to a limit, with few reads: what it reads holds several headers if
// the batches are small.
type scanner struct {
	file     io.ReaderAt
	position int64 // of the next batch
	limit    int64
	bufStart int64 // position of buf's first byte
	bufLen   int
	buf      [scanBytes]byte
}

const scanBytes = 8192

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// errEnd is returned by next at the limit, and when the batch at the position goes beyond it.
var errEnd = errors.New("end of the scanned range")

func newScanner(file io.ReaderAt, position, limit int64) *scanner {
	s := scanners.Get().(*scanner)
	s.file, s.position, s.limit, s.bufLen = file, position, limit, 0
	return s
}

func (s *scanner) free() {
	s.file = nil
	scanners.Put(s)
}

// next returns the header of the next batch and where the whole is. The header is valid until the next call. The error is errEnd, a
// *record.Corrupt whose Position is that in the file, or one of reading.
func (s *scanner) next() (header record.Batch, at Location, err error) {
	if s.position+record.HeaderBytes > s.limit {
		return nil, Location{}, errEnd
	}
	start := s.position - s.bufStart
	if s.bufLen == 0 || start < 0 || start+record.HeaderBytes > int64(s.bufLen) {
		n := min(scanBytes, s.limit-s.position)
		if err := readFull(s.file, s.buf[:n], s.position); err != nil {
			s.bufLen = 0
			return nil, Location{}, err
		}
		s.bufStart, s.bufLen, start = s.position, int(n), 0
	}
	b := record.Batch(s.buf[start : start+record.HeaderBytes])
	size := record.SizeOf(b)
	if b.Magic() != record.CurrentMagic || size < record.HeaderBytes {
		return nil, Location{}, &record.Corrupt{Reason: "no batch of a known format", Position: int(s.position)}
	}
	if b.LastOffsetDelta() < 0 {
		return nil, Location{}, &record.Corrupt{Reason: "last offset is below the base offset", Position: int(s.position)}
	}
	if size > s.limit-s.position {
		return nil, Location{}, errEnd
	}
	at = Location{b.BaseOffset(), b.NextOffset(), s.position, size}
	s.position += size
	return b, at, nil
}
