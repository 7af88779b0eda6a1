package api

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/config"
	"sluice/broker/metrics"
	"sluice/broker/server"
	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
	"sluice/replication/metadata"
)

// clusterOfOne is a controller machine without a log: operations are committed as soon as they are made.
type clusterOfOne struct {
	sync.Mutex
	machine *metadata.Machine
}

func (c *clusterOfOne) Image() *metadata.Image {
	c.Lock()
	defer c.Unlock()
	return c.machine.Image()
}

func (c *clusterOfOne) Do(ctx context.Context, op metadata.Op) (kmsg.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.Lock()
	defer c.Unlock()
	result, err := c.machine.Plan(op, 1)
	if err != nil {
		return nil, err
	}
	c.machine.Accept(result)
	c.machine.Publish(1)
	return result.Response, nil
}

// advertised is an address for each listener.
type advertised map[string]string

func (a advertised) Advertised(listener string, _, _ net.Addr) (string, int32, bool) {
	address, ok := a[listener]
	host, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return host, int32(n), ok
}

// adminHandlers are handlers over a cluster of the given brokers, of which the first is this node.
func adminHandlers(t testing.TB, settings map[string]string, brokers ...*logrecord.RegisterBrokerRecord) *Handlers {
	t.Helper()
	static, _, err := config.Load(config.Sources{Profile: config.DevProfile(), File: settings})
	if err != nil {
		t.Fatal(err)
	}
	machine := metadata.NewMachine(metadata.Settings{
		ClusterID: "cluster-1", NodeID: 1, Voters: []metadata.BrokerID{1},
		DefaultPartitions: static.NumPartitions, DefaultReplicationFactor: static.DefaultReplicationFactor, MinInSyncReplicas: 1,
		SessionTimeoutMs: 9000, Configs: static.Validator(), Features: []metadata.Feature{{Name: metadata.FeatureMetadataVersion, Min: metadata.MinMetadataVersion, Max: metadata.LatestMetadataVersion}},
		Random: rand.NewChaCha8([32]byte{}),
	})
	controller := &clusterOfOne{machine: machine}
	if len(brokers) == 0 {
		brokers = []*logrecord.RegisterBrokerRecord{{BrokerID: 1}}
	}
	if err := machine.Replay(0, &logrecord.FeatureLevelRecord{Name: metadata.FeatureMetadataVersion, FeatureLevel: metadata.LatestMetadataVersion}); err != nil {
		t.Fatal(err)
	}
	for i, b := range brokers {
		b.BrokerEpoch = int64(i + 1)
		if err := machine.Replay(int64(i+1), b); err != nil {
			t.Fatal(err)
		}
	}
	machine.Publish(1)
	dynamic := func() *config.Broker {
		image := controller.Image()
		b, _ := static.WithDynamic(
			image.Configs(metadata.ConfigResource{Type: metadata.BrokerResource}),
			image.Configs(metadata.ConfigResource{Type: metadata.BrokerResource, Name: "1"}))
		return b
	}
	return New(Deps{
		NodeID: 1, NowMs: func() int64 { return 1 }, Metrics: metrics.New(metrics.Build{}), Config: dynamic,
		TopicConfig: func(topic string) *config.Topic {
			return dynamic().Topic(controller.Image().Configs(metadata.ConfigResource{Type: metadata.TopicResource, Name: topic}))
		},
		Controller: controller, Listeners: advertised{"PLAINTEXT": "localhost:9092", "INTERNAL": "kafka:19092"},
	})
}

// remoteBroker is another broker of the cluster.
func remoteBroker(id int32, fenced bool, endpoints ...string) *logrecord.RegisterBrokerRecord {
	b := &logrecord.RegisterBrokerRecord{BrokerID: id, Fenced: fenced}
	for i, listener := range endpoints {
		b.EndPoints = append(b.EndPoints, logrecord.Endpoint{Name: listener, Host: fmt.Sprint("host", id), Port: uint16(9092 + i)})
	}
	return b
}

// serveOn starts a server with one listener and returns a dialler.
func serveOn(t testing.TB, h *Handlers, listener string) (dial func() wire) {
	t.Helper()
	s := server.New(server.Options{Dispatcher: h, Listeners: []server.ListenerConfig{{Name: listener, Addresses: []string{"127.0.0.1:0"}}}})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	s.Serve()
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return func() wire {
		conn, err := net.Dial("tcp", s.Addrs(listener)[0].String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		return wire{t, conn}
	}
}

// ask sends a request in its version and reads the answer.
func ask[R kmsg.Response](w wire, request kmsg.Request) R {
	w.t.Helper()
	w.send(kmsg.Key(request.Key()), request.GetVersion(), 1, request.AppendTo(nil))
	b := w.receive()
	if got := binary.BigEndian.Uint32(b); got != 1 {
		w.t.Fatalf("correlation id %d, want 1", got)
	}
	if b = b[4:]; request.IsFlexible() {
		b = b[1:] // no tags in the header
	}
	response := request.ResponseKind()
	if err := response.ReadFrom(b); err != nil {
		w.t.Fatalf("%T version %d: %v", response, request.GetVersion(), err)
	}
	return response.(R)
}

func topicRequest(name string, partitions int32, replicas int16, configs ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replicas
	for i := 0; i < len(configs); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = configs[i], &configs[i+1]
		t.Configs = append(t.Configs, c)
	}
	return t
}

func createTopics(topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Version, request.TimeoutMillis, request.Topics = 7, 10_000, topics
	return request
}

// mustCreate creates topics that have to succeed.
func (w wire) mustCreate(topics ...kmsg.CreateTopicsRequestTopic) {
	w.t.Helper()
	for _, t := range ask[*kmsg.CreateTopicsResponse](w, createTopics(topics...)).Topics {
		if t.ErrorCode != 0 {
			w.t.Fatalf("creating %s: %d %s", t.Topic, t.ErrorCode, nullable(t.ErrorMessage))
		}
	}
}

func nullable(s *string) string {
	if s == nil {
		return `\N`
	}
	return *s
}

func metadataRequest(version int16, topics ...string) *kmsg.MetadataRequest {
	request := kmsg.NewPtrMetadataRequest()
	request.Version = version
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &name
		request.Topics = append(request.Topics, t)
	}
	return request
}

var noID uuid.UUID
