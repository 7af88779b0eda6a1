package quorum

import (
	"strconv"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// The scripts tell elections and replication step by step.
func TestQuorum(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var c *cluster
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			node := func() *testNode { return c.nodes[NodeID(argument(t, d, "node", 1))] }
			switch d.Cmd {
			case "cluster":
				c = newCluster(uint64(argument(t, d, "seed", 1)), list(t, d, "voters"), list(t, d, "observers"))
				c.perFetch = int(argument(t, d, "per-fetch", 0))
			case "stand": // the node's time to wait for a leader is over
				n := node()
				for n.core.Role() != Prospective && n.core.Role() != Candidate {
					switch r := n.core.role.(type) {
					case *unattached:
						r.deadline = c.nowMs
					case *follower:
						r.deadline = c.nowMs
					case *resigned:
						r.deadline = c.nowMs
					default:
						t.Fatalf("%s cannot stand", n.core.Role())
					}
					n.core.Tick(c.nowMs)
				}
				c.ready(n)
			case "lose-state":
				node().disk.state = HardState{LeaderID: NoNode, VotedID: NoNode}
			case "tick":
				c.tick(argument(t, d, "ms", 100))
			case "settle":
				c.settle()
			case "run": // time passes and messages arrive
				for range argument(t, d, "steps", 1) {
					c.tick(argument(t, d, "ms", 100))
					c.settle()
				}
			case "deliver":
				for i := 0; i < len(c.network); {
					if p := c.network[i]; int64(p.from) == argument(t, d, "from", int64(p.from)) && int64(p.to) == argument(t, d, "to", int64(p.to)) {
						c.deliver(i)
						break
					}
					i++
				}
			case "lose":
				c.network = nil
			case "network":
				for _, p := range c.network {
					c.printf("%d -> %d: %s", p.from, p.to, describeMessage(p.message))
				}
			case "cut":
				c.cut[node().id] = true
			case "heal":
				clear(c.cut)
			case "propose":
				n := node()
				payload := d.CmdArgs[len(d.CmdArgs)-1].Key
				if _, err := n.core.Propose(n.core.Epoch(), argument(t, d, "count", 1), payload); err != nil {
					c.printf("%v", err)
				}
				c.ready(n)
			case "hold-syncs":
				node().holdSyncs = true
			case "sync":
				n := node()
				n.holdSyncs = false
				c.sync(n)
				c.ready(n)
			case "crash":
				c.crash(node())
			case "start":
				c.start(node())
			case "resign":
				n := node()
				n.core.Resign()
				c.ready(n)
			case "status":
				c.status()
			case "next-tick":
				c.printf("in %d ms", node().core.NextTickMs()-c.nowMs)
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			if d.HasArg("quietly") {
				c.out.Reset()
			}
			return c.take()
		})
	})
}

func argument(t *testing.T, d *datadriven.TestData, key string, otherwise int64) int64 {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			n, err := strconv.ParseInt(a.Vals[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return otherwise
}

func list(t *testing.T, d *datadriven.TestData, key string) (ids []NodeID) {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			for _, v := range a.Vals {
				n, err := strconv.Atoi(v)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, NodeID(n))
			}
		}
	}
	return ids
}
