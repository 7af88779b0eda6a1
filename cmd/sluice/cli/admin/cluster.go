package admin

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sluice/cmd/sluice/cli/connect"
	"sluice/cmd/sluice/cli/exit"
	"sluice/cmd/sluice/cli/output"
)

// NewClusterCommand is `sluice cluster`.
func NewClusterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Show the cluster and its brokers",
		Args:  exit.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newClusterDescribeCommand())
	return cmd
}

// describedCluster is what `sluice cluster describe` prints.
type describedCluster struct {
	ClusterID  string            `json:"clusterId"`
	Controller int32             `json:"controller"` // -1: none
	Topics     int               `json:"topics"`     // internal ones too
	Partitions int               `json:"partitions"`
	Leaderless int               `json:"partitionsWithoutLeader"`
	OutOfSync  int               `json:"partitionsWithReplicasOutOfSync"`
	Brokers    []describedBroker `json:"brokers"`
}

type describedBroker struct {
	ID      int32  `json:"id"`
	Host    string `json:"host"`
	Port    int32  `json:"port"`
	Rack    string `json:"rack,omitempty"`
	Release string `json:"kafkaRelease,omitempty"` // see connect.Release
	Leads   int    `json:"leads"`                  // partitions
	Holds   int    `json:"replicas"`               // of partitions, those that it leads included
}

func newClusterDescribeCommand() *cobra.Command {
	var f connect.Flags
	var format output.Format
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show the cluster's id, brokers, and how its partitions are",
		Long: `Show the cluster's id, its brokers with the addresses that they advertise, and how its partitions are. SPEAKS is the
newest release of Apache Kafka of which a broker has all versions of the APIs that it offers.`,
		Example: `  sluice cluster describe
  sluice cluster describe -b kafka.example.com:9092 -o json`,
		Args: exit.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, ctx, done, err := client(cmd, &f)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.Admin.Metadata(ctx)
			if err != nil {
				return c.Explain(err)
			}
			versions, err := c.Admin.ApiVersions(ctx)
			if err != nil {
				return c.Explain(err)
			}
			d := describedCluster{ClusterID: m.Cluster, Controller: m.Controller, Topics: len(m.Topics), Brokers: []describedBroker{}}
			leads, holds := map[int32]int{}, map[int32]int{}
			for _, t := range m.Topics {
				for _, p := range t.Partitions {
					d.Partitions++
					leads[p.Leader]++
					for _, id := range p.Replicas {
						holds[id]++
					}
					if len(p.ISR) < len(p.Replicas) {
						d.OutOfSync++
					}
				}
			}
			d.Leaderless = leads[-1]
			for _, b := range m.Brokers {
				row := describedBroker{ID: b.NodeID, Host: b.Host, Port: b.Port, Leads: leads[b.NodeID], Holds: holds[b.NodeID]}
				if b.Rack != nil {
					row.Rack = *b.Rack
				}
				if v, ok := versions[b.NodeID]; ok && v.Err == nil {
					row.Release = connect.Release(v.Raw().ApiKeys)
				}
				d.Brokers = append(d.Brokers, row)
			}
			return format.Print(cmd.OutOrStdout(), d, d.write)
		},
	}
	format.AddFlag(cmd)
	f.Add(cmd)
	return cmd
}

func (d describedCluster) write(w io.Writer) error {
	fmt.Fprintf(w, "cluster %s  %s  %s, %s\n", output.Clean(d.ClusterID), count(len(d.Brokers), "broker"), count(d.Topics, "topic"), count(d.Partitions, "partition"))
	if d.Leaderless > 0 {
		fmt.Fprintf(w, "%s without a leader\n", count(d.Leaderless, "partition"))
	}
	if d.OutOfSync > 0 {
		fmt.Fprintf(w, "%s with replicas out of sync\n", count(d.OutOfSync, "partition"))
	}
	table := output.NewTable("BROKER", "ADDRESS", "RACK", "LEADS", "REPLICAS", "SPEAKS", "")
	for _, b := range d.Brokers {
		role := " "
		if b.ID == d.Controller {
			role = "controller"
		}
		table.Row(b.ID, fmt.Sprintf("%s:%d", b.Host, b.Port), b.Rack, b.Leads, b.Holds, b.Release, role)
	}
	return table.Write(w)
}
