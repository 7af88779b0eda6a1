package coordinator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
	"sluice/storage/partlog"
	"sluice/storage/vfs"
)

// A testLog is a partition's log in memory, with a high watermark that can be held back and appends that can be made to fail or wait.
type testLog struct {
	*partlog.Log
	maxBatchBytes int

	mu            sync.Mutex
	highWatermark int64
	holdCommits   bool
	fail          error
	gate          chan struct{} // appends wait for it to be closed
	readGate      chan struct{}
	batches       int
	watchers      map[int]func(int64)
	watched       int // names watchers
}

func openTestLog(t *testing.T, fs vfs.FS) *testLog {
	t.Helper()
	log, err := partlog.Open(partlog.Options{FS: fs, Dir: "__consumer_offsets-0", NowMs: time.Now().UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	return &testLog{Log: log, maxBatchBytes: 10_000, highWatermark: log.LogEndOffset(), watchers: map[int]func(int64){}}
}

func (l *testLog) Append(b record.Batch, v record.Verification, nowMs int64) (int64, error) {
	return l.append(b, func() (partlog.AppendInfo, error) {
		if b.IsTransactional() {
			return l.AppendTransactional(b, 1, record.Coordinator, v, nowMs)
		}
		return l.AppendAsLeader(b, 1, record.Coordinator, nowMs)
	})
}

func (l *testLog) AppendMarker(b record.Batch, transactionVersion int16, nowMs int64) (int64, error) {
	return l.append(b, func() (partlog.AppendInfo, error) { return l.Log.AppendMarker(b, 1, transactionVersion, nowMs) })
}

func (l *testLog) append(b record.Batch, write func() (partlog.AppendInfo, error)) (int64, error) {
	l.mu.Lock()
	gate, fail := l.gate, l.fail
	l.fail = nil
	l.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if fail != nil {
		return 0, fail
	}
	if len(b) > l.maxBatchBytes {
		return 0, fmt.Errorf("batch of %d bytes, %d are the limit", len(b), l.maxBatchBytes)
	}
	appended, err := write()
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	l.batches++
	hold := l.holdCommits
	l.mu.Unlock()
	if !hold {
		l.commit()
	}
	return appended.LastOffset, nil
}

// commit raises the high watermark to the log end offset.
func (l *testLog) commit() {
	l.mu.Lock()
	l.highWatermark = l.LogEndOffset()
	at := l.highWatermark
	var watchers []func(int64)
	for _, f := range l.watchers {
		watchers = append(watchers, f)
	}
	l.mu.Unlock()
	for _, f := range watchers {
		f(at)
	}
}

func (l *testLog) Read(offset int64, maxBytes int) ([]byte, error) {
	if l.readGate != nil {
		<-l.readGate
	}
	slice, err := l.Log.Read(offset, maxBytes, true, l.LogEndOffset())
	if err != nil {
		return nil, err
	}
	defer slice.Close()
	b := make([]byte, slice.Bytes)
	_, err = slice.File.ReadAt(b, slice.Position)
	return b, err
}

func (l *testLog) Offsets() (int64, int64, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.LogStartOffset(), l.LogEndOffset(), l.highWatermark
}

func (l *testLog) Watch(f func(int64)) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched++
	id := l.watched
	l.watchers[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watchers, id)
	}
}

func (l *testLog) MaxBatchBytes() int { return l.maxBatchBytes }

// A list is a machine whose records are values that are appended to it: enough to see order, loss and doubles.
type list struct {
	values    []string
	committed []string // values of ended transactions
	pending   map[int64][]string
	wakeMs    int64 // 0: no timer
	loadedMs  int64
	parked    machine.Token
}

type value string

func (v value) AppendKey(dst []byte) []byte { return binary.BigEndian.AppendUint16(dst, 1) }
func (v value) AppendValue(dst []byte) ([]byte, bool) {
	return append(dst, v...), v == ""
}

func (l *list) Parse(key, b []byte) (machine.Record, error) {
	switch binary.BigEndian.Uint16(key) {
	case 1:
		return value(b), nil
	case 2:
		return nil, errors.New("damaged")
	}
	return nil, machine.ErrUnknownRecord
}

func (l *list) Replay(_ int64, p machine.Producer, r machine.Record) {
	if p.ID >= 0 {
		l.pending[p.ID] = append(l.pending[p.ID], string(r.(value)))
		return
	}
	l.values = append(l.values, string(r.(value)))
}

func (l *list) ReplayEndTxn(p machine.Producer, commit bool) {
	if commit {
		l.committed = append(l.committed, l.pending[p.ID]...)
	}
	delete(l.pending, p.ID)
}

func (l *list) Loaded(nowMs int64) machine.Effects {
	l.loadedMs = nowMs
	return machine.Effects{}
}

func (l *list) ClockMoved(byMs int64) {
	if l.wakeMs != 0 {
		l.wakeMs += byMs
	}
}

func (l *list) Deadline() (int64, bool) { return l.wakeMs, l.wakeMs != 0 }

func (l *list) Expire(nowMs int64) (machine.Effects, bool) {
	if l.wakeMs == 0 || l.wakeMs > nowMs {
		return machine.Effects{}, false
	}
	l.wakeMs = 0
	return machine.Effects{Records: []machine.Record{value("timer")}}, true
}

type fixture struct {
	*Runtime[*list]
	clockSet atomic.Int64 // ms by which the wall clock was set
	t        *testing.T
	fs       vfs.FS
	log      *testLog
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, fs: vfs.NewMem()}
	f.Runtime = New(Options[*list]{
		Topic:          "__consumer_offsets",
		New:            func(int32) *list { return &list{pending: map[int64][]string{}} },
		NowMs:          func() int64 { return time.Now().UnixMilli() + f.clockSet.Load() },
		WriteTimeoutMs: func() int64 { return 5000 },
		LoadBytes:      100,
		Log:            zap.NewNop(),
	})
	f.log = openTestLog(t, f.fs)
	t.Cleanup(f.Close)
	return f
}

// add submits values to be appended by one operation, and returns where its outcome will be.
func (f *fixture) add(values ...string) *outcome {
	return f.submit(func(*list, int64) (machine.Effects, error) { return machine.Effects{Records: records(values...)}, nil })
}

func records(values ...string) []machine.Record {
	rs := make([]machine.Record, len(values))
	for i, v := range values {
		rs[i] = value(v)
	}
	return rs
}

type outcome struct {
	mu       sync.Mutex
	done     bool
	err      error
	response any
}

func (o *outcome) set(response any, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		panic("an operation ends twice")
	}
	o.done, o.response, o.err = true, response, err
}

func (f *fixture) submit(op func(*list, int64) (machine.Effects, error)) *outcome {
	o := &outcome{}
	f.Submit(0, op, func(err error) { o.set(nil, err) })
	return o
}

// want waits until nothing moves, and checks that an operation has ended like this.
func (f *fixture) want(o *outcome, err error) {
	f.t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done {
		f.t.Fatal("the operation has not ended")
	}
	if !errors.Is(o.err, err) || (err == nil) != (o.err == nil) {
		f.t.Fatalf("the operation ended with %v, want %v", o.err, err)
	}
}

func (f *fixture) waits(o *outcome) {
	f.t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		f.t.Fatalf("the operation has ended: %v %v", o.response, o.err)
	}
}

func (f *fixture) values() (values []string) {
	f.t.Helper()
	if err := f.Each(f.t.Context(), func(_ int32, m *list) { values = slices.Clone(m.values) }); err != nil {
		f.t.Fatal(err)
	}
	return values
}

func (f *fixture) wantValues(want ...string) {
	f.t.Helper()
	if got := f.values(); !slices.Equal(got, want) {
		f.t.Fatalf("the machine has %q, want %q", got, want)
	}
}

// reopen loads the log anew, under the next epoch.
func (f *fixture) reopen(epoch record.LeaderEpoch) {
	f.t.Helper()
	f.Load(0, epoch, f.log)
	synctest.Wait()
}

func inBubble(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFixture(t)) })
}

func TestRuntime_EmptyLogServesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.want(f.add("lost"), kerr.NotCoordinator)
		f.Load(0, 1, f.log)
		a := f.add("a")
		f.want(a, nil)
		f.want(f.add("b", "c"), nil)
		f.wantValues("a", "b", "c")
		f.reopen(2)
		f.wantValues("a", "b", "c")
	})
}

func TestRuntime_QueuedOperationsShareABatch(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		f.log.gate = make(chan struct{})
		outcomes := []*outcome{f.add("first")}
		synctest.Wait()
		var want []string
		for i := range 100 {
			outcomes = append(outcomes, f.add(fmt.Sprint(i)))
			want = append(want, fmt.Sprint(i))
		}
		close(f.log.gate)
		for _, o := range outcomes {
			f.want(o, nil)
		}
		if f.log.batches != 2 {
			t.Errorf("%d batches, want 2", f.log.batches)
		}
		f.wantValues(append([]string{"first"}, want...)...)
	})
}

func TestRuntime_RepliesWaitForCommit(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		f.log.holdCommits = true
		write := f.add("a")
		read := f.submit(func(m *list, _ int64) (machine.Effects, error) { return machine.Effects{}, nil })
		refused := f.submit(func(m *list, _ int64) (machine.Effects, error) { return machine.Effects{}, kerr.IllegalGeneration })
		f.waits(write)
		f.waits(read)
		f.waits(refused)
		f.log.commit()
		f.want(write, nil)
		f.want(read, nil)
		f.want(refused, kerr.IllegalGeneration)

		// What is not committed in time.
		late := f.add("b")
		time.Sleep(4999 * time.Millisecond)
		f.waits(late)
		time.Sleep(time.Millisecond)
		f.want(late, kerr.RequestTimedOut)
		f.log.commit()
		f.wantValues("a", "b")
	})
}

func TestRuntime_FailedAppendStartsOverFromTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		f.want(f.add("a"), nil)
		f.log.fail = fmt.Errorf("append: %w", kerr.KafkaStorageError)
		parked := f.park()
		f.want(f.add("b"), kerr.KafkaStorageError)
		f.want(parked, kerr.KafkaStorageError)
		f.wantValues("a")
		f.want(f.add("c"), nil)
		f.log.fail = errors.New("something else")
		f.want(f.add("d"), kerr.UnknownServerError)
		f.wantValues("a", "c")
	})
}

// park submits a request that another operation has to answer.
func (f *fixture) park() *outcome {
	o := &outcome{}
	f.Park(0, func(m *list, _ int64, t machine.Token) (machine.Effects, error) {
		m.parked = t
		return machine.Effects{}, nil
	}, o.set)
	return o
}

func TestRuntime_ParkedRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		parked := f.park()
		f.waits(parked)
		time.Sleep(time.Hour)
		f.waits(parked)
		f.log.holdCommits = true
		answering := f.submit(func(m *list, _ int64) (machine.Effects, error) {
			return machine.Effects{Records: records("a"), Answers: []machine.Answer{{Token: m.parked, Response: "yes"}}}, nil
		})
		f.waits(parked)
		f.log.commit()
		f.want(parked, nil)
		f.want(answering, nil)
		if parked.response != "yes" {
			t.Errorf("response %v", parked.response)
		}

		refused := &outcome{}
		f.Park(0, func(*list, int64, machine.Token) (machine.Effects, error) {
			return machine.Effects{}, kerr.UnknownMemberID
		}, refused.set)
		f.want(refused, kerr.UnknownMemberID)

		unloaded := f.park()
		f.waits(unloaded)
		f.Unload(0, 1)
		f.want(unloaded, kerr.NotCoordinator)
		f.want(f.add("b"), kerr.NotCoordinator)
	})
}

func TestRuntime_Settled(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		var settled []error
		op := func(*list, int64) (machine.Effects, error) {
			return machine.Effects{Records: records("a"), Live: true, Settled: func(_ int64, err error) machine.Effects {
				settled = append(settled, err)
				return machine.Effects{Records: records("after a")}
			}}, nil
		}
		f.want(f.submit(op), nil)
		f.wantValues("after a") // "a" was live
		f.log.holdCommits = true
		f.wantAfter(f.submit(op), 5*time.Second, kerr.RequestTimedOut)
		if len(settled) != 2 || settled[0] != nil || !errors.Is(settled[1], kerr.RequestTimedOut) {
			t.Errorf("settled: %v", settled)
		}
		f.log.commit()
		f.reopen(2)
		f.wantValues("a", "after a", "a", "after a")
	})
}

// wantAfter is want after some time.
func (f *fixture) wantAfter(o *outcome, after time.Duration, err error) {
	f.t.Helper()
	time.Sleep(after)
	f.want(o, err)
}

func TestRuntime_BatchLimits(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.log.maxBatchBytes = 400
		f.Load(0, 1, f.log)
		long := string(make([]byte, 100))
		f.want(f.add(long, long, long, long), kerr.RecordListTooLarge)
		f.wantValues()
		splittable := f.submit(func(*list, int64) (machine.Effects, error) {
			return machine.Effects{Records: records(long, long, long, long, long), Splittable: true}, nil
		})
		f.want(splittable, nil)
		if f.log.batches != 2 {
			t.Errorf("%d batches, want 2", f.log.batches)
		}
		f.wantValues(long, long, long, long, long)

		// Operations that do not fit into one batch get one each, and are whole.
		f.log.gate = make(chan struct{})
		first := f.add("x")
		synctest.Wait()
		second, third := f.add(long, long), f.add(long, long)
		close(f.log.gate)
		f.want(first, nil)
		f.want(second, nil)
		f.want(third, nil)
		if f.log.batches != 5 {
			t.Errorf("%d batches, want 5", f.log.batches)
		}
	})
}

// A parked request is told that what it wants does not fit, and so are those that it would have answered: nobody else would.
func TestRuntime_ParkedRequestsBeyondTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.log.maxBatchBytes = 400
		f.Load(0, 1, f.log)
		tooMuch := records(string(make([]byte, 400)))
		waiting, asking := f.park(), &outcome{}
		f.Park(0, func(m *list, _ int64, t machine.Token) (machine.Effects, error) {
			return machine.Effects{Records: tooMuch, Answers: []machine.Answer{{Token: m.parked, Response: "yes"}}}, nil
		}, asking.set)
		f.want(asking, kerr.RecordListTooLarge)
		f.want(waiting, kerr.RecordListTooLarge)
		f.wantValues()
	})
}

func TestRuntime_Timers(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		set := func(after time.Duration) {
			f.want(f.submit(func(m *list, nowMs int64) (machine.Effects, error) {
				m.wakeMs = nowMs + after.Milliseconds()
				return machine.Effects{}, nil
			}), nil)
		}
		set(time.Second)
		time.Sleep(999 * time.Millisecond)
		f.wantValues()
		set(time.Second) // moved
		time.Sleep(999 * time.Millisecond)
		f.wantValues()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		f.wantValues("timer")
		set(time.Second)
		f.Unload(0, 1)
		time.Sleep(time.Minute)
		f.reopen(2)
		f.wantValues("timer")
	})
}

// A clock that is set, or a computer that slept, neither runs timers early nor late.
func TestRuntime_ClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{10 * time.Hour, -10 * time.Hour} {
		inBubble(t, func(t *testing.T, f *fixture) {
			f.Load(0, 1, f.log)
			f.want(f.submit(func(m *list, nowMs int64) (machine.Effects, error) {
				m.wakeMs = nowMs + 10_000
				return machine.Effects{}, nil
			}), nil)
			f.log.holdCommits = true
			late := f.add("a")
			f.waits(late)
			f.clockSet.Store(by.Milliseconds())
			f.waits(f.submit(func(*list, int64) (machine.Effects, error) { return machine.Effects{}, nil }))
			f.waits(late)
			f.wantAfter(late, 5*time.Second, kerr.RequestTimedOut)
			time.Sleep(4999 * time.Millisecond)
			f.wantValues("a")
			time.Sleep(time.Millisecond)
			synctest.Wait()
			f.wantValues("a", "timer")
		})
	}
}

// Past the bound of the queue an operation fails at once.
func TestRuntime_QueueIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		f.log.gate = make(chan struct{})
		first := f.add("first")
		synctest.Wait()
		nothing := func(*list, int64) (machine.Effects, error) { return machine.Effects{}, nil }
		done := 0
		for range maxQueued {
			f.Submit(0, nothing, func(err error) {
				if err == nil {
					done++
				}
			})
		}
		f.want(f.submit(nothing), kerr.CoordinatorNotAvailable)
		close(f.log.gate)
		f.want(first, nil)
		if done != maxQueued {
			t.Errorf("%d of %d operations done", done, maxQueued)
		}
	})
}

func TestRuntime_Loading(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		for i := range 10 {
			f.want(f.add(fmt.Sprint(i)), nil)
		}
		f.log.readGate = make(chan struct{})
		f.reopen(2)
		f.want(f.add("early"), kerr.CoordinatorLoadInProgress)
		f.want(f.park(), kerr.CoordinatorLoadInProgress)
		f.SubmitAll("all", func(*list, int64) (machine.Effects, error) { return machine.Effects{Records: records("deferred")}, nil })
		close(f.log.readGate)
		synctest.Wait()
		f.want(f.add("late"), nil)
		f.wantValues("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "deferred", "late")

		// The same or an earlier epoch changes nothing.
		parked := f.park()
		f.Load(0, 2, f.log)
		f.Load(0, 1, f.log)
		f.Unload(0, 1)
		f.waits(parked)
		f.reopen(3)
		f.want(parked, kerr.NotCoordinator)
	})
}

// Records that mean nothing or are damaged are skipped; transactions take effect with their markers.
func TestRuntime_LoadsWhatItCanRead(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		write := func(options record.BuilderOptions, records ...record.Record) {
			t.Helper()
			b, err := record.NewBuilder(options).Add(records...).Build()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.log.Append(b, record.Verification{}, time.Now().UnixMilli()); err != nil {
				t.Fatal(err)
			}
		}
		plain := record.BuilderOptions{ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}
		key := func(kind byte) []byte { return []byte{0, kind} }
		write(plain, record.Record{Key: key(1), Value: []byte("a")}, record.Record{Key: key(9), Value: []byte("unknown")},
			record.Record{Key: key(2), Value: []byte("damaged")}, record.Record{Key: key(1)})
		for id, commit := range map[record.ProducerID]bool{7: true, 8: false} {
			txn := record.BuilderOptions{ProducerID: id, ProducerEpoch: 1, BaseSequence: 0, Transactional: true}
			write(txn, record.Record{Key: key(1), Value: fmt.Appendf(nil, "of %d", id)})
			txn.Control, txn.BaseSequence = true, -1
			write(txn, record.ControlRecord(record.EndTxnMarker{Commit: commit}, 1))
		}
		f.reopen(1)
		f.wantValues("a", "")
		var committed []string
		f.Each(t.Context(), func(_ int32, m *list) { committed = m.committed })
		if !slices.Equal(committed, []string{"of 7"}) {
			t.Errorf("committed %q", committed)
		}
	})
}

// Whatever is acknowledged is there after a restart, in order, however operations, timers, commits and failures fall together.
func TestRuntime_NothingAcknowledgedIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		outcomes := map[string]*outcome{}
		for i := range 500 {
			v := fmt.Sprint(i)
			outcomes[v] = f.add(v)
			switch i % 50 {
			case 17:
				f.log.mu.Lock()
				f.log.fail = kerr.NotEnoughReplicas
				f.log.mu.Unlock()
			case 33:
				synctest.Wait()
			}
		}
		synctest.Wait()
		f.reopen(2)
		there := f.values()
		acknowledged := 0
		for v, o := range outcomes {
			if !o.done {
				t.Fatalf("%s has not ended", v)
			}
			if o.err == nil {
				acknowledged++
				if !slices.Contains(there, v) {
					t.Errorf("%s is lost", v)
				}
			}
		}
		if acknowledged == 0 || acknowledged == len(outcomes) {
			t.Errorf("%d of %d acknowledged: nothing failed, or everything", acknowledged, len(outcomes))
		}
		seen := map[string]bool{}
		for _, v := range there {
			if seen[v] {
				t.Errorf("%s is there twice", v)
			}
			seen[v] = true
		}
	})
}

// What a record takes in a batch is known to the byte, so that a batch may be as large as the topic allows and no larger.
func TestSizeOf(t *testing.T) {
	for _, valueBytes := range []int{-1, 0, 1, 50, 63, 64, 8000, 8191, 8192, 20_000} {
		for _, n := range []int{1, 63, 64, 65, 9000} {
			r := record.Record{TimestampMs: 5, Key: []byte("key")}
			if valueBytes >= 0 {
				r.Value = make([]byte, valueBytes)
			}
			b := newBuilder(0)
			for range n - 1 {
				b.Add(record.Record{TimestampMs: 5})
			}
			before := b.SizeBytes()
			if n == 1 {
				before = record.HeaderBytes
			}
			if got, want := sizeOf(r, n-1), b.Add(r).SizeBytes()-before; got != want {
				t.Errorf("value of %d bytes, record %d: %d bytes, want %d", valueBytes, n, got, want)
			}
		}
	}
}
