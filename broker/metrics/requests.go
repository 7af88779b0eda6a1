package metrics

import (
	"math/bits"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/server"
)

// api counts the requests of one API.
type api struct {
	bytes               atomic.Uint64
	local, remote, send atomic.Int64 // nanoseconds
	throttleMs          atomic.Int64
	duration            histogram
	errors              [maxErrorCode + 2]atomic.Uint64 // [code+1]; the last is for codes that are not known
}

// maxErrorCode is above the codes that Kafka has today.
const maxErrorCode = 160

func (b *Broker) api(key int16) *api {
	if key < 0 || int(key) >= len(b.apis) {
		return &b.other
	}
	if a := b.apis[key].Load(); a != nil {
		return a
	}
	b.apis[key].CompareAndSwap(nil, new(api))
	return b.apis[key].Load()
}

// RequestFinished implements server.Observer.
func (b *Broker) RequestFinished(key int16, t server.Timing) {
	a := b.api(key)
	a.bytes.Add(uint64(t.Bytes))
	a.local.Add(int64(t.Local))
	if t.Remote > 0 {
		a.remote.Add(int64(t.Remote))
	}
	a.send.Add(int64(t.Send))
	a.duration.observe(t.Local + t.Remote + t.Send)
}

// Throttled counts throttle time that a client was told.
func (b *Broker) Throttled(key int16, ms int32) {
	if b != nil {
		b.api(key).throttleMs.Add(int64(ms))
	}
}

// Errored counts times error codes in a response; 0 is success.
func (b *Broker) Errored(key, code int16, times int) {
	if b == nil {
		return
	}
	if code < -1 || code > maxErrorCode-1 {
		code = maxErrorCode
	}
	b.api(key).errors[code+1].Add(uint64(times))
}

// A histogram has buckets at powers of two, so that an observation is a bit count and two adds.
type histogram struct {
	buckets  [durationBuckets + 1]atomic.Uint64 // observations above the bound before and up to the own one; the last is without bound
	sumNanos atomic.Int64
}

const (
	durationBuckets   = 21
	firstBucketMicros = 32 // upper bound of the first bucket; the last one's is 32 µs << 20 = 33.6 s
)

func (h *histogram) observe(d time.Duration) {
	micros := uint64(max(d-1, 0) / time.Microsecond) // a bound belongs to its bucket
	h.buckets[min(bits.Len64(micros/firstBucketMicros), durationBuckets)].Add(1)
	h.sumNanos.Add(int64(d))
}

// snapshot returns what a Prometheus histogram wants: cumulative counts by upper bound in seconds.
func (h *histogram) snapshot() (count uint64, sum float64, cumulative map[float64]uint64) {
	cumulative = make(map[float64]uint64, durationBuckets)
	for i := range h.buckets {
		count += h.buckets[i].Load()
		if i < durationBuckets {
			cumulative[float64(uint64(firstBucketMicros)<<i)/1e6] = count
		}
	}
	return count, time.Duration(h.sumNanos.Load()).Seconds(), cumulative
}

func (a *api) collect(name string, emit emitter) {
	count, sum, buckets := a.duration.snapshot()
	emit.send(requests, float64(count), name)
	emit.send(requestBytes, float64(a.bytes.Load()), name)
	emit.ch <- prometheus.MustNewConstHistogram(descriptions[requestDuration], count, sum, buckets, name)
	emit.send(requestPhase, time.Duration(a.local.Load()).Seconds(), name, "local")
	emit.send(requestPhase, time.Duration(a.remote.Load()).Seconds(), name, "remote")
	emit.send(requestPhase, time.Duration(a.send.Load()).Seconds(), name, "send")
	emit.send(requestThrottle, float64(a.throttleMs.Load())/1000, name)
	for i := range a.errors {
		if n := a.errors[i].Load(); n > 0 {
			emit.send(responseErrors, float64(n), name, errorName(int16(i-1)))
		}
	}
}

// errorName is Kafka's name of a code.
func errorName(code int16) string {
	if code == 0 {
		return "NONE"
	}
	if known := kerr.TypedErrorForCode(code); known != nil && (known.Code == code) {
		return known.Message
	}
	if code == maxErrorCode {
		return "other"
	}
	return strconv.Itoa(int(code))
}

func (b *Broker) collectRequests(emit emitter) {
	for key := range b.apis {
		if a := b.apis[key].Load(); a != nil {
			a.collect(kmsg.NameForKey(int16(key)), emit)
		}
	}
	if count, _, _ := b.other.duration.snapshot(); count > 0 {
		b.other.collect("other", emit)
	}
}
