package segment

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"sluice/internal/assert"
)

// ErrInUse means that files cannot be renamed because somebody reads them, on systems where that matters.
var ErrInUse = errors.New("files of a segment are being read")

// renamesOpenFiles says whether the system renames files that are open.
const renamesOpenFiles = runtime.GOOS != "windows"

// NewCleaned makes an empty segment for what compaction leaves of others. Until Swap its files are not found after a restart.
func NewCleaned(o Options) *Segment {
	s := New(o)
	s.stage.Store(stageCleaned)
	return s
}

// stage is how far the files of a compacted segment are on their way to their names.
type stage = int32

const (
	stageDone stage = iota
	stageCleaned
	stageSwap
)

var stageSuffixes = [...]string{stageDone: "", stageCleaned: CleanedSuffix, stageSwap: SwapSuffix}

// IndexBytes are the sizes of the offset index and of the time index.
func (s *Segment) IndexBytes() (offsets, times int64) {
	return int64(s.offsets.entries()) * offsetEntryBytes, int64(s.times.entries()) * timeEntryBytes
}

// FirstTimestamp is the maximum timestamp of the first batch, 0 if there is none. It may be called beside the writer.
func (s *Segment) FirstTimestamp() (int64, error) {
	size := s.size.Load()
	if size == 0 {
		return 0, nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return 0, err
	}
	defer s.log.release()
	sc := newScanner(f, 0, size)
	defer sc.free()
	b, _, err := sc.next()
	if err != nil {
		return 0, err
	}
	return b.MaxTimestamp(), nil
}

// Swap puts a compacted segment, which must be whole and durable, names included, in the place of segments of which the first begins where it
// does. They are deleted as by MarkDeleted, under names that no others have. A crash leaves the old ones, the new one, or what whoever opens
// the log makes one of them. Readers go on; those that want to open a file meanwhile wait. With ErrInUse nothing has happened; after another
// error only a restart tells what has.
func Swap(cleaned *Segment, old []*Segment) error {
	assert.That(cleaned.stage.Load() == stageCleaned && old[0].baseOffset == cleaned.baseOffset, "a compacted segment is put where it does not belong")
	all := append(slices.Clone(old), cleaned)
	free := holdNames(all)
	defer releaseNames(all)
	if !free && !renamesOpenFiles {
		return ErrInUse
	}
	// While one of its files is still named as being cleaned, all of them count for nothing.
	if err := cleaned.enterStage(stageSwap); err != nil {
		return err
	}
	if err := cleaned.fs.SyncDir(cleaned.dir); err != nil {
		return err
	}
	// Compaction may follow on compaction, before the files are removed of what the first has replaced and while somebody still reads them.
	suffix := fmt.Sprintf(".%d%s", cleaned.handles.swaps.Add(1), DeletedSuffix)
	for _, s := range old {
		if err := s.markDeletedHeld(suffix); err != nil {
			return err
		}
	}
	// No old segment comes back beside the new one.
	if err := cleaned.fs.SyncDir(cleaned.dir); err != nil {
		return err
	}
	if err := cleaned.enterStage(stageDone); err != nil {
		return err
	}
	return cleaned.fs.SyncDir(cleaned.dir)
}

// enterStage renames the files, the log first. The names must be held.
func (s *Segment) enterStage(next stage) error {
	from, to := stageSuffixes[s.stage.Load()], stageSuffixes[next]
	if err := s.each(func(h *handle) error {
		name := s.path(h.kind)
		if err := s.fs.Rename(name, strings.TrimSuffix(name, from)+to); err != nil {
			return err
		}
		if h.kind == logFile && next == stageDone && s.txns.written {
			// When the log has its name, what is left to be renamed is not taken for something older: unlike the other indexes, this one
			// cannot be made anew.
			return s.fs.SyncDir(s.dir)
		}
		return nil
	}); err != nil {
		return err
	}
	s.stage.Store(next)
	return nil
}

// handlesOf lists the files' handles by kind.
func (s *Segment) handlesOf() [fileKinds]*handle {
	return [fileKinds]*handle{&s.log, &s.offsets.handle, &s.times.handle, &s.txns.handle}
}

// holdNames keeps everybody from opening files of the segments until releaseNames. It closes those that are not in use and reports whether
// that is all of them.
func holdNames(segments []*Segment) (closed bool) {
	// All are closed before the first is held: Handles may be waiting for one that is, and must not be waited for.
	for _, s := range segments {
		for _, h := range s.handlesOf() {
			h.shut()
		}
	}
	closed = true
	for _, s := range segments {
		for _, h := range s.handlesOf() {
			h.mu.Lock()
			closed = closed && h.state.Load() == 0
		}
	}
	return closed
}

func releaseNames(segments []*Segment) {
	for _, s := range segments {
		for _, h := range s.handlesOf() {
			h.mu.Unlock()
		}
	}
}

// shut closes the file if it is not in use.
func (h *handle) shut() {
	p := h.owner.handles
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.closeIdle() {
		p.removeLocked(h)
	}
}

// SwapEnd is the offset after the last batch of a compacted segment that Swap was interrupted with, from its log file of so many bytes, and
// whether those are whole batches.
func SwapEnd(o Options, size int64) (end int64, whole bool, err error) {
	s := Load(o, Files{Log: size, Offsets: -1, Times: -1, Txns: -1})
	s.stage.Store(stageSwap)
	defer s.Close()
	if size == 0 {
		return s.baseOffset, true, nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return 0, false, err
	}
	defer s.log.release()
	sc := newScanner(f, 0, size)
	defer sc.free()
	for end = s.baseOffset; ; {
		_, at, err := sc.next()
		if notBatch(err) {
			return end, sc.position == size, nil
		}
		if err != nil {
			return 0, false, err
		}
		end = at.NextOffset
	}
}
