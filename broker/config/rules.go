package config

import (
	"fmt"
	"slices"
	"strings"
)

// A problemFunc takes a rule that is broken, with the key that is best changed.
type problemFunc func(key, format string, args ...any)

// checkNode checks what the node is: id, roles and voters.
func (b *Broker) checkNode(problem problemFunc) {
	v := b.values
	if v.null("node.id") {
		problem("node.id", "must be set: the number of this node in its cluster")
	} else if b.NodeID != v.int32("broker.id") {
		problem("broker.id", "must be the same as node.id (%d), whose old name it is", b.NodeID)
	}
	if len(b.ProcessRoles) == 0 {
		problem("process.roles", "must be set: broker, controller, or broker,controller")
	}
	voters, err := parseVoters(v.list("controller.quorum.voters"))
	if err != nil {
		problem("controller.quorum.voters", "%s", err)
	}
	b.ControllerQuorumVoters = voters
	b.ControllerListenerNames = v.list("controller.listener.names")
	isVoter := slices.ContainsFunc(voters, func(other Voter) bool { return other.NodeID == b.NodeID })
	found := len(voters) > 0 || len(b.ControllerQuorumBootstrapServers) > 0
	switch {
	case b.IsBroker && !b.IsController:
		if !found {
			problem("controller.quorum.bootstrap.servers", "must be set, or controller.quorum.voters, as this node is no controller itself")
		}
		if isVoter {
			problem("controller.quorum.voters", "names this node (%d), which has no controller role", b.NodeID)
		}
		if len(b.ControllerListenerNames) == 0 {
			problem("controller.listener.names", "must name the listener by which controllers are reached")
		}
		if v.bool("controller.quorum.auto.join.enable") {
			problem("controller.quorum.auto.join.enable", "is for nodes with the controller role")
		}
	case b.IsController:
		// A broker that is its own and only controller needs neither voters nor a listener for them.
		alone := b.IsBroker && !found
		if !found && !alone {
			problem("controller.quorum.bootstrap.servers", "must be set, or controller.quorum.voters")
		}
		if len(voters) > 0 && !isVoter {
			problem("controller.quorum.voters", "must name this node (%d), which has the controller role", b.NodeID)
		}
		if len(b.ControllerListenerNames) == 0 && !alone {
			problem("controller.listener.names", "must name at least one of listeners, as this node has the controller role")
		}
	}
}

// checkListeners fills in the listeners and checks them against each other.
func (b *Broker) checkListeners(problem problemFunc) {
	v := b.values
	protocols, err := parseProtocolMap(v.text("listener.security.protocol.map"))
	if err != nil {
		problem("listener.security.protocol.map", "%s", err)
		return
	}
	_, mapGiven := b.layers.set["listener.security.protocol.map"]
	if !mapGiven && !b.namesSecureListener() {
		for _, name := range b.ControllerListenerNames {
			if _, ok := protocols[strings.ToUpper(name)]; !ok {
				protocols[strings.ToUpper(name)] = Plaintext
			}
		}
	}
	for _, name := range b.ControllerListenerNames {
		if _, ok := protocols[strings.ToUpper(name)]; !ok {
			problem("controller.listener.names", "%s has no entry in listener.security.protocol.map", name)
		}
	}
	if b.Listeners, err = parseListeners(v.list("listeners"), protocols, b.ControllerListenerNames); err == nil {
		err = checkPorts(b.Listeners)
	}
	if err != nil {
		problem("listeners", "%s", err)
		return
	}
	b.checkControllerListeners(problem)
	if !b.advertise(protocols, problem) {
		return
	}
	if b.IsBroker {
		b.checkInterBroker(protocols, problem)
	}
}

func (b *Broker) namesSecureListener() bool {
	secure := func(name string) bool {
		p := SecurityProtocol(strings.ToUpper(name))
		return p.ID() > 0
	}
	return slices.ContainsFunc(b.ControllerListenerNames, secure) ||
		slices.ContainsFunc(b.values.list("listeners"), func(entry string) bool {
			name, _, _ := strings.Cut(entry, ":")
			return secure(name)
		})
}

func (b *Broker) checkControllerListeners(problem problemFunc) {
	listens := func(name string) bool {
		return slices.ContainsFunc(b.Listeners, func(l Listener) bool { return strings.EqualFold(l.Name, name) })
	}
	for _, name := range b.ControllerListenerNames {
		switch {
		case b.IsController && !listens(name):
			problem("controller.listener.names", "%s is not among listeners, but this node has the controller role", name)
		case !b.IsController && listens(name):
			problem("controller.listener.names", "%s is among listeners, but this node has no controller role", name)
		}
	}
	if b.IsController && !b.IsBroker && slices.ContainsFunc(b.Listeners, func(l Listener) bool { return !l.Controller }) {
		problem("listeners", "must name only listeners of controller.listener.names, as this node is a controller only")
	}
}

// advertise fills in AdvertisedListeners and reports whether they can be used.
func (b *Broker) advertise(protocols map[string]SecurityProtocol, problem problemFunc) bool {
	const key = "advertised.listeners"
	if b.values.null(key) {
		for _, l := range b.Listeners {
			if l.Controller {
				continue
			}
			if l.Wildcard() {
				l.Host = ""
			}
			b.AdvertisedListeners = append(b.AdvertisedListeners, l)
		}
	} else {
		all, err := parseListeners(b.values.list(key), protocols, b.ControllerListenerNames)
		if err != nil {
			problem(key, "%s", err)
			return false
		}
		for _, l := range all {
			if l.Host != "" && l.Wildcard() {
				problem(key, "%s is an address that nobody can connect to; name the host that clients know this broker by", l.Host)
			}
			if !l.Controller {
				b.AdvertisedListeners = append(b.AdvertisedListeners, l)
			}
			if !slices.ContainsFunc(b.Listeners, func(other Listener) bool { return other.Name == l.Name }) {
				problem(key, "%s is not among listeners (%s)", l.Name, names(b.Listeners))
			}
		}
	}
	if b.IsBroker && len(b.AdvertisedListeners) == 0 {
		problem("listeners", "must hold a listener that is not in controller.listener.names, for clients")
		return false
	}
	return true
}

func (b *Broker) checkInterBroker(protocols map[string]SecurityProtocol, problem problemFunc) {
	const key = "inter.broker.listener.name"
	v := b.values
	b.InterBrokerSecurityProtocol = SecurityProtocol(v.text("security.inter.broker.protocol"))
	b.InterBrokerListenerName = string(b.InterBrokerSecurityProtocol)
	at := "security.inter.broker.protocol"
	if !v.null(key) {
		at = key
		if _, both := b.layers.set["security.inter.broker.protocol"]; both {
			problem(key, "cannot be set together with security.inter.broker.protocol")
			return
		}
		b.InterBrokerListenerName = strings.ToUpper(v.text(key))
		protocol, ok := protocols[b.InterBrokerListenerName]
		if !ok {
			problem(key, "%s has no entry in listener.security.protocol.map", b.InterBrokerListenerName)
			return
		}
		b.InterBrokerSecurityProtocol = protocol
	}
	if !slices.ContainsFunc(b.AdvertisedListeners, func(l Listener) bool { return l.Name == b.InterBrokerListenerName }) {
		problem(at, "brokers would use the listener %s among themselves, which is not advertised; there is %s", b.InterBrokerListenerName, names(b.AdvertisedListeners))
	}
	sasl := b.InterBrokerSecurityProtocol == SASLPlaintext || b.InterBrokerSecurityProtocol == SASLSSL
	if mechanism := v.text("sasl.mechanism.inter.broker.protocol"); sasl && !slices.Contains(v.list("sasl.enabled.mechanisms"), mechanism) {
		problem("sasl.mechanism.inter.broker.protocol", "%s is not among sasl.enabled.mechanisms", mechanism)
	}
}

func names(listeners []Listener) string {
	var all []string
	for _, l := range listeners {
		all = append(all, l.Name)
	}
	return strings.Join(all, ", ")
}

// checkRules checks the other rules between keys.
func (b *Broker) checkRules(problem problemFunc) {
	v := b.values
	if v.setting("log.roll.ms").number < 1 {
		problem("log.roll.ms", "must be at least 1")
	}
	if v.setting("log.roll.jitter.ms").number < 0 {
		problem("log.roll.jitter.ms", "must be at least 0")
	}
	if v.setting("log.retention.ms").number == 0 {
		problem("log.retention.ms", "must be at least 1, or -1 for no limit")
	}
	if threads := v.int64("log.cleaner.threads"); threads > 0 && v.int64("log.cleaner.dedupe.buffer.size")/threads <= 1<<20 {
		problem("log.cleaner.dedupe.buffer.size", "must be more than 1 MiB for each of the %d log.cleaner.threads", threads)
	}
	if wait := v.int64("replica.fetch.wait.max.ms"); wait > v.int64("replica.socket.timeout.ms") {
		problem("replica.socket.timeout.ms", "must not be below replica.fetch.wait.max.ms (%d)", wait)
	} else if wait > b.ReplicaLagTimeMaxMs {
		problem("replica.fetch.wait.max.ms", "must not be above replica.lag.time.max.ms (%d)", b.ReplicaLagTimeMaxMs)
	}
	if b.QueuedMaxRequestBytes > 0 && b.QueuedMaxRequestBytes < int64(b.SocketRequestMaxBytes) {
		problem("queued.max.request.bytes", "must not be below socket.request.max.bytes (%d)", b.SocketRequestMaxBytes)
	}
	overrides, err := parseIPOverrides(v.text("max.connections.per.ip.overrides"))
	if err != nil {
		problem("max.connections.per.ip.overrides", "%s", err)
	}
	b.MaxConnectionsPerIPOverrides = overrides
	if b.MaxConnectionsPerIP == 0 && len(overrides) == 0 {
		problem("max.connections.per.ip", "may be 0 only when max.connections.per.ip.overrides allows some address to connect")
	}
	if b.ConnectionsMaxIdleMs >= 0 && v.int64("connection.failed.authentication.delay.ms") >= b.ConnectionsMaxIdleMs {
		problem("connection.failed.authentication.delay.ms", "must be below connections.max.idle.ms (%d)", b.ConnectionsMaxIdleMs)
	}
	if low, high := v.int64("log.cleaner.min.compaction.lag.ms"), v.int64("log.cleaner.max.compaction.lag.ms"); low > high {
		problem("log.cleaner.min.compaction.lag.ms", "must not be above log.cleaner.max.compaction.lag.ms (%d)", high)
	}
	cordoned := v.list("cordoned.log.dirs")
	if slices.Contains(cordoned, "*") && len(cordoned) > 1 {
		problem("cordoned.log.dirs", "* stands alone")
	}
	for _, dir := range cordoned {
		if dir != "*" && !slices.Contains(b.LogDirs, dir) {
			problem("cordoned.log.dirs", "%s is not among log.dirs", dir)
		}
	}
	for _, key := range []string{"offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"} {
		if codec := v.int(key); codec < 0 || codec > 4 {
			problem(key, "there are 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) and 4 (zstd)")
		}
	}
	b.checkGroups(problem)
}

// checkGroups checks that each default of a group protocol lies between its bounds.
func (b *Broker) checkGroups(problem problemFunc) {
	v := b.values
	if b.GroupMinSessionTimeoutMs > b.GroupMaxSessionTimeoutMs {
		problem("group.min.session.timeout.ms", "must not be above group.max.session.timeout.ms (%d)", b.GroupMaxSessionTimeoutMs)
	}
	within := func(low, key, high string) {
		if n := v.int64(key); n < v.int64(low) || n > v.int64(high) {
			problem(key, "must lie between %s (%d) and %s (%d)", low, v.int64(low), high, v.int64(high))
		}
	}
	for _, protocol := range []string{"consumer", "share", "streams"} {
		for _, setting := range []string{"heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"} {
			at := "group." + protocol + "."
			within(at+"min."+setting, at+setting, at+"max."+setting)
		}
		if session, heartbeat := v.int64("group."+protocol+".session.timeout.ms"), v.int64("group."+protocol+".heartbeat.interval.ms"); session <= heartbeat {
			problem("group."+protocol+".session.timeout.ms", "must be above group.%s.heartbeat.interval.ms (%d)", protocol, heartbeat)
		}
	}
	for _, setting := range []string{"delivery.count.limit", "record.lock.duration.ms", "partition.max.record.locks"} {
		within("group.share.min."+setting, "group.share."+setting, "group.share.max."+setting)
	}
}

// oddities are combinations that work but are hardly meant.
func (b *Broker) oddities() []Warning {
	var odd []Warning
	if 2*b.BrokerHeartbeatIntervalMs > b.BrokerSessionTimeoutMs {
		odd = append(odd, Warning{Key: "broker.heartbeat.interval.ms", Source: b.layers.origin["broker.heartbeat.interval.ms"],
			Message: fmt.Sprintf("is more than half of broker.session.timeout.ms (%d): one late heartbeat fences the broker", b.BrokerSessionTimeoutMs)})
	}
	return odd
}
