package api

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// The versions of Produce that matter to transactions.
const (
	firstProduceAbortable = 11 // with TRANSACTION_ABORTABLE
	firstProduceV2        = 12 // of version 2 of transactions: partitions join with the first write
)

// transactional appends the batches of transactions that the request has. Where a partition has none open, the producer's coordinator is asked
// first; the next request of the connection does not wait for that, the producer's next write does.
func (p *produceCall) transactional() Reply {
	h := p.handlers
	producer := producerOf(p.held[0].batch)
	v2 := p.context.Version >= firstProduceV2
	var asks []*joining
	blocks := false
	for i := range p.held {
		w := &p.held[i]
		w.verification = h.verification(v2, record.NoOffset)
		switch {
		case producerOf(w.batch) != producer:
			w.err = kerr.InvalidProducerIDMapping
			continue
		case isInternalTopic(w.topic):
			w.err = kerr.InvalidTopicException
			continue
		}
		open, asOf, err := w.replica.OpenTransaction(w.batch.ProducerID(), w.batch.ProducerEpoch())
		switch {
		case err != nil:
			w.err = err
		case !open && w.verification.Required:
			w.verification.AsOf = asOf
			w.joining = joining{topic: w.topic, partition: w.answer.Partition}
			asks = append(asks, &w.joining)
		}
		blocks = blocks || w.replica.FlushesFirst()
	}
	if len(asks) == 0 && !h.lanes.busy(producer.ID) {
		p.writeHeld()
		if p.waits() {
			return p.park()
		}
		return p.reply()
	}
	p.context.Request.Retain() // the batches are used later, perhaps when the connection is gone
	reply, complete := p.context.PendingReply()
	h.lanes.enter(producer.ID)
	h.joinPatiently(*p.request.TransactionID, producer, asks, v2, func(err error) {
		h.lanes.goOn(producer.ID, blocks, func() {
			for i := range p.held {
				w := &p.held[i]
				if w.joining.topic == "" {
					continue // needs nobody's consent
				}
				if w.joining.err != nil {
					w.err = w.joining.err
				}
				if err != nil {
					w.err = err
				}
				w.err = p.joinError(w.err)
			}
			p.writeHeld()
			if p.waits() {
				p.complete = func() { complete(Respond(p.response)) }
				p.wait()
				return
			}
			complete(p.reply())
		})
	})
	return reply
}

func producerOf(b record.Batch) machine.Producer {
	return machine.Producer{ID: int64(b.ProducerID()), Epoch: int16(b.ProducerEpoch())}
}

func (p *produceCall) writeHeld() {
	for i := range p.held {
		w := &p.held[i]
		if w.err != nil {
			p.fail(w.answer, nil, w.err)
			w.traffic.ProduceFailed()
			continue
		}
		p.write(w)
	}
}

// joinError is what Produce says of a coordinator's refusal. What will pass is told as NOT_ENOUGH_REPLICAS, on which every client tries again
// without asking for metadata first.
func (p *produceCall) joinError(err error) error {
	err = joinError(err, p.context.Version >= firstProduceAbortable)
	switch {
	case errors.Is(err, kerr.CoordinatorNotAvailable), errors.Is(err, kerr.CoordinatorLoadInProgress), errors.Is(err, kerr.NotCoordinator):
		return kerr.NotEnoughReplicas
	case errors.Is(err, kerr.ConcurrentTransactions) && p.context.Version < firstProduceV2:
		return kerr.NotEnoughReplicas
	}
	return err
}

// joinPatiently is join that tries again for a while when the producer's last transaction still ends, as it must not know of that in version 2.
func (h *Handlers) joinPatiently(transactionalID string, p machine.Producer, asks []*joining, v2 bool, done func(error)) {
	cfg := h.Config()
	giveUpMs := h.NowMs() + cfg.AddPartitionsToTxnRetryBackoffMaxMs
	var try func()
	try = func() {
		h.join(transactionalID, p, asks, v2, func(err error) {
			if v2 && errors.Is(err, kerr.ConcurrentTransactions) && h.NowMs() < giveUpMs {
				time.AfterFunc(time.Duration(cfg.AddPartitionsToTxnRetryBackoffMs)*time.Millisecond, try)
				return
			}
			done(err)
		})
	}
	try()
}
