package producer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path"
	"slices"

	"sluice/protocol/record"
	"sluice/storage/vfs"
)

// A snapshot file holds a version, 1, in 2 bytes, a CRC-32C of all that follows it in 4, the number of producers in 4, and for each one
//
//	producer id 8, epoch 2, last sequence 4, last offset 8, offset delta 4, timestamp 8, coordinator epoch 4, first offset of the open transaction 8
//
// of which sequence to delta are those of the last batch: of the window only that one outlives a restart.
const (
	snapshotVersion      = 1
	snapshotHeaderBytes  = 10
	snapshotCoveredAt    = 6
	snapshotEntryBytes   = 46
	snapshotEntriesMost  = 1_000_000 // as many as Kafka reads
	snapshotSuffix       = ".snapshot"
	snapshotDeleted      = ".deleted"
	snapshotOffsetDigits = 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CorruptSnapshot means that a snapshot file is torn or damaged. The state is then made from an older one and the log.
type CorruptSnapshot struct{ Reason string }

func (e *CorruptSnapshot) Error() string { return "corrupt producer snapshot: " + e.Reason }

// Append appends the snapshot of the table to dst, producers by id.
func (t *Table) Append(dst []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, snapshotVersion)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(t.producers)))
	for _, id := range slices.Sorted(maps.Keys(t.producers)) {
		e := t.producers[id]
		last, ok := e.window.last()
		if !ok {
			last = appended{lastSeq: record.NoSequence, lastOffset: record.NoOffset}
		}
		dst = binary.BigEndian.AppendUint64(dst, uint64(id))
		dst = binary.BigEndian.AppendUint16(dst, uint16(e.epoch))
		dst = binary.BigEndian.AppendUint32(dst, uint32(last.lastSeq))
		dst = binary.BigEndian.AppendUint64(dst, uint64(last.lastOffset))
		dst = binary.BigEndian.AppendUint32(dst, uint32(last.offsetDelta))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.lastTimestampMs))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.coordinatorEpoch))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.txnFirstOffset))
	}
	sum := crc32.Checksum(dst[start+snapshotCoveredAt:], castagnoli)
	binary.BigEndian.PutUint32(dst[start+2:], sum)
	return dst
}

// Load replaces the table by a snapshot taken at endOffset. Producers that have expired at nowMs are left out. After an error, a
// *CorruptSnapshot, the table is empty.
func (t *Table) Load(b []byte, endOffset, nowMs, expirationMs int64) error {
	t.Reset(endOffset)
	if len(b) < snapshotHeaderBytes {
		return &CorruptSnapshot{fmt.Sprintf("%d bytes are too few", len(b))}
	}
	if v := binary.BigEndian.Uint16(b); v != snapshotVersion {
		return &CorruptSnapshot{fmt.Sprintf("version is %d", int16(v))}
	}
	if sum := crc32.Checksum(b[snapshotCoveredAt:], castagnoli); sum != binary.BigEndian.Uint32(b[2:]) {
		return &CorruptSnapshot{"checksum does not match"}
	}
	count := int64(int32(binary.BigEndian.Uint32(b[6:])))
	b = b[snapshotHeaderBytes:]
	if count < 0 || count > snapshotEntriesMost || int64(len(b)) < count*snapshotEntryBytes {
		return &CorruptSnapshot{fmt.Sprintf("%d producers in %d bytes", count, len(b))}
	}
	for ; count > 0; count-- {
		id := record.ProducerID(binary.BigEndian.Uint64(b))
		e := newEntry()
		e.epoch = record.ProducerEpoch(binary.BigEndian.Uint16(b[8:]))
		last := appended{
			lastSeq:     int32(binary.BigEndian.Uint32(b[10:])),
			lastOffset:  int64(binary.BigEndian.Uint64(b[14:])),
			offsetDelta: int32(binary.BigEndian.Uint32(b[22:])),
			timestampMs: int64(binary.BigEndian.Uint64(b[26:])),
		}
		e.lastTimestampMs = last.timestampMs
		e.coordinatorEpoch = int32(binary.BigEndian.Uint32(b[34:]))
		e.lastMarkerOffset = endOffset - 1 // as far as is known
		if first := int64(binary.BigEndian.Uint64(b[38:])); first >= 0 {
			e.txnFirstOffset = first
		}
		if last.lastOffset >= 0 {
			e.window.add(last)
		}
		b = b[snapshotEntryBytes:]
		if e.expired(nowMs, expirationMs) {
			continue
		}
		if t.producers == nil {
			t.producers = make(map[record.ProducerID]*entry)
		}
		t.producers[id] = e
		if e.txnFirstOffset != noTxn {
			t.txns.begin(e.txnFirstOffset)
		}
	}
	return nil
}

// Snapshots are the snapshot files of one log. Each is named after the offset that its table stands at.
type Snapshots struct {
	fs      vfs.FS
	dir     string
	offsets []int64 // ascending
	// unsynced are those that a crash may damage.
	unsynced []int64
}

// NewSnapshots takes over the files that the folder has; offsets in any order.
func NewSnapshots(fs vfs.FS, dir string, offsets []int64) *Snapshots {
	return &Snapshots{fs: fs, dir: dir, offsets: slices.Sorted(slices.Values(offsets))}
}

func (s *Snapshots) path(offset int64) string {
	return path.Join(s.dir, fmt.Sprintf("%0*d%s", snapshotOffsetDigits, offset, snapshotSuffix))
}

// Offsets lists the files; it must not be modified.
func (s *Snapshots) Offsets() []int64 { return s.offsets }

// Latest is the newest file's offset; ok is false if there is none.
func (s *Snapshots) Latest() (offset int64, ok bool) {
	if len(s.offsets) == 0 {
		return 0, false
	}
	return s.offsets[len(s.offsets)-1], true
}

// Take writes a snapshot of the table, unless there is one at its offset. It is durable after Sync, and until then found out by its checksum.
func (s *Snapshots) Take(t *Table) error {
	i, found := slices.BinarySearch(s.offsets, t.end)
	if found {
		return nil
	}
	f, err := s.fs.OpenFile(s.path(t.end), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(t.Append(nil), 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	s.offsets = slices.Insert(s.offsets, i, t.end)
	s.unsynced = append(s.unsynced, t.end)
	return nil
}

// Unsynced takes the list of files that Sync has to make durable.
func (s *Snapshots) Unsynced() []int64 {
	u := s.unsynced
	s.unsynced = nil
	return u
}

// Sync makes files durable. It may run beside other calls; a file that has been removed meanwhile is no error.
func (s *Snapshots) Sync(offsets []int64) error {
	for _, offset := range offsets {
		f, err := s.fs.OpenFile(s.path(offset), os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// LoadLatest loads the newest snapshot at or below offset (and above 0) into the table. Damaged ones are removed. ok is false if there is
// none; the table then is empty and stands at 0.
func (s *Snapshots) LoadLatest(t *Table, offset, nowMs, expirationMs int64) (ok bool, err error) {
	for i := len(s.offsets) - 1; i >= 0; i-- {
		at := s.offsets[i]
		if at > offset {
			continue
		}
		b, err := s.read(at)
		if err != nil {
			return false, err
		}
		if t.Load(b, at, nowMs, expirationMs) == nil {
			return true, nil
		}
		if err := s.Remove(at); err != nil {
			return false, err
		}
	}
	t.Reset(0)
	return false, nil
}

func (s *Snapshots) read(offset int64) ([]byte, error) {
	f, err := s.fs.Open(s.path(offset))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(size, snapshotHeaderBytes+snapshotEntriesMost*snapshotEntryBytes))
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, err
	}
	return b, nil
}

// Remove removes a file.
func (s *Snapshots) Remove(offset int64) error {
	s.forget(offset)
	err := s.fs.Remove(s.path(offset))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Snapshots) forget(offset int64) {
	if i, found := slices.BinarySearch(s.offsets, offset); found {
		s.offsets = slices.Delete(s.offsets, i, i+1)
	}
}

// MarkDeleted renames a file, if it exists, so that it is not found any more, and returns its new path, "" if there is none.
func (s *Snapshots) MarkDeleted(offset int64) (string, error) {
	if _, found := slices.BinarySearch(s.offsets, offset); !found {
		return "", nil
	}
	s.forget(offset)
	name := s.path(offset)
	return name + snapshotDeleted, s.fs.Rename(name, name+snapshotDeleted)
}
