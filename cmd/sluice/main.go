// Command sluice is a broker that speaks Apache Kafka's protocol, and the tools that go with it.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"sluice/cmd/sluice/cli/exit"
)

// version is set when a release is built.
var version string

func main() {
	cobra.EnableCommandSorting = false // they are listed in the order in which they are needed
	if err := newRootCommand().ExecuteContext(context.Background()); err != nil {
		if !exit.IsSilent(err) {
			fmt.Fprintln(os.Stderr, "sluice:", err)
		}
		os.Exit(exit.Code(err))
	}
}

func newRootCommand() *cobra.Command {
	serve := newServeCommand()
	root := &cobra.Command{
		Use:   "sluice",
		Short: "A Kafka-compatible broker in one binary",
		Long: `Sluice is a broker that existing Kafka clients and tools use unchanged.

Without a command it serves: one node on localhost:9092 with nothing to configure.
With --config it takes the server.properties of an Apache Kafka broker.

The commands that talk to a cluster work with any broker that speaks Kafka's protocol. They look for it on
localhost:9092, or where $SLUICE_BOOTSTRAP, -b or a context says.

Exit codes: 0 done, 1 refused or failed, 2 wrong command line, 3 no broker reached, 4 no such topic, group or broker.`,
		Args:          exit.Args(cobra.NoArgs),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          serve.RunE,
	}
	root.Flags().AddFlagSet(serve.Flags())
	root.AddGroup(&cobra.Group{ID: brokerGroup, Title: "A broker of your own:"}, &cobra.Group{ID: clusterGroup, Title: "Any cluster:"}, &cobra.Group{Title: "This program:"})
	for _, cmd := range []*cobra.Command{serve, newFormatCommand(), newRandomUUIDCommand(), newDumpCommand()} {
		cmd.GroupID = brokerGroup
		root.AddCommand(cmd)
	}
	root.AddCommand(newClientCommands()...)
	root.AddCommand(newDocsCommand(), newVersionCommand())
	root.SetUsageFunc(usage)
	root.SetFlagErrorFunc(exit.Flags)
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "sluice", programVersion())
			return err
		},
	}
}

// programVersion is the release, or what the Go command knows of a build that is none.
func programVersion() string {
	if version != "" {
		return version
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		return build.Main.Version
	}
	return "devel"
}
