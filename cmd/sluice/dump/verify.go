package dump

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"sluice/storage/checkpoint"
	"sluice/storage/logdir"
	"sluice/storage/segment"
	"sluice/storage/vfs"
)

// VerifyOptions say what is told while a directory is verified.
type VerifyOptions struct {
	// Fault is told of each file with faults, in the order of the directory: its path within it and the places, of which more than a few
	// are only counted.
	Fault func(file string, places []string, more int)
	// Progress is told after each log. May be nil.
	Progress func(Progress)
	// MaxDecompressedBytes bounds what a batch may decompress to; 0 is the bound of a broker.
	MaxDecompressedBytes int
}

// Progress is how far a verification has come.
type Progress struct {
	LogsDone, Logs   int
	BytesDone, Bytes int64 // of log segments
}

// Verified is what a verification has found.
type Verified struct {
	Clean                 bool // the directory was left by a clean stop
	Logs                  int
	Bytes, Batches, Count int64 // of log segments; Count is of records
	Faults                int
}

// ErrInUse means that a broker has the directory open: what is in it changes while it is read.
var ErrInUse = errors.New("a running broker uses it: stop that one first")

// Verify checks all files of a log directory against their formats and each other: checksums and contents of batches, offsets, index entries,
// leader epochs, producer snapshots, checkpoints, the records of the cluster's metadata. Nothing is changed. The error is about the
// directory itself; a file that cannot be read is a fault.
//
// After a crash faults are to be expected past the last flush, which the next start repairs: Verified.Clean tells.
func Verify(fsys vfs.FS, dir string, o VerifyOptions) (found Verified, err error) {
	v := &verifier{fs: fsys, dir: dir, o: o, points: map[string]map[logdir.TopicPartition]int64{}}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return Verified{}, err
	}
	has := map[string]bool{}
	for _, e := range entries {
		has[e.Name()] = true
	}
	if has[".lock"] {
		lock, err := fsys.Lock(path.Join(dir, ".lock"))
		if errors.Is(err, vfs.ErrLocked) {
			return Verified{}, fmt.Errorf("%s cannot be verified: %w", dir, ErrInUse)
		}
		if err == nil { // not on a volume that is read only, where nobody writes either
			defer func() { err = errors.Join(err, lock.Close()) }()
		}
	}
	v.found.Clean = has[checkpoint.CleanShutdownFile]
	jobs := v.list(entries)
	if !has[checkpoint.MetaPropertiesFile] {
		if len(jobs) == 0 {
			return Verified{}, fmt.Errorf("%s is no log directory: it has neither %s nor folders of partitions", dir, checkpoint.MetaPropertiesFile)
		}
		v.fault(checkpoint.MetaPropertiesFile, "is missing")
	}
	for _, e := range entries {
		if f, known := formatOf(e.Name()); known && !e.IsDir() {
			v.file(e.Name(), f.print)
		}
	}
	for _, name := range offsetFiles {
		points, err := checkpoint.ReadOffsets(fsys, path.Join(dir, name))
		if corrupt := (*checkpoint.Corrupt)(nil); err != nil && !errors.As(err, &corrupt) { // what is corrupt was reported as a file
			v.fault(name, "cannot be read: %v", err)
		}
		v.points[name] = points
	}
	v.verifyLogs(jobs)
	v.checkpoints(jobs)
	return v.found, nil
}

var offsetFiles = []string{checkpoint.RecoveryPointFile, checkpoint.LogStartOffsetFile, checkpoint.HighWatermarkFile, checkpoint.CleanerOffsetFile}

// formatOf finds the format of a file by its name.
func formatOf(base string) (format, bool) {
	i := slices.IndexFunc(known, func(f format) bool { return f.match(base) })
	if i < 0 {
		return format{}, false
	}
	return known[i], true
}

var known = formats()

type verifier struct {
	fs     vfs.FS
	dir    string
	o      VerifyOptions
	points map[string]map[logdir.TopicPartition]int64 // by checkpoint file
	found  Verified
}

// job is one log to be verified, and then what was found.
type job struct {
	folder string
	tp     logdir.TopicPartition
	kind   logdir.Kind
	bytes  int64
	done   chan struct{}

	faults         []fileFaults
	batches, count int64
	end            int64 // the log end offset
	broken         bool  // the end is not known, as the log could not be read up to it
}

type fileFaults struct {
	file   string
	places []string
	more   int
}

// list finds the folders of partitions; those that wait for removal are left out.
func (v *verifier) list(entries []fs.DirEntry) []*job {
	var jobs []*job
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if tp, kind, err := logdir.ParseDirName(e.Name()); err == nil && kind != logdir.Deleted {
			jobs = append(jobs, &job{folder: e.Name(), tp: tp, kind: kind, done: make(chan struct{})})
		}
	}
	slices.SortFunc(jobs, func(a, b *job) int { return strings.Compare(a.folder, b.folder) })
	return jobs
}

// verifyLogs verifies several logs at a time and reports them in order.
func (v *verifier) verifyLogs(jobs []*job) {
	v.found.Logs = len(jobs)
	progress := Progress{Logs: len(jobs)}
	for _, j := range jobs {
		progress.Bytes += v.sizeOf(j)
	}
	next := make(chan *job)
	var wait sync.WaitGroup
	for range min(len(jobs), runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for j := range next {
				v.verifyLog(j)
				close(j.done)
			}
		})
	}
	wait.Go(func() {
		for _, j := range jobs {
			next <- j
		}
		close(next)
	})
	for _, j := range jobs {
		<-j.done
		for _, f := range j.faults {
			v.report(f)
		}
		v.found.Batches += j.batches
		v.found.Count += j.count
		v.found.Bytes += j.bytes
		progress.LogsDone++
		progress.BytesDone += j.bytes
		if v.o.Progress != nil {
			v.o.Progress(progress)
		}
	}
	wait.Wait()
}

// sizeOf adds up the log segments of a folder, for the progress.
func (v *verifier) sizeOf(j *job) int64 {
	entries, err := v.fs.ReadDir(path.Join(v.dir, j.folder))
	if err != nil {
		v.fault(j.folder, "cannot be read: %v", err)
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), segment.LogSuffix) {
			j.bytes += info.Size()
		}
	}
	return j.bytes
}

func (v *verifier) report(f fileFaults) {
	v.found.Faults += len(f.places) + f.more
	v.o.Fault(f.file, f.places, f.more)
}

func (v *verifier) fault(file, format string, args ...any) {
	v.report(fileFaults{file: file, places: []string{fmt.Sprintf(format, args...)}})
}

// printer makes a printer of a file that prints nothing and notes what is wrong.
func (v *verifier) printer(file string) *printer {
	return &printer{
		Writer: bufio.NewWriterSize(io.Discard, 16), fs: v.fs, path: path.Join(v.dir, file), base: path.Base(file),
		o: Options{Records: true, ShownBytes: 1, MaxDecompressedBytes: v.o.MaxDecompressedBytes},
	}
}

// file checks a file on its own.
func (v *verifier) file(name string, check func(*printer) error) {
	p := v.printer(name)
	if f, faulty := faultsOf(name, p, check(p)); faulty {
		v.report(f)
	}
}

// faultsOf collects what is wrong in the file of a printer, of which reading ended with err.
func faultsOf(name string, p *printer, err error) (fileFaults, bool) {
	err = p.done(err)
	var damaged *Damaged
	switch {
	case errors.As(err, &damaged):
		return fileFaults{name, append([]string{damaged.First}, damaged.more...), damaged.Places - 1 - len(damaged.more)}, true
	case err != nil:
		return fileFaults{name, []string{wholeFile + ": cannot be read: " + err.Error()}, 0}, true
	}
	return fileFaults{}, false
}

// checkpoints compares the offsets of the checkpoint files with the logs. Entries of partitions that are not there mean nothing.
func (v *verifier) checkpoints(jobs []*job) {
	logs := map[logdir.TopicPartition]*job{}
	for _, j := range jobs {
		if j.kind == logdir.Current {
			logs[j.tp] = j
		}
	}
	for _, name := range offsetFiles {
		// What was flushed is in the log after a crash, too. The others may be ahead of what survived.
		flushed := name == checkpoint.RecoveryPointFile || name == checkpoint.LogStartOffsetFile
		var places []string
		for _, tp := range slices.SortedFunc(maps.Keys(v.points[name]), checkpoint.TopicPartition.Compare) {
			j := logs[tp]
			at := v.points[name][tp]
			switch {
			case j == nil || j.broken:
			case at > j.end && (flushed || v.found.Clean):
				places = append(places, fmt.Sprintf("partition %s: offset %d is beyond the log end offset %d", tp, at, j.end))
			case at < j.end && v.found.Clean && name == checkpoint.RecoveryPointFile:
				places = append(places, fmt.Sprintf("partition %s: offset %d, but a clean stop flushes up to the log end offset %d", tp, at, j.end))
			}
		}
		if len(places) > 0 {
			shown := min(len(places), mostPlaces)
			v.report(fileFaults{name, places[:shown], len(places) - shown})
		}
	}
}
