package api

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/metadata"
)

type edit struct {
	op          kmsg.IncrementalAlterConfigOp
	name, value string
}

const (
	set      = kmsg.IncrementalAlterConfigOpSet
	remove   = kmsg.IncrementalAlterConfigOpDelete
	add      = kmsg.IncrementalAlterConfigOpAppend
	subtract = kmsg.IncrementalAlterConfigOpSubtract
)

func altered(kind int8, name string, edits ...edit) kmsg.IncrementalAlterConfigsRequestResource {
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceType(kind), name
	for _, e := range edits {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op = e.name, e.op
		if e.op != remove && e.value != "null" {
			c.Value = &e.value
		}
		r.Configs = append(r.Configs, c)
	}
	return r
}

func (w wire) alter(version int16, resources ...kmsg.IncrementalAlterConfigsRequestResource) []string {
	w.t.Helper()
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Version, request.Resources = version, resources
	var got []string
	for _, r := range ask[*kmsg.IncrementalAlterConfigsResponse](w, request).Resources {
		got = append(got, fmt.Sprint(int8(r.ResourceType), " ", r.ResourceName, " ", r.ErrorCode, " ", nullable(r.ErrorMessage)))
	}
	return got
}

// V26: a bad alter is answered with INVALID_CONFIG and what is wrong, the connection stays open, and nothing has changed.
func TestV26_BadAlters(t *testing.T) {
	h := adminHandlers(t, nil)
	w := serveOn(t, h, "PLAINTEXT")()
	w.mustCreate(topicRequest("t", 1, 1, "retention.ms", "5"))
	for version := int16(0); version <= 1; version++ {
		for _, c := range []struct {
			edits []edit
			want  string
		}{
			{[]edit{{set, "cleanup.policy", "compactt"}, {set, "retention.ms", "6"}}, "2 t 40 Invalid value compactt for configuration cleanup.policy: String must be one of: compact, delete"},
			{[]edit{{set, "compression.type", "SNAPPY"}}, "2 t 40 Invalid value SNAPPY for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"},
			{[]edit{{set, "no.such.key", "1"}}, "2 t 40 Unknown topic config name: no.such.key"},
			{[]edit{{add, "retention.ms", "1"}}, "2 t 40 Can't APPEND to key retention.ms because its type is not LIST."},
			{[]edit{{set, "retention.ms", "null"}, {set, "segment.ms", "null"}}, "2 t 42 Null value not supported for : retention.ms, segment.ms"},
			{[]edit{{set, "retention.ms", "1"}, {remove, "retention.ms", ""}}, "2 t 42 Error due to duplicate config keys"},
		} {
			if diff := cmp.Diff([]string{c.want}, w.alter(version, altered(2, "t", c.edits...))); diff != "" {
				t.Errorf("version %d: %s", version, diff)
			}
		}
	}
	if got := h.Controller.Image().Configs(metadata.ConfigResource{Type: metadata.TopicResource, Name: "t"}); !maps.Equal(got, map[string]string{"retention.ms": "5"}) {
		t.Errorf("changed to %v", got)
	}
}

// V08: a new limit of a topic holds at once.
func TestV08_LimitChangesWithoutRestart(t *testing.T) {
	h := adminHandlers(t, nil)
	w := serveOn(t, h, "PLAINTEXT")()
	w.mustCreate(topicRequest("t", 1, 1, "max.message.bytes", "10000"))
	if got := h.TopicConfig("t").MaxMessageBytes; got != 10000 {
		t.Errorf("created with %d", got)
	}
	w.alter(1, altered(2, "t", edit{set, "max.message.bytes", "20000"}))
	if got := h.TopicConfig("t").MaxMessageBytes; got != 20000 {
		t.Errorf("raised to %d", got)
	}
	w.alter(1, altered(2, "t", edit{remove, "max.message.bytes", ""}))
	if got := h.TopicConfig("t").MaxMessageBytes; got != 1048588 {
		t.Errorf("reset to %d", got)
	}
	w.alter(1, altered(4, "", edit{set, "message.max.bytes", "30000"}))
	if got := h.TopicConfig("t").MaxMessageBytes; got != 30000 {
		t.Errorf("the cluster's default is %d", got)
	}
}

// Lists can be appended to and subtracted from, of topics and of brokers.
func TestIncrementalAlterConfigs_Lists(t *testing.T) {
	h := adminHandlers(t, nil)
	w := serveOn(t, h, "PLAINTEXT")()
	w.mustCreate(topicRequest("t", 1, 1))
	ok := func(got []string) {
		t.Helper()
		for _, r := range got {
			if !cmp.Equal(r[len(r)-4:], `0 \N`) {
				t.Error(r)
			}
		}
	}
	ok(w.alter(1, altered(2, "t", edit{add, "cleanup.policy", "compact"}), altered(4, "1", edit{add, "log.cleanup.policy", "compact"})))
	if c := h.TopicConfig("t"); !c.CleanupPolicyCompact || !c.CleanupPolicyDelete {
		t.Errorf("%+v", c)
	}
	ok(w.alter(1, altered(2, "t", edit{subtract, "cleanup.policy", "delete"})))
	if c := h.TopicConfig("t"); !c.CleanupPolicyCompact || c.CleanupPolicyDelete {
		t.Errorf("%+v", c)
	}
}

// What a broker refuses is INVALID_REQUEST in Kafka's words; each resource is answered, in order, and only good ones change.
func TestIncrementalAlterConfigs_Brokers(t *testing.T) {
	h := adminHandlers(t, nil)
	w := serveOn(t, h, "PLAINTEXT")()
	w.mustCreate(topicRequest("t", 1, 1))
	got := w.alter(1,
		altered(4, "1", edit{set, "num.partitions", "3"}),
		altered(2, "t", edit{set, "retention.ms", "7"}),
		altered(4, "2", edit{set, "log.retention.ms", "3"}),
		altered(4, "x", edit{set, "log.retention.ms", "3"}),
		altered(4, "", edit{set, "log.retention.ms", "abc"}),
		altered(2, "none", edit{set, "retention.ms", "7"}),
		altered(32, "g", edit{set, "consumer.session.timeout.ms", "50000"}),
		altered(16, "m", edit{set, "interval.ms", "1"}),
		altered(8, "1", edit{set, "kafka.server", "DEBUG"}),
		altered(99, "y"),
		altered(32, "twice", edit{set, "consumer.session.timeout.ms", "50000"}),
		altered(32, "twice", edit{set, "consumer.session.timeout.ms", "50000"}),
	)
	want := []string{
		"4 1 42 Cannot update these configs dynamically: [num.partitions]",
		`2 t 0 \N`,
		"4 2 42 Unexpected broker id, expected 1, but received 2",
		"4 x 42 Node id must be an integer, but it is: x",
		"4  42 Invalid value abc for configuration log.retention.ms: Not a number of type LONG",
		"2 none 3 The topic 'none' does not exist.",
		`32 g 0 \N`,
		"16 m 42 Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
		"8 1 40 Logger kafka.server does not exist!",
		"99 y 42 Unknown resource type 99",
		"32 twice 42 Each resource must appear at most once.",
		"32 twice 42 Each resource must appear at most once.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if c := h.TopicConfig("t"); c.RetentionMs != 7 {
		t.Errorf("%+v", c)
	}
	for _, c := range []struct {
		e    edit
		want string
	}{
		{edit{add, "no.such.key", "x"}, "4 1 40 Unknown config name: no.such.key"},
		{edit{add, "num.io.threads", "x"}, "4 1 40 Config value append is not allowed for config key: num.io.threads"},
		{edit{9, "num.io.threads", "x"}, "4 1 42 Unknown operations type 9"},
	} {
		if diff := cmp.Diff([]string{c.want}, w.alter(1, altered(4, "1", c.e))); diff != "" {
			t.Error(diff)
		}
	}
	list := kmsg.NewPtrListConfigResourcesRequest()
	list.Version = 1
	var names []string
	for _, r := range ask[*kmsg.ListConfigResourcesResponse](w, list).ConfigResources {
		names = append(names, fmt.Sprint(r.Type, " ", r.Name))
	}
	if diff := cmp.Diff([]string{"32 g", "8 1", "4 1", "2 t"}, names); diff != "" {
		t.Error(diff)
	}
	list.ResourceTypes = []int8{2, 99}
	if got := ask[*kmsg.ListConfigResourcesResponse](w, list); got.ErrorCode != 35 || got.ConfigResources != nil {
		t.Errorf("%+v", got)
	}
}

// logLevels is one logger, as a program has it.
type logLevels map[string]string

func (l logLevels) Levels() map[string]string { return l }
func (l logLevels) Set(logger, level string)  { l[logger] = level }

// Log levels are seen and set as Kafka's are.
func TestIncrementalAlterConfigs_LogLevels(t *testing.T) {
	h := adminHandlers(t, nil)
	levels := logLevels{"root": "INFO"}
	h.LogLevels = levels
	w := serveOn(t, h, "PLAINTEXT")()
	for _, c := range []struct {
		e    edit
		want string
	}{
		{edit{set, "root", "DEBUG"}, `8 1 0 \N`},
		{edit{set, "root", "LOUD"}, "8 1 40 Cannot set the log level of root to LOUD as it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"},
		{edit{remove, "root", ""}, "8 1 42 Removing the log level of the root logger is not allowed"},
		{edit{add, "root", "INFO"}, "8 1 42 APPEND operation is not allowed for the BROKER_LOGGER resource"},
	} {
		if diff := cmp.Diff([]string{c.want}, w.alter(1, altered(8, "1", c.e))); diff != "" {
			t.Error(diff)
		}
	}
	got := ask[*kmsg.DescribeConfigsResponse](w, describeConfigs(4, resource(8, "1"))).Resources[0].Configs
	if len(got) != 1 || got[0].Name != "root" || *got[0].Value != "DEBUG" || got[0].Source != 6 || got[0].ReadOnly {
		t.Errorf("%+v", got)
	}
}

// AlterConfigs replaces everything, in every version.
func TestAlterConfigs_Replaces(t *testing.T) {
	h := adminHandlers(t, nil)
	w := serveOn(t, h, "PLAINTEXT")()
	w.mustCreate(topicRequest("t", 1, 1, "retention.ms", "5", "segment.ms", "6"))
	for version := int16(0); version <= 2; version++ {
		request := kmsg.NewPtrAlterConfigsRequest()
		request.Version = version
		for _, r := range []struct {
			kind       int8
			name       string
			key, value string
		}{{2, "t", "flush.ms", fmt.Sprint(version)}, {2, "none", "flush.ms", "1"}, {4, "1", "log.retention.ms", fmt.Sprint(version + 1)}, {4, "", "num.partitions", "2"}, {8, "1", "root", "INFO"}} {
			in := kmsg.NewAlterConfigsRequestResource()
			in.ResourceType, in.ResourceName = kmsg.ConfigResourceType(r.kind), r.name
			c := kmsg.NewAlterConfigsRequestResourceConfig()
			c.Name, c.Value = r.key, &r.value
			in.Configs = append(in.Configs, c)
			request.Resources = append(request.Resources, in)
		}
		var got []string
		for _, r := range ask[*kmsg.AlterConfigsResponse](w, request).Resources {
			got = append(got, fmt.Sprint(int8(r.ResourceType), " ", r.ResourceName, " ", r.ErrorCode, " ", nullable(r.ErrorMessage)))
		}
		want := []string{`2 t 0 \N`, "2 none 3 The topic 'none' does not exist.", `4 1 0 \N`, "4  42 Cannot update these configs dynamically: [num.partitions]", "8 1 42 Unknown resource type 8"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("version %d: %s", version, diff)
		}
		now := h.Controller.Image().Configs(metadata.ConfigResource{Type: metadata.TopicResource, Name: "t"})
		if !maps.Equal(now, map[string]string{"flush.ms": fmt.Sprint(version)}) || h.TopicConfig("t").RetentionMs != int64(version+1) {
			t.Errorf("version %d: %v %d", version, now, h.TopicConfig("t").RetentionMs)
		}
	}
}
