package connect

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"sluice/cmd/sluice/cli/exit"
)

// check refuses settings that do not go together, before anything is connected.
func (s Security) check() error {
	switch {
	case (s.Cert == "") != (s.Key == ""):
		return exit.Usagef("a certificate and its key go together: give both --tls-cert and --tls-key")
	case s.Mechanism == "":
		return nil
	case s.Mechanism != "PLAIN" && s.Mechanism != "SCRAM-SHA-256" && s.Mechanism != "SCRAM-SHA-512":
		return exit.Usagef("--sasl-mechanism %s: want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", s.Mechanism)
	case s.User == "":
		return exit.Usagef("%s needs a user: give --sasl-user", s.Mechanism)
	case s.passwordFromEnvironment && s.Password == "":
		return exit.Usagef("%s needs a password: give --sasl-password-file FILE, or set $SLUICE_SASL_PASSWORD", s.Mechanism)
	}
	return nil
}

// TLSConfig is nil for plaintext.
func (s Security) TLSConfig() (*tls.Config, error) {
	if !s.TLS {
		return nil, nil
	}
	c := &tls.Config{ServerName: s.ServerName, InsecureSkipVerify: s.Insecure} //nolint:gosec // only when the person asked for it by --tls-insecure
	if s.CA != "" {
		pem, err := os.ReadFile(s.CA)
		if err != nil {
			return nil, fmt.Errorf("cannot read the certificates to trust: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM form; a Java key store can be converted: keytool -exportcert -rfc -keystore FILE", s.CA)
		}
	}
	if s.Cert != "" {
		pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return nil, fmt.Errorf("cannot load the certificate %s with the key %s: %w", s.Cert, s.Key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// mechanism is nil without a login.
func (s Security) mechanism() (sasl.Mechanism, error) {
	if s.Mechanism == "" {
		return nil, nil
	}
	password := s.Password
	if s.PasswordFile != "" {
		content, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read the password: %w", err)
		}
		password, _, _ = strings.Cut(string(content), "\n")
		if password = strings.TrimSuffix(password, "\r"); password == "" {
			return nil, fmt.Errorf("the first line of %s is empty: it should be the password", s.PasswordFile)
		}
	}
	switch s.Mechanism {
	case "PLAIN":
		return plain.Auth{User: s.User, Pass: password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: s.User, Pass: password}.AsSha256Mechanism(), nil
	}
	return scram.Auth{User: s.User, Pass: password}.AsSha512Mechanism(), nil
}
