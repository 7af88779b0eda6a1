package main

import (
	"io"

	"github.com/spf13/cobra"

	"sluice/broker/api"
	"sluice/broker/config"
	"sluice/broker/metrics"
)

// references are the pages of docs/ that are computed from the program's tables.
var references = []struct {
	name, short string
	write       func(io.Writer) error
}{
	{"apis", "Print every API and the versions that are served", api.WriteDoc},
	{"config", "Print every config, with type, default and meaning", config.WriteMarkdown},
	{"metrics", "Print every metric, with unit and meaning", metrics.WriteDoc},
}

func newDocsCommand() *cobra.Command {
	docs := &cobra.Command{Use: "docs", Short: "Print reference pages from the program's own tables"}
	for _, page := range references {
		docs.AddCommand(&cobra.Command{
			Use: page.name, Short: page.short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return page.write(cmd.OutOrStdout()) },
		})
	}
	return docs
}
