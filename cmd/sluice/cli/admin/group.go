package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// NewGroupCommand is `sluice group`.
func NewGroupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "List, describe, reset and delete consumer groups",
		Args:  exit.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGroupListCommand(), newGroupDescribeCommand(), newGroupResetCommand(), newGroupDeleteCommand())
	return cmd
}

// listedGroup is a row of `sluice group list`.
type listedGroup struct {
	Group       string `json:"group"`
	State       string `json:"state"`
	Type        string `json:"type"`
	Protocol    string `json:"protocolType"`
	Coordinator int32  `json:"coordinator"`
}

func newGroupListCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	var states []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the groups",
		Example: `  sluice group list
  sluice group list --state Stable,Empty -o json`,
		Args: exit.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, ctx, done, err := client(cmd, &f)
			if err != nil {
				return err
			}
			defer done()
			groups, err := c.Admin.ListGroups(ctx, states...)
			if err != nil {
				return c.Explain(err)
			}
			listed := []listedGroup{}
			for _, g := range groups.Sorted() {
				listed = append(listed, listedGroup{g.Group, g.State, g.GroupType, g.ProtocolType, g.Coordinator})
			}
			return format.Print(cmd.OutOrStdout(), listed, func(w io.Writer) error {
				table := output.NewTable("GROUP", "STATE", "TYPE", "PROTOCOL", "COORDINATOR")
				for _, g := range listed {
					table.Row(g.Group, g.State, g.Type, g.Protocol, g.Coordinator)
				}
				return table.Write(w)
			})
		},
	}
	cmd.Flags().StringSliceVar(&states, "state", nil, "only groups in `STATE`: Empty, Stable, PreparingRebalance, CompletingRebalance, Dead; or several with commas")
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

// describedGroup is what `sluice group describe` says of a group.
type describedGroup struct {
	Group       string           `json:"group"`
	State       string           `json:"state"`
	Protocol    string           `json:"protocol"`
	Coordinator int32            `json:"coordinator"`
	TotalLag    int64            `json:"totalLag"`
	Members     []groupMember    `json:"members"`
	Partitions  []groupPartition `json:"partitions"`
}

type groupMember struct {
	MemberID   string `json:"memberId"`
	InstanceID string `json:"instanceId,omitempty"`
	ClientID   string `json:"clientId"`
	Host       string `json:"host"`
	Partitions int    `json:"partitions"`
}

type groupPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed int64  `json:"committedOffset"` // -1: none
	End       int64  `json:"endOffset"`       // exclusive; -1: not known
	Lag       int64  `json:"lag"`             // -1: not known
	MemberID  string `json:"memberId,omitempty"`
	ClientID  string `json:"clientId,omitempty"`
	Error     string `json:"error,omitempty"`
}

func newGroupDescribeCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	cmd := &cobra.Command{
		Use:   "describe GROUP...",
		Short: "Show members, committed offsets and lag of groups",
		Long: `Show members, committed offsets and lag of groups. LAG is how many records are between the committed offset and the end
of the partition.`,
		Example: `  sluice group describe readers
  sluice group describe readers -o json`,
		Args:              exit.Args(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completeGroups(&f),
		RunE: func(cmd *cobra.Command, groups []string) error {
			c, ctx, done, err := client(cmd, &f)
			if err != nil {
				return err
			}
			defer done()
			described := []describedGroup{}
			var errs []error
			for _, group := range groups {
				d, err := describeGroup(ctx, c, group)
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

func describeGroup(ctx context.Context, c *connect.Client, group string) (describedGroup, error) {
	lags, err := c.Admin.Lag(ctx, group)
	if err != nil {
		return describedGroup{}, c.Explain(err)
	}
	l := lags[group]
	if err := refusedGroup(c, "describe", group, cmp.Or(l.DescribeErr, l.FetchErr), ""); err != nil {
		return describedGroup{}, err
	}
	// Brokers before Kafka 4.0 answer Dead for a group that they do not know.
	if l.State == "Dead" && len(l.Lag) == 0 {
		return describedGroup{}, refusedGroup(c, "describe", group, kerr.GroupIDNotFound, "")
	}
	d := describedGroup{
		Group: group, State: l.State, Protocol: l.Protocol, Coordinator: l.Coordinator.NodeID, TotalLag: l.Lag.Total(),
		Members: []groupMember{}, Partitions: []groupPartition{},
	}
	for _, m := range l.Members {
		row := groupMember{MemberID: m.MemberID, ClientID: m.ClientID, Host: m.ClientHost}
		if m.InstanceID != nil {
			row.InstanceID = *m.InstanceID
		}
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range a.Topics {
				row.Partitions += len(t.Partitions)
			}
		}
		d.Members = append(d.Members, row)
	}
	for _, p := range l.Lag.Sorted() {
		row := groupPartition{Topic: p.Topic, Partition: p.Partition, Committed: p.Commit.At, End: p.End.Offset, Lag: p.Lag}
		if p.Member != nil {
			row.MemberID, row.ClientID = p.Member.MemberID, p.Member.ClientID
		}
		if p.Err != nil {
			row.End, row.Error = -1, c.Explain(p.Err).Error()
		}
		d.Partitions = append(d.Partitions, row)
	}
	return d, nil
}

func (d describedGroup) write(w io.Writer) error {
	fmt.Fprintf(w, "%s  %s  %s  coordinator %d  total lag %d\n", output.Clean(d.Group), d.State, count(len(d.Members), "member"), d.Coordinator, d.TotalLag)
	if len(d.Members) > 0 {
		members := output.NewTable("MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS")
		for _, m := range d.Members {
			members.Row(m.MemberID, m.InstanceID, m.ClientID, m.Host, m.Partitions)
		}
		if err := members.Write(w); err != nil {
			return err
		}
	}
	if len(d.Partitions) == 0 {
		_, err := fmt.Fprintln(w, "no offsets committed")
		return err
	}
	table := output.NewTable("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT", "PROBLEM")
	for _, p := range d.Partitions {
		table.Row(p.Topic, p.Partition, orNone(p.Committed), orNone(p.End), orNone(p.Lag), p.ClientID, p.Error)
	}
	return table.Write(w)
}

// deletedGroup is what `sluice group delete` says of a group.
type deletedGroup struct {
	Group   string `json:"group"`
	Deleted bool   `json:"deleted"`
	Error   string `json:"error,omitempty"`
}

func newGroupDeleteCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	cmd := &cobra.Command{
		Use:               "delete GROUP...",
		Short:             "Delete groups that have no members, and their committed offsets",
		Example:           `  sluice group delete readers`,
		Args:              exit.Args(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completeGroups(&f),
		RunE: func(cmd *cobra.Command, groups []string) error {
			c, ctx, done, err := client(cmd, &f)
			if err != nil {
				return err
			}
			defer done()
			deleted, err := c.Admin.DeleteGroups(ctx, groups...)
			if err != nil && len(deleted) == 0 {
				return c.Explain(err)
			}
			results := []deletedGroup{}
			var errs []error
			for _, g := range deleted.Sorted() {
				result := deletedGroup{Group: g.Group, Deleted: g.Err == nil}
				if err := refusedGroup(c, "delete", g.Group, g.Err, g.ErrMessage); err != nil {
					result.Error = err.Error()
					errs = append(errs, err)
				}
				results = append(results, result)
			}
			return errors.Join(format.Print(cmd.OutOrStdout(), results, func(w io.Writer) error {
				for _, r := range results {
					if r.Deleted {
						fmt.Fprintf(w, "deleted %s\n", r.Group)
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

// refusedGroup is the error of what was attempted with a group, the commonest ones in words of their own.
func refusedGroup(c *connect.Client, verb, group string, err error, message string) error {
	switch {
	case errors.Is(err, kerr.GroupIDNotFound):
		return exit.With(exit.NotFound, fmt.Errorf("the group %s does not exist; `sluice group list` shows those that do", group))
	case errors.Is(err, kerr.NonEmptyGroup), errors.Is(err, kerr.UnknownMemberID):
		return fmt.Errorf("cannot %s the group %s while it has members: stop its consumers first; `sluice group describe %s` shows them", verb, group, group)
	}
	return c.Refused(verb+" the group "+group, err, message)
}

// members is how many members a group has; 0 for a group that does not exist.
func members(ctx context.Context, c *connect.Client, group string) (n int, exists bool, err error) {
	described, err := c.Admin.DescribeGroups(ctx, group)
	if err != nil {
		return 0, false, c.Explain(err)
	}
	g := described[group]
	if errors.Is(g.Err, kerr.GroupIDNotFound) || g.Err == nil && g.State == "Dead" {
		return 0, false, nil
	}
	return len(g.Members), true, refusedGroup(c, "describe", group, g.Err, g.ErrMessage)
}

func sortedOffsets(offsets kadm.Offsets) []kadm.Offset {
	list := offsets.Sorted()
	slices.SortFunc(list, func(a, b kadm.Offset) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return list
}
