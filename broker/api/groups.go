package api

import (
	"sync/atomic"

	"sluice/broker/coordinator"
	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
	"sluice/protocol/uuid"
)

// Groups runs operations on the machines of the group coordinator, one for each partition of __consumer_offsets that this node leads.
type Groups interface {
	// Submit runs op and calls done once what it wrote is committed; see coordinator.Runtime.
	Submit(partition int32, op func(m *group.Machine, nowMs int64) (machine.Effects, error), done func(error))
	// Park is Submit for a request that a later operation may answer, under the token given to op.
	Park(partition int32, op func(m *group.Machine, nowMs int64, t machine.Token) (machine.Effects, error), done func(response any, err error))
	// EndTransaction appends the end marker of a transaction with offsets, and applies it.
	EndTransaction(partition int32, e coordinator.EndTransaction, done func(error))
	// Partitions are the partitions of which this node is the coordinator, ascending.
	Partitions() []int32
}

// groupPartition is the partition of __consumer_offsets that holds a group. Before the topic exists it is where the group will be.
func (h *Handlers) groupPartition(groupID string) int32 {
	partitions := h.Config().OffsetsTopicNumPartitions
	if t, ok := h.Controller.Image().Topic(group.Topic); ok {
		partitions = int32(len(t.Partitions))
	}
	return group.Partition(groupID, partitions)
}

// submitGroup runs op on the machine that holds a group. done gets the error as a client is told it.
func (h *Handlers) submitGroup(groupID string, op func(m *group.Machine, nowMs int64) (machine.Effects, error), done func(error)) {
	h.Groups.Submit(h.groupPartition(groupID), op, func(err error) { done(group.OperationError(err)) })
}

// parkGroup is submitGroup for requests that wait at a barrier.
func (h *Handlers) parkGroup(groupID string, op func(m *group.Machine, nowMs int64, t machine.Token) (machine.Effects, error), done func(any, error)) {
	h.Groups.Park(h.groupPartition(groupID), op, func(response any, err error) { done(response, group.OperationError(err)) })
}

// A countdown calls last when as many parts as it was made for are done. The parts may end in any order, on any goroutines.
type countdown struct {
	left atomic.Int64
	last func()
}

func newCountdown(parts int, last func()) *countdown {
	c := &countdown{last: last}
	c.left.Store(int64(parts))
	if parts == 0 {
		last()
	}
	return c
}

func (c *countdown) done() {
	if c.left.Add(-1) == 0 {
		c.last()
	}
}

// topicName finds the name of a topic by its id; empty when there is none.
func (h *Handlers) topicName(id [16]byte) string {
	if t, ok := h.Controller.Image().TopicByID(uuid.UUID(id)); ok {
		return t.Name
	}
	return ""
}

// groupOperations are the operations that someone may do on a group when there is no authorizer: read, delete, describe, describe and
// alter configs; a bit each, numbered as in Kafka's AclOperation.
const groupOperations int32 = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11
