package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// SecurityProtocol is one of Kafka's four protocols of a listener.
type SecurityProtocol string

// The protocols that listener.security.protocol.map may name.
const (
	Plaintext     SecurityProtocol = "PLAINTEXT"
	SSL           SecurityProtocol = "SSL"
	SASLPlaintext SecurityProtocol = "SASL_PLAINTEXT"
	SASLSSL       SecurityProtocol = "SASL_SSL"
)

// ID is the protocol's number in broker registrations, -1 for one that Kafka does not know.
func (p SecurityProtocol) ID() int16 {
	return int16(slices.Index([]SecurityProtocol{Plaintext, SSL, SASLPlaintext, SASLSSL}, p))
}

// Listener is one entry of listeners or advertised.listeners.
type Listener struct {
	Name             string // as Kafka normalises it: upper case
	Host             string // without brackets. Empty: every interface (listeners), or whatever the client has reached (advertised)
	Port             int    // 0: chosen by the system
	SecurityProtocol SecurityProtocol
	Controller       bool // named in controller.listener.names
}

// String writes the listener as it is written in a properties file.
func (l Listener) String() string {
	host := l.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return l.Name + "://" + host + ":" + strconv.Itoa(l.Port)
}

// Wildcard reports whether the host stands for every interface.
func (l Listener) Wildcard() bool {
	if l.Host == "" {
		return true
	}
	a, err := netip.ParseAddr(l.Host)
	return err == nil && a.IsUnspecified()
}

var listenerEntry = regexp.MustCompile(`^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)$`)

// parseListeners reads the entries of listeners or advertised.listeners.
func parseListeners(entries []string, protocols map[string]SecurityProtocol, controllerNames []string) ([]Listener, error) {
	var listeners []Listener
	for _, entry := range entries {
		m := listenerEntry.FindStringSubmatch(entry)
		if m == nil || m[1] == "" {
			return nil, fmt.Errorf("%q is not of the form NAME://HOST:PORT", entry)
		}
		l := Listener{Name: strings.ToUpper(m[1]), Host: m[2]}
		port, err := strconv.Atoi(m[3])
		if err != nil || port < 0 || port > 65535 {
			return nil, fmt.Errorf("%q has a port outside 0 to 65535", entry)
		}
		l.Port = port
		protocol, ok := protocols[l.Name]
		if !ok {
			return nil, fmt.Errorf("listener %s has no entry in listener.security.protocol.map, and is not itself the name of a security protocol", l.Name)
		}
		l.SecurityProtocol = protocol
		l.Controller = slices.ContainsFunc(controllerNames, func(n string) bool { return strings.EqualFold(n, l.Name) })
		if slices.ContainsFunc(listeners, func(other Listener) bool { return other.Name == l.Name }) {
			return nil, fmt.Errorf("the name %s appears twice; each listener needs a name of its own", l.Name)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// checkPorts refuses two listeners on one port, unless one of them is on an IPv4 and the other on an IPv6 address.
func checkPorts(listeners []Listener) error {
	byPort := make(map[int][]Listener)
	for _, l := range listeners {
		if l.Port == 0 {
			continue
		}
		others := byPort[l.Port]
		if len(others) > 0 && !(len(others) == 1 && differentFamilies(others[0].Host, l.Host)) {
			return fmt.Errorf("listeners %s and %s have the same port; that works only with one IPv4 and one IPv6 address", others[0], l)
		}
		byPort[l.Port] = append(others, l)
	}
	return nil
}

func differentFamilies(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return errX == nil && errY == nil && x.Is4() != y.Is4()
}

// parseProtocolMap reads listener.security.protocol.map.
func parseProtocolMap(text string) (map[string]SecurityProtocol, error) {
	protocols := make(map[string]SecurityProtocol)
	for _, pair := range splitCSV(text) {
		name, protocol, ok := cutLast(pair, ":")
		p := SecurityProtocol(strings.ToUpper(strings.TrimSpace(protocol)))
		name = strings.ToUpper(strings.TrimSpace(name))
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("%q is not of the form NAME:PROTOCOL", pair)
		case p.ID() < 0:
			return nil, fmt.Errorf("%q is no security protocol; there are PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL", protocol)
		}
		protocols[name] = p
	}
	return protocols, nil
}

// splitCSV splits at commas and leaves out empty members.
func splitCSV(text string) []string {
	return slices.DeleteFunc(commaBetween.Split(strings.TrimSpace(text), -1), func(s string) bool { return s == "" })
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Voter is one entry of controller.quorum.voters.
type Voter struct {
	NodeID int32
	Host   string
	Port   int
}

func parseVoters(entries []string) ([]Voter, error) {
	const form = "Each entry should be in the form `{id}@{host}:{port}`."
	var voters []Voter
	for _, entry := range entries {
		id, address, ok := strings.Cut(entry, "@")
		if !ok || strings.Contains(address, "@") {
			return nil, fmt.Errorf("Invalid configuration value for controller.quorum.voters. %s", form)
		}
		n, err := strconv.ParseInt(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("Failed to parse voter ID as an integer from %s", id)
		}
		host, port, err := splitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("Failed to parse host name from entry %s for the configuration controller.quorum.voters. %s", entry, form)
		}
		voters = append(voters, Voter{NodeID: int32(n), Host: host, Port: port})
	}
	return voters, nil
}

var hostPort = regexp.MustCompile(`^(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)$`)

func splitHostPort(text string) (host string, port int, err error) {
	m := hostPort.FindStringSubmatch(text)
	if m == nil {
		return "", 0, fmt.Errorf("%q is not of the form HOST:PORT", text)
	}
	port, err = strconv.Atoi(m[2])
	if err != nil || port > 65535 {
		return "", 0, fmt.Errorf("%q has a port outside 0 to 65535", text)
	}
	return m[1], port, nil
}

var hostPattern = regexp.MustCompile(`^[0-9a-zA-Z\-%._:]*$`)

// parseIPOverrides reads max.connections.per.ip.overrides.
func parseIPOverrides(text string) (map[string]int, error) {
	limits := make(map[string]int)
	for _, pair := range splitCSV(text) {
		host, limit, ok := cutLast(pair, ":")
		host, limit = strings.TrimSpace(host), strings.TrimSpace(limit)
		n, err := strconv.Atoi(limit)
		if !ok || err != nil || host == "" || !hostPattern.MatchString(host) {
			return nil, fmt.Errorf("%q is not of the form ADDRESS:LIMIT", pair)
		}
		limits[host] = n
	}
	return limits, nil
}
