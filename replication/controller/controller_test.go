package controller

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"sluice/replication/metadata"
	"sluice/storage/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var features = []metadata.Feature{
	{Name: metadata.FeatureMetadataVersion, Min: metadata.MinMetadataVersion, Max: metadata.LatestMetadataVersion, Bootstrap: metadata.LatestMetadataVersion},
	{Name: metadata.FeatureELR, Max: 1, Bootstrap: 1},
	{Name: "group.version", Max: 1, Bootstrap: 1},
	{Name: "share.version", Max: 2, Bootstrap: 2},
	{Name: "streams.version", Max: 1, Bootstrap: 1},
	{Name: "transaction.version", Max: 2, Bootstrap: 2},
	{Name: metadata.FeatureKRaftVersion, Max: 1},
}

const testCluster = "AAAAAAAAAAAAAAAAAAAAAA-test"

func seeded(seed uint64) io.Reader {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

// anything accepts all configs.
type anything struct{}

func (anything) ValidateTopicConfigs(map[string]string) error                 { return nil }
func (anything) ValidateGroupConfigs(map[string]string) error                 { return nil }
func (anything) ValidateClientMetricsConfigs(string, map[string]string) error { return nil }
func (anything) ListConfig(metadata.ResourceType, string) (bool, string)      { return false, "" }
func (anything) EffectiveTopicConfigs(_, _, _ map[string]string) []metadata.TopicConfig {
	return nil
}

func options(t testing.TB, fsys vfs.FS) Options {
	return Options{
		FS: fsys, Dir: "data", Voters: []metadata.BrokerID{1},
		Machine: metadata.Settings{
			ClusterID: testCluster, NodeID: 1, DefaultReplicationFactor: 1, DefaultPartitions: 1, MinInSyncReplicas: 1,
			SessionTimeoutMs: 9000, Features: features, Configs: anything{},
		},
		Random: seeded(1), NowMs: func() int64 { return 1_700_000_000_000 }, Log: zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)),
	}
}

func format(t testing.TB, fsys vfs.FS) {
	t.Helper()
	err := Format(FormatOptions{FS: fsys, Dirs: []string{"data"}, ClusterID: testCluster, NodeID: 1, Features: features, Random: seeded(2), NowMs: 1_700_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
}

// start opens a controller and runs it until the test ends or stop is called.
func start(t testing.TB, o Options) (c *Controller, stop func()) {
	t.Helper()
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		var fault *Fault
		if err := c.Run(context.Background()); err != nil && !errors.As(err, &fault) {
			t.Errorf("run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		if err := c.Close(); err != nil {
			t.Logf("close: %v", err)
		}
		running.Wait()
	})
	t.Cleanup(stop)
	return c, stop
}

func register(t testing.TB, c *Controller, incarnation byte) {
	t.Helper()
	registerBy(t, c, incarnation, func(op metadata.Op) (kmsg.Response, error) { return c.Do(context.Background(), op) })
}

// inPlace runs an operation on a controller whose Run has not begun.
func inPlace(t testing.TB, c *Controller, op metadata.Op) *task {
	t.Helper()
	one := &task{op: op, done: make(chan struct{})}
	if err := c.commit([]*task{one}); err != nil {
		t.Fatal(err)
	}
	return one
}

func registerInPlace(t testing.TB, c *Controller) {
	t.Helper()
	registerBy(t, c, 1, func(op metadata.Op) (kmsg.Response, error) {
		one := inPlace(t, c, op)
		return one.response, one.err
	})
}

func registerBy(t testing.TB, c *Controller, incarnation byte, do func(metadata.Op) (kmsg.Response, error)) {
	t.Helper()
	req := kmsg.NewBrokerRegistrationRequest()
	req.Version, req.BrokerID, req.ClusterID = 4, 1, testCluster
	req.IncarnationID = [16]byte{incarnation, 9, 9}
	req.LogDirs = [][16]byte{{7, 7, 7}}
	for _, f := range features {
		feature := kmsg.NewBrokerRegistrationRequestFeature()
		feature.Name, feature.MinSupportedVersion, feature.MaxSupportedVersion = f.Name, f.Min, f.Max
		req.Features = append(req.Features, feature)
	}
	resp, err := do(metadata.RegisterBroker(&req))
	if err != nil {
		t.Fatal(err)
	}
	if code := resp.(*kmsg.BrokerRegistrationResponse).ErrorCode; code != 0 {
		t.Fatalf("registration: error code %d", code)
	}
	beat := kmsg.NewBrokerHeartbeatRequest()
	beat.BrokerID, beat.BrokerEpoch = 1, resp.(*kmsg.BrokerRegistrationResponse).BrokerEpoch
	beat.CurrentMetadataOffset = c.Image().Offset()
	resp, err = do(metadata.BrokerHeartbeat(&beat))
	if err != nil {
		t.Fatal(err)
	}
	if r := resp.(*kmsg.BrokerHeartbeatResponse); r.ErrorCode != 0 || r.IsFenced {
		t.Fatalf("heartbeat: %+v", r)
	}
}

func createTopic(name string, partitions int32) metadata.Op {
	req := kmsg.NewCreateTopicsRequest()
	req.Version = 7
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	req.Topics = append(req.Topics, topic)
	return metadata.CreateTopics(&req)
}

// create returns the error of the controller or that of the answer.
func create(c *Controller, name string, partitions int32) error {
	resp, err := c.Do(context.Background(), createTopic(name, partitions))
	if err != nil {
		return err
	}
	if topic := resp.(*kmsg.CreateTopicsResponse).Topics[0]; topic.ErrorCode != 0 {
		return fmt.Errorf("error code %d: %s", topic.ErrorCode, *topic.ErrorMessage)
	}
	return nil
}

func topics(i *metadata.Image) (names []string) {
	for t := range i.Topics() {
		names = append(names, fmt.Sprintf("%s/%d", t.Name, len(t.Partitions)))
	}
	return names
}

// describe shows an image.
func describe(i *metadata.Image) string {
	var out strings.Builder
	levels, _ := i.FinalizedFeatures()
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		fmt.Fprintf(&out, "feature %s=%d\n", name, levels[name])
	}
	for b := range i.Brokers() {
		fmt.Fprintf(&out, "broker %d epoch %d fenced %t shutting down %t %v directories %v cordoned %v\n", b.ID, b.Epoch, b.Fenced, b.InControlledShutdown, b.Endpoints, b.Directories, b.CordonedDirectories)
	}
	for c := range i.Controllers() {
		fmt.Fprintf(&out, "controller %d %v\n", c.ID, c.Endpoints)
	}
	for t := range i.Topics() {
		fmt.Fprintf(&out, "topic %s %s\n", t.Name, t.ID)
		for n, p := range t.Partitions {
			fmt.Fprintf(&out, "  %d %+v\n", n, p)
		}
	}
	for r, configs := range i.ConfigResources() {
		fmt.Fprintf(&out, "configs %s %q %v\n", r.Type, r.Name, configs)
	}
	for q := range i.ClientQuotas() {
		fmt.Fprintf(&out, "quota %s %s %v\n", q.Entity[0].EntityType, *q.Entity[0].EntityName, q.Values)
	}
	for s := range i.ScramCredentials() {
		fmt.Fprintf(&out, "scram %s %d iterations %d\n", s.Name, s.Mechanism, s.Iterations)
	}
	return out.String()
}
