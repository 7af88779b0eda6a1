package coordinator

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// A batch collects the records of operations until they are written together.
type batch struct {
	builder *record.Builder // nil: empty
	scratch []byte
}

func (b *batch) reset() { b.builder = nil }

// newBuilder starts a batch with the header that Kafka's coordinators give theirs: no producer, but perhaps sequence numbers.
func newBuilder(baseSequence int32) *record.Builder {
	return record.NewBuilder(record.BuilderOptions{
		ProducerID:    record.NoProducerID,
		ProducerEpoch: record.NoProducerEpoch,
		BaseSequence:  baseSequence,
		LeaderEpoch:   record.NoLeaderEpoch,
	})
}

// encode returns a record as the batch takes it. Its slices are good until the next call.
func (b *batch) encode(r machine.Record, nowMs int64) record.Record {
	buf := r.AppendKey(b.scratch[:0])
	keyBytes := len(buf)
	buf, tombstone := r.AppendValue(buf)
	b.scratch = buf
	encoded := record.Record{TimestampMs: nowMs, Key: buf[:keyBytes:keyBytes]}
	if !tombstone {
		encoded.Value = buf[keyBytes:]
	}
	return encoded
}

// sizeOf is what a record takes in a batch of which it is at most the n-th. All records of a batch have the same timestamp.
func sizeOf(r record.Record, n int) int {
	value := varintLen(-1)
	if r.Value != nil {
		value = varintLen(len(r.Value)) + len(r.Value)
	}
	// Attributes, timestamp delta, offset delta, key, value, number of headers.
	body := 1 + 1 + varintLen(n) + varintLen(len(r.Key)) + len(r.Key) + value + 1
	return varintLen(body) + body
}

// varintLen is the size of a number in a record: seven bits a byte, the sign lowest.
func varintLen(n int) int { return (bits.Len64(uint64(n<<1)^uint64(n>>63)|1) + 6) / 7 }

// A waiter is what happens when everything below an offset is committed.
type waiter struct {
	end        int64 // exclusive
	deadlineMs int64
	done       func(error) // may be nil
	answers    []machine.Answer
	settled    func(nowMs int64, err error) machine.Effects
}

// waiting holds waiters in the order in which they came: offsets and deadlines rise.
type waiting struct {
	list []waiter
	head int
}

func (w *waiting) push(x waiter) { w.list = append(w.list, x) }

func (w *waiting) first() *waiter {
	if w.head == len(w.list) {
		return nil
	}
	return &w.list[w.head]
}

func (w *waiting) pop() (waiter, bool) {
	if w.head == len(w.list) {
		return waiter{}, false
	}
	x := w.list[w.head]
	w.list[w.head] = waiter{}
	if w.head++; w.head == len(w.list) {
		w.list, w.head = w.list[:0], 0
	}
	return x, true
}

func (w *waiting) deadline() (atMs int64, ok bool) {
	if x := w.first(); x != nil {
		return x.deadlineMs, true
	}
	return 0, false
}

// shift moves all deadlines.
func (w *waiting) shift(byMs int64) {
	for i := w.head; i < len(w.list); i++ {
		w.list[i].deadlineMs += byMs
	}
}

// errOutOfStep means that somebody else has written to the partition.
var errOutOfStep = errors.New("the log does not end where the coordinator left it")

// stage puts the records of an operation into the batch and replays them; its reply waits for them, and for all before them. An error means
// that nothing has happened; done and those whom the operation would have answered have been told.
func (s *shard[M]) stage(e machine.Effects, done func(error), nowMs int64) error {
	err := error(kerr.NotCoordinator)
	if s.state == stateActive {
		err = s.collect(e, nowMs)
	}
	if err != nil {
		for _, a := range e.Answers {
			s.answer(a.Token, nil, err)
		}
		if done != nil {
			done(err)
		}
		return err
	}
	if done == nil && len(e.Answers) == 0 && e.Settled == nil {
		return nil
	}
	s.waiting.push(waiter{
		end:        s.next,
		deadlineMs: nowMs + s.rt.options.WriteTimeoutMs(),
		done:       done,
		answers:    e.Answers,
		settled:    e.Settled,
	})
	return nil
}

// stageOwn is stage for what nobody has asked for: what follows from loading, from time or from a commit.
func (s *shard[M]) stageOwn(e machine.Effects, nowMs int64) {
	if err := s.stage(e, nil, nowMs); err != nil && s.state == stateActive {
		s.logger.Error("what the coordinator does by itself could not be written", zap.Int("records", len(e.Records)), zap.Error(err))
	}
}

// collect puts records into the batch, which it writes first where they do not fit. An error means that nothing has happened, or that
// the machine had to be dropped.
func (s *shard[M]) collect(e machine.Effects, nowMs int64) error {
	if len(e.Records) == 0 {
		return nil
	}
	if e.Transaction != nil {
		return s.collectTransactional(e, nowMs)
	}
	limit := s.log.MaxBatchBytes()
	if !e.Splittable {
		total, count := 0, 0
		if s.batch.builder != nil {
			count = s.batch.builder.Count()
		}
		for i, r := range e.Records {
			total += sizeOf(s.batch.encode(r, nowMs), count+i)
		}
		if record.HeaderBytes+total > limit {
			if e.Live {
				// The machine is ahead of the log already.
				s.reload(fmt.Errorf("records of %d bytes, %d are the limit", total, limit), kerr.UnknownServerError)
			}
			return kerr.RecordListTooLarge
		}
		if s.batch.builder != nil && s.batch.builder.SizeBytes()+total > limit {
			if s.flush(nowMs); s.state != stateActive {
				return kerr.NotCoordinator
			}
		}
	}
	for _, r := range e.Records {
		encoded := s.batch.encode(r, nowMs)
		if e.Splittable && s.batch.builder != nil && s.batch.builder.SizeBytes()+sizeOf(encoded, s.batch.builder.Count()) > limit {
			if s.flush(nowMs); s.state != stateActive {
				return kerr.NotCoordinator
			}
		}
		if s.batch.builder == nil {
			s.batch.builder = newBuilder(s.rt.options.BaseSequence)
		}
		s.batch.builder.Add(encoded)
		if !e.Live {
			s.machine.Replay(s.next, machine.NoProducer, r)
		}
		s.next++
	}
	return nil
}

// flush writes the batch. When that fails, the machine is ahead of the log, and is loaded anew.
func (s *shard[M]) flush(nowMs int64) {
	if s.batch.builder == nil {
		return
	}
	b, err := s.batch.builder.Build()
	s.batch.reset()
	if err == nil {
		var last int64
		if last, err = s.log.Append(b, record.Verification{}, nowMs); err == nil && last != s.next-1 {
			err = fmt.Errorf("%w: last offset %d, expected %d", errOutOfStep, last, s.next-1)
		}
	}
	if err != nil {
		code := kerr.UnknownServerError
		if e, ok := errors.AsType[*kerr.Error](err); ok {
			code = e
		}
		s.reload(err, code)
	}
}

// reload gives up the machine, tells all that wait why, and starts over from the log.
func (s *shard[M]) reload(why error, tell *kerr.Error) {
	s.logger.Warn("write to the coordinator's log failed, loading it again", zap.Error(why))
	s.drop(tell)
	s.state = stateLoading
	s.load()
}

// settle replies to what is committed, or has waited for it too long. It reports whether more has to be written for that.
func (s *shard[M]) settle(nowMs int64) (wrote bool) {
	for s.state == stateActive {
		w := s.waiting.first()
		if w == nil {
			break
		}
		var err error
		if w.end > s.highWatermark.Load() {
			if w.deadlineMs > nowMs {
				break
			}
			err = kerr.RequestTimedOut
		}
		committed, _ := s.waiting.pop()
		if committed.done != nil {
			committed.done(err)
		}
		for _, a := range committed.answers {
			if err != nil {
				s.answer(a.Token, nil, err)
			} else {
				s.answer(a.Token, a.Response, nil)
			}
		}
		if committed.settled != nil {
			s.stageOwn(committed.settled(nowMs, err), nowMs)
		}
	}
	return s.batch.builder != nil
}
