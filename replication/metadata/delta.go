package metadata

import (
	"cmp"
	"maps"
	"slices"

	"sluice/protocol/uuid"
)

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

// touched is what records since the last publish may have changed.
type touched struct {
	topics      map[uuid.UUID]map[int32]struct{}
	configs     map[configKey]struct{}
	brokers     map[BrokerID]struct{}
	controllers map[BrokerID]struct{}
	features    map[string]struct{}
	acls        map[uuid.UUID]struct{}
	security    bool
}

func newTouched() touched {
	return touched{
		topics:      map[uuid.UUID]map[int32]struct{}{},
		configs:     map[configKey]struct{}{},
		brokers:     map[BrokerID]struct{}{},
		controllers: map[BrokerID]struct{}{},
		features:    map[string]struct{}{},
		acls:        map[uuid.UUID]struct{}{},
	}
}

func (t *touched) partition(topic uuid.UUID, partition int32) {
	partitions := t.topics[topic]
	if partitions == nil {
		partitions = map[int32]struct{}{}
		t.topics[topic] = partitions
	}
	partitions[partition] = struct{}{}
}

func (t *touched) topic(topic uuid.UUID) {
	if _, found := t.topics[topic]; !found {
		t.topics[topic] = nil
	}
}

// DeltaBetween compares two whole images. It costs as much as they are large; a new subscriber starts with one.
func DeltaBetween(prev, next *Image) *Delta {
	t := newTouched()
	for _, i := range []*Image{prev, next} {
		for topic := range i.Topics() {
			t.topic(topic.ID)
			for p := range topic.Partitions {
				t.partition(topic.ID, int32(p))
			}
		}
		for k := range i.configs.all() {
			t.configs[k] = struct{}{}
		}
		for b := range i.brokers.all() {
			t.brokers[b] = struct{}{}
		}
		for c := range i.controllers.all() {
			t.controllers[c] = struct{}{}
		}
		for f := range i.features.all() {
			t.features[f] = struct{}{}
		}
		for a := range i.security.acls.all() {
			t.acls[a.id()] = struct{}{}
		}
		t.security = t.security || i.security.scram.len()+i.security.quotas.len()+i.security.tokens.len() > 0
	}
	return t.delta(prev, next)
}

func (t *touched) delta(prev, next *Image) *Delta {
	d := &Delta{Prev: prev, Next: next, SecurityChanged: t.security}
	for id, partitions := range t.topics {
		before, was := prev.TopicByID(id)
		after, is := next.TopicByID(id)
		switch {
		case is && !was:
			d.TopicsCreated = append(d.TopicsCreated, after)
		case was && !is:
			d.TopicsDeleted = append(d.TopicsDeleted, before)
		case was && is && before != after:
			change := TopicChange{Topic: after}
			for _, p := range slices.Sorted(maps.Keys(partitions)) {
				if int(p) < len(after.Partitions) {
					change.Partitions = append(change.Partitions, p)
				}
			}
			d.TopicsChanged = append(d.TopicsChanged, change)
		}
	}
	byName := func(a, b *Topic) int { return cmp.Or(cmp.Compare(a.Name, b.Name), a.ID.Compare(b.ID)) }
	slices.SortFunc(d.TopicsCreated, byName)
	slices.SortFunc(d.TopicsDeleted, byName)
	slices.SortFunc(d.TopicsChanged, func(a, b TopicChange) int { return byName(a.Topic, b.Topic) })
	for _, k := range slices.Sorted(maps.Keys(t.configs)) {
		d.ConfigsChanged = append(d.ConfigsChanged, k.resource())
	}
	d.BrokersChanged = slices.Sorted(maps.Keys(t.brokers))
	d.ControllersChanged = slices.Sorted(maps.Keys(t.controllers))
	d.FeaturesChanged = slices.Sorted(maps.Keys(t.features))
	d.ACLsChanged = slices.SortedFunc(maps.Keys(t.acls), uuid.UUID.Compare)
	return d
}
