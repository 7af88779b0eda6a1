package metrics

import (
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// State is what is walked at scrape time rather than counted as it happens. The functions may be called by several scrapes at once.
type State struct {
	Partitions func(yield func(Partition) bool) // those with a replica on this broker
	Groups     func(yield func(Group) bool)     // those this broker coordinates
	Lags       func(yield func(Lag) bool)       // committed offsets of those groups, in partitions that this broker leads
	Cleaner    func() Cleaner
}

// Partition is one replica on this broker.
type Partition struct {
	Topic           string
	Partition       int32
	SizeBytes       int64
	LogStartOffset  int64
	LogEndOffset    int64 // exclusive
	HighWatermark   int64 // exclusive
	Leader          bool
	UnderReplicated bool // known to the leader only
}

// Cleaner is how far the compaction of logs is.
type Cleaner struct {
	DirtiestRatio           float64        // 0 to 1
	LastRunMs               int64          // since 1970
	Uncleanable             map[string]int // partitions by log directory
	Logs                    int64          // compactions since the start
	ReadBytes, WrittenBytes int64
	RemovedRecords          int64
}

// Group is one group.
type Group struct {
	Group, State string
	Members      int
}

// Lag is how far a group is behind in one partition.
type Lag struct {
	Group, Topic string
	Partition    int32
	Records      int64
}

// SetState tells where to find State. Without it the metrics of partitions and groups are missing.
func (b *Broker) SetState(s State) { b.state.Store(&s) }

// Describe implements prometheus.Collector.
func (b *Broker) Describe(ch chan<- *prometheus.Desc) {
	for _, description := range descriptions {
		ch <- description
	}
}

// Collect implements prometheus.Collector.
func (b *Broker) Collect(ch chan<- prometheus.Metric) {
	emit := emitter{ch}
	emit.send(buildInfo, 1, b.build.Version, b.build.Revision)
	b.topics.Range(func(name, recorder any) bool {
		t, topic := recorder.(*Topic), name.(string)
		emit.send(topicBytesIn, float64(t.bytesIn.Load()), topic)
		emit.send(topicRecordsIn, float64(t.recordsIn.Load()), topic)
		emit.send(topicBytesOut, float64(t.bytesOut.Load()), topic)
		emit.send(topicProduceFailures, float64(t.produceFailures.Load()), topic)
		emit.send(topicFetchFailures, float64(t.fetchFailures.Load()), topic)
		return true
	})
	b.listeners.Range(func(key, counts any) bool {
		l, name := counts.(*listener), key.(string)
		emit.send(connections, float64(l.open.Load()), name)
		emit.send(connectionsOpened, float64(l.opened.Load()), name)
		emit.send(connectionsRefused, float64(l.refused.Load()), name)
		return true
	})
	b.collectRequests(emit)
	if state := b.state.Load(); state != nil {
		state.collect(emit)
	}
}

func (s *State) collect(emit emitter) {
	if s.Partitions != nil {
		for p := range s.Partitions {
			partition := strconv.Itoa(int(p.Partition))
			emit.send(logSize, float64(p.SizeBytes), p.Topic, partition)
			emit.send(logStartOffset, float64(p.LogStartOffset), p.Topic, partition)
			emit.send(logEndOffset, float64(p.LogEndOffset), p.Topic, partition)
			emit.send(highWatermark, float64(p.HighWatermark), p.Topic, partition)
			emit.send(partitionIsLeader, boolean(p.Leader), p.Topic, partition)
			emit.send(partitionUnderReplicated, boolean(p.UnderReplicated), p.Topic, partition)
		}
	}
	if s.Cleaner != nil {
		c := s.Cleaner()
		emit.send(cleanerDirtiest, c.DirtiestRatio)
		emit.send(cleanerLastRun, float64(c.LastRunMs)/1000)
		for dir, n := range c.Uncleanable {
			emit.send(cleanerUncleanable, float64(n), label(dir))
		}
		emit.send(cleanerLogs, float64(c.Logs))
		emit.send(cleanerRead, float64(c.ReadBytes))
		emit.send(cleanerWritten, float64(c.WrittenBytes))
		emit.send(cleanerRemoved, float64(c.RemovedRecords))
	}
	if s.Groups != nil {
		for g := range s.Groups {
			emit.send(groupMembers, float64(g.Members), label(g.Group), g.State)
		}
	}
	if s.Lags != nil {
		for l := range s.Lags {
			emit.send(groupLag, float64(max(l.Records, 0)), label(l.Group), l.Topic, strconv.Itoa(int(l.Partition)))
		}
	}
}

// label makes a label of a name that clients choose: they need not keep to UTF-8, Prometheus does.
func label(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// emitter sends metrics of the table.
type emitter struct{ ch chan<- prometheus.Metric }

func (e emitter) send(row int, value float64, labels ...string) {
	kind := prometheus.GaugeValue
	if table[row].Kind == Counter {
		kind = prometheus.CounterValue
	}
	e.ch <- prometheus.MustNewConstMetric(descriptions[row], kind, value, labels...)
}
