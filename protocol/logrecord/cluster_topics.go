package logrecord

import "sluice/protocol/uuid"

// What PartitionChangeRecord holds where nothing changes.
const (
	NoLeaderChange         int32 = -2
	NoLeaderRecoveryChange int8  = -1
)

// NewPartitionRecord returns a record with the schema's defaults.
func NewPartitionRecord() *PartitionRecord {
	return &PartitionRecord{PartitionID: -1, Leader: -1, LeaderEpoch: -1, PartitionEpoch: -1}
}

// NewPartitionChangeRecord returns a record that changes nothing.
func NewPartitionChangeRecord() *PartitionChangeRecord {
	return &PartitionChangeRecord{PartitionID: -1, Leader: NoLeaderChange, LeaderRecoveryState: NoLeaderRecoveryChange}
}

// TopicRecord creates a topic; its partitions follow.
type TopicRecord struct {
	Name        string
	TopicID     uuid.UUID
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*TopicRecord) Key() int16 { return KeyTopic }

// MaxVersion implements ClusterRecord.
func (*TopicRecord) MaxVersion() int16 { return 0 }

func (r *TopicRecord) code(c *coder, version int16) {
	c.string(&r.Name)
	c.uuid(&r.TopicID)
	c.tags(version, &r.UnknownTags)
}

// RemoveTopicRecord deletes a topic with all its partitions and configs.
type RemoveTopicRecord struct {
	TopicID     uuid.UUID
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*RemoveTopicRecord) Key() int16 { return KeyRemoveTopic }

// MaxVersion implements ClusterRecord.
func (*RemoveTopicRecord) MaxVersion() int16 { return 0 }

func (r *RemoveTopicRecord) code(c *coder, version int16) {
	c.uuid(&r.TopicID)
	c.tags(version, &r.UnknownTags)
}

// PartitionRecord creates a partition. NewPartitionRecord has its defaults.
type PartitionRecord struct {
	PartitionID            int32
	TopicID                uuid.UUID
	Replicas               []int32 // in order of preference
	ISR                    []int32
	RemovingReplicas       []int32
	AddingReplicas         []int32
	Leader                 int32 // -1 = none
	LeaderRecoveryState    int8  // 0 recovered, 1 recovering from an unclean election
	LeaderEpoch            int32
	PartitionEpoch         int32
	Directories            []uuid.UUID // v1+: one for each of Replicas
	EligibleLeaderReplicas []int32     // v2+: nil = absent
	LastKnownELR           []int32     // v2+: nil = absent
	UnknownTags            Tags
}

// Key implements ClusterRecord.
func (*PartitionRecord) Key() int16 { return KeyPartition }

// MaxVersion implements ClusterRecord.
func (*PartitionRecord) MaxVersion() int16 { return 2 }

func (r *PartitionRecord) code(c *coder, version int16) {
	c.int32(&r.PartitionID)
	c.uuid(&r.TopicID)
	c.int32s(&r.Replicas)
	c.int32s(&r.ISR)
	c.int32s(&r.RemovingReplicas)
	c.int32s(&r.AddingReplicas)
	c.int32(&r.Leader)
	c.int32(&r.LeaderEpoch)
	c.int32(&r.PartitionEpoch)
	if version >= 1 {
		c.uuids(&r.Directories)
	} else {
		c.absent(len(r.Directories) > 0, "Directories")
	}
	c.tags(version, &r.UnknownTags,
		tagged{tag: 0, set: r.LeaderRecoveryState != 0, name: "LeaderRecoveryState", code: func(c *coder) { c.int8(&r.LeaderRecoveryState) }},
		tagged{tag: 1, since: 2, set: r.EligibleLeaderReplicas != nil, name: "EligibleLeaderReplicas", code: func(c *coder) { c.nullableInt32s(&r.EligibleLeaderReplicas) }},
		tagged{tag: 2, since: 2, set: r.LastKnownELR != nil, name: "LastKnownELR", code: func(c *coder) { c.nullableInt32s(&r.LastKnownELR) }},
	)
}

// PartitionChangeRecord changes a partition: what is absent stays. The zero value does not mean "no change"; NewPartitionChangeRecord does.
type PartitionChangeRecord struct {
	PartitionID            int32
	TopicID                uuid.UUID
	ISR                    []int32     // nil = no change
	Leader                 int32       // NoLeaderChange = no change, -1 = no leader now
	Replicas               []int32     // nil = no change
	RemovingReplicas       []int32     // nil = no change
	AddingReplicas         []int32     // nil = no change
	LeaderRecoveryState    int8        // NoLeaderRecoveryChange = no change
	Directories            []uuid.UUID // v1+: nil = no change
	EligibleLeaderReplicas []int32     // v2+: nil = no change
	LastKnownELR           []int32     // v2+: nil = no change
	UnknownTags            Tags
}

// Key implements ClusterRecord.
func (*PartitionChangeRecord) Key() int16 { return KeyPartitionChange }

// MaxVersion implements ClusterRecord.
func (*PartitionChangeRecord) MaxVersion() int16 { return 2 }

func (r *PartitionChangeRecord) code(c *coder, version int16) {
	c.int32(&r.PartitionID)
	c.uuid(&r.TopicID)
	c.tags(version, &r.UnknownTags,
		tagged{tag: 0, set: r.ISR != nil, name: "ISR", code: func(c *coder) { c.nullableInt32s(&r.ISR) }},
		tagged{tag: 1, set: r.Leader != NoLeaderChange, name: "Leader", code: func(c *coder) { c.int32(&r.Leader) }},
		tagged{tag: 2, set: r.Replicas != nil, name: "Replicas", code: func(c *coder) { c.nullableInt32s(&r.Replicas) }},
		tagged{tag: 3, set: r.RemovingReplicas != nil, name: "RemovingReplicas", code: func(c *coder) { c.nullableInt32s(&r.RemovingReplicas) }},
		tagged{tag: 4, set: r.AddingReplicas != nil, name: "AddingReplicas", code: func(c *coder) { c.nullableInt32s(&r.AddingReplicas) }},
		tagged{tag: 5, set: r.LeaderRecoveryState != NoLeaderRecoveryChange, name: "LeaderRecoveryState", code: func(c *coder) { c.int8(&r.LeaderRecoveryState) }},
		tagged{tag: 6, since: 2, set: r.EligibleLeaderReplicas != nil, name: "EligibleLeaderReplicas", code: func(c *coder) { c.nullableInt32s(&r.EligibleLeaderReplicas) }},
		tagged{tag: 7, since: 2, set: r.LastKnownELR != nil, name: "LastKnownELR", code: func(c *coder) { c.nullableInt32s(&r.LastKnownELR) }},
		tagged{tag: 8, since: 1, set: r.Directories != nil, name: "Directories", code: func(c *coder) { c.nullableUUIDs(&r.Directories) }},
	)
}

// ClearELRRecord empties the eligible leader replicas (KIP-966) of a topic or of all topics.
type ClearELRRecord struct {
	TopicName   string // "" = all topics
	UnknownTags Tags
}

// Key implements ClusterRecord.
func (*ClearELRRecord) Key() int16 { return KeyClearELR }

// MaxVersion implements ClusterRecord.
func (*ClearELRRecord) MaxVersion() int16 { return 0 }

func (r *ClearELRRecord) code(c *coder, version int16) {
	c.string(&r.TopicName)
	c.tags(version, &r.UnknownTags)
}
