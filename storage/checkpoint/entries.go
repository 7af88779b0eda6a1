package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"sluice/storage/vfs"
)

// entriesVersion is the first line of a file of entries; the only one there has been.
const entriesVersion = 0

// AppendEntries appends a file of count entries to dst: the version, the count, and a line for each entry, written by appendEntry without
// its line end.
func AppendEntries(dst []byte, count int, appendEntry func(dst []byte, i int) []byte) []byte {
	dst = strconv.AppendInt(dst, entriesVersion, 10)
	dst = append(dst, '\n')
	dst = strconv.AppendInt(dst, int64(count), 10)
	dst = append(dst, '\n')
	for i := range count {
		dst = append(appendEntry(dst, i), '\n')
	}
	return dst
}

// ParseEntries reads what AppendEntries wrote and calls entry for each line; name is for errors. An entry that is refused is a *Corrupt
// error with the reason of the refusal. A file without any byte has no entries: Kafka creates it so.
func ParseEntries(name string, content []byte, entry func(line string) error) error {
	lines := lineReader{rest: string(content)}
	version, ok := lines.next()
	if !ok {
		return nil
	}
	corrupt := func(format string, args ...any) error {
		return &Corrupt{Path: name, Line: lines.number, Reason: fmt.Sprintf(format, args...)}
	}
	if v, err := strconv.ParseInt(version, 10, 32); err != nil {
		return corrupt("version %s is not a number", quote(version))
	} else if v != entriesVersion {
		return corrupt("version %d is unknown, expected %d", v, entriesVersion)
	}
	countLine, ok := lines.next()
	if !ok {
		return nil // as Kafka reads it
	}
	count, err := strconv.ParseInt(countLine, 10, 32)
	if err != nil || count < 0 {
		return corrupt("count of entries %s is not a number of at least 0", quote(countLine))
	}
	found := int64(0)
	for line, ok := lines.next(); ok; line, ok = lines.next() {
		if found++; found > count {
			return corrupt("more than the %d entries that line 2 says", count)
		}
		if err := entry(line); err != nil {
			return corrupt("%s", err)
		}
	}
	if found < count {
		return corrupt("the file ends after %d of %d entries", found, count)
	}
	return nil
}

// WriteEntries replaces a file of entries atomically.
func WriteEntries(fsys vfs.FS, name string, count int, appendEntry func(dst []byte, i int) []byte) error {
	return WriteFile(fsys, name, AppendEntries(nil, count, appendEntry))
}

// ReadEntries reads a file of entries. A file that does not exist has none.
func ReadEntries(fsys vfs.FS, name string, entry func(line string) error) error {
	content, err := ReadFile(fsys, name, MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return ParseEntries(name, content, entry)
}

// lineReader cuts text into lines; the last one need not be ended.
type lineReader struct {
	rest   string
	number int // of the line that was returned last, from 1
}

func (r *lineReader) next() (string, bool) {
	if r.rest == "" {
		return "", false
	}
	line, rest, _ := strings.Cut(r.rest, "\n")
	r.rest = rest
	r.number++
	return strings.TrimSuffix(line, "\r"), true
}

// quote shows a piece of a file, which may be any bytes of any length, in an error.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// Fields cuts a line into exactly count fields at white space; the error is meant for an entry function.
func Fields(line string, count int) ([]string, error) {
	fields := strings.Fields(line)
	if len(fields) != count {
		return nil, fmt.Errorf("%s has %d fields, expected %d", quote(line), len(fields), count)
	}
	return fields, nil
}

// Int reads a decimal field of at least 0 that fits into the given number of bits; what names it in the error.
func Int(what, field string, bits int) (int64, error) {
	n, err := strconv.ParseInt(field, 10, bits)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s %s is not a number of at least 0 in %d bits", what, quote(field), bits)
	}
	return n, nil
}
