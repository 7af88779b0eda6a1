package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/broker/coordinator"
	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
	"sluice/broker/server"
	"sluice/protocol/record"
	"sluice/replication/metadata"
	"sluice/storage/partlog"
	"sluice/storage/vfs"
)

// groupsWorld are handlers with a real group coordinator over real logs, on a disk in memory. Whatever is appended is committed at once.
type groupsWorld struct {
	Controller
	*Handlers
	t       testing.TB
	fs      vfs.FS
	runtime *coordinator.Runtime[*group.Machine]

	mu   sync.Mutex
	logs map[int32]*committedLog
}

func newGroupsWorld(t testing.TB, settings map[string]string) *groupsWorld {
	t.Helper()
	w := &groupsWorld{t: t, fs: vfs.NewMem(), Handlers: adminHandlers(t, settings), logs: map[int32]*committedLog{}}
	w.Handlers.Log = zap.NewNop()
	w.Handlers.NowMs = func() int64 { return time.Now().UnixMilli() }
	w.Controller = w.Handlers.Controller
	w.Handlers.Controller = w // sees topics come and go, as subscribers of the controller do
	w.start()
	return w
}

func (w *groupsWorld) start() {
	w.runtime = coordinator.New(coordinator.Options[*group.Machine]{
		Topic: group.Topic,
		New: func(int32) *group.Machine {
			return group.New(func() *group.Config {
				c := w.Config()
				return &group.Config{
					InitialRebalanceDelayMs: int32(c.GroupInitialRebalanceDelayMs), MaxSize: c.GroupMaxSize, OffsetMetadataMaxSize: c.OffsetMetadataMaxBytes,
					OffsetsRetentionMs: c.OffsetsRetentionMinutes * 60_000, OffsetsRetentionCheckMs: c.OffsetsRetentionCheckIntervalMs, MaxBatchBytes: 1 << 20,
				}
			})
		},
		NowMs:          w.Handlers.NowMs,
		WriteTimeoutMs: func() int64 { return 5000 },
		LoadBytes:      5 << 20,
		Log:            zap.NewNop(),
	})
	w.t.Cleanup(w.runtime.Close)
	w.Handlers.Groups = w.runtime
	w.follow(record.LeaderEpoch(0))
}

// follow loads the partitions that exist.
func (w *groupsWorld) follow(epoch record.LeaderEpoch) {
	topic, ok := w.Image().Topic(group.Topic)
	if !ok {
		return
	}
	for i := range topic.Partitions {
		w.runtime.Load(int32(i), epoch, w.log(int32(i)))
	}
}

func (w *groupsWorld) log(i int32) *committedLog {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.logs[i] == nil {
		log, err := partlog.Open(partlog.Options{FS: w.fs, Dir: fmt.Sprintf("%s-%d", group.Topic, i), NowMs: w.Handlers.NowMs()})
		if err != nil {
			w.t.Fatal(err)
		}
		w.logs[i] = &committedLog{Log: log}
	}
	return w.logs[i]
}

func (w *groupsWorld) Do(ctx context.Context, op metadata.Op) (kmsg.Response, error) {
	before := w.Image()
	response, err := w.Controller.Do(ctx, op)
	w.follow(0)
	var deleted []group.DeletedTopic
	for t := range before.Topics() {
		if _, ok := w.Image().TopicByID(t.ID); !ok {
			deleted = append(deleted, group.DeletedTopic{Name: t.Name, ID: t.ID})
		}
	}
	if len(deleted) > 0 {
		w.runtime.SubmitAll("topics deleted", func(m *group.Machine, nowMs int64) (machine.Effects, error) {
			return m.TopicsDeleted(nowMs, deleted), nil
		})
	}
	return response, err
}

// restart drops all that is in memory and loads it again.
func (w *groupsWorld) restart() {
	w.runtime.Close()
	w.start()
	w.awaitLoaded()
}

// awaitLoaded returns when all partitions serve.
func (w *groupsWorld) awaitLoaded() {
	w.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for i := range w.runtime.Partitions() {
		for loading := true; loading; {
			done := make(chan error)
			w.runtime.Submit(int32(i), func(*group.Machine, int64) (machine.Effects, error) { return machine.Effects{}, nil }, func(err error) { done <- err })
			loading = errors.Is(<-done, kerr.CoordinatorLoadInProgress)
			if time.Now().After(deadline) {
				w.t.Fatal("partitions do not load")
			}
		}
	}
}

// committedLog is a log as the coordinator of a single node sees it.
type committedLog struct {
	*partlog.Log
	mu       sync.Mutex
	watchers []func(int64)
	reading  chan struct{} // reads wait for it to be closed; nil: they do not
}

func (l *committedLog) Append(b record.Batch, v record.Verification, nowMs int64) (int64, error) {
	if b.IsTransactional() {
		return l.committed(l.AppendTransactional(b, 0, record.Coordinator, v, nowMs))
	}
	return l.committed(l.AppendAsLeader(b, 0, record.Coordinator, nowMs))
}

func (l *committedLog) AppendMarker(b record.Batch, transactionVersion int16, nowMs int64) (int64, error) {
	return l.committed(l.Log.AppendMarker(b, 0, transactionVersion, nowMs))
}

func (l *committedLog) committed(appended partlog.AppendInfo, err error) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.watchers {
		f(l.LogEndOffset())
	}
	return appended.LastOffset, KafkaError(err)
}

func (l *committedLog) Read(offset int64, maxBytes int) ([]byte, error) {
	if l.reading != nil {
		<-l.reading
	}
	s, err := l.Log.Read(offset, maxBytes, true, l.LogEndOffset())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	b := make([]byte, s.Bytes)
	if _, err := s.File.ReadAt(b, s.Position); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

func (l *committedLog) Offsets() (int64, int64, int64) {
	return l.LogStartOffset(), l.LogEndOffset(), l.LogEndOffset()
}

func (l *committedLog) Watch(f func(int64)) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = append(l.watchers, f)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watchers = nil
	}
}

func (l *committedLog) MaxBatchBytes() int { return 1 << 20 }

// splitRecords are the records in a log's bytes.
func splitRecords(t testing.TB, b []byte) iter.Seq[record.Record] {
	return func(yield func(record.Record) bool) {
		for len(b) > 0 {
			first, rest, err := record.Split(b)
			if err != nil {
				t.Fatal(err)
			}
			for r, err := range first.Records(0) {
				if err != nil {
					t.Fatal(err)
				}
				if !yield(r) {
					return
				}
			}
			b = rest
		}
	}
}

// serveGroups serves handlers with a group coordinator, and returns where.
func serveGroups(t testing.TB) (address string) {
	t.Helper()
	return newGroupsWorld(t, nil).serve()
}

func (w *groupsWorld) serve() (address string) {
	w.t.Helper()
	s := server.New(server.Options{Dispatcher: w.Handlers, Listeners: []server.ListenerConfig{{Name: "PLAINTEXT", Addresses: []string{"127.0.0.1:0"}}}})
	if err := s.Listen(); err != nil {
		w.t.Fatal(err)
	}
	s.Serve()
	w.t.Cleanup(func() { s.Shutdown(context.Background()) })
	return s.Addrs("PLAINTEXT")[0].String()
}
