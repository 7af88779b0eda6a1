package controller

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"sluice/internal/assert"
	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/replication/metadata"
	"sluice/replication/quorum"
	"sluice/storage/partlog"
)

// commit runs a group of tasks one after the other, appends what they want as few batches, with one fsync, and answers all of them once
// that is committed and published. The error is of the log; those of the tasks are in the tasks.
func (c *Controller) commit(group []*task) error {
	for len(group) > 0 {
		var err error
		if group, err = c.commitSome(group); err != nil {
			return err
		}
	}
	return nil
}

// commitSome commits the first tasks of the group, as many as fit one batch, and returns the others.
func (c *Controller) commitSome(group []*task) (rest []*task, err error) {
	nowMs := c.options.NowMs()
	c.core.Tick(nowMs)
	batch := newBatchBuilder(nowMs)
	n, last := 0, false
	for n < len(group) && !last && batch.bytes < maxGroupBytes {
		t := group[n]
		result, err := c.machine.Plan(t.op, nowMs)
		if err != nil {
			t.err = err
			n++
			continue
		}
		values := encodeValues(result.Records, c.machine.MetadataVersion())
		switch {
		case batch.fits(values):
			batch.add(values)
		case batch.count > 0:
			last = true // it gets the next batch to itself
			continue
		case result.Splittable:
			last = true
			if batch, err = c.appendSplit(batch, values); err != nil {
				return nil, err
			}
		default:
			t.err = errTooLarge
			n++
			continue
		}
		c.machine.Accept(result)
		t.response = result.Response
		n++
	}
	if err := c.appendBatch(batch); err != nil {
		return nil, err
	}
	assert.That(c.core.HighWatermark() == c.machine.NextOffset(), "high watermark %d, next offset %d", c.core.HighWatermark(), c.machine.NextOffset())
	for _, t := range group[:n] {
		close(t.done)
	}
	return group[n:], nil
}

// errTooLarge refuses an operation that no batch can hold, as Kafka's controller does.
var errTooLarge = &metadata.Error{Code: kerr.PolicyViolation.Code, Message: "Unable to perform excessively large batch operation."}

// appendSplit proposes all but the last part of values and returns the batch with that part. Nothing is made durable by it.
func (c *Controller) appendSplit(batch *batchBuilder, values [][]byte) (*batchBuilder, error) {
	for len(values) > 0 {
		n := 0
		for n < len(values) && n < maxBatchRecords && batch.fits(values[n:n+1]) {
			batch.add(values[n : n+1])
			n++
		}
		assert.That(n > 0, "a record of %d bytes does not fit a batch", len(values[0]))
		if values = values[n:]; len(values) > 0 {
			if err := c.propose(batch); err != nil {
				return nil, err
			}
			batch = newBatchBuilder(batch.nowMs)
		}
	}
	return batch, nil
}

func (c *Controller) propose(batch *batchBuilder) error {
	if _, err := c.core.Propose(c.core.Epoch(), int64(batch.count), batch); err != nil {
		return fmt.Errorf("%w: %w", ErrNotController, err)
	}
	return nil
}

// appendBatch appends and commits the batch together with those that have been proposed before.
func (c *Controller) appendBatch(batch *batchBuilder) error {
	if batch.count == 0 {
		return nil
	}
	if err := c.propose(batch); err != nil {
		return err
	}
	return c.advance()
}

// advance does what the quorum core has decided on, in the order that it demands, until there is nothing more.
func (c *Controller) advance() error {
	for {
		r := c.core.Ready()
		if r.Empty() {
			return nil
		}
		if r.State != nil {
			if err := writeQuorumState(c.options.FS, c.dir, *r.State, c.options.Voters); err != nil {
				return &Fault{err}
			}
		}
		assert.That(r.TruncateTo < 0 && len(r.Messages) == 0, "a quorum of one truncates to %d and sends %v", r.TruncateTo, r.Messages)
		if r.Leadership != nil {
			c.leading = *r.Leadership
			c.log.Info("metadata quorum", zap.Stringer("role", c.leading.Role), zap.Int32("epoch", int32(c.leading.Epoch)), zap.Int32("leader", int32(c.leading.LeaderID)))
		}
		if err := c.appendAll(r.Append); err != nil {
			return &Fault{err}
		}
		if r.HighWatermarkMoved {
			c.publish()
		}
	}
}

// appendAll makes batches durable and tells the core.
func (c *Controller) appendAll(batches []quorum.Batch) error {
	for _, b := range batches {
		bytes, err := c.encode(b)
		if err != nil {
			return err
		}
		info, err := c.partition.AppendAsLeader(bytes, b.Epoch, partlog.Coordinator, c.options.NowMs())
		if err != nil {
			return err
		}
		if info.BaseOffset != b.BaseOffset || info.LastOffset != b.BaseOffset+b.Count-1 {
			return fmt.Errorf("batch of %d records for offset %d was appended at %d to %d", b.Count, b.BaseOffset, info.BaseOffset, info.LastOffset)
		}
	}
	if len(batches) == 0 {
		return nil
	}
	if err := c.partition.Flush(); err != nil {
		return err
	}
	c.core.Persisted(c.partition.LogEndOffset())
	return nil
}

func (c *Controller) encode(b quorum.Batch) (record.Batch, error) {
	if l := b.Leader; l != nil {
		c.partition.AssignEpochStart(b.Epoch, b.BaseOffset)
		c.machine.SkipTo(b.BaseOffset)
		return leaderChangeBatch(*l, c.options.NowMs())
	}
	return b.Payload.(*batchBuilder).builder.Build()
}

func leaderChangeBatch(l quorum.LeaderChange, nowMs int64) (record.Batch, error) {
	o := record.Unattributed()
	o.Control = true
	change := record.LeaderChange{LeaderID: int32(l.LeaderID)}
	for _, id := range l.Voters {
		change.Voters = append(change.Voters, int32(id))
	}
	for _, id := range l.Granting {
		change.GrantingVoters = append(change.GrantingVoters, int32(id))
	}
	return record.NewBuilder(o).Add(record.ControlRecord(change, nowMs)).Build()
}

// publish makes what is committed visible to readers and subscribers.
func (c *Controller) publish() {
	c.subscribing.Lock()
	defer c.subscribing.Unlock()
	d := c.machine.Publish(metadata.BrokerID(c.core.LeaderID()))
	c.image.Store(d.Next)
	for _, f := range c.subscribing.functions {
		f(d)
	}
}

// A batchBuilder collects the records of several operations to one batch.
type batchBuilder struct {
	builder *record.Builder
	nowMs   int64
	count   int
	bytes   int // at most what the records take in the batch
}

func newBatchBuilder(nowMs int64) *batchBuilder {
	return &batchBuilder{builder: record.NewBuilder(record.Unattributed()), nowMs: nowMs}
}

// recordOverhead is more than what a record has around its value in a batch.
const recordOverhead = 24

func encodeValues(records []logrecord.ClusterRecord, metadataVersion int16) [][]byte {
	values := make([][]byte, len(records))
	for i, r := range records {
		values[i] = logrecord.AppendCluster(nil, r, metadata.RecordVersion(metadataVersion, r))
	}
	return values
}

// fits reports whether the batch has room for all the values.
func (b *batchBuilder) fits(values [][]byte) bool {
	bytes := b.bytes
	for _, v := range values {
		bytes += len(v) + recordOverhead
	}
	return bytes <= maxBatchBytes-record.HeaderBytes && b.count+len(values) <= maxBatchRecords
}

func (b *batchBuilder) add(values [][]byte) {
	for _, v := range values {
		b.builder.Add(record.Record{TimestampMs: b.nowMs, Value: v})
		b.bytes += len(v) + recordOverhead
	}
	b.count += len(values)
}
