package config

// SecurityProtocol is one of Kafka's four protocols of a listener.
type SecurityProtocol string

// The protocols that listener.security.protocol.map may name.
const (
	Plaintext     SecurityProtocol = "PLAINTEXT"
	SSL           SecurityProtocol = "SSL"
	SASLPlaintext SecurityProtocol = "SASL_PLAINTEXT"
	SASLSSL       SecurityProtocol = "SASL_SSL"
)

// Listener is one entry of listeners or advertised.listeners.
type Listener struct {
	Name             string // as Kafka normalises it: upper case
	Host             string // empty: every interface (listeners) or worked out at start (advertised)
	Port             int    // 0: chosen by the system
	SecurityProtocol SecurityProtocol
	Controller       bool // named in controller.listener.names
}

// Voter is one entry of controller.quorum.voters.
type Voter struct {
	NodeID int32
	Host   string
	Port   int
}
