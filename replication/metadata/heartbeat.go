package metadata

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
)

// controlState is where a broker is between joining and leaving the cluster.
type controlState uint8

const (
	fenced controlState = iota
	unfenced
	controlledShutdown
	shutdownNow
)

// BrokerHeartbeat keeps a broker's session alive and moves it between fenced, unfenced and controlled shutdown. The response is a
// *kmsg.BrokerHeartbeatResponse.
func BrokerHeartbeat(req *kmsg.BrokerHeartbeatRequest) Op {
	return func(m *Machine, nowMs int64) (Result, error) {
		resp := req.ResponseKind().(*kmsg.BrokerHeartbeatResponse)
		id := BrokerID(req.BrokerID)
		b, known := m.next.brokers.get(id)
		if !known || b.Epoch != BrokerEpoch(req.BrokerEpoch) {
			resp.ErrorCode = kerr.StaleBrokerEpoch.Code
			return Result{Response: resp}, nil
		}
		now, next := m.nextState(b, req)
		var records []logrecord.ClusterRecord
		if next != now {
			switch next {
			case fenced, shutdownNow:
				records = m.fenceBroker(b)
			case unfenced:
				records = m.unfenceBroker(b)
			case controlledShutdown:
				records = m.beginShutdown(b)
			}
		}
		if m.next.metadataVersion() >= levelDirectories {
			records = append(records, m.directoriesOffline(b, req.OfflineLogDirs)...)
		}
		if m.next.metadataVersion() >= levelCordoned && req.CordonedLogDirs != nil {
			records = append(records, m.directoriesCordoned(b, req.CordonedLogDirs)...)
		}
		resp.IsCaughtUp = req.CurrentMetadataOffset >= b.RegistrationOffset
		resp.IsFenced = next == fenced || next == shutdownNow
		resp.ShouldShutdown = next == shutdownNow
		return Result{Records: records, Response: resp, Splittable: true, session: &contact{
			broker: id, epoch: b.Epoch, nowMs: nowMs, metadataOffset: req.CurrentMetadataOffset, shuttingDown: next == controlledShutdown,
		}}, nil
	}
}

// nextState decides what a heartbeat leads to.
func (m *Machine) nextState(b *Broker, req *kmsg.BrokerHeartbeatRequest) (now, next controlState) {
	switch {
	case m.shuttingDown(b.ID):
		if m.leads(b.ID) || m.sessions[b.ID].shutdownOffset > m.lowestActiveOffset() {
			return controlledShutdown, controlledShutdown // others still have to learn who leads instead
		}
		return controlledShutdown, shutdownNow
	case b.Fenced:
		switch {
		case req.WantShutdown:
			return fenced, shutdownNow
		case !req.WantFence && req.CurrentMetadataOffset >= b.RegistrationOffset:
			return fenced, unfenced
		}
		return fenced, fenced
	case req.WantFence:
		if req.WantShutdown {
			return unfenced, shutdownNow
		}
		return unfenced, fenced
	case req.WantShutdown:
		if m.leads(b.ID) {
			return unfenced, controlledShutdown
		}
		return unfenced, shutdownNow
	}
	return unfenced, unfenced
}

func (m *Machine) leads(id BrokerID) bool {
	for _, t := range m.next.topics.all() {
		for i := range t.Partitions {
			if t.Partitions[i].Leader == id {
				return true
			}
		}
	}
	return false
}

func (m *Machine) fenceBroker(b *Broker) []logrecord.ClusterRecord {
	records := m.removeFromISRs(b.ID)
	return append(records, &logrecord.BrokerRegistrationChangeRecord{BrokerID: int32(b.ID), BrokerEpoch: int64(b.Epoch), Fenced: fence})
}

func (m *Machine) unfenceBroker(b *Broker) []logrecord.ClusterRecord {
	change := &logrecord.BrokerRegistrationChangeRecord{BrokerID: int32(b.ID), BrokerEpoch: int64(b.Epoch), Fenced: unfence}
	return append([]logrecord.ClusterRecord{change},
		m.leaderChanges(leaderChange{add: b.ID, remove: NoBroker, unclean: NoBroker}, func(p Partition) bool { return p.Leader == NoBroker })...)
}

func (m *Machine) beginShutdown(b *Broker) []logrecord.ClusterRecord {
	var records []logrecord.ClusterRecord
	if !b.InControlledShutdown {
		records = append(records, &logrecord.BrokerRegistrationChangeRecord{BrokerID: int32(b.ID), BrokerEpoch: int64(b.Epoch), InControlledShutdown: inControlledShutdown})
	}
	return append(records, m.removeFromISRs(b.ID)...)
}

func (m *Machine) removeFromISRs(id BrokerID) []logrecord.ClusterRecord {
	return m.leaderChanges(leaderChange{remove: id, add: NoBroker, unclean: NoBroker}, func(p Partition) bool { return slices.Contains(p.ISR, id) })
}

// directoriesOffline takes the partitions on failed directories from the broker.
func (m *Machine) directoriesOffline(b *Broker, offline [][16]byte) []logrecord.ClusterRecord {
	var records []logrecord.ClusterRecord
	online := slices.Clone(b.Directories)
	for _, failed := range offline {
		i := slices.Index(online, uuid.UUID(failed))
		if i < 0 {
			continue
		}
		online = slices.Delete(online, i, i+1)
		records = append(records, m.leaderChanges(leaderChange{remove: b.ID, add: NoBroker, unclean: NoBroker}, func(p Partition) bool {
			at := slices.Index(p.Replicas, b.ID)
			return at >= 0 && p.Directories[at] == failed
		})...)
	}
	if len(online) == len(b.Directories) {
		return nil
	}
	return append(records, &logrecord.BrokerRegistrationChangeRecord{BrokerID: int32(b.ID), BrokerEpoch: int64(b.Epoch), LogDirs: online})
}

func (m *Machine) directoriesCordoned(b *Broker, cordoned [][16]byte) []logrecord.ClusterRecord {
	next := make([]uuid.UUID, 0, len(cordoned))
	for _, d := range cordoned {
		next = append(next, d)
	}
	sorted := func(s []uuid.UUID) []uuid.UUID {
		return slices.Compact(slices.SortedFunc(slices.Values(s), uuid.UUID.Compare))
	}
	if b.CordonedDirectories != nil && slices.Equal(sorted(b.CordonedDirectories), sorted(next)) {
		return nil
	}
	return []logrecord.ClusterRecord{&logrecord.BrokerRegistrationChangeRecord{BrokerID: int32(b.ID), BrokerEpoch: int64(b.Epoch), CordonedLogDirs: next}}
}

// FenceStaleBrokers fences one broker whose session has ended, the one longest unheard of; the driver repeats it while NextSessionEndMs has
// passed. It has no response.
func FenceStaleBrokers() Op {
	return func(m *Machine, nowMs int64) (Result, error) {
		stale := slices.SortedFunc(maps.Keys(m.sessions), func(a, b BrokerID) int {
			return cmp.Or(cmp.Compare(m.sessions[a].contactMs, m.sessions[b].contactMs), cmp.Compare(a, b))
		})
		for _, id := range stale {
			b, known := m.next.brokers.get(id)
			if s := m.sessions[id]; known && !b.Fenced && id != m.settings.NodeID && s.epoch == b.Epoch && m.expired(s, nowMs) {
				return Result{Records: m.fenceBroker(b), Splittable: true, session: &contact{broker: id, ended: true}}, nil
			}
		}
		return Result{}, nil
	}
}
