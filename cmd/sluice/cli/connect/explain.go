package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/cmd/sluice/cli/exit"
)

// errNoAnswer is the cause of a context that Bound has ended.
var errNoAnswer = errors.New("no answer in time")

// refusedOnWindows is WSAECONNREFUSED, which is not syscall.ECONNREFUSED.
const refusedOnWindows = syscall.Errno(10061)

// Explain turns an error into a sentence that says what is wrong, where, and what to do, with an exit code.
func (c *Client) Explain(err error) error {
	if err == nil {
		return nil
	}
	if dial, ok := errors.AsType[*dialError](err); ok {
		return c.explainDial(dial)
	}
	where := strings.Join(c.Target.Seeds, ",")
	if errors.Is(err, context.DeadlineExceeded) {
		// Time ran out; if a broker could not be dialled meanwhile, that is why.
		if dial, ok := errors.AsType[*dialError](c.dialled.failure()); ok {
			return c.explainDial(dial)
		}
		return exit.With(exit.Unreachable, fmt.Errorf("%s did not answer within %v: is that a Kafka listener? `sluice doctor %s` looks closer; --timeout waits longer", where, c.timeout, c.Target.Seeds[0]))
	}
	if errors.As(err, new(*kgo.ErrFirstReadEOF)) || errors.Is(err, io.EOF) {
		return exit.With(exit.Unreachable, fmt.Errorf("%s closed the connection before it answered: %s", where, c.suspectSecurity()))
	}
	if code, ok := errors.AsType[*kerr.Error](err); ok {
		switch code.Code {
		case kerr.SaslAuthenticationFailed.Code:
			return fmt.Errorf("%s refused the login of %s: check the user, the password and --sasl-mechanism", where, c.Target.Security.User)
		case kerr.UnsupportedSaslMechanism.Code:
			return fmt.Errorf("%s does not offer %s: try another --sasl-mechanism", where, c.Target.Security.Mechanism)
		}
		return Coded(err)
	}
	return err
}

// suspectSecurity guesses why a broker hangs up at once.
func (c *Client) suspectSecurity() string {
	switch s := c.Target.Security; {
	case !s.TLS && s.Mechanism == "":
		return "the listener may want TLS (--tls) or a login (--sasl-user), or is not Kafka's protocol"
	case !s.TLS:
		return "the listener may want TLS (--tls), or no login"
	case s.Mechanism == "":
		return "the listener may want a login (--sasl-user), or a certificate (--tls-cert)"
	}
	return "the listener may want another --sasl-mechanism, or no TLS"
}

func (c *Client) explainDial(e *dialError) error {
	if !c.isSeed(e.address) {
		return exit.With(exit.Unreachable, fmt.Errorf("%s: the cluster advertises that address; the broker's advertised.listeners should be one that this machine reaches, and `sluice doctor %s` says more",
			DialSentence(e.address, e.err), c.Target.Seeds[0]))
	}
	var hint string
	switch {
	case isTLS(e.err):
		hint = "see the --tls flags"
		if !c.Target.Security.TLS {
			hint = "it may want TLS (--tls)"
		}
	case c.Target.Source == "the default":
		hint = "start a broker with `sluice`, or name another one by -b HOST:PORT or $SLUICE_BOOTSTRAP"
	default:
		hint = "check " + c.Target.Source + ", or start a broker there with `sluice`"
	}
	return exit.With(exit.Unreachable, fmt.Errorf("%s: %s", DialSentence(e.address, e.err), hint))
}

// isSeed reports whether an address is one that the person named, and not one that the cluster did.
func (c *Client) isSeed(address string) bool {
	host, port, err := net.SplitHostPort(address)
	return err != nil || slices.ContainsFunc(c.Target.Seeds, func(seed string) bool {
		return seed == address || port == "9092" && strings.Trim(seed, "[]") == host
	})
}

// isTLS reports whether a connection failed after the host had accepted it.
func isTLS(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, &invalid) ||
		errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.AlertError)) || errors.Is(err, io.EOF)
}

// Refused reports whether nothing listened on the address.
func Refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, refusedOnWindows)
}

// DialSentence says in words what an error of a dialled address means, and not yet what to do.
func DialSentence(address string, err error) string {
	var dns *net.DNSError
	var invalid x509.CertificateInvalidError
	switch {
	case Refused(err):
		return fmt.Sprintf("nothing listens on %s (connection refused)", address)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host name of %s cannot be resolved (%s)", address, dns.Err)
	case errors.As(err, new(x509.HostnameError)):
		return fmt.Sprintf("the certificate of %s is for another name (%v)", address, err)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Sprintf("the certificate of %s is signed by nobody that is trusted here, and --tls-ca FILE would name the authority", address)
	case errors.As(err, &invalid):
		return fmt.Sprintf("the certificate of %s is not valid (%v)", address, err)
	case errors.As(err, new(tls.RecordHeaderError)):
		return fmt.Sprintf("%s does not speak TLS", address)
	case errors.Is(err, io.EOF):
		return fmt.Sprintf("%s closed the connection in the TLS handshake, as a listener without TLS does", address)
	case errors.Is(err, context.DeadlineExceeded), timedOut(err):
		return fmt.Sprintf("%s does not answer: a firewall may drop packets, or the host is down", address)
	}
	return fmt.Sprintf("cannot connect to %s (%v)", address, err)
}

func timedOut(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// notFound are the codes that mean that something named does not exist.
var notFound = []*kerr.Error{kerr.UnknownTopicOrPartition, kerr.GroupIDNotFound, kerr.UnknownTopicID, kerr.UnknownMemberID}

// Coded gives an error of Kafka's its exit code.
func Coded(err error) error {
	if slices.ContainsFunc(notFound, func(e *kerr.Error) bool { return errors.Is(err, e) }) {
		return exit.With(exit.NotFound, err)
	}
	return err
}

// Refused is the error of a request that a broker refused: what was attempted, the broker's own sentence where it gave one, and Kafka's name
// for the code. nil when err is nil.
func (c *Client) Refused(attempt string, err error, message string) error {
	if err == nil {
		return nil
	}
	code, ok := errors.AsType[*kerr.Error](err)
	if !ok {
		return fmt.Errorf("cannot %s: %w", attempt, c.Explain(err))
	}
	if both, ok := errors.AsType[*kadm.ErrAndMessage](err); ok && message == "" {
		message = both.ErrMessage
	}
	if message == "" {
		message = code.Description
	}
	return Coded(&refusal{fmt.Sprintf("cannot %s: %s (%s)", attempt, strings.TrimSuffix(message, "."), code.Message), code})
}

// refusal is a whole sentence about a code of Kafka's, which it still is.
type refusal struct {
	sentence string
	code     *kerr.Error
}

func (r *refusal) Error() string { return r.sentence }
func (r *refusal) Unwrap() error { return r.code }
