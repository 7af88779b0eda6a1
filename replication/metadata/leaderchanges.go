package metadata

import "sluice/protocol/logrecord"

// A leaderChange is an event that many partitions have to react to. NoBroker stands for none.
type leaderChange struct {
	remove  BrokerID // leaves all ISRs
	add     BrokerID // counts as alive though its registration does not say so yet
	unclean BrokerID // leaves all ISRs, and may have lost records
}

// leaderChanges returns the changes of all partitions that an event concerns, by topic name and partition.
func (m *Machine) leaderChanges(c leaderChange, concerns func(Partition) bool) []logrecord.ClusterRecord {
	alive := func(id BrokerID) bool {
		return id != c.remove && id != c.unclean && (id == c.add || m.next.active(id))
	}
	mayLead := m.mayLead(alive)
	var records []logrecord.ClusterRecord
	for _, t := range m.next.topics.all() {
		for i := range t.Partitions {
			if !concerns(t.Partitions[i]) {
				continue
			}
			b := m.newPartitionChange(t, int32(i), mayLead)
			if m.uncleanElection(t.Name) {
				b.election = electUnclean
			}
			b.uncleanlyShutDown = c.unclean
			b.isr = without(t.Partitions[i].ISR, c.remove, c.unclean)
			if r := b.build(); r != nil {
				records = append(records, r)
			}
		}
	}
	return records
}
