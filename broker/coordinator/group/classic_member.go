package group

import (
	"bytes"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
	"sluice/internal/assert"
)

// A protocol is one that a member offers, with what it says under it (a consumer: its subscription).
type protocol struct {
	name     string
	metadata []byte
}

// A member of a classic group.
type member struct {
	id                 string
	instanceID         *string // nil: a dynamic member
	clientID           string
	clientHost         string
	rebalanceTimeoutMs int32
	sessionTimeoutMs   int32
	protocols          []protocol // in the order of preference; names are unique
	assignment         []byte     // never nil

	join, sync  machine.Token // the request that waits at the barrier; 0: none
	pendingSync bool          // has joined this generation, and not sent SyncGroup yet
	isNew       bool          // has not been through a completed join yet
	heartbeat   timer
}

// keepProtocols takes over what a request offers. Of several under one name the first counts.
func keepProtocols(offered []kmsg.JoinGroupRequestProtocol) []protocol {
	kept := make([]protocol, 0, len(offered))
	for _, p := range offered {
		if !slices.ContainsFunc(kept, func(k protocol) bool { return k.name == p.Name }) {
			kept = append(kept, protocol{name: p.Name, metadata: p.Metadata})
		}
	}
	return kept
}

// offers reports whether the member already offers exactly these protocols with this metadata.
func (m *member) offers(protocols []kmsg.JoinGroupRequestProtocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a protocol, b kmsg.JoinGroupRequestProtocol) bool {
		return a.name == b.Name && bytes.Equal(a.metadata, b.Metadata)
	})
}

// metadata is what the member said under a protocol that it offers.
func (m *member) metadata(name string) []byte {
	i := slices.IndexFunc(m.protocols, func(p protocol) bool { return p.name == name })
	assert.That(i >= 0, "member %q does not offer the protocol %q", m.id, name)
	return m.protocols[i].metadata
}

// hasSatisfiedHeartbeat reports whether the member need not send heartbeats, as it waits for us.
func (m *member) hasSatisfiedHeartbeat() bool { return !m.isNew && (m.join != 0 || m.sync != 0) }
