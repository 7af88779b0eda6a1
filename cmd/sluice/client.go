package main

import (
	"github.com/spf13/cobra"

	"sluice/cmd/sluice/cli/admin"
	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/doctor"
	"sluice/cmd/sluice/cli/record"
	"sluice/cmd/sluice/cli/wait"
)

// The groups of commands in `sluice --help`.
const (
	brokerGroup  = "broker"
	clusterGroup = "cluster"
)

// newClientCommands are the commands that talk to a broker, Sluice's or Apache Kafka's.
func newClientCommands() []*cobra.Command {
	commands := []*cobra.Command{
		admin.NewTopicCommand(),
		record.NewProduceCommand(),
		record.NewConsumeCommand(),
		admin.NewGroupCommand(),
		admin.NewConfigCommand(),
		admin.NewClusterCommand(),
		record.NewPerfCommand(),
		doctor.NewCommand(),
		wait.NewCommand(),
		connect.NewContextCommand(),
	}
	for _, cmd := range commands {
		cmd.GroupID = clusterGroup
	}
	return commands
}
