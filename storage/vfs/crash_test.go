package vfs_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"

	"sluice/storage/vfs"
)

// outcomes collects what clones of m with many seeds show.
func outcomes(t *testing.T, m *vfs.Mem, show func(m *vfs.Mem) string) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for seed := range uint64(300) {
		seen[show(m.CrashClone(vfs.CrashConfig{Rand: rand.New(rand.NewPCG(seed, 1))}))]++
	}
	return seen
}

func wantOutcomes(t *testing.T, got map[string]int, want ...string) {
	t.Helper()
	var keys []string
	for k := range got {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	sort.Strings(want)
	if g, w := strings.Join(keys, " | "), strings.Join(want, " | "); g != w {
		t.Errorf("outcomes of a crash:\n got %s\nwant %s", g, w)
	}
}

func open(t *testing.T, m vfs.FS, name string) vfs.File {
	t.Helper()
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	check(t, err)
	return f
}

func write(t *testing.T, f vfs.File, off int64, content string) {
	t.Helper()
	_, err := f.WriteAt([]byte(content), off)
	check(t, err)
}

func TestCrashClone_NamesNeedSyncDir(t *testing.T) {
	m := vfs.NewMem()
	f := open(t, m, "a")
	write(t, f, 0, "x")
	check(t, f.Sync())
	names := func(m *vfs.Mem) string { return "[" + list(t, m, "/") + "]" }
	wantOutcomes(t, outcomes(t, m, names), "[]", "[a]")
	check(t, m.SyncDir("/"))
	wantOutcomes(t, outcomes(t, m, names), "[a]")
	check(t, m.Remove("a"))
	check(t, m.MkdirAll("d/e", 0o755))
	wantOutcomes(t, outcomes(t, m, names), "[]", "[a]", "[a d/]", "[d/]")
	check(t, m.SyncDir("/"))
	wantOutcomes(t, outcomes(t, m, names), "[d/]")
	wantOutcomes(t, outcomes(t, m, func(m *vfs.Mem) string { return "[" + list(t, m, "d") + "]" }), "[]", "[e/]")
}

// The pattern of every small file: write a temporary one, sync it, rename it over the old one. Whatever the crash, old or new is there, whole.
func TestCrashClone_ReplaceIsAtomic(t *testing.T) {
	m := vfs.NewMem()
	writeFile(t, m, "f", "old")
	f := open(t, m, "f")
	check(t, f.Sync())
	check(t, m.SyncDir("/"))
	tmp := open(t, m, "f.tmp")
	write(t, tmp, 0, "newer")
	content := func(m *vfs.Mem) string { return readFile(t, m, "f") }
	wantOutcomes(t, outcomes(t, m, content), "old")
	check(t, tmp.Sync())
	check(t, m.Rename("f.tmp", "f"))
	wantOutcomes(t, outcomes(t, m, content), "old", "newer")
	check(t, m.SyncDir("/"))
	wantOutcomes(t, outcomes(t, m, content), "newer")
}

func TestCrashClone_RenameAcrossDirectoriesIsOneStep(t *testing.T) {
	m := vfs.NewMem()
	check(t, m.MkdirAll("a", 0o755))
	check(t, m.MkdirAll("b", 0o755))
	check(t, m.SyncDir("/"))
	check(t, open(t, m, "a/f").Close())
	check(t, m.Rename("a/f", "b/f"))
	both := func(m *vfs.Mem) string { return "[" + list(t, m, "a") + "/" + list(t, m, "b") + "]" }
	wantOutcomes(t, outcomes(t, m, both), "[/]", "[f/]", "[/f]")
	check(t, m.SyncDir("b"))
	wantOutcomes(t, outcomes(t, m, both), "[/f]")
	check(t, m.SyncDir("a"))
	wantOutcomes(t, outcomes(t, m, both), "[/f]")
}

// Each byte after a crash is the durable or the written one, never a third; the size lies between the two; synced bytes stay.
func TestCrashClone_BytesAreOldOrNew(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		m := vfs.NewMem()
		f := open(t, m, "f")
		check(t, m.SyncDir("/"))
		scribble := func(marker string) string {
			for range 1 + r.IntN(4) {
				if r.IntN(4) == 0 {
					check(t, f.Truncate(r.Int64N(12_000)))
				} else {
					write(t, f, r.Int64N(9000), strings.Repeat(marker, 1+r.IntN(3000)))
				}
			}
			return readOpen(t, f)
		}
		durable := scribble("o")
		check(t, f.Sync())
		present := scribble("n")
		byteAt := func(s string, i int) byte {
			if i < len(s) {
				return s[i]
			}
			return 0
		}
		for round := range 4 {
			clone := m.CrashClone(vfs.CrashConfig{Rand: r})
			got := readFile(t, clone, "f")
			if len(got) < min(len(durable), len(present)) || len(got) > max(len(durable), len(present)) {
				t.Fatalf("seed %d round %d: size %d, durable %d, present %d", seed, round, len(got), len(durable), len(present))
			}
			for i := range got {
				if got[i] != byteAt(durable, i) && got[i] != byteAt(present, i) {
					t.Fatalf("seed %d round %d: byte %d is %q, durable %q, present %q", seed, round, i, got[i], byteAt(durable, i), byteAt(present, i))
				}
			}
			if again := readFile(t, clone.CrashClone(vfs.CrashConfig{}), "f"); again != got {
				t.Fatalf("seed %d round %d: the clone is not durable", seed, round)
			}
			// A file written after the clone must not reach it.
			if r.IntN(2) == 0 {
				present = scribble("n")
				if readFile(t, clone, "f") != got {
					t.Fatalf("seed %d round %d: the clone changed", seed, round)
				}
			}
		}
		if got := readFile(t, m.CrashClone(vfs.CrashConfig{}), "f"); got != durable {
			t.Fatalf("seed %d: with everything lost the file is not the durable one", seed)
		}
		if got := readFile(t, m.CrashClone(vfs.CrashConfig{ProcessOnly: true}), "f"); got != present {
			t.Fatalf("seed %d: after the crash of a process the file is not the present one", seed)
		}
	}
}

func TestCrashClone_TearsInEveryWay(t *testing.T) {
	m := vfs.NewMem()
	f := open(t, m, "f")
	check(t, m.SyncDir("/"))
	write(t, f, 0, strings.Repeat("o", 2048))
	check(t, f.Sync())
	write(t, f, 1024, strings.Repeat("n", 2048))
	kinds := outcomes(t, m, func(m *vfs.Mem) string {
		got := readFile(t, m, "f")
		switch tail := strings.TrimLeft(got, "o"); {
		case tail == "":
			return "lost"
		case tail == strings.Repeat("n", 2048):
			return "kept"
		case strings.Trim(tail, "n") == "":
			return "prefix"
		default:
			return "torn"
		}
	})
	wantOutcomes(t, kinds, "lost", "kept", "prefix", "torn")
}

func TestCrashClone_SeedDecides(t *testing.T) {
	m := vfs.NewMem()
	for i := range 20 {
		writeFile(t, m, fmt.Sprintf("f%02d", i), strings.Repeat("abcdefgh", 300))
	}
	show := func(seed uint64) string {
		clone := m.CrashClone(vfs.CrashConfig{Rand: rand.New(rand.NewPCG(seed, 3))})
		names := list(t, clone, "/")
		for _, n := range strings.Fields(names) {
			names += readFile(t, clone, n)
		}
		return names
	}
	for seed := range uint64(20) {
		if first, second := show(seed), show(seed); first != second {
			t.Fatalf("seed %d gave two clones", seed)
		}
	}
}

func TestCrashClone_HoldsNoLock(t *testing.T) {
	m := vfs.NewMem()
	lock, err := m.Lock(".lock")
	check(t, err)
	again, err := m.CrashClone(vfs.CrashConfig{ProcessOnly: true}).Lock(".lock")
	check(t, err)
	check(t, again.Close())
	check(t, lock.Close())
}

// A clone is one moment: when the second file shows a step, the first, which was synced before, shows it too. The length of a file is its step.
func TestCrashClone_WhileOthersWrite(t *testing.T) {
	m := vfs.NewMem()
	first, second := open(t, m, "first"), open(t, m, "second")
	check(t, m.SyncDir("/"))
	var writer sync.WaitGroup
	done := make(chan struct{})
	writer.Go(func() {
		defer close(done)
		for i := range int64(2000) {
			for _, f := range []vfs.File{first, second} {
				if _, err := f.WriteAt([]byte{'x'}, i); err != nil {
					t.Error(err)
				}
				if err := f.Sync(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for seed := uint64(0); ; seed++ {
		clone := m.CrashClone(vfs.CrashConfig{Rand: rand.New(rand.NewPCG(seed, 4))})
		if a, b := readFile(t, clone, "first"), readFile(t, clone, "second"); len(a) < len(b) {
			t.Fatalf("the second file has step %d, the first only %d", len(b), len(a))
		}
		select {
		case <-done:
			writer.Wait()
			return
		default:
		}
	}
}
