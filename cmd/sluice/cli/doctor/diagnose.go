package doctor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// diagnose says what is wrong in what was seen. It decides and does nothing else.
func diagnose(r *report) []finding {
	d := diagnosis{report: r, findings: []finding{}}
	d.asked()
	if r.Asked.answer != nil {
		d.cluster()
		for _, b := range r.Brokers {
			d.broker(b)
		}
		d.sameAddress()
		d.settings()
		d.partitions()
	}
	return d.findings
}

type diagnosis struct {
	report   *report
	findings []finding
}

func (d *diagnosis) add(s severity, code, problem, change string) {
	d.findings = append(d.findings, finding{s, code, problem, change})
}

// asked judges the address that the person gave.
func (d *diagnosis) asked() {
	e := d.report.Asked
	port := portOf(e.Address)
	switch e.Trouble {
	case "":
		if len(e.unconnected) > 0 {
			d.add(warning, "address-partly-refused", fmt.Sprintf("%s stands for %s, and nothing answers on %s: clients that try only the first one fail or are slow",
				hostOf(e.Address), strings.Join(e.IPs, " and "), strings.Join(e.unconnected, " and ")),
				fmt.Sprintf("let the broker listen on all of them, or connect to %s", net.JoinHostPort(e.Connected, port)))
		}
		if c := e.Certificate; c != nil && time.Until(c.NotAfter) < certificateSoon {
			d.add(warning, "certificate-expires", "the certificate of "+e.Address+" is valid only until "+c.NotAfter.UTC().Format(time.DateTime), "renew it")
		}
	case malformed:
		d.add(failure, "bootstrap-malformed", fmt.Sprintf("%s is not an address (%s)", e.Address, e.Detail), "give HOST:PORT, as localhost:9092")
	case unresolvable:
		d.add(failure, "bootstrap-unresolvable", fmt.Sprintf("the host name of %s cannot be resolved on this machine%s", e.Address, containerName(e.Address)), "correct the name, or make this machine's DNS or hosts file know it")
	case refused:
		d.add(failure, "bootstrap-refused", fmt.Sprintf("nothing listens on %s (%s refuses the connection)", e.Address, strings.Join(e.IPs, ", ")),
			"start the broker (`sluice`), correct the port, or publish the port of its container (docker run -p "+port+":"+port+")")
	case silentHost:
		d.add(failure, "bootstrap-silent", e.Address+" does not answer at all: the host is down, or a firewall drops the packets", "open the port "+port+" towards this machine, or correct the address")
	case unconnectable:
		d.add(failure, "bootstrap-unconnectable", fmt.Sprintf("%s cannot be connected to (%s)", e.Address, e.Detail), "correct the address, or the network between here and there")
	default:
		problem, change := listenerTrouble(e)
		d.add(failure, "listener-"+code(e.Trouble), problem, change)
	}
}

// certificateSoon is when somebody should know that a certificate expires.
const certificateSoon = 14 * 24 * time.Hour

// listenerTrouble is about an address where something listens, and not what a client needs.
func listenerTrouble(e *endpoint) (problem, change string) {
	switch e.Trouble {
	case wantsTLS:
		return e.Address + " wants TLS, and the connection was plaintext", "connect with --tls (security.protocol=SSL or SASL_SSL in a client's settings), or use the port of the plaintext listener"
	case wantsNoTLS:
		return e.Address + " is a listener without TLS, and the connection was with TLS", "leave --tls away (security.protocol=PLAINTEXT or SASL_PLAINTEXT), or use the port of the TLS listener"
	case badTLS:
		return fmt.Sprintf("the TLS handshake with %s fails (%s)", e.Address, e.Detail), "trust the authority that signed the certificate (--tls-ca), connect by a name that is in it, or issue one that fits"
	case speaksHTTP:
		return e.Address + " is a web server, and not a Kafka listener", "use the broker's client port, which is 9092 by default (Sluice's admin port is 9644)"
	case isController:
		return e.Address + " is a controller's listener: it has none of the APIs that clients need", "use the port of the broker's listener, which is 9092 by default"
	case wantsLogin:
		return fmt.Sprintf("%s closes the connection when it is asked for the brokers: it wants a login", e.Address), "log in by --sasl-user and --sasl-mechanism (security.protocol=SASL_PLAINTEXT or SASL_SSL), or use a listener without a login"
	case refusedLogin:
		return fmt.Sprintf("%s refuses the login (%s)", e.Address, e.Detail), "correct the user, the password or the mechanism"
	case notKafka:
		return fmt.Sprintf("what listens on %s is no Kafka broker (%s)", e.Address, e.Detail), "use the port of a broker's listener for clients"
	}
	return fmt.Sprintf("%s does not answer as a broker does (%s)", e.Address, e.Detail), "look into the log of the broker"
}

// code is a trouble as a word for scripts.
func code(t trouble) string { return strings.ToLower(strings.ReplaceAll(string(t), " ", "-")) }

// cluster judges what the asked broker says of its cluster.
func (d *diagnosis) cluster() {
	a := d.report.Asked.answer
	if len(a.brokers) == 0 {
		d.add(failure, "no-brokers", "the cluster names no broker, so clients have nobody to write to", "look into the log of the controller: the brokers have not registered, or are fenced")
	}
	if a.controller < 0 {
		d.add(failure, "no-controller", "the cluster has no controller, so topics cannot be created and leaders not be chosen", "start the controllers: a majority of controller.quorum.voters must run and reach each other")
	}
}

// broker judges the address that a broker advertises.
func (d *diagnosis) broker(e *endpoint) {
	who := fmt.Sprintf("broker %d advertises %s", e.Broker, e.Address)
	change := d.advertise(e)
	asked := d.report.Asked
	switch {
	case isWildcard(hostOf(e.Address)):
		d.add(failure, "advertised-wildcard", who+", which stands for every address of a machine and leads each client to itself", change)
		return
	case isLoopbackOnly(e.IPs) && !isLoopback(asked.Connected):
		severity, but := failure, "clients on other machines connect to themselves"
		if e.Trouble == "" {
			severity, but = warning, "only clients on its own machine, as this one, reach it"
		}
		d.add(severity, "advertised-loopback", fmt.Sprintf("%s, while it was reached at %s: %s", who, asked.Address, but), change)
		return
	}
	switch e.Trouble {
	case "":
		d.identity(e, who, change)
		if len(e.unconnected) > 0 && e.Address != asked.Address {
			d.add(warning, "advertised-partly-refused", fmt.Sprintf("%s, and nothing answers on %s of the addresses that it stands for", who, strings.Join(e.unconnected, " and ")), change)
		}
	case malformed:
		d.add(failure, "advertised-malformed", fmt.Sprintf("%s, which is not an address (%s)", who, e.Detail), change)
	case unresolvable:
		d.add(failure, "advertised-unresolvable", fmt.Sprintf("%s, a name that this machine cannot resolve%s", who, containerName(e.Address)), change)
	case refused:
		d.add(failure, "advertised-refused", fmt.Sprintf("%s, and nothing listens there: clients get from %s to a refused connection", who, asked.Address), change)
	case silentHost:
		d.add(failure, "advertised-silent", fmt.Sprintf("%s, which does not answer from here%s", who, privateAddress(e.IPs)), change)
	case unconnectable:
		d.add(failure, "advertised-unconnectable", fmt.Sprintf("%s, which cannot be connected to (%s)", who, e.Detail), change)
	default:
		problem, _ := listenerTrouble(e)
		d.add(failure, "advertised-"+code(e.Trouble), fmt.Sprintf("%s, and %s", who, problem), change)
	}
}

// identity judges whether the address leads to the broker that advertises it.
func (d *diagnosis) identity(e *endpoint, who, change string) {
	switch {
	case e.answer.clusterID != d.report.ClusterID:
		e.Trouble = otherCluster
		d.add(failure, "advertised-other-cluster", fmt.Sprintf("%s, and there a broker of another cluster answers (%s, not %s)", who, e.answer.clusterID, d.report.ClusterID), change)
	case errors.Is(e.answer.settingsErr, errOtherBroker):
		e.Trouble = otherBroker
		d.add(failure, "advertised-other-broker", who+", and there another broker of the cluster answers", change)
	}
}

// advertise says what a broker should advertise instead. With one broker it is where it was reached.
func (d *diagnosis) advertise(e *endpoint) string {
	if len(d.report.Brokers) == 1 {
		return fmt.Sprintf("set advertised.listeners of broker %d to an address that its clients reach, as PLAINTEXT://%s, where it was reached now", e.Broker, d.report.Asked.Address)
	}
	return fmt.Sprintf("set advertised.listeners of broker %d to an address of its own that all of its clients and the other brokers reach", e.Broker)
}

// sameAddress finds brokers that advertise the same address.
func (d *diagnosis) sameAddress() {
	first := map[string]int32{}
	for _, b := range d.report.Brokers {
		other, taken := first[b.Address]
		if !taken {
			first[b.Address] = b.Broker
			continue
		}
		d.add(failure, "advertised-twice", fmt.Sprintf("the brokers %d and %d both advertise %s, so clients reach only one of them", other, b.Broker, b.Address),
			"give each broker an advertised.listeners of its own")
	}
}

// settings compares settings with the number of brokers.
func (d *diagnosis) settings() {
	n := len(d.report.Brokers)
	has := map[string]bool{}
	for _, t := range d.report.Asked.answer.topics {
		if t.Topic != nil {
			has[*t.Topic] = true
		}
	}
	seen := map[string]bool{} // the same setting of all brokers is one finding
	for _, b := range d.report.Brokers {
		if b.answer == nil {
			continue
		}
		wanted := func(key string) int {
			var value int
			if _, err := fmt.Sscan(b.answer.settings[key], &value); err != nil || value <= n || seen[key] {
				return 0
			}
			seen[key] = true
			return value
		}
		brokers := fmt.Sprintf("the cluster has %d", n)
		if value := wanted(offsetsReplication); value > 0 && !has["__consumer_offsets"] {
			d.add(failure, "offsets-replication", fmt.Sprintf("%s is %d and %s, so the topic for committed offsets cannot be created, and consumer groups do not work", offsetsReplication, value, brokers),
				fmt.Sprintf("set %s=%d, or start more brokers", offsetsReplication, max(n, 1)))
		}
		if value := wanted(transactionReplication); value > 0 && !has["__transaction_state"] {
			d.add(warning, "transactions-replication", fmt.Sprintf("%s is %d and %s, so transactions do not work", transactionReplication, value, brokers),
				fmt.Sprintf("set %s=%d (and transaction.state.log.min.isr no higher), or start more brokers", transactionReplication, max(n, 1)))
		}
		if value := wanted(defaultReplication); value > 0 {
			d.add(failure, "default-replication", fmt.Sprintf("%s is %d and %s, so topics cannot be created without saying how many replicas they have", defaultReplication, value, brokers),
				fmt.Sprintf("set %s=%d, or start more brokers", defaultReplication, max(n, 1)))
		}
		if value := wanted(minInSyncReplicas); value > 0 {
			d.add(failure, "min-insync-replicas", fmt.Sprintf("%s is %d and %s, so producers that wait for all replicas, as most do, are refused", minInSyncReplicas, value, brokers),
				fmt.Sprintf("set %s=%d, or start more brokers", minInSyncReplicas, max(n, 1)))
		}
	}
}

// partitions finds partitions that cannot be used.
func (d *diagnosis) partitions() {
	var leaderless, behind []string
	for _, t := range d.report.Asked.answer.topics {
		for _, p := range t.Partitions {
			if t.Topic == nil {
				continue
			}
			name := fmt.Sprintf("%s-%d", *t.Topic, p.Partition)
			if p.Leader < 0 {
				leaderless = append(leaderless, name)
			} else if len(p.ISR) < len(p.Replicas) {
				behind = append(behind, name)
			}
		}
	}
	if len(leaderless) > 0 {
		d.add(failure, "no-leader", fmt.Sprintf("%d partitions have no leader and can be neither written nor read: %s", len(leaderless), some(leaderless)), "start the brokers that have their replicas")
	}
	if len(behind) > 0 {
		d.add(warning, "out-of-sync", fmt.Sprintf("%d partitions have replicas that are not in sync: %s", len(behind), some(behind)), "start the brokers that are missing, or look for what slows them down")
	}
}

// some is the first few of a list.
func some(names []string) string {
	const shown = 5
	slices.Sort(names)
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

// containerName guesses at where a name without a dot comes from.
func containerName(address string) string {
	if host := hostOf(address); !strings.Contains(host, ".") && !strings.Contains(host, ":") {
		return "; it looks like the name of a container, which only containers on its network know"
	}
	return ""
}

// privateAddress guesses at where an address that does not answer comes from.
func privateAddress(ips []string) string {
	for _, text := range ips {
		if ip, err := netip.ParseAddr(text); err == nil && ip.IsPrivate() {
			return "; it is a private address, perhaps a container's own, which other machines do not reach"
		}
	}
	return ""
}

func isWildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}

func isLoopback(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.IsLoopback()
}

func isLoopbackOnly(ips []string) bool {
	return len(ips) > 0 && !slices.ContainsFunc(ips, func(ip string) bool { return !isLoopback(ip) })
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

func portOf(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "9092"
	}
	return port
}
