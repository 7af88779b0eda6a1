package producer

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sluice/protocol/record"
	"sluice/storage/vfs"
)

// TestTable_Scripts runs testdata/*.txt. A batch is given as
//
//	batch producer=1 epoch=0 sequence=0 count=2 [txn] [origin=client|coordinator|replication] [unverified | verified=5 (as of that offset)] [v2]
//	marker producer=1 epoch=0 coordinator=3 [abort] [version=2]
//
// and gets the next offset. Other commands: stable hw=5, producers, expire now=…, snapshot (save and load).
func TestTable_Scripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var table Table
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			for line := range strings.Lines(d.Input) {
				fmt.Fprintln(&out, step(t, &table, strings.Fields(line)))
			}
			return out.String()
		})
	})
}

func step(t *testing.T, table *Table, fields []string) string {
	args := map[string]int64{}
	words := map[string]string{}
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		words[name] = value
		var n int64
		if _, err := fmt.Sscan(value, &n); err == nil {
			args[name] = n
		}
	}
	_, txn := words["txn"]
	o := record.BuilderOptions{ProducerID: record.ProducerID(args["producer"]), ProducerEpoch: record.ProducerEpoch(args["epoch"]), BaseOffset: table.EndOffset(), Transactional: txn}
	origin := map[string]record.Origin{"": record.Client, "client": record.Client, "coordinator": record.Coordinator, "replication": record.Replication}[words["origin"]]
	switch fields[0] {
	case "batch":
		o.BaseSequence = int32(args["sequence"])
		b := record.NewBuilder(o)
		for range max(args["count"], 1) {
			b.Add(record.Record{TimestampMs: args["time"]})
		}
		v := record.Verification{AsOf: record.NoOffset}
		if asOf, verified := args["verified"]; verified {
			v.Required, v.AsOf = true, asOf
		}
		if _, unverified := words["unverified"]; unverified {
			v.Required = true
		}
		_, v.V2 = words["v2"]
		return apply(t, table, b, origin, 0, v)
	case "marker":
		_, abort := words["abort"]
		o.BaseSequence, o.Control, o.Transactional = record.NoSequence, true, true
		m := record.EndTxnMarker{Commit: !abort, CoordinatorEpoch: int32(args["coordinator"])}
		if origin == record.Client {
			origin = record.Coordinator
		}
		return apply(t, table, record.NewBuilder(o).Add(record.ControlRecord(m, args["time"])), origin, int16(args["version"]), record.Verification{})
	case "stable":
		return fmt.Sprint(table.LastStableOffset(args["hw"]))
	case "producers":
		var lines []string
		for _, s := range table.Active() {
			lines = append(lines, fmt.Sprintf("producer %d epoch %d last sequence %d time %d coordinator %d open %d",
				s.ProducerID, s.ProducerEpoch, s.LastSequence, s.LastTimestampMs, s.CoordinatorEpoch, s.CurrentTxnFirstOffset))
		}
		return strings.Join(lines, "\n")
	case "expire":
		table.Expire(args["now"], args["after"])
		return fmt.Sprint(table.Len(), " left")
	case "snapshot":
		if err := table.Load(table.Append(nil), table.EndOffset(), 0, math.MaxInt64); err != nil {
			return err.Error()
		}
		return "reloaded"
	}
	return "unknown step " + fields[0]
}

func apply(t *testing.T, table *Table, builder *record.Builder, origin record.Origin, version int16, v record.Verification) string {
	b, err := builder.Build()
	if err != nil {
		t.Fatal(err)
	}
	u, d, duplicate, err := table.Prepare(b, origin, version)
	if b.IsTransactional() && !b.IsControl() && !duplicate {
		if unverified := table.CheckVerified(b, origin, v); unverified != nil {
			err = unverified
		}
	}
	if err != nil {
		return fmt.Sprintf("%T: %v", err, err)
	}
	if duplicate {
		return fmt.Sprintf("duplicate of %d to %d", d.FirstOffset, d.LastOffset)
	}
	c, ended := table.Apply(u)
	table.SetEndOffset(b.NextOffset())
	if ended {
		return fmt.Sprintf("at %d: ends %+v", b.BaseOffset(), c)
	}
	return fmt.Sprintf("at %d", b.BaseOffset())
}

// TestWindow_FirstSequence goes back over 0.
func TestWindow_FirstSequence(t *testing.T) {
	for _, test := range []struct {
		last, delta, want int32
	}{{0, 0, 0}, {5, 2, 3}, {0, 1, math.MaxInt32}, {1, 3, math.MaxInt32 - 1}, {math.MaxInt32, 0, math.MaxInt32}} {
		if got := (appended{lastSeq: test.last, offsetDelta: test.delta}).firstSeq(); got != test.want {
			t.Errorf("last %d, delta %d: first %d, want %d", test.last, test.delta, got, test.want)
		}
		if back := record.AdvanceSequence(test.want, test.delta); back != test.last {
			t.Errorf("%d and %d on is %d, want %d", test.want, test.delta, back, test.last)
		}
	}
}

// TestTable_Prepare_MarkerThatIsNone: control batches of producers that make no sense are errors from any origin.
func TestTable_Prepare_MarkerThatIsNone(t *testing.T) {
	o := record.BuilderOptions{ProducerID: 1, BaseSequence: record.NoSequence, Control: true, Transactional: true}
	b, err := record.NewBuilder(o).Add(record.ControlRecord(record.LeaderChange{}, 1)).Build()
	if err != nil {
		t.Fatal(err)
	}
	var table Table
	for _, origin := range []record.Origin{record.Coordinator, record.Replication} {
		if _, _, _, err := table.Prepare(b, origin, 0); !errors.Is(err, errNotMarker) {
			t.Errorf("origin %d: %v", origin, err)
		}
	}
}

// TestSnapshots_Files: the newest good one is loaded, bad ones go, and an order of any kind is put right.
func TestSnapshots_Files(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("/t", 0o755); err != nil {
		t.Fatal(err)
	}
	var table Table
	s := NewSnapshots(fs, "/t", nil)
	for i := range int32(3) {
		o := record.BuilderOptions{ProducerID: 1, BaseSequence: i, BaseOffset: int64(i)}
		b, err := record.NewBuilder(o).Add(record.Record{TimestampMs: 1}).Build()
		if err != nil {
			t.Fatal(err)
		}
		u, _, _, err := table.Prepare(b, record.Client, 0)
		if err != nil {
			t.Fatal(err)
		}
		table.Apply(u)
		table.SetEndOffset(b.NextOffset())
		for range 2 { // the second time it is there
			if err := s.Take(&table); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(s.Offsets(), []int64{1, 2, 3}) {
		t.Fatal(s.Offsets())
	}
	if err := s.Sync(append(s.Unsynced(), 77)); err != nil || len(s.Unsynced()) > 0 {
		t.Fatal(err)
	}
	f, err := fs.OpenFile("/t/00000000000000000003.snapshot", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0xff}, 20); err != nil {
		t.Fatal(err)
	}
	s = NewSnapshots(fs, "/t", []int64{3, 1, 2})
	for _, test := range []struct {
		offset, want int64
		sequence     int32
		ok           bool
	}{{9, 2, 1, true}, {1, 1, 0, true}, {0, 0, 0, false}} {
		ok, err := s.LoadLatest(&table, test.offset, 1, 100)
		if err != nil || ok != test.ok || table.EndOffset() != test.want || ok && table.Active()[0].LastSequence != test.sequence {
			t.Errorf("up to %d: %v %v, at %d, %+v", test.offset, ok, err, table.EndOffset(), table.Active())
		}
	}
	if !slices.Equal(s.Offsets(), []int64{1, 2}) {
		t.Error(s.Offsets())
	}
	if ok, err := s.LoadLatest(&table, 9, 200, 100); !ok || err != nil || table.Len() != 0 {
		t.Errorf("expired producers: %v %v, %d", ok, err, table.Len())
	}
	name, err := s.MarkDeleted(2)
	if err != nil || name != "/t/00000000000000000002.snapshot.deleted" {
		t.Error(name, err)
	}
	if _, err := fs.Stat(name); err != nil {
		t.Error(err)
	}
	if name, err := s.MarkDeleted(2); name != "" || err != nil {
		t.Error(name, err)
	}
	if err := errors.Join(s.Remove(1), s.Remove(1)); err != nil {
		t.Error(err)
	}
}

// FuzzTable_Load: any bytes are a snapshot that is written back with the same content, or corrupt.
func FuzzTable_Load(f *testing.F) {
	var table Table
	f.Add(table.Append(nil))
	table.producers = map[record.ProducerID]*entry{5: newEntry(), 7: newEntry()}
	table.producers[7].window.add(appended{lastOffset: 9, lastSeq: 3, offsetDelta: 2, timestampMs: 8})
	table.producers[7].txnFirstOffset = 4
	f.Add(table.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var table Table
		if err := table.Load(b, 10, 0, math.MaxInt64); err != nil {
			var corrupt *CorruptSnapshot
			if !errors.As(err, &corrupt) || table.Len() != 0 {
				t.Fatal(err)
			}
			return
		}
		first := table.Append(nil)
		var again Table
		if err := again.Load(first, 10, 0, math.MaxInt64); err != nil || !slices.Equal(again.Append(nil), first) {
			t.Fatalf("not the same when loaded again: %v", err)
		}
	})
}

// TestTransactions_Many: a log with many ended transactions is taken in fast, and the markers are forgotten once they are replicated.
func TestTransactions_Many(t *testing.T) {
	var table Table
	const transactions = 200_000
	for i := range int64(transactions) {
		u := Update{id: 1, has: true, batch: appended{lastOffset: 2 * i}, txn: true}
		table.Apply(u)
		u.batch.lastOffset, u.marker, u.commit = 2*i+1, true, true
		if _, ended := table.Apply(u); !ended {
			t.Fatal("no transaction has ended")
		}
		table.SetEndOffset(2*i + 2)
	}
	for highWatermark, want := range map[int64]int64{0: 0, 5: 4, 6: 6, 1001: 1000} {
		if got := table.txns.firstUnstable(highWatermark); got != want {
			t.Errorf("first unstable offset at %d: %d, want %d", highWatermark, got, want)
		}
	}
	table.LastStableOffset(2*transactions - 1)
	table.Apply(Update{id: 2, has: true, batch: appended{lastOffset: 2 * transactions}})
	if n := len(table.txns.ended); n != 1 {
		t.Errorf("%d markers are remembered, 1 is above the high watermark", n)
	}
}
