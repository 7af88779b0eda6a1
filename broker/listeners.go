package broker

import (
	"net"
	"strconv"
	"time"

	"sluice/broker/api"
	"sluice/broker/config"
	"sluice/broker/server"
)

// clientListeners are the listeners that are opened. A controller's listener is not among them: a quorum of one has no peers to talk to.
func clientListeners(c *config.Broker) (open []server.ListenerConfig, controllers []config.Listener) {
	for _, l := range c.Listeners {
		if l.Controller {
			controllers = append(controllers, l)
			continue
		}
		open = append(open, server.ListenerConfig{Name: l.Name, Addresses: bindAddresses(l.Host, l.Port)})
	}
	return open, controllers
}

// bindAddresses are the addresses that a listener binds. The name localhost is both loopback addresses, whatever the hosts file says, as
// clients try one or the other.
func bindAddresses(host string, port int) []string {
	p := strconv.Itoa(port)
	if host != "localhost" {
		return []string{net.JoinHostPort(host, p)}
	}
	addresses := []string{net.JoinHostPort("127.0.0.1", p)}
	if hasIPv6Loopback() {
		addresses = append(addresses, net.JoinHostPort("::1", p))
	}
	return addresses
}

func hasIPv6Loopback() bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(net.IPv6loopback) {
			return true
		}
	}
	return false
}

func serverLimits(c *config.Broker) server.Limits {
	idle := time.Duration(c.ConnectionsMaxIdleMs) * time.Millisecond
	if c.ConnectionsMaxIdleMs < 0 {
		idle = 1<<63 - 1
	}
	perIP := c.MaxConnectionsPerIP
	if perIP == 0 {
		perIP = -1 // none but those of the overrides, which is what 0 means to Kafka
	}
	return server.Limits{
		FrameBytes:                  c.SocketRequestMaxBytes,
		QueuedBytes:                 c.QueuedMaxRequestBytes,
		Connections:                 c.MaxConnections,
		ConnectionsPerIP:            perIP,
		ConnectionsPerIPOverrides:   c.MaxConnectionsPerIPOverrides,
		ConnectionCreationPerSecond: c.MaxConnectionCreationRate,
		IdleTimeout:                 idle,
	}
}

// dispatcher stands in for the handlers while listeners are bound before the handlers can be made. The server serves only afterwards.
type dispatcher struct{ *api.Handlers }

// advertiser tells clients where to reach this broker, by the listener that they came through.
type advertiser map[string]config.Listener

var _ api.Listeners = advertiser(nil)

func newAdvertiser(listeners []config.Listener) advertiser {
	a := advertiser{}
	for _, l := range listeners {
		a[l.Name] = l
	}
	return a
}

// Advertised is the configured address. Where none is configured and the listener is bound to every interface, it is the address that the
// client has reached, which is known to work for it.
func (a advertiser) Advertised(listener string, local, _ net.Addr) (host string, port int32, ok bool) {
	l, known := a[listener]
	if !known {
		return "", 0, false
	}
	if !l.Wildcard() {
		return l.Host, int32(l.Port), true
	}
	if tcp, ok := local.(*net.TCPAddr); ok {
		if tcp.IP.IsLoopback() {
			return "localhost", int32(l.Port), true
		}
		return tcp.IP.String(), int32(l.Port), true
	}
	return "localhost", int32(l.Port), true
}
