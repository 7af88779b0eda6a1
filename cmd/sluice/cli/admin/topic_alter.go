package admin

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// alteredTopic is what `sluice topic alter` has done.
type alteredTopic struct {
	Topic      string            `json:"topic"`
	Partitions int               `json:"partitions,omitempty"`
	Set        map[string]string `json:"set,omitempty"`
	Deleted    []string          `json:"deleted,omitempty"`
}

func newTopicAlterCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	var partitions int
	var set, unset []string
	cmd := &cobra.Command{
		Use:   "alter TOPIC",
		Short: "Add partitions to a topic, or change its configs",
		Long: `Add partitions to a topic, or change its configs. Partitions are never taken away, and records stay where they are:
with more partitions, the same key may go to another partition than before.`,
		Example: `  sluice topic alter orders --partitions 6
  sluice topic alter orders --set retention.ms=86400000 --unset cleanup.policy`,
		Args:              exit.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: CompleteTopics(&f),
		RunE: func(cmd *cobra.Command, args []string) error {
			topic := args[0]
			changes, err := parseChanges(set, unset)
			if err != nil {
				return err
			}
			if partitions == 0 && len(changes) == 0 {
				return exit.Usagef("nothing to alter: give --partitions N, --set KEY=VALUE or --unset KEY")
			}
			c, ctx, done, err := client(cmd, &f)
			if err != nil {
				return err
			}
			defer done()
			if _, err := findTopic(ctx, c, topic); err != nil {
				return err
			}
			result := alteredTopic{Topic: topic, Partitions: partitions, Deleted: unset}
			if len(changes) > 0 {
				if err := alterConfigs(ctx, c, "topic", topic, changes); err != nil {
					return err
				}
				result.Set = map[string]string{}
				for _, change := range changes {
					if change.Op == kadm.SetConfig {
						result.Set[change.Name] = *change.Value
					}
				}
			}
			if partitions != 0 {
				altered, err := c.Admin.UpdatePartitions(ctx, partitions, topic)
				if err == nil {
					err = refusedTopic(c, "alter", topic, altered[topic].Err, altered[topic].ErrMessage)
				}
				if err != nil {
					if len(changes) > 0 {
						err = errors.Join(err, errors.New("the configs were altered before that"))
					}
					return c.Explain(err)
				}
			}
			return format.Print(cmd.OutOrStdout(), result, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "altered %s\n", topic)
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&partitions, "partitions", "p", 0, "have `N` partitions from now on, more than there are")
	flags.StringArrayVarP(&set, "set", "s", nil, "set a config, `KEY=VALUE`; may be given several times")
	flags.StringArrayVar(&unset, "unset", nil, "take the broker's value again for a config, `KEY`; may be given several times")
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

// parseChanges reads what is to be set and unset.
func parseChanges(set, unset []string) ([]kadm.AlterConfig, error) {
	configs, err := parsePairs("--set", set)
	if err != nil {
		return nil, err
	}
	var changes []kadm.AlterConfig
	for _, key := range sortedKeys(configs) {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: configs[key]})
	}
	for _, key := range unset {
		if _, both := configs[key]; both {
			return nil, exit.Usagef("%s is both set and unset", key)
		}
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: key})
	}
	return changes, nil
}
