// Package admin has the commands that look at a cluster and change it: topics, groups, configs and the brokers.
package admin

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sluice/cmd/sluice/cli/connect"
)

// completionTimeout bounds what a press of the tab key waits for.
const completionTimeout = 2 * time.Second

// completer asks the cluster for the names that a shell may complete. Whoever presses tab gets names or nothing, never an error.
type completer func(ctx context.Context, c *connect.Client) []string

func (of completer) function(f *connect.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		f.Timeout = min(f.Timeout, completionTimeout)
		ctx := context.Background()
		if cmd.Context() != nil {
			ctx = cmd.Context()
		}
		c, err := f.Open(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		bounded, cancel := c.Bound(ctx)
		defer cancel()
		return of(bounded, c), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteTopics completes names of topics, internal ones left out.
func CompleteTopics(f *connect.Flags) cobra.CompletionFunc {
	return completer(func(ctx context.Context, c *connect.Client) []string {
		topics, err := c.Admin.ListTopics(ctx)
		if err != nil {
			return nil
		}
		return topics.Names()
	}).function(f)
}

func completeGroups(f *connect.Flags) cobra.CompletionFunc {
	return completer(func(ctx context.Context, c *connect.Client) []string {
		groups, err := c.Admin.ListGroups(ctx)
		if err != nil {
			return nil
		}
		return groups.Groups()
	}).function(f)
}

// client is what each command of this package starts with: a connection, and a context for its questions.
func client(cmd *cobra.Command, f *connect.Flags) (c *connect.Client, ctx context.Context, done func(), err error) {
	c, err = f.Open(cmd.Context())
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := c.Bound(cmd.Context())
	return c, ctx, func() { cancel(); c.Close() }, nil
}
