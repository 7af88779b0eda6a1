// Package record has the commands that carry records: produce, consume, and perf, which measures both.
package record

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// jsonRecord is a record as a line of JSON, as consume writes and produce reads it. Bytes that are not UTF-8 stand in the field with Base64 in
// its name; encoding/json writes and reads []byte that way. A null key or value is null, or left out.
type jsonRecord struct {
	Topic         string       `json:"topic,omitempty"`
	Partition     *int32       `json:"partition,omitempty"`
	Offset        *int64       `json:"offset,omitempty"`
	Timestamp     string       `json:"timestamp,omitempty"` // RFC 3339
	TimestampType string       `json:"timestampType,omitempty"`
	Key           *string      `json:"key,omitempty"`
	KeyBase64     []byte       `json:"keyBase64,omitempty"`
	Value         *string      `json:"value"`
	ValueBase64   []byte       `json:"valueBase64,omitempty"`
	Headers       []jsonHeader `json:"headers,omitempty"`
}

type jsonHeader struct {
	Key         string  `json:"key"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"valueBase64,omitempty"`
}

// appendJSON adds a record as one line.
func appendJSON(to []byte, r *kgo.Record) ([]byte, error) {
	j := jsonRecord{Topic: r.Topic, Partition: &r.Partition, Offset: &r.Offset, Timestamp: r.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z07:00")}
	j.TimestampType = map[int8]string{0: "CreateTime", 1: "LogAppendTime"}[r.Attrs.TimestampType()]
	j.Key, j.KeyBase64 = textOrBytes(r.Key)
	j.Value, j.ValueBase64 = textOrBytes(r.Value)
	for _, h := range r.Headers {
		header := jsonHeader{Key: h.Key}
		header.Value, header.ValueBase64 = textOrBytes(h.Value)
		j.Headers = append(j.Headers, header)
	}
	line, err := json.Marshal(&j)
	if err != nil {
		return to, err
	}
	return append(append(to, line...), '\n'), nil
}

func textOrBytes(b []byte) (*string, []byte) {
	switch {
	case b == nil:
		return nil, nil
	case utf8.Valid(b):
		s := string(b)
		return &s, nil
	}
	return nil, b
}

func bytesOf(what string, text *string, b []byte) ([]byte, error) {
	switch {
	case text != nil && b != nil:
		return nil, fmt.Errorf("both %s and %sBase64 are given", what, what)
	case text != nil:
		return []byte(*text), nil
	}
	return b, nil
}

// record is what a line of JSON says. Topic and offset are left out: they are where the record came from.
func (j *jsonRecord) record(keepPartition bool) (*kgo.Record, error) {
	r := &kgo.Record{Partition: -1}
	var err error
	if r.Key, err = bytesOf("key", j.Key, j.KeyBase64); err != nil {
		return nil, err
	}
	if r.Value, err = bytesOf("value", j.Value, j.ValueBase64); err != nil {
		return nil, err
	}
	for _, h := range j.Headers {
		value, err := bytesOf("value", h.Value, h.ValueBase64)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", h.Key, err)
		}
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: value})
	}
	if j.Timestamp != "" {
		if r.Timestamp, err = time.Parse(time.RFC3339Nano, j.Timestamp); err != nil {
			return nil, fmt.Errorf("timestamp %q: want RFC 3339, as 2026-01-31T15:04:05Z", j.Timestamp)
		}
	}
	if keepPartition && j.Partition != nil {
		if *j.Partition < 0 {
			return nil, fmt.Errorf("partition %d: want 0 or more", *j.Partition)
		}
		r.Partition = *j.Partition
	}
	return r, nil
}
