package replica

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/protocol/uuid"
	"sluice/replication/metadata"
	"sluice/replication/partition"
	"sluice/storage/logdir"
	"sluice/storage/partlog"
	"sluice/storage/vfs"
)

// world is a broker's set of replicas over a disk in memory, and the metadata that it follows.
type world struct {
	t            *testing.T
	fs           vfs.FS
	dirs         []string
	machine      *metadata.Machine
	set          *Set
	nowMs        int64
	expirationMs int64 // producer.id.expiration.ms
	configs      map[string]*TopicConfig
	changed      changeCounts
	failed       []string

	opening struct {
		sync.Mutex
		told []Opening
	}
}

// changeCounts counts by serial what the set has told of; closing tells from several goroutines.
type changeCounts struct{ sync.Map }

func (c *changeCounts) count(serial uint64) {
	n, _ := c.LoadOrStore(serial, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

func (c *changeCounts) of(r *Replica) int64 {
	n, ok := c.Load(r.Serial())
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

const self = metadata.BrokerID(1)

func newWorld(t *testing.T, fs vfs.FS, dirs ...string) *world {
	t.Helper()
	if len(dirs) == 0 {
		dirs = []string{"/d1"}
	}
	w := &world{
		t: t, fs: fs, dirs: dirs, nowMs: 1_000_000, expirationMs: 86_400_000, configs: map[string]*TopicConfig{},
		machine: metadata.NewMachine(metadata.Settings{ClusterID: "cluster", NodeID: self}),
	}
	for _, id := range []int32{1, 2, 3} {
		w.replay(&logrecord.RegisterBrokerRecord{BrokerID: id, BrokerEpoch: w.machine.NextOffset()})
	}
	w.start()
	return w
}

// start opens the directories and the replicas in them, as a broker does that starts.
func (w *world) start() {
	w.t.Helper()
	var opened []*logdir.Dir
	for _, path := range w.dirs {
		d, err := logdir.Open(w.fs, path, logdir.Options{ClusterID: "cluster", NodeID: int32(self), Create: true})
		if err != nil {
			w.t.Fatal(err)
		}
		opened = append(opened, d)
	}
	w.changed.Clear()
	w.set = NewSet(Options{
		NodeID: self, FS: w.fs, Dirs: opened, Log: zap.NewNop(),
		NowMs: func() int64 { return w.nowMs },
		Broker: func() *BrokerConfig {
			return &BrokerConfig{RecoveryThreads: 2, ReplicaLagTimeMaxMs: 30_000, ProducerIDExpirationMs: w.expirationMs}
		},
		Topic:   w.config,
		Changed: w.changed.count,
		Progress: func(o Opening) {
			w.opening.Lock()
			defer w.opening.Unlock()
			w.opening.told = append(w.opening.told, o)
		},
		Failed: func(dir string, err error, online int) {
			w.failed = append(w.failed, fmt.Sprintf("%s: %d left", dir, online))
		},
	})
	w.machine.Publish(self)
	w.set.Apply(metadata.DeltaBetween(metadata.NewMachine(metadata.Settings{}).Image(), w.machine.Image()))
}

// restart closes the set, cleanly, and starts again.
func (w *world) restart() {
	w.t.Helper()
	if err := w.set.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.start()
}

func (w *world) config(topic string) *TopicConfig {
	if c, ok := w.configs[topic]; ok {
		return c
	}
	return &TopicConfig{Log: *partlog.DefaultConfig(), MinInSyncReplicas: 1}
}

func (w *world) replay(records ...logrecord.ClusterRecord) {
	w.t.Helper()
	for _, r := range records {
		if err := w.machine.Replay(w.machine.NextOffset(), r); err != nil {
			w.t.Fatal(err)
		}
	}
}

// apply replays records and has the set follow.
func (w *world) apply(records ...logrecord.ClusterRecord) {
	w.t.Helper()
	w.replay(records...)
	w.set.Apply(w.machine.Publish(self))
}

func topicID(n byte) uuid.UUID { return uuid.UUID{0: 0x77, 15: n} }

// topic makes the records of a topic that this broker leads alone.
func topicRecords(name string, id uuid.UUID, partitions int) []logrecord.ClusterRecord {
	records := []logrecord.ClusterRecord{&logrecord.TopicRecord{Name: name, TopicID: id}}
	for i := range partitions {
		records = append(records, partitionRecord(id, int32(i), int32(self)))
	}
	return records
}

func partitionRecord(id uuid.UUID, index int32, replicas ...int32) *logrecord.PartitionRecord {
	p := logrecord.NewPartitionRecord()
	p.PartitionID, p.TopicID, p.Replicas, p.ISR, p.Leader, p.LeaderEpoch, p.PartitionEpoch = index, id, replicas, replicas, replicas[0], 0, 0
	p.Directories = make([]uuid.UUID, len(replicas))
	for i := range p.Directories {
		p.Directories[i] = uuid.UnassignedDirectory
	}
	return p
}

func (w *world) get(topic string, index int32) *Replica {
	w.t.Helper()
	r, err := w.set.Get(topic, index)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func batch(t testing.TB, values ...string) record.Batch {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{
		ProducerID: record.NoProducerID, ProducerEpoch: record.NoProducerEpoch, BaseSequence: record.NoSequence, LeaderEpoch: record.NoLeaderEpoch,
	})
	for i, v := range values {
		b.Add(record.Record{TimestampMs: 1000 + int64(i), Value: []byte(v)})
	}
	built, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return built
}

var anyone = partition.AppendQuery{RequiredAcks: -1, LeaderEpoch: record.NoLeaderEpoch}

func (w *world) append(r *Replica, values ...string) partition.AppendResult {
	w.t.Helper()
	result, err := r.Append(batch(w.t, values...), anyone, record.Client, w.nowMs)
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// read returns the values from an offset on.
func (w *world) read(r *Replica, offset int64) (values []string) {
	w.t.Helper()
	_, slice, err := r.Read(partition.ReadQuery{Offset: offset, MaxBytes: 1 << 20, LeaderEpoch: record.NoLeaderEpoch, LastFetchedEpoch: record.NoLeaderEpoch})
	if err != nil {
		w.t.Fatal(err)
	}
	defer slice.Close()
	if slice.Bytes == 0 {
		return nil
	}
	bytes := make([]byte, slice.Bytes)
	if _, err := slice.File.ReadAt(bytes, slice.Position); err != nil {
		w.t.Fatal(err)
	}
	for len(bytes) > 0 {
		b, rest, err := record.Split(bytes)
		if err != nil {
			w.t.Fatal(err)
		}
		for rec, err := range b.Records(0) {
			if err != nil {
				w.t.Fatal(err)
			}
			if rec.Offset >= offset {
				values = append(values, string(rec.Value))
			}
		}
		bytes = rest
	}
	return values
}

func wantErr[E error](t *testing.T, err error) (e E) {
	t.Helper()
	if !errors.As(err, &e) {
		t.Fatalf("error is %T %v, want %T", err, err, e)
	}
	return e
}
