package coordinator

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// A loaded is the outcome of reading the log.
type loaded[M Machine] struct {
	machine M
	next    int64 // the log end offset
	records int
	took    time.Duration
	err     error
}

// load reads the log in a goroutine of its own, as that may take a while; an empty log at once.
func (s *shard[M]) load() {
	start, end, _ := s.log.Offsets()
	if start >= end {
		s.post(event[M]{kind: loadedEvent, loaded: loaded[M]{machine: s.rt.options.New(s.partition), next: end}})
		return
	}
	go func() {
		s.rt.loads <- struct{}{}
		defer func() { <-s.rt.loads }()
		began := time.Now()
		l := s.readLog()
		l.took = time.Since(began)
		s.post(event[M]{kind: loadedEvent, loaded: l})
	}()
}

// readLog replays the whole log into a new machine.
func (s *shard[M]) readLog() loaded[M] {
	l := loaded[M]{machine: s.rt.options.New(s.partition)}
	start, end, _ := s.log.Offsets()
	for l.next = start; l.next < end; _, end, _ = s.log.Offsets() {
		b, err := s.log.Read(l.next, s.rt.options.LoadBytes)
		if err == nil && len(b) == 0 {
			err = errors.New("no batch there")
		}
		if err != nil {
			l.err = fmt.Errorf("read at offset %d of %d: %w", l.next, end, err)
			return l
		}
		from := l.next
		for len(b) > 0 {
			first, rest, err := record.Split(b)
			if corrupt, ok := errors.AsType[*record.Corrupt](err); ok && corrupt.Incomplete && l.next > from {
				break // it comes whole with the next read
			}
			if err == nil && !first.ValidCRC() {
				err = errors.New("checksum does not match")
			}
			if err == nil {
				err = s.replay(&l, first)
			}
			if err != nil {
				l.err = fmt.Errorf("batch at offset %d: %w", l.next, err)
				return l
			}
			l.next = max(l.next, first.NextOffset())
			b = rest
		}
	}
	return l
}

func (s *shard[M]) replay(l *loaded[M], b record.Batch) error {
	producer := machine.Producer{ID: int64(b.ProducerID()), Epoch: int16(b.ProducerEpoch())}
	for r, err := range b.Records(maxLoadedBatch) {
		if err != nil {
			return err
		}
		if r.Offset < l.next {
			continue // before the offset that was asked for
		}
		l.records++
		if b.IsControl() {
			if err := replayControl(l.machine, producer, r); err != nil {
				return err
			}
			continue
		}
		parsed, err := l.machine.Parse(r.Key, r.Value)
		switch {
		case errors.Is(err, machine.ErrUnknownRecord):
			s.logger.Warn("skipped a record of an unknown type, perhaps of a newer version", zap.Int64("offset", r.Offset), zap.Error(err))
		case err != nil:
			// Kafka refuses to load the partition then. All its groups would be out of service for one that is lost either way.
			s.logger.Error("skipped a record that cannot be read", zap.Int64("offset", r.Offset), zap.Error(err))
		default:
			l.machine.Replay(r.Offset, producer, parsed)
		}
	}
	return nil
}

// replayControl applies the end marker of a transaction; other control records mean nothing to a coordinator.
func replayControl[M Machine](m M, p machine.Producer, r record.Record) error {
	c, err := record.ParseControl(r)
	if err != nil {
		return err
	}
	if marker, ok := c.(record.EndTxnMarker); ok {
		m.ReplayEndTxn(p, marker.Commit)
	}
	return nil
}

// finishLoad puts the machine into service.
func (s *shard[M]) finishLoad(l loaded[M], nowMs int64) {
	if s.state != stateLoading {
		return
	}
	if l.err != nil {
		s.state = stateFailed
		s.logger.Error("cannot load the coordinator's state; its groups are out of service", zap.Error(l.err))
	} else {
		s.state, s.machine, s.next = stateActive, l.machine, l.next
		if l.records > 0 {
			s.logger.Info("loaded the coordinator's state", zap.Int("records", l.records), zap.Duration("took", l.took))
		}
		s.stageOwn(s.machine.Loaded(nowMs), nowMs)
	}
	waited := s.deferred
	s.deferred = nil
	for i := range waited {
		s.handle(&waited[i], nowMs)
	}
}
