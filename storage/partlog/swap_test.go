package partlog

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"sluice/storage/vfs"
)

// offsetsIn lists the base offsets of all batches.
func offsetsIn(t *testing.T, l *Log) string {
	t.Helper()
	var offsets []int64
	for _, b := range readAll(t, l) {
		offsets = append(offsets, b.BaseOffset())
	}
	return fmt.Sprint(offsets)
}

// TestOpen_InterruptedSwap is about segments at 0, 2 and 4 with two batches each, of which the first two were compacted to one with the batches 1 and
// 3, and what may be left when putting that in place was interrupted, by Apache Kafka or here.
func TestOpen_InterruptedSwap(t *testing.T) {
	const old, compacted = "[0 1 2 3 4 5]", "[1 3 4 5]"
	remove := func(t *testing.T, mem *vfs.Mem, bases ...int64) {
		for _, base := range bases {
			for _, suffix := range []string{".log", ".index", ".timeindex"} {
				if err := mem.Remove(segmentPath(base, suffix)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, c := range []struct {
		about string
		leave func(t *testing.T, mem *vfs.Mem, content []byte)
		want  string
	}{
		{"being written", func(t *testing.T, mem *vfs.Mem, content []byte) {
			writeFile(t, mem, segmentPath(0, ".log.cleaned"), content)
			writeFile(t, mem, segmentPath(0, ".index.cleaned"), nil)
		}, old},
		{"renamed in part, the log too", func(t *testing.T, mem *vfs.Mem, content []byte) {
			writeFile(t, mem, segmentPath(0, ".log.swap"), content)
			writeFile(t, mem, segmentPath(0, ".index.cleaned"), nil)
			writeFile(t, mem, segmentPath(0, ".timeindex.cleaned"), nil)
		}, old},
		{"renamed in part, the log not", func(t *testing.T, mem *vfs.Mem, content []byte) {
			writeFile(t, mem, segmentPath(0, ".log.cleaned"), content)
			writeFile(t, mem, segmentPath(0, ".index.swap"), []byte("not an index"))
		}, old},
		{"renamed", func(t *testing.T, mem *vfs.Mem, content []byte) {
			writeFile(t, mem, segmentPath(0, ".log.swap"), content)
			writeFile(t, mem, segmentPath(0, ".index.swap"), nil)
			writeFile(t, mem, segmentPath(0, ".timeindex.swap"), nil)
		}, compacted},
		{"one of the old deleted", func(t *testing.T, mem *vfs.Mem, content []byte) {
			writeFile(t, mem, segmentPath(0, ".log.swap"), content)
			if err := mem.Rename(segmentPath(0, ".log"), segmentPath(0, ".log.deleted")); err != nil {
				t.Fatal(err)
			}
		}, compacted},
		{"old ones deleted", func(t *testing.T, mem *vfs.Mem, content []byte) {
			writeFile(t, mem, segmentPath(0, ".log.swap"), content)
			writeFile(t, mem, segmentPath(0, ".index.swap"), nil)
			remove(t, mem, 0, 2)
		}, compacted},
		{"log in place, its indexes not", func(t *testing.T, mem *vfs.Mem, content []byte) {
			remove(t, mem, 0, 2)
			writeFile(t, mem, segmentPath(0, ".log"), content)
			writeFile(t, mem, segmentPath(0, ".index.swap"), nil)
			writeFile(t, mem, segmentPath(0, ".timeindex.swap"), nil)
		}, compacted},
		{"nothing left of it", func(t *testing.T, mem *vfs.Mem, content []byte) {
			writeFile(t, mem, segmentPath(0, ".log.swap"), nil)
			if err := mem.Remove(segmentPath(2, ".log")); err != nil {
				t.Fatal(err)
			}
		}, "[4 5]"},
		{"damaged, the old ones there", func(t *testing.T, mem *vfs.Mem, content []byte) {
			writeFile(t, mem, segmentPath(0, ".log.swap"), content[:len(content)-1])
		}, old},
		{"damaged, the old ones gone", func(t *testing.T, mem *vfs.Mem, content []byte) {
			remove(t, mem, 0, 2)
			writeFile(t, mem, segmentPath(0, ".log.swap"), append(slices.Clone(content), "rest"...))
		}, compacted},
	} {
		t.Run(c.about, func(t *testing.T) {
			mem, config, all := threeSegments(t)
			c.leave(t, mem, slices.Concat([]byte(all[1]), []byte(all[3])))
			l := mustOpen(t, Options{FS: mem, Dir: "/t-0", Config: config, CleanShutdown: true})
			if got := offsetsIn(t, l); got != c.want {
				t.Errorf("batches %s, want %s", got, c.want)
			}
			for _, name := range listDir(t, mem) {
				if strings.HasSuffix(name, ".swap") || strings.HasSuffix(name, ".cleaned") {
					t.Errorf("%s is left", name)
				}
			}
			if _, err := mem.Stat(segmentPath(0, ".index")); err != nil {
				t.Error(err)
			}
			l.Discard()
			again := mustOpen(t, Options{FS: mem, Dir: "/t-0", Config: config, CleanShutdown: true})
			if got := offsetsIn(t, again); got != c.want {
				t.Errorf("the second time: batches %s, want %s", got, c.want)
			}
		})
	}
}

// TestOpen_SegmentEndsEarly: what follows is kept where compaction explains it. Elsewhere the end of a file was lost, and what follows goes.
func TestOpen_SegmentEndsEarly(t *testing.T) {
	for _, c := range []struct {
		cleanedTo int64
		want      string
	}{{0, "[0]"}, {1, "[0]"}, {2, "[0 2 3 4 5]"}, {6, "[0 2 3 4 5]"}} {
		mem, config, all := threeSegments(t)
		writeFile(t, mem, segmentPath(0, ".log"), all[0])
		l := mustOpen(t, Options{FS: mem, Dir: "/t-0", Config: config, CleanedTo: c.cleanedTo})
		if got := offsetsIn(t, l); got != c.want {
			t.Errorf("compacted up to %d: batches %s, want %s", c.cleanedTo, got, c.want)
		}
	}
}

// TestLog_Truncated: the lowest offset is told once.
func TestLog_Truncated(t *testing.T) {
	l, _ := newLog(t, nil)
	for range 5 {
		mustAppend(t, l, plain(t, 10, 1), 1)
	}
	if _, ok := l.Truncated(); ok {
		t.Error("truncated from the start")
	}
	if err := errors.Join(l.TruncateTo(2), l.TruncateTo(4)); err != nil {
		t.Fatal(err)
	}
	if at, ok := l.Truncated(); !ok || at != 2 {
		t.Errorf("truncated to %d, %v", at, ok)
	}
	if _, ok := l.Truncated(); ok {
		t.Error("truncated twice")
	}
}

// TestCleaning_Replace_RefusesWhatChanged: only closed neighbours that are all still in the log are replaced; the files written are then removed.
func TestCleaning_Replace_RefusesWhatChanged(t *testing.T) {
	mem, config, all := threeSegments(t)
	l := mustOpen(t, Options{FS: mem, Dir: "/t-0", Config: config, CleanShutdown: true})
	c := l.StartCleaning()
	segments := c.Segments(6)
	if len(segments) != 2 || len(c.Segments(2)) != 1 {
		t.Fatalf("%d segments", len(segments))
	}
	attempt := func() error {
		s, err := c.Create(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append(all[1], 0); err != nil {
			t.Fatal(err)
		}
		err = c.Replace(s, segments, 1)
		if err != nil {
			err = errors.Join(err, c.Discard(s))
		}
		return err
	}
	if err := l.AdvanceLogStartOffset(2); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Retain(1, 6); err != nil {
		t.Fatal(err)
	}
	if err := attempt(); !errors.Is(err, ErrChanged) {
		t.Errorf("after a deletion: %v", err)
	}
	if _, err := mem.Stat(segmentPath(0, ".log.cleaned")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if c.Changed() {
		t.Error("a deletion counts as truncation")
	}
	if err := l.TruncateTo(5); err != nil || !c.Changed() {
		t.Errorf("%v, changed %v", err, c.Changed())
	}
	l.Discard()
	if err := attempt(); !errors.Is(err, ErrClosed) {
		t.Errorf("after closing: %v", err)
	}
}
