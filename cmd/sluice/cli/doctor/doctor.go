// Package doctor finds out why a client cannot work with a cluster. It does what a client does, step by step, for the address that the client
// was given and for each one that the cluster advertises, and keeps what it sees apart from what that means: probe looks, diagnose judges.
package doctor

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// stepMax bounds each step of the examination of one address.
const stepMax = 5 * time.Second

// atOnce is how many addresses are examined at the same time.
const atOnce = 16

// NewCommand is `sluice doctor`.
func NewCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	cmd := &cobra.Command{
		Use:   "doctor [HOST:PORT]",
		Short: "Find out why clients cannot work with a cluster, and what to change",
		Long: `Find out why clients cannot work with a cluster, and what to change. The doctor does what a client does: it resolves the name,
connects, asks for the APIs and for the brokers, and then does the same with the address that each broker advertises. It also
compares settings with the number of brokers, and looks for partitions that cannot be written to. It changes nothing.

It says nothing of clocks: no request of Kafka's protocol tells a broker's time without writing a record.

The exit code is 0 when nothing is wrong, 1 when something should be changed. Run it on the machine of the client.`,
		Example: `  sluice doctor
  sluice doctor kafka.example.com:9093 --tls-ca ca.pem
  sluice doctor localhost:9092 -o json`,
		Args: exit.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.Bootstrap = args
			}
			target, err := f.Target()
			if err != nil {
				return err
			}
			r, err := examine(cmd.Context(), target, min(f.Timeout, stepMax))
			if err != nil {
				return err
			}
			if err := format.Print(cmd.OutOrStdout(), r, r.write); err != nil {
				return err
			}
			if r.errors() > 0 {
				return exit.Silently(exit.Failed)
			}
			return nil
		},
	}
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

// examine looks at the first address of a target and at every address that the cluster advertises there. The error is only one of the person's
// own settings, as a file that cannot be read: all else is in the report.
func examine(ctx context.Context, target connect.Target, step time.Duration) (*report, error) {
	p, err := newProber(target, step)
	if err != nil {
		return nil, err
	}
	r := &report{Asked: p.probe(ctx, withPort(target.Seeds[0]), askedBroker)}
	if r.Asked.answer != nil {
		r.ClusterID, r.Controller = r.Asked.answer.clusterID, r.Asked.answer.controller
		r.Brokers = make([]*endpoint, len(r.Asked.answer.brokers))
		var running sync.WaitGroup
		slots := make(chan struct{}, atOnce)
		for i, b := range r.Asked.answer.brokers {
			running.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				r.Brokers[i] = p.probe(ctx, net.JoinHostPort(b.host, fmt.Sprint(b.port)), b.id)
			})
		}
		running.Wait()
	}
	r.Findings = diagnose(r)
	return r, nil
}

// withPort is an address with Kafka's port where the person gave none, as clients take it.
func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	if len(address) > 1 && address[0] == '[' && address[len(address)-1] == ']' {
		address = address[1 : len(address)-1]
	}
	return net.JoinHostPort(address, "9092")
}
