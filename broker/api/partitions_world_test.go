package api_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/broker/api"
	"sluice/broker/config"
	"sluice/broker/delayed"
	"sluice/broker/fetchsession"
	"sluice/broker/server"
	"sluice/protocol/frame"
	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/protocol/uuid"
	"sluice/replication/metadata"
	"sluice/replication/replica"
	"sluice/storage/logdir"
	"sluice/storage/partlog"
	"sluice/storage/vfs"
)

// partitionsWorld is a broker with real replicas, sessions, purgatory and connections; only the network and the disk are in memory, and
// metadata comes from records instead of a controller.
type partitionsWorld struct {
	t        testing.TB
	fs       vfs.FS
	broker   *config.Broker
	machine  *metadata.Machine
	set      *replica.Set
	waiting  *delayed.Purgatory
	handlers *api.Handlers
	server   *server.Server
	network  *pipeListener

	topics    map[string]map[string]string // configs
	topicIDs  map[string]uuid.UUID
	snapshots sync.Map   // of topic configs
	mu        sync.Mutex // machine
	image     atomic.Pointer[metadata.Image]
}

// world runs a test with a broker on fake time.
func world(t *testing.T, overrides map[string]string, test func(w *partitionsWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newPartitionsWorld(t, vfs.NewMem(), overrides)
		defer w.stop()
		test(w)
	})
}

func newPartitionsWorld(t testing.TB, fs vfs.FS, overrides map[string]string) *partitionsWorld {
	t.Helper()
	settings := map[string]string{"node.id": "1", "process.roles": "broker,controller", "log.dirs": "/d1", "controller.listener.names": "CONTROLLER",
		"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093", "controller.quorum.voters": "1@localhost:9093"}
	maps.Copy(settings, overrides)
	broker, _, err := config.Load(config.Sources{Overrides: settings})
	if err != nil {
		t.Fatal(err)
	}
	w := &partitionsWorld{
		t: t, fs: fs, broker: broker, waiting: delayed.New(),
		machine:  metadata.NewMachine(metadata.Settings{ClusterID: "cluster", NodeID: 1}),
		topics:   map[string]map[string]string{},
		topicIDs: map[string]uuid.UUID{},
	}
	registration := &logrecord.RegisterBrokerRecord{BrokerID: 1, BrokerEpoch: 0, EndPoints: []logrecord.Endpoint{{Name: "PLAINTEXT", Host: "localhost", Port: 9092}}}
	w.replay(registration)
	w.start()
	return w
}

// start opens the replicas and begins to serve.
func (w *partitionsWorld) start() {
	w.t.Helper()
	dir, err := logdir.Open(w.fs, w.broker.LogDirs[0], logdir.Options{ClusterID: "cluster", NodeID: 1, Create: true})
	if err != nil {
		w.t.Fatal(err)
	}
	w.set = replica.NewSet(replica.Options{
		NodeID: 1, FS: w.fs, Dirs: []*logdir.Dir{dir}, Log: zap.NewNop(), NowMs: nowMs,
		Broker: func() *replica.BrokerConfig {
			return &replica.BrokerConfig{RecoveryThreads: 2, ProducerIDExpirationMs: w.broker.ProducerIDExpirationMs}
		},
		Topic:   func(topic string) *replica.TopicConfig { return replicaConfig(w.topic(topic)) },
		Changed: func(serial uint64) { w.waiting.Changed(delayed.Key(serial)) },
	})
	w.machine.Publish(1)
	w.image.Store(w.machine.Image())
	w.set.Apply(metadata.DeltaBetween(metadata.NewMachine(metadata.Settings{}).Image(), w.machine.Image()))
	session := int32(0)
	w.handlers = api.New(api.Deps{
		NodeID: 1, Log: zap.NewNop(), NowMs: nowMs,
		Config: func() *config.Broker { return w.broker }, TopicConfig: w.topic,
		Controller: (*worldController)(w), Replicas: worldReplicas{w.set}, Waiting: w.waiting,
		Sessions: fetchsession.New(w.broker.MaxIncrementalFetchSessionCacheSlots, func() int32 { session++; return session }),
	})
	w.network = &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	w.server = server.New(server.Options{Dispatcher: w.handlers, Listeners: []server.ListenerConfig{{Name: "PLAINTEXT", Listeners: []net.Listener{w.network}}}})
	if err := w.server.Listen(); err != nil {
		w.t.Fatal(err)
	}
	w.server.Serve()
}

func (w *partitionsWorld) stop() {
	w.t.Helper()
	w.waiting.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.server.Shutdown(ctx); err != nil {
		w.t.Error(err)
	}
	if err := w.set.Close(); err != nil {
		w.t.Error(err)
	}
}

// restart stops the broker cleanly and starts it again.
func (w *partitionsWorld) restart() {
	w.stop()
	w.waiting = delayed.New()
	w.start()
}

// pass lets time pass: fake time.
func (w *partitionsWorld) pass(d time.Duration) { time.Sleep(d) }

func nowMs() int64 { return time.Now().UnixMilli() }

func (w *partitionsWorld) topic(name string) *config.Topic {
	if known, ok := w.snapshots.Load(name); ok {
		return known.(*config.Topic)
	}
	made := w.broker.Topic(w.topics[name])
	w.snapshots.Store(name, made)
	return made
}

// configure changes a config of a topic.
func (w *partitionsWorld) configure(topic, name, value string) {
	w.topics[topic][name] = value
	w.snapshots.Delete(topic)
	w.set.Reconfigure()
}

func replicaConfig(t *config.Topic) *replica.TopicConfig {
	c := &replica.TopicConfig{MinInSyncReplicas: t.MinInsyncReplicas, Log: *partlog.DefaultConfig()}
	c.Log.MaxMessageBytes, c.Log.SegmentBytes, c.Log.LogAppendTime = t.MaxMessageBytes, t.SegmentBytes, t.MessageTimestampLogAppendTime
	c.Log.Delete, c.Log.Compact, c.Log.RetentionMs = t.CleanupPolicyDelete, t.CleanupPolicyCompact, t.RetentionMs
	c.Log.FlushMessages = t.FlushMessages
	return c
}

func (w *partitionsWorld) replay(records ...logrecord.ClusterRecord) {
	w.t.Helper()
	for _, r := range records {
		if err := w.machine.Replay(w.machine.NextOffset(), r); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *partitionsWorld) apply(records ...logrecord.ClusterRecord) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replay(records...)
	w.publish()
}

// publish lets everybody follow the machine.
func (w *partitionsWorld) publish() {
	d := w.machine.Publish(1)
	w.image.Store(d.Next)
	w.set.Apply(d)
}

// create makes a topic whose partitions broker 1 leads alone. configs are name, value, name, value, …
func (w *partitionsWorld) create(name string, partitions int, configs ...string) uuid.UUID {
	w.t.Helper()
	if len(configs) > 0 {
		w.topics[name] = map[string]string{}
	}
	for i := 0; i < len(configs); i += 2 {
		w.topics[name][configs[i]] = configs[i+1]
	}
	w.snapshots.Delete(name)
	id := uuid.UUID{0: 0x55, 14: byte(w.machine.NextOffset() >> 8), 15: byte(w.machine.NextOffset())}
	w.topicIDs[name] = id
	records := []logrecord.ClusterRecord{&logrecord.TopicRecord{Name: name, TopicID: id}}
	for i := range partitions {
		p := logrecord.NewPartitionRecord()
		p.PartitionID, p.TopicID, p.Replicas, p.ISR, p.Leader, p.LeaderEpoch, p.PartitionEpoch = int32(i), id, []int32{1}, []int32{1}, 1, 0, 0
		p.Directories = []uuid.UUID{uuid.UnassignedDirectory}
		records = append(records, p)
	}
	w.apply(records...)
	return id
}

// elect makes broker 1 leader again in the next epoch.
func (w *partitionsWorld) elect(name string, index int32) {
	w.t.Helper()
	change := logrecord.NewPartitionChangeRecord()
	change.PartitionID, change.TopicID, change.Leader = index, w.topicIDs[name], 1
	w.apply(change)
}

// worldReplicas is what the composition root does: concrete replicas as the interface that the handlers declare.
type worldReplicas struct{ *replica.Set }

func (r worldReplicas) Get(topic string, index int32) (api.Replica, error) {
	found, err := r.Set.Get(topic, index)
	if err != nil {
		return nil, err
	}
	return found, nil
}

type worldController partitionsWorld

func (c *worldController) Image() *metadata.Image { return c.image.Load() }

func (c *worldController) Do(_ context.Context, op metadata.Op) (kmsg.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	result, err := c.machine.Plan(op, nowMs())
	if err != nil {
		return nil, err
	}
	c.machine.Accept(result)
	(*partitionsWorld)(c).publish()
	return result.Response, nil
}

// pipeListener is a network in memory.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "192.0.2.1:9092" }

type pipeConn struct{ net.Conn }

func (pipeConn) LocalAddr() net.Addr  { return pipeAddr{} }
func (pipeConn) RemoteAddr() net.Addr { return pipeAddr{} }

// client is one connection that speaks in single requests.
type client struct {
	w           *partitionsWorld
	conn        net.Conn
	id          string
	correlation int32
	pipelined   bool // answers come to requests of sendAll
}

func (w *partitionsWorld) dial() *client {
	w.t.Helper()
	near, far := net.Pipe()
	select {
	case w.network.conns <- pipeConn{far}:
	case <-w.network.closed:
		w.t.Fatal("the broker does not listen")
	}
	return &client{w: w, conn: near, id: "test"}
}

// send sends a request in its version.
func (c *client) send(request kmsg.Request) {
	c.w.t.Helper()
	if _, err := c.conn.Write(c.encode(request)); err != nil {
		c.w.t.Fatal(err)
	}
}

func (c *client) encode(request kmsg.Request) []byte {
	c.correlation++
	id := c.id
	b := frame.AppendRequestHeader(make([]byte, frame.LengthBytes), frame.RequestHeader{
		Key: request.Key(), Version: request.GetVersion(), CorrelationID: c.correlation, ClientID: &id,
	})
	b = request.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-frame.LengthBytes))
	return b
}

// sendAll sends requests back to back; the answers are awaited one by one. The network has no buffer, so that this takes a goroutine.
func (c *client) sendAll(requests ...kmsg.Request) {
	var all []byte
	for _, q := range requests {
		all = append(all, c.encode(q)...)
	}
	c.correlation -= int32(len(requests))
	c.pipelined = true
	go c.conn.Write(all)
}

// receive reads the body of the next answer: what follows its header.
func (c *client) receive(request kmsg.Request) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(c.conn, length[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(c.conn, body); err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(body)); got != c.correlation {
		return nil, fmt.Errorf("answer to request %d, want %d", got, c.correlation)
	}
	header := 4
	if request.IsFlexible() {
		header++
	}
	return body[header:], nil
}

// ask sends a request and decodes the answer, which must hold nothing but it.
func ask[R kmsg.Response](c *client, request kmsg.Request) R {
	c.w.t.Helper()
	c.send(request)
	return await[R](c, request)
}

// await decodes the answer to a request that has been sent.
func await[R kmsg.Response](c *client, request kmsg.Request) R {
	c.w.t.Helper()
	if c.pipelined {
		c.correlation++
	}
	body, err := c.receive(request)
	if err != nil {
		c.w.t.Fatal(err)
	}
	response := request.ResponseKind().(R)
	response.SetVersion(request.GetVersion())
	if err := response.ReadFrom(body); err != nil {
		c.w.t.Fatalf("%T version %d cannot be decoded: %v", response, request.GetVersion(), err)
	}
	if again := response.AppendTo(nil); !bytes.Equal(again, body) {
		c.w.t.Fatalf("%T version %d is not what kmsg writes:\n%x, want\n%x", response, request.GetVersion(), body, again)
	}
	return response
}

// closed reports whether the broker has closed the connection without another byte.
func (c *client) closed() bool {
	n, err := c.conn.Read(make([]byte, 1))
	return n == 0 && err != nil
}

// batchOptions are for building batches in tests: an idempotent producer's when a producer id is given.
type batchOptions struct {
	record.BuilderOptions
	timestamps []int64
}

func newBatch(t testing.TB, values ...string) record.Batch {
	t.Helper()
	return buildBatch(t, plainOptions(), values...)
}

func plainOptions() batchOptions {
	return batchOptions{BuilderOptions: record.BuilderOptions{
		ProducerID: record.NoProducerID, ProducerEpoch: record.NoProducerEpoch, BaseSequence: record.NoSequence, LeaderEpoch: record.NoLeaderEpoch,
	}}
}

func sequenced(id int64, epoch int16, sequence int32) batchOptions {
	o := plainOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence = record.ProducerID(id), record.ProducerEpoch(epoch), sequence
	return o
}

func buildBatch(t testing.TB, o batchOptions, values ...string) record.Batch {
	t.Helper()
	b := record.NewBuilder(o.BuilderOptions)
	for i, v := range values {
		r := record.Record{TimestampMs: nowMs(), Key: []byte("k"), Value: []byte(v)}
		if i < len(o.timestamps) {
			r.TimestampMs = o.timestamps[i]
		}
		if key, value, ok := strings.Cut(v, "="); ok {
			r.Key, r.Value = []byte(key), []byte(value)
			if key == "" {
				r.Key = nil
			}
		}
		b.Add(r)
	}
	built, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// produceRequest asks to append to partitions of one topic, in order from 0; a nil entry is left out.
func produceRequest(version int16, acks int16, topic string, records ...[]byte) *kmsg.ProduceRequest {
	q := kmsg.NewPtrProduceRequest()
	q.SetVersion(version)
	q.Acks, q.TimeoutMillis = acks, 1000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	for i, b := range records {
		if b == nil {
			continue
		}
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(i), b
		t.Partitions = append(t.Partitions, p)
	}
	q.Topics = append(q.Topics, t)
	return q
}

// produce appends to partitions of one topic with acks=all and returns the answer of the first.
func (c *client) produce(topic string, records ...[]byte) kmsg.ProduceResponseTopicPartition {
	c.w.t.Helper()
	return ask[*kmsg.ProduceResponse](c, produceRequest(9, -1, topic, records...)).Topics[0].Partitions[0]
}

// fetchRequest asks for partitions of one topic, from the offsets given, without a session.
func fetchRequest(version int16, topic string, id uuid.UUID, offsets ...int64) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	q.SetVersion(version)
	q.ReplicaID, q.MaxWaitMillis, q.MinBytes, q.MaxBytes, q.SessionEpoch = -1, 0, 1, 1<<20, -1
	q.ReplicaState.ID = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic, id
	for i, offset := range offsets {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = int32(i), offset, 1<<20, -1
		t.Partitions = append(t.Partitions, p)
	}
	if len(offsets) > 0 {
		q.Topics = append(q.Topics, t)
	}
	return q
}

// valuesOf decodes the values in fetched records, from an offset on.
func valuesOf(t testing.TB, records []byte, offset int64) (values []string) {
	t.Helper()
	for len(records) > 0 {
		b, rest, err := record.Split(records)
		if err != nil {
			return values // cut short by a byte limit
		}
		for r, err := range b.Records(0) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Offset >= offset {
				values = append(values, string(r.Value))
			}
		}
		records = rest
	}
	return values
}
