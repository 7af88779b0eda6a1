package doctor

import (
	"fmt"
	"io"
	"strings"
	"time"

	"sluice/cmd/sluice/cli/output"
)

// report is everything that was seen and found.
type report struct {
	Asked      *endpoint   `json:"asked"`
	ClusterID  string      `json:"clusterId,omitempty"`
	Controller int32       `json:"controller"`
	Brokers    []*endpoint `json:"brokers"`
	Findings   []finding   `json:"findings"`
}

// severity says what a finding means for the exit code.
type severity string

const (
	failure severity = "error"   // clients do not work, or not all of the time
	warning severity = "warning" // works from here, or for now
)

// finding is one thing that is wrong: what, and what to change, a sentence each.
type finding struct {
	Severity severity `json:"severity"`
	// Code is a word for scripts, which stays the same when the sentences get better.
	Code    string `json:"code"`
	Problem string `json:"problem"`
	Change  string `json:"change"`
}

// askedBroker is the endpoint.Broker of the address that the person gave.
const askedBroker int32 = -1

// endpoint is what was seen of one address.
type endpoint struct {
	Broker    int32    `json:"broker"` // -1 for the address that was asked
	Address   string   `json:"address"`
	IPs       []string `json:"resolvesTo"`
	Connected string   `json:"connected,omitempty"` // the first of them that could be connected to
	// ConnectMs and AnswerMs are the time for a connection, and for Metadata, in ms.
	ConnectMs   float64      `json:"connectMs,omitempty"`
	AnswerMs    float64      `json:"answerMs,omitempty"`
	Release     string       `json:"kafkaRelease,omitempty"`
	APIs        int          `json:"apis,omitempty"`
	Certificate *certificate `json:"certificate,omitempty"`
	Trouble     trouble      `json:"trouble,omitempty"`
	Detail      string       `json:"detail,omitempty"` // of the trouble

	unconnected []string // of IPs
	answer      *answer  // nil with a trouble
}

// certificate is what a TLS listener showed.
type certificate struct {
	Subject  string    `json:"subject"`
	Issuer   string    `json:"issuer"`
	Names    []string  `json:"names"`
	NotAfter time.Time `json:"notAfter"`
	Chain    int       `json:"chain"` // how many certificates were shown
}

func (r *report) errors() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == failure {
			n++
		}
	}
	return n
}

func (r *report) write(w io.Writer) error {
	fmt.Fprintf(w, "%s\n", r.Asked.line())
	if r.Asked.answer != nil {
		fmt.Fprintf(w, "cluster %s, controller %d\n\n", output.Clean(r.ClusterID), r.Controller)
		table := output.NewTable("BROKER", "ADVERTISES", "RESOLVES TO", "CONNECT", "ANSWER", "SPEAKS", "STATE")
		for _, b := range r.Brokers {
			state := string(b.Trouble)
			if b.Trouble == "" {
				state = "ok"
			}
			table.Row(b.Broker, b.Address, strings.Join(b.IPs, ","), ms(b.ConnectMs), ms(b.AnswerMs), b.Release, state)
		}
		if err := table.Write(w); err != nil {
			return err
		}
	}
	for _, f := range r.Findings {
		fmt.Fprintf(w, "\n%s: %s.\n  Change: %s.\n", f.Severity, output.Clean(f.Problem), output.Clean(f.Change))
	}
	if len(r.Findings) == 0 {
		fmt.Fprintf(w, "\nNothing is wrong: a client on this machine reaches every broker.\n")
	}
	return nil
}

// line says in a row how far a client gets with an address.
func (e *endpoint) line() string {
	parts := []string{e.Address}
	if len(e.IPs) > 0 {
		parts = append(parts, "resolves to "+strings.Join(e.IPs, ", "))
	}
	if e.Connected != "" {
		parts = append(parts, fmt.Sprintf("connected to %s in %s", e.Connected, ms(e.ConnectMs)))
	}
	if c := e.Certificate; c != nil {
		parts = append(parts, fmt.Sprintf("certificate of %s for %s, valid until %s, by %s", output.Clean(c.Subject), output.Clean(strings.Join(c.Names, " ")), c.NotAfter.UTC().Format("2006-01-02"), output.Clean(c.Issuer)))
	}
	if e.APIs > 0 {
		parts = append(parts, fmt.Sprintf("%d APIs as of Kafka %s", e.APIs, e.Release))
	}
	if e.AnswerMs > 0 {
		parts = append(parts, "answers in "+ms(e.AnswerMs))
	}
	if e.Trouble != "" {
		parts = append(parts, string(e.Trouble))
	}
	return strings.Join(parts, "; ")
}

func ms(n float64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f ms", n)
}
