package admin

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// describedTopic is what `sluice topic describe` says of a topic.
type describedTopic struct {
	Topic      string               `json:"topic"`
	ID         string               `json:"id"`
	Internal   bool                 `json:"internal"`
	Partitions []describedPartition `json:"partitions"`
	// Configs are those that differ from the broker's.
	Configs map[string]string `json:"configs"`
}

type describedPartition struct {
	Partition   int32   `json:"partition"`
	Leader      int32   `json:"leader"` // -1: none
	LeaderEpoch int32   `json:"leaderEpoch"`
	Replicas    []int32 `json:"replicas"`
	ISR         []int32 `json:"isr"`
	Offline     []int32 `json:"offlineReplicas"`
	StartOffset int64   `json:"startOffset"` // -1: not known
	EndOffset   int64   `json:"endOffset"`   // exclusive; -1: not known
	Error       string  `json:"error,omitempty"`
}

func newTopicDescribeCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	cmd := &cobra.Command{
		Use:   "describe TOPIC...",
		Short: "Show partitions, replicas, offsets and configs of topics",
		Long: `Show partitions, replicas, offsets and configs of topics. START is the first offset that can be read, END the one that
the next record will get. Of the configs, those are shown that are set for the topic.`,
		Example: `  sluice topic describe orders
  sluice topic describe orders audit -o json`,
		Args:              exit.Args(cobra.MinimumNArgs(1)),
		ValidArgsFunction: CompleteTopics(&f),
		RunE: func(cmd *cobra.Command, topics []string) error {
			c, ctx, done, err := client(cmd, &f)
			if err != nil {
				return err
			}
			defer done()
			described := []describedTopic{}
			var errs []error
			for _, topic := range topics {
				d, err := describeTopic(ctx, c, topic)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				described = append(described, d)
			}
			return errors.Join(format.Print(cmd.OutOrStdout(), described, func(w io.Writer) error {
				for i, d := range described {
					if i > 0 {
						fmt.Fprintln(w)
					}
					if err := d.write(w); err != nil {
						return err
					}
				}
				return nil
			}), errors.Join(errs...))
		},
	}
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

func describeTopic(ctx context.Context, c *connect.Client, topic string) (describedTopic, error) {
	t, err := findTopic(ctx, c, topic)
	if err != nil {
		return describedTopic{}, err
	}
	d := describedTopic{Topic: t.Topic, ID: topicID(t.ID), Internal: t.IsInternal, Configs: map[string]string{}}
	// A partition without a leader has no offsets; what is known of it is shown all the same.
	start, startErr := c.Admin.ListStartOffsets(ctx, topic)
	end, endErr := c.Admin.ListEndOffsets(ctx, topic)
	for _, p := range t.Partitions.Sorted() {
		row := describedPartition{
			Partition: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch,
			Replicas: orEmpty(p.Replicas), ISR: orEmpty(p.ISR), Offline: orEmpty(p.OfflineReplicas), StartOffset: -1, EndOffset: -1,
		}
		first, firstOK := start.Lookup(topic, p.Partition)
		next, nextOK := end.Lookup(topic, p.Partition)
		if firstOK && first.Err == nil {
			row.StartOffset = first.Offset
		}
		if nextOK && next.Err == nil {
			row.EndOffset = next.Offset
		}
		if err := cmp.Or(p.Err, first.Err, next.Err, startErr, endErr); err != nil {
			row.Error = c.Explain(err).Error()
		}
		d.Partitions = append(d.Partitions, row)
	}
	configs, err := describeConfigs(ctx, c, "topic", topic)
	if err != nil {
		return d, err
	}
	for _, config := range configs {
		if config.Source == kmsg.ConfigSourceDynamicTopicConfig {
			d.Configs[config.Key] = configValue(config)
		}
	}
	return d, nil
}

func (d describedTopic) write(w io.Writer) error {
	fmt.Fprintf(w, "%s  id %s  %s\n", d.Topic, d.ID, count(len(d.Partitions), "partition"))
	table := output.NewTable("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END")
	var problems []string
	for _, p := range d.Partitions {
		table.Row(p.Partition, orNone(int64(p.Leader)), orNone(int64(p.LeaderEpoch)), join(p.Replicas), join(p.ISR), orNone(p.StartOffset), orNone(p.EndOffset))
		if p.Error != "" {
			problems = append(problems, fmt.Sprintf("partition %d: %s\n", p.Partition, p.Error))
		}
		if len(p.Offline) > 0 {
			problems = append(problems, fmt.Sprintf("partition %d: offline replicas %s\n", p.Partition, join(p.Offline)))
		}
	}
	if err := table.Write(w); err != nil {
		return err
	}
	if len(d.Configs) > 0 {
		configs := output.NewTable("CONFIG", "VALUE")
		for _, key := range sortedKeys(d.Configs) {
			configs.Row(key, d.Configs[key])
		}
		if err := configs.Write(w); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, strings.Join(problems, ""))
	return err
}

// findTopic asks for one topic, and never creates it.
func findTopic(ctx context.Context, c *connect.Client, topic string) (kadm.TopicDetail, error) {
	topics, err := c.Admin.ListTopicsWithInternal(ctx, topic)
	if err != nil {
		return kadm.TopicDetail{}, c.Explain(err)
	}
	t, ok := topics[topic]
	if !ok {
		return t, c.Explain(kerr.UnknownTopicOrPartition)
	}
	if t.Err != nil {
		return t, refusedTopic(c, "describe", topic, t.Err, "")
	}
	return t, nil
}

// refusedTopic is the error of what was attempted with a topic. The commonest one gets words of its own.
func refusedTopic(c *connect.Client, verb, topic string, err error, message string) error {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return exit.With(exit.NotFound, fmt.Errorf("the topic %s does not exist; `sluice topic list` shows those that do", topic))
	}
	return c.Refused(verb+" the topic "+topic, err, message)
}

func orEmpty(ids []int32) []int32 {
	if ids == nil {
		return []int32{}
	}
	return ids
}

// topicID prints an id as Kafka does; empty when the broker has none.
func topicID(id kadm.TopicID) string {
	if id == (kadm.TopicID{}) {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// orNone is a number, or "-" for -1.
func orNone(n int64) any {
	if n < 0 {
		return ""
	}
	return n
}

func join(ids []int32) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
