// Package interchange checks that Apache Kafka and the broker read each other's data directories, and that Kafka's own tools read ours.
package interchange

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/compat-tests/sluicetest"
)

// TestDumpLog_ReadsEveryFile fills a broker with every compression, groups, rolled segments and deleted topics, stops it, and has Kafka's
// dump-log read every log, index, time index and producer snapshot, and the metadata log.
func TestDumpLog_ReadsEveryFile(t *testing.T) {
	p := sluicetest.Start(t)
	fill(t, p.Address)
	p.Stop()

	files := map[string][]string{}
	err := filepath.WalkDir(p.DataDir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			extension := filepath.Ext(path)
			if strings.HasPrefix(filepath.Base(filepath.Dir(path)), "__cluster_metadata-") && extension == ".log" {
				extension = "metadata"
			}
			if strings.HasPrefix(filepath.Base(filepath.Dir(path)), "__consumer_offsets-") && extension == ".log" {
				extension = "offsets"
			}
			files[extension] = append(files[extension], path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []struct {
		extension string
		args      []string
	}{
		{".log", []string{"--deep-iteration", "--print-data-log"}},
		{"offsets", []string{"--deep-iteration", "--offsets-decoder"}},
		{"metadata", []string{"--deep-iteration", "--cluster-metadata-decoder"}},
		{".index", []string{"--index-sanity-check"}},
		{".timeindex", nil},
		{".snapshot", nil},
	} {
		t.Run(kind.extension, func(t *testing.T) {
			list := files[kind.extension]
			if len(list) == 0 {
				t.Fatalf("the broker wrote no such file: %v", files)
			}
			out := kafkaTool(t, append([]string{"dump-log", "--files", strings.Join(list, ",")}, kind.args...)...)
			for line := range strings.Lines(out) {
				// The tool itself counts from -1 in each file, so that "-1 is followed by" the first offset of every later segment.
				if from, to, gap := strings.Cut(line, " is followed by "); gap && strings.TrimSpace(from) != "-1" {
					t.Errorf("offsets %s, then %s", strings.TrimSpace(from), strings.TrimSpace(to))
				}
				for _, complaint := range []string{"Found timestamp mismatch", "Index timestamp:", "out of order", "Mismatches in", "isvalid: false", "Exception", "Could not", "corrupt", "Unexpected", "skipped"} {
					if strings.Contains(line, complaint) {
						t.Errorf("%s", strings.TrimSpace(line))
					}
				}
			}
			if dumped := strings.Count(out, "Dumping "); dumped != len(list) {
				t.Errorf("%d of %d files were dumped:\n%s", dumped, len(list), last(out, 2000))
			}
		})
	}
}

// fill makes the broker write every kind of file.
func fill(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open := func(opts ...kgo.Opt) *kgo.Client {
		cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(address)}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cl.Close)
		return cl
	}
	adm := kadm.NewClient(open())
	small := "1048576"
	for _, name := range []string{"dump", "gone"} {
		if _, err := adm.CreateTopic(ctx, 2, 1, map[string]*string{"segment.bytes": &small}, name); err != nil {
			t.Fatal(err)
		}
	}
	value := bytes.Repeat([]byte("0123456789abcdef"), 64)
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		p := open(kgo.DefaultProduceTopic("dump"), kgo.ProducerBatchCompression(codec))
		for i := range 3000 {
			p.Produce(ctx, &kgo.Record{Key: fmt.Appendf(nil, "k%d", i), Value: value, Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("v")}}}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Errorf("produce: %v", err)
				}
			})
		}
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	c := open(kgo.ConsumerGroup("dump-group"), kgo.ConsumeTopics("dump"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	for seen := 0; seen < 15000; {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		seen += fetches.NumRecords()
	}
	if err := c.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := adm.DeleteTopic(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
}

// kafkaTool runs one of Apache Kafka's command-line tools and returns what it printed.
func kafkaTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("../reference/kafka", append([]string{"tool"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", args[0], err, last(string(out), 4000))
	}
	return string(out)
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }
