package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/cmd/sluice/cli/admin"
	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// consumeFlags are what consume was asked for.
type consumeFlags struct {
	from       string
	untilEnd   bool
	max        int64
	partitions []int
	group      string
	layout     string
	committed  bool
	format     output.Format
}

// NewConsumeCommand is `sluice consume`.
func NewConsumeCommand() *cobra.Command {
	var f connect.Flags
	var o consumeFlags
	cmd := &cobra.Command{
		Use:   "consume TOPIC...",
		Short: "Read records of topics",
		Long: `Read records of topics and print them, until Ctrl-C, --max, or with --until-end until what was there at the start has been
read. Without --from, new records are read; with --until-end all of them.

POSITION is ` + connect.PositionHelp + `

With --group the records are read as a member of a consumer group, and the offsets of what was printed are committed;
--from (beginning or end) is where the group starts that has committed nothing.

Each record's value is printed as a line. -o json prints each record as one line of JSON. --format prints by a layout: %k key,
%v value, %t topic, %p partition, %o offset, %d timestamp in ms, %d{go#RFC3339#}, %h{%k=%v } headers, %a{compression},
%K, %V, %H sizes, \t and \n; %v{hex} and %v{base64} for bytes.`,
		Example: `  sluice consume orders
  sluice consume orders --from beginning --until-end
  sluice consume orders --from 15m --format '%p %o %k %v\n'
  sluice consume orders --from -10 --until-end --partition 0 -o json
  sluice consume orders --group readers --from beginning --max 100`,
		Args:              exit.Args(cobra.MinimumNArgs(1)),
		ValidArgsFunction: admin.CompleteTopics(&f),
		RunE:              func(cmd *cobra.Command, topics []string) error { return consume(cmd, &f, o, topics) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.from, "from", "", "start at `POSITION`")
	flags.BoolVarP(&o.untilEnd, "until-end", "e", false, "stop at the end that the partitions had at the start")
	flags.Int64VarP(&o.max, "max", "n", 0, "stop after `N` records; 0 is no limit")
	flags.IntSliceVarP(&o.partitions, "partition", "p", nil, "read only partition `N`; or several with commas")
	flags.StringVarP(&o.group, "group", "g", "", "read as a member of this consumer `GROUP`, and commit")
	flags.StringVarP(&o.layout, "format", "f", "", "print each record by this `LAYOUT`")
	flags.BoolVar(&o.committed, "read-committed", false, "leave out records of transactions that were aborted or are still open")
	o.format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

// position is where to start.
func (o consumeFlags) position() (connect.Position, error) {
	if o.from == "" {
		if o.untilEnd {
			return connect.Beginning, nil
		}
		return connect.End, nil
	}
	return connect.ParsePosition(o.from, time.Now())
}

func (o consumeFlags) check(position connect.Position) error {
	switch {
	case o.max < 0:
		return exit.Usagef("--max %d: want 0 or more", o.max)
	case o.layout != "" && o.format == output.JSON:
		return exit.Usagef("--format and -o json both say how to print: give one")
	case o.group != "" && len(o.partitions) > 0:
		return exit.Usagef("a group's partitions are assigned to its members: leave --partition or --group away")
	case o.group != "" && !position.IsBeginning() && !position.IsEnd():
		return exit.Usagef("with --group, --from is beginning or end; `sluice group reset` moves a group elsewhere")
	}
	return nil
}

// printer makes bytes of a record.
func (o consumeFlags) printer() (func(to []byte, r *kgo.Record) ([]byte, error), error) {
	if o.format == output.JSON {
		return appendJSON, nil
	}
	if o.layout == "" {
		return func(to []byte, r *kgo.Record) ([]byte, error) { return append(append(to, r.Value...), '\n'), nil }, nil
	}
	formatter, err := kgo.NewRecordFormatter(o.layout)
	if err != nil {
		return nil, exit.Usagef("--format: %w", err)
	}
	return func(to []byte, r *kgo.Record) ([]byte, error) { return formatter.AppendRecord(to, r), nil }, nil
}

func consume(cmd *cobra.Command, f *connect.Flags, o consumeFlags, topics []string) error {
	position, err := o.position()
	if err != nil {
		return err
	}
	if err := o.check(position); err != nil {
		return err
	}
	format, err := o.printer()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	remaining := &remaining{}
	options := []kgo.Opt{kgo.KeepControlRecords(), kgo.FetchMaxWait(time.Second)}
	if o.committed {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if o.group != "" {
		start := kgo.NewOffset().AtEnd()
		if position.IsBeginning() {
			start = kgo.NewOffset().AtStart()
		}
		options = append(options, kgo.ConsumerGroup(o.group), kgo.ConsumeTopics(topics...), kgo.ConsumeStartOffset(start), kgo.ConsumeResetOffset(start),
			kgo.AutoCommitMarks(), kgo.BlockRebalanceOnPoll(),
			kgo.OnPartitionsAssigned(remaining.assigned), kgo.AdjustFetchOffsetsFn(remaining.starting), kgo.OnPartitionsLost(remaining.revoked),
			kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, partitions map[string][]int32) {
				if err := cl.CommitMarkedOffsets(ctx); err != nil { // the group reads those records again
					fmt.Fprintln(cmd.ErrOrStderr(), "sluice: cannot commit before partitions go to another member:", err) //nolint:errcheck // a warning
				}
				remaining.revoked(ctx, cl, partitions)
			}))
	}
	c, err := openConsumer(ctx, f, o, topics, position, remaining, options)
	if err != nil {
		return err
	}
	defer c.Close()
	return consumeLoop(ctx, cmd, c, o, remaining, format)
}

// openConsumer connects, finds out where the partitions start and end, and starts to fetch.
func openConsumer(ctx context.Context, f *connect.Flags, o consumeFlags, topics []string, position connect.Position, remaining *remaining, options []kgo.Opt) (*connect.Client, error) {
	// Offsets are asked for by a client of its own: the other one starts to fetch, or to join the group, when it is made.
	asking, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer asking.Close()
	bounded, cancel := asking.Bound(ctx)
	defer cancel()
	ranges, err := asking.Ranges(bounded, o.committed, topics...)
	if err != nil {
		return nil, err
	}
	if err := keepPartitions(ranges, o.partitions); err != nil {
		return nil, err
	}
	offsets, err := asking.Resolve(bounded, position, ranges)
	if err != nil {
		return nil, err
	}
	remaining.start(ranges, offsets, o.untilEnd, o.group != "")
	if o.group != "" {
		return f.Open(ctx, options...)
	}
	assigned := map[string]map[int32]kgo.Offset{}
	for topic, partitions := range offsets {
		assigned[topic] = map[int32]kgo.Offset{}
		for partition, at := range partitions {
			assigned[topic][partition] = kgo.NewOffset().At(at)
		}
	}
	return f.Open(ctx, append(options, kgo.ConsumePartitions(assigned))...)
}

// keepPartitions takes away the partitions that were not asked for.
func keepPartitions(ranges map[string]map[int32]connect.Range, only []int) error {
	if len(only) == 0 {
		return nil
	}
	for topic, partitions := range ranges {
		kept := map[int32]connect.Range{}
		for _, partition := range only {
			r, ok := partitions[int32(partition)]
			if !ok || partition != int(int32(partition)) {
				return exit.With(exit.NotFound, fmt.Errorf("the topic %s has no partition %d, only 0 to %d", topic, partition, len(partitions)-1))
			}
			kept[int32(partition)] = r
		}
		ranges[topic] = kept
	}
	return nil
}

// pollTime is how long a poll waits before it is asked again whether there is anything left to wait for.
const pollTime = 200 * time.Millisecond

// warnAfter is how long a consumer with an unreachable broker is silent about it.
const warnAfter = 3 * time.Second

// idleEnd is how long --until-end waits for a record that should come and does not: compaction can take away the last ones before the end.
const idleEnd = 10 * time.Second

// consumeLoop prints records until there is a reason to stop.
func consumeLoop(ctx context.Context, cmd *cobra.Command, c *connect.Client, o consumeFlags, remaining *remaining, format func([]byte, *kgo.Record) ([]byte, error)) error {
	out, shown := cmd.OutOrStdout(), newProgress(cmd.ErrOrStderr(), cmd.OutOrStdout())
	defer shown.clear()
	var printed int64
	var buffer []byte
	lastHeard, warned := time.Now(), false
	for ctx.Err() == nil && !remaining.done() && (o.max == 0 || printed < o.max) {
		polling, cancel := context.WithTimeout(ctx, pollTime)
		fetches := c.PollRecords(polling, pollMax(o.max, printed))
		cancel()
		if err := fetchError(c, fetches); err != nil {
			c.AllowRebalance()
			return err
		}
		if fetches.NumRecords() > 0 {
			lastHeard, warned = time.Now(), false
		} else if problem := c.Unreachable(); problem != "" && !warned && time.Since(lastHeard) > warnAfter {
			warned = true
			fmt.Fprintln(cmd.ErrOrStderr(), "sluice: still trying:", problem) //nolint:errcheck // a warning
		}
		if o.untilEnd && time.Since(lastHeard) > idleEnd && c.Unreachable() == "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "sluice: no record came for %v; those before the end are taken to be compacted away\n", idleEnd) //nolint:errcheck // a warning
			break
		}
		buffer = buffer[:0]
		var marks []*kgo.Record
		for records := fetches.RecordIter(); !records.Done(); {
			r := records.Next()
			if wanted := remaining.read(r); !wanted || r.Attrs.IsControl() || o.max > 0 && printed == o.max {
				continue
			}
			var err error
			if buffer, err = format(buffer, r); err != nil {
				return err
			}
			printed++
			shown.add(1, recordBytes(r.Key, r.Value))
			marks = append(marks, r)
		}
		if _, err := out.Write(buffer); err != nil {
			if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
				return nil // the reader has enough, as head has
			}
			return fmt.Errorf("cannot print the records: %w", err)
		}
		c.MarkCommitRecords(marks...)
		c.AllowRebalance()
	}
	if o.group == "" {
		return nil
	}
	committing, cancel := c.Bound(context.WithoutCancel(ctx))
	defer cancel()
	if err := c.CommitMarkedOffsets(committing); err != nil {
		return c.Refused("commit the offsets of the group "+o.group, err, "")
	}
	return nil
}

// pollMax is how many records one poll may return: those that are marked as read must have been printed.
func pollMax(limit, printed int64) int {
	const most = 10_000
	if limit == 0 {
		return most
	}
	return int(min(limit-printed, most))
}

// fetchError is what the broker refused for good. A poll that found nothing in time is none, nor is a broker that is away for a while.
func fetchError(c *connect.Client, fetches kgo.Fetches) error {
	for _, e := range fetches.Errors() {
		switch {
		case errors.Is(e.Err, context.DeadlineExceeded), errors.Is(e.Err, context.Canceled), kerr.IsRetriable(e.Err):
		case errors.Is(e.Err, kgo.ErrClientClosed):
			return e.Err
		case e.Topic == "":
			return c.Explain(e.Err)
		default:
			return c.Refused(fmt.Sprintf("read %s, partition %d", e.Topic, e.Partition), e.Err, "")
		}
	}
	return nil
}
