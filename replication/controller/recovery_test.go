package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/replication/metadata"
	"sluice/storage/checkpoint"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

// A formatted directory becomes active with the finalized features, and what was created is there after a restart, led in a new epoch.
func TestOpen_Restart(t *testing.T) {
	fsys := vfs.NewMem()
	format(t, fsys)
	c, stop := start(t, options(t, fsys))
	if levels, _ := c.Image().FinalizedFeatures(); levels[metadata.FeatureMetadataVersion] != metadata.LatestMetadataVersion || levels["share.version"] != 2 {
		t.Fatalf("features %v", levels)
	}
	register(t, c, 1)
	for i := range 3 {
		if err := create(c, fmt.Sprintf("t%d", i), 2); err != nil {
			t.Fatal(err)
		}
	}
	before := c.Image()
	stop()
	state, err := checkpoint.ReadFile(fsys, "data/__cluster_metadata-0/quorum-state", 1000)
	if want := `{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}`; err != nil || string(state) != want {
		t.Fatalf("quorum-state is %s, %v", state, err)
	}

	c, _ = start(t, options(t, fsys))
	after := c.Image()
	if !slices.Equal(topics(after), topics(before)) {
		t.Fatalf("topics %v became %v", topics(before), topics(after))
	}
	// A restart adds the leader change record of its epoch and nothing else.
	if after.Offset() != before.Offset()+1 || after.ControllerID() != 1 {
		t.Fatalf("offset %d after %d, controller %d", after.Offset(), before.Offset(), after.ControllerID())
	}
	register(t, c, 2) // at once: the former incarnation of this very node is certainly gone
	if topic, _ := c.Image().Topic("t1"); topic.Partitions[0].Leader != 1 || topic.Partitions[0].LeaderEpoch != 2 {
		t.Fatalf("partition %+v", topic.Partitions[0])
	}
}

// Do answers after the image shows the change and subscribers have been called; deltas come in order and are complete.
func TestDo_PublishesBeforeItAnswers(t *testing.T) {
	fsys := vfs.NewMem()
	format(t, fsys)
	c, _ := start(t, options(t, fsys))
	register(t, c, 1)
	var mu sync.Mutex
	created := map[string]int{}
	var last *metadata.Image
	c.Subscribe(func(d *metadata.Delta) {
		mu.Lock()
		defer mu.Unlock()
		if last != nil && d.Prev != last {
			t.Errorf("delta from offset %d after an image at %d", d.Prev.Offset(), last.Offset())
		}
		last = d.Next
		for _, topic := range d.TopicsCreated {
			created[topic.Name]++
		}
	})
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			name := fmt.Sprintf("topic-%03d", i)
			if err := create(c, name, 1); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, found := c.Image().Topic(name); !found {
				t.Errorf("%s is not in the image", name)
			}
			mu.Lock()
			defer mu.Unlock()
			if created[name] != 1 {
				t.Errorf("%s was told %d times", name, created[name])
			}
		})
	}
	group.Wait()
	if got := len(topics(c.Image())); got != 200 {
		t.Fatalf("%d topics", got)
	}
}

// Operations that wait together share a batch and a sync.
func TestCommit_GroupSharesASync(t *testing.T) {
	mem := vfs.NewMem()
	format(t, mem)
	syncs := 0
	fsys := errorfs.Wrap(mem, func(op errorfs.Op, path string, _ int) error {
		if op == errorfs.OpSync && strings.HasSuffix(path, ".log") {
			syncs++
		}
		return nil
	})
	c, err := Open(options(t, fsys))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	registerInPlace(t, c)
	var group []*task
	for i := range 100 {
		group = append(group, &task{op: createTopic(fmt.Sprintf("t%d", i), 1), done: make(chan struct{})})
	}
	before, offset := syncs, c.Image().Offset()
	if err := c.commit(group); err != nil {
		t.Fatal(err)
	}
	for _, g := range group {
		<-g.done
		if g.err != nil || g.response == nil {
			t.Fatal(g.err)
		}
	}
	if syncs != before+1 || c.Image().Offset() != offset+200 || len(topics(c.Image())) != 100 {
		t.Fatalf("%d syncs, offset %d after %d, %d topics", syncs-before, c.Image().Offset(), offset, len(topics(c.Image())))
	}
}

// An operation of more records than a batch may have is refused when it has to be atomic, and cut in several batches when it need not be.
func TestCommit_LargeOperations(t *testing.T) {
	fsys := vfs.NewMem()
	format(t, fsys)
	c, err := Open(options(t, fsys))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	registerInPlace(t, c)
	for i := range 3 {
		if one := inPlace(t, c, createTopic(fmt.Sprintf("t%d", i), 9000)); one.err != nil {
			t.Fatal(one.err)
		}
	}
	value := strings.Repeat("x", 30_000)
	huge := func(splittable bool) metadata.Op {
		return func(*metadata.Machine, int64) (metadata.Result, error) {
			r := metadata.Result{Splittable: splittable}
			for i := range 600 {
				r.Records = append(r.Records, &logrecord.ConfigRecord{ResourceType: int8(metadata.GroupResource), ResourceName: "g", Name: fmt.Sprint(i), Value: &value})
			}
			return r, nil
		}
	}
	var rejected *metadata.Error
	if one := inPlace(t, c, huge(false)); !errors.As(one.err, &rejected) || rejected.Code != 44 {
		t.Fatal(one.err)
	}
	if got := c.Image().Configs(metadata.ConfigResource{Type: metadata.GroupResource, Name: "g"}); len(got) != 0 {
		t.Fatalf("%d configs of a refused operation", len(got))
	}
	if one := inPlace(t, c, huge(true)); one.err != nil {
		t.Fatal(one.err)
	}
	if got := c.Image().Configs(metadata.ConfigResource{Type: metadata.GroupResource, Name: "g"}); len(got) != 600 {
		t.Fatalf("%d configs", len(got))
	}
	// Fencing the only broker changes all 27,000 partitions.
	beat := kmsg.NewBrokerHeartbeatRequest()
	broker, _ := c.Image().Broker(1)
	beat.BrokerID, beat.BrokerEpoch, beat.WantFence = 1, int64(broker.Epoch), true
	if one := inPlace(t, c, metadata.BrokerHeartbeat(&beat)); one.err != nil {
		t.Fatal(one.err)
	}
	for topic := range c.Image().Topics() {
		for i, p := range topic.Partitions {
			if p.Leader != metadata.NoBroker {
				t.Fatalf("%s-%d is led by %d", topic.Name, i, p.Leader)
			}
		}
	}
}

// What Do has answered is there after a crash at any moment, and nothing is there in part.
func TestOpen_CrashAnywhere(t *testing.T) {
	base := vfs.NewMem()
	format(t, base)
	var clones []*vfs.Mem
	var acknowledged []int // topics acknowledged when the clone of the same index was made
	count, done := 0, 0
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(3, 4))
	fsys := errorfs.Wrap(base, func(op errorfs.Op, _ string, _ int) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Mutates() && count%3 == 0 {
			clones = append(clones, base.CrashClone(vfs.CrashConfig{Rand: rng}))
			acknowledged = append(acknowledged, done)
		}
		count++
		return nil
	})
	c, stop := start(t, options(t, fsys))
	register(t, c, 1)
	for i := range 25 {
		if err := create(c, fmt.Sprintf("t%02d", i), 3); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		done++
		mu.Unlock()
	}
	stop()
	t.Logf("%d crashes", len(clones))
	for n, clone := range clones {
		again, err := Open(options(t, clone))
		if err != nil {
			t.Fatalf("crash %d: %v", n, err)
		}
		all := topics(again.Image())
		if len(all) < acknowledged[n] || len(all) > acknowledged[n]+1 {
			t.Fatalf("crash %d: %d topics, %d were acknowledged", n, len(all), acknowledged[n])
		}
		for i, topic := range all {
			if topic != fmt.Sprintf("t%02d/3", i) {
				t.Fatalf("crash %d: topic %s at place %d", n, topic, i)
			}
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// After a failed sync nothing is served any more, and the failure says what it is; the next start finds all that was acknowledged.
func TestDo_FailedSyncIsTheEnd(t *testing.T) {
	mem := vfs.NewMem()
	format(t, mem)
	broken := false
	var mu sync.Mutex
	fsys := errorfs.Wrap(mem, func(op errorfs.Op, _ string, _ int) error {
		mu.Lock()
		defer mu.Unlock()
		if broken && op == errorfs.OpSync {
			return errors.New("input/output error")
		}
		return nil
	})
	c, stop := start(t, options(t, fsys))
	register(t, c, 1)
	if err := create(c, "before", 1); err != nil {
		t.Fatal(err)
	}
	image := c.Image()
	mu.Lock()
	broken = true
	mu.Unlock()
	var fault *Fault
	if err := create(c, "lost", 1); !errors.As(err, &fault) {
		t.Fatalf("error %v", err)
	}
	if err := create(c, "later", 1); !errors.As(err, &fault) {
		t.Fatalf("error %v", err)
	}
	if c.Image() != image {
		t.Fatal("an image was published that is not committed")
	}
	stop()
	mu.Lock()
	broken = false
	mu.Unlock()
	c, _ = start(t, options(t, mem))
	if _, found := c.Image().Topic("before"); !found {
		t.Fatal("an acknowledged topic is gone")
	}
}

// Do after Close, and with a context that has ended, returns.
func TestDo_Refused(t *testing.T) {
	fsys := vfs.NewMem()
	format(t, fsys)
	c, stop := start(t, options(t, fsys))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Do(ctx, createTopic("t", 1)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	rejected := metadata.Op(func(*metadata.Machine, int64) (metadata.Result, error) {
		return metadata.Result{}, &metadata.Error{Code: 42, Message: "no"}
	})
	var e *metadata.Error
	if _, err := c.Do(context.Background(), rejected); !errors.As(err, &e) || e.Code != 42 {
		t.Fatal(err)
	}
	stop()
	if _, err := c.Do(context.Background(), createTopic("t", 1)); !errors.Is(err, ErrNotController) {
		t.Fatal(err)
	}
}

// What is not supported or not right is refused with a sentence.
func TestOpen_Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, fsys *vfs.Mem, o *Options)
		want   string
	}{
		"three voters": {func(_ *testing.T, _ *vfs.Mem, o *Options) { o.Voters = []metadata.BrokerID{1, 2, 3} }, "this node (1) alone is supported"},
		"not a voter":  {func(_ *testing.T, _ *vfs.Mem, o *Options) { o.Voters = []metadata.BrokerID{2} }, "this node (1) alone is supported"},
		"other voters before": {func(t *testing.T, fsys *vfs.Mem, _ *Options) {
			write(t, fsys, quorumStateFile, `{"clusterId":"","leaderId":2,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}`)
		}, "is of the voters"},
		"dynamic quorum": {func(t *testing.T, fsys *vfs.Mem, _ *Options) {
			write(t, fsys, quorumStateFile, `{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`)
		}, "only static voters are supported"},
		"broken state": {func(t *testing.T, fsys *vfs.Mem, _ *Options) { write(t, fsys, quorumStateFile, `{"leaderId":`) }, "quorum-state"},
		"foreign topic": {func(t *testing.T, fsys *vfs.Mem, _ *Options) {
			write(t, fsys, "partition.metadata", "version: 0\ntopic_id: lNFoUaYOFHb8m1pKMSqIYw")
		}, "not that of the metadata topic"},
		"not formatted": {func(t *testing.T, fsys *vfs.Mem, _ *Options) {
			if err := fsys.Remove("data/" + partitionDir + "/" + snapshotID{}.fileName()); err != nil {
				t.Fatal(err)
			}
		}, "has not been formatted"},
		"feature of the future": {func(_ *testing.T, _ *vfs.Mem, o *Options) {
			o.Machine.Features = slices.Clone(features)
			o.Machine.Features[0].Max--
		}, `level 33 of feature "metadata.version"; this version supports 7 to 32`},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			format(t, fsys)
			o := options(t, fsys)
			// The bootstrap records are in the log before the change, so that all of it is replayed.
			if first, err := Open(o); err != nil {
				t.Fatal(err)
			} else if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			c.change(t, fsys, &o)
			again, err := Open(o)
			if err == nil {
				t.Fatal("opened", again.Close())
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %q does not say %q", err, c.want)
			}
		})
	}
}

func write(t *testing.T, fsys vfs.FS, name, content string) {
	t.Helper()
	if err := checkpoint.WriteFile(fsys, "data/"+partitionDir+"/"+name, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

// The log and snapshot that Apache Kafka 4.4.0 wrote are read, and go on from where they end.
func TestOpen_KafkasDirectory(t *testing.T) {
	fsys := vfs.NewMem()
	copyTestdata(t, fsys, "testdata/kafka-4.4.0", "data/"+partitionDir)
	o := options(t, fsys)
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	got := describe(c.Image())
	want, err := os.ReadFile("testdata/kafka-4.4.0.image")
	if os.Getenv("REWRITE") != "" {
		err = os.WriteFile("testdata/kafka-4.4.0.image", []byte(got), 0o644)
		want = []byte(got)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Fatal(diff)
	}
}

func copyTestdata(t *testing.T, fsys vfs.FS, from, to string) {
	t.Helper()
	if err := fsys.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(from + "/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkpoint.WriteFile(fsys, to+"/"+filepath.Base(name), content); err != nil {
			t.Fatal(err)
		}
	}
}

// The records of Kafka's log, encoded anew in the versions that the finalized metadata.version asks for, are Kafka's bytes.
func TestRecords_AreKafkasBytes(t *testing.T) {
	log, err := os.ReadFile("testdata/kafka-4.4.0/00000000000000000000.log")
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for len(log) > 0 {
		b, rest, err := record.Split(log)
		if err != nil {
			t.Fatal(err)
		}
		log = rest
		for r, err := range b.Records(maxBatchBytes) {
			if err != nil {
				t.Fatal(err)
			}
			if b.IsControl() {
				continue
			}
			parsed, err := logrecord.ParseCluster(r.Value)
			if err != nil {
				t.Fatal(err)
			}
			again := logrecord.AppendCluster(nil, parsed, metadata.RecordVersion(metadata.LatestMetadataVersion, parsed))
			if !bytes.Equal(again, r.Value) {
				t.Errorf("offset %d: %T is %x, Kafka's is %x", r.Offset, parsed, again, r.Value)
			}
			records++
		}
	}
	if records < 40 {
		t.Fatalf("%d records", records)
	}
}

// The bootstrap snapshot is Kafka's but for its timestamps and what depends on them.
func TestFormat_IsKafkas(t *testing.T) {
	fsys := vfs.NewMem()
	format(t, fsys)
	kafkas, err := os.ReadFile("testdata/kafka-4.4.0/" + snapshotID{}.fileName())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := checkpoint.ReadFile(fsys, "data/"+partitionDir+"/"+snapshotID{}.fileName(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withoutTimes(t, kafkas), withoutTimes(t, ours)); diff != "" {
		t.Fatal(diff)
	}
	meta, err := checkpoint.ReadMetaProperties(fsys, "data")
	if err != nil || meta.ClusterID != testCluster || meta.NodeID != 1 || meta.DirectoryID.IsReserved() {
		t.Fatalf("%+v %v", meta, err)
	}
}

// withoutTimes shows a file of batches, but for times and checksums.
func withoutTimes(t *testing.T, content []byte) (lines []string) {
	for len(content) > 0 {
		b, rest, err := record.Split(content)
		if err != nil {
			t.Fatal(err)
		}
		content = rest
		lines = append(lines, fmt.Sprintf("batch %d epoch %d attributes %d count %d bytes %d valid %t", b.BaseOffset(), b.LeaderEpoch(), b.Attributes(), b.Count(), len(b), b.ValidCRC()))
		for r, err := range b.Records(1 << 20) {
			if err != nil {
				t.Fatal(err)
			}
			value := r.Value
			if control, err := record.ParseControl(r); b.IsControl() && err == nil {
				if h, ok := control.(record.SnapshotHeader); ok {
					h.LastContainedLogTimestampMs = 0
					value = record.ControlRecord(h, 0).Value
				}
			}
			lines = append(lines, fmt.Sprintf("record %d key %x value %x", r.Offset, r.Key, value))
		}
	}
	return lines
}

// Format leaves formatted directories alone or refuses them, and does not mix nodes.
func TestFormat_Again(t *testing.T) {
	fsys := vfs.NewMem()
	format(t, fsys)
	o := FormatOptions{FS: fsys, Dirs: []string{"data", "more"}, ClusterID: testCluster, NodeID: 1, Features: features, Random: seeded(3)}
	if err := Format(o); err == nil || !strings.Contains(err.Error(), "already formatted") {
		t.Fatal(err)
	}
	o.IgnoreFormatted = true
	before, _ := checkpoint.ReadMetaProperties(fsys, "data")
	if err := Format(o); err != nil {
		t.Fatal(err)
	}
	after, _ := checkpoint.ReadMetaProperties(fsys, "data")
	more, err := checkpoint.ReadMetaProperties(fsys, "more")
	if before != after || err != nil || more.DirectoryID == after.DirectoryID {
		t.Fatal(before, after, more, err)
	}
	if _, err := fsys.Stat("more/" + partitionDir); err == nil {
		t.Fatal("a directory that is not for the metadata log has one")
	}
	o.NodeID = 2
	if err := Format(o); err == nil || !strings.Contains(err.Error(), "belongs to node 1") {
		t.Fatal(err)
	}
}

// A format that a crash cuts short can be repeated, and never leaves a directory that counts as formatted but has no bootstrap records.
func TestFormat_CrashAnywhere(t *testing.T) {
	base := vfs.NewMem()
	var clones []*vfs.Mem
	rng := rand.New(rand.NewPCG(5, 6))
	fsys := errorfs.Wrap(base, func(op errorfs.Op, _ string, _ int) error {
		if op.Mutates() {
			clones = append(clones, base.CrashClone(vfs.CrashConfig{Rand: rng}))
		}
		return nil
	})
	format(t, fsys)
	for n, clone := range append(clones, base) {
		if _, err := checkpoint.ReadMetaProperties(clone, "data"); err != nil {
			format(t, clone)
		}
		c, err := Open(options(t, clone))
		if err != nil {
			t.Fatalf("crash %d: %v", n, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
