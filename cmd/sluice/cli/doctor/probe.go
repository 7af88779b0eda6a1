package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/cmd/sluice/cli/connect"
)

// trouble is the step at which an address failed, as a person would say it.
type trouble string

const (
	malformed     trouble = "not an address"
	unresolvable  trouble = "name unknown"
	refused       trouble = "refused"
	silentHost    trouble = "does not answer"
	unconnectable trouble = "cannot connect"
	wantsTLS      trouble = "wants TLS"
	wantsNoTLS    trouble = "has no TLS"
	badTLS        trouble = "certificate"
	speaksHTTP    trouble = "speaks HTTP"
	notKafka      trouble = "not Kafka"
	isController  trouble = "controller"
	wantsLogin    trouble = "wants a login"
	refusedLogin  trouble = "login refused"
	fails         trouble = "fails"
	otherCluster  trouble = "another cluster"
	otherBroker   trouble = "another broker"
)

// prober examines addresses.
type prober struct {
	target connect.Target
	tls    *tls.Config // nil for plaintext
	step   time.Duration
}

func newProber(target connect.Target, step time.Duration) (*prober, error) {
	config, err := target.Security.TLSConfig()
	return &prober{target: target, tls: config, step: step}, err
}

// probe goes as far with an address as it can. broker is who should answer there, or askedBroker.
func (p *prober) probe(ctx context.Context, address string, broker int32) *endpoint {
	e := &endpoint{Broker: broker, Address: address, IPs: []string{}}
	host, port, err := net.SplitHostPort(address)
	if number, portErr := net.LookupPort("tcp", port); err != nil || portErr != nil || number == 0 || host == "" {
		return e.failed(malformed, fmt.Errorf("want HOST:PORT: %w", errors.Join(err, portErr)))
	}
	if !p.resolve(ctx, e, host) {
		return e
	}
	if !p.reach(ctx, e, port) {
		return e
	}
	apis := p.apis(ctx, e, host, port)
	if apis == nil {
		return e
	}
	e.Release, e.APIs = connect.Release(apis), len(apis)
	if !offers(apis, kmsg.Metadata) {
		if offers(apis, kmsg.Vote) || offers(apis, kmsg.BrokerRegistration) {
			return e.failed(isController, nil)
		}
		return e.failed(notKafka, errors.New("it offers no Metadata"))
	}
	p.ask(ctx, e)
	return e
}

func (e *endpoint) failed(t trouble, err error) *endpoint {
	e.Trouble = t
	if err != nil {
		e.Detail = err.Error()
	}
	return e
}

func (p *prober) resolve(ctx context.Context, e *endpoint, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, p.step)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		e.failed(unresolvable, err)
		return false
	}
	for _, ip := range found {
		e.IPs = append(e.IPs, ip.Unmap().String())
	}
	return true
}

// reach connects to each address that the name stands for.
func (p *prober) reach(ctx context.Context, e *endpoint, port string) bool {
	var last error
	for _, ip := range e.IPs {
		began := time.Now()
		conn, err := (&net.Dialer{Timeout: p.step}).DialContext(ctx, "tcp", net.JoinHostPort(ip, port))
		if err != nil {
			last = err
			e.unconnected = append(e.unconnected, ip)
			continue
		}
		if e.Connected == "" {
			e.Connected, e.ConnectMs = ip, milliseconds(began)
		}
		_ = conn.Close() // nothing was written
	}
	switch timeout := net.Error(nil); {
	case e.Connected != "":
		return true
	case connect.Refused(last):
		e.failed(refused, last)
	case errors.As(last, &timeout) && timeout.Timeout():
		e.failed(silentHost, last)
	default:
		e.failed(unconnectable, last)
	}
	return false
}

// apis shakes hands and asks for the APIs. nil: the endpoint says why.
func (p *prober) apis(ctx context.Context, e *endpoint, host, port string) []kmsg.ApiVersionsResponseApiKey {
	at := net.JoinHostPort(e.Connected, port)
	if p.tls == nil {
		apis, err := p.plainAPIs(ctx, at)
		switch {
		case err == nil:
			return apis
		case p.speaksTLS(ctx, at):
			e.failed(wantsTLS, nil)
		case errors.Is(err, errHTTP) || p.speaksHTTP(ctx, at):
			e.failed(speaksHTTP, nil)
		default:
			e.failed(notKafka, err)
		}
		return nil
	}
	config := p.tls.Clone()
	if config.ServerName == "" {
		config.ServerName = host
	}
	// The certificate is looked at before it is judged, so that one that is not trusted can be shown.
	verify := !config.InsecureSkipVerify
	config.InsecureSkipVerify = true //nolint:gosec // judged below
	conn, err := p.handshake(ctx, at, config)
	if err != nil {
		if _, plainErr := p.plainAPIs(ctx, at); plainErr == nil {
			e.failed(wantsNoTLS, nil)
		} else {
			e.failed(badTLS, err)
		}
		return nil
	}
	defer conn.Close()
	shown := conn.ConnectionState().PeerCertificates
	e.Certificate = describeCertificate(shown)
	if verify {
		if err := verifyChain(shown, config); err != nil {
			e.failed(badTLS, err)
			return nil
		}
	}
	apis, err := askAPIs(conn, time.Now().Add(p.step))
	if err != nil {
		e.failed(notKafka, err)
		return nil
	}
	return apis
}

func (p *prober) plainAPIs(ctx context.Context, at string) ([]kmsg.ApiVersionsResponseApiKey, error) {
	conn, err := (&net.Dialer{Timeout: p.step}).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return askAPIs(conn, time.Now().Add(p.step))
}

func (p *prober) handshake(ctx context.Context, at string, config *tls.Config) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.step)
	defer cancel()
	plain, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(plain, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	return conn, nil
}

// speaksTLS finds out whether a listener that did not answer a plain request completes a TLS handshake, or at least starts one.
func (p *prober) speaksTLS(ctx context.Context, at string) bool {
	conn, err := p.handshake(ctx, at, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // nothing is sent
	if err != nil {
		return errors.As(err, new(tls.AlertError)) || errors.As(err, new(*tls.CertificateVerificationError))
	}
	_ = conn.Close() // nothing was written
	return true
}

// speaksHTTP finds out whether a listener that did not answer a Kafka request answers a web browser: it waits for the end of a line.
func (p *prober) speaksHTTP(ctx context.Context, at string) bool {
	conn, err := (&net.Dialer{Timeout: p.step}).DialContext(ctx, "tcp", at)
	if err != nil {
		return false
	}
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(p.step)) != nil {
		return false
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		return false
	}
	var start [4]byte
	_, err = io.ReadFull(conn, start[:])
	return err == nil && string(start[:]) == "HTTP"
}

func describeCertificate(chain []*x509.Certificate) *certificate {
	if len(chain) == 0 {
		return nil
	}
	c := &certificate{Subject: chain[0].Subject.String(), Issuer: chain[0].Issuer.String(), Names: chain[0].DNSNames, NotAfter: chain[0].NotAfter, Chain: len(chain)}
	for _, ip := range chain[0].IPAddresses {
		c.Names = append(c.Names, ip.String())
	}
	return c
}

// verifyChain is what the handshake does without InsecureSkipVerify.
func verifyChain(chain []*x509.Certificate, config *tls.Config) error {
	if len(chain) == 0 {
		return errors.New("no certificate was shown")
	}
	options := x509.VerifyOptions{Roots: config.RootCAs, DNSName: config.ServerName, Intermediates: x509.NewCertPool()}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(options)
	return err
}

// ask logs in as a client does, and asks who answers there.
func (p *prober) ask(ctx context.Context, e *endpoint) {
	there := p.target
	there.Seeds = []string{e.Address}
	c, err := there.Client(p.step, kgo.RequestRetries(0))
	if err != nil {
		e.failed(fails, err)
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, p.step)
	defer cancel()
	seed := c.SeedBrokers()[0] // it is asked, and none that it tells of
	if e.answer, err = askMetadata(ctx, seed); err == nil {
		began := time.Now() // the connection is there now
		_, err = askMetadata(ctx, seed)
		e.AnswerMs = milliseconds(began)
	}
	switch {
	case err == nil:
		if e.Broker >= 0 {
			e.answer.settings, e.answer.settingsErr = askSettings(ctx, seed, e.Broker)
		}
		return
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		e.failed(refusedLogin, err)
	case errors.As(err, new(*kgo.ErrFirstReadEOF)), errors.Is(err, io.EOF):
		e.failed(wantsLogin, err)
	default:
		e.failed(fails, err)
	}
	e.answer = nil
}

func milliseconds(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1000 }
