package coordinator

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

type eventKind uint8

const (
	opEvent         eventKind = iota // run op, reply to done
	endEvent                         // end a transaction, reply to done
	parkEvent                        // run parkOp, reply to parked when an answer comes
	deferrableEvent                  // an opEvent that waits for the end of loading
	lookEvent                        // show the machine to look
	loadedEvent                      // loading has come to an end
	closeEvent                       // unload
)

type event[M Machine] struct {
	kind   eventKind
	op     func(m M, nowMs int64) (machine.Effects, error)
	end    EndTransaction
	parkOp func(m M, nowMs int64, t machine.Token) (machine.Effects, error)
	done   func(error)
	parked func(any, error)
	look   func(M)
	looked func()
	loaded loaded[M]
}

// fail tells an event that it will not happen.
func (e *event[M]) fail(err error) {
	switch e.kind {
	case opEvent, endEvent, deferrableEvent:
		e.done(err)
	case parkEvent:
		e.parked(nil, err)
	case lookEvent:
		e.looked()
	}
}

type shardState uint8

const (
	stateLoading shardState = iota
	stateActive
	stateFailed // loading failed: not the coordinator, until a later epoch
	stateClosed
)

// A shard is the actor of one partition. Its fields below the mailbox belong to the goroutine that runs it.
type shard[M Machine] struct {
	rt        *Runtime[M]
	partition int32
	epoch     record.LeaderEpoch
	log       Log
	logger    *zap.Logger

	mailbox struct {
		sync.Mutex
		queue   []event[M]
		woken   bool // look at the clock and the high watermark, even though nothing is queued
		running bool
		closed  bool // closeEvent is the last one
	}
	highWatermark atomic.Int64
	closed        chan struct{} // closed when the shard has done its last

	state    shardState
	machine  M
	next     int64 // the offset that the next record gets, those in the batch counted
	batch    batch
	waiting  waiting
	requests map[machine.Token]func(any, error) // parked, until an Answer decides them
	token    machine.Token                      // the last one given out
	deferred []event[M]                         // until loaded
	unwatch  func()

	timer   *time.Timer
	fired   atomic.Bool // the timer has, since it was set
	armedMs int64       // when timer wakes the shard; 0: not set
	driftMs int64       // of the wall clock from the monotonic one, as the deadlines take it
}

func newShard[M Machine](rt *Runtime[M], partition int32, epoch record.LeaderEpoch, log Log) *shard[M] {
	s := &shard[M]{
		rt:        rt,
		partition: partition,
		epoch:     epoch,
		log:       log,
		logger:    rt.options.Log.With(zap.String("topic", rt.options.Topic), zap.Int32("partition", partition), zap.Int32("leaderEpoch", int32(epoch))),
		requests:  map[machine.Token]func(any, error){},
		closed:    make(chan struct{}),
	}
	s.unwatch = log.Watch(func(highWatermark int64) {
		s.raiseHighWatermark(highWatermark)
		s.wake()
	})
	_, _, highWatermark := log.Offsets()
	s.raiseHighWatermark(highWatermark)
	return s
}

// clock reads the wall clock. When it was set, all deadlines move along.
func (s *shard[M]) clock() (nowMs int64) {
	nowMs = s.rt.options.NowMs()
	moved := nowMs - time.Since(s.rt.started).Milliseconds() - s.driftMs
	if -maxDriftMs <= moved && moved <= maxDriftMs {
		return nowMs
	}
	s.driftMs += moved
	s.armedMs = 0
	s.waiting.shift(moved)
	if s.state == stateActive {
		s.machine.ClockMoved(moved)
	}
	return nowMs
}

func (s *shard[M]) raiseHighWatermark(to int64) {
	for {
		at := s.highWatermark.Load()
		if to <= at || s.highWatermark.CompareAndSwap(at, to) {
			return
		}
	}
}

// post queues an event and sees to it that the shard runs; false when the shard is closed.
func (s *shard[M]) post(e event[M]) bool {
	box := &s.mailbox
	box.Lock()
	if box.closed {
		box.Unlock()
		return false
	}
	if len(box.queue) >= maxQueued && (e.kind == opEvent || e.kind == endEvent || e.kind == parkEvent) {
		box.Unlock()
		e.fail(kerr.CoordinatorNotAvailable)
		return true
	}
	box.queue = append(box.queue, e)
	box.closed = e.kind == closeEvent
	start := !box.running
	box.running = true
	box.Unlock()
	switch {
	case !start:
	case s.rt.options.Inline && (e.kind == opEvent || e.kind == endEvent || e.kind == parkEvent):
		s.run(inlineTurns)
	default:
		go s.run(noLimit)
	}
	return true
}

// wake has the shard look at the clock and the high watermark.
func (s *shard[M]) wake() {
	box := &s.mailbox
	box.Lock()
	start := !box.running
	box.running, box.woken = true, true
	box.Unlock()
	if start {
		go s.run(noLimit)
	}
}

// How often a goroutine takes what is queued.
const (
	noLimit     = -1
	inlineTurns = 4 // as many as the end of a transaction takes: decision, markers, completion, and a look that nothing is left
)

// run handles what is queued until nothing is, or leaves the rest to another goroutine after so many turns.
func (s *shard[M]) run(turns int) {
	box := &s.mailbox
	var spare []event[M]
	for ; ; turns-- {
		if turns == 0 {
			go s.run(noLimit)
			return
		}
		box.Lock()
		if len(box.queue) == 0 && !box.woken {
			box.running = false
			box.Unlock()
			return
		}
		events := box.queue
		box.queue, box.woken = spare, false
		box.Unlock()

		nowMs := s.clock()
		for i := range events {
			s.handle(&events[i], nowMs)
		}
		s.advance(nowMs)
		clear(events)
		spare = events[:0]
		if cap(spare) > 64 {
			spare = nil // a burst is over
		}
	}
}

func (s *shard[M]) handle(e *event[M], nowMs int64) {
	switch {
	case e.kind == closeEvent:
		s.close()
	case e.kind == loadedEvent:
		s.finishLoad(e.loaded, nowMs)
	case s.state == stateActive:
		s.perform(e, nowMs)
	case s.state == stateLoading && e.kind == deferrableEvent:
		s.deferred = append(s.deferred, *e)
	case s.state == stateLoading:
		e.fail(kerr.CoordinatorLoadInProgress)
	default:
		e.fail(kerr.NotCoordinator)
	}
}

func (s *shard[M]) perform(e *event[M], nowMs int64) {
	switch e.kind {
	case lookEvent:
		e.look(s.machine)
		e.looked()
	case endEvent:
		s.endTransaction(e.end, e.done, nowMs)
	case parkEvent:
		s.token++
		t := s.token
		s.requests[t] = e.parked
		effects, err := e.parkOp(s.machine, nowMs, t)
		if err != nil {
			s.answer(t, nil, err)
		}
		if err := s.stage(effects, nil, nowMs); err != nil {
			s.answer(t, nil, err)
		}
	default:
		effects, err := e.op(s.machine, nowMs)
		if err != nil {
			done := e.done
			e.done = func(failure error) {
				if failure != nil {
					err = failure
				}
				done(err)
			}
		}
		_ = s.stage(effects, e.done, nowMs) // done is told
	}
}

// answer decides a parked request. One that nobody waits for any more is no matter.
func (s *shard[M]) answer(t machine.Token, response any, err error) {
	if done := s.requests[t]; done != nil {
		delete(s.requests, t)
		done(response, err)
	}
}

// advance runs timers that are due, writes the batch, and replies to what is committed, until nothing of that is left to do.
func (s *shard[M]) advance(nowMs int64) {
	for s.state == stateActive {
		effects, due := s.machine.Expire(nowMs)
		if !due {
			break
		}
		s.stageOwn(effects, nowMs)
	}
	for {
		s.flush(nowMs)
		if !s.settle(nowMs) {
			break
		}
	}
	s.arm(nowMs)
}

// arm sets the timer to the next thing that time brings.
func (s *shard[M]) arm(nowMs int64) {
	var atMs int64
	if s.state == stateActive {
		atMs, _ = s.machine.Deadline()
		if deadlineMs, ok := s.waiting.deadline(); ok && (atMs == 0 || deadlineMs < atMs) {
			atMs = deadlineMs
		}
	}
	if s.fired.Swap(false) {
		s.armedMs = 0 // by whatever clock: what is not due by ours yet needs it again
	}
	if atMs == s.armedMs {
		return
	}
	s.armedMs = atMs
	delay := time.Duration(max(atMs-nowMs, 0)) * time.Millisecond
	switch {
	case atMs == 0:
		s.timer.Stop()
	case s.timer == nil:
		s.timer = time.AfterFunc(delay, func() {
			s.fired.Store(true)
			s.wake()
		})
	default:
		s.timer.Reset(delay)
	}
}

// drop fails all that waits and forgets the machine.
func (s *shard[M]) drop(err error) {
	s.batch.reset()
	for {
		w, ok := s.waiting.pop()
		if !ok {
			break
		}
		if w.done != nil {
			w.done(err)
		}
	}
	for t := range s.requests {
		s.answer(t, nil, err)
	}
	var none M
	s.machine = none
}

func (s *shard[M]) close() {
	s.state = stateClosed
	s.unwatch()
	s.drop(kerr.NotCoordinator)
	for i := range s.deferred {
		s.deferred[i].fail(kerr.NotCoordinator)
	}
	s.deferred = nil
	close(s.closed)
}
