package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// NewConfigCommand is `sluice config`.
func NewConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Get, set and delete configs of topics and brokers",
		Args:  exit.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigGetCommand(), newConfigSetCommand(), newConfigDeleteCommand())
	return cmd
}

// shownConfig is a row of `sluice config get`.
type shownConfig struct {
	Key    string  `json:"key"`
	Value  *string `json:"value"` // null: none, or a secret
	Source string  `json:"source"`
	Secret bool    `json:"secret,omitempty"`
}

func newConfigGetCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	var all bool
	cmd := &cobra.Command{
		Use:   "get topic|broker NAME [KEY...]",
		Short: "Show configs, and where each value comes from",
		Long: `Show configs, and where each value comes from. NAME is a topic, or a broker's id; "default" stands for all brokers.
Without KEY, those are shown that somebody has set; --all shows the defaults, too.`,
		Example: `  sluice config get topic orders
  sluice config get topic orders retention.ms cleanup.policy
  sluice config get broker 1 --all -o json`,
		Args:              exit.Args(cobra.MinimumNArgs(2)),
		ValidArgsFunction: completeEntities(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, keys := args[0], args[1], args[2:]
			if err := checkEntity(kind, name); err != nil {
				return err
			}
			c, ctx, done, err := client(cmd, &f)
			if err != nil {
				return err
			}
			defer done()
			configs, err := describeConfigs(ctx, c, kind, name)
			if err != nil {
				return err
			}
			for _, key := range keys {
				if !slices.ContainsFunc(configs, func(c kadm.Config) bool { return c.Key == key }) {
					return exit.With(exit.NotFound, fmt.Errorf("a %s has no config %s; `sluice config get %s %s --all` lists those that it has", kind, key, kind, name))
				}
			}
			shown := []shownConfig{}
			for _, config := range configs {
				if len(keys) > 0 && slices.Contains(keys, config.Key) || len(keys) == 0 && (all || config.Source != kmsg.ConfigSourceDefaultConfig) {
					shown = append(shown, shownConfig{config.Key, config.Value, sourceName(config.Source), config.Sensitive})
				}
			}
			return format.Print(cmd.OutOrStdout(), shown, func(w io.Writer) error {
				table := output.NewTable("CONFIG", "VALUE", "SOURCE")
				for _, s := range shown {
					table.Row(s.Key, configValue(kadm.Config{Value: s.Value, Sensitive: s.Secret}), s.Source)
				}
				return table.Write(w)
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "show defaults, too")
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

func newConfigSetCommand() *cobra.Command {
	var f connect.Flags
	cmd := &cobra.Command{
		Use:   "set topic|broker NAME KEY=VALUE...",
		Short: "Set configs; the others stay as they are",
		Long: `Set configs; the others stay as they are. NAME is a topic, or a broker's id; "default" stands for all brokers.
Either all of the values are set, or none.`,
		Example: `  sluice config set topic orders retention.ms=86400000
  sluice config set broker default log.retention.ms=604800000`,
		Args:              exit.Args(cobra.MinimumNArgs(3)),
		ValidArgsFunction: completeEntities(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			configs, err := parsePairs("config set:", args[2:])
			if err != nil {
				return err
			}
			var changes []kadm.AlterConfig
			for _, key := range sortedKeys(configs) {
				changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: configs[key]})
			}
			return runAlter(cmd, &f, args[0], args[1], changes, "set")
		},
	}
	f.Add(cmd)
	return cmd
}

func newConfigDeleteCommand() *cobra.Command {
	var f connect.Flags
	cmd := &cobra.Command{
		Use:   "delete topic|broker NAME KEY...",
		Short: "Delete configs that were set, so that the defaults hold again",
		Example: `  sluice config delete topic orders retention.ms
  sluice config delete broker default log.retention.ms`,
		Args:              exit.Args(cobra.MinimumNArgs(3)),
		ValidArgsFunction: completeEntities(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			var changes []kadm.AlterConfig
			for _, key := range args[2:] {
				changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: key})
			}
			return runAlter(cmd, &f, args[0], args[1], changes, "deleted")
		},
	}
	f.Add(cmd)
	return cmd
}

func runAlter(cmd *cobra.Command, f *connect.Flags, kind, name string, changes []kadm.AlterConfig, done string) error {
	if err := checkEntity(kind, name); err != nil {
		return err
	}
	c, ctx, closeClient, err := client(cmd, f)
	if err != nil {
		return err
	}
	defer closeClient()
	if err := alterConfigs(ctx, c, kind, name, changes); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s of %s %s\n", done, count(len(changes), "config"), kind, name)
	return err
}

// defaultBroker is what a person writes for the configs of all brokers, which Kafka knows by the empty name.
const defaultBroker = "default"

func checkEntity(kind, name string) error {
	switch kind {
	case "topic":
		return nil
	case "broker":
		if id, err := strconv.ParseInt(name, 10, 32); name != defaultBroker && (err != nil || id < 0) {
			return exit.Usagef("broker %s: want a broker's id, or %s for all brokers", name, defaultBroker)
		}
		return nil
	}
	return exit.Usagef("%s: want topic or broker", kind)
}

// describeConfigs asks for all configs of one topic or broker, sorted by key.
func describeConfigs(ctx context.Context, c *connect.Client, kind, name string) ([]kadm.Config, error) {
	var described kadm.ResourceConfigs
	var err error
	if kind == "topic" {
		described, err = c.Admin.DescribeTopicConfigs(ctx, name)
	} else {
		if err := checkBroker(ctx, c, name); err != nil {
			return nil, err
		}
		var ids []int32 // none: the default of all brokers
		if id, err := strconv.ParseInt(name, 10, 32); err == nil {
			ids = append(ids, int32(id))
		}
		described, err = c.Admin.DescribeBrokerConfigs(ctx, ids...)
	}
	if err != nil {
		return nil, c.Explain(err)
	}
	if len(described) != 1 {
		return nil, fmt.Errorf("the broker answered for %d resources where one was asked for", len(described))
	}
	if err := refusedEntity(c, "describe", kind, name, described[0].Err, described[0].ErrMessage); err != nil {
		return nil, err
	}
	configs := described[0].Configs
	slices.SortFunc(configs, func(a, b kadm.Config) int { return strings.Compare(a.Key, b.Key) })
	return configs, nil
}

// alterConfigs changes configs of one topic or broker, all or none.
func alterConfigs(ctx context.Context, c *connect.Client, kind, name string, changes []kadm.AlterConfig) error {
	var altered kadm.AlterConfigsResponses
	var err error
	if kind == "topic" {
		altered, err = c.Admin.AlterTopicConfigs(ctx, changes, name)
	} else {
		if err := checkBroker(ctx, c, name); err != nil {
			return err
		}
		var ids []int32
		if id, err := strconv.ParseInt(name, 10, 32); err == nil {
			ids = append(ids, int32(id))
		}
		altered, err = c.Admin.AlterBrokerConfigs(ctx, changes, ids...)
	}
	if err != nil {
		return c.Explain(err)
	}
	var errs []error
	for _, a := range altered {
		errs = append(errs, refusedEntity(c, "alter", kind, name, a.Err, a.ErrMessage))
	}
	return errors.Join(errs...)
}

// checkBroker finds out whether a broker is in the cluster, before the client waits for one that never comes.
func checkBroker(ctx context.Context, c *connect.Client, name string) error {
	if name == defaultBroker {
		return nil
	}
	brokers, err := c.Admin.ListBrokers(ctx)
	if err != nil {
		return c.Explain(err)
	}
	if ids := brokers.NodeIDs(); !slices.ContainsFunc(ids, func(id int32) bool { return strconv.Itoa(int(id)) == name }) {
		return exit.With(exit.NotFound, fmt.Errorf("the cluster has no broker %s; it has: %s", name, join(ids)))
	}
	return nil
}

func refusedEntity(c *connect.Client, verb, kind, name string, err error, message string) error {
	if kind == "topic" && errors.Is(err, kerr.UnknownTopicOrPartition) {
		return refusedTopic(c, verb, name, err, message)
	}
	return c.Refused(fmt.Sprintf("%s the configs of %s %s", verb, kind, name), err, message)
}

func configValue(c kadm.Config) string {
	if c.Sensitive {
		return "(secret)"
	}
	return c.MaybeValue()
}

// sourceName says where a value comes from, in the words that people use.
func sourceName(s kmsg.ConfigSource) string {
	switch s {
	case kmsg.ConfigSourceDynamicTopicConfig:
		return "topic"
	case kmsg.ConfigSourceDynamicBrokerConfig:
		return "broker"
	case kmsg.ConfigSourceDynamicDefaultBrokerConfig:
		return "all brokers"
	case kmsg.ConfigSourceStaticBrokerConfig:
		return "broker's file"
	case kmsg.ConfigSourceDefaultConfig:
		return "default"
	}
	return strings.ToLower(s.String())
}

func completeEntities(f *connect.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return []string{"topic", "broker"}, cobra.ShellCompDirectiveNoFileComp
		case len(args) == 1 && args[0] == "topic":
			return CompleteTopics(f)(cmd, args, toComplete)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
