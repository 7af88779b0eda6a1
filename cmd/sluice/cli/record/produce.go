package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/cmd/sluice/cli/admin"
	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// producing are the flags that produce and perf produce share.
type producing struct {
	compression string
	acks        string
}

func (p *producing) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&p.compression, "compression", "z", "none", "compress by `CODEC`: none, gzip, snappy, lz4 or zstd")
	flags.StringVar(&p.acks, "acks", "all", "wait until `N` replicas have a record: all, 1 or 0")
	_ = cmd.RegisterFlagCompletionFunc("compression", cobra.FixedCompletions([]string{"none", "gzip", "snappy", "lz4", "zstd"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

func (p *producing) options() ([]kgo.Opt, error) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	codec, ok := codecs[p.compression]
	if !ok {
		return nil, exit.Usagef("--compression %s: want none, gzip, snappy, lz4 or zstd", p.compression)
	}
	options := []kgo.Opt{kgo.ProducerBatchCompression(codec)}
	switch p.acks {
	case "all", "-1":
	case "1":
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case "0":
		options = append(options, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	default:
		return nil, exit.Usagef("--acks %s: want all, 1 or 0", p.acks)
	}
	return options, nil
}

// NewProduceCommand is `sluice produce`.
func NewProduceCommand() *cobra.Command {
	var f connect.Flags
	var p producing
	var in inputOptions
	var format output.Format
	var input, key string
	var headers []string
	var partition int32
	cmd := &cobra.Command{
		Use:   "produce TOPIC [VALUE...]",
		Short: "Write records to a topic",
		Long: `Write records to a topic: each VALUE, or each line of the standard input. The command succeeds when the broker has
acknowledged all of them. A topic that does not exist is created if the broker allows it (auto.create.topics.enable).

With --input json each line is an object as "consume -o json" prints it: key, value (or keyBase64, valueBase64), headers
and timestamp are taken; topic and offset are not; partition only with --keep-partition.

With --format the input is split by a layout: %k key, %v value, %h{%k=%v } headers, %p partition, %d timestamp, and %K, %V, %H
sizes before what they are the sizes of. Everything else, as \t and \n, stands for itself.`,
		Example: `  sluice produce greetings hello
  sluice produce orders --key 42 --header source=shop '{"total":12}'
  sluice produce orders --key-separator : < orders.txt
  sluice produce orders --format '%k\t%v\n' < orders.tsv
  sluice consume orders --until-end -o json | sluice produce copies --input json --compression zstd`,
		Args:              exit.Args(cobra.MinimumNArgs(1)),
		ValidArgsFunction: firstTopic(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := p.options()
			if err != nil {
				return err
			}
			switch input {
			case "lines", "json":
				in.json = input == "json"
			default:
				return exit.Usagef("--input %s: want lines or json", input)
			}
			if err := in.check(); err != nil {
				return err
			}
			every, err := parseHeaders(headers)
			if err != nil {
				return err
			}
			var r io.Reader = cmd.InOrStdin()
			values := args[1:]
			if len(values) > 0 {
				if in.json || in.layout != "" || in.separator != "" {
					return exit.Usagef("values on the command line are whole values: --input, --format and --key-separator are for the standard input")
				}
			} else if output.IsTerminal(r) && output.IsTerminal(cmd.ErrOrStderr()) {
				fmt.Fprintln(cmd.ErrOrStderr(), "each line is a record; Ctrl-D ends the input") //nolint:errcheck // a hint
			}
			next, err := in.open(r)
			if err != nil {
				return err
			}
			if len(values) > 0 {
				next = in.values(values)
			}
			keyed := cmd.Flags().Changed("key")
			prepare := func(record *kgo.Record) {
				record.Topic = args[0]
				if keyed && record.Key == nil {
					record.Key = []byte(key)
				}
				if record.Partition < 0 {
					record.Partition = partition
				}
				record.Headers = append(record.Headers, every...)
			}
			partitioner := newChosenPartitioner()
			options = append(options, kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(3), kgo.RecordPartitioner(partitioner))
			c, err := f.Open(cmd.Context(), options...)
			if err != nil {
				return err
			}
			defer c.Close()
			if err = send(cmd, c, next, prepare, &format, args[0]); err != nil {
				if missing := partitioner.missing.Load(); missing != nil {
					return exit.With(exit.NotFound, fmt.Errorf("the topic %s has no partition %d, only 0 to %d: records before that one may have been written", args[0], missing.partition, missing.of-1))
				}
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&key, "key", "k", "", "give each record this `KEY` that has none of its own")
	flags.StringArrayVarP(&headers, "header", "H", nil, "give each record a header, `KEY=VALUE`; may be given several times")
	flags.Int32VarP(&partition, "partition", "p", -1, "write to partition `N`; -1 lets the key decide, as Java's client does")
	flags.StringVarP(&input, "input", "i", "lines", "what the standard input is, `FORM`: lines or json")
	flags.StringVarP(&in.separator, "key-separator", "K", "", "the key of each line ends at the first `TEXT`")
	flags.StringVarP(&in.layout, "format", "f", "", "split the input by this `LAYOUT`")
	flags.BoolVarP(&in.tombstones, "tombstones", "Z", false, "an empty value is null, which deletes its key from a compacted topic")
	flags.BoolVar(&in.keepPartition, "keep-partition", false, "write each record to the partition that its JSON names")
	p.add(cmd)
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

func (o inputOptions) values(values []string) source {
	return func() (*kgo.Record, error) {
		if len(values) == 0 {
			return nil, io.EOF
		}
		value := values[0]
		values = values[1:]
		return o.finish(&kgo.Record{Partition: -1, Value: []byte(value)}), nil
	}
}

// writtenRecord is what produce says of each record with -o json.
type writtenRecord struct {
	Partition int32 `json:"partition"`
	Offset    int64 `json:"offset"`
}

// writtenTopic is what produce prints with -o json.
type writtenTopic struct {
	Topic   string          `json:"topic"`
	Records []writtenRecord `json:"records"`
}

// send writes all records and waits for them. The first failure ends it; what was acknowledged before is said.
func send(cmd *cobra.Command, c *connect.Client, next source, prepare func(*kgo.Record), format *output.Format, topic string) error {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	stalled := newStall(c.Timeout(), func() {
		cancel(context.DeadlineExceeded)
		c.Close() // which fails what is on its way
	})
	shown := newProgress(cmd.ErrOrStderr(), nil)
	var mu sync.Mutex
	written := writtenTopic{Topic: topic, Records: []writtenRecord{}}
	acknowledged := 0
	var inputErr error
	for ctx.Err() == nil {
		record, err := next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				inputErr = err
			}
			break
		}
		prepare(record)
		stalled.sent()
		c.Produce(ctx, record, func(r *kgo.Record, err error) {
			stalled.answered()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				cancel(err) // the first cause counts
				return
			}
			acknowledged++
			shown.add(1, recordBytes(r.Key, r.Value))
			if *format == output.JSON {
				written.Records = append(written.Records, writtenRecord{r.Partition, r.Offset})
			}
		})
	}
	flushErr := c.Flush(cmd.Context())
	mu.Lock()
	defer mu.Unlock()
	shown.clear()
	var failed error
	if cause := context.Cause(ctx); cause != nil {
		failed = explainProduce(c, topic, cause)
	} else if flushErr != nil {
		failed = flushErr
	}
	if err := errors.Join(inputErr, failed); err != nil {
		return fmt.Errorf("%w\nacknowledged before that: %s", err, recordCount(acknowledged))
	}
	return format.Print(cmd.OutOrStdout(), written, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s to %s\n", recordCount(acknowledged), topic)
		return err
	})
}

func recordCount(n int) string {
	if n == 1 {
		return "1 record"
	}
	return fmt.Sprintf("%d records", n)
}

func explainProduce(c *connect.Client, topic string, err error) error {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return exit.With(exit.NotFound, fmt.Errorf("the topic %s does not exist, and the broker creates none by itself: sluice topic create %s", topic, topic))
	}
	return c.Refused("write to the topic "+topic, err, "")
}

func parseHeaders(pairs []string) ([]kgo.RecordHeader, error) {
	var headers []kgo.RecordHeader
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, exit.Usagef("--header %s: want KEY=VALUE", pair)
		}
		headers = append(headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
	}
	return headers, nil
}

func firstTopic(f *connect.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return admin.CompleteTopics(f)(cmd, args, toComplete)
	}
}
