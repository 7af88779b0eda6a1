package admin

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// NewTopicCommand is `sluice topic`.
func NewTopicCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topic",
		Short: "Create, list, describe, alter and delete topics",
		Args:  exit.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTopicCreateCommand(), newTopicListCommand(), newTopicDescribeCommand(), newTopicAlterCommand(), newTopicDeleteCommand())
	return cmd
}

// changedTopic is what create and delete say of each topic.
type changedTopic struct {
	Topic      string `json:"topic"`
	ID         string `json:"id,omitempty"`
	Partitions int32  `json:"partitions,omitempty"`
	Replicas   int16  `json:"replicas,omitempty"`
	Changed    bool   `json:"changed"`
	Error      string `json:"error,omitempty"`
}

func newTopicCreateCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	var partitions int32
	var replicas int16
	var set []string
	var ifNotExists, dryRun bool
	cmd := &cobra.Command{
		Use:   "create TOPIC...",
		Short: "Create topics",
		Long: `Create topics. Partitions and replicas are the broker's defaults (num.partitions, default.replication.factor) unless
they are given. On success a client can produce to the topics at once.`,
		Example: `  sluice topic create orders --partitions 3
  sluice topic create audit --set retention.ms=604800000 --set cleanup.policy=delete
  sluice topic create orders --if-not-exists`,
		Args: exit.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, topics []string) error {
			configs, err := parsePairs("--set", set)
			if err != nil {
				return err
			}
			c, ctx, done, err := client(cmd, &f)
			if err != nil {
				return err
			}
			defer done()
			create := c.Admin.CreateTopics
			if dryRun {
				create = c.Admin.ValidateCreateTopics
			}
			created, err := create(ctx, partitions, replicas, configs, topics...)
			if err != nil {
				return c.Explain(err)
			}
			var results []changedTopic
			var errs []error
			for _, t := range created.Sorted() {
				result := changedTopic{Topic: t.Topic, Changed: t.Err == nil && !dryRun, Partitions: t.NumPartitions, Replicas: t.ReplicationFactor}
				if t.Err == nil && !dryRun {
					result.ID = topicID(t.ID)
				}
				if t.Err != nil && (!ifNotExists || !errors.Is(t.Err, kerr.TopicAlreadyExists)) {
					err := c.Refused("create the topic "+t.Topic, t.Err, t.ErrMessage)
					result.Error = err.Error()
					errs = append(errs, err)
				}
				results = append(results, result)
			}
			return errors.Join(format.Print(cmd.OutOrStdout(), results, func(w io.Writer) error {
				for _, r := range results {
					switch {
					case r.Error != "":
					case dryRun:
						fmt.Fprintf(w, "%s could be created\n", r.Topic)
					case r.Changed:
						fmt.Fprintf(w, "created %s, %s\n", r.Topic, count(int(r.Partitions), "partition"))
					default:
						fmt.Fprintf(w, "%s exists already\n", r.Topic)
					}
				}
				return nil
			}), errors.Join(errs...))
		},
	}
	flags := cmd.Flags()
	flags.Int32VarP(&partitions, "partitions", "p", -1, "split each topic into `N` partitions; -1 is the broker's default")
	flags.Int16VarP(&replicas, "replicas", "r", -1, "keep `N` copies of each partition; -1 is the broker's default")
	flags.StringArrayVarP(&set, "set", "s", nil, "set a config of the topics, `KEY=VALUE`; may be given several times")
	flags.BoolVar(&ifNotExists, "if-not-exists", false, "succeed when a topic exists already, and leave it as it is")
	flags.BoolVar(&dryRun, "dry-run", false, "only ask the broker whether it would")
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

// listedTopic is a row of `sluice topic list`.
type listedTopic struct {
	Topic      string `json:"topic"`
	ID         string `json:"id"`
	Partitions int    `json:"partitions"`
	Replicas   int    `json:"replicas"`
	Internal   bool   `json:"internal"`
}

func newTopicListCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	var internal bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the topics",
		Example: `  sluice topic list
  sluice topic list --internal -o json`,
		Args: exit.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, ctx, done, err := client(cmd, &f)
			if err != nil {
				return err
			}
			defer done()
			list := c.Admin.ListTopics
			if internal {
				list = c.Admin.ListTopicsWithInternal
			}
			topics, err := list(ctx)
			if err != nil {
				return c.Explain(err)
			}
			listed := []listedTopic{}
			for _, t := range topics.Sorted() {
				listed = append(listed, listedTopic{t.Topic, topicID(t.ID), len(t.Partitions), t.Partitions.NumReplicas(), t.IsInternal})
			}
			return format.Print(cmd.OutOrStdout(), listed, func(w io.Writer) error {
				table := output.NewTable("TOPIC", "PARTITIONS", "REPLICAS")
				for _, t := range listed {
					table.Row(t.Topic, t.Partitions, t.Replicas)
				}
				return table.Write(w)
			})
		},
	}
	cmd.Flags().BoolVar(&internal, "internal", false, "list the cluster's own topics, too")
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

func newTopicDeleteCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	var ifExists bool
	cmd := &cobra.Command{
		Use:   "delete TOPIC...",
		Short: "Delete topics and all of their records",
		Long:  "Delete topics and all of their records. There is no way back, and no question first.",
		Example: `  sluice topic delete orders
  sluice topic delete orders audit --if-exists`,
		Args:              exit.Args(cobra.MinimumNArgs(1)),
		ValidArgsFunction: CompleteTopics(&f),
		RunE: func(cmd *cobra.Command, topics []string) error {
			c, ctx, done, err := client(cmd, &f)
			if err != nil {
				return err
			}
			defer done()
			deleted, err := c.Admin.DeleteTopics(ctx, topics...)
			if err != nil {
				return c.Explain(err)
			}
			var results []changedTopic
			var errs []error
			for _, t := range deleted.Sorted() {
				result := changedTopic{Topic: t.Topic, Changed: t.Err == nil}
				if t.Err != nil && (!ifExists || !errors.Is(t.Err, kerr.UnknownTopicOrPartition)) {
					err := refusedTopic(c, "delete", t.Topic, t.Err, t.ErrMessage)
					result.Error = err.Error()
					errs = append(errs, err)
				}
				results = append(results, result)
			}
			return errors.Join(format.Print(cmd.OutOrStdout(), results, func(w io.Writer) error {
				for _, r := range results {
					switch {
					case r.Changed:
						fmt.Fprintf(w, "deleted %s\n", r.Topic)
					case r.Error == "":
						fmt.Fprintf(w, "%s does not exist\n", r.Topic)
					}
				}
				return nil
			}), errors.Join(errs...))
		},
	}
	cmd.Flags().BoolVar(&ifExists, "if-exists", false, "succeed when a topic does not exist")
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

// parsePairs reads KEY=VALUE arguments; what is where they stand, for the error.
func parsePairs(what string, pairs []string) (map[string]*string, error) {
	configs := map[string]*string{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return nil, exit.Usagef("%s %s: want KEY=VALUE", what, pair)
		}
		configs[key] = &value
	}
	return configs, nil
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
