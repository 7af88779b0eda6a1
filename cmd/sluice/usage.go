package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/cmd/sluice/cli/connect"
)

// usage prints how a command is called. Unlike cobra's own text it lists commands in the order in which they are needed, and sets the flags
// of the connection, which most commands have, apart from those that make the command what it is.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() && !(cmd.HasParent() && cmd.HasAvailableSubCommands()) {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND [flags]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	writeCommands(&b, cmd)
	own, connection := splitFlags(cmd)
	writeFlags(&b, "Flags:", own)
	writeFlags(&b, "Connection:", connection)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nMore: %s COMMAND --help\n", cmd.CommandPath())
	}
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	for _, group := range groups {
		fmt.Fprintf(b, "\n%s\n", group.Title)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.GroupID == group.ID {
				fmt.Fprintf(b, "  %-*s  %s\n", cmd.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
}

func splitFlags(cmd *cobra.Command) (own, connection *pflag.FlagSet) {
	own, connection = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags, connection.SortFlags = false, false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Name == "help" || f.Hidden:
		case f.Annotations[connect.Annotation] != nil:
			connection.AddFlag(f)
		default:
			own.AddFlag(f)
		}
	})
	return own, connection
}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if text := flags.FlagUsages(); text != "" {
		fmt.Fprintf(b, "\n%s\n%s", title, text)
	}
}
