package quorum

import (
	"fmt"
	"testing"
)

// Whatever the network loses, doubles and reorders and whoever crashes: there is one leader an epoch, nothing committed is lost or changed,
// and once the trouble is over a leader commits again.
func TestQuorum_Random(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		c := newCluster(uint64(seed), []NodeID{1, 2, 3, 4, 5}[:1+2*(seed%3)], []NodeID{9})
		c.perFetch = seed % 2
		c.trouble(400)
		if len(c.faults) > 0 {
			t.Fatalf("seed %d:\n%s", seed, c.take())
		}
		c.recover()
		before := len(c.committed)
		if before == 0 || !c.commitOne() {
			c.status()
			t.Fatalf("seed %d: no progress after the trouble: %d committed\n%s", seed, before, c.take())
		}
		if len(c.faults) > 0 {
			t.Fatalf("seed %d:\n%s", seed, c.take())
		}
		for _, id := range c.ids() {
			if n := c.nodes[id]; n.core.HighWatermark() != int64(len(c.committed)) {
				t.Fatalf("seed %d: %d has committed %d of %d", seed, id, n.core.HighWatermark(), len(c.committed))
			}
		}
	}
}

func (c *cluster) trouble(steps int) {
	for i := range steps {
		ids := c.ids()
		n := c.nodes[ids[c.random.IntN(len(ids))]]
		switch k := c.random.IntN(100); {
		case k < 50:
			for range c.random.IntN(6) {
				if len(c.network) > 0 {
					c.deliver(c.random.IntN(len(c.network)))
				}
			}
		case k < 70:
			c.tick(c.random.Int64N(400))
		case k < 80 && n.core != nil && n.core.Role() == Leader:
			if _, err := n.core.Propose(n.core.Epoch(), 1+c.random.Int64N(3), fmt.Sprintf("p%d", i)); err != nil {
				c.fault("leader refuses: %v", err)
			}
			c.ready(n)
		case k < 84 && len(c.network) > 0:
			c.network = append(c.network, c.network[c.random.IntN(len(c.network))])
		case k < 88 && len(c.network) > 0:
			c.network = c.network[:len(c.network)-1]
		case k < 90:
			c.cut[n.id] = !c.cut[n.id]
		case k < 92:
			n.holdSyncs = true
		case k < 95 && n.core != nil && n.holdSyncs:
			n.holdSyncs = false
			c.sync(n)
			c.ready(n)
		case k < 97 && n.core != nil:
			c.crash(n)
		case n.core == nil:
			c.start(n)
		case k < 98:
			n.core.Resign()
			c.ready(n)
		}
		c.out.Reset()
	}
}

// recover ends all trouble and lets time pass.
func (c *cluster) recover() {
	clear(c.cut)
	for _, id := range c.ids() {
		n := c.nodes[id]
		if n.core == nil {
			c.start(n)
		} else {
			n.holdSyncs = false
			c.sync(n)
			c.ready(n)
		}
	}
	for range 200 {
		c.tick(100)
		c.settle()
		c.out.Reset()
	}
}

// commitOne proposes a record and reports whether all replicas come to know it as committed.
func (c *cluster) commitOne() bool {
	before := len(c.committed)
	for _, id := range c.ids() {
		if n := c.nodes[id]; n.core.Role() == Leader {
			if _, err := n.core.Propose(n.core.Epoch(), 1, "last"); err == nil {
				c.ready(n)
			}
		}
	}
	for range 30 {
		c.tick(100)
		c.settle()
	}
	return len(c.committed) > before
}
