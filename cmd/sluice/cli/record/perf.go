package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// NewPerfCommand is `sluice perf`.
func NewPerfCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "Measure how fast records are written and read",
		Long: `Measure how fast records are written and read. One client on one machine measures that client, too: compare runs on the same
machine, and look at the broker's metrics beside it.`,
		Args: exit.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPerfProduceCommand(), newPerfConsumeCommand())
	return cmd
}

// measured is the result of a run.
type measured struct {
	Topic            string          `json:"topic"`
	Records          int64           `json:"records"`
	Bytes            int64           `json:"bytes"` // of keys and values
	Seconds          float64         `json:"seconds"`
	RecordsPerSecond float64         `json:"recordsPerSecond"`
	BytesPerSecond   float64         `json:"bytesPerSecond"`
	FirstRecordMs    float64         `json:"firstRecordMs"` // from the start to the first record
	LatencyMs        *latencySummary `json:"latencyMs,omitempty"`
}

// latencySummary is in ms, from handing a record to the client to its acknowledgement.
type latencySummary struct {
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

func (m *measured) finish(p *progress) {
	m.Records, m.Bytes, m.Seconds = p.records, p.bytes, p.elapsed().Seconds()
	if m.Seconds > 0 {
		m.RecordsPerSecond, m.BytesPerSecond = float64(m.Records)/m.Seconds, float64(m.Bytes)/m.Seconds
	}
}

func (m *measured) write(w io.Writer) error {
	fmt.Fprintf(w, "%d records, %s in %.2f s: %.0f records/s, %s/s\n", m.Records, output.Bytes(float64(m.Bytes)), m.Seconds, m.RecordsPerSecond, output.Bytes(m.BytesPerSecond))
	if l := m.LatencyMs; l != nil {
		fmt.Fprintf(w, "latency in ms: p50 %.1f, p95 %.1f, p99 %.1f, p99.9 %.1f, max %.1f\n", l.P50, l.P95, l.P99, l.P999, l.Max)
		return nil
	}
	_, err := fmt.Fprintf(w, "first record after %.1f ms\n", m.FirstRecordMs)
	return err
}

func newPerfProduceCommand() *cobra.Command {
	var f connect.Flags
	var p producing
	var format output.Format
	var records int64
	var size, batchBytes int32
	var rate float64
	var linger time.Duration
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Write random records as fast as they are acknowledged",
		Long: `Write random records, letters that hardly compress, as fast as they are acknowledged or at --rate. Latency runs from handing
a record to the client until it is acknowledged: without --rate it is mostly the client's own queue.`,
		Example: `  sluice perf produce load --records 1000000 --size 200
  sluice perf produce load --records 100000 --rate 5000 --acks 1 -o json`,
		Args:              exit.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: firstTopic(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if records < 1 || size < 0 || size > lineBytesMax || rate < 0 || linger < 0 || batchBytes < 1<<10 {
				return exit.Usagef("want --records of 1 or more, --size of 0 to %d, --batch-bytes of 1024 or more, and neither --rate nor --linger below 0", lineBytesMax)
			}
			options, err := p.options()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			c, err := f.Open(ctx, append(options, kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(3), kgo.ProducerLinger(linger), kgo.ProducerBatchMaxBytes(batchBytes))...)
			if err != nil {
				return err
			}
			defer c.Close()
			m, err := measureProduce(ctx, cmd.ErrOrStderr(), c, args[0], records, int(size), rate)
			if err != nil {
				return err
			}
			return format.Print(cmd.OutOrStdout(), m, m.write)
		},
	}
	flags := cmd.Flags()
	flags.Int64VarP(&records, "records", "n", 100_000, "write `N` records")
	flags.Int32VarP(&size, "size", "s", 100, "of this many `BYTES` each")
	flags.Float64Var(&rate, "rate", 0, "at most `N` records a second; 0 is no limit")
	flags.DurationVar(&linger, "linger", 0, "wait for `TIME` for more records before a batch is sent")
	flags.Int32Var(&batchBytes, "batch-bytes", 1_000_000, "send batches of at most `BYTES`")
	p.add(cmd)
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

// measureProduce ends early when its context does, and then measures what was written until then.
func measureProduce(ctx context.Context, stderr io.Writer, c *connect.Client, topic string, records int64, size int, rate float64) (*measured, error) {
	m := &measured{Topic: topic}
	// Values are windows of one random text: making them costs next to nothing beside sending them.
	text := make([]byte, size+64<<10)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range text {
		text[i] = byte('A' + random.IntN(26))
	}
	var mu sync.Mutex
	var seen latencies
	sending, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := newStall(c.Timeout(), func() {
		cancel(context.DeadlineExceeded)
		c.Close() // which fails what is on its way
	})
	shown := newProgress(stderr, nil)
	for i := int64(0); i < records && sending.Err() == nil; i++ {
		if rate > 0 {
			due := time.Duration(float64(i) / rate * float64(time.Second))
			if early := due - shown.elapsed(); early > 0 {
				select {
				case <-time.After(early):
				case <-sending.Done():
					continue
				}
			}
		}
		from := random.IntN(64 << 10)
		handed := time.Now()
		stalled.sent()
		c.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: topic, Value: text[from : from+size]}, func(r *kgo.Record, err error) {
			stalled.answered()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				cancel(err)
				return
			}
			if seen.n == 0 {
				m.FirstRecordMs = milliseconds(shown.elapsed())
			}
			seen.add(time.Since(handed))
			shown.add(1, recordBytes(r.Key, r.Value))
		})
	}
	if err := c.Flush(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	shown.clear()
	if err := context.Cause(sending); err != nil && !errors.Is(err, context.Canceled) {
		return nil, explainProduce(c, topic, err)
	}
	m.finish(shown)
	m.LatencyMs = &latencySummary{seen.percentile(0.5), seen.percentile(0.95), seen.percentile(0.99), seen.percentile(0.999), milliseconds(seen.most)}
	return m, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func newPerfConsumeCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	var records int64
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Read a topic from its beginning as fast as it comes",
		Long:  "Read a topic from its beginning, to the end that it has at the start, as fast as it comes.",
		Example: `  sluice perf consume load
  sluice perf consume load --records 1000000 -o json`,
		Args:              exit.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: firstTopic(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if records < 0 {
				return exit.Usagef("--records %d: want 0 or more", records)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			remaining := &remaining{}
			o := consumeFlags{untilEnd: true}
			options := []kgo.Opt{kgo.KeepControlRecords(), kgo.FetchMaxBytes(64 << 20), kgo.FetchMaxPartitionBytes(16 << 20)}
			began := time.Now()
			c, err := openConsumer(ctx, &f, o, args, connect.Beginning, remaining, options)
			if err != nil {
				return err
			}
			defer c.Close()
			m, err := measureConsume(ctx, cmd.ErrOrStderr(), c, args[0], records, remaining, began)
			if err != nil {
				return err
			}
			return format.Print(cmd.OutOrStdout(), m, m.write)
		},
	}
	cmd.Flags().Int64VarP(&records, "records", "n", 0, "stop after `N` records; 0 reads to the end")
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

func measureConsume(ctx context.Context, stderr io.Writer, c *connect.Client, topic string, records int64, remaining *remaining, began time.Time) (*measured, error) {
	m := &measured{Topic: topic}
	shown := newProgress(stderr, nil)
	defer shown.clear()
	lastHeard := time.Now()
	for ctx.Err() == nil && !remaining.done() && (records == 0 || shown.records < records) && time.Since(lastHeard) < idleEnd {
		polling, cancel := context.WithTimeout(ctx, pollTime)
		fetches := c.PollRecords(polling, pollMax(records, shown.records))
		cancel()
		if err := fetchError(c, fetches); err != nil {
			return nil, err
		}
		for iterator := fetches.RecordIter(); !iterator.Done(); {
			r := iterator.Next()
			if !remaining.read(r) || r.Attrs.IsControl() {
				continue
			}
			if shown.records == 0 {
				m.FirstRecordMs = milliseconds(time.Since(began))
			}
			shown.add(1, recordBytes(r.Key, r.Value))
			lastHeard = time.Now()
		}
	}
	m.finish(shown)
	return m, nil
}
