package metadata

import "math"

// A session is what the active controller knows of a broker beyond the log. It is lost with the controller: the next one gives every
// unfenced broker a new session.
type session struct {
	epoch          BrokerEpoch
	contactMs      int64
	metadataOffset int64 // as the broker's last heartbeat says; -1 unknown
	shutdownOffset int64 // end of the records of its controlled shutdown, -1 when it is not in one
}

// A contact is the news that a heartbeat or a registration brings.
type contact struct {
	broker         BrokerID
	epoch          BrokerEpoch
	nowMs          int64
	metadataOffset int64
	shuttingDown   bool
	ended          bool // the session is over: the broker is fenced or gone
}

// Activate begins the machine's time as the active controller: brokers that are not fenced get a session each to be heard from in. The
// node's own broker gets none: this process holds its directories, so an incarnation that was registered before is gone for certain.
func (m *Machine) Activate(nowMs int64) {
	clear(m.sessions)
	for id, b := range m.next.brokers.all() {
		if !b.Fenced && id != m.settings.NodeID {
			m.sessions[id] = &session{b.Epoch, nowMs, -1, -1}
		}
	}
}

func (m *Machine) touchSession(c *contact) {
	if c.ended {
		delete(m.sessions, c.broker)
		return
	}
	s := m.sessions[c.broker]
	if s == nil || s.epoch != c.epoch {
		s = &session{epoch: c.epoch, shutdownOffset: -1}
		m.sessions[c.broker] = s
	}
	s.contactMs, s.metadataOffset = c.nowMs, c.metadataOffset
	if b, found := m.next.brokers.get(c.broker); found && b.Fenced {
		s.shutdownOffset = -1
	} else if c.shuttingDown && s.shutdownOffset < 0 {
		s.shutdownOffset = m.offset
	}
}

func (m *Machine) shuttingDown(id BrokerID) bool {
	s := m.sessions[id]
	return s != nil && s.shutdownOffset >= 0
}

// validSession reports whether the broker of that epoch has been heard from lately.
func (m *Machine) validSession(id BrokerID, epoch BrokerEpoch, nowMs int64) bool {
	s := m.sessions[id]
	return s != nil && s.epoch == epoch && !m.expired(s, nowMs)
}

func (m *Machine) expired(s *session, nowMs int64) bool {
	return s.contactMs+m.settings.SessionTimeoutMs < nowMs
}

// lowestActiveOffset is how far the slowest active broker has read the metadata log.
func (m *Machine) lowestActiveOffset() int64 {
	lowest := int64(math.MaxInt64)
	for id := range m.next.brokers.all() {
		if s := m.sessions[id]; s != nil && m.next.active(id) && s.shutdownOffset < 0 {
			lowest = min(lowest, s.metadataOffset)
		}
	}
	return lowest
}

// NextSessionEndMs and FenceStaleBrokers leave the node's own broker out: it lives and dies with this process, and to fence it because the
// process was suspended, or its clock was set, would help nobody.

// NextSessionEndMs is when FenceStaleBrokers has something to do at the earliest, math.MaxInt64 when there is no session.
func (m *Machine) NextSessionEndMs() int64 {
	next := int64(math.MaxInt64)
	for id, s := range m.sessions {
		if b, found := m.next.brokers.get(id); found && !b.Fenced && id != m.settings.NodeID {
			next = min(next, s.contactMs+m.settings.SessionTimeoutMs+1)
		}
	}
	return next
}
