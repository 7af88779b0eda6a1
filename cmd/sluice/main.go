// Command sluice is a broker that speaks Apache Kafka's protocol, and the tools that go with it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set when a release is built.
var version string

func main() {
	if err := newRootCommand().ExecuteContext(context.Background()); err != nil {
		var quiet *exitError
		if !errors.As(err, &quiet) {
			fmt.Fprintln(os.Stderr, "sluice:", err)
			os.Exit(1)
		}
		os.Exit(quiet.code)
	}
}

// exitError ends the program with a code after its command has said on its own what is wrong.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func newRootCommand() *cobra.Command {
	serve := newServeCommand()
	root := &cobra.Command{
		Use:   "sluice",
		Short: "A Kafka-compatible broker in one binary",
		Long: `Sluice is a broker that existing Kafka clients and tools use unchanged.

Without a command it serves: one node on localhost:9092 with nothing to configure.
With --config it takes the server.properties of an Apache Kafka broker.`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          serve.RunE,
	}
	root.Flags().AddFlagSet(serve.Flags())
	root.AddCommand(serve, newFormatCommand(), newRandomUUIDCommand(), newDumpCommand(), newDocsCommand(), newVersionCommand())
	root.CompletionOptions.HiddenDefaultCmd = true
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
