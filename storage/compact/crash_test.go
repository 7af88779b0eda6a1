package compact

import (
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"sluice/storage/partlog"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

// crashed opens what a crash left of a log, as a broker does that had checkpointed the recovery point and nothing of the compaction under way.
func (w *world) crashed(mem *vfs.Mem, recoveryPoint int64) *world {
	w.t.Helper()
	c := *w
	c.fs = mem
	c.reopen(partlog.Options{RecoveryPoint: recoveryPoint})
	return &c
}

// checkCrashed checks a log that was opened after a crash, compacts it to the end and checks it again.
func (w *world) checkCrashed(end int64) {
	w.t.Helper()
	defer w.log.Discard()
	if got := w.log.LogEndOffset(); got != end {
		w.t.Fatalf("log end offset %d, want %d", got, end)
	}
	if start := w.log.LogStartOffset(); start != 0 {
		w.t.Fatalf("the log starts at %d", start)
	}
	w.check(w.log, w.cleanedTo)
	w.clean()
	w.check(w.log, w.cleanedTo)
	entries, err := w.fs.ReadDir(partition)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".swap") || strings.HasSuffix(e.Name(), ".cleaned") {
			w.t.Fatalf("%s is left", e.Name())
		}
	}
}

// TestClean_CrashAnywhere_LosesNothing: after every operation on the disk, by the power switch and by kill -9; a crash during the recovery too.
func TestClean_CrashAnywhere_LosesNothing(t *testing.T) {
	crashes := 0
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 2))
		mem := vfs.NewMem()
		faults := errorfs.Wrap(mem, nil)
		w := newWorld(t, faults)
		w.config.SegmentBytes = 800 + r.IntN(3000)
		w.config.FileDeleteDelayMs = int64(r.IntN(2)) * 1000
		for range 3 {
			w.chaos(r, 25)
			w.roll()
			if err := w.log.Flush(); err != nil {
				t.Fatal(err)
			}
			recoveryPoint, end := w.log.RecoveryPoint(), w.log.LogEndOffset()
			var clones []*vfs.Mem
			faults.SetInject(func(op errorfs.Op, _ string, _ int) error {
				if op.Mutates() && r.IntN(2) == 0 {
					clones = append(clones, mem.CrashClone(vfs.CrashConfig{Rand: r, ProcessOnly: r.IntN(3) == 0}))
				}
				return nil
			})
			before := w.cleanedTo
			w.clean()
			faults.SetInject(nil)
			clones = append(clones, mem.CrashClone(vfs.CrashConfig{Rand: r}))
			after := w.cleanedTo
			w.cleanedTo = before
			for _, clone := range clones {
				crashes++
				if r.IntN(4) == 0 {
					w.crashAgain(clone, recoveryPoint, end, r)
				}
				w.crashed(clone, recoveryPoint).checkCrashed(end)
			}
			w.cleanedTo = after
		}
	}
	t.Logf("%d crashes", crashes)
}

// crashAgain crashes while the log is opened after a crash.
func (w *world) crashAgain(mem *vfs.Mem, recoveryPoint, end int64, r *rand.Rand) {
	w.t.Helper()
	first := mem.CrashClone(vfs.CrashConfig{ProcessOnly: true}) // the same once more
	var clones []*vfs.Mem
	c := *w
	c.fs = errorfs.Wrap(first, func(op errorfs.Op, _ string, _ int) error {
		if op.Mutates() {
			clones = append(clones, first.CrashClone(vfs.CrashConfig{Rand: r}))
		}
		return nil
	})
	c.reopen(partlog.Options{RecoveryPoint: recoveryPoint})
	c.log.Discard()
	for _, clone := range clones {
		w.crashed(clone, recoveryPoint).checkCrashed(end)
	}
}

// TestClean_NthOperationFails_LosesNothing: with EIO and ENOSPC. Reading goes on unless it happened while files were put in place, and all is
// there after a restart.
func TestClean_NthOperationFails_LosesNothing(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
		for n := 1; ; n++ {
			mem := vfs.NewMem()
			faults := errorfs.Wrap(mem, nil)
			w := newWorld(t, faults)
			w.config.SegmentBytes = 1500
			w.chaos(rand.New(rand.NewPCG(3, 4)), 60)
			w.roll()
			if err := w.log.Flush(); err != nil {
				t.Fatal(err)
			}
			recoveryPoint, end := w.log.RecoveryPoint(), w.log.LogEndOffset()
			start := faults.Count()
			faults.SetInject(errorfs.FailNth(start+n, cause))
			_, _, err := (&Cleaner{Pace: unpaced, BufferBytes: 500}).Clean(w.task(w.candidate()))
			done := faults.Count() < start+n
			faults.SetInject(nil)
			var fault *partlog.Fault
			if err != nil && (!errors.As(err, &fault) || !errors.Is(err, cause)) {
				t.Fatalf("operation %d: %v", n, err)
			}
			if w.log.Flush() == nil { // else the files have been given up in part, and the directory goes offline
				w.check(w.log, 0)
			}
			w.log.Discard()
			w.crashed(mem.CrashClone(vfs.CrashConfig{ProcessOnly: true}), recoveryPoint).checkCrashed(end)
			if done {
				t.Logf("%v: %d operations", cause, n-1)
				break
			}
		}
	}
}
