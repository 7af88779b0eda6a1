// Package group is the group coordinator as a pure machine: the classic group protocol (join and sync barriers, static members, timeouts)
// and committed offsets, with the states, codes and records of Apache Kafka 4.4. One Machine holds the groups of one partition of
// __consumer_offsets.
package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

// Topic is the internal topic that holds groups and offsets.
const Topic = "__consumer_offsets"

// Partition returns which of the topic's partitions holds a group.
func Partition(groupID string, partitions int32) int32 { panic("not written yet") }

// Config is what a machine needs to know of the broker's configuration. The names are Kafka's config keys.
type Config struct {
	MinSessionTimeoutMs     int32 // group.min.session.timeout.ms
	MaxSessionTimeoutMs     int32 // group.max.session.timeout.ms
	InitialRebalanceDelayMs int32 // group.initial.rebalance.delay.ms
	NewMemberJoinTimeoutMs  int32 // five minutes in Kafka, not configurable there either
	MaxSize                 int   // group.max.size
	OffsetMetadataMaxSize   int   // offset.metadata.max.bytes, counted in UTF-16 units as Kafka does
	OffsetsRetentionMs      int64 // offsets.retention.minutes
	OffsetsRetentionCheckMs int64 // offsets.retention.check.interval.ms
	MaxBatchBytes           int   // max.message.bytes of the topic: what a group's metadata record may take at most
}

// Machine holds the groups and offsets of one partition of __consumer_offsets.
type Machine struct{}

// New returns a machine without groups. config is asked anew by each operation.
func New(config func() *Config) *Machine { panic("not written yet") }

// A JoinRequest is a JoinGroup request and what the machine needs of its surroundings.
type JoinRequest struct {
	*kmsg.JoinGroupRequest
	ClientID   string
	ClientHost string // as Kafka prints it: "/127.0.0.1"
	RandomUUID string // what a new member id ends with
}

// JoinGroup adds or updates a member. The response, *kmsg.JoinGroupResponse, is an Answer.
func (m *Machine) JoinGroup(nowMs int64, req *JoinRequest, t machine.Token) (machine.Effects, error) {
	panic("not written yet")
}
