package quorum

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"sluice/protocol/record"
)

// A cluster runs several cores against each other: their logs and state files are values, the network is a list of messages, and time passes
// when the test says so. After each step it checks what has to hold always.
type cluster struct {
	nowMs    int64
	random   *rand.Rand
	voters   []NodeID
	perFetch int // batches in a fetch response; 0 for all
	nodes    map[NodeID]*testNode
	network  []packet
	cut      map[NodeID]bool
	leaders  map[record.LeaderEpoch]NodeID
	// committed is the longest prefix that any node ever called committed.
	committed []entry
	out       strings.Builder
	faults    []string
}

// A testNode is a replica with a disk.
type testNode struct {
	id   NodeID
	core *Core // nil while crashed
	disk struct {
		state HardState
		log   []Batch
	}
	written   []Batch // the log including what is not durable
	holdSyncs bool
	hw        int64
}

type packet struct {
	from, to NodeID
	message  Message
}

// An entry is one record, as far as it can be told apart.
type entry struct {
	epoch   record.LeaderEpoch
	payload string
}

func newCluster(seed uint64, voters, observers []NodeID) *cluster {
	c := &cluster{random: rand.New(rand.NewPCG(seed, 1)), voters: voters, nodes: map[NodeID]*testNode{}, cut: map[NodeID]bool{}, leaders: map[record.LeaderEpoch]NodeID{}}
	for _, id := range slices.Concat(voters, observers) {
		n := &testNode{id: id}
		n.disk.state = HardState{LeaderID: NoNode, VotedID: NoNode}
		c.nodes[id] = n
		c.start(n)
	}
	return c
}

func (c *cluster) ids() []NodeID { return sortedKeys(c.nodes) }

func (c *cluster) printf(format string, args ...any) { fmt.Fprintf(&c.out, format+"\n", args...) }

// take returns and forgets what has been printed.
func (c *cluster) take() string {
	s := c.out.String()
	c.out.Reset()
	if len(c.faults) > 0 {
		s += "FAULT " + strings.Join(c.faults, "\nFAULT ") + "\n"
	}
	if s == "" {
		return "ok\n"
	}
	return s
}

func (c *cluster) start(n *testNode) {
	n.written = slices.Clone(n.disk.log)
	n.hw, n.holdSyncs = -1, false
	var state LogState
	for _, b := range n.written {
		if len(state.Epochs) == 0 || state.Epochs[len(state.Epochs)-1].Epoch < b.Epoch {
			state.Epochs = append(state.Epochs, EpochStart{b.Epoch, b.BaseOffset})
		}
		state.EndOffset = b.BaseOffset + b.Count
	}
	core, err := New(Config{
		ID: n.id, Voters: c.voters, ElectionTimeoutMs: 1000, FetchTimeoutMs: 2000, BackoffMaxMs: 1000, RequestTimeoutMs: 500, FetchMaxWaitMs: 500,
		Random: func(n int64) int64 { return c.random.Int64N(n) },
	}, n.disk.state, state, c.nowMs)
	if err != nil {
		panic(err)
	}
	n.core = core
	c.ready(n)
}

// ready does what the core wants, in the order that it demands.
func (c *cluster) ready(n *testNode) {
	for {
		r := n.core.Ready()
		if r.Empty() {
			return
		}
		if r.State != nil {
			n.disk.state = *r.State
		}
		if l := r.Leadership; l != nil {
			c.printf("%d: %s of epoch %d, leader %d", n.id, l.Role, l.Epoch, l.LeaderID)
			if l.Role == Leader {
				if other, taken := c.leaders[l.Epoch]; taken && other != n.id {
					c.fault("%d and %d both lead epoch %d", other, n.id, l.Epoch)
				}
				c.leaders[l.Epoch] = n.id
			}
		}
		if r.TruncateTo >= 0 {
			c.printf("%d: truncate to %d", n.id, r.TruncateTo)
			n.written = cutAt(n.written, r.TruncateTo)
			n.disk.log = cutAt(n.disk.log, r.TruncateTo)
		}
		for _, b := range r.Append {
			if at := end(n.written); b.BaseOffset != at {
				c.fault("%d appends at %d to a log that ends at %d", n.id, b.BaseOffset, at)
			}
			n.written = append(n.written, b)
			c.printf("%d: append %s", n.id, describeBatch(b))
		}
		for _, e := range r.Messages {
			c.post(n, e)
		}
		if r.HighWatermarkMoved {
			c.printf("%d: high watermark %d", n.id, r.HighWatermark)
			c.checkCommitted(n, r.HighWatermark)
		}
		if len(r.Append) > 0 && !n.holdSyncs {
			c.sync(n)
		}
	}
}

// post sends a message; a fetch response takes its batches along.
func (c *cluster) post(n *testNode, e Envelope) {
	if f, ok := e.Message.(FetchResponse); ok && f.ReadFrom >= 0 {
		for _, b := range n.written {
			if b.BaseOffset >= f.ReadFrom && (c.perFetch == 0 || len(f.Batches) < c.perFetch) {
				f.Batches = append(f.Batches, b)
			}
		}
		e.Message = f
	}
	c.network = append(c.network, packet{n.id, e.To, e.Message})
}

// sync makes a node's log durable.
func (c *cluster) sync(n *testNode) {
	n.disk.log = slices.Clone(n.written)
	n.core.Persisted(end(n.written))
}

func (c *cluster) tick(ms int64) {
	c.nowMs += ms
	for _, id := range c.ids() {
		if n := c.nodes[id]; n.core != nil {
			n.core.Tick(c.nowMs)
			c.ready(n)
		}
	}
}

// deliver takes the packet at i off the network and hands it over unless a cut is in between.
func (c *cluster) deliver(i int) {
	p := c.network[i]
	c.network = slices.Delete(c.network, i, i+1)
	n := c.nodes[p.to]
	if n == nil || n.core == nil || c.cut[p.from] != c.cut[p.to] || c.cut[p.from] {
		return
	}
	c.printf("%d -> %d: %s", p.from, p.to, describeMessage(p.message))
	if err := n.core.Step(p.from, p.message); err != nil {
		c.printf("%d: %v", n.id, err)
	}
	c.ready(n)
}

// settle delivers until nothing is on its way.
func (c *cluster) settle() {
	for i := 0; len(c.network) > 0; i++ {
		if i > 10_000 {
			c.fault("the network never settles")
			return
		}
		c.deliver(0)
	}
}

func (c *cluster) crash(n *testNode) {
	n.core = nil
	c.network = slices.DeleteFunc(c.network, func(p packet) bool { return p.to == n.id })
}

func (c *cluster) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// checkCommitted: what is committed anywhere is a prefix of the one history, and a high watermark never goes back.
func (c *cluster) checkCommitted(n *testNode, hw int64) {
	if hw < n.hw {
		c.fault("%d: high watermark went from %d to %d", n.id, n.hw, hw)
	}
	n.hw = hw
	records := entries(n.written)
	if int64(len(records)) < hw {
		c.fault("%d: high watermark %d in a log of %d", n.id, hw, len(records))
		return
	}
	for i, e := range records[:hw] {
		switch {
		case i >= len(c.committed):
			c.committed = append(c.committed, e)
		case c.committed[i] != e:
			c.fault("%d: record %d is %v, committed was %v", n.id, i, e, c.committed[i])
			return
		}
	}
}

func end(log []Batch) int64 {
	if len(log) == 0 {
		return 0
	}
	last := log[len(log)-1]
	return last.BaseOffset + last.Count
}

// cutAt drops the batches that reach beyond offset. Batches are cut whole, which a truncation to an epoch's end never has to.
func cutAt(log []Batch, offset int64) []Batch {
	return slices.DeleteFunc(slices.Clone(log), func(b Batch) bool { return b.BaseOffset+b.Count > offset })
}

func entries(log []Batch) (all []entry) {
	for _, b := range log {
		payload := fmt.Sprint(b.Payload)
		if b.Leader != nil {
			payload = fmt.Sprintf("leader %d", b.Leader.LeaderID)
		}
		for i := range b.Count {
			all = append(all, entry{b.Epoch, fmt.Sprintf("%s/%d", payload, i)})
		}
	}
	return all
}

func describeBatch(b Batch) string {
	if b.Leader != nil {
		return fmt.Sprintf("%d epoch %d leader-change leader=%d voters=%v granting=%v", b.BaseOffset, b.Epoch, b.Leader.LeaderID, b.Leader.Voters, b.Leader.Granting)
	}
	return fmt.Sprintf("%d+%d epoch %d %v", b.BaseOffset, b.Count, b.Epoch, b.Payload)
}

func describeMessage(m Message) string {
	known := func(k Known) string {
		s := fmt.Sprintf("epoch=%d leader=%d", k.Epoch, k.LeaderID)
		if k.Error != NoError {
			s += " " + k.Error.String()
		}
		return s
	}
	switch m := m.(type) {
	case VoteRequest:
		return fmt.Sprintf("vote? epoch=%d last=%d@%d pre=%t", m.Epoch, m.LastEpoch, m.EndOffset, m.PreVote)
	case VoteResponse:
		return fmt.Sprintf("vote! %s granted=%t", known(m.Known), m.Granted)
	case BeginQuorumEpochRequest:
		return fmt.Sprintf("begin? epoch=%d", m.Epoch)
	case BeginQuorumEpochResponse:
		return "begin! " + known(m.Known)
	case EndQuorumEpochRequest:
		return fmt.Sprintf("end? epoch=%d successors=%v", m.Epoch, m.PreferredSuccessors)
	case EndQuorumEpochResponse:
		return "end! " + known(m.Known)
	case FetchRequest:
		return fmt.Sprintf("fetch? epoch=%d from=%d@%d hw=%d", m.Epoch, m.LastFetchedEpoch, m.Offset, m.HighWatermark)
	case FetchResponse:
		s := fmt.Sprintf("fetch! %s hw=%d", known(m.Known), m.HighWatermark)
		if m.Diverging != nil {
			s += fmt.Sprintf(" diverging=%d@%d", m.Diverging.Epoch, m.Diverging.EndOffset)
		}
		for _, b := range m.Batches {
			s += fmt.Sprintf(" [%d+%d epoch %d]", b.BaseOffset, b.Count, b.Epoch)
		}
		return s
	}
	return fmt.Sprintf("%T", m)
}

func (c *cluster) status() {
	for _, id := range c.ids() {
		n := c.nodes[id]
		if n.core == nil {
			c.printf("%d: down, log ends at %d", id, end(n.disk.log))
			continue
		}
		c.printf("%d: %s epoch=%d leader=%d voted=%d end=%d durable=%d hw=%d epochs=%v", id, n.core.Role(), n.core.Epoch(), n.core.LeaderID(), n.core.votedID,
			n.core.EndOffset(), n.core.persistedEnd, n.core.HighWatermark(), n.core.log.starts)
	}
}
