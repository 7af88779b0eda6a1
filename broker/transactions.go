package broker

import (
	"sync/atomic"

	"go.uber.org/zap"

	"sluice/broker/api"
	"sluice/broker/coordinator"
	"sluice/broker/coordinator/machine"
	"sluice/broker/coordinator/txn"
	"sluice/protocol/record"
	"sluice/replication/replica"
)

// transactionWriteTimeoutMs is how long a reply waits for its record to be committed, as long as a client's request does by default.
const transactionWriteTimeoutMs = 30_000

// transactions is the transaction coordinator of this node.
type transactions struct {
	*coordinator.Runtime[*txn.Machine]
	leads    *leadership
	markers  *api.MarkerWriter
	handlers atomic.Pointer[api.Handlers] // who gives out producer ids; nil until the broker serves
	log      *zap.Logger
}

func newTransactions(s *settings, replicas *replica.Set, markers *api.MarkerWriter, nowMs func() int64, log *zap.Logger) *transactions {
	t := &transactions{markers: markers, log: log}
	machineConfig := func() *txn.Config {
		b := s.broker.Load()
		return &txn.Config{
			MaxTimeoutMs:        b.TransactionMaxTimeoutMs,
			IDExpirationMs:      b.TransactionalIDExpirationMs,
			IDExpirationCheckMs: b.TransactionalIDExpirationIntervalMs,
			Version:             markers.Image().FeatureLevel(featureTransactionVersion),
		}
	}
	t.Runtime = coordinator.New(coordinator.Options[*txn.Machine]{
		Topic: txn.Topic,
		New: func(partition int32) *txn.Machine {
			return txn.New(machineConfig, &transactionsOutside{transactions: t, partition: partition, epoch: t.leads.epoch(partition)})
		},
		NowMs:          nowMs,
		WriteTimeoutMs: func() int64 { return transactionWriteTimeoutMs },
		LoadBytes:      s.started.TransactionStateLogLoadBufferSize,
		BaseSequence:   record.NoSequence,
		Inline:         true,
		Log:            log,
	})
	t.leads = newLeadership(txn.Topic, t.Runtime, s, replicas, log)
	return t
}

func (t *transactions) close() error {
	t.Close()
	return nil
}

// transactionsOutside is what the machine of one partition sees of the broker.
type transactionsOutside struct {
	*transactions
	partition int32
	epoch     record.LeaderEpoch // under which the partition was loaded
}

var _ txn.Outside = (*transactionsOutside)(nil)

// WriteMarkers implements txn.Outside.
func (o *transactionsOutside) WriteMarkers(markers txn.Markers) {
	o.markers.CarryOut(markers, o.epoch, func(left txn.Partitions) {
		o.Submit(o.partition, func(m *txn.Machine, nowMs int64) (machine.Effects, error) {
			return m.MarkersWritten(nowMs, markers.TransactionalID, markers.Attempt, left), nil
		}, o.logFailure("the end of a transaction", markers.TransactionalID))
	})
}

// FetchProducerID implements txn.Outside. Until the broker serves nothing comes back, and the machine asks again.
func (o *transactionsOutside) FetchProducerID(transactionalID string) {
	handlers := o.handlers.Load()
	if handlers == nil {
		return
	}
	handlers.ProducerID(func(id int64, err error) {
		if err != nil {
			return // the reason is logged where ids come from
		}
		o.Submit(o.partition, func(m *txn.Machine, nowMs int64) (machine.Effects, error) {
			return m.AbortTimedOut(nowMs, transactionalID, id)
		}, o.logFailure("the abort of a transaction that timed out", transactionalID))
	})
}

// logFailure tells of an operation that failed with the log, or with the leadership. Who loads the log next carries on.
func (o *transactionsOutside) logFailure(what, transactionalID string) func(error) {
	return func(err error) {
		if err != nil {
			o.log.Warn(what+" is put off", zap.String("transactionalId", transactionalID), zap.Int32("partition", o.partition), zap.Error(err))
		}
	}
}
