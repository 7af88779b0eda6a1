// Package dump prints the files of a data directory for people: log segments and their indexes, snapshots, checkpoints. They are the same
// files whether Sluice or Apache Kafka wrote them.
//
// Output is one line for each batch, record, index entry or property, as "kind name=value …", for grep as much as for eyes. Bytes that are
// wrong are said where they stand, after whatever could be read before them.
package dump

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"sluice/protocol/record"
	"sluice/storage/checkpoint"
	"sluice/storage/logdir"
	"sluice/storage/segment"
	"sluice/storage/vfs"
)

// Options say how much is printed.
type Options struct {
	// Records prints the records in each batch too.
	Records bool
	// Topic is whose records a log holds, which decides how they are decoded; empty takes it from the folder's name.
	Topic string
	// ShownBytes is the most that is printed of a key, a value or a header; 0 is all.
	ShownBytes int
	// MaxDecompressedBytes bounds what a batch may decompress to; 0 is the bound of a broker.
	MaxDecompressedBytes int
}

// Damaged is the error for a file with wrong bytes in it.
type Damaged struct {
	Path   string
	Places int    // number of places
	First  string // where the first one is, and what is wrong there
	more   []string
}

// mostPlaces is how many places of one file are told one by one.
const mostPlaces = 20

func (e *Damaged) Error() string {
	if e.Places == 1 {
		return fmt.Sprintf("%s is damaged at %s", e.Path, e.First)
	}
	return fmt.Sprintf("%s is damaged at %d places, the first at %s", e.Path, e.Places, e.First)
}

// format is one kind of file.
type format struct {
	name  string // as people are told it
	match func(base string) bool
	print func(p *printer) error
}

func suffix(s string) func(string) bool {
	return func(base string) bool { return strings.HasSuffix(base, s) }
}

func exactly(names ...string) func(string) bool {
	return func(base string) bool {
		for _, n := range names {
			if base == n {
				return true
			}
		}
		return false
	}
}

// formats lists the files that are known; the first match counts.
func formats() []format {
	return []format{
		{"*" + segment.LogSuffix, suffix(segment.LogSuffix), (*printer).log},
		{"*" + segment.OffsetSuffix, suffix(segment.OffsetSuffix), (*printer).offsetIndex},
		{"*" + segment.TimeSuffix, suffix(segment.TimeSuffix), (*printer).timeIndex},
		{"*" + segment.TxnSuffix, suffix(segment.TxnSuffix), (*printer).txnIndex},
		{"*" + segment.SnapshotSuffix, suffix(segment.SnapshotSuffix), (*printer).producers},
		{"*.checkpoint", suffix(".checkpoint"), (*printer).metadataSnapshot},
		{"leader-epoch-checkpoint", exactly("leader-epoch-checkpoint"), (*printer).leaderEpochs},
		{"*-offset-checkpoint", exactly(checkpoint.RecoveryPointFile, checkpoint.LogStartOffsetFile, checkpoint.HighWatermarkFile, checkpoint.CleanerOffsetFile), (*printer).offsets},
		{checkpoint.PartitionMetadataFile, exactly(checkpoint.PartitionMetadataFile), (*printer).partitionMetadata},
		{checkpoint.MetaPropertiesFile, exactly(checkpoint.MetaPropertiesFile), (*printer).metaProperties},
		{checkpoint.CleanShutdownFile, exactly(checkpoint.CleanShutdownFile), (*printer).cleanShutdown},
		{"quorum-state", exactly("quorum-state"), (*printer).quorumState},
	}
}

// Names lists the files that can be printed, as patterns.
func Names() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// File prints the file at name, a slash path. The error is a *Damaged if bytes in it are wrong.
func File(out io.Writer, fsys vfs.FS, name string, o Options) error {
	info, err := fsys.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a directory: name a file in it", name)
	}
	base := path.Base(name)
	for _, s := range []string{segment.DeletedSuffix, segment.CleanedSuffix, segment.SwapSuffix, ".tmp", ".part"} {
		base = strings.TrimSuffix(base, s)
	}
	base = strings.TrimRight(base, "0123456789.") // the number that compaction gives to a file that it has replaced
	for _, f := range formats() {
		if !f.match(base) {
			continue
		}
		w := bufio.NewWriter(out)
		p := &printer{Writer: w, fs: fsys, path: name, base: base, o: o}
		err := p.done(f.print(p))
		return errors.Join(w.Flush(), err)
	}
	return fmt.Errorf("%s is none of the files that can be printed, by its name: %s", name, strings.Join(Names(), ", "))
}

// printer prints one file.
type printer struct {
	*bufio.Writer // keeps the first error, which Flush returns
	fs            vfs.FS
	path, base    string
	o             Options
	damaged       Damaged
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p.Writer, format+"\n", args...) }

// done is the error of the file, of which printing or checking ended with err.
func (p *printer) done(err error) error {
	if corrupt := (*checkpoint.Corrupt)(nil); errors.As(err, &corrupt) {
		place := wholeFile
		if corrupt.Line > 0 {
			place = fmt.Sprintf("line %d", corrupt.Line)
		}
		p.damage(place, "%s", corrupt.Reason)
		err = nil
	}
	if err == nil && p.damaged.Places > 0 {
		p.damaged.Path = p.path
		err = &p.damaged
	}
	return err
}

// wholeFile is the place of what is wrong with no byte in particular.
const wholeFile = "the file as a whole"

// damage notes wrong bytes and goes on.
func (p *printer) damage(place, format string, args ...any) {
	text := place + ": " + fmt.Sprintf(format, args...)
	p.printf("damaged at %s", text)
	switch p.damaged.Places++; {
	case p.damaged.Places == 1:
		p.damaged.First = text
	case p.damaged.Places <= mostPlaces:
		p.damaged.more = append(p.damaged.more, text)
	}
}

func (p *printer) damageAt(position int64, format string, args ...any) {
	p.damage(fmt.Sprintf("byte %d", position), format, args...)
}

// content reads a whole file of the kind that is small, or an index.
func (p *printer) content() ([]byte, error) { return checkpoint.ReadFile(p.fs, p.path, math.MaxInt32) }

// baseOffset is the offset in the file's name; ok is false if there is none, as when a file was given another name.
func (p *printer) baseOffset() (offset int64, ok bool) {
	offset, _, ok = segment.ParseFileName(p.base)
	return offset, ok
}

// topic is whose records are in the file.
func (p *printer) topic() string {
	if p.o.Topic != "" {
		return p.o.Topic
	}
	tp, _, err := logdir.ParseDirName(path.Base(path.Dir(p.path)))
	if err != nil {
		return ""
	}
	return tp.Topic
}

func (p *printer) maxDecompressedBytes() int {
	if p.o.MaxDecompressedBytes > 0 {
		return p.o.MaxDecompressedBytes
	}
	return record.DefaultMaxDecompressedBytes
}
