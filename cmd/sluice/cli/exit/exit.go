// Package exit says with which code the program ends, so that a script can tell a mistake of its own from a broker that is not there.
package exit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The codes. docs and `sluice --help` name them; they do not change.
const (
	Failed      = 1 // the broker refused, a check failed, or anything else went wrong
	Usage       = 2 // the command line is wrong; nothing was asked of a broker
	Unreachable = 3 // no broker could be reached, or it did not answer in time
	NotFound    = 4 // a topic, partition, group, broker or context that was named does not exist
)

// coded is an error with the code that it ends the program with.
type coded struct {
	code int
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// With gives an error its exit code. nil stays nil.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return &coded{code: code, err: err}
}

// Usagef is an error in the command line.
func Usagef(format string, args ...any) error {
	return With(Usage, fmt.Errorf(format, args...))
}

// silent is the error of a command that has already shown what is wrong.
type silent struct{}

func (silent) Error() string { return "failed" }

// Silently ends the program with a code and without another word.
func Silently(code int) error { return With(code, silent{}) }

// IsSilent reports whether nothing is left to be said about an error.
func IsSilent(err error) bool { return errors.As(err, new(silent)) }

// Code is the code that an error ends the program with: that of the outermost error that has one. Of joined errors the first one counts.
func Code(err error) int {
	var c *coded
	switch {
	case err == nil:
		return 0
	case errors.As(err, &c):
		return c.code
	}
	return Failed
}

// Args turns cobra's complaints about arguments into usage errors that say how to get help.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			if cmd.HasAvailableSubCommands() && len(args) > 0 {
				cmd.SuggestionsMinimumDistance = 2 // letters that may differ, as cobra has it
				if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
					return Usagef("%w: did you mean %s?\nSee: %s --help", err, strings.Join(meant, " or "), cmd.CommandPath())
				}
				return Usagef("%w\nSee: %s --help", err, cmd.CommandPath())
			}
			return Usagef("%w\nUsage: %s\nSee: %s --help", err, cmd.UseLine(), cmd.CommandPath())
		}
		return nil
	}
}

// Flags is cobra's FlagErrorFunc: a wrong flag is a usage error.
func Flags(cmd *cobra.Command, err error) error {
	return Usagef("%w\nSee: %s --help", err, cmd.CommandPath())
}
