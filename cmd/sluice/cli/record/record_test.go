package record

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/cmd/sluice/cli/connect"
)

// TestLatencies holds percentiles against a sorted list.
func TestLatencies(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var l latencies
	var all []float64
	for range 10_000 {
		d := time.Duration(random.ExpFloat64() * float64(3*time.Millisecond))
		l.add(d)
		all = append(all, milliseconds(d))
	}
	slices.Sort(all)
	for _, part := range []float64{0, 0.01, 0.5, 0.95, 0.99, 0.999} {
		exact, got := all[int(part*float64(len(all)))], l.percentile(part)
		if got < exact || got > exact*1.0625+0.001 {
			t.Errorf("p%g is %g, exactly %g", part*100, got, exact)
		}
	}
	if got := l.percentile(1); got != all[len(all)-1] {
		t.Errorf("the highest is %g, want %g", got, all[len(all)-1])
	}
}

// TestLatencyBuckets checks that buckets follow each other without a gap.
func TestLatencyBuckets(t *testing.T) {
	for bucket := range latencyBuckets - 64 {
		if got := latencyBucket(latencyBound(bucket)); got != bucket {
			t.Fatalf("the bound of bucket %d is in bucket %d", bucket, got)
		}
		if got := latencyBucket(latencyBound(bucket) + 1); got != bucket+1 {
			t.Fatalf("one more than the bound of bucket %d is in bucket %d", bucket, got)
		}
	}
}

// TestStall waits only while something is on its way, and from the last answer on.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		happened := 0
		s := newStall(time.Minute, func() { happened++ })
		time.Sleep(time.Hour)
		s.sent()
		s.sent()
		time.Sleep(59 * time.Second)
		s.answered()
		time.Sleep(59 * time.Second)
		s.answered()
		time.Sleep(time.Hour)
		if synctest.Wait(); happened != 0 {
			t.Fatal("a stall, but everything was answered in time")
		}
		s.sent()
		time.Sleep(61 * time.Second)
		if synctest.Wait(); happened != 1 {
			t.Fatalf("%d stalls, want 1", happened)
		}
	})
}

// TestRemaining follows a consumer with --until-end, alone and in a group.
func TestRemaining(t *testing.T) {
	ranges := map[string]map[int32]connect.Range{"t": {0: {Start: 0, End: 3}, 1: {Start: 5, End: 5}}}
	read := func(r *remaining, partition int32, offset int64) bool {
		return r.read(&kgo.Record{Topic: "t", Partition: partition, Offset: offset})
	}
	t.Run("alone", func(t *testing.T) {
		r := &remaining{}
		r.start(ranges, map[string]map[int32]int64{"t": {0: 1, 1: 5}}, true, false)
		if r.done() || !read(r, 0, 1) || r.done() || !read(r, 0, 2) || !r.done() {
			t.Error("not done after the last record before the end, or before")
		}
		if read(r, 0, 3) || read(r, 1, 5) {
			t.Error("a record after the end was wanted")
		}
	})
	t.Run("following", func(t *testing.T) {
		r := &remaining{}
		r.start(ranges, map[string]map[int32]int64{"t": {0: 3, 1: 5}}, false, false)
		if !read(r, 0, 3) || r.done() {
			t.Error("a consumer without --until-end ended, or did not want a record")
		}
	})
	t.Run("group", func(t *testing.T) {
		r := &remaining{}
		r.start(ranges, map[string]map[int32]int64{"t": {0: 3, 1: 5}}, true, true)
		if r.done() {
			t.Error("done before the group has assigned anything")
		}
		r.assigned(t.Context(), nil, map[string][]int32{"t": {0, 1}})
		if r.done() {
			t.Error("done before it is known what the group has committed")
		}
		if _, err := r.starting(t.Context(), map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(2)}}); err != nil || r.done() {
			t.Error("done with a record that is not committed")
		}
		r.revoked(t.Context(), nil, map[string][]int32{"t": {0}})
		if !r.done() {
			t.Error("not done without the partition that has something left")
		}
		r.assigned(t.Context(), nil, nil)
		if !r.done() {
			t.Error("not done when nothing is assigned")
		}
	})
}

// FuzzJSON reads any line, and reads again what it writes.
func FuzzJSON(f *testing.F) {
	for _, line := range []string{
		`{"value":"v"}`, `{"key":"k","value":null}`, `{"keyBase64":"/wA=","value":""}`, `{"partition":3,"timestamp":"2026-01-31T15:04:05.123Z","value":"v"}`,
		`{"headers":[{"key":"h","value":"v"},{"key":"n","value":null},{"key":"b","valueBase64":"/w=="}],"value":"v"}`, `{"key":"k","keyBase64":"aw=="}`, `{"value":1}`, `{} {}`, `{"vlaue":""}`,
	} {
		f.Add(line)
	}
	in := inputOptions{json: true, keepPartition: true}
	f.Fuzz(func(t *testing.T, line string) {
		record, err := in.parse([]byte(line))
		if err != nil {
			return
		}
		if record.Timestamp.IsZero() {
			record.Timestamp = time.UnixMilli(0)
		}
		record.Timestamp = record.Timestamp.UTC().Truncate(time.Millisecond)
		if year := record.Timestamp.Year(); record.Partition < 0 || year < 0 || year > 9999 {
			return // not what a broker gives
		}
		written, err := appendJSON(nil, record)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(written, []byte{'\n'}) != 1 {
			t.Fatalf("%q is not one line", written)
		}
		again, err := in.parse(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if diff := cmp.Diff(record, again, cmpopts.IgnoreUnexported(kgo.Record{}), cmpopts.IgnoreFields(kgo.Record{}, "Attrs")); diff != "" {
			t.Fatalf("%s\n%s", written, diff)
		}
	})
}

// TestInput_Limits refuses a line that is too long, and does not take it for the end.
func TestInput_Limits(t *testing.T) {
	next, err := inputOptions{}.open(io.MultiReader(strings.NewReader("short\n"), io.LimitReader(endless{}, lineBytesMax+1)))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := next(); err != nil || string(r.Value) != "short" {
		t.Fatalf("%v, %v", r, err)
	}
	if _, err := next(); err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "line 2 is longer") {
		t.Fatalf("%v, want that line 2 is too long", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
