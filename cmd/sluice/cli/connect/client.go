package connect

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// dialTimeout is how long one address is tried.
const dialTimeout = 5 * time.Second

// Client is a connection to a cluster.
type Client struct {
	*kgo.Client
	Admin  *kadm.Client
	Target Target

	timeout time.Duration
	dialled *dialer
}

// Open connects to the cluster that the flags mean. It returns when a broker has answered, or with an error for people when none did within
// the timeout.
func (f *Flags) Open(ctx context.Context, options ...kgo.Opt) (*Client, error) {
	target, err := f.Target()
	if err != nil {
		return nil, err
	}
	c, err := target.Client(f.Timeout, options...)
	if err != nil {
		return nil, err
	}
	bounded, cancel := c.Bound(ctx)
	defer cancel()
	if err := c.Ping(bounded); err != nil {
		c.Close()
		return nil, c.Explain(err)
	}
	return c, nil
}

// Client is a client that has not connected yet.
func (t Target) Client(timeout time.Duration, options ...kgo.Opt) (*Client, error) {
	c := &Client{Target: t, timeout: timeout}
	own, err := c.options()
	if err != nil {
		return nil, err
	}
	if c.Client, err = kgo.NewClient(append(own, options...)...); err != nil {
		return nil, err
	}
	c.Admin = kadm.NewClient(c.Client)
	return c, nil
}

// options are those of every client: the address, security, few repetitions. A person waits for the answer.
func (c *Client) options() ([]kgo.Opt, error) {
	config, err := c.Target.Security.TLSConfig()
	if err != nil {
		return nil, err
	}
	mechanism, err := c.Target.Security.mechanism()
	if err != nil {
		return nil, err
	}
	c.dialled = &dialer{config: config, failures: map[string]error{}}
	options := []kgo.Opt{
		kgo.SeedBrokers(c.Target.Seeds...),
		kgo.ClientID("sluice"),
		kgo.Dialer(c.dialled.dial),
		kgo.RetryTimeout(c.timeout),
		kgo.RequestRetries(5),
		kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(250 * time.Millisecond),
	}
	if mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	return options, nil
}

// Bound is a context for one question to the cluster.
func (c *Client) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.timeout, errNoAnswer)
}

// Timeout is how long one answer is waited for.
func (c *Client) Timeout() time.Duration { return c.timeout }

// dialer remembers for each address why the last attempt failed: the client above it only says that time ran out.
type dialer struct {
	config *tls.Config // nil for plaintext

	mu       sync.Mutex
	failures map[string]error // by HOST:PORT
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var conn net.Conn
	var err error
	if d.config == nil {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	} else {
		conn, err = (&tls.Dialer{Config: d.config}).DialContext(ctx, network, address)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		err = &dialError{address: address, err: err}
		d.failures[address] = err
		return nil, err
	}
	delete(d.failures, address)
	return conn, nil
}

// failure is why an address cannot be reached at the moment; nil when all that were tried could be.
func (d *dialer) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, address := range slices.Sorted(maps.Keys(d.failures)) {
		return d.failures[address]
	}
	return nil
}

// Unreachable is a sentence about a broker that cannot be reached at the moment; empty when there is none. Commands that wait for
// records, and have nothing to fail, show it.
func (c *Client) Unreachable() string {
	if err := c.dialled.failure(); err != nil {
		return c.Explain(err).Error()
	}
	return ""
}

// dialError is a connection that could not be made, to which address.
type dialError struct {
	address string
	err     error
}

func (e *dialError) Error() string { return fmt.Sprintf("cannot connect to %s: %v", e.address, e.err) }
func (e *dialError) Unwrap() error { return e.err }
