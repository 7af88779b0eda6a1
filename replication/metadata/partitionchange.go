package metadata

import (
	"slices"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/protocol/uuid"
)

// election says which replicas a new leader may come from.
type election uint8

const (
	electOnline    election = iota // keep the leader while it may lead, else any of ISR or ELR
	electPreferred                 // the first replica if it may lead
	electUnclean                   // as electOnline, at last any live replica, even at the cost of records
)

// A partitionChange works out the PartitionChangeRecord that takes a partition to a new state: it elects the leader that the new state needs
// and keeps the eligible leader replicas of KIP-966.
type partitionChange struct {
	partition Partition
	topicID   uuid.UUID
	index     int32
	// mayLead reports whether a broker is alive and has the directory of its replica online.
	mayLead    func(BrokerID) bool
	defaultDir func(BrokerID) uuid.UUID
	minISR     int
	elrEnabled bool
	dirs       bool // the metadata.version has directory ids
	election   election

	isr, replicas, adding, removing []BrokerID
	elr                             []BrokerID
	uncleanlyShutDown               BrokerID // may not stay an eligible leader; NoBroker
	recovering                      bool
	directories                     map[BrokerID]uuid.UUID
}

// newPartitionChange starts from no change of partition index of t.
func (m *Machine) newPartitionChange(t *Topic, index int32, mayLead func(Partition, BrokerID) bool) *partitionChange {
	p := t.Partitions[index]
	b := &partitionChange{
		partition: p, topicID: t.ID, index: index,
		mayLead:    func(id BrokerID) bool { return mayLead(p, id) },
		defaultDir: m.next.defaultDirectory,
		minISR:     min(int(m.minInSyncReplicas(t.Name)), len(t.Partitions[0].Replicas)),
		elrEnabled: m.next.elrEnabled(),
		dirs:       m.next.metadataVersion() >= levelDirectories,
		isr:        p.ISR, replicas: p.Replicas, adding: p.Adding, removing: p.Removing,
		elr: p.ELR, recovering: p.Recovering, uncleanlyShutDown: NoBroker,
		directories: make(map[BrokerID]uuid.UUID, len(p.Replicas)),
	}
	for i, id := range p.Replicas {
		b.directories[id] = p.Directories[i]
	}
	return b
}

// build returns the record, nil when nothing changes.
func (b *partitionChange) build() *logrecord.PartitionChangeRecord {
	r := logrecord.NewPartitionChangeRecord()
	r.TopicID, r.PartitionID = b.topicID, b.index
	b.completeReassignment()
	b.chooseELR()
	b.elect(r)
	if r.Leader == logrecord.NoLeaderChange && !containsAll(b.replicas, b.partition.Replicas) {
		r.Leader = int32(b.partition.Leader) // a replica leaves: a new leader epoch makes its fetches fail
	}
	b.noteELR(r)
	if r.ISR == nil && (len(b.isr) > 0 || b.elrEnabled) && !slices.Equal(b.isr, b.partition.ISR) {
		r.ISR = list(b.isr)
	}
	b.noteLastKnownLeader(r)
	b.noteAssignment(r)
	if b.recovering != b.partition.Recovering {
		r.LeaderRecoveryState = recoveryState(b.recovering)
	}
	if noChange(r) {
		return nil
	}
	return r
}

func recoveryState(unrecovered bool) int8 {
	if unrecovered {
		return recovering
	}
	return recovered
}

// list is a field of a record that is present even when empty.
func list(of []BrokerID) []int32 { return append([]int32{}, ids[int32](of)...) }

func noChange(r *logrecord.PartitionChangeRecord) bool {
	return r.ISR == nil && r.EligibleLeaderReplicas == nil && r.LastKnownELR == nil && r.Leader == logrecord.NoLeaderChange && r.Replicas == nil &&
		r.RemovingReplicas == nil && r.AddingReplicas == nil && r.LeaderRecoveryState == logrecord.NoLeaderRecoveryChange && r.Directories == nil
}

func containsAll(set, of []BrokerID) bool {
	return !slices.ContainsFunc(of, func(id BrokerID) bool { return !slices.Contains(set, id) })
}

func without(from []BrokerID, drop ...BrokerID) []BrokerID {
	kept := make([]BrokerID, 0, len(from))
	for _, id := range from {
		if !slices.Contains(drop, id) {
			kept = append(kept, id)
		}
	}
	return kept
}

// completeReassignment drops the removed replicas once all added ones are in sync.
func (b *partitionChange) completeReassignment() {
	if len(b.removing) == 0 && len(b.adding) == 0 {
		return
	}
	isr, replicas := without(b.isr, b.removing...), without(b.replicas, b.removing...)
	if len(b.removing) > 0 && (len(isr) == 0 || len(replicas) == 0) || !containsAll(isr, b.adding) {
		return
	}
	if len(b.adding) < len(b.removing) && !containsAll(isr, replicas) {
		return // fewer replicas than before: all that stay have to be in sync
	}
	b.isr, b.replicas, b.adding, b.removing = isr, replicas, nil, nil
}

// chooseELR: while fewer than min.insync.replicas are in sync, those that were in sync last stay eligible to lead.
func (b *partitionChange) chooseELR() {
	if !b.elrEnabled {
		return
	}
	if len(b.isr) >= b.minISR {
		b.elr = nil
		return
	}
	candidates := slices.Concat(b.elr, b.partition.ISR)
	slices.Sort(candidates)
	b.elr = without(slices.Compact(candidates), append([]BrokerID{b.uncleanlyShutDown}, b.isr...)...)
}

func (b *partitionChange) validLeader(id BrokerID) bool {
	return (slices.Contains(b.isr, id) || len(b.isr) == 0 && slices.Contains(b.elr, id)) && b.mayLead(id)
}

// choose returns the leader, NoBroker when there can be none, and whether records may be lost by it.
func (b *partitionChange) choose() (leader BrokerID, unclean bool) {
	if b.election == electPreferred && len(b.replicas) > 0 && b.validLeader(b.replicas[0]) {
		return b.replicas[0], false
	}
	if b.validLeader(b.partition.Leader) {
		return b.partition.Leader, false
	}
	if i := slices.IndexFunc(b.replicas, b.validLeader); i >= 0 {
		return b.replicas[i], false
	}
	if last := b.partition.LastKnownELR; b.elrEnabled && len(b.elr) == 0 && len(b.isr) == 0 && len(last) == 1 && b.mayLead(last[0]) {
		return last[0], true // nobody else was in sync: what it has is all there is
	}
	if b.election == electUnclean {
		if i := slices.IndexFunc(b.replicas, b.mayLead); i >= 0 {
			return b.replicas[i], true
		}
	}
	return NoBroker, false
}

func (b *partitionChange) elect(r *logrecord.PartitionChangeRecord) {
	leader, unclean := b.choose()
	if leader == b.partition.Leader {
		return
	}
	if slices.Contains(b.elr, leader) {
		b.isr, b.elr = []BrokerID{leader}, without(b.elr, leader)
	}
	r.Leader = int32(leader)
	if unclean {
		r.ISR = []int32{int32(leader)}
		if !b.partition.Recovering {
			r.LeaderRecoveryState = recovering
		}
	}
}

// noteELR: an unclean election voids the eligible leader replicas.
func (b *partitionChange) noteELR(r *logrecord.PartitionChangeRecord) {
	if r.ISR != nil || !b.elrEnabled {
		b.elr = nil
	}
	if !slices.Equal(b.elr, b.partition.ELR) {
		r.EligibleLeaderReplicas = list(b.elr)
	}
}

// noteLastKnownLeader remembers who led last while there is no leader.
func (b *partitionChange) noteLastKnownLeader(r *logrecord.PartitionChangeRecord) {
	if !b.elrEnabled {
		return
	}
	if r.Leader == int32(NoBroker) && len(b.partition.LastKnownELR) == 0 {
		r.LastKnownELR = []int32{int32(b.partition.Leader)}
	} else if r.Leader >= 0 && len(b.partition.LastKnownELR) > 0 {
		r.LastKnownELR = []int32{}
	}
}

func (b *partitionChange) noteAssignment(r *logrecord.PartitionChangeRecord) {
	if len(b.replicas) > 0 {
		if b.dirs {
			directories := make([]uuid.UUID, len(b.replicas))
			for i, id := range b.replicas {
				directory, known := b.directories[id]
				if !known {
					directory = b.defaultDir(id)
				}
				directories[i] = directory
			}
			if !slices.Equal(directories, b.partition.Directories) {
				r.Directories = directories
			}
		}
		if !slices.Equal(b.replicas, b.partition.Replicas) {
			r.Replicas = list(b.replicas)
		}
	}
	if !slices.Equal(b.removing, b.partition.Removing) {
		r.RemovingReplicas = list(b.removing)
	}
	if !slices.Equal(b.adding, b.partition.Adding) {
		r.AddingReplicas = list(b.adding)
	}
}

// newPartition is the record of a partition that does not exist yet, led by the first of its replicas that is in sync.
func (m *Machine) newPartition(topicID uuid.UUID, index int32, replicas []BrokerID, isr []BrokerID) *logrecord.PartitionRecord {
	r := logrecord.NewPartitionRecord()
	r.PartitionID, r.TopicID = index, topicID
	r.Replicas, r.ISR = ids[int32](replicas), ids[int32](isr)
	r.Leader, r.LeaderEpoch, r.PartitionEpoch = int32(isr[0]), int32(record.LeaderEpoch(0)), 0
	if m.next.metadataVersion() >= levelDirectories {
		r.Directories = make([]uuid.UUID, len(replicas))
		for i, id := range replicas {
			r.Directories[i] = m.next.defaultDirectory(id)
		}
	}
	return r
}
