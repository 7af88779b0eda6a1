package admin

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// resetPartition is a row of what `sluice group reset` did, or would do.
type resetPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Before    int64  `json:"before"` // -1: nothing was committed
	After     int64  `json:"after"`
}

func newGroupResetCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	var to string
	var topics []string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "reset GROUP --to POSITION",
		Short: "Move the committed offsets of a group that has no members",
		Long: `Move the committed offsets of a group that has no members, so that its consumers go on from there. Without --topic, all
partitions move that the group has committed offsets for. A group that does not exist is created, and needs --topic.

POSITION is ` + connect.PositionHelp + `
An offset outside of a partition is moved to its start or end.`,
		Example: `  sluice group reset readers --to beginning
  sluice group reset readers --to 2026-01-31T08:00:00Z --topic orders --dry-run
  sluice group reset readers --to 1200 --topic orders:0,2`,
		Args:              exit.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: completeGroups(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return exit.Usagef("say where to: --to POSITION")
			}
			position, err := connect.ParsePosition(to, time.Now())
			if err != nil {
				return err
			}
			chosen, err := parseChosen(topics)
			if err != nil {
				return err
			}
			c, ctx, done, err := client(cmd, &f)
			if err != nil {
				return err
			}
			defer done()
			rows, err := resetGroup(ctx, c, args[0], chosen, position, dryRun)
			if err != nil {
				return err
			}
			return format.Print(cmd.OutOrStdout(), rows, func(w io.Writer) error {
				table := output.NewTable("TOPIC", "PARTITION", "BEFORE", "AFTER")
				for _, r := range rows {
					table.Row(r.Topic, r.Partition, orNone(r.Before), r.After)
				}
				if err := table.Write(w); err != nil || !dryRun {
					return err
				}
				_, err := fmt.Fprintln(w, "nothing was changed (--dry-run)")
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&to, "to", "", "the new `POSITION`")
	flags.StringArrayVarP(&topics, "topic", "t", nil, "move only `TOPIC`, or TOPIC:PARTITION,PARTITION…; may be given several times")
	flags.BoolVar(&dryRun, "dry-run", false, "show what would change, and change nothing")
	_ = cmd.RegisterFlagCompletionFunc("topic", CompleteTopics(&f)) // the flag exists
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

// parseChosen reads TOPIC and TOPIC:PARTITION,… . A topic without partitions means all of them.
func parseChosen(topics []string) (map[string][]int32, error) {
	chosen := map[string][]int32{}
	for _, text := range topics {
		topic, list, some := strings.Cut(text, ":")
		if topic == "" {
			return nil, exit.Usagef("--topic %s: want TOPIC, or TOPIC:PARTITION,PARTITION…", text)
		}
		if !some {
			chosen[topic] = nil // also where some partitions were named before
			continue
		}
		for number := range strings.SplitSeq(list, ",") {
			partition, err := strconv.ParseInt(number, 10, 32)
			if err != nil || partition < 0 {
				return nil, exit.Usagef("--topic %s: %q is no partition", text, number)
			}
			chosen[topic] = append(chosen[topic], int32(partition))
		}
	}
	return chosen, nil
}

func resetGroup(ctx context.Context, c *connect.Client, group string, chosen map[string][]int32, to connect.Position, dryRun bool) ([]resetPartition, error) {
	n, exists, err := members(ctx, c, group)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		return nil, fmt.Errorf("cannot reset the group %s while it has %s: stop its consumers first; `sluice group describe %s` shows them", group, count(n, "member"), group)
	}
	if !exists && len(chosen) == 0 {
		return nil, exit.With(exit.NotFound, fmt.Errorf("the group %s does not exist: --topic TOPIC would create it", group))
	}
	var committed kadm.OffsetResponses
	if exists {
		if committed, err = c.Admin.FetchOffsets(ctx, group); err != nil {
			return nil, c.Refused("read the offsets of the group "+group, err, "")
		}
	}
	if len(chosen) == 0 {
		committed.Each(func(o kadm.OffsetResponse) { chosen[o.Topic] = append(chosen[o.Topic], o.Partition) })
		if len(chosen) == 0 {
			return nil, fmt.Errorf("the group %s has no committed offsets: say which topics by --topic", group)
		}
	}
	ranges, err := c.Ranges(ctx, false, slices.Sorted(maps.Keys(chosen))...)
	if err != nil {
		return nil, err
	}
	for topic, partitions := range chosen {
		for _, partition := range partitions {
			if _, ok := ranges[topic][partition]; !ok {
				return nil, exit.With(exit.NotFound, fmt.Errorf("the topic %s has no partition %d; it has %s", topic, partition, count(len(ranges[topic]), "partition")))
			}
		}
		if len(partitions) > 0 {
			maps.DeleteFunc(ranges[topic], func(p int32, _ connect.Range) bool { return !slices.Contains(partitions, p) })
		}
	}
	offsets, err := c.Resolve(ctx, to, ranges)
	if err != nil {
		return nil, err
	}
	commit := kadm.Offsets{}
	rows := []resetPartition{}
	for topic, partitions := range offsets {
		for partition, at := range partitions {
			commit.AddOffset(topic, partition, at, -1)
		}
	}
	for _, o := range sortedOffsets(commit) {
		row := resetPartition{o.Topic, o.Partition, -1, o.At}
		if before, ok := committed.Lookup(o.Topic, o.Partition); ok {
			row.Before = before.At
		}
		rows = append(rows, row)
	}
	if !dryRun {
		if err := c.Admin.CommitAllOffsets(ctx, group, commit); err != nil {
			return nil, refusedGroup(c, "reset", group, err, "")
		}
	}
	return rows, nil
}
