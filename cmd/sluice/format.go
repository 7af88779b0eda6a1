package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sluice/broker"
	"sluice/broker/config"
	"sluice/cmd/sluice/cli/exit"
	"sluice/protocol/uuid"
)

func newFormatCommand() *cobra.Command {
	var file, clusterID string
	var set []string
	var ignoreFormatted bool
	cmd := &cobra.Command{
		Use:   "format --config FILE --cluster-id ID",
		Short: "Prepare the data directories that a properties file names",
		Long: `Prepare the log directories that a server.properties names, as Kafka's storage tool does: each gets a
meta.properties, and the metadata directory the first records of the cluster. Nothing that is there is deleted.`,
		Example: `  sluice format --config server.properties --cluster-id "$(sluice random-uuid)"`,
		Args:    exit.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case file == "":
				return exit.Usagef("format needs --config FILE")
			case clusterID == "":
				return exit.Usagef("format needs --cluster-id ID; `sluice random-uuid` makes one")
			}
			f, err := os.Open(file)
			if err != nil {
				return fmt.Errorf("cannot read the properties file: %w", err)
			}
			defer f.Close()
			c := broker.Config{Environment: os.Environ(), Overrides: map[string]string{}}
			if c.Properties, err = config.ParseProperties(f); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			for _, pair := range set {
				key, value, ok := strings.Cut(pair, "=")
				if !ok {
					return exit.Usagef("--set %s: want KEY=VALUE", pair)
				}
				c.Overrides[key] = value
			}
			dirs, err := broker.Format(c, clusterID, ignoreFormatted)
			if err != nil {
				return err
			}
			for _, dir := range dirs {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), "formatted", dir); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&file, "config", "c", "", "a Kafka server.properties `FILE`")
	flags.StringVarP(&clusterID, "cluster-id", "t", "", "the `ID` of the cluster that the directories belong to")
	flags.StringArrayVar(&set, "set", nil, "set a Kafka broker config, `KEY=VALUE`; may be given several times")
	flags.BoolVarP(&ignoreFormatted, "ignore-formatted", "g", false, "leave directories alone that are formatted already")
	return cmd
}

func newRandomUUIDCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "random-uuid",
		Short: "Print a new id, for a cluster",
		Args:  exit.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := uuid.New(rand.Reader)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
			return err
		},
	}
}
