package metrics

import (
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind is how a metric behaves over time.
type Kind string

// The kinds of Prometheus that are used here.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Row describes one metric.
type Row struct {
	Name   string
	Kind   Kind
	Unit   string
	Labels []string
	Help   string
	Kafka  string // the nearest metric of Apache Kafka, by its JMX name; empty where there is none
}

// Indices of table: the code names metrics by these.
const (
	topicBytesIn = iota
	topicRecordsIn
	topicBytesOut
	topicProduceFailures
	topicFetchFailures
	requests
	requestBytes
	requestDuration
	requestPhase
	requestThrottle
	responseErrors
	connections
	connectionsOpened
	connectionsRefused
	logSize
	logStartOffset
	logEndOffset
	highWatermark
	partitionIsLeader
	partitionUnderReplicated
	cleanerDirtiest
	cleanerLastRun
	cleanerUncleanable
	cleanerLogs
	cleanerRead
	cleanerWritten
	cleanerRemoved
	groupLag
	groupMembers
	buildInfo
	rowCount
)

// table is THE list of metrics: what is exported, and docs/METRICS.md, are computed from it.
var table = [rowCount]Row{
	topicBytesIn: {"sluice_topic_bytes_in_total", Counter, "bytes", []string{"topic"},
		"Record batches appended for producers, as stored; replication not counted.", "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec"},
	topicRecordsIn: {"sluice_topic_records_in_total", Counter, "records", []string{"topic"},
		"Records appended for producers; replication not counted.", "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec"},
	topicBytesOut: {"sluice_topic_bytes_out_total", Counter, "bytes", []string{"topic"},
		"Record batches sent to consumers; replication not counted.", "kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec"},
	topicProduceFailures: {"sluice_topic_produce_failures_total", Counter, "partitions", []string{"topic"},
		"Partitions of Produce requests that were answered with an error.", "kafka.server:type=BrokerTopicMetrics,name=FailedProduceRequestsPerSec"},
	topicFetchFailures: {"sluice_topic_fetch_failures_total", Counter, "partitions", []string{"topic"},
		"Partitions of Fetch requests that were answered with an error.", "kafka.server:type=BrokerTopicMetrics,name=FailedFetchRequestsPerSec"},

	requests: {"sluice_requests_total", Counter, "requests", []string{"api"},
		"Requests that are over: answered, without an answer, or cut off with their connection.", "kafka.network:type=RequestMetrics,name=RequestsPerSec"},
	requestBytes: {"sluice_request_bytes_total", Counter, "bytes", []string{"api"},
		"Request frames, lengths included.", "kafka.network:type=RequestMetrics,name=RequestBytes"},
	requestDuration: {"sluice_request_duration_seconds", Histogram, "seconds", []string{"api"},
		"From the last byte of a request to the last byte of its answer.", "kafka.network:type=RequestMetrics,name=TotalTimeMs"},
	requestPhase: {"sluice_request_phase_seconds_total", Counter, "seconds", []string{"api", "phase"},
		"Time by phase: local in the handler, remote until replication, data or other members let the answer go, send until it is written, waiting for earlier answers included.",
		"kafka.network:type=RequestMetrics,name=LocalTimeMs, RemoteTimeMs, ResponseSendTimeMs"},
	requestThrottle: {"sluice_request_throttle_seconds_total", Counter, "seconds", []string{"api"},
		"Throttle time told to clients.", "kafka.network:type=RequestMetrics,name=ThrottleTimeMs"},
	responseErrors: {"sluice_response_errors_total", Counter, "codes", []string{"api", "error"},
		"Error codes in responses, one for each place that has a code; NONE is success.", "kafka.network:type=RequestMetrics,name=ErrorsPerSec"},

	connections: {"sluice_connections", Gauge, "connections", []string{"listener"},
		"Open client connections.", "kafka.server:type=socket-server-metrics,name=connection-count"},
	connectionsOpened: {"sluice_connections_opened_total", Counter, "connections", []string{"listener"},
		"Client connections accepted.", "kafka.server:type=socket-server-metrics,name=connection-creation-total"},
	connectionsRefused: {"sluice_connections_refused_total", Counter, "connections", []string{"listener"},
		"Client connections closed at once because of max.connections.per.ip.", ""},

	logSize: {"sluice_log_size_bytes", Gauge, "bytes", []string{"topic", "partition"},
		"Size of the partition's log segments on this broker.", "kafka.log:type=Log,name=Size"},
	logStartOffset: {"sluice_log_start_offset", Gauge, "offset", []string{"topic", "partition"},
		"First offset that can be read.", "kafka.log:type=Log,name=LogStartOffset"},
	logEndOffset: {"sluice_log_end_offset", Gauge, "offset", []string{"topic", "partition"},
		"Offset that the next record will get.", "kafka.log:type=Log,name=LogEndOffset"},
	highWatermark: {"sluice_high_watermark", Gauge, "offset", []string{"topic", "partition"},
		"First offset that is not committed.", ""},
	partitionIsLeader: {"sluice_partition_leader", Gauge, "boolean", []string{"topic", "partition"},
		"1 where this broker leads the partition, 0 where it follows. The sum is the leader count.", "kafka.server:type=ReplicaManager,name=LeaderCount"},
	partitionUnderReplicated: {"sluice_partition_under_replicated", Gauge, "boolean", []string{"topic", "partition"},
		"1 where this broker leads the partition and its in-sync replicas are fewer than its replicas.", "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions"},

	cleanerDirtiest: {"sluice_cleaner_dirtiest_ratio", Gauge, "ratio", nil,
		"Of all compacted logs, the largest part of bytes that wait for compaction, 0 to 1.", "kafka.log:type=LogCleanerManager,name=max-dirty-percent"},
	cleanerLastRun: {"sluice_cleaner_last_run_timestamp_seconds", Gauge, "seconds", nil,
		"When it was last looked for a log to compact, in seconds since 1970; 0 before the first time.", "kafka.log:type=LogCleanerManager,name=time-since-last-run-ms"},
	cleanerUncleanable: {"sluice_cleaner_uncleanable_partitions", Gauge, "partitions", []string{"log_dir"},
		"Partitions that are not compacted any more because of what is in them.", "kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count"},
	cleanerLogs: {"sluice_cleaner_compactions_total", Counter, "logs", nil,
		"Logs that were compacted; each time counts.", ""},
	cleanerRead: {"sluice_cleaner_read_bytes_total", Counter, "bytes", nil,
		"Bytes of segments that were read for compaction, twice where keys were learned too.", ""},
	cleanerWritten: {"sluice_cleaner_written_bytes_total", Counter, "bytes", nil,
		"Bytes of segments that compaction has written.", "kafka.log:type=LogCleaner,name=cleaner-recopy-percent"},
	cleanerRemoved: {"sluice_cleaner_removed_records_total", Counter, "records", nil,
		"Records that compaction has left out.", ""},

	groupLag: {"sluice_group_lag_records", Gauge, "records", []string{"group", "topic", "partition"},
		"High watermark minus committed offset, of groups that this broker coordinates and partitions that it leads; 0 when the commit is ahead.", ""},
	groupMembers: {"sluice_group_members", Gauge, "members", []string{"group", "state"},
		"Members of a group that this broker coordinates, with the group's state.", "kafka.server:type=group-coordinator-metrics,name=group-count"},

	buildInfo: {"sluice_build_info", Gauge, "constant", []string{"version", "revision"},
		"Always 1; the labels say what runs.", "kafka.server:type=app-info"},
}

// descriptions are table in the form of the Prometheus client.
var descriptions = describeTable()

func describeTable() (out [rowCount]*prometheus.Desc) {
	for i, row := range table {
		out[i] = prometheus.NewDesc(row.Name, row.Help, row.Labels, nil)
	}
	return out
}

// WriteDoc writes docs/METRICS.md.
func WriteDoc(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Metrics\n\n")
	b.WriteString("Generated from `broker/metrics/table.go`; do not edit. The admin port serves them at `/metrics` in Prometheus' text format.\n")
	b.WriteString("Beside these there are the usual `go_*` and `process_*` metrics.\n")
	for _, row := range table {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s, in %s", row.Name, row.Kind, row.Unit)
		if len(row.Labels) > 0 {
			fmt.Fprintf(&b, ", by `%s`", strings.Join(row.Labels, "`, `"))
		}
		fmt.Fprintf(&b, ". %s\n", row.Help)
		if row.Kafka != "" {
			fmt.Fprintf(&b, "\nIn Apache Kafka: `%s`.\n", row.Kafka)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
