package metadata

import (
	"fmt"
	"slices"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
)

// Values of BrokerRegistrationChangeRecord's fields.
const (
	fence                int8 = 1
	unfence              int8 = -1
	inControlledShutdown int8 = 1
)

func (m *Machine) replayRegisterBroker(offset int64, r *logrecord.RegisterBrokerRecord) error {
	b := &Broker{
		ID: BrokerID(r.BrokerID), Epoch: BrokerEpoch(r.BrokerEpoch), RegistrationOffset: offset, IncarnationID: r.IncarnationID,
		Endpoints: endpoints(r.EndPoints), Features: featureRanges(r.Features),
		Directories: slices.Clone(r.LogDirs), CordonedDirectories: r.CordonedLogDirs,
		Fenced: r.Fenced, InControlledShutdown: r.InControlledShutdown,
	}
	slices.SortFunc(b.Directories, uuid.UUID.Compare)
	if r.Rack != nil {
		b.Rack = *r.Rack
	}
	if before, found := m.next.brokers.get(b.ID); found && before.IncarnationID != b.IncarnationID {
		delete(m.sessions, b.ID)
	}
	m.putBroker(b)
	return nil
}

func (m *Machine) putBroker(b *Broker) {
	m.next.brokers.put(m.edit, b.ID, b)
	m.touched.brokers[b.ID] = struct{}{}
}

func endpoints(from []logrecord.Endpoint) map[string]Endpoint {
	to := make(map[string]Endpoint, len(from))
	for _, e := range from {
		to[e.Name] = Endpoint{e.Host, e.Port, e.SecurityProtocol}
	}
	return to
}

func featureRanges(from []logrecord.FeatureRange) map[string]FeatureRange {
	to := make(map[string]FeatureRange, len(from))
	for _, f := range from {
		to[f.Name] = FeatureRange{f.MinSupportedVersion, f.MaxSupportedVersion}
	}
	return to
}

func (m *Machine) replayUnregisterBroker(r *logrecord.UnregisterBrokerRecord) error {
	if _, err := m.registration(r.BrokerID, r.BrokerEpoch); err != nil {
		return err
	}
	delete(m.sessions, BrokerID(r.BrokerID))
	m.next.brokers.remove(m.edit, BrokerID(r.BrokerID))
	m.touched.brokers[BrokerID(r.BrokerID)] = struct{}{}
	return nil
}

// registration returns the registration that a record refers to.
func (m *Machine) registration(id int32, epoch int64) (*Broker, error) {
	b, found := m.next.brokers.get(BrokerID(id))
	switch {
	case !found:
		return nil, fmt.Errorf("broker %d is not registered", id)
	case b.Epoch != BrokerEpoch(epoch):
		return nil, fmt.Errorf("broker %d is registered with epoch %d, not %d", id, b.Epoch, epoch)
	}
	return b, nil
}

func (m *Machine) replayBrokerChange(r *logrecord.BrokerRegistrationChangeRecord) error {
	before, err := m.registration(r.BrokerID, r.BrokerEpoch)
	if err != nil {
		return err
	}
	next := *before
	switch r.Fenced {
	case fence, unfence:
		next.Fenced = r.Fenced == fence
	case 0:
	default:
		return fmt.Errorf("unknown fencing change %d", r.Fenced)
	}
	switch r.InControlledShutdown {
	case inControlledShutdown:
		next.InControlledShutdown = true
	case 0:
	default:
		return fmt.Errorf("unknown controlled shutdown change %d", r.InControlledShutdown)
	}
	if len(r.LogDirs) > 0 {
		next.Directories = slices.SortedFunc(slices.Values(r.LogDirs), uuid.UUID.Compare)
	}
	if r.CordonedLogDirs != nil {
		next.CordonedDirectories = r.CordonedLogDirs
	}
	m.putBroker(&next)
	return nil
}

func (m *Machine) replayRegisterController(r *logrecord.RegisterControllerRecord) error {
	id := BrokerID(r.ControllerID)
	m.next.controllers.put(m.edit, id, &Controller{id, r.IncarnationID, endpoints(r.EndPoints), featureRanges(r.Features)})
	m.touched.controllers[id] = struct{}{}
	return nil
}

func (m *Machine) replayUnregisterController(r *logrecord.UnregisterControllerRecord) error {
	if !m.next.controllers.remove(m.edit, BrokerID(r.ControllerID)) {
		return fmt.Errorf("controller %d is not registered", r.ControllerID)
	}
	m.touched.controllers[BrokerID(r.ControllerID)] = struct{}{}
	return nil
}

// active reports whether a broker is registered and neither fenced nor on its way out.
func (s *state) active(id BrokerID) bool {
	b, found := s.brokers.get(id)
	return found && !b.Fenced && !b.InControlledShutdown
}

// activeOf returns those of the brokers that are active.
func (s *state) activeOf(brokers []BrokerID) []BrokerID {
	return slices.DeleteFunc(slices.Clone(brokers), func(id BrokerID) bool { return !s.active(id) })
}

// defaultDirectory is the directory that a new replica on a broker is recorded with: its only one, or none yet when it has several to choose from.
func (s *state) defaultDirectory(id BrokerID) uuid.UUID {
	b, found := s.brokers.get(id)
	switch {
	case !found:
		return DirectoryUnassigned
	case len(b.Directories) == 0:
		return DirectoryMigrating
	case len(b.Directories) == 1:
		return b.Directories[0]
	}
	return DirectoryUnassigned
}

// online reports whether a directory of the broker is usable.
func (b *Broker) online(directory uuid.UUID) bool {
	switch directory {
	case DirectoryUnassigned, DirectoryMigrating:
		return true
	case DirectoryLost:
		return false
	}
	if len(b.Directories) == 0 {
		return true
	}
	_, found := slices.BinarySearchFunc(b.Directories, directory, uuid.UUID.Compare)
	return found
}

// takesReplicas reports whether the broker has a directory that is not cordoned.
func (b *Broker) takesReplicas() bool {
	if len(b.Directories) == 0 || b.CordonedDirectories == nil {
		return true
	}
	return slices.ContainsFunc(b.Directories, func(d uuid.UUID) bool { return !slices.Contains(b.CordonedDirectories, d) })
}

// mayLead returns whether a replica may lead, given which brokers count as alive.
func (m *Machine) mayLead(alive func(BrokerID) bool) func(Partition, BrokerID) bool {
	return func(p Partition, id BrokerID) bool {
		b, found := m.next.brokers.get(id)
		i := slices.Index(p.Replicas, id)
		return found && i >= 0 && alive(id) && b.online(p.Directories[i])
	}
}

// usableBrokers returns the brokers that replicas can be placed on, by id.
func (m *Machine) usableBrokers() []usableBroker {
	var usable []usableBroker
	for id, b := range m.next.brokers.all() {
		if !m.shuttingDown(id) && b.takesReplicas() {
			usable = append(usable, usableBroker{id, b.Rack, b.Fenced})
		}
	}
	return usable
}
