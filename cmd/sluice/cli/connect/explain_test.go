package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/cmd/sluice/cli/exit"
)

// TestExplain gives every kind of failure a sentence, a place and an exit code.
func TestExplain(t *testing.T) {
	const seed, advertised = "kafka:9092", "broker-1:9092"
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	dial := func(address string, err error) error {
		return fmt.Errorf("unable to dial: %w", &dialError{address, err})
	}
	for _, test := range []struct {
		name   string
		source string
		err    error
		failed error // what the last dial met
		code   int
		want   []string
	}{
		{"nothing there by default", "the default", dial(seed, refused), nil, exit.Unreachable, []string{"nothing listens on kafka:9092", "start a broker with `sluice`"}},
		{"nothing where -b says", "--bootstrap-server", dial(seed, refused), nil, exit.Unreachable, []string{"nothing listens on kafka:9092", "check --bootstrap-server"}},
		{"nothing where the cluster says", "--bootstrap-server", dial(advertised, refused), nil, exit.Unreachable, []string{"nothing listens on broker-1:9092", "the cluster advertises that address", "sluice doctor kafka:9092"}},
		{"unknown name", "the default", dial(seed, &net.DNSError{Err: "no such host"}), nil, exit.Unreachable, []string{"host name of kafka:9092 cannot be resolved"}},
		{"silence", "the default", dial(seed, context.DeadlineExceeded), nil, exit.Unreachable, []string{"kafka:9092 does not answer"}},
		{"time ran out", "the default", context.DeadlineExceeded, nil, exit.Unreachable, []string{"kafka:9092 did not answer within 3s", "--timeout"}},
		{"time ran out while dialling", "the default", context.DeadlineExceeded, refused, exit.Unreachable, []string{"nothing listens on broker-1:9092"}},
		{"hung up", "the default", io.EOF, nil, exit.Unreachable, []string{"closed the connection", "--tls"}},
		{"hung up in the handshake", "the default", dial(seed, io.EOF), nil, exit.Unreachable, []string{"TLS handshake"}},
		{"not TLS", "the default", dial(seed, tls.RecordHeaderError{}), nil, exit.Unreachable, []string{"does not speak TLS"}},
		{"untrusted", "the default", dial(seed, x509.UnknownAuthorityError{}), nil, exit.Unreachable, []string{"--tls-ca"}},
		{"wrong password", "the default", kerr.SaslAuthenticationFailed, nil, exit.Failed, []string{"refused the login"}},
		{"unknown topic", "the default", kerr.UnknownTopicOrPartition, nil, exit.NotFound, []string{"UNKNOWN_TOPIC_OR_PARTITION"}},
		{"something else", "the default", errors.New("odd"), nil, exit.Failed, []string{"odd"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &Client{Target: Target{Seeds: []string{seed}, Source: test.source}, timeout: 3 * time.Second, dialled: &dialer{failures: map[string]error{}}}
			if test.failed != nil {
				c.dialled.failures[advertised] = &dialError{advertised, test.failed}
			}
			err := c.Explain(test.err)
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not have %q", err, want)
				}
			}
			if exit.Code(err) != test.code {
				t.Errorf("exit code %d, want %d", exit.Code(err), test.code)
			}
			if again := c.Explain(err); again.Error() != err.Error() || exit.Code(again) != test.code {
				t.Errorf("explained twice it is %q", again)
			}
		})
	}
}

// TestRefused keeps the broker's own sentence, and Kafka's name for it.
func TestRefused(t *testing.T) {
	c := &Client{dialled: &dialer{failures: map[string]error{}}}
	for _, test := range []struct {
		err     error
		message string
		want    string
	}{
		{kerr.TopicAlreadyExists, "Topic 't' already exists.", "cannot create t: Topic 't' already exists (TOPIC_ALREADY_EXISTS)"},
		{&kadm.ErrAndMessage{Err: kerr.PolicyViolation, ErrMessage: "too wide"}, "", "cannot create t: too wide (POLICY_VIOLATION)"},
		{errors.New("odd"), "", "cannot create t: odd"},
	} {
		err := c.Refused("create t", test.err, test.message)
		if err.Error() != test.want {
			t.Errorf("%q, want %q", err, test.want)
		}
	}
	if err := c.Refused("create t", kerr.TopicAlreadyExists, ""); !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Errorf("%v is no longer what Kafka said", err)
	}
	if err := c.Refused("create t", nil, "x"); err != nil {
		t.Error(err)
	}
}
