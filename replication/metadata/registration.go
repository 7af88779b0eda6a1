package metadata

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
)

// RegisterBroker registers a broker, fenced. A new incarnation of a known broker takes its predecessor's leaderships and in-sync places away
// first. The response is a *kmsg.BrokerRegistrationResponse.
func RegisterBroker(req *kmsg.BrokerRegistrationRequest) Op {
	return func(m *Machine, nowMs int64) (Result, error) {
		resp := req.ResponseKind().(*kmsg.BrokerRegistrationResponse)
		record, rejected := m.checkRegistration(req, nowMs)
		if rejected != nil {
			resp.ErrorCode, resp.BrokerEpoch = rejected.Code, -1
			return Result{Response: resp}, nil //nolint:nilerr // the rejection is in the response
		}
		var records []logrecord.ClusterRecord
		before, known := m.next.brokers.get(BrokerID(req.BrokerID))
		if known && before.IncarnationID == req.IncarnationID {
			record.Fenced, record.InControlledShutdown, record.BrokerEpoch = before.Fenced, before.InControlledShutdown, int64(before.Epoch)
		} else {
			previousEpoch := int64(-2)
			if known {
				previousEpoch = int64(before.Epoch)
			}
			clean := req.Version >= 3 && previousEpoch == req.PreviousBrokerEpoch
			records = m.endIncarnation(BrokerID(req.BrokerID), clean)
			record.BrokerEpoch = m.NextOffset()
		}
		resp.BrokerEpoch = record.BrokerEpoch
		return Result{
			Records: append(records, record), Response: resp, Splittable: true,
			session: &contact{broker: BrokerID(req.BrokerID), epoch: BrokerEpoch(record.BrokerEpoch), nowMs: nowMs, metadataOffset: -1},
		}, nil
	}
}

func (m *Machine) checkRegistration(req *kmsg.BrokerRegistrationRequest, nowMs int64) (*logrecord.RegisterBrokerRecord, *Error) {
	if req.ClusterID != m.settings.ClusterID {
		return nil, reject(kerr.InconsistentClusterID, "Expected cluster ID %s, but got cluster ID %s", m.settings.ClusterID, req.ClusterID)
	}
	id := BrokerID(req.BrokerID)
	if before, known := m.next.brokers.get(id); known && before.IncarnationID != req.IncarnationID && m.validSession(id, before.Epoch, nowMs) {
		return nil, reject(kerr.DuplicateBrokerRegistration, "Another broker is registered with that broker id. If the broker was recently restarted this should self-resolve once the heartbeat manager expires the broker's session.")
	}
	if req.IsMigratingZkBroker {
		return nil, reject(kerr.BrokerIDNotRegistered, "Controller does not support registering ZK brokers.")
	}
	record := logrecord.NewRegisterBrokerRecord()
	record.BrokerID, record.IncarnationID, record.Rack = req.BrokerID, req.IncarnationID, req.Rack
	if m.next.metadataVersion() >= levelDirectories {
		if rejected := m.checkDirectories(id, req.LogDirs); rejected != nil {
			return nil, rejected
		}
		for _, d := range req.LogDirs {
			record.LogDirs = append(record.LogDirs, d)
		}
	}
	for _, l := range req.Listeners {
		record.EndPoints = append(record.EndPoints, logrecord.Endpoint{Name: l.Name, Host: l.Host, Port: l.Port, SecurityProtocol: l.SecurityProtocol})
	}
	supported := map[string]bool{}
	for _, f := range req.Features {
		supported[f.Name] = true
		if rejected := m.checkFeature(f.Name, f.MinSupportedVersion, f.MaxSupportedVersion); rejected != nil {
			return nil, rejected
		}
		record.Features = append(record.Features, logrecord.FeatureRange{Name: f.Name, MinSupportedVersion: f.MinSupportedVersion, MaxSupportedVersion: f.MaxSupportedVersion})
	}
	if !supported[FeatureMetadataVersion] {
		return nil, reject(kerr.InvalidRegistration, "Request features do not contain 'metadata.version'")
	}
	for name := range m.next.features.all() {
		if f, known := m.feature(name); !supported[name] && !(known && f.Unserved) {
			if rejected := m.checkFeature(name, 0, 0); rejected != nil {
				return nil, rejected
			}
		}
	}
	return record, nil
}

func (m *Machine) checkFeature(name string, lowest, highest int16) *Error {
	if level := m.next.level(name); level < lowest || level > highest {
		return reject(kerr.UnsupportedVersion, "Unable to register because the broker does not support finalized version %d of %s. The broker wants a version between %d and %d, inclusive.", level, name, lowest, highest)
	}
	return nil
}

func (m *Machine) checkDirectories(broker BrokerID, directories [][16]byte) *Error {
	if len(directories) == 0 {
		return reject(kerr.InvalidRegistration, "No directories specified in request")
	}
	if slices.ContainsFunc(directories, func(d [16]byte) bool { return uuid.UUID(d).IsReserved() }) {
		return reject(kerr.InvalidRegistration, "Reserved directory ID in request")
	}
	seen := map[[16]byte]bool{}
	for _, d := range directories {
		if seen[d] {
			return reject(kerr.InvalidRegistration, "Duplicate directory ID in request")
		}
		seen[d] = true
	}
	for id, b := range m.next.brokers.all() {
		if id == broker {
			continue
		}
		for _, d := range directories {
			if slices.Contains(b.Directories, uuid.UUID(d)) {
				return reject(kerr.InvalidRegistration, "Broker %d is already registered with directory %s", id, uuid.UUID(d))
			}
		}
	}
	return nil
}

// endIncarnation takes leaderships and in-sync places from a broker that has been restarted. If it was not shut down cleanly, what it had
// not flushed may be gone, and with eligible leader replicas on it loses its claim to those too.
func (m *Machine) endIncarnation(id BrokerID, clean bool) []logrecord.ClusterRecord {
	if m.next.elrEnabled() && !clean {
		return m.leaderChanges(leaderChange{unclean: id, remove: NoBroker, add: NoBroker}, func(p Partition) bool {
			return slices.Contains(p.ISR, id) || slices.Contains(p.ELR, id)
		})
	}
	return m.leaderChanges(leaderChange{remove: id, add: NoBroker, unclean: NoBroker}, func(p Partition) bool { return slices.Contains(p.ISR, id) })
}

// RegisterController registers the node's controller; it has no response.
func RegisterController(record *logrecord.RegisterControllerRecord) Op {
	return func(m *Machine, _ int64) (Result, error) {
		return Result{Records: []logrecord.ClusterRecord{record}}, nil
	}
}

// UnregisterBroker removes a broker's registration. The response is a *kmsg.UnregisterBrokerResponse.
func UnregisterBroker(req *kmsg.UnregisterBrokerRequest) Op {
	return func(m *Machine, _ int64) (Result, error) {
		resp := req.ResponseKind().(*kmsg.UnregisterBrokerResponse)
		id := BrokerID(req.BrokerID)
		b, known := m.next.brokers.get(id)
		if !known {
			rejected := reject(kerr.BrokerIDNotRegistered, "Broker ID %d is not currently registered", id)
			resp.ErrorCode, resp.ErrorMessage = rejected.Code, rejected.message()
			return Result{Response: resp}, nil
		}
		records := m.leaderChanges(leaderChange{remove: id, add: NoBroker, unclean: NoBroker}, func(p Partition) bool {
			return slices.Contains(p.ISR, id) || slices.Contains(p.ELR, id)
		})
		records = append(records, &logrecord.UnregisterBrokerRecord{BrokerID: req.BrokerID, BrokerEpoch: int64(b.Epoch)})
		return Result{Records: records, Response: resp, Splittable: true}, nil
	}
}
