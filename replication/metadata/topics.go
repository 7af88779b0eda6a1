package metadata

import (
	"fmt"
	"slices"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/protocol/uuid"
)

// ids converts between the ids of the log and the machine's.
func ids[To, From ~int32](from []From) []To {
	if len(from) == 0 {
		return nil
	}
	to := make([]To, len(from))
	for i, id := range from {
		to[i] = To(id)
	}
	return to
}

func (m *Machine) replayTopic(r *logrecord.TopicRecord) error {
	if t, found := m.next.topics.get(r.Name); found {
		return fmt.Errorf("topic %q exists already with id %s", r.Name, t.ID)
	}
	if t, found := m.next.topicIDs.get(keyOf(r.TopicID)); found {
		return fmt.Errorf("topic id %s is taken by %q", r.TopicID, t.Name)
	}
	if key, can := collisionKey(r.Name); can {
		m.next.collisions.put(m.edit, key+"\x00"+r.Name, r.Name)
	}
	m.putTopic(&Topic{Name: r.Name, ID: r.TopicID})
	return nil
}

// putTopic stores a topic that belongs to the present edit.
func (m *Machine) putTopic(t *Topic) {
	m.owned[t] = struct{}{}
	m.next.topics.put(m.edit, t.Name, t)
	m.next.topicIDs.put(m.edit, keyOf(t.ID), t)
	m.touched.topic(t.ID)
}

// ownTopic returns the topic in a form that the present edit may change. Partitions' slices are replaced, never written to.
func (m *Machine) ownTopic(id uuid.UUID) (*Topic, error) {
	t, found := m.next.topicIDs.get(keyOf(id))
	if !found {
		return nil, fmt.Errorf("no topic has id %s", id)
	}
	if _, own := m.owned[t]; own {
		return t, nil
	}
	t = &Topic{Name: t.Name, ID: t.ID, Partitions: slices.Clone(t.Partitions)}
	m.putTopic(t)
	return t, nil
}

func (m *Machine) replayRemoveTopic(r *logrecord.RemoveTopicRecord) error {
	t, found := m.next.topicIDs.get(keyOf(r.TopicID))
	if !found {
		return fmt.Errorf("no topic has id %s", r.TopicID)
	}
	m.next.topics.remove(m.edit, t.Name)
	m.next.topicIDs.remove(m.edit, keyOf(t.ID))
	if key, can := collisionKey(t.Name); can {
		m.next.collisions.remove(m.edit, key+"\x00"+t.Name)
	}
	configs := ConfigResource{TopicResource, t.Name}.key()
	if m.next.configs.remove(m.edit, configs) {
		m.touched.configs[configs] = struct{}{}
	}
	m.touched.topic(t.ID)
	return nil
}

func (m *Machine) replayPartition(r *logrecord.PartitionRecord) error {
	t, err := m.ownTopic(r.TopicID)
	if err != nil {
		return err
	}
	p := Partition{
		Replicas: ids[BrokerID](r.Replicas), ISR: ids[BrokerID](r.ISR),
		Adding: ids[BrokerID](r.AddingReplicas), Removing: ids[BrokerID](r.RemovingReplicas),
		ELR: ids[BrokerID](r.EligibleLeaderReplicas), LastKnownELR: ids[BrokerID](r.LastKnownELR),
		Directories: r.Directories, Leader: BrokerID(r.Leader), LeaderEpoch: record.LeaderEpoch(r.LeaderEpoch),
		PartitionEpoch: PartitionEpoch(r.PartitionEpoch), Recovering: r.LeaderRecoveryState == recovering,
	}
	if slices.Equal(p.ISR, p.Replicas) {
		p.ISR = p.Replicas // the usual case: one array for both, neither is ever written to
	}
	if p.Directories, err = directoriesFor(p.Replicas, r.Directories); err != nil {
		return err
	}
	switch n := int32(len(t.Partitions)); {
	case r.PartitionID < 0 || r.PartitionID > n:
		return fmt.Errorf("partition %d of topic %q follows on %d partitions", r.PartitionID, t.Name, n)
	case r.PartitionID == n:
		t.Partitions = append(t.Partitions, p)
	default:
		t.Partitions[r.PartitionID] = p
	}
	m.touched.partition(t.ID, r.PartitionID)
	return nil
}

// directoriesFor returns one directory for each replica; records from before directory ids have none.
func directoriesFor(replicas []BrokerID, directories []uuid.UUID) ([]uuid.UUID, error) {
	switch len(directories) {
	case len(replicas):
		return directories, nil
	case 0:
		return slices.Repeat([]uuid.UUID{DirectoryMigrating}, len(replicas)), nil
	}
	return nil, fmt.Errorf("%d directories for %d replicas", len(directories), len(replicas))
}

func (m *Machine) replayPartitionChange(r *logrecord.PartitionChangeRecord) error {
	t, err := m.ownTopic(r.TopicID)
	if err != nil {
		return err
	}
	if r.PartitionID < 0 || int(r.PartitionID) >= len(t.Partitions) {
		return fmt.Errorf("topic %q has no partition %d", t.Name, r.PartitionID)
	}
	next, err := t.Partitions[r.PartitionID].merge(r)
	if err != nil {
		return err
	}
	t.Partitions[r.PartitionID] = next
	m.touched.partition(t.ID, r.PartitionID)
	return nil
}

// merge returns the partition after a change.
func (p Partition) merge(r *logrecord.PartitionChangeRecord) (Partition, error) {
	change := func(field *[]BrokerID, to []int32) {
		if to != nil {
			*field = ids[BrokerID](to)
		}
	}
	change(&p.Replicas, r.Replicas)
	change(&p.ISR, r.ISR)
	change(&p.Adding, r.AddingReplicas)
	change(&p.Removing, r.RemovingReplicas)
	change(&p.ELR, r.EligibleLeaderReplicas)
	change(&p.LastKnownELR, r.LastKnownELR)
	directories := r.Directories
	if directories == nil {
		directories = p.Directories
	}
	var err error
	if p.Directories, err = directoriesFor(p.Replicas, directories); err != nil {
		return p, err
	}
	if r.Leader != logrecord.NoLeaderChange {
		p.Leader = BrokerID(r.Leader)
		p.LeaderEpoch++
	}
	if r.LeaderRecoveryState != logrecord.NoLeaderRecoveryChange {
		p.Recovering = r.LeaderRecoveryState == recovering
	}
	p.PartitionEpoch++
	return p, nil
}

func (m *Machine) replayClearELR(r *logrecord.ClearELRRecord) error {
	if r.TopicName != "" {
		t, found := m.next.topics.get(r.TopicName)
		if !found {
			return fmt.Errorf("no topic is called %q", r.TopicName)
		}
		return m.clearELR(t)
	}
	var having []*Topic
	for _, t := range m.next.topics.all() {
		if slices.ContainsFunc(t.Partitions, Partition.hasELR) {
			having = append(having, t)
		}
	}
	for _, t := range having {
		if err := m.clearELR(t); err != nil {
			return err
		}
	}
	return nil
}

func (p Partition) hasELR() bool { return len(p.ELR) > 0 || len(p.LastKnownELR) > 0 }

func (m *Machine) clearELR(t *Topic) error {
	if !slices.ContainsFunc(t.Partitions, Partition.hasELR) {
		return nil
	}
	own, err := m.ownTopic(t.ID)
	if err != nil {
		return err
	}
	for i := range own.Partitions {
		if p := &own.Partitions[i]; p.hasELR() {
			p.ELR, p.LastKnownELR = nil, nil
			p.PartitionEpoch++
			m.touched.partition(own.ID, int32(i))
		}
	}
	return nil
}

// Reserved ids that stand in for a log directory.
var (
	DirectoryMigrating  = uuid.UUID{}      // from before there were directory ids
	DirectoryUnassigned = uuid.UUID{15: 1} // the broker has not chosen one yet
	DirectoryLost       = uuid.UUID{15: 2} // it was on a directory that failed
)

// Values of a record's LeaderRecoveryState.
const (
	recovered  int8 = 0
	recovering int8 = 1
)
