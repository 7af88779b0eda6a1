package config

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// --set wins over the environment, the environment over the file, the file over the profile; and a setting wins as a whole, whichever
// of its keys is used.
func TestLoad_Precedence(t *testing.T) {
	key := "num.partitions"
	all := Sources{
		Profile:   with(DevProfile(), key, "1"),
		File:      map[string]string{key: "2"},
		Env:       map[string]string{key: "3"},
		Overrides: map[string]string{key: "4"},
	}
	for want := int32(4); want >= 1; want-- {
		b, _, err := Load(all)
		if err != nil {
			t.Fatal(err)
		}
		if b.NumPartitions != want {
			t.Errorf("num.partitions is %d, want %d", b.NumPartitions, want)
		}
		delete([]map[string]string{all.Profile, all.File, all.Env, all.Overrides}[want-1], key)
	}
	b, _, err := Load(Sources{Profile: DevProfile(), File: map[string]string{"log.retention.ms": "5", "log.dirs": "/a,/b", "broker.id": "3", "node.id": "3"},
		Overrides: map[string]string{"log.retention.hours": "1", "log.dir": "/c", "node.id": "4"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Topic(nil).RetentionMs; got != hourMs {
		t.Errorf("retention is %d ms, want the hour of --set", got)
	}
	if diff := cmp.Diff([]string{"/c"}, b.LogDirs); diff != "" {
		t.Error(diff)
	}
	if b.NodeID != 4 {
		t.Errorf("node id %d, want 4", b.NodeID)
	}
}

func with(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	m[key] = value
	return m
}

// Within one source the finest unit counts, as in Kafka.
func TestLoad_Units(t *testing.T) {
	for _, c := range []struct {
		settings                          map[string]string
		retention, segment, jitter, flush int64
	}{
		{nil, 168 * hourMs, 168 * hourMs, 0, 1<<63 - 1},
		{map[string]string{"log.retention.hours": "2", "log.roll.hours": "3", "log.roll.jitter.hours": "1", "log.flush.scheduler.interval.ms": "9"}, 2 * hourMs, 3 * hourMs, hourMs, 9},
		{map[string]string{"log.retention.hours": "2", "log.retention.minutes": "5"}, 5 * minuteMs, 168 * hourMs, 0, 1<<63 - 1},
		{map[string]string{"log.retention.minutes": "5", "log.retention.ms": "6", "log.roll.ms": "7", "log.roll.hours": "8", "log.flush.interval.ms": "4", "log.flush.scheduler.interval.ms": "9"}, 6, 7, 0, 4},
		{map[string]string{"log.retention.hours": "-7"}, -1, 168 * hourMs, 0, 1<<63 - 1},
	} {
		topic := load(t, c.settings).Topic(nil)
		got := []int64{topic.RetentionMs, topic.SegmentMs, topic.SegmentJitterMs, topic.FlushMs}
		if diff := cmp.Diff([]int64{c.retention, c.segment, c.jitter, c.flush}, got); diff != "" {
			t.Errorf("%v: %s", c.settings, diff)
		}
	}
}

// What is wrong is said with key, value, place and what would be right.
func TestLoad_Refuses(t *testing.T) {
	for _, c := range []struct {
		settings map[string]string
		want     string
	}{
		{map[string]string{"num.partitions": "many"}, "num.partitions=many (from the properties file): Not a number of type INT; accepted: INT [1,...]"},
		{map[string]string{"num.partitions": "0"}, "num.partitions=0 (from the properties file): Value must be at least 1; accepted: INT [1,...]"},
		{map[string]string{"compression.type": "SNAPPY"}, "compression.type=SNAPPY (from the properties file): String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer; accepted: STRING [uncompressed, zstd, lz4, snappy, gzip, producer]"},
		{map[string]string{"delete.topic.enable": "yes"}, "delete.topic.enable=yes (from the properties file): Expected value to be either true or false"},
		{map[string]string{"log.cleanup.policy": "compactt"}, "String must be one of: compact, delete"},
		{map[string]string{"log.dirs": ""}, "log.dirs (from the properties file): Configuration 'log.dirs' must not be empty. Valid values include: any non-empty value"},
		{map[string]string{"log.dirs": "/a,,/b"}, "Configuration 'log.dirs' values must not be empty."},
		{map[string]string{"ssl.keystore.password": "s3cret", "listeners": "nonsense"}, `listeners=nonsense (from the properties file): "nonsense" is not of the form NAME://HOST:PORT`},
		{map[string]string{"node.id": "-1"}, "node.id=-1 (from the properties file): Value must be at least 0"},
		{map[string]string{"node.id": "1", "broker.id": "2"}, "broker.id=2 (from the properties file): must be the same as node.id (1)"},
		{map[string]string{"log.retention.ms": "0"}, "log.retention.ms=0 (from the properties file): must be at least 1, or -1 for no limit"},
		{map[string]string{"queued.max.request.bytes": "5"}, "must not be below socket.request.max.bytes (104857600)"},
		{map[string]string{"max.connections.per.ip": "0"}, "may be 0 only when max.connections.per.ip.overrides"},
		{map[string]string{"max.connections.per.ip.overrides": "host"}, `"host" is not of the form ADDRESS:LIMIT`},
		{map[string]string{"connections.max.idle.ms": "50"}, "must be below connections.max.idle.ms (50)"},
		{map[string]string{"replica.fetch.wait.max.ms": "40000", "replica.socket.timeout.ms": "50000"}, "must not be above replica.lag.time.max.ms (30000)"},
		{map[string]string{"cordoned.log.dirs": "/x"}, "/x is not among log.dirs"},
		{map[string]string{"group.min.session.timeout.ms": "2000000"}, "must not be above group.max.session.timeout.ms (1800000)"},
		{map[string]string{"group.consumer.heartbeat.interval.ms": "1"}, "must lie between group.consumer.min.heartbeat.interval.ms (5000)"},
		{map[string]string{"controller.quorum.voters": "1@h"}, "Failed to parse host name from entry 1@h"},
		{map[string]string{"controller.quorum.voters": "2@h:9093", "controller.listener.names": "PLAINTEXT"}, "must name this node (1)"},
		{map[string]string{"process.roles": "broker"}, "controller.quorum.bootstrap.servers: must be set"},
		{map[string]string{"process.roles": "broker,broker"}, "controller.quorum.bootstrap.servers: must be set"}, // a double counts once
		{map[string]string{"listener.name.external.connections.max.reauth.ms": "x"}, "listener.name.external.connections.max.reauth.ms=x (from the properties file): Not a number of type LONG"},
	} {
		_, _, err := Load(Sources{Profile: DevProfile(), File: c.settings})
		var keyError *KeyError
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &keyError) {
			t.Errorf("%v:\n got %v\nwant %s", c.settings, err, c.want)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("a password in an error: %v", err)
		}
	}
	if _, _, err := Load(Sources{}); err == nil || !strings.Contains(err.Error(), "node.id: must be set") || !strings.Contains(err.Error(), "process.roles: must be set") {
		t.Errorf("nothing set: %v", err)
	}
}

// An unknown key is an error where somebody has just typed it, and one warning where files carry keys of plugins.
func TestLoad_UnknownKeys(t *testing.T) {
	for key, want := range map[string]string{
		"log.retention.hour":       "not a config that Kafka knows; did you mean log.retention.hours?",
		"auto.create.topic.enable": "not a config that Kafka knows; did you mean auto.create.topics.enable?",
		"num_partitions":           "not a config that Kafka knows; did you mean num.partitions?",
		"retention.ms":             "a config of topics; the broker's default for it is log.retention.ms",
		"zookeeper.connect":        "no config of Kafka 4.4: there is no ZooKeeper any more; metadata is kept by the controllers",
		"confluent.license.topic":  "not a config that Kafka knows",
	} {
		_, warnings, err := Load(Sources{Profile: DevProfile(), File: map[string]string{key: "1"}})
		if err != nil || len(warnings) != 1 || warnings[0] != (Warning{Key: key, Source: "the properties file", Message: want}) {
			t.Errorf("%s: %v %v, want %s", key, warnings, err, want)
		}
		_, _, err = Load(Sources{Profile: DevProfile(), Overrides: map[string]string{key: "1"}})
		if wanted := key + " (from --set): " + want; err == nil || err.Error() != wanted {
			t.Errorf("--set %s: %v, want %s", key, err, wanted)
		}
	}
}

// A key that changes nothing says so once, unless it was set to what it is anyway.
func TestLoad_IgnoredKeys(t *testing.T) {
	_, warnings, err := Load(Sources{Profile: DevProfile(), Env: map[string]string{"num.io.threads": "16", "num.network.threads": "3", "rsm.config.x": "y"}})
	want := []Warning{{"num.io.threads", "the environment", "has no effect: " + goScheduled}}
	if diff := cmp.Diff(want, warnings); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// V05: listeners and what is advertised for them.
func TestV05_Listeners(t *testing.T) {
	b := load(t, map[string]string{
		"listeners":                      "internal://:19092,EXTERNAL://0.0.0.0:9092,CONTROLLER://[::1]:9093",
		"advertised.listeners":           "INTERNAL://kafka:19092,EXTERNAL://localhost:29002",
		"listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:plaintext,CONTROLLER:PLAINTEXT",
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "internal",
	})
	if diff := cmp.Diff([]Listener{
		{"INTERNAL", "", 19092, Plaintext, false}, {"EXTERNAL", "0.0.0.0", 9092, Plaintext, false}, {"CONTROLLER", "::1", 9093, Plaintext, true},
	}, b.Listeners); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Listener{{"INTERNAL", "kafka", 19092, Plaintext, false}, {"EXTERNAL", "localhost", 29002, Plaintext, false}}, b.AdvertisedListeners); diff != "" {
		t.Error(diff)
	}
	if b.InterBrokerListenerName != "INTERNAL" || b.Listeners[2].String() != "CONTROLLER://[::1]:9093" {
		t.Errorf("%+v", b)
	}

	b = load(t, map[string]string{"listeners": "PLAINTEXT://0.0.0.0:9092,SSL://[::]:9093,SASL_SSL://host:9094"})
	if diff := cmp.Diff([]Listener{{"PLAINTEXT", "", 9092, Plaintext, false}, {"SSL", "", 9093, SSL, false}, {"SASL_SSL", "host", 9094, SASLSSL, false}}, b.AdvertisedListeners); diff != "" {
		t.Error("without advertised.listeners the address is worked out where none is given:", diff)
	}

	for _, c := range []struct {
		settings map[string]string
		want     string
	}{
		{map[string]string{"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "advertised.listeners=PLAINTEXT://0.0.0.0:9092 (from the properties file): 0.0.0.0 is an address that nobody can connect to; name the host that clients know this broker by"},
		{map[string]string{"advertised.listeners": "PLAINTEXT://[::]:9092"}, ":: is an address that nobody can connect to"},
		{map[string]string{"listeners": "A://:1,a://:2", "listener.security.protocol.map": "A:PLAINTEXT"}, "the name A appears twice"},
		{map[string]string{"listeners": "PLAINTEXT://:1,SSL://:1"}, "listeners PLAINTEXT://:1 and SSL://:1 have the same port"},
		{map[string]string{"listeners": "EXTERNAL://:1"}, "listener EXTERNAL has no entry in listener.security.protocol.map"},
		{map[string]string{"listeners": "PLAINTEXT://:70000"}, "has a port outside 0 to 65535"},
		{map[string]string{"listener.security.protocol.map": "A:TLS"}, `"TLS" is no security protocol`},
		{map[string]string{"advertised.listeners": "SSL://h:1"}, "SSL is not among listeners (PLAINTEXT)"},
		{map[string]string{"listeners": "SSL://:1"}, "brokers would use the listener PLAINTEXT among themselves, which is not advertised; there is SSL"},
		{map[string]string{"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"}, "cannot be set together"},
		{map[string]string{"inter.broker.listener.name": "X"}, "X has no entry in listener.security.protocol.map"},
		{map[string]string{"controller.listener.names": "CONTROLLER"}, "CONTROLLER is not among listeners, but this node has the controller role"},
		{map[string]string{"controller.listener.names": "PLAINTEXT"}, "must hold a listener that is not in controller.listener.names"},
	} {
		_, _, err := Load(Sources{Profile: DevProfile(), File: c.settings})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v:\n got %v\nwant %s", c.settings, err, c.want)
		}
	}
	// One port on an IPv4 and an IPv6 address is no conflict.
	load(t, map[string]string{"listeners": "PLAINTEXT://127.0.0.1:9092,SSL://[::1]:9092"})
}

// A controller listener needs no entry in the map as long as nothing but PLAINTEXT is in use.
func TestLoad_ControllerListenerIsPlaintextByDefault(t *testing.T) {
	b := load(t, map[string]string{"listeners": "PLAINTEXT://:9092,CTRL://:9093", "controller.listener.names": "CTRL"})
	if l := b.Listeners[1]; l.SecurityProtocol != Plaintext || !l.Controller {
		t.Errorf("%+v", l)
	}
	_, _, err := Load(Sources{Profile: DevProfile(), File: map[string]string{"listeners": "PLAINTEXT://:9092,SSL://:9094,CTRL://:9093", "controller.listener.names": "CTRL"}})
	if err == nil {
		t.Error("with SSL in use the controller listener must be in the map")
	}
}

// The properties and variables that people bring from Apache Kafka load without a word.
func TestLoad_AsPeopleBringThem(t *testing.T) {
	const stock = `
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
`
	properties, err := ParseProperties(strings.NewReader(stock))
	if err != nil {
		t.Fatal(err)
	}
	compose := FromEnv([]string{
		"KAFKA_NODE_ID=1", "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
		"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092", "KAFKA_PROCESS_ROLES=broker,controller",
		"KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093", "KAFKA_LISTENERS=CONTROLLER://:29093,PLAINTEXT_HOST://:9092,PLAINTEXT://:19092",
		"KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT", "KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER", "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1",
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0", "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1", "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR=1", "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR=1",
		"KAFKA_LOG_DIRS=/tmp/kraft-combined-logs", "CLUSTER_ID=4L6g3nShT-eMCtK--X86sw",
	})
	for name, sources := range map[string]Sources{"file": {File: properties}, "variables": {Profile: DevProfile(), Env: compose}} {
		b, warnings, err := Load(sources)
		if err != nil || warnings != nil {
			t.Fatal(name, err, warnings)
		}
		if b.LogDirs[0] != "/tmp/kraft-combined-logs" || b.InterBrokerListenerName != "PLAINTEXT" || len(b.AdvertisedListeners) != len(b.Listeners)-1 {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// Dynamic configs lie over static ones, a broker's own over the cluster's; bad stored ones are passed over and told of.
func TestWithDynamic(t *testing.T) {
	static := load(t, map[string]string{"log.retention.hours": "1", "message.max.bytes": "100"})
	b, warnings := static.WithDynamic(
		map[string]string{"log.retention.ms": "7", "message.max.bytes": "200", "max.connections": "5"},
		map[string]string{"message.max.bytes": "300", "num.partitions": "9", "log.segment.bytes": "1"})
	if got := b.Topic(nil); got.RetentionMs != 7 || got.MaxMessageBytes != 300 || b.MaxConnections != 5 || b.NumPartitions != 1 {
		t.Errorf("%+v, %d connections, %d partitions", got, b.MaxConnections, b.NumPartitions)
	}
	want := []Warning{
		{"log.segment.bytes", sourceDynamic, "Invalid value 1 for configuration log.segment.bytes: Value must be at least 1048576"},
		{"num.partitions", sourceDynamic, "Cannot update these configs dynamically: [num.partitions]"},
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
	if got := static.Topic(nil); got.RetentionMs != hourMs || got.MaxMessageBytes != 100 {
		t.Errorf("the old snapshot has changed: %+v", got)
	}
	// Two values that are fine alone but not together.
	b, warnings = static.WithDynamic(map[string]string{"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "5"}, nil)
	if len(warnings) != 1 || warnings[0].Key != "log.cleaner.min.compaction.lag.ms" || b.values.int64("log.cleaner.max.compaction.lag.ms") != 5 {
		t.Errorf("%v", warnings)
	}
}

// Brokers' dynamic configs are refused in Kafka's words.
func TestCheckDynamic(t *testing.T) {
	b := load(t, nil)
	for _, c := range []struct {
		configs   map[string]string
		perBroker bool
		want      string
	}{
		{map[string]string{"log.retention.ms": "1000"}, true, ""},
		{map[string]string{"log.retention.ms": "1000"}, false, ""},
		{map[string]string{"some.plugin.key": "x"}, false, ""},
		{map[string]string{"log.cleanup.policy": "delete,delete"}, true, "Configuration 'log.cleanup.policy' values must not be duplicated."},
		{map[string]string{"num.partitions": "1", "broker.id": "2"}, true, "Cannot update these configs dynamically: [broker.id, num.partitions]"},
		{map[string]string{"log.retention.ms": "x"}, true, "Invalid value x for configuration log.retention.ms: Not a number of type LONG"},
		{map[string]string{"ssl.keystore.location": "x"}, true, "These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.location]"},
		{map[string]string{"listener.name.external.ssl.keystore.location": "x"}, true, ""},
		{map[string]string{"listener.name.external.ssl.keystore.location": "x"}, false, "Cannot update these configs at default cluster level, broker id must be specified: [listener.name.external.ssl.keystore.location]"},
		{map[string]string{"listener.name.external.max.connections": "5"}, false, ""},
		{map[string]string{"listener.name.external.max.connections": "x"}, false, "Invalid value x for configuration max.connections: Not a number of type INT"},
		{map[string]string{"listeners": "PLAINTEXT://:1"}, true, "listeners cannot be changed while the broker runs in this version"},
		{map[string]string{"listeners": "PLAINTEXT://:1"}, false, "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"},
		{map[string]string{"log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "4"}, false, "log.cleaner.min.compaction.lag.ms: must not be above log.cleaner.max.compaction.lag.ms (4)"},
	} {
		err := b.CheckDynamic(c.configs, c.perBroker)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%v %v: %v, want %q", c.configs, c.perBroker, err, c.want)
		}
	}
}

// Topics', groups' and subscriptions' configs are refused in Kafka's words.
func TestValidator(t *testing.T) {
	v := load(t, nil).Validator()
	for _, c := range []struct {
		check   func(map[string]string) error
		configs map[string]string
		want    string
	}{
		{v.ValidateTopicConfigs, map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "-1", "segment.bytes": "1048576"}, ""},
		{v.ValidateTopicConfigs, map[string]string{"cleanup.policy": "delete, delete"}, ""},
		{v.ValidateTopicConfigs, map[string]string{"cleanup.policy": "compactt"}, "Invalid value compactt for configuration cleanup.policy: String must be one of: compact, delete"},
		{v.ValidateTopicConfigs, map[string]string{"compression.type": "SNAPPY"}, "Invalid value SNAPPY for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"},
		{v.ValidateTopicConfigs, map[string]string{"nonsense": "1"}, "Unknown topic config name: nonsense"},
		{v.ValidateTopicConfigs, map[string]string{"retention.ms": "-2"}, "Invalid value -2 for configuration retention.ms: Value must be at least -1"},
		{v.ValidateTopicConfigs, map[string]string{"min.cleanable.dirty.ratio": "1.5"}, "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"},
		{v.ValidateTopicConfigs, map[string]string{"segment.bytes": "99999999999"}, "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT"},
		{v.ValidateTopicConfigs, map[string]string{"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)"},
		{v.ValidateTopicConfigs, map[string]string{"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."},
		{v.ValidateTopicConfigs, map[string]string{"leader.replication.throttled.replicas": "0:1,1:2"}, ""},
		{v.ValidateTopicConfigs, map[string]string{"leader.replication.throttled.replicas": "*"}, ""},
		{v.ValidateTopicConfigs, map[string]string{"leader.replication.throttled.replicas": "0-1"}, "Invalid value [0-1] for configuration leader.replication.throttled.replicas: leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."},
		{v.ValidateTopicConfigs, map[string]string{"compression.gzip.level": "0"}, "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1"},
		{v.ValidateTopicConfigs, map[string]string{"preallocate": " TRUE "}, ""},
		{v.ValidateGroupConfigs, map[string]string{"consumer.session.timeout.ms": "50000"}, ""},
		{v.ValidateGroupConfigs, map[string]string{"consumer.session.timeout.ms": "1"}, "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."},
		{v.ValidateGroupConfigs, map[string]string{"streams.num.standby.replicas": "3"}, "streams.num.standby.replicas must be less than or equal to 2"},
		{v.ValidateGroupConfigs, map[string]string{"nonsense": "1"}, "Unknown group config name: nonsense"},
		{v.ValidateGroupConfigs, map[string]string{"share.auto.offset.reset": "by_duration:PT1H"}, ""},
		{v.ValidateGroupConfigs, map[string]string{"share.auto.offset.reset": "by_duration:1h"}, "Invalid value by_duration:1h for configuration share.auto.offset.reset: Invalid value `by_duration:1h` for configuration share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."},
		{v.ValidateGroupConfigs, map[string]string{"streams.assignor.name": "x"}, "streams.assignor.name 'x' is not a registered task assignor. Registered assignors are: [sticky]."},
		{v.ValidateGroupConfigs, map[string]string{"errors.deadletterqueue.topic.name": "__x"}, "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'"},
		{metrics(v, "m"), map[string]string{"interval.ms": "1000", "metrics": "*", "match": "client_id=app.*"}, ""},
		{metrics(v, "m"), map[string]string{"interval.ms": "1"}, "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)"},
		{metrics(v, "m"), map[string]string{"match": "who=x"}, "Illegal client matching pattern: who=x"},
		{metrics(v, "m"), map[string]string{"x": "1"}, "Unknown client metrics configuration: x"},
		{metrics(v, ""), nil, "Subscription name can't be empty"},
	} {
		err := c.check(c.configs)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v:\n got %v\nwant %s", c.configs, err, c.want)
		}
	}
}

func metrics(v Validator, name string) func(map[string]string) error {
	return func(configs map[string]string) error { return v.ValidateClientMetricsConfigs(name, configs) }
}

var update = flag.Bool("update", false, "write docs/CONFIG.md anew")

// docs/CONFIG.md is what the table generates.
func TestWriteMarkdown_PageIsFresh(t *testing.T) {
	const name = "../../docs/CONFIG.md"
	var page bytes.Buffer
	if err := WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, page.Bytes()) {
		t.Error("docs/CONFIG.md is not what the table generates; run make docs")
	}
	for _, table := range []*table{brokerTable, topicTable, groupTable, clientMetricsTable} {
		for _, row := range table.rows {
			if !strings.Contains(page.String(), "| `"+row.Name+"` |") {
				t.Error(row.Name, "is missing")
			}
		}
	}
}

// Numbers are written as Java writes them.
func TestFormatDouble(t *testing.T) {
	for want, d := range map[string]float64{"0.5": 0.5, "1.0": 1, "0.0": 0, "1.7976931348623157E308": 1.7976931348623157e308, "1.0E7": 1e7, "9999999.0": 9999999, "0.001": 0.001, "1.0E-4": 0.0001, "1.5E10": 1.5e10, "-0.9": -0.9} {
		if got := formatDouble(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
