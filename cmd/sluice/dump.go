package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/dump"
	"sluice/storage/vfs"
)

func newDumpCommand() *cobra.Command {
	o := dump.Options{ShownBytes: 200}
	verify := false
	cmd := &cobra.Command{
		Use:   "dump FILE... | dump --verify DIRECTORY...",
		Short: "Print files of a data directory, or check all of them",
		Long: `Print files of a data directory, Sluice's or Apache Kafka's: log segments, indexes, snapshots and checkpoints.
What a file is, is told by its name: ` + strings.Join(dump.Names(), ", ") + `.

The records of __cluster_metadata, __consumer_offsets and __transaction_state are decoded. If bytes in a file are
wrong, the place is said and the exit code is 1.

With --verify whole log directories are checked, each file in itself and against the others: checksums and contents of batches,
offsets, entries of indexes, leader epochs, producer snapshots, checkpoints, the cluster's metadata. Every fault is printed with its
place, and the exit code is 1 if there is one. No broker may be running on them. After a crash, faults past the last flush are no loss:
the next start repairs them.`,
		Example: `  sluice dump --records data/orders-0/00000000000000000000.log
  sluice dump data/*-checkpoint data/orders-0/*index
  sluice dump --verify data`,
		Args: exit.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			out := cmd.OutOrStdout()
			if verify {
				return verifyDirectories(out, cmd.ErrOrStderr(), files)
			}
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
	flags.BoolVar(&verify, "verify", false, "check whole log directories instead of printing files")
	flags.BoolVarP(&o.Records, "records", "r", false, "print the records in each batch, too")
	flags.StringVar(&o.Topic, "topic", "", "decode a log as that of `TOPIC`; otherwise the name of its folder says which it is")
	flags.IntVar(&o.ShownBytes, "bytes", o.ShownBytes, "print at most `N` bytes of a key, value or header; 0 prints all")
	return cmd
}

// verifyDirectories checks log directories one after another and prints what is wrong in them, and on progress how far it has come.
func verifyDirectories(out, progress io.Writer, dirs []string) error {
	var errs []error
	for _, dir := range dirs {
		last := time.Now()
		found, err := dump.Verify(vfs.OS(), filepath.ToSlash(dir), dump.VerifyOptions{
			Fault: func(file string, places []string, more int) {
				name := filepath.Join(dir, filepath.FromSlash(file))
				for _, place := range places {
					fmt.Fprintf(out, "%s: %s\n", name, place)
				}
				if more > 0 {
					fmt.Fprintf(out, "%s: and %d more places\n", name, more)
				}
			},
			Progress: func(p dump.Progress) {
				if now := time.Now(); now.Sub(last) >= time.Second {
					last = now
					fmt.Fprintf(progress, "%s: %d of %d logs, %d of %d MiB\n", dir, p.LogsDone, p.Logs, p.BytesDone>>20, p.Bytes>>20)
				}
			},
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		stopped := "left by a clean stop"
		if !found.Clean {
			stopped = "not left by a clean stop"
		}
		fmt.Fprintf(out, "%s, %s: %d logs, %d bytes, %d batches, %d records, %d faults\n", dir, stopped, found.Logs, found.Bytes, found.Batches, found.Count, found.Faults)
		if found.Faults > 0 {
			errs = append(errs, fmt.Errorf("%s has %d faults", dir, found.Faults))
		}
	}
	return errors.Join(errs...)
}
