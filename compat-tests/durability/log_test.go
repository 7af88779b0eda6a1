package durability

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
	"sluice/protocol/record"
)

// writeBatches appends batches of perBatch numbered records to partition 0, each acknowledged before the next is sent, and returns the end.
func writeBatches(t *testing.T, address, topic string, batches, perBatch, valueBytes int) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := open(t, address, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer cl.Close()
	end := endOf(t, address, topic)
	for range batches {
		records := make([]*kgo.Record, perBatch)
		for i := range records {
			records[i] = &kgo.Record{Topic: topic, Value: valueOf(end+int64(i), valueBytes), Timestamp: time.UnixMilli(1_700_000_000_000 + end + int64(i))}
		}
		results := cl.ProduceSync(ctx, records...)
		if err := results.FirstErr(); err != nil {
			t.Fatalf("produce to %s: %v", topic, err)
		}
		for i, r := range results {
			if r.Record.Offset != end+int64(i) {
				t.Fatalf("a record of %s was acknowledged at offset %d, want %d", topic, r.Record.Offset, end+int64(i))
			}
		}
		end += int64(perBatch)
	}
	return end
}

// valueOf is what writeBatches puts at an offset.
func valueOf(offset int64, bytes int) []byte {
	text := fmt.Sprintf("record %d ", offset)
	return []byte(text + strings.Repeat("x", max(0, bytes-len(text))))
}

func endOf(t *testing.T, address, topic string) int64 {
	t.Helper()
	_, end := boundsOf(t, address, topic)
	return end
}

func boundsOf(t *testing.T, address, topic string) (start, end int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cl := open(t, address)
	defer cl.Close()
	adm := kadm.NewClient(cl)
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	s, _ := starts.Lookup(topic, 0)
	e, _ := ends.Lookup(topic, 0)
	return s.Offset, e.Offset
}

// checkLog reads partition 0 from start to end: every offset is there once, with the value that writeBatches gave it.
func checkLog(t *testing.T, address, topic string, start, end int64, valueBytes int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := open(t, address, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(start)}}))
	defer cl.Close()
	for next := start; next < end; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read %s at %d of %d: %v", topic, next, end, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset != next {
				t.Fatalf("%s: offset %d follows %d", topic, r.Offset, next-1)
			}
			if want := valueOf(r.Offset, valueBytes); string(r.Value) != string(want) {
				t.Fatalf("%s: offset %d has %.30q, want %.30q", topic, r.Offset, r.Value, want)
			}
			next++
		})
	}
}

func createTopic(t *testing.T, address, topic string, partitions int32, configs ...string) kadm.TopicID {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	set := map[string]*string{}
	for i := 0; i < len(configs); i += 2 {
		set[configs[i]] = &configs[i+1]
	}
	cl := open(t, address)
	defer cl.Close()
	r, err := kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, set, topic)
	if err != nil {
		t.Fatalf("create %s: %v", topic, err)
	}
	return r.ID
}

func topicID(t *testing.T, address, topic string) kadm.TopicID {
	t.Helper()
	cl := open(t, address)
	defer cl.Close()
	topics, err := kadm.NewClient(cl).ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return topics[topic].ID
}

// segments lists the files of partition 0 with a suffix, in order.
func segments(t *testing.T, p *sluicetest.Process, topic, suffix string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.DataDir, topic+"-0", "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func writeFile(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// verifyDirectory stops the broker and checks every file of its directory.
func verifyDirectory(t *testing.T, p *sluicetest.Process, dirs ...string) {
	t.Helper()
	p.Stop()
	for _, dir := range dirs {
		if out, code := sluicetest.Run(t, nil, "dump", "--verify", dir); code != 0 || strings.Contains(out, "not left by a clean stop") {
			t.Errorf("%s: exit code %d: %s", dir, code, out)
		}
	}
}

// produceCode sends one record to the broker itself, whatever the metadata says, and returns the error code.
func produceCode(t *testing.T, address, topic string, partition int32) int16 {
	t.Helper()
	b, err := record.NewBuilder(record.Unattributed()).Add(record.Record{TimestampMs: time.Now().UnixMilli(), Value: []byte("v")}).Build()
	if err != nil {
		t.Fatal(err)
	}
	request := kmsg.NewPtrProduceRequest()
	request.Acks, request.TimeoutMillis = -1, 5000
	request.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: partition, Records: b}}}}
	return sluicetest.Ask[*kmsg.ProduceResponse](sluicetest.Dial(t, address), request, 9).Topics[0].Partitions[0].ErrorCode
}
