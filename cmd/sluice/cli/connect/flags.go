// Package connect turns flags, environment and the contexts file into a connection to a cluster, and says in words for people why there is none.
package connect

import (
	"cmp"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/cmd/sluice/cli/exit"
)

// DefaultAddress is where a broker is looked for when nothing names one.
const DefaultAddress = "localhost:9092"

// Annotation marks the flags of this package, so that help texts can show them apart.
const Annotation = "sluice_connection"

// Flags are the flags that each command has that talks to a broker.
type Flags struct {
	Bootstrap []string
	Context   string
	// Timeout bounds how long the first broker, and then one answer, is waited for.
	Timeout time.Duration

	TLS         bool
	TLSCA       string
	TLSCert     string
	TLSKey      string
	TLSName     string
	TLSInsecure bool

	SASLMechanism    string
	SASLUser         string
	SASLPasswordFile string
}

// Add defines the flags on a command.
func (f *Flags) Add(cmd *cobra.Command) {
	flags := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	flags.SortFlags, cmd.Flags().SortFlags = false, false // help lists them in the order in which they are defined
	flags.StringSliceVarP(&f.Bootstrap, "bootstrap-server", "b", nil, "a broker's `HOST:PORT`, or several with commas (default $SLUICE_BOOTSTRAP, else the context's, else "+DefaultAddress+")")
	flags.StringVar(&f.Context, "context", "", "take the connection from this context, `NAME`, of the contexts file (default $SLUICE_CONTEXT; see \"sluice context --help\")")
	flags.DurationVar(&f.Timeout, "timeout", 15*time.Second, "give up when no broker answers within `TIME`")
	flags.BoolVar(&f.TLS, "tls", false, "connect with TLS; the other --tls flags imply it")
	flags.StringVar(&f.TLSCA, "tls-ca", "", "trust the certificates in `FILE` (PEM) instead of the system's")
	flags.StringVar(&f.TLSCert, "tls-cert", "", "show the broker this certificate, `FILE` (PEM)")
	flags.StringVar(&f.TLSKey, "tls-key", "", "the key of --tls-cert, `FILE` (PEM)")
	flags.StringVar(&f.TLSName, "tls-server-name", "", "expect a certificate for `NAME` instead of the host's name")
	flags.BoolVar(&f.TLSInsecure, "tls-insecure", false, "accept any certificate; anybody between you and the broker can read and change everything")
	flags.StringVar(&f.SASLMechanism, "sasl-mechanism", "", "log in by `MECHANISM`: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (default PLAIN with --sasl-user)")
	flags.StringVar(&f.SASLUser, "sasl-user", "", "log in as `USER`")
	flags.StringVar(&f.SASLPasswordFile, "sasl-password-file", "", "the password is the first line of `FILE` (default $SLUICE_SASL_PASSWORD)")
	flags.VisitAll(func(flag *pflag.Flag) { flag.Annotations = map[string][]string{Annotation: {"true"}} })
	cmd.Flags().AddFlagSet(flags)
}

// Target is a cluster and how to connect to it.
type Target struct {
	Seeds    []string
	Security Security
	// Source says for people where the address came from.
	Source string
}

// Security is what a connection needs beside an address. The zero value is plaintext without a login.
type Security struct {
	TLS                     bool
	CA, Cert, Key           string // files
	ServerName              string
	Insecure                bool
	Mechanism, User         string
	PasswordFile, Password  string
	passwordFromEnvironment bool
}

// Target decides which cluster is meant. An address comes from -b, from --context, from $SLUICE_BOOTSTRAP, from the contexts file's current
// context, or is the default, in this order. Settings of a context are used only with that context's address or when it was asked for by name,
// so that a password never goes to a broker that it was not meant for.
func (f *Flags) Target() (Target, error) {
	t := Target{Seeds: []string{DefaultAddress}, Source: "the default"}
	name := cmp.Or(f.Context, os.Getenv("SLUICE_CONTEXT"))
	environment := splitAddresses(os.Getenv("SLUICE_BOOTSTRAP"))
	if name != "" || len(f.Bootstrap) == 0 && len(environment) == 0 {
		contexts, err := ReadContexts()
		if err != nil {
			return t, err
		}
		if name = cmp.Or(name, contexts.Current); name != "" {
			if t, err = contexts.Target(name); err != nil {
				return t, err
			}
		}
	} else if len(environment) > 0 {
		t.Seeds, t.Source = environment, "$SLUICE_BOOTSTRAP"
	}
	if len(f.Bootstrap) > 0 {
		if t.Seeds = splitAddresses(strings.Join(f.Bootstrap, ",")); len(t.Seeds) == 0 {
			return t, exit.Usagef("--bootstrap-server is empty: want HOST:PORT")
		}
		t.Source = "--bootstrap-server"
	}
	f.overrideSecurity(&t.Security)
	return t, t.Security.check()
}

func (f *Flags) overrideSecurity(s *Security) {
	s.CA, s.Cert, s.Key = cmp.Or(f.TLSCA, s.CA), cmp.Or(f.TLSCert, s.Cert), cmp.Or(f.TLSKey, s.Key)
	s.ServerName, s.Insecure = cmp.Or(f.TLSName, s.ServerName), f.TLSInsecure || s.Insecure
	s.TLS = f.TLS || s.TLS || s.CA != "" || s.Cert != "" || s.ServerName != "" || s.Insecure
	s.Mechanism, s.User = strings.ToUpper(cmp.Or(f.SASLMechanism, s.Mechanism)), cmp.Or(f.SASLUser, s.User)
	if s.Mechanism == "" && s.User != "" {
		s.Mechanism = "PLAIN"
	}
	s.PasswordFile = cmp.Or(f.SASLPasswordFile, s.PasswordFile)
	if s.Mechanism != "" && s.PasswordFile == "" {
		s.Password = os.Getenv("SLUICE_SASL_PASSWORD")
		s.passwordFromEnvironment = true
	}
}

func splitAddresses(list string) []string {
	var addresses []string
	for address := range strings.SplitSeq(list, ",") {
		if address = strings.TrimSpace(address); address != "" {
			addresses = append(addresses, address)
		}
	}
	return addresses
}
