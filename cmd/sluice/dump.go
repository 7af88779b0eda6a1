package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sluice/cmd/sluice/dump"
	"sluice/storage/vfs"
)

func newDumpCommand() *cobra.Command {
	o := dump.Options{ShownBytes: 200}
	cmd := &cobra.Command{
		Use:   "dump FILE...",
		Short: "Print files of a data directory, Sluice's or Apache Kafka's",
		Long: `Print files of a data directory, Sluice's or Apache Kafka's: log segments, indexes, snapshots and checkpoints.
What a file is, is told by its name: ` + strings.Join(dump.Names(), ", ") + `.

The records of __cluster_metadata, __consumer_offsets and __transaction_state are decoded. If bytes in a file are
wrong, the place is said and the exit code is 1.`,
		Example: `  sluice dump --records data/orders-0/00000000000000000000.log
  sluice dump data/*-checkpoint data/orders-0/*index`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			out := cmd.OutOrStdout()
			var errs []error
			for i, file := range files {
				if len(files) > 1 {
					if _, err := fmt.Fprintf(out, "%s# %s\n", [2]string{"", "\n"}[min(i, 1)], file); err != nil {
						return err
					}
				}
				path, err := filepath.Abs(file) // the name of the folder says which topic it is
				if err == nil {
					err = dump.File(out, vfs.OS(), filepath.ToSlash(path), o)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&o.Records, "records", "r", false, "print the records in each batch, too")
	flags.StringVar(&o.Topic, "topic", "", "decode a log as that of `TOPIC`; otherwise the name of its folder says which it is")
	flags.IntVar(&o.ShownBytes, "bytes", o.ShownBytes, "print at most `N` bytes of a key, value or header; 0 prints all")
	return cmd
}
