// Package clients runs real clients of every common library against the built broker. README.md beside this file says what each of them does.
package clients

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/compat-tests/sluicetest"
)

// job is what one client is asked to do.
type job struct {
	bootstrap, topic, group string
	records                 int
}

// client is a row of the matrix: a program, or a function for the Go libraries.
type client struct {
	name string
	// install makes the client's program runnable in its folder. It may use the network's package registries, and runs once.
	install []string
	// command runs the job, in dir, with the job in its environment.
	dir     string
	command []string
	env     []string
	// run is the job itself, for a library of this language.
	run func(t *testing.T, j job)
}

const jvm = `set -e; version=$1; out=$PWD/out/$version; mkdir -p "$out"
[ -f "$out/.done" ] || { mvn -q -B -Dkafka.version=$version -Dslf4j.version=$2 dependency:copy-dependencies -DoutputDirectory="$out"
javac -nowarn -cp "$out/*" -d "$out" Smoke.java 2>&1; touch "$out/.done"; }`

const venv = `set -e; [ -x ../out/python/bin/python ] || python3 -m venv ../out/python
[ -f ../out/python/$1 ] || { ../out/python/bin/pip install -q --disable-pip-version-check $2; touch ../out/python/$1; }`

func java(version, slf4j, codecs string) client {
	return client{
		name: "java-" + version, dir: "java",
		install: []string{"bash", "-c", jvm, "install", version, slf4j},
		command: []string{"java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", "out/" + version + ":out/" + version + "/*", "Smoke"},
		env:     []string{"CODECS=" + codecs},
	}
}

// javaTransactions is the exactly-once job of Transactions.java, which begins after the smoke job of that version has installed the client.
func javaTransactions(version, slf4j string) client {
	c := java(version, slf4j, "")
	c.name = "java-transactions-" + version
	c.install[2] += `; [ -f "$out/Transactions.class" ] || javac -nowarn -cp "$out/*" -d "$out" Transactions.java 2>&1`
	c.command[len(c.command)-1] = "Transactions"
	return c
}

func python(name, script, packages string) client {
	return client{
		name: name, dir: "python",
		install: []string{"bash", "-c", venv, "install", name, packages},
		command: []string{"../out/python/bin/python", script},
	}
}

var matrix = []client{
	{name: "franz-go", run: franzGo},
	{name: "sarama", run: saramaClient},
	{name: "kafka-go", run: kafkaGo},
	{name: "kcat", install: []string{"bash", "-c", "command -v kcat >/dev/null || apt-get install -y -q kcat >/dev/null"}, dir: "kcat", command: []string{"./smoke.sh"}},
	python("confluent-kafka", "confluent_smoke.py", "confluent-kafka==2.16.1"),
	python("kafka-python", "kafka_python_smoke.py", "kafka-python==3.0.12 python-snappy lz4 zstandard crc32c"),
	python("aiokafka", "aiokafka_smoke.py", "aiokafka==0.14.0 cramjam"),
	{name: "kafkajs", install: []string{"bash", "-c", "[ -d node_modules/kafkajs ] || npm install --silent --no-audit --no-fund"}, dir: "kafkajs", command: []string{"node", "smoke.js"}},
	{name: "rdkafka", install: []string{"cargo", "build", "--release", "--quiet"}, dir: "rust", command: []string{"target/release/smoke"}},
	java("4.4.0", "1.7.36", "none,gzip,snappy,lz4,zstd"),
	java("3.9.1", "1.7.36", "none,gzip,snappy,lz4,zstd"),
	java("2.8.2", "1.7.30", "none,gzip,snappy,lz4,zstd"),
	java("2.1.1", "1.7.25", "none,gzip,snappy,lz4,zstd"),
	javaTransactions("4.4.0", "1.7.36"), // version 2 of transactions
	javaTransactions("3.9.1", "1.7.36"),
	javaTransactions("2.1.1", "1.7.25"),
	{name: "java-tools", install: []string{"../../reference/kafka", "install"}, dir: "javatools", command: []string{"./smoke.sh"}, env: []string{"KAFKA=" + reference()}},
}

func reference() string {
	path, err := filepath.Abs("../reference/kafka")
	if err != nil {
		return "../reference/kafka"
	}
	return path
}

// TestSmoke runs each client of the matrix against one broker.
func TestSmoke(t *testing.T) {
	bootstrap := os.Getenv("SMOKE_BOOTSTRAP")
	if bootstrap == "" {
		bootstrap = sluicetest.Start(t).Address
	}
	only := strings.FieldsFunc(os.Getenv("SMOKE_ONLY"), func(r rune) bool { return r == ',' })
	for _, name := range only {
		if !slices.ContainsFunc(matrix, func(c client) bool { return c.name == name }) {
			t.Errorf("SMOKE_ONLY names %s, which is not in the matrix", name)
		}
	}
	for _, c := range matrix {
		t.Run(c.name, func(t *testing.T) {
			if len(only) > 0 && !slices.Contains(only, c.name) {
				t.Skipf("SKIPPED %s: SMOKE_ONLY asks for %s", c.name, os.Getenv("SMOKE_ONLY"))
			}
			suffix := make([]byte, 4)
			_, _ = rand.Read(suffix)
			name := "smoke-" + c.name + "-" + hex.EncodeToString(suffix)
			j := job{bootstrap: bootstrap, topic: name, group: name + "-group", records: 10_000}
			if c.run != nil {
				c.run(t, j)
				return
			}
			runProgram(t, c, j)
		})
	}
}

func runProgram(t *testing.T, c client, j job) {
	if c.install != nil {
		if out, err := command(c.dir, nil, 15*time.Minute, c.install); err != nil {
			t.Fatalf("could not install %s, so it is not tested: %v\n%s", c.name, err, out)
		}
	}
	start := time.Now()
	env := append([]string{"BOOTSTRAP=" + j.bootstrap, "TOPIC=" + j.topic, "GROUP=" + j.group}, c.env...)
	out, err := command(c.dir, env, 5*time.Minute, c.command)
	if err != nil || !strings.HasSuffix(strings.TrimSpace(out), "OK") {
		t.Fatalf("%v after %v\n%s", err, time.Since(start).Round(time.Millisecond), out)
	}
}

// command runs a program and returns what it printed; it is ended after the limit.
func command(dir string, env []string, limit time.Duration, args []string) (string, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return "", err
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !timer.Stop() {
		err = errors.Join(errors.New("took longer than "+limit.String()), err)
	}
	return out.String(), err
}
