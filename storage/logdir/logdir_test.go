package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"sluice/protocol/uuid"
	"sluice/storage/checkpoint"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// options are those of node 1 in cluster c1, with ids from a seed.
func options() Options {
	return Options{ClusterID: "c1", NodeID: 1, Create: true, Random: rand.NewChaCha8([32]byte{7})}
}

func open(t *testing.T, fsys vfs.FS, o Options) *Dir {
	t.Helper()
	d, err := Open(fsys, "data", o)
	check(t, err)
	return d
}

func reopen(t *testing.T, d *Dir) *Dir {
	t.Helper()
	check(t, d.Close())
	return open(t, d.fs, d.o)
}

var (
	orders0 = TopicPartition{Topic: "orders", Partition: 0}
	orders1 = TopicPartition{Topic: "orders", Partition: 1}
	idA     = uuid.UUID{0: 1, 15: 0xa}
	idB     = uuid.UUID{0: 1, 15: 0xb}
)

// show lists the partitions in short.
func show(d *Dir) string {
	var parts []string
	for _, p := range d.Partitions() {
		parts = append(parts, fmt.Sprintf("%s %s %x", p.TopicPartition, p.Kind, p.TopicID[15]))
	}
	return strings.Join(parts, ", ")
}

func folders(t *testing.T, fsys vfs.FS) string {
	t.Helper()
	entries, err := fsys.ReadDir("data")
	check(t, err)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

func TestOpen_FormatsAndFindsAgain(t *testing.T) {
	m := vfs.NewMem()
	d := open(t, m, options())
	if d.ClusterID() != "c1" || d.NodeID() != 1 || d.ID().IsZero() || d.CleanShutdown() || d.PreviousBrokerEpoch() != -1 || d.Count() != 0 {
		t.Fatal(d)
	}
	id := d.ID()
	check(t, d.Close())
	again := open(t, m.CrashClone(vfs.CrashConfig{}), Options{NodeID: -1})
	if again.ID() != id || again.ClusterID() != "c1" || again.NodeID() != 1 {
		t.Fatal(again)
	}
}

// The same on a real disk, as far as it can be looked at there.
func TestDir_OnTheSystemsFiles(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir()) + "/new/data"
	d, err := Open(vfs.OS(), dir, options())
	check(t, err)
	if _, err := Open(vfs.OS(), dir, options()); !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("opened twice: %v", err)
	}
	for _, tp := range []TopicPartition{orders0, orders1} {
		_, err = d.CreatePartition(tp, idA)
		check(t, err)
	}
	check(t, d.DeletePartition(orders1, 0))
	check(t, d.WriteRecoveryPoints(map[TopicPartition]int64{orders0: 5}))
	if total, free, err := d.Usage(); err != nil || total <= 0 || free < 0 {
		t.Fatal(total, free, err)
	}
	check(t, d.MarkCleanShutdown(3))
	check(t, d.Close())
	d, err = Open(vfs.OS(), dir, options())
	check(t, err)
	if show(d) != "orders-0 current a" || d.RecoveryPoints()[orders0] != 5 || !d.CleanShutdown() {
		t.Fatal(show(d), d.RecoveryPoints(), d.CleanShutdown())
	}
	if n, err := d.RemoveDeleted(0, 60_000); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	check(t, d.Close())
}

func TestOpen_RefusesWithASentence(t *testing.T) {
	formatted := vfs.NewMem()
	check(t, open(t, formatted, options()).Close())
	inUse := vfs.NewMem()
	open(t, inUse, options())
	corrupt := vfs.NewMem()
	check(t, corrupt.MkdirAll("data", 0o755))
	check(t, checkpoint.WriteFile(corrupt, "data/meta.properties", []byte("version=1\nnode.id=one\ncluster.id=c1\n")))
	file := vfs.NewMem()
	check(t, checkpoint.WriteFile(file, "data", nil))
	for _, test := range []struct {
		name   string
		fs     vfs.FS
		change func(o *Options)
		want   string
		is     error
	}{
		{"other cluster", formatted, func(o *Options) { o.ClusterID = "c2" },
			"log directory data belongs to the cluster c1, but this broker is set up for the cluster c2: use another directory, or set the cluster id that the directory has", nil},
		{"other node", formatted, func(o *Options) { o.NodeID = 2 },
			"log directory data belongs to node 1, but node.id is 2: set node.id=1 if its content was moved here, or use another directory for a new node", nil},
		{"in use", inUse, func(*Options) {},
			"log directory data is in use: another running broker holds data/.lock: locked by another process", vfs.ErrLocked},
		{"not formatted", vfs.NewMem(), func(o *Options) { o.Create = false },
			"log directory data: the directory is not formatted, it has no meta.properties", ErrNotFormatted},
		{"nothing to format with", vfs.NewMem(), func(o *Options) { o.ClusterID = "" },
			"log directory data: a cluster id and a node id are needed to format it", nil},
		{"corrupt", corrupt, func(*Options) {},
			`log directory data has a meta.properties that cannot be read: data/meta.properties: node.id "one" is not a number of at least 0`, nil},
		{"a file", file, func(*Options) {},
			"log directory data cannot be created or is not a directory: open data: not a directory", nil},
	} {
		o := options()
		test.change(&o)
		_, err := Open(test.fs, "data", o)
		if err == nil || err.Error() != test.want || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s:\n got %v\nwant %s", test.name, err, test.want)
		}
	}
	check(t, open(t, formatted, options()).Close()) // a refused directory is not left locked
}

func TestOpen_CompletesOldMetaProperties(t *testing.T) {
	m := vfs.NewMem()
	check(t, m.MkdirAll("data", 0o755))
	check(t, checkpoint.WriteFile(m, "data/meta.properties", []byte("version=0\nbroker.id=1\ncluster.id=c1\n")))
	d := open(t, m, options())
	stored, err := checkpoint.ReadMetaProperties(m, "data")
	check(t, err)
	if want := (checkpoint.MetaProperties{Version: 1, ClusterID: "c1", NodeID: 1, DirectoryID: d.ID()}); stored != want || d.ID().IsZero() {
		t.Fatal(stored)
	}
}

func TestOpen_ReadsKafkasDirectory(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/kafka-4.4.txtar")
	check(t, err)
	m := vfs.NewMem()
	for _, f := range archive.Files {
		check(t, m.MkdirAll(path.Dir("data/"+f.Name), 0o755))
		check(t, checkpoint.WriteFile(m, "data/"+f.Name, f.Data))
	}
	d := open(t, m, Options{ClusterID: "MkU3OEVBNTcwNTJENDM2Qg", NodeID: 1})
	if !d.CleanShutdown() || d.PreviousBrokerEpoch() != 13 || d.ID().String() != "REFid1AAAAAAAAAAAAAAAA" || len(d.Warnings())+len(d.Ignored()) > 0 {
		t.Fatal(d.CleanShutdown(), d.PreviousBrokerEpoch(), d.ID(), d.Warnings(), d.Ignored())
	}
	var got []string
	for _, p := range d.Partitions() {
		got = append(got, fmt.Sprintf("%s %s %s recovery %d start %d high watermark %d",
			p.Path, p.Kind, p.TopicID, d.RecoveryPoints()[p.TopicPartition], d.LogStartOffsets()[p.TopicPartition], d.HighWatermarks()[p.TopicPartition]))
	}
	want := []string{
		"data/__consumer_offsets-0 current W4XVB8SsQo6268yeIoVgbw recovery 7 start 0 high watermark 7",
		"data/__transaction_state-0 current zf65hRtfSiW6FJ3WAXylXA recovery 8 start 0 high watermark 8",
		"data/orders-0 current bd_d7FK6Q9qScKict973LQ recovery 15 start 4 high watermark 15",
		"data/payments-0 current J2NQq1e0RNqiiXXD9Cmjzg recovery 4 start 0 high watermark 4",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	n, err := d.RemoveDeleted(0, 60_000)
	check(t, err)
	if got := folders(t, m); n != 2 || got != "__cluster_metadata-0 __consumer_offsets-0 __transaction_state-0 orders-0 payments-0" {
		t.Fatal(n, got)
	}
}

func TestPartitions_LifeOfOne(t *testing.T) {
	m := vfs.NewMem()
	d := open(t, m, options())
	dir, err := d.CreatePartition(orders0, idA)
	check(t, err)
	if dir != "data/orders-0" || dir != d.PartitionPath(orders0) {
		t.Fatal(dir)
	}
	_, err = d.CreatePartition(orders1, idA)
	check(t, err)
	if _, err := d.CreatePartition(orders0, idA); err != nil {
		t.Fatalf("the same again: %v", err)
	}
	_, err = d.CreatePartition(orders0, idB)
	if inconsistent := (*InconsistentTopicID)(nil); !errors.As(err, &inconsistent) || inconsistent.Stored != idA || inconsistent.Wanted != idB {
		t.Fatalf("another topic: %v", err)
	}
	if got := show(d); got != "orders-0 current a, orders-1 current a" {
		t.Fatal(got)
	}
	check(t, d.DeletePartition(orders0, 1000))
	check(t, d.DeletePartition(orders0, 1000)) // gone already
	_, err = d.CreatePartition(orders0, idB)   // the name is free at once
	check(t, err)
	stray, err := d.MarkStray(orders1)
	check(t, err)
	if tp, kind, err := ParseDirName(path.Base(stray)); tp != orders1 || kind != Stray || err != nil {
		t.Fatal(stray)
	}
	if got := show(d); got != "orders-0 current b" || d.Count() != 1 {
		t.Fatal(got)
	}
	for _, step := range []struct {
		nowMs   int64
		removed int
	}{{60_999, 0}, {61_000, 1}, {99_000, 0}} {
		if n, err := d.RemoveDeleted(step.nowMs, 60_000); n != step.removed || err != nil {
			t.Fatalf("at %d: %d %v", step.nowMs, n, err)
		}
	}
	check(t, m.MkdirAll("data/lost+found", 0o755))
	d = reopen(t, d)
	if got := show(d); got != "orders-0 current b" || fmt.Sprint(d.Strays()) != "["+path.Base(stray)+"]" || fmt.Sprint(d.Ignored()) != "[lost+found]" {
		t.Fatal(got, d.Strays(), d.Ignored())
	}
}

func TestCreatePartition_RefusesWhatIsNoPartition(t *testing.T) {
	d := open(t, vfs.NewMem(), options())
	for _, tp := range []TopicPartition{{Topic: "../x"}, {Topic: ""}, {Topic: ".."}, {Topic: "a", Partition: -1}} {
		if _, err := d.CreatePartition(tp, idA); err == nil {
			t.Errorf("%v is created", tp)
		}
	}
	if _, err := d.CreatePartition(orders0, uuid.UUID{}); err == nil {
		t.Error("created without a topic id")
	}
	if d.Failure() != nil || folders(t, d.fs) != "" {
		t.Error("the directory has changed")
	}
}

// Creating must not wait for the disk: a thousand partitions are created while a client waits.
func TestCreatePartition_DoesNotSync(t *testing.T) {
	syncs := 0
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	d := open(t, fsys, options())
	fsys.SetInject(func(op errorfs.Op, _ string, _ int) error {
		if op == errorfs.OpSync || op == errorfs.OpSyncDir {
			syncs++
		}
		return nil
	})
	for i := range int32(10) {
		_, err := d.CreatePartition(TopicPartition{Topic: "t", Partition: i}, idA)
		check(t, err)
	}
	if syncs != 0 {
		t.Fatalf("%d syncs", syncs)
	}
	check(t, d.SyncCreated())
	if syncs != 21 {
		t.Fatalf("SyncCreated: %d syncs, want one each of file and folder and one of the directory", syncs)
	}
	before := fsys.Count()
	check(t, d.SyncCreated())
	if fsys.Count() != before {
		t.Fatal("SyncCreated works when there is nothing to do")
	}
}

func TestCheckpoints_AreKept(t *testing.T) {
	d := open(t, vfs.NewMem(), options())
	at := func(offset int64) map[TopicPartition]int64 { return map[TopicPartition]int64{orders0: offset} }
	check(t, d.WriteRecoveryPoints(at(1)))
	check(t, d.WriteLogStartOffsets(at(2)))
	check(t, d.WriteHighWatermarks(at(3)))
	check(t, d.WriteCleanerOffsets(at(4)))
	d = reopen(t, d)
	got := []int64{d.RecoveryPoints()[orders0], d.LogStartOffsets()[orders0], d.HighWatermarks()[orders0], d.CleanerOffsets()[orders0]}
	if diff := cmp.Diff([]int64{1, 2, 3, 4}, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestOpen_CorruptFilesCostRecoveryOnly(t *testing.T) {
	d := open(t, vfs.NewMem(), options())
	_, err := d.CreatePartition(orders0, idA)
	check(t, err)
	check(t, d.WriteRecoveryPoints(map[TopicPartition]int64{orders0: 1}))
	check(t, checkpoint.WriteFile(d.fs, "data/recovery-point-offset-checkpoint", []byte("0\n1\nord")))
	check(t, checkpoint.WriteFile(d.fs, "data/orders-0/partition.metadata", []byte("version: 0\ntop")))
	d = reopen(t, d)
	if len(d.RecoveryPoints()) != 0 || len(d.Warnings()) != 2 || show(d) != "orders-0 current 0" {
		t.Fatal(d.RecoveryPoints(), d.Warnings(), show(d))
	}
	_, err = d.CreatePartition(orders0, idB) // a folder that nobody knows the topic of is whose it is said to be
	check(t, err)
	if d = reopen(t, d); show(d) != "orders-0 current b" {
		t.Fatal(show(d))
	}
}

func TestMarkCleanShutdown(t *testing.T) {
	d := open(t, vfs.NewMem(), options())
	check(t, d.MarkCleanShutdown(13))
	d = reopen(t, d)
	if !d.CleanShutdown() || d.PreviousBrokerEpoch() != 13 {
		t.Fatal(d.CleanShutdown(), d.PreviousBrokerEpoch())
	}
	d = reopen(t, d) // not marked this time
	if d.CleanShutdown() || d.PreviousBrokerEpoch() != -1 {
		t.Fatal("a mark counts twice")
	}
}

func TestFail_TakesTheDirectoryOfflineOnce(t *testing.T) {
	var calls []string
	o := options()
	o.OnFailure = func(d *Dir, reason error) { calls = append(calls, d.Path()+": "+reason.Error()) }
	d := open(t, vfs.NewMem(), o)
	_, err := d.CreatePartition(orders0, idA)
	check(t, err)
	d.Fail(syscall.EIO)
	d.Fail(syscall.ENOSPC)
	if diff := cmp.Diff([]string{"data: input/output error"}, calls); diff != "" {
		t.Fatal(diff)
	}
	for name, do := range map[string]func() error{
		"create":              func() error { _, err := d.CreatePartition(orders1, idA); return err },
		"create again":        func() error { _, err := d.CreatePartition(orders0, idA); return err },
		"delete":              func() error { return d.DeletePartition(orders0, 0) },
		"delete nothing":      func() error { return d.DeletePartition(orders1, 0) },
		"stray":               func() error { _, err := d.MarkStray(orders0); return err },
		"remove deleted":      func() error { _, err := d.RemoveDeleted(0, 0); return err },
		"sync created":        func() error { return d.SyncCreated() },
		"checkpoint":          func() error { return d.WriteHighWatermarks(nil) },
		"mark clean shutdown": func() error { return d.MarkCleanShutdown(1) },
		"usage":               func() error { _, _, err := d.Usage(); return err },
		"failure":             d.Failure,
	} {
		var offline *Offline
		if err := do(); !errors.As(err, &offline) || !errors.Is(err, syscall.EIO) || offline.Path != "data" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(d.fs, "data", options()); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("the lock is gone before Close: %v", err)
	}
	check(t, d.Close())
	if err := d.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}

// workload uses everything that writes. It stops at the first error. Meanwhile it says what a crash at this moment may leave.
type workload struct {
	partitions []string // as show prints them
	points     []int64  // recovery points of orders-0
	clean      []bool
	done       bool
}

func (w *workload) run(fsys vfs.FS, o Options) (*Dir, error) {
	const a, b, torn = "orders-0 current a", "orders-0 current b", "orders-0 current 0"
	w.partitions, w.points, w.clean = []string{""}, []int64{0}, []bool{false}
	d, err := Open(fsys, "data", o)
	if err != nil {
		return nil, err
	}
	step := func(during, after []string, do func() error) {
		if err != nil {
			return
		}
		w.partitions = during
		if err = do(); err == nil {
			w.partitions = after
		}
	}
	create := func(id uuid.UUID) func() error {
		return func() error { _, err := d.CreatePartition(orders0, id); return err }
	}
	checkpointAt := func(offset int64) func() error {
		return func() error {
			w.points = append(w.points, offset)
			err := d.WriteRecoveryPoints(map[TopicPartition]int64{orders0: offset})
			if err == nil {
				w.points = []int64{offset}
			}
			return err
		}
	}
	made := []string{"", torn, a}
	step(made, made, create(idA))
	step(made, []string{a}, checkpointAt(5))
	step([]string{a, ""}, []string{a, ""}, func() error { return d.DeletePartition(orders0, 0) })
	made = []string{a, "", torn, b}
	step(made, made, create(idB))
	step(made, []string{b}, d.SyncCreated)
	step([]string{b}, []string{b}, checkpointAt(7))
	step([]string{b}, []string{b}, func() error { _, err := d.RemoveDeleted(0, 0); return err })
	step([]string{b}, []string{b}, func() error {
		w.clean = []bool{false, true}
		err := d.MarkCleanShutdown(3)
		if err == nil {
			w.clean = []bool{true}
		}
		return err
	})
	w.done = err == nil
	return d, err
}

// verify opens what a crash or a fault left, and compares it with what the workload allows.
func (w *workload) verify(m vfs.FS, o Options) error {
	d, err := Open(m, "data", o)
	if err != nil {
		return err
	}
	defer d.Close()
	if got := show(d); !slices.Contains(w.partitions, got) {
		return fmt.Errorf("partitions %q, not one of %q", got, w.partitions)
	}
	if got := d.RecoveryPoints()[orders0]; !slices.Contains(w.points, got) {
		return fmt.Errorf("recovery point %d, not one of %v", got, w.points)
	}
	if got := d.CleanShutdown(); !slices.Contains(w.clean, got) {
		return fmt.Errorf("clean shutdown is %v", got)
	}
	for _, warning := range d.Warnings() { // a checkpoint is never torn
		if !strings.Contains(warning.Error(), "topic is unknown") {
			return warning
		}
	}
	return nil
}

func TestOpen_MakesNewParentsDurable(t *testing.T) {
	m := vfs.NewMem()
	d, err := Open(m, "a/b/data", options())
	check(t, err)
	id := d.ID()
	again, err := Open(m.CrashClone(vfs.CrashConfig{}), "a/b/data", Options{NodeID: -1})
	check(t, err)
	if again.ID() != id {
		t.Fatal(again.ID(), id)
	}
}

func TestDir_CrashBeforeEveryOperation(t *testing.T) {
	m := vfs.NewMem()
	check(t, m.MkdirAll("data", 0o755))
	check(t, m.SyncDir("."))
	w := &workload{}
	crash := func(n int) {
		for seed := range uint64(60) {
			cfg := vfs.CrashConfig{Rand: rand.New(rand.NewPCG(seed, uint64(n))), ProcessOnly: seed == 0}
			if err := w.verify(m.CrashClone(cfg), options()); err != nil {
				t.Fatalf("crash before operation %d with seed %d: %v", n, seed, err)
			}
		}
	}
	fsys := errorfs.Wrap(m, func(op errorfs.Op, _ string, n int) error {
		if op.Mutates() {
			crash(n)
		}
		return nil
	})
	d, err := w.run(fsys, options())
	check(t, err)
	fsys.SetInject(nil)
	crash(fsys.Count() + 1)
	check(t, d.Close())
}

func TestDir_EveryOperationFails(t *testing.T) {
	for n := 1; ; n++ {
		m := vfs.NewMem()
		failures := 0
		o := options()
		o.OnFailure = func(*Dir, error) { failures++ }
		w := &workload{}
		fsys := errorfs.Wrap(m, errorfs.FailNth(n, syscall.EIO))
		d, err := w.run(fsys, o)
		if d != nil {
			if (d.Failure() != nil) != (err != nil) || failures != 0 && d.Failure() == nil {
				t.Fatalf("operation %d failed: %v, but the directory says %v", n, err, d.Failure())
			}
			fsys.SetInject(nil)
			check(t, d.Close())
		}
		if w.done {
			if fsys.Count() >= n+1 {
				t.Fatalf("operation %d failed unnoticed", n)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) {
			t.Fatalf("operation %d failed: %v", n, err)
		}
		if err := w.verify(m, options()); err != nil {
			t.Fatalf("operation %d failed; afterwards: %v", n, err)
		}
	}
}
