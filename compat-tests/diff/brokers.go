package diff

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/compat-tests/sluicetest"
)

// clusterIDText is that of the reference script, given to Sluice too.
const clusterIDText = "MkU3OEVBNTcwNTJENDM2Qg"

// startBrokers gives the addresses of Apache Kafka and of Sluice, with the same settings: those of the reference script.
func startBrokers(t testing.TB) [2]string {
	t.Helper()
	kafka := startKafka(t, os.Getenv("DIFF_KAFKA"))
	if os.Getenv("DIFF_ITSELF") != "" {
		return [2]string{kafka, startKafka(t, os.Getenv("DIFF_SLUICE"))}
	}
	return [2]string{kafka, startSluice(t)}
}

// startKafka starts Apache Kafka by the project's script, unless the address of one that runs is given.
func startKafka(t testing.TB, running string) string {
	t.Helper()
	if running != "" {
		return running
	}
	script, err := filepath.Abs("../reference/kafka")
	if err != nil {
		t.Fatal(err)
	}
	run := t.TempDir()
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(script, args...)
		cmd.Env = append(os.Environ(), "KAFKA_REF_RUN="+run)
		return cmd
	}
	port := freePorts(t)
	t.Cleanup(func() { _ = command("stop").Run() })
	// The broker outlives the script, so its output goes to a file and not to a pipe that would never end.
	log, err := os.Create(filepath.Join(t.TempDir(), "kafka.log"))
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
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// freePorts finds a port that is free, below the ephemeral ones, whose controller port 101 above it is free too.
func freePorts(t testing.TB) int {
	t.Helper()
	for port := 21000 + os.Getpid()%5000; port < 32000; port += 7 {
		free := true
		for _, p := range []int{port, port + 101} {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil {
				free = false
				break
			}
			l.Close()
		}
		if free {
			return port
		}
	}
	t.Fatal("no free port below 32000")
	return 0
}

// startSluice starts the built broker with the reference script's settings, from a properties file as Apache Kafka reads it, so that even the
// sources of settings are the same.
func startSluice(t testing.TB) string {
	t.Helper()
	if address := os.Getenv("DIFF_SLUICE"); address != "" {
		return address
	}
	address, controller := sluicetest.FreeAddress(t), sluicetest.FreeAddress(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "server.properties")
	lines := []string{
		"process.roles=broker,controller", "node.id=1",
		"controller.quorum.voters=1@" + controller,
		"listeners=PLAINTEXT://" + address + ",CONTROLLER://" + controller,
		"advertised.listeners=PLAINTEXT://" + address,
		"controller.listener.names=CONTROLLER", "inter.broker.listener.name=PLAINTEXT",
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs=" + filepath.Join(dir, "data"),
		"offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1",
		"group.initial.rebalance.delay.ms=0",
	}
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(sluicetest.Binary(t), "format", "--config", config, "--cluster-id", clusterIDText).CombinedOutput(); err != nil {
		t.Fatalf("format: %v\n%s", err, out)
	}
	log, err := os.Create(filepath.Join(dir, "sluice.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(sluicetest.Binary(t), "serve", "--config", config, "--admin", "off")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-done
			t.Error("the broker did not end within 20 s")
		}
		log.Close()
		if text, _ := os.ReadFile(log.Name()); strings.Contains(string(text), "  ERROR  ") || strings.Contains(string(text), "panic") {
			t.Errorf("the broker logged an error; the end of its log:\n%s", text[max(0, len(text)-4000):])
		}
	})
	deadline := time.Now().Add(20 * time.Second)
	for {
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			c.Close()
			return address
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("the broker does not listen\n%s", text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
