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
	batch := newBatchBuilder(c.core.Epoch(), nowMs)
	n := 0
	for n < len(group) && batch.bytes < maxGroupBytes {
		t := group[n]
		n++
		result, err := c.machine.Plan(t.op, nowMs)
		if err != nil {
			t.err = err
			continue
		}
		if err := batch.add(result.Records, c.machine.MetadataVersion()); err != nil {
			if batch.count == 0 {
				t.err = err // too large even alone
				continue
			}
			n-- // it gets the next batch to itself
			break
		}
		c.machine.Accept(result)
		t.response = result.Response
	}
	if batch.count > 0 {
		if _, err := c.core.Propose(c.core.Epoch(), int64(batch.count), batch); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotController, err)
		}
		if err := c.advance(); err != nil {
			return nil, err
		}
		assert.That(c.core.HighWatermark() == c.machine.NextOffset(), "high watermark %d after committing up to %d", c.core.HighWatermark(), c.machine.NextOffset())
	}
	for _, t := range group[:n] {
		close(t.done)
	}
	return group[n:], nil
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
	return b.Payload.(*batchBuilder).build()
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
	bytes   int // of the values
	scratch []byte
}

func newBatchBuilder(epoch record.LeaderEpoch, nowMs int64) *batchBuilder {
	o := record.Unattributed()
	o.LeaderEpoch = epoch
	return &batchBuilder{builder: record.NewBuilder(o), nowMs: nowMs}
}

// recordOverhead is more than what a record has around its value in a batch.
const recordOverhead = 24

// add takes the records of one operation, all of them or none.
func (b *batchBuilder) add(records []logrecord.ClusterRecord, metadataVersion int16) error {
	values := b.scratch[:0]
	ends := make([]int, 0, len(records))
	for _, r := range records {
		values = logrecord.AppendCluster(values, r, metadata.RecordVersion(metadataVersion, r))
		ends = append(ends, len(values))
	}
	b.scratch = values
	if b.bytes+len(values)+len(records)*recordOverhead > maxBatchBytes {
		return &metadata.Error{Code: kerr.PolicyViolation.Code, Message: "Unable to perform excessively large batch operation."}
	}
	start := 0
	for _, end := range ends {
		b.builder.Add(record.Record{TimestampMs: b.nowMs, Value: values[start:end]})
		start = end
	}
	b.count += len(records)
	b.bytes += len(values) + len(records)*recordOverhead
	return nil
}

func (b *batchBuilder) build() (record.Batch, error) { return b.builder.Build() }
