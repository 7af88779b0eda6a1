package interchange

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sluice/compat-tests/sluicetest"
)

// kafka is one Apache Kafka process, broker and controller, with a directory that outlives it.
type kafka struct {
	address    string // of the broker's listener, HOST:PORT
	properties string // path of its server.properties
	t          *testing.T
	cmd        *exec.Cmd
	done       chan error
}

// newKafka formats a directory for Apache Kafka. extra are more lines of its server.properties.
func newKafka(t *testing.T, extra string) *kafka {
	t.Helper()
	dir := t.TempDir()
	k := &kafka{t: t, address: sluicetest.FreeAddress(t), properties: filepath.Join(dir, "server.properties")}
	controller := sluicetest.FreeAddress(t)
	content := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
advertised.listeners=PLAINTEXT://%[1]s
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%[3]s
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
%[4]s`, k.address, controller, k.dataDir(), extra)
	if err := os.WriteFile(k.properties, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	kafkaTool(t, "storage", "format", "-t", "c2x1aWNlLWludGVyY2hnZQ", "-c", k.properties)
	return k
}

// dataDir is its log directory.
func (k *kafka) dataDir() string { return filepath.Join(filepath.Dir(k.properties), "data") }

// start starts the process and waits until it accepts connections.
func (k *kafka) start() {
	k.t.Helper()
	var out bytes.Buffer
	k.cmd = exec.Command("../reference/kafka", "tool", "server", k.properties)
	k.cmd.Stdout, k.cmd.Stderr = &out, &out
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.done = make(chan error, 1)
	go func(cmd *exec.Cmd, done chan<- error) { done <- cmd.Wait() }(k.cmd, k.done)
	k.t.Cleanup(func() {
		if k.cmd != nil {
			_ = k.cmd.Process.Kill()
			<-k.done
		}
		if k.t.Failed() {
			k.t.Logf("Apache Kafka's last output:\n%s", last(out.String(), 3000))
		}
	})
	sluicetest.Eventually(k.t, time.Minute, func(ctx context.Context) error {
		select {
		case err := <-k.done:
			k.cmd = nil
			k.t.Fatalf("Apache Kafka ended: %v\n%s", err, last(out.String(), 3000))
		default:
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", k.address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// stop ends the process with SIGTERM, which closes its logs, and waits until it is gone.
func (k *kafka) stop() {
	k.t.Helper()
	if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		k.t.Fatal(err)
	}
	select {
	case <-k.done: // a JVM that was told to end ends with 143
		k.cmd = nil
	case <-time.After(time.Minute):
		k.t.Fatal("Apache Kafka did not end within a minute of SIGTERM")
	}
}
