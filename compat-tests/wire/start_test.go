package wire

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
	"sluice/protocol/uuid"
)

// onlyOurs skips a test of the program itself when another broker is under test.
func onlyOurs(t *testing.T) {
	t.Helper()
	if os.Getenv("WIRE_BOOTSTRAP") != "" {
		t.Skip("SKIPPED: the test is about the program, not about what it serves")
	}
}

// writeFile writes a file in a directory of the test's own and returns its path.
func writeFile(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// kafkaProperties is what a server.properties that comes with Apache Kafka says, with a data directory and addresses of the test's own.
func kafkaProperties(t *testing.T, dataDir, address string, more ...string) string {
	t.Helper()
	controller := sluicetest.FreeAddress(t)
	return writeFile(t, "server.properties", append([]string{
		"process.roles=broker,controller",
		"node.id=1",
		"controller.quorum.bootstrap.servers=" + controller,
		"listeners=PLAINTEXT://" + address + ",CONTROLLER://" + controller,
		"inter.broker.listener.name=PLAINTEXT",
		"advertised.listeners=PLAINTEXT://" + address + ",CONTROLLER://" + controller,
		"controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
		"num.network.threads=3",
		"num.io.threads=8",
		"socket.send.buffer.bytes=102400",
		"socket.receive.buffer.bytes=102400",
		"socket.request.max.bytes=104857600",
		"log.dirs=" + dataDir,
		"num.partitions=1",
		"num.recovery.threads.per.data.dir=2",
		"offsets.topic.replication.factor=1",
		"share.coordinator.state.topic.replication.factor=1",
		"share.coordinator.state.topic.min.isr=1",
		"transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1",
		"log.retention.hours=168",
		"log.segment.bytes=1073741824",
		"log.retention.check.interval.ms=300000",
	}, more...)...)
}

const someClusterID = "MkU3OEVBNTcwNTJENDM2Qk"

// TestStart_Refuses: what is wrong with the command line, the files or the directories ends the program at once, with a sentence that names
// it and says what to do.
func TestStart_Refuses(t *testing.T) {
	onlyOurs(t)
	running := sluicetest.Start(t)
	dir := t.TempDir()
	free := func(args ...string) []string {
		return append([]string{"serve", "--admin", "off", "--listen", sluicetest.FreeAddress(t)}, args...)
	}
	fromFile := func(path string, args ...string) []string {
		return append([]string{"serve", "--admin", "off", "--config", path}, args...)
	}
	for _, test := range []struct {
		name string
		env  []string
		args []string
		says []string
	}{
		{"a port in use", nil, []string{"serve", "--admin", "off", "--listen", running.Address, "--data", filepath.Join(dir, "1")},
			[]string{running.Address, "in use by another program", "--listen"}},
		{"the admin port in use", nil, []string{"serve", "--admin", running.Admin, "--listen", sluicetest.FreeAddress(t), "--data", filepath.Join(dir, "2")},
			[]string{running.Admin, "in use", "--admin off"}},
		{"a data directory in use", nil, free("--data", running.DataDir),
			[]string{running.DataDir, "another running broker", ".lock"}},
		{"a data directory that is a file", nil, free("--data", writeFile(t, "file")),
			[]string{"file", "not a directory"}},
		{"an invalid value", nil, free("--data", filepath.Join(dir, "3"), "--set", "num.partitions=many"),
			[]string{"num.partitions", "many", "--set"}},
		{"a value out of range", nil, free("--data", filepath.Join(dir, "3"), "--set", "num.partitions=0"),
			[]string{"num.partitions=0", "at least 1"}},
		{"an invalid value in the environment", []string{"KAFKA_NUM_PARTITIONS=many"}, free("--data", filepath.Join(dir, "3")),
			[]string{"num.partitions=many", "the environment"}},
		{"an invalid value in the file", nil, fromFile(kafkaProperties(t, filepath.Join(dir, "4"), sluicetest.FreeAddress(t), "log.cleanup.policy=shred")),
			[]string{"log.cleanup.policy=shred", "the properties file", "delete", "compact"}},
		{"an unknown key", nil, free("--data", filepath.Join(dir, "3"), "--set", "num.partitons=3"),
			[]string{"num.partitons", "did you mean num.partitions?"}},
		{"a key of topics", nil, free("--data", filepath.Join(dir, "3"), "--set", "retention.ms=3"),
			[]string{"retention.ms", "log.retention.ms"}},
		{"no key", nil, free("--data", filepath.Join(dir, "3"), "--set", "3"),
			[]string{"--set 3", "KEY=VALUE"}},
		{"two faults at once", nil, free("--data", filepath.Join(dir, "3"), "--set", "num.partitions=many", "--set", "log.retention.hours=never"),
			[]string{"num.partitions=many", "log.retention.hours=never"}},
		{"no properties file", nil, fromFile(filepath.Join(dir, "none.properties")),
			[]string{"none.properties", "cannot read the properties file", "no such file"}},
		{"a properties file that is a directory", nil, fromFile(dir),
			[]string{dir, "is a directory"}},
		{"a malformed properties file", nil, fromFile(writeFile(t, "broken.properties", `node.id=\u00zz`)),
			[]string{"broken.properties", "line 1"}},
		{"a node that is a broker only", nil, fromFile(kafkaProperties(t, filepath.Join(dir, "4"), sluicetest.FreeAddress(t), "process.roles=broker",
			"listeners=PLAINTEXT://127.0.0.1:0", "advertised.listeners=PLAINTEXT://127.0.0.1:9092")),
			[]string{"process.roles=broker", "broker,controller"}},
		{"a wildcard advertised", nil, free("--data", filepath.Join(dir, "3"), "--set", "advertised.listeners=PLAINTEXT://0.0.0.0:9092"),
			[]string{"advertised.listeners", "0.0.0.0", "nobody can connect to"}},
		{"a protocol that is not served", nil, []string{"serve", "--admin", "off", "--data", filepath.Join(dir, "3"), "--set", "listeners=SSL://127.0.0.1:0"},
			[]string{"SSL", "PLAINTEXT"}},
		{"a directory that is not formatted", nil, fromFile(kafkaProperties(t, filepath.Join(dir, "5"), sluicetest.FreeAddress(t))),
			[]string{filepath.Join(dir, "5"), "not formatted", "sluice format"}},
		{"the directory of another node", nil, free("--data", otherNode(t), "--set", "node.id=7"),
			[]string{"belongs to node 1", "node.id is 7"}},
		{"directories of two clusters", nil, free("--set", "log.dirs="+otherNode(t)+","+otherNode(t)),
			[]string{"belongs to the cluster", "use another directory"}},
		{"a data directory twice", nil, free("--data", filepath.Join(dir, "3"), "--set", "log.dirs="+filepath.Join(dir, "4")),
			[]string{"data directory", "log.dirs", "leave one of them out"}},
		{"memory and a directory", nil, free("--data", dir, "--ephemeral"),
			[]string{"--ephemeral", "--data", "one of them"}},
		{"a log level", nil, free("--log-level", "loud"), []string{"--log-level loud", "debug, info, warn or error"}},
		{"a flag", nil, free("--prot", "1"), []string{"--prot"}},
		{"an argument", nil, free("server.properties"), []string{"server.properties"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			out, code := sluicetest.Run(t, test.env, test.args...)
			if code != 1 && code != 2 { // 2 for what is no command line at all
				t.Errorf("exit code %d, want 1 or 2", code)
			}
			last := out
			if i := strings.LastIndex(out, "sluice: "); i >= 0 {
				last = out[i:]
			}
			for _, want := range test.says {
				if !strings.Contains(last, want) {
					t.Errorf("the message does not say %q:\n%s", want, out)
				}
			}
			if strings.Contains(out, "goroutine ") {
				t.Errorf("a stack trace:\n%s", out)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("the refusal took %v", took)
			}
		})
	}
	if !running.Running() {
		t.Error("the running broker has ended")
	}
	c := sluicetest.Dial(t, running.Address)
	createTopic(t, c, fresh("start"), 1)
}

// otherNode is a data directory of node 1, of a cluster of its own.
func otherNode(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "other")
	file := kafkaProperties(t, dir, sluicetest.FreeAddress(t))
	if out, code := sluicetest.Run(t, nil, "format", "--config", file, "--cluster-id", randomUUID(t)); code != 0 {
		t.Fatalf("format: exit code %d\n%s", code, out)
	}
	return dir
}

func randomUUID(t *testing.T) string {
	t.Helper()
	out, code := sluicetest.Run(t, nil, "random-uuid")
	id := strings.TrimSpace(out)
	if parsed, err := uuid.Parse(id); err != nil || code != 0 || parsed.String() != id {
		t.Fatalf("random-uuid: exit code %d, %q: %v", code, out, err)
	}
	return id
}

// clusterID is what clients are told of the cluster.
func clusterID(c *sluicetest.Raw) string {
	return sluicetest.Ask[*kmsg.DescribeClusterResponse](c, kmsg.NewPtrDescribeClusterRequest(), 0).ClusterID
}

// partitionsByDefault is how many partitions a topic gets when its creator leaves that to the broker.
func partitionsByDefault(t *testing.T, c *sluicetest.Raw) int {
	t.Helper()
	name := fresh("start")
	createTopic(t, c, name, -1)
	return len(metadata(c, 12, false, name).Topics[0].Partitions)
}

// TestStart_ServesKafkasProperties: format, serve, restart, with the file that Apache Kafka comes with.
func TestStart_ServesKafkasProperties(t *testing.T) {
	onlyOurs(t)
	p := sluicetest.New(t)
	file := kafkaProperties(t, p.DataDir, p.Address, "num.partitons=5", "confluent.metrics.reporter.bootstrap.servers=localhost:9092")
	out, code := sluicetest.Run(t, nil, "format", "--config", file, "--cluster-id", someClusterID)
	if code != 0 || !strings.Contains(out, p.DataDir) {
		t.Fatalf("format: exit code %d\n%s", code, out)
	}
	if out, code := sluicetest.Run(t, nil, "format", "--config", file, "--cluster-id", someClusterID); code != 1 || !strings.Contains(out, "already formatted") {
		t.Errorf("format again: exit code %d\n%s", code, out)
	}
	if out, code := sluicetest.Run(t, nil, "format", "--config", file, "--cluster-id", someClusterID, "--ignore-formatted"); code != 0 {
		t.Errorf("format again, ignoring what is formatted: exit code %d\n%s", code, out)
	}

	p.Args = []string{"--config", file, "--admin", p.Admin}
	p.Launch()
	p.WaitReady()
	if n := strings.Count(p.Output(), "num.partitons"); n != 1 || !strings.Contains(p.Output(), "did you mean num.partitions?") {
		t.Errorf("the unknown key is named %d times:\n%s", n, p.Output())
	}
	c := sluicetest.Dial(t, p.Address)
	if id := clusterID(c); id != someClusterID {
		t.Errorf("cluster id %s, want %s", id, someClusterID)
	}
	topic := fresh("start")
	id := createTopic(t, c, topic, 2)
	if got := produce(c, topic, 1, batch(t, plain(), values(1000, "a")...)); got.ErrorCode != none {
		t.Fatalf("produce: error %d", got.ErrorCode)
	}
	p.Restart()
	c = sluicetest.Dial(t, p.Address)
	if id := clusterID(c); id != someClusterID {
		t.Errorf("cluster id %s after the restart, want %s", id, someClusterID)
	}
	if got := metadata(c, 12, false, topic).Topics[0]; got.ErrorCode != none || got.TopicID != id || len(got.Partitions) != 2 {
		t.Errorf("the topic after the restart: %+v", got)
	}
	if got := fetch(c, topic, 1, 0); got.ErrorCode != none || got.HighWatermark != 1 {
		t.Errorf("the record after the restart: error %d, high watermark %d", got.ErrorCode, got.HighWatermark)
	}

	// A directory that says it is another cluster's than the metadata in it: the start must not mix them.
	p.Stop()
	properties := filepath.Join(p.DataDir, "meta.properties")
	before, err := os.ReadFile(properties)
	if err != nil {
		t.Fatal(err)
	}
	foreign := strings.Replace(string(before), someClusterID, randomUUID(t), 1)
	second := filepath.Join(t.TempDir(), "second")
	if err := os.MkdirAll(second, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(second, "meta.properties"), []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code = sluicetest.Run(t, nil, "serve", "--config", file, "--admin", "off", "--set", "log.dirs="+p.DataDir+","+second)
	if code != 1 || !strings.Contains(out, second) || !strings.Contains(out, someClusterID) {
		t.Errorf("a second directory of another cluster: exit code %d\n%s", code, out)
	}
}

// TestStart_Precedence: --set over the environment over the file over the profile.
func TestStart_Precedence(t *testing.T) {
	onlyOurs(t)
	data := filepath.Join(t.TempDir(), "data")
	address := sluicetest.FreeAddress(t)
	file := kafkaProperties(t, data, address, "num.partitions=4")
	if out, code := sluicetest.Run(t, nil, "format", "-c", file, "-t", someClusterID); code != 0 {
		t.Fatalf("format: exit code %d\n%s", code, out)
	}
	environment := []string{"KAFKA_NUM_PARTITIONS=5"}
	set := []string{"--set", "num.partitions=6"}
	for _, test := range []struct {
		name string
		file bool
		env  []string
		args []string
		want int
	}{
		{"profile", false, nil, nil, 1},
		{"file", true, nil, nil, 4},
		{"environment over profile", false, environment, nil, 5},
		{"environment over file", true, environment, nil, 5},
		{"set over environment", false, environment, set, 6},
		{"set over environment and file", true, environment, set, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := sluicetest.New(t, test.args...)
			if test.file {
				p.Address = address
				p.Args = slices.Concat([]string{"--config", file, "--admin", p.Admin}, test.args)
			}
			p.Env = test.env
			p.Launch()
			p.WaitReady()
			if got := partitionsByDefault(t, sluicetest.Dial(t, p.Address)); got != test.want {
				t.Errorf("%d partitions, want %d", got, test.want)
			}
		})
	}
}

// TestStart_Environment: the variables of the apache/kafka image are settings.
func TestStart_Environment(t *testing.T) {
	onlyOurs(t)
	p := sluicetest.New(t)
	second := sluicetest.FreeAddress(t)
	p.Args = []string{"--admin", p.Admin}
	p.Env = []string{
		"KAFKA_NODE_ID=3",
		"KAFKA_LISTENERS=PLAINTEXT://" + p.Address + ",EXTERNAL://" + second,
		"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://broker:19092,EXTERNAL://localhost:29092",
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT",
		"KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT",
		"KAFKA_NUM_PARTITIONS=3",
		"KAFKA_LOG_DIRS=" + p.DataDir,
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0",
		"KAFKA_HEAP_OPTS=-Xmx1g",
		"KAFKA_FROBNICATE=1",
	}
	p.Launch()
	p.WaitReady()
	if _, err := os.Stat(filepath.Join(p.DataDir, "meta.properties")); err != nil {
		t.Error(err)
	}
	c := sluicetest.Dial(t, second)
	brokers := metadata(c, 12, false).Brokers
	if len(brokers) != 1 || brokers[0].NodeID != 3 || brokers[0].Host != "localhost" || brokers[0].Port != 29092 {
		t.Errorf("brokers %+v", brokers)
	}
	if got := partitionsByDefault(t, sluicetest.Dial(t, p.Address)); got != 3 {
		t.Errorf("%d partitions, want 3", got)
	}
	if out := p.Output(); strings.Count(out, "frobnicate") != 1 || strings.Contains(out, "heap.opts") {
		t.Errorf("warnings about the environment:\n%s", out)
	}
}
