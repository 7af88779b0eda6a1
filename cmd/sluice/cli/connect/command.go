package connect

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// NewContextCommand is `sluice context`.
func NewContextCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Show the named connections of your contexts file",
		Long: `Show the named connections of your contexts file.

The file is ` + "contexts.properties" + ` in the folder sluice of your settings (on Linux ~/.config/sluice), or what
$SLUICE_CONTEXTS names. It is written by hand, in properties form:

  current=laptop
  laptop.bootstrap-server=localhost:9092
  prod.bootstrap-server=kafka-1.example.com:9093,kafka-2.example.com:9093
  prod.tls-ca=prod-ca.pem
  prod.sasl-mechanism=SCRAM-SHA-512
  prod.sasl-user=alice
  prod.sasl-password-file=prod-password

Keys: ` + wrapKeys() + `.
A path is relative to the file's folder. The current context is used when neither --context, $SLUICE_CONTEXT, -b nor
$SLUICE_BOOTSTRAP says which cluster is meant.`,
		Example: `  sluice context list
  sluice topic list --context prod`,
		Args: exit.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newContextListCommand())
	return cmd
}

func wrapKeys() string {
	keys := ContextKeys()
	half := len(keys) / 2
	return strings.Join(keys[:half], ", ") + ",\n" + strings.Join(keys[half:], ", ")
}

// listedContext is a row of `sluice context list`.
type listedContext struct {
	Name      string   `json:"name"`
	Current   bool     `json:"current"`
	Bootstrap []string `json:"bootstrapServers"`
	TLS       bool     `json:"tls"`
	Mechanism string   `json:"saslMechanism,omitempty"`
	User      string   `json:"saslUser,omitempty"`
}

func newContextListCommand() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the contexts, the current one marked by *",
		Args:  exit.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			contexts, err := ReadContexts()
			if err != nil {
				return err
			}
			listed := []listedContext{}
			for _, name := range contexts.Names() {
				t, err := contexts.Target(name)
				if err != nil {
					return err
				}
				s := t.Security
				listed = append(listed, listedContext{name, name == contexts.Current, t.Seeds, s.TLS, s.Mechanism, s.User})
			}
			return format.Print(cmd.OutOrStdout(), listed, func(w io.Writer) error {
				if len(listed) == 0 {
					_, err := fmt.Fprintf(w, "There are no contexts; %s would have them. See: sluice context --help\n", contexts.Path)
					return err
				}
				table := output.NewTable("", "CONTEXT", "BOOTSTRAP SERVERS", "TLS", "LOGIN")
				for _, c := range listed {
					marks := map[bool]string{true: "*", false: " "}
					table.Row(marks[c.Current], c.Name, strings.Join(c.Bootstrap, ","), map[bool]string{true: "yes", false: "no"}[c.TLS], strings.TrimSpace(c.Mechanism+" "+c.User))
				}
				return table.Write(w)
			})
		},
	}
	format.AddFlag(cmd)
	return cmd
}
