package api

import (
	"net"
	"slices"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/txn"
	"sluice/protocol/uuid"
	"sluice/replication/metadata"
)

// Listeners knows under which address this node is reached.
type Listeners interface {
	// Advertised is the host and port to tell a client that is connected to the named listener at local from remote; false when that
	// listener is not for clients. With advertised.listeners set it is fixed, else it is worked out from the connection.
	Advertised(listener string, local, remote net.Addr) (host string, port int32, ok bool)
}

// clusterView is the cluster at one image as the clients of one connection see it.
type clusterView struct {
	image    *metadata.Image
	node     metadata.BrokerID // this one
	listener string
	host     string // of this node on the listener
	port     int32
	reached  bool // whether this node is for clients on the listener at all
}

func (h *Handlers) clusterView(c *Context) clusterView {
	v := clusterView{image: h.Controller.Image(), node: h.NodeID, listener: c.Listener}
	v.host, v.port, v.reached = h.Listeners.Advertised(c.Listener, c.LocalAddr, c.RemoteAddr)
	return v
}

// endpoint is where the clients of the listener reach a broker; false when they cannot.
func (v *clusterView) endpoint(b *metadata.Broker) (host string, port int32, ok bool) {
	if b.ID == v.node {
		return v.host, v.port, v.reached
	}
	e, ok := b.Endpoints[v.listener]
	return e.Host, int32(e.Port), ok
}

// hasListener is the third result of endpoint.
func (v *clusterView) hasListener(b *metadata.Broker) bool {
	if b.ID == v.node {
		return v.reached
	}
	_, ok := b.Endpoints[v.listener]
	return ok
}

// alive returns the broker when it is not fenced and has the listener.
func (v *clusterView) alive(id metadata.BrokerID) bool {
	b, known := v.image.Broker(id)
	return known && !b.Fenced && v.hasListener(b)
}

// leader reports whether clients can reach a partition's leader, and whether the leader is registered at all.
func (v *clusterView) leader(id metadata.BrokerID) (reachable, registered bool) {
	b, registered := v.image.Broker(id)
	return registered && v.hasListener(b), registered
}

// offline reports whether clients have to do without a replica: its broker is gone, fenced or not on this listener, or its directory failed.
func (v *clusterView) offline(p *metadata.Partition, replica int) bool {
	b, known := v.image.Broker(p.Replicas[replica])
	if !known || b.Fenced || !v.hasListener(b) {
		return true
	}
	if replica >= len(p.Directories) {
		return false
	}
	switch directory := p.Directories[replica]; directory {
	case metadata.DirectoryUnassigned, metadata.DirectoryMigrating:
		return false
	case metadata.DirectoryLost:
		return true
	default:
		return len(b.Directories) > 0 && !slices.ContainsFunc(b.Directories, func(d uuid.UUID) bool { return d == directory })
	}
}

// controller is a broker for requests that only the active controller can answer; any live broker passes them on. -1 when none is live.
func (v *clusterView) controller() int32 {
	id := v.image.ControllerID()
	if v.alive(id) {
		return int32(id)
	}
	for b := range v.image.Brokers() {
		if !b.Fenced && v.hasListener(b) {
			return int32(b.ID)
		}
	}
	return -1
}

// The operations that may be done to a resource, as the bits that Metadata and the Describe requests answer with: 1 << code of the
// operation. Without an authorizer everybody may do all of them.
const (
	operationsNotAsked int32 = -1 << 31
	topicOperations    int32 = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11 // read, write, create, delete, alter, describe, describe configs, alter configs
	clusterOperations  int32 = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12       // create, alter, describe, cluster action, describe configs, alter configs, idempotent write
)

// Topics that brokers keep their own state in.
const (
	consumerOffsetsTopic  = group.Topic
	transactionStateTopic = txn.Topic
	shareStateTopic       = "__share_group_state"
)

func isInternalTopic(name string) bool {
	return name == consumerOffsetsTopic || name == transactionStateTopic || name == shareStateTopic
}
