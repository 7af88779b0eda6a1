// Package metrics names every metric of the broker in one table, with unit and help, and hands out recorders whose hot paths cost about
// as much as an atomic add. It hears the server as a server.Observer.
package metrics

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/server"
)

// Broker holds the metrics of one broker. A nil *Broker records nothing.
type Broker struct {
	registry  *prometheus.Registry
	topics    sync.Map // name to *Topic
	listeners sync.Map // name to *listener
	apis      [kmsg.MaxKey + 1]atomic.Pointer[api]
	other     api // keys beyond those known
	state     atomic.Pointer[State]
	build     Build
}

// Build says what runs.
type Build struct{ Version, Revision string }

// New makes the metrics of one broker, with a registry of their own.
func New(build Build) *Broker {
	b := &Broker{registry: prometheus.NewRegistry(), build: build}
	b.registry.MustRegister(b, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return b
}

// Handler serves the metrics over HTTP.
func (b *Broker) Handler() http.Handler {
	return promhttp.HandlerFor(b.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Gatherer is the registry, for programs that embed a broker and export metrics of their own.
func (b *Broker) Gatherer() prometheus.Gatherer { return b.registry }

// Topic returns the recorder of one topic. Callers on hot paths keep it; asking again costs a map look-up. A nil *Topic records nothing.
func (b *Broker) Topic(name string) *Topic {
	if b == nil {
		return nil
	}
	if t, ok := b.topics.Load(name); ok {
		return t.(*Topic)
	}
	t, _ := b.topics.LoadOrStore(name, new(Topic))
	return t.(*Topic)
}

// ForgetTopic ends the series of a deleted topic.
func (b *Broker) ForgetTopic(name string) {
	if b != nil {
		b.topics.Delete(name)
	}
}

// Topic counts the traffic of one topic.
type Topic struct {
	bytesIn, recordsIn, bytesOut, produceFailures, fetchFailures atomic.Uint64
}

// Produced counts records appended for clients, and their batch bytes as stored.
func (t *Topic) Produced(records, bytes int) {
	if t != nil {
		t.recordsIn.Add(uint64(records))
		t.bytesIn.Add(uint64(bytes))
	}
}

// Fetched counts batch bytes sent to consumers.
func (t *Topic) Fetched(bytes int64) {
	if t != nil {
		t.bytesOut.Add(uint64(bytes))
	}
}

// ProduceFailed counts one partition's batch that was refused.
func (t *Topic) ProduceFailed() {
	if t != nil {
		t.produceFailures.Add(1)
	}
}

// FetchFailed counts one partition whose fetch was answered with an error.
func (t *Topic) FetchFailed() {
	if t != nil {
		t.fetchFailures.Add(1)
	}
}

type listener struct {
	open, opened, refused atomic.Int64
}

func (b *Broker) listener(name string) *listener {
	if l, ok := b.listeners.Load(name); ok {
		return l.(*listener)
	}
	l, _ := b.listeners.LoadOrStore(name, new(listener))
	return l.(*listener)
}

// ConnectionOpened implements server.Observer.
func (b *Broker) ConnectionOpened(name string) {
	l := b.listener(name)
	l.open.Add(1)
	l.opened.Add(1)
}

// ConnectionClosed implements server.Observer.
func (b *Broker) ConnectionClosed(name string) { b.listener(name).open.Add(-1) }

// ConnectionRefused implements server.Observer.
func (b *Broker) ConnectionRefused(name string) { b.listener(name).refused.Add(1) }

var _ server.Observer = (*Broker)(nil)
