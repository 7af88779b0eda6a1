package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/cmd/sluice/cli/exit"
)

// lineBytesMax bounds one record of the input, in bytes.
const lineBytesMax = 64 << 20

// source reads records one after the other; io.EOF ends it.
type source func() (*kgo.Record, error)

// inputOptions say how the input of produce becomes records.
type inputOptions struct {
	json          bool
	keepPartition bool
	layout        string // of kgo.NewRecordReader; empty for lines
	separator     string // between key and value of a line; empty: lines are values
	tombstones    bool   // an empty value is null
}

func (o inputOptions) check() error {
	if o.json && (o.layout != "" || o.separator != "") {
		return exit.Usagef("--input json says all about a record: leave --format and --key-separator away")
	}
	if o.layout != "" && o.separator != "" {
		return exit.Usagef("--format says where the key is: leave --key-separator away")
	}
	if o.keepPartition && !o.json {
		return exit.Usagef("--keep-partition needs --input json")
	}
	return nil
}

// open starts to read.
func (o inputOptions) open(r io.Reader) (source, error) {
	if o.layout != "" {
		reader, err := kgo.NewRecordReader(r, o.layout)
		if err != nil {
			return nil, exit.Usagef("--format: %w", err)
		}
		return func() (*kgo.Record, error) {
			record := &kgo.Record{Partition: -1}
			if err := reader.ReadRecordInto(record); err != nil {
				return nil, err
			}
			record.Topic = "" // the command names the topic
			return o.finish(record), nil
		}, nil
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), lineBytesMax)
	number := 0
	return func() (*kgo.Record, error) {
		for lines.Scan() {
			number++
			line := lines.Bytes()
			if o.json && len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			record, err := o.parse(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			return o.finish(record), nil
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			return nil, fmt.Errorf("line %d is longer than %d bytes", number+1, lineBytesMax)
		} else if err != nil {
			return nil, fmt.Errorf("cannot read the input: %w", err)
		}
		return nil, io.EOF
	}, nil
}

func (o inputOptions) parse(line []byte) (*kgo.Record, error) {
	if o.json {
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields() // a misspelt field would be a record without its key
		var j jsonRecord
		if err := d.Decode(&j); err != nil {
			return nil, fmt.Errorf("not a record in JSON: %w", err)
		}
		if d.More() {
			return nil, errors.New("not a record in JSON: something follows the object")
		}
		return j.record(o.keepPartition)
	}
	record := &kgo.Record{Partition: -1}
	value := line
	if o.separator != "" {
		key, rest, found := bytes.Cut(line, []byte(o.separator))
		if !found {
			return nil, fmt.Errorf("no key: there is no %q in it", o.separator)
		}
		record.Key, value = bytes.Clone(key), rest
		if record.Key == nil {
			record.Key = []byte{}
		}
	}
	if record.Value = bytes.Clone(value); record.Value == nil {
		record.Value = []byte{}
	}
	return record, nil
}

func (o inputOptions) finish(r *kgo.Record) *kgo.Record {
	if o.tombstones && len(r.Value) == 0 {
		r.Value = nil
	}
	return r
}
