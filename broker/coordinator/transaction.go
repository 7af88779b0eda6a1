package coordinator

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// collectTransactional appends records of a transaction, which share a batch with nobody, and replays them. An error means that nothing has
// happened, or that the machine had to be dropped.
func (s *shard[M]) collectTransactional(e machine.Effects, nowMs int64) error {
	p := e.Transaction.Producer
	builder := record.NewBuilder(record.BuilderOptions{
		ProducerID:    record.ProducerID(p.ID),
		ProducerEpoch: record.ProducerEpoch(p.Epoch),
		BaseSequence:  s.rt.options.BaseSequence,
		Transactional: true,
		LeaderEpoch:   record.NoLeaderEpoch,
	})
	for _, r := range e.Records {
		builder.Add(s.batch.encode(r, nowMs))
	}
	b, err := builder.Build()
	if err != nil {
		return err
	}
	if len(b) > s.log.MaxBatchBytes() {
		return kerr.RecordListTooLarge
	}
	if s.flush(nowMs); s.state != stateActive {
		return kerr.NotCoordinator
	}
	last, err := s.log.Append(b, e.Transaction.Verification, nowMs)
	if err != nil {
		return err
	}
	if err := s.follow(last, len(e.Records)); err != nil {
		return err
	}
	for i, r := range e.Records {
		s.machine.Replay(last-int64(len(e.Records)-1-i), p, r)
	}
	return nil
}

// follow takes note of records that were appended outside the shared batch.
func (s *shard[M]) follow(last int64, records int) error {
	s.next += int64(records)
	if last != s.next-1 {
		s.reload(fmt.Errorf("%w: last offset %d, expected %d", errOutOfStep, last, s.next-1), kerr.UnknownServerError)
		return kerr.NotCoordinator
	}
	return nil
}

// endTransaction appends an end marker and applies it.
func (s *shard[M]) endTransaction(e EndTransaction, done func(error), nowMs int64) {
	if s.flush(nowMs); s.state != stateActive {
		done(kerr.NotCoordinator)
		return
	}
	b, err := record.EndTxnBatch(record.ProducerID(e.Producer.ID), record.ProducerEpoch(e.Producer.Epoch),
		record.EndTxnMarker{Commit: e.Commit, CoordinatorEpoch: e.CoordinatorEpoch}, nowMs)
	var last int64
	if err == nil {
		last, err = s.log.AppendMarker(b, e.Version, nowMs)
	}
	if err == nil {
		err = s.follow(last, 1)
	}
	if err != nil {
		done(err)
		return
	}
	s.machine.ReplayEndTxn(e.Producer, e.Commit)
	_ = s.stage(machine.Effects{}, done, nowMs) // done is told
}
