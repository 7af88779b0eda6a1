package broker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"sluice/broker"
)

func start(t *testing.T, c broker.Config) *broker.Broker {
	t.Helper()
	c.Dev = true
	c.Listen = "127.0.0.1:0"
	b, err := broker.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, b) })
	return b
}

func stop(t *testing.T, b *broker.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := b.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func client(t *testing.T, b *broker.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Address())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// TestStart_ServesAndForgetsNothing produces, consumes in a group, restarts on the same directory and finds everything again.
func TestStart_ServesAndForgetsNothing(t *testing.T) {
	dir := t.TempDir()
	first := start(t, broker.Config{DataDir: dir})
	cl := client(t, first, kgo.DefaultProduceTopic("kept"), kgo.AllowAutoTopicCreation())
	for i := range 10 {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	readers := client(t, first, kgo.ConsumerGroup("readers"), kgo.ConsumeTopics("kept"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	for seen := 0; seen < 10; {
		fetches := readers.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		seen += fetches.NumRecords()
	}
	if err := readers.CommitUncommittedOffsets(t.Context()); err != nil {
		t.Fatal(err)
	}
	cluster := first.ClusterID()
	readers.Close()
	cl.Close()
	stop(t, first)

	second := start(t, broker.Config{DataDir: dir})
	if second.ClusterID() != cluster {
		t.Errorf("cluster %s after the restart, %s before", second.ClusterID(), cluster)
	}
	adm := kadm.NewClient(client(t, second))
	offsets, err := adm.FetchOffsets(t.Context(), "readers")
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := offsets.Lookup("kept", 0); !ok || got.At != 10 {
		t.Errorf("committed offset %d after the restart, want 10", got.At)
	}
	ends, err := adm.ListEndOffsets(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := ends.Lookup("kept", 0); got.Offset != 10 {
		t.Errorf("end offset %d after the restart, want 10", got.Offset)
	}
}

// TestStart_Refuses says, for each reason not to start, what is wrong.
func TestStart_Refuses(t *testing.T) {
	taken := start(t, broker.Config{DataDir: t.TempDir()})
	dir := t.TempDir()
	locked := start(t, broker.Config{DataDir: dir})
	_ = locked
	for _, test := range []struct {
		name   string
		config broker.Config
		want   []string
	}{
		{"address in use", broker.Config{Dev: true, Ephemeral: true, Listen: taken.Address()}, []string{"in use", taken.Address()}},
		{"directory locked", broker.Config{Dev: true, DataDir: dir, Listen: "127.0.0.1:0"}, []string{"in use", dir}},
		{"unknown key", broker.Config{Dev: true, Ephemeral: true, Overrides: map[string]string{"num.partition": "3"}}, []string{"num.partition", "num.partitions"}},
		{"bad value", broker.Config{Dev: true, Ephemeral: true, Overrides: map[string]string{"num.partitions": "many"}}, []string{"num.partitions", "many"}},
		{"not formatted", broker.Config{Properties: map[string]string{
			"node.id": "1", "process.roles": "broker,controller", "controller.quorum.voters": "1@localhost:9093", "controller.listener.names": "CONTROLLER",
			"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093", "log.dirs": t.TempDir(),
		}}, []string{"sluice format"}},
		{"only a broker", broker.Config{Dev: true, Ephemeral: true, Overrides: map[string]string{"process.roles": "broker", "controller.quorum.voters": "2@localhost:9093", "controller.listener.names": "CONTROLLER"}}, []string{"process.roles"}},
		{"an authorizer", broker.Config{Dev: true, Ephemeral: true, Properties: map[string]string{"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}}, []string{"authorizer.class.name", "open"}},
		{"two listen settings", broker.Config{Dev: true, Ephemeral: true, Listen: "127.0.0.1:0", Overrides: map[string]string{"listeners": "PLAINTEXT://:1"}}, []string{"listeners"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, err := broker.Start(t.Context(), test.config)
			if err == nil {
				stop(t, b)
				t.Fatal("it started")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not name %q: %v", want, err)
				}
			}
		})
	}
}

// TestAdmin_ReadyFollowsTheBroker asks the admin server before and after the broker stops.
func TestAdmin_ReadyFollowsTheBroker(t *testing.T) {
	b := start(t, broker.Config{Ephemeral: true, Admin: "127.0.0.1:0"})
	if err := b.Ready(); err != nil {
		t.Errorf("ready: %v", err)
	}
	cl := client(t, b, kgo.DefaultProduceTopic("counted"), kgo.AllowAutoTopicCreation())
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/ready": "", "/healthz": "", "/metrics": `topic="counted"`, "/version": "kafka"} {
		resp, err := http.Get("http://" + b.AdminAddress() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d, %v, without %q:\n%.500s", path, resp.StatusCode, err, want, body)
		}
	}
	stop(t, b)
	if err := b.Ready(); err == nil {
		t.Error("a stopped broker is ready")
	}
}

// TestStop_LeavesNothingRunning starts and stops brokers in memory, several at once, and looks for goroutines that are left.
func TestStop_LeavesNothingRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	errs := make(chan error)
	for range 8 {
		go func() {
			for range 3 {
				b, err := broker.Start(context.Background(), broker.Config{Dev: true, Ephemeral: true, Listen: "127.0.0.1:0"})
				if err == nil {
					err = b.Stop(context.Background())
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var err error
	for range 8 {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}

// BenchmarkStartStop is one broker in memory from nothing to nothing.
func BenchmarkStartStop(b *testing.B) {
	for b.Loop() {
		one, err := broker.Start(b.Context(), broker.Config{Dev: true, Ephemeral: true, Listen: "127.0.0.1:0"})
		if err != nil {
			b.Fatal(err)
		}
		if err := one.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
