// Package wait has the command that scripts and health checks wait with until a broker is ready.
package wait

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
)

// between is the pause between two attempts.
const between = 100 * time.Millisecond

// attemptMax bounds one attempt, so that a connection that hangs does not use up all of the time.
const attemptMax = 5 * time.Second

// NewCommand is `sluice wait`.
func NewCommand() *cobra.Command {
	var f connect.Flags
	var admin string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait until a broker is ready; a health check",
		Long: `Wait until a broker is ready: it answers, the cluster has a controller, and each partition of the topics that the cluster keeps
for itself has a leader. With --admin, a Sluice broker's own word for it on its admin port must be yes, too.

The exit code is 0 when the broker is ready, and 1 when it is not within --timeout (and 2 for a wrong command line), as
Docker, systemd and Kubernetes expect of a health check.`,
		Example: `  sluice wait && sluice topic create orders
  sluice wait --timeout 2m -b kafka:9092
  sluice wait --timeout 3s --quiet --admin localhost:9644     # as a container's health check`,
		Args: exit.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			target, err := f.Target()
			if err != nil {
				return err
			}
			began := time.Now()
			ctx, cancel := context.WithTimeout(cmd.Context(), f.Timeout)
			defer cancel()
			if err := untilReady(ctx, f, admin); err != nil {
				return exit.With(exit.Failed, fmt.Errorf("not ready within %v: %w", f.Timeout, err))
			}
			if quiet {
				return nil
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is ready, after %v\n", strings.Join(target.Seeds, ","), time.Since(began).Round(time.Millisecond))
			return err
		},
	}
	cmd.Flags().StringVar(&admin, "admin", "", "ask the admin port on `HOST:PORT`, too")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing when the broker is ready")
	f.Add(cmd)
	return cmd
}

// untilReady tries again until the broker is ready or time is up, and then says what the last attempt found.
func untilReady(ctx context.Context, f connect.Flags, admin string) error {
	for {
		err := ready(ctx, f, admin)
		if err == nil {
			return nil
		}
		if code := exit.Code(err); code == exit.Usage {
			return err // waiting longer does not help
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(between):
		}
	}
}

func ready(ctx context.Context, f connect.Flags, admin string) error {
	deadline, _ := ctx.Deadline()
	f.Timeout = max(min(time.Until(deadline), attemptMax), time.Millisecond)
	if admin != "" {
		if err := adminReady(ctx, f.Timeout, admin); err != nil {
			return err
		}
	}
	c, err := f.Open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	bounded, cancel := c.Bound(ctx)
	defer cancel()
	m, err := c.Admin.Metadata(bounded)
	if err != nil {
		return c.Explain(err)
	}
	if len(m.Brokers) == 0 {
		return errors.New("the cluster has no broker yet")
	}
	if m.Controller < 0 {
		return errors.New("the cluster has no controller yet")
	}
	for _, t := range m.Topics.Sorted() {
		if !t.IsInternal {
			continue
		}
		for _, p := range t.Partitions.Sorted() {
			if p.Leader < 0 || errors.Is(p.Err, kerr.LeaderNotAvailable) {
				return fmt.Errorf("%s, partition %d, has no leader yet", t.Topic, p.Partition)
			}
		}
	}
	return nil
}

// reasonBytesMax bounds what is read of the reason that a broker is not ready.
const reasonBytesMax = 4 << 10

func adminReady(ctx context.Context, timeout time.Duration, address string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/ready", nil)
	if err != nil {
		return exit.Usagef("--admin %s: want HOST:PORT: %w", address, err)
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: the port is asked from where its broker is
	response, err := direct.Do(request)
	if err != nil {
		return fmt.Errorf("the admin port does not answer: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // only read
	reason, err := io.ReadAll(io.LimitReader(response.Body, reasonBytesMax))
	if err != nil {
		return fmt.Errorf("the admin port's answer breaks off: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says: %s", address, strings.TrimSpace(string(reason)))
	}
	return nil
}
