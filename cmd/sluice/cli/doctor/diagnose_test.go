package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker"
	"sluice/cmd/sluice/cli/connect"
)

// step is short: nothing that a test asks is far away.
const step = time.Second

// codes are those of the findings, and the report as people see it for the failure message.
func codes(t *testing.T, target connect.Target) (found []string, text string) {
	t.Helper()
	r, err := examine(t.Context(), target, step)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		found = append(found, f.Code)
	}
	var b strings.Builder
	if err := r.write(&b); err != nil {
		t.Fatal(err)
	}
	return found, b.String()
}

func expect(t *testing.T, target connect.Target, want ...string) {
	t.Helper()
	found, text := codes(t, target)
	if !slices.Equal(found, want) {
		t.Errorf("found %v, want %v\n%s", found, want, text)
	}
	for _, code := range found {
		if !strings.Contains(text, "Change: ") {
			t.Errorf("%s does not say what to change:\n%s", code, text)
		}
	}
}

// closedPort is an address on which nothing listens. The port was free a moment ago, and the system gives out others first.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startBroker runs a real broker with settings that are wrong.
func startBroker(t *testing.T, overrides map[string]string) *broker.Broker {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Config{Dev: true, Ephemeral: true, Listen: "127.0.0.1:0", Overrides: overrides})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func at(address string) connect.Target { return connect.Target{Seeds: []string{address}} }

// TestDoctor_BrokerWithWrongSettings seeds one mistake at a time in a real broker's configuration.
func TestDoctor_BrokerWithWrongSettings(t *testing.T) {
	elsewhere := startBroker(t, nil)
	for _, test := range []struct {
		name      string
		overrides map[string]string
		want      []string
	}{
		{"none", nil, nil},
		{"advertised name of a container", map[string]string{"advertised.listeners": "PLAINTEXT://kafka-nosuch:9092"}, []string{"advertised-unresolvable"}},
		{"advertised name that does not exist", map[string]string{"advertised.listeners": "PLAINTEXT://nosuch.invalid:9092"}, []string{"advertised-unresolvable"}},
		{"advertised port that is closed", map[string]string{"advertised.listeners": "PLAINTEXT://" + closedPort(t)}, []string{"advertised-refused"}},
		{"advertised port of another cluster", map[string]string{"advertised.listeners": "PLAINTEXT://" + elsewhere.Address()}, []string{"advertised-other-cluster"}},
		{"offsets topic with more replicas than brokers", map[string]string{"offsets.topic.replication.factor": "3"}, []string{"offsets-replication"}},
		{"transactions with more replicas than brokers", map[string]string{"transaction.state.log.replication.factor": "3"}, []string{"transactions-replication"}},
		{"topics with more replicas than brokers", map[string]string{"default.replication.factor": "2"}, []string{"default-replication"}},
		{"more replicas in sync than brokers", map[string]string{"min.insync.replicas": "2"}, []string{"min-insync-replicas"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect(t, at(startBroker(t, test.overrides).Address()), test.want...)
		})
	}
}

// TestDoctor_WrongAddress asks at addresses where no broker for clients is.
func TestDoctor_WrongAddress(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	controller := startFake(t, &fake{apis: []kmsg.Key{kmsg.ApiVersions, kmsg.Vote, kmsg.Fetch}})
	mute := startFake(t, &fake{hangUp: true})
	login := startFake(t, &fake{apis: []kmsg.Key{kmsg.ApiVersions, kmsg.Metadata}, hangUpOn: kmsg.Metadata})
	secure, ca := startTLS(t, &fake{apis: []kmsg.Key{kmsg.ApiVersions, kmsg.Metadata, kmsg.DescribeConfigs}})
	_, otherCA := startTLS(t, &fake{})
	plain := startBroker(t, nil).Address()
	withTLS := func(address string, s connect.Security) connect.Target {
		s.TLS = true
		return connect.Target{Seeds: []string{address}, Security: s}
	}
	for _, test := range []struct {
		name   string
		target connect.Target
		want   []string
	}{
		{"no port is Kafka's", at("nosuch.invalid"), []string{"bootstrap-unresolvable"}},
		{"not an address", at("a:b:c"), []string{"bootstrap-unresolvable"}},
		{"port that is no number", at("localhost:kafka-nosuch"), []string{"bootstrap-malformed"}},
		{"closed port", at(closedPort(t)), []string{"bootstrap-refused"}},
		{"web server", at(web.Listener.Addr().String()), []string{"listener-speaks-http"}},
		{"controller", at(controller), []string{"listener-controller"}},
		{"hangs up", at(mute), []string{"listener-not-kafka"}},
		{"wants a login", at(login), []string{"listener-wants-a-login"}},
		{"wants TLS", at(secure), []string{"listener-wants-tls"}},
		{"has no TLS", withTLS(plain, connect.Security{}), []string{"listener-has-no-tls"}},
		{"certificate by another authority", withTLS(secure, connect.Security{CA: otherCA}), []string{"listener-certificate"}},
		{"certificate for another name", withTLS(secure, connect.Security{CA: ca, ServerName: "kafka.example.com"}), []string{"listener-certificate"}},
		{"certificate that soon expires", withTLS(secure, connect.Security{CA: ca}), []string{"certificate-expires"}},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.target, test.want...) })
	}
}

// TestDoctor_Cluster has what a single node cannot be made to say.
func TestDoctor_Cluster(t *testing.T) {
	broken := &fake{apis: []kmsg.Key{kmsg.ApiVersions, kmsg.Metadata, kmsg.DescribeConfigs}}
	address := startFake(t, broken)
	host, port := splitPort(t, address)
	self := member{id: 1, host: host, port: port}
	for _, test := range []struct {
		name       string
		brokers    []member
		controller int32
		topics     []kmsg.MetadataResponseTopic
		want       []string
	}{
		{"healthy", []member{self}, 1, []kmsg.MetadataResponseTopic{topic("t", 1, []int32{1}, []int32{1})}, nil},
		{"no brokers", nil, 1, nil, []string{"no-brokers"}},
		{"no controller", []member{self}, -1, nil, []string{"no-controller"}},
		{"wildcard", []member{{1, "0.0.0.0", port}}, 1, nil, []string{"advertised-wildcard"}},
		{"port zero", []member{{1, host, 0}}, 1, nil, []string{"advertised-malformed"}},
		{"two brokers with one address", []member{self, {2, host, port}}, 1, nil, []string{"advertised-other-broker", "advertised-twice"}},
		{"no leader", []member{self}, 1, []kmsg.MetadataResponseTopic{topic("t", -1, []int32{2}, nil)}, []string{"no-leader"}},
		{"replica out of sync", []member{self}, 1, []kmsg.MetadataResponseTopic{topic("t", 1, []int32{1, 2}, []int32{1})}, []string{"out-of-sync"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			broken.say(test.brokers, test.controller, test.topics)
			expect(t, at(address), test.want...)
		})
	}
}

// TestDiagnose_Addresses has what needs another machine: a broker that was reached from outside and advertises what only it can reach.
func TestDiagnose_Addresses(t *testing.T) {
	for _, test := range []struct {
		name string
		seen endpoint
		want []string
	}{
		{"loopback, refused", endpoint{Address: "localhost:9092", IPs: []string{"::1", "127.0.0.1"}, Trouble: refused}, []string{"error advertised-loopback"}},
		{"loopback, on this machine", endpoint{Address: "localhost:9092", IPs: []string{"127.0.0.1"}, answer: &answer{}}, []string{"warning advertised-loopback"}},
		{"container's own address", endpoint{Address: "172.17.0.2:9092", IPs: []string{"172.17.0.2"}, Trouble: silentHost}, []string{"error advertised-silent"}},
		{"listener with TLS", endpoint{Address: "192.0.2.1:9093", IPs: []string{"192.0.2.1"}, Trouble: wantsTLS}, []string{"error advertised-wants-tls"}},
		{"one of two addresses", endpoint{Address: "kafka:9092", IPs: []string{"192.0.2.1", "192.0.2.2"}, unconnected: []string{"192.0.2.2"}, answer: &answer{}}, []string{"warning advertised-partly-refused"}},
		{"well", endpoint{Address: "192.0.2.1:9092", IPs: []string{"192.0.2.1"}, answer: &answer{}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.seen.Broker = 1
			r := &report{
				Asked:   &endpoint{Broker: askedBroker, Address: "192.0.2.1:9092", IPs: []string{"192.0.2.1"}, Connected: "192.0.2.1", answer: &answer{brokers: []member{{id: 1}}}},
				Brokers: []*endpoint{&test.seen},
			}
			var found []string
			for _, f := range diagnose(r) {
				found = append(found, string(f.Severity)+" "+f.Code)
			}
			if !slices.Equal(found, test.want) {
				t.Errorf("found %v, want %v", found, test.want)
			}
		})
	}
}

func topic(name string, leader int32, replicas, isr []int32) kmsg.MetadataResponseTopic {
	t := kmsg.NewMetadataResponseTopic()
	p := kmsg.NewMetadataResponseTopicPartition()
	p.Leader, p.Replicas, p.ISR = leader, replicas, isr
	t.Topic, t.Partitions = &name, append(t.Partitions, p)
	return t
}

// startTLS is a fake behind TLS, with a certificate for 127.0.0.1 that expires within a week; ca is the file that trusts it.
func startTLS(t *testing.T, f *fake) (address, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fake"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(7 * 24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.serve(t, tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}))
	host, port := splitPort(t, l.Addr().String())
	f.say([]member{{1, host, port}}, 1, nil)
	return l.Addr().String(), ca
}
