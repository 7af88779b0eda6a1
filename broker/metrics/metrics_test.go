package metrics

import (
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/server"
)

// populated is a broker with something in each metric.
func populated() *Broker {
	b := New(Build{Version: "1.2.3", Revision: "abc"})
	b.ConnectionOpened("PLAINTEXT")
	b.ConnectionOpened("PLAINTEXT")
	b.ConnectionClosed("PLAINTEXT")
	b.ConnectionRefused("PLAINTEXT")
	topic := b.Topic("orders")
	topic.Produced(10, 1000)
	topic.Produced(1, 100)
	topic.Fetched(500)
	topic.ProduceFailed()
	topic.FetchFailed()
	b.RequestFinished(int16(kmsg.Fetch), server.Timing{Local: time.Millisecond, Remote: time.Second, Send: 2 * time.Millisecond, Bytes: 64})
	b.RequestFinished(int16(kmsg.Fetch), server.Timing{Local: 32 * time.Microsecond, Bytes: 36})
	b.Throttled(int16(kmsg.Fetch), 1500)
	b.Errored(int16(kmsg.Fetch), 0, 2)
	b.Errored(int16(kmsg.Fetch), 3, 1)
	b.Errored(int16(kmsg.Fetch), -1, 1)
	b.Errored(int16(kmsg.Fetch), 30000, 1)
	b.SetState(State{
		Partitions: func(yield func(Partition) bool) {
			yield(Partition{Topic: "orders", Partition: 0, SizeBytes: 1100, LogStartOffset: 2, LogEndOffset: 11, HighWatermark: 10, Leader: true})
		},
		Groups: func(yield func(Group) bool) { yield(Group{Group: "billing\xff", State: "Stable", Members: 3}) },
		Cleaner: func() Cleaner {
			return Cleaner{DirtiestRatio: 0.25, LastRunMs: 1500, Uncleanable: map[string]int{"/d1": 1}, Logs: 2, ReadBytes: 30, WrittenBytes: 10, RemovedRecords: 4}
		},
		Lags: func(yield func(Lag) bool) {
			yield(Lag{Group: "billing\xff", Topic: "orders", Partition: 0, Records: -1})
		},
	})
	return b
}

// Counts come out under the names, labels and units of the table.
func TestBroker_Exports(t *testing.T) {
	want := `
# HELP sluice_topic_bytes_in_total Record batches appended for producers, as stored; replication not counted.
# TYPE sluice_topic_bytes_in_total counter
sluice_topic_bytes_in_total{topic="orders"} 1100
# HELP sluice_connections Open client connections.
# TYPE sluice_connections gauge
sluice_connections{listener="PLAINTEXT"} 1
# HELP sluice_request_phase_seconds_total Time by phase: local in the handler, remote until replication, data or other members let the answer go, send until it is written, waiting for earlier answers included.
# TYPE sluice_request_phase_seconds_total counter
sluice_request_phase_seconds_total{api="Fetch",phase="local"} 0.001032
sluice_request_phase_seconds_total{api="Fetch",phase="remote"} 1
sluice_request_phase_seconds_total{api="Fetch",phase="send"} 0.002
# HELP sluice_response_errors_total Error codes in responses, one for each place that has a code; NONE is success.
# TYPE sluice_response_errors_total counter
sluice_response_errors_total{api="Fetch",error="NONE"} 2
sluice_response_errors_total{api="Fetch",error="UNKNOWN_SERVER_ERROR"} 1
sluice_response_errors_total{api="Fetch",error="UNKNOWN_TOPIC_OR_PARTITION"} 1
sluice_response_errors_total{api="Fetch",error="other"} 1
# HELP sluice_group_lag_records High watermark minus committed offset, of groups that this broker coordinates and partitions that it leads; 0 when the commit is ahead.
# TYPE sluice_group_lag_records gauge
sluice_group_lag_records{group="\"billing\\xff\"",partition="0",topic="orders"} 0
# HELP sluice_cleaner_dirtiest_ratio Of all compacted logs, the largest part of bytes that wait for compaction, 0 to 1.
# TYPE sluice_cleaner_dirtiest_ratio gauge
sluice_cleaner_dirtiest_ratio 0.25
# HELP sluice_cleaner_uncleanable_partitions Partitions that are not compacted any more because of what is in them.
# TYPE sluice_cleaner_uncleanable_partitions gauge
sluice_cleaner_uncleanable_partitions{log_dir="/d1"} 1
`
	if err := testutil.GatherAndCompare(populated().Gatherer(), strings.NewReader(want), "sluice_topic_bytes_in_total", "sluice_connections",
		"sluice_request_phase_seconds_total", "sluice_response_errors_total", "sluice_group_lag_records",
		"sluice_cleaner_dirtiest_ratio", "sluice_cleaner_uncleanable_partitions"); err != nil {
		t.Error(err)
	}
}

// Every row of the table is exported, under a name and help that Prometheus' own checks accept.
func TestTable_IsExportedWhole(t *testing.T) {
	b := populated()
	families, err := b.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]bool{}
	for _, family := range families {
		exported[family.GetName()] = true
	}
	for _, row := range table {
		if !exported[row.Name] {
			t.Errorf("%s is in the table and not exported", row.Name)
		}
	}
	problems, err := testutil.CollectAndLint(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// A duration is counted in the bucket whose bound is the next one up, the bound included.
func TestHistogram_Buckets(t *testing.T) {
	for _, test := range []struct {
		d      time.Duration
		bucket int
	}{
		{0, 0}, {time.Nanosecond, 0}, {32 * time.Microsecond, 0}, {32*time.Microsecond + 1, 1}, {64 * time.Microsecond, 1},
		{64*time.Microsecond + 1, 2}, {32 * time.Microsecond << 20, 20}, {32*time.Microsecond<<20 + 1, durationBuckets}, {time.Hour, durationBuckets},
	} {
		var h histogram
		h.observe(test.d)
		if h.buckets[test.bucket].Load() != 1 {
			t.Errorf("%v is not in bucket %d", test.d, test.bucket)
		}
	}
}

// A deleted topic has no series any more, and a nil broker can be asked to record.
func TestBroker_ForgetTopicAndNil(t *testing.T) {
	b := populated()
	b.ForgetTopic("orders")
	if n, err := testutil.GatherAndCount(b.Gatherer(), "sluice_topic_bytes_in_total"); err != nil || n != 0 {
		t.Errorf("%d series, %v", n, err)
	}
	var none *Broker
	none.Topic("x").Produced(1, 1)
	none.ForgetTopic("x")
	none.Errored(0, 0, 1)
	none.Throttled(0, 1)
}

// The admin port's handler serves text.
func TestBroker_Handler(t *testing.T) {
	recorder := httptest.NewRecorder()
	populated().Handler().ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	body, _ := io.ReadAll(recorder.Body)
	if recorder.Code != 200 || !strings.Contains(string(body), `sluice_build_info{revision="abc",version="1.2.3"} 1`) {
		t.Errorf("status %d: %.200s", recorder.Code, body)
	}
}

// docs/METRICS.md is what the table generates.
func TestDoc_IsFresh(t *testing.T) {
	const name = "../../docs/METRICS.md"
	var b strings.Builder
	if err := WriteDoc(&b); err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(name)
	if err != nil || string(have) != b.String() {
		t.Errorf("%s is stale (%v): run make docs", name, err)
	}
}

func BenchmarkRequestFinished(b *testing.B) {
	m := New(Build{})
	timing := server.Timing{Local: time.Millisecond, Send: time.Microsecond, Bytes: 100}
	for b.Loop() {
		m.RequestFinished(1, timing)
	}
}

func BenchmarkTopicProduced(b *testing.B) {
	topic := New(Build{}).Topic("orders")
	for b.Loop() {
		topic.Produced(10, 1000)
	}
}

func BenchmarkScrape(b *testing.B) {
	m := populated()
	for b.Loop() {
		if _, err := m.Gatherer().Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
