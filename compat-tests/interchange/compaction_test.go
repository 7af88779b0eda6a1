package interchange

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
	"sluice/protocol/compress"
	"sluice/protocol/record"
)

// TestCompaction_LeavesWhatApacheKafkasDoes: both compact a copy of the same directory once, and twice more after the same batches came: the
// same segments, batches, records, empty batches, tombstones, markers and aborted transactions must be left each time.
func TestCompaction_LeavesWhatApacheKafkasDoes(t *testing.T) {
	k := newKafka(t, "log.cleaner.backoff.ms=100\nlog.cleaner.dedupe.buffer.size=10485760\nlog.segment.delete.delay.ms=0\n")
	k.start()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	topics := fillCompacted(t, ctx, k.address)
	k.stop()

	// The broker gets a copy of the directory.
	copied := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(copied, os.DirFS(k.dataDir())); err != nil {
		t.Fatal(err)
	}
	properties, err := os.ReadFile(k.properties)
	if err != nil {
		t.Fatal(err)
	}
	ours := filepath.Join(filepath.Dir(copied), "server.properties")
	if err := os.WriteFile(ours, bytes.ReplaceAll(properties, []byte(k.dataDir()), []byte(copied)), 0o644); err != nil {
		t.Fatal(err)
	}

	k.start()
	want := compactRounds(t, ctx, k.address, k.dataDir(), topics)
	k.stop()
	s := sluicetest.New(t)
	s.Address, s.Args = k.address, []string{"--config", ours, "--admin", s.Admin}
	s.Launch()
	s.WaitReady()
	got := compactRounds(t, ctx, s.Address, copied, topics)
	s.Stop()
	for round := range want {
		for _, topic := range topics {
			sameLog(t, fmt.Sprintf("%s, round %d", topic, round+1), got[round][topic], want[round][topic])
		}
	}
	verify(t, &kafka{t: t, properties: ours})
}

// fillCompacted makes topics, one for each codec, that are not compacted yet and returns their names.
func fillCompacted(t *testing.T, ctx context.Context, address string) (topics []string) {
	t.Helper()
	adm := kadm.NewClient(open(t, address))
	for name, codec := range codecs {
		topic := "compacted-" + name
		topics = append(topics, topic)
		configs := map[string]*string{}
		for key, value := range map[string]string{
			"cleanup.policy": "compact", "segment.bytes": "1048576", "index.interval.bytes": "4096", "delete.retention.ms": "0",
			"min.cleanable.dirty.ratio": "1", // never reached
		} {
			configs[key] = &value
		}
		if _, err := adm.CreateTopic(ctx, 1, 1, configs, topic); err != nil {
			t.Fatal(err)
		}
		fillTopic(t, ctx, address, topic, codec)
	}
	slices.Sort(topics)
	return topics
}

// fillTopic writes about 4 MB with three producers in turn: without transactions, with committed and with aborted ones.
func fillTopic(t *testing.T, ctx context.Context, address, topic string, codec kgo.CompressionCodec) {
	t.Helper()
	r := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(topic))))
	opts := []kgo.Opt{kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(codec)}
	// Producers that stop early: what is left of their last batches is a header.
	for n := range 3 {
		produce(t, ctx, address, topic, 5+n, []byte("soon replaced"), kgo.ProducerBatchCompression(codec))
	}
	plain := open(t, address, opts...)
	defer plain.Close()
	overwritten := make([]*kgo.Record, 10)
	for i := range overwritten {
		overwritten[i] = &kgo.Record{Key: fmt.Appendf(nil, "k%d", i), Value: []byte("newer")}
	}
	if err := plain.ProduceSync(ctx, overwritten...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	committing := open(t, address, append(opts, kgo.TransactionalID(topic+"-a"))...)
	defer committing.Close()
	aborting := open(t, address, append(opts, kgo.TransactionalID(topic+"-b"))...)
	defer aborting.Close()
	for range 120 {
		cl := []*kgo.Client{plain, plain, committing, aborting}[r.IntN(4)]
		if cl != plain {
			if err := cl.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
		}
		for range 1 + r.IntN(2) {
			records := make([]*kgo.Record, 1+r.IntN(40))
			for i := range records {
				records[i] = &kgo.Record{Key: fmt.Append(nil, "key-", r.IntN(150))}
				if r.IntN(8) > 0 {
					records[i].Value = randomBytes(r, 200+r.IntN(1800))
					records[i].Headers = []kgo.RecordHeader{{Key: "n", Value: fmt.Append(nil, i)}}
				}
			}
			if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if cl != plain {
			if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(cl == committing)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// compactRounds has the topics compacted, appends the same to each as to the other broker's, has them compacted again, and so on. It returns what
// there was after each time, by topic.
func compactRounds(t *testing.T, ctx context.Context, address, dir string, topics []string) (rounds []map[string][]string) {
	t.Helper()
	adm := kadm.NewClient(open(t, address))
	ratio := func(value string) {
		t.Helper()
		if r, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "min.cleanable.dirty.ratio", Value: &value}}, topics...); err != nil || r[0].Err != nil {
			t.Fatal(err, r)
		}
	}
	raw := sluicetest.Dial(t, address)
	for round := range 3 {
		if round > 0 {
			for i, topic := range topics {
				appendSame(t, raw, topic, compress.Codec(i), uint64(round))
			}
		}
		ratio("0.01")
		logs := map[string][]string{}
		for _, topic := range topics {
			waitCompacted(t, dir, topic)
			logs[topic] = describeLog(t, filepath.Join(dir, topic+"-0"))
		}
		ratio("1")
		rounds = append(rounds, logs)
	}
	return rounds
}

// appendSame appends batches that are the same for each broker, about 2.5 MB.
func appendSame(t *testing.T, raw *sluicetest.Raw, topic string, codec compress.Codec, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, uint64(codec)))
	for i := range 130 {
		o := record.Unattributed()
		o.Codec = codec
		b := record.NewBuilder(o)
		for range 1 + r.IntN(30) {
			kept := record.Record{TimestampMs: 1_700_000_000_000 + int64(i), Key: fmt.Append(nil, "key-", 50+r.IntN(300))}
			if r.IntN(10) > 0 {
				kept.Value = randomBytes(r, 200+r.IntN(2000))
			}
			b.Add(kept)
		}
		batch, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		req := kmsg.NewPtrProduceRequest()
		req.Acks, req.TimeoutMillis = -1, 10_000
		partition := kmsg.NewProduceRequestTopicPartition()
		partition.Records = batch
		req.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{partition}}}
		if code := sluicetest.Ask[*kmsg.ProduceResponse](raw, req, 9).Topics[0].Partitions[0].ErrorCode; code != 0 {
			t.Fatalf("produce to %s: error code %d", topic, code)
		}
	}
}

// waitCompacted returns when the log has been compacted up to its active segment.
func waitCompacted(t *testing.T, dir, topic string) {
	t.Helper()
	sluicetest.Eventually(t, time.Minute, func(context.Context) error {
		content, err := os.ReadFile(filepath.Join(dir, "cleaner-offset-checkpoint"))
		if err != nil {
			return err
		}
		var cleaned int64 = -1
		for line := range strings.Lines(string(content)) {
			if fields := strings.Fields(line); len(fields) == 3 && fields[0] == topic {
				if cleaned, err = strconv.ParseInt(fields[2], 10, 64); err != nil {
					return err
				}
			}
		}
		segments, err := filepath.Glob(filepath.Join(dir, topic+"-0", "*.log"))
		if err != nil || len(segments) == 0 {
			return fmt.Errorf("no segments: %v", err)
		}
		active, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(slices.Max(segments)), ".log"), 10, 64)
		if err != nil {
			return err
		}
		if cleaned != active {
			return fmt.Errorf("%s is compacted up to %d, the active segment begins at %d", topic, cleaned, active)
		}
		return nil
	})
}

// describeLog lists segments with their batches and records, and the transaction indexes. What depends on when it was compacted, the delete
// horizons, and on a compressor, the sizes, is left out.
func describeLog(t *testing.T, dir string) (lines []string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(segments)
	for _, path := range segments {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, "segment "+filepath.Base(path))
		for len(content) > 0 {
			b, rest, err := record.Split(content)
			if err != nil || !b.ValidCRC() {
				t.Fatalf("%s: %v", path, err)
			}
			content = rest
			lines = append(lines, describeBatch(t, b)...)
		}
		aborted, err := os.ReadFile(strings.TrimSuffix(path, ".log") + ".txnindex")
		if err == nil && len(aborted) > 0 {
			lines = append(lines, fmt.Sprintf("aborted transactions %x", aborted))
		}
	}
	return lines
}

func describeBatch(t *testing.T, b record.Batch) []string {
	t.Helper()
	base := "delete horizon"
	if !b.HasDeleteHorizon() {
		base = fmt.Sprint(b.BaseTimestamp())
	}
	lines := []string{fmt.Sprintf("batch %d-%d count %d attributes %#x times %s %d producer %d/%d sequence %d epoch %d", b.BaseOffset(), b.LastOffset(), b.Count(),
		b.Attributes(), base, b.MaxTimestamp(), b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.LeaderEpoch())}
	for r, err := range b.Records(0) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("  %d at %d key %q value %t %.8x headers %v", r.Offset, r.TimestampMs, r.Key, r.Value != nil, sha256.Sum256(r.Value), r.Headers))
	}
	return lines
}

// sameLog compares what was described.
func sameLog(t *testing.T, about string, got, want []string) {
	t.Helper()
	batches, empty, horizons := 0, 0, 0
	for _, line := range want {
		if strings.HasPrefix(line, "batch") {
			batches++
		}
		if strings.Contains(line, " count 0 ") {
			empty++
		}
		if strings.Contains(line, "delete horizon") {
			horizons++
		}
	}
	t.Logf("%s: %d batches, %d of them empty, %d with a delete horizon, %d records", about, batches, empty, horizons, len(want)-batches)
	for i := range max(len(got), len(want)) {
		if i < len(got) && i < len(want) && got[i] == want[i] {
			continue
		}
		from := max(i-2, 0)
		t.Errorf("%s: line %d of %d and %d differs\nSluice\n%s\nApache Kafka\n%s", about, i, len(got), len(want),
			strings.Join(got[min(from, len(got)):min(i+4, len(got))], "\n"), strings.Join(want[min(from, len(want)):min(i+4, len(want))], "\n"))
		return
	}
}
