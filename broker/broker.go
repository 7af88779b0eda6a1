// Package broker puts one broker together: it opens the storage, the cluster's metadata, the partitions, the coordinators and the listeners
// from the bottom up, and closes them from the top down. `sluice serve`, tests and programs that embed a broker all call Start.
package broker

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"sluice/broker/admin"
	"sluice/broker/api"
	"sluice/broker/config"
	"sluice/broker/delayed"
	"sluice/broker/fetchsession"
	"sluice/broker/metrics"
	"sluice/broker/server"
	"sluice/replication/controller"
	"sluice/replication/metadata"
	"sluice/replication/replica"
	"sluice/storage/logdir"
	"sluice/storage/vfs"
)

// Broker is one running broker.
type Broker struct {
	config   Config
	started  *config.Broker
	settings *settings
	log      *zap.Logger

	dirs         logdir.Dirs
	clusterID    string
	controller   *controller.Controller
	registration *registration
	replicas     *replica.Set
	groups       *groups
	transactions *transactions
	metrics      *metrics.Broker
	handlers     *dispatcher
	server       *server.Server
	admin        *admin.Server

	ready   atomic.Bool
	opening atomic.Pointer[replica.Opening] // how far the logs have been opened at start
	cancel  context.CancelFunc              // ends what runs in the background
	running sync.WaitGroup
	closers []func() error // what Start has opened, to be closed in reverse order
	stopped sync.Once

	failure struct {
		sync.Once
		happened chan struct{}
		err      error
	}
}

// Start runs a broker and returns when clients can produce to it. ctx bounds only the start. The error is a sentence for the person who
// started it: an address in use, a directory locked by another broker, a setting out of range.
func Start(ctx context.Context, c Config) (*Broker, error) {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	began := time.Now()
	started, err := c.load()
	if err != nil {
		return nil, err
	}
	if err := checkServed(started); err != nil {
		return nil, err
	}
	b := &Broker{config: c, started: started, settings: newSettings(started, c.Log), log: c.Log}
	b.failure.happened = make(chan struct{})
	if err := b.open(ctx); err != nil {
		b.stopBackground()
		return nil, errors.Join(err, b.close())
	}
	b.ready.Store(true)
	b.announce(time.Since(began))
	return b, nil
}

// open starts the parts from the bottom up.
func (b *Broker) open(ctx context.Context) error {
	nowMs := func() int64 { return time.Now().UnixMilli() }
	background, cancel := context.WithCancel(context.Background())
	b.cancel = cancel

	fsys := vfs.OS()
	if b.config.Ephemeral {
		fsys = vfs.NewEphemeral()
	}
	dirs, metadataDir, err := openDirs(b.config, b.started, fsys)
	if err != nil {
		return err
	}
	b.dirs, b.clusterID = dirs, dirs[0].ClusterID()
	b.closers = append(b.closers, dirs.Close) // those that the replicas have closed by then are left out

	// The addresses are taken before anything is recovered, so that a second broker finds out at once. Nobody is accepted yet.
	handlers := &dispatcher{}
	b.handlers = handlers
	listeners, controllers := clientListeners(b.started)
	for _, l := range controllers {
		b.log.Warn("the controller listener is not opened: a quorum of one has no peers", zap.Stringer("listener", l))
	}
	b.metrics = metrics.New(metrics.Build{Version: b.config.Version})
	b.server = server.New(server.Options{Dispatcher: handlers, Listeners: listeners, Limits: serverLimits(b.started), Log: b.log, Observer: b.metrics})
	if err := b.server.Listen(); err != nil {
		if errors.As(err, new(*server.AddressInUse)) {
			return fmt.Errorf("%w: stop that one, or choose another address by --listen HOST:PORT or the setting listeners", err)
		}
		return err
	}
	b.closers = append(b.closers, func() error {
		cutOff, cancel := context.WithCancel(context.Background())
		cancel()
		if err := b.server.Shutdown(cutOff); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})

	if err := b.openAdmin(); err != nil { // it tells how far the recovery is
		return err
	}

	b.controller, err = controller.Open(controller.Options{
		FS: fsys, Dir: metadataDir, Voters: []metadata.BrokerID{metadata.BrokerID(b.started.NodeID)},
		Machine: metadata.Settings{
			ClusterID:                b.clusterID,
			NodeID:                   metadata.BrokerID(b.started.NodeID),
			Voters:                   []metadata.BrokerID{metadata.BrokerID(b.started.NodeID)},
			DefaultReplicationFactor: b.started.DefaultReplicationFactor,
			DefaultPartitions:        b.started.NumPartitions,
			MinInSyncReplicas:        int32(b.started.MinInsyncReplicas),
			UncleanLeaderElection:    b.started.UncleanLeaderElectionEnable,
			SessionTimeoutMs:         b.started.BrokerSessionTimeoutMs,
			Features:                 features,
			Configs:                  b.started.Validator(),
		},
		SegmentBytes: b.started.MetadataLogSegmentBytes, SegmentMs: b.started.MetadataLogSegmentMs,
		Random: cryptorand.Reader, NowMs: nowMs, Log: b.log,
	})
	if err != nil {
		return err
	}
	b.closers = append(b.closers, b.controller.Close)
	b.goRun(background, "the metadata log", b.controller.Run)

	b.registration = newRegistration(b.started, b.controller, dirs, b.log)
	waiting := delayed.New()
	b.replicas = replica.NewSet(replica.Options{
		NodeID: metadata.BrokerID(b.started.NodeID), FS: fsys, Dirs: dirs, Log: b.log, NowMs: nowMs,
		BrokerEpoch: b.registration.brokerEpoch,
		Broker:      b.settings.replicaBroker,
		Topic:       func(topic string) *replica.TopicConfig { return b.settings.topic(topic).replica },
		Changed:     func(serial uint64) { waiting.Changed(delayed.Key(serial)) },
		Progress:    b.recoveryProgress(),
		Failed:      b.directoryFailed,
	})
	b.closers = append(b.closers, b.replicas.Close)
	b.groups = newGroups(b.settings, b.replicas, nowMs, b.log)
	b.closers = append(b.closers, b.groups.close)
	b.transactions = newTransactions(b.settings, b.replicas, &api.MarkerWriter{
		Replicas: replicaTable{b.replicas}, Groups: b.groups, Waiting: waiting, Image: b.controller.Image, NowMs: nowMs, Log: b.log,
	}, nowMs, b.log)
	b.closers = append(b.closers, b.transactions.close)

	b.controller.Subscribe(b.apply)
	if err := b.registration.register(ctx, b.started, b.advertised(), b.clusterID, cryptorand.Reader); err != nil {
		return err
	}
	if err := b.registration.unfence(ctx); err != nil {
		return err
	}
	b.goRun(background, "broker heartbeats", b.registration.run)
	b.goRun(background, "log maintenance", b.replicas.Run)

	handlers.Handlers = api.New(api.Deps{
		NodeID: metadata.BrokerID(b.started.NodeID), Log: b.log, NowMs: nowMs,
		Config:       b.settings.broker.Load,
		TopicConfig:  func(topic string) *config.Topic { return b.settings.topic(topic).api },
		Metrics:      b.metrics,
		Controller:   clusterController{b.controller},
		Features:     metadata.Served(features),
		Replicas:     replicaTable{b.replicas},
		Waiting:      waiting,
		Sessions:     fetchsession.New(b.started.MaxIncrementalFetchSessionCacheSlots, rand.Int32),
		Listeners:    newAdvertiser(b.advertised()),
		Groups:       b.groups,
		Transactions: b.transactions,
		LogLevels:    newLogLevels(b.config.LogLevel),
	})
	b.transactions.handlers.Store(handlers.Handlers)
	b.closers = append(b.closers, func() error {
		waiting.Close()
		return nil
	})
	b.metrics.SetState(metricsState(metadata.BrokerID(b.started.NodeID), b.controller.Image, b.replicas, b.groups))
	b.server.Serve()
	return nil
}

// apply is the one subscriber of the metadata: settings first, as the others read them.
func (b *Broker) apply(d *metadata.Delta) {
	if brokerChanged := b.settings.apply(d); brokerChanged {
		b.server.SetLimits(serverLimits(b.settings.broker.Load()))
	}
	b.replicas.Apply(d)
	b.groups.apply(d)
	b.transactions.leads.apply(d)
	for _, t := range d.TopicsDeleted {
		b.metrics.ForgetTopic(t.Name)
	}
}

// goRun runs a part in the background. A part that ends with an error ends the broker.
func (b *Broker) goRun(ctx context.Context, name string, run func(context.Context) error) {
	b.running.Go(func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			b.fail(fmt.Errorf("%s: %w", name, err))
		}
	})
}

func (b *Broker) fail(err error) {
	b.failure.Do(func() {
		b.log.Error("the broker cannot go on", zap.Error(err))
		b.failure.err = err
		b.ready.Store(false)
		close(b.failure.happened)
	})
}

func (b *Broker) directoryFailed(dir string, err error, online int) {
	b.log.Error("log directory is offline", zap.String("dir", dir), zap.Error(err), zap.Int("online", online))
	if online == 0 {
		b.fail(fmt.Errorf("no log directory is left: %w", err))
	}
}

// Failed is closed when the broker cannot go on: the metadata log or the last log directory has failed. Err then says why.
func (b *Broker) Failed() <-chan struct{} { return b.failure.happened }

// Err is why the broker cannot go on, nil while it can.
func (b *Broker) Err() error {
	select {
	case <-b.failure.happened:
		return b.failure.err
	default:
		return nil
	}
}

// Ready is nil while a produce would succeed, else it says what is missing.
func (b *Broker) Ready() error {
	switch {
	case b.Err() != nil:
		return b.Err()
	case !b.ready.Load():
		if o := b.opening.Load(); o != nil && o.Opened < o.Logs {
			return fmt.Errorf("the broker is starting: %d of %d logs are open, %d unflushed segments were scanned", o.Opened, o.Logs, o.SegmentsScanned)
		}
		return errors.New("the broker is starting or stopping")
	case !b.registration.unfenced.Load():
		return errors.New("the broker is fenced")
	}
	return nil
}

// Stop ends the broker: no new connections, what is in flight is answered, leaderships are handed back, logs are flushed and closed, and the
// directories marked as left cleanly. When ctx ends first, what is in flight is cut off; the rest is still done.
func (b *Broker) Stop(ctx context.Context) error {
	var err error
	b.stopped.Do(func() {
		b.ready.Store(false)
		b.server.Drain()
		b.handlers.Stop()
		err = errors.Join(b.transactions.close(), b.groups.close(), b.server.Shutdown(ctx)) // members that wait for others learn that they must look for another coordinator
		if b.Err() == nil {
			err = errors.Join(err, b.registration.leave(ctx))
		}
		b.stopBackground()
		err = errors.Join(err, b.close())
		b.log.Info("stopped", zap.Bool("cleanly", err == nil))
	})
	return err
}

func (b *Broker) stopBackground() {
	b.cancel()
	b.running.Wait()
}

// close closes what Start has opened, the last first.
func (b *Broker) close() error {
	var err error
	for i := len(b.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, b.closers[i]())
	}
	b.closers = nil
	return err
}

// ClusterID is the cluster's id.
func (b *Broker) ClusterID() string { return b.clusterID }

// Address is where clients reach the first listener, HOST:PORT.
func (b *Broker) Address() string {
	for _, l := range b.started.Listeners {
		if addrs := b.server.Addrs(l.Name); !l.Controller && len(addrs) > 0 {
			_, port, _ := net.SplitHostPort(addrs[0].String())
			host := l.Host
			if l.Wildcard() {
				host = "localhost"
			}
			return net.JoinHostPort(host, port)
		}
	}
	return ""
}

// AdminAddress is where metrics and health are served, HOST:PORT; empty when nowhere.
func (b *Broker) AdminAddress() string {
	if b.admin == nil {
		return ""
	}
	return b.admin.Addr().String()
}

// advertised are the listeners that clients are told of, with the ports that were bound where the configuration leaves them to the system.
func (b *Broker) advertised() []config.Listener {
	var listeners []config.Listener
	for _, l := range b.started.AdvertisedListeners {
		if addrs := b.server.Addrs(l.Name); l.Port == 0 && len(addrs) > 0 {
			if _, port, err := net.SplitHostPort(addrs[0].String()); err == nil {
				l.Port, _ = strconv.Atoi(port)
			}
		}
		listeners = append(listeners, l)
	}
	return listeners
}

// recoveryProgress keeps how far the logs have been opened for Ready, and logs it, a line every second at most.
func (b *Broker) recoveryProgress() func(replica.Opening) {
	var mu sync.Mutex
	last := time.Now()
	return func(o replica.Opening) {
		mu.Lock()
		defer mu.Unlock()
		b.opening.Store(&o)
		if now := time.Now(); now.Sub(last) >= time.Second {
			last = now
			b.log.Info("opening logs", zap.Int("opened", o.Opened), zap.Int("total", o.Logs), zap.Int("unflushed_segments_scanned", o.SegmentsScanned))
		}
	}
}

// announce says in one line what a person wants to know at the start.
func (b *Broker) announce(took time.Duration) {
	data := b.dirs[0].Path()
	if b.config.Ephemeral {
		data = "memory"
	}
	fields := []zap.Field{zap.String("address", b.Address()), zap.String("data", data), zap.String("durability", b.settings.durability(b.config.Ephemeral))}
	if address := b.AdminAddress(); address != "" {
		fields = append(fields, zap.String("admin", "http://"+address))
	}
	b.log.Info("ready", append(fields, zap.String("version", b.config.Version), zap.Duration("after", took.Round(time.Millisecond)))...)
}
