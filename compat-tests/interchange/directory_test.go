package interchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// TestDirectory_ThereAndBack: Apache Kafka fills a directory; the broker starts on it with the same server.properties, shows the same, writes
// more and stops; Apache Kafka starts on it again, shows the same, and writes more, which the broker shows in turn.
func TestDirectory_ThereAndBack(t *testing.T) {
	k := newKafka(t, "log.cleaner.backoff.ms=200\nlog.cleaner.dedupe.buffer.size=10485760\n")
	k.start()
	fillKafka(t, k.address)
	groups := []string{"classic-group", "plain-offsets", "next-group"}
	written := observe(t, k.address, groups...)
	levels := finalized(t, k.address)
	unserved := describeUnserved(t, k.address)
	k.stop()
	verify(t, k)

	s := sluicetest.New(t)
	s.Address, s.Args = k.address, []string{"--config", k.properties, "--admin", s.Admin}
	s.Launch()
	s.WaitReady()
	observe(t, s.Address, groups...).mustBe(t, "after Apache Kafka, by Sluice", written)
	for name, level := range finalized(t, s.Address) {
		if levels[name] != level {
			t.Errorf("%s is finalized at level %d, was %d", name, level, levels[name])
		}
	}
	writeMore(t, s.Address, "by Sluice")
	written = observe(t, s.Address, groups...)
	s.Stop()
	verify(t, k)

	k.start()
	observe(t, k.address, groups...).mustBe(t, "after Sluice, by Apache Kafka", written)
	if after := finalized(t, k.address); !maps.Equal(after, levels) {
		t.Errorf("finalized features are %v, were %v", after, levels)
	}
	if after := describeUnserved(t, k.address); after != unserved {
		t.Errorf("what Sluice does not serve is\n%s\nwas\n%s", after, unserved)
	}
	writeMore(t, k.address, "by Apache Kafka again")
	written = observe(t, k.address, groups...)
	k.stop()
	verify(t, k)

	s.Launch()
	s.WaitReady()
	observe(t, s.Address, groups...).mustBe(t, "after Apache Kafka again, by Sluice", written)
}

// verify checks every file of the directory, which was left by a clean stop.
func verify(t *testing.T, k *kafka) {
	t.Helper()
	out, code := sluicetest.Run(t, nil, "dump", "--verify", k.dataDir())
	if code != 0 || !strings.Contains(out, "left by a clean stop") || strings.Contains(out, "not left") {
		t.Errorf("exit code %d: %s", code, out)
	}
	t.Logf("%s", out)
}

// fillKafka makes Apache Kafka write one of everything.
func fillKafka(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	adm := kadm.NewClient(open(t, address))
	create := func(name string, partitions int32, configs ...string) {
		t.Helper()
		set := map[string]*string{}
		for i := 0; i < len(configs); i += 2 {
			set[configs[i]] = &configs[i+1]
		}
		if _, err := adm.CreateTopic(ctx, partitions, 1, set, name); err != nil {
			t.Fatalf("create %s: %v", name, err)
		}
	}
	create("plain", 2, "segment.bytes", "1048576", "index.interval.bytes", "1024", "retention.ms", "-1", "max.message.bytes", "2000000")
	for codec := range codecs {
		create("codec-"+codec, 1)
	}
	create("appended-time", 1, "message.timestamp.type", "LogAppendTime")
	create("trimmed", 1, "segment.bytes", "1048576")
	create("compacted", 1, "cleanup.policy", "compact", "segment.bytes", "1048576", "min.cleanable.dirty.ratio", "0.01")
	create("transactions", 2)
	create("empty", 3)
	create("gone", 1)
	create("idempotent", 1)

	value := bytes.Repeat([]byte("0123456789abcdef"), 64)
	produce(t, ctx, address, "plain", 3000, value)
	for codec, c := range codecs {
		produce(t, ctx, address, "codec-"+codec, 300, value, kgo.ProducerBatchCompression(c))
	}
	produce(t, ctx, address, "appended-time", 100, value, kgo.ProducerBatchCompression(kgo.GzipCompression()))
	produce(t, ctx, address, "trimmed", 3000, value)
	produce(t, ctx, address, "gone", 10, value)
	produce(t, ctx, address, "idempotent", 100, value)
	produce(t, ctx, address, "idempotent", 100, value, kgo.DisableIdempotentWrite())
	for range 4 {
		produce(t, ctx, address, "compacted", 1000, value)
	}
	transactions(t, ctx, address)

	trim := kadm.Offsets{}
	trim.AddOffset("trimmed", 0, 1234, -1)
	if r, err := adm.DeleteRecords(ctx, trim); err != nil || r.Error() != nil {
		t.Fatal(err, r.Error())
	}
	if _, err := adm.DeleteTopic(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	retention, threads := "86400000", "6"
	altered(t)(adm.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Name: "log.retention.ms", Value: &retention}}))
	altered(t)(adm.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Name: "num.io.threads", Value: &threads}}, 1))
	client := "a-client"
	if _, err := adm.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &client}}, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1e9}},
	}}); err != nil {
		t.Fatal(err)
	}
	commit(t, ctx, address, 1500)
	consume(t, context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true), address, "next-group") //nolint:staticcheck // the key is the client's
	// The cleaner has been through the compacted topic when fewer records are left than were written.
	sluicetest.Eventually(t, time.Minute, func(ctx context.Context) error {
		summary, _ := read(t, ctx, address, "compacted", 0, 0, 4000, kgo.ReadUncommitted())
		var left int
		if _, err := fmt.Sscanf(summary, "%d,", &left); err != nil || left > 3500 {
			return fmt.Errorf("%d records are left of 4000: %v", left, err)
		}
		return nil
	})
}

// writeMore changes a little of everything.
func writeMore(t *testing.T, address, by string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	adm := kadm.NewClient(open(t, address))
	value := []byte(by)
	for codec, c := range codecs {
		produce(t, ctx, address, "codec-"+codec, 20, value, kgo.ProducerBatchCompression(c))
	}
	produce(t, ctx, address, "plain", 2000, bytes.Repeat([]byte(by), 50)) // rolls
	produce(t, ctx, address, "idempotent", 10, value)
	produce(t, ctx, address, "empty", 10, value)
	topics, err := adm.ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("new-%d", len(topics))
	if _, err := adm.CreateTopic(ctx, 2, 1, map[string]*string{"retention.bytes": kadm.StringPtr("123456789")}, name); err != nil {
		t.Fatal(err)
	}
	produce(t, ctx, address, name, 50, value)
	if _, err := adm.UpdatePartitions(ctx, len(topics["empty"].Partitions)+1, "empty"); err != nil {
		t.Fatal(err)
	}
	trim := kadm.Offsets{}
	trim.AddOffset("trimmed", 0, int64(1234+100*len(topics)), -1)
	if r, err := adm.DeleteRecords(ctx, trim); err != nil || r.Error() != nil {
		t.Fatal(err, r.Error())
	}
	retention := fmt.Sprint(1_000_000_000 + len(topics))
	altered(t)(adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &retention}, {Op: kadm.DeleteConfig, Name: "max.message.bytes"}}, "plain"))
	commit(t, ctx, address, int64(1600+len(topics)))
}

func altered(t *testing.T) func(kadm.AlterConfigsResponses, error) {
	return func(responses kadm.AlterConfigsResponses, err error) {
		t.Helper()
		for _, r := range responses {
			err = errors.Join(err, r.Err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// produce writes n records with keys to a topic, whole batches of one producer, to all partitions.
func produce(t *testing.T, ctx context.Context, address, topic string, n int, value []byte, opts ...kgo.Opt) {
	t.Helper()
	cl := open(t, address, append([]kgo.Opt{kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression())}, opts...)...)
	defer cl.Close()
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Key: fmt.Appendf(nil, "k%d", i), Value: value, Headers: []kgo.RecordHeader{{Key: "n", Value: fmt.Append(nil, i)}}}
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatalf("produce to %s: %v", topic, err)
	}
}

// transactions writes three that commit and three that abort, in turn.
func transactions(t *testing.T, ctx context.Context, address string) {
	t.Helper()
	cl := open(t, address, kgo.DefaultProduceTopic("transactions"), kgo.TransactionalID("interchange"))
	defer cl.Close()
	for n := range 6 {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			cl.Produce(ctx, &kgo.Record{Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "transaction %d", n)}, nil)
		}
		if err := cl.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(ctx, n%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
}

// commit commits offsets as a member of a group and as a tool does.
func commit(t *testing.T, ctx context.Context, address string, at int64) {
	t.Helper()
	consume(t, ctx, address, "classic-group")
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: "plain", Partition: 0, At: at, LeaderEpoch: 0, Metadata: "by hand"})
	offsets.Add(kadm.Offset{Topic: "idempotent", Partition: 0, At: 7, LeaderEpoch: -1})
	if r, err := kadm.NewClient(open(t, address)).CommitOffsets(ctx, "plain-offsets", offsets); err != nil || r.Error() != nil {
		t.Fatal(err, r.Error())
	}
}

// consume reads as a member of a group, commits, and leaves.
func consume(t *testing.T, ctx context.Context, address, group string) {
	t.Helper()
	member := open(t, address, kgo.WithContext(ctx), kgo.ConsumerGroup(group), kgo.ConsumeTopics("plain", "codec-zstd"), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for seen := 0; seen < 20; {
		fetches := member.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		seen += fetches.NumRecords()
	}
	if err := member.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	member.LeaveGroup()
	member.Close()
}

// finalized are the feature levels that clients are told are finalized.
func finalized(t *testing.T, address string) map[string]int16 {
	t.Helper()
	request := kmsg.NewPtrApiVersionsRequest()
	request.ClientSoftwareName, request.ClientSoftwareVersion = "interchange", "1"
	response, err := request.RequestWith(t.Context(), open(t, address))
	if err != nil {
		t.Fatal(err)
	}
	levels := map[string]int16{}
	for _, f := range response.FinalizedFeatures {
		levels[f.Name] = f.MaxVersionLevel
	}
	return levels
}

// describeUnserved is what Apache Kafka tells of things that the broker need not serve, but must leave as they are.
func describeUnserved(t *testing.T, address string) string {
	t.Helper()
	adm := kadm.NewClient(open(t, address))
	quotas, err := adm.DescribeClientQuotas(t.Context(), false, []kadm.DescribeClientQuotaComponent{{Type: "client-id", MatchType: 2}})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := adm.DescribeConsumerGroups(t.Context(), "next-group")
	if err != nil {
		t.Fatal(err)
	}
	transactions, err := adm.DescribeTransactions(t.Context(), "interchange")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%+v\n%+v\n%+v", quotas, groups, transactions)
}
