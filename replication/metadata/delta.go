package metadata

import "sluice/protocol/uuid"

// A Delta is the step from one published image to the next: what a subscriber has to look at. Slices are sorted and hold no doubles.
type Delta struct {
	Prev, Next *Image

	TopicsCreated []*Topic // as they are in Next
	TopicsChanged []TopicChange
	TopicsDeleted []*Topic // as they were in Prev

	ConfigsChanged     []ConfigResource // configs set, changed or removed; those of deleted topics too
	BrokersChanged     []BrokerID       // registered, changed or unregistered
	ControllersChanged []BrokerID
	FeaturesChanged    []string
	ACLsChanged        []uuid.UUID
	SecurityChanged    bool // SCRAM credentials, client quotas or delegation tokens
}

// A TopicChange names the partitions of a topic that are new or changed between Prev and Next, ascending.
type TopicChange struct {
	Topic      *Topic // as it is in Next
	Partitions []int32
}
