// Package commandline runs the program's client commands against Apache Kafka: over TLS and with logins, which need a broker that has them, and
// the doctor on wrong configurations.
package commandline

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/compat-tests/sluicetest"
)

// listeners are those of one Apache Kafka, each wrong in its own way but for the first two and the last two.
type listeners struct {
	plain, controller, unresolvable, closed, elsewhere, login, secure string
	// ca is a file that trusts the certificate of secure, otherCA one that does not.
	ca, otherCA string
}

// startKafka starts Apache Kafka with many listeners, and settings that want more brokers than there are.
func startKafka(t *testing.T, closedPort, otherCluster string) listeners {
	t.Helper()
	port := freePorts(t)
	at := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", port+n) }
	l := listeners{plain: at(0), controller: at(101), unresolvable: at(1), closed: at(2), elsewhere: at(3), login: at(4), secure: at(5)}
	dir := t.TempDir()
	keystore, ca := certificate(t, dir, "broker")
	_, otherCA := certificate(t, dir, "other")
	l.ca, l.otherCA = ca, otherCA
	properties := fmt.Sprintf(`listeners=PLAINTEXT://%s,CONTROLLER://%s,UNRESOLVABLE://%s,CLOSED://%s,ELSEWHERE://%s,LOGIN://%s,SECURE://%s
advertised.listeners=PLAINTEXT://%s,UNRESOLVABLE://kafka-nosuch:9092,CLOSED://%s,ELSEWHERE://%s,LOGIN://%s,SECURE://%s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,UNRESOLVABLE:PLAINTEXT,CLOSED:PLAINTEXT,ELSEWHERE:PLAINTEXT,LOGIN:SASL_PLAINTEXT,SECURE:SASL_SSL
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=%s
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
default.replication.factor=2`,
		l.plain, l.controller, l.unresolvable, l.closed, l.elsewhere, l.login, l.secure, l.plain, closedPort, otherCluster, l.login, l.secure, keystore)

	script, err := filepath.Abs("../reference/kafka")
	if err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(script, args...)
		cmd.Env = append(os.Environ(), "KAFKA_REF_RUN="+filepath.Join(dir, "run"), "KAFKA_REF_PROPS="+properties)
		return cmd
	}
	t.Cleanup(func() { _ = command("stop").Run() }) // what does not stop keeps its folder, which fails the test
	// The broker outlives the script, so its output goes to a file and not to a pipe that would never end.
	log, err := os.Create(filepath.Join(dir, "kafka.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	start := command("start", "1", fmt.Sprint(port))
	start.Stdout, start.Stderr = log, log
	if err := start.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("start Apache Kafka: %v\n%s", err, text)
	}
	return l
}

// freePorts finds the first of the free ports that startKafka needs, below those that the system gives out.
func freePorts(t *testing.T) int {
	t.Helper()
	for port := 26000 + os.Getpid()%4000; port < 32000; port += 11 {
		if !slices.ContainsFunc([]int{0, 1, 2, 3, 4, 5, 101}, func(n int) bool {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+n))
			if err == nil {
				err = l.Close()
			}
			return err != nil
		}) {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

// certificate makes one for localhost and 127.0.0.1: keystore has its key too, as Kafka reads it, ca only itself.
func certificate(t *testing.T, dir, name string) (keystore, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keystore, ca = filepath.Join(dir, name+"-keystore.pem"), filepath.Join(dir, name+"-ca.pem")
	for path, content := range map[string][]byte{
		keystore: slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), public),
		ca:       public,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return keystore, ca
}

// TestApacheKafka has one broker for all, since a JVM takes long to start.
func TestApacheKafka(t *testing.T) {
	other := sluicetest.Start(t)
	l := startKafka(t, sluicetest.FreeAddress(t), other.Address)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_SASL_PASSWORD", "wrong")
	alice := []string{"--sasl-user", "alice", "--sasl-password-file", password}

	settings := []string{"offsets-replication", "transactions-replication", "default-replication"}
	for _, test := range []struct {
		name string
		args []string
		want []string
	}{
		{"settings for three brokers", []string{l.plain}, settings},
		{"advertised name is unknown", []string{l.unresolvable}, []string{"advertised-unresolvable"}},
		{"advertised port is closed", []string{l.closed}, []string{"advertised-refused"}},
		{"advertised address of another cluster", []string{l.elsewhere}, []string{"advertised-other-cluster"}},
		{"controller's port", []string{l.controller}, []string{"listener-controller"}},
		{"TLS where there is none", []string{l.plain, "--tls"}, []string{"listener-has-no-tls"}},
		{"no TLS where there is", []string{l.secure}, []string{"listener-wants-tls"}},
		{"no login where one is wanted", []string{l.login}, []string{"listener-wants-a-login"}},
		{"wrong password", []string{l.login, "--sasl-user", "alice"}, []string{"listener-login-refused"}},
		{"wrong mechanism", append([]string{l.login, "--sasl-mechanism", "SCRAM-SHA-256"}, alice...), []string{"listener-login-refused"}},
		{"certificate by nobody known", append([]string{l.secure, "--tls-ca", l.otherCA}, alice...), []string{"listener-certificate"}},
		{"certificate for another name", append([]string{l.secure, "--tls-ca", l.ca, "--tls-server-name", "kafka.example.com"}, alice...), []string{"listener-certificate"}},
		{"TLS and login as they should be", append([]string{l.secure, "--tls-ca", l.ca}, alice...), settings},
	} {
		t.Run("doctor/"+test.name, func(t *testing.T) {
			out, code := sluicetest.Run(t, nil, append([]string{"doctor", "-o", "json", "--timeout", "3s"}, test.args...)...)
			var report struct {
				Findings []struct{ Code, Problem, Change string }
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var found []string
			for _, f := range report.Findings {
				if found = append(found, f.Code); f.Problem == "" || f.Change == "" {
					t.Errorf("%s does not say what is wrong and what to change", f.Code)
				}
			}
			if code != 1 || !slices.Equal(found, test.want) {
				t.Errorf("exit code %d, found %v; want 1 and %v\n%s", code, found, test.want, out)
			}
		})
	}

	run := func(t *testing.T, want int, args ...string) string {
		t.Helper()
		out, code := sluicetest.Run(t, nil, args...)
		if code != want {
			t.Errorf("sluice %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, want, out)
		}
		return out
	}
	for name, connection := range map[string][]string{
		"plaintext": {"-b", l.plain},
		"login":     append([]string{"-b", l.login}, alice...),
		"TLS":       append([]string{"-b", l.secure, "--tls-ca", l.ca}, alice...),
	} {
		t.Run("commands/"+name, func(t *testing.T) {
			topic := "topic-" + name
			with := func(args ...string) []string { return append(args, connection...) }
			run(t, 0, with("wait")...)
			run(t, 0, with("topic", "create", topic, "--partitions", "2", "--replicas", "1")...)
			run(t, 1, with("topic", "create", topic, "--replicas", "1")...)
			run(t, 0, with("produce", topic, "--key", "k", "--compression", "zstd", "one", "two")...)
			if out := run(t, 0, with("consume", topic, "--until-end")...); out != "one\ntwo\n" {
				t.Errorf("consumed %q", out)
			}
			run(t, 0, with("config", "set", "topic", topic, "retention.ms=1000")...)
			if out := run(t, 0, with("topic", "describe", topic)...); !strings.Contains(out, "retention.ms  1000\n") {
				t.Errorf("described as\n%s", out)
			}
			run(t, 4, with("topic", "describe", "nosuch")...)
			run(t, 0, with("cluster", "describe")...)
			run(t, 0, with("topic", "delete", topic)...)
		})
	}
	for _, test := range []struct {
		want int
		says string
		args []string
	}{
		{1, "refused the login of alice", []string{"-b", l.login, "--sasl-user", "alice"}},
		{3, "or a login (--sasl-user)", []string{"-b", l.login}},
		{3, "signed by nobody that is trusted here", append([]string{"-b", l.secure, "--tls-ca", l.otherCA}, alice...)},
		{3, "the cluster advertises that address", []string{"-b", l.closed}},
		{3, "the cluster advertises that address", []string{"-b", l.unresolvable}},
	} {
		out := run(t, test.want, append([]string{"topic", "create", "unreached", "--timeout", "3s"}, test.args...)...)
		if !strings.Contains(out, test.says) {
			t.Errorf("%v: %q is not in:\n%s", test.args, test.says, out)
		}
	}
	if bytes.Contains([]byte(other.Output()), []byte("panic")) {
		t.Errorf("the other cluster's broker: %s", other.Output())
	}
}
