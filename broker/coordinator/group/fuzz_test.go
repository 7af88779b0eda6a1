package group

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

// FuzzParse feeds damaged records to a machine: each is refused, or can be replayed and is written again as something that means the same.
func FuzzParse(f *testing.F) {
	for _, r := range kafkaRecords(f) {
		f.Add(r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		m := New(func() *Config { return &Config{MaxSize: 10, OffsetsRetentionCheckMs: 1000} })
		if len(value) == 0 {
			value = nil
		}
		r, err := m.Parse(key, value)
		if err != nil {
			return
		}
		m.Replay(1, machine.NoProducer, r)
		m.Replay(2, machine.Producer{ID: 1}, r)
		m.Loaded(1)
		m.ReplayEndTxn(machine.Producer{ID: 1}, true)
		key = r.AppendKey(nil)
		again, _ := r.AppendValue(nil)
		if value == nil {
			again = nil
		}
		r2, err := m.Parse(key, again)
		if err != nil {
			t.Fatalf("%x %x cannot be read again: %v", key, again, err)
		}
		value2, _ := r2.AppendValue(nil)
		if !bytes.Equal(value2, again) {
			t.Fatalf("%x is written as %x the second time", again, value2)
		}
		for id := range m.groups {
			m.DescribeGroup(id, 6)
			m.DeleteOffsets(1, &kmsg.OffsetDeleteRequest{Group: id, Topics: []kmsg.OffsetDeleteRequestTopic{{Topic: "t"}}})
		}
		for range 100 {
			at, ok := m.Deadline()
			if !ok || at > 1<<40 {
				break
			}
			m.Expire(at)
		}
	})
}

// FuzzSubscribedTopics reads the metadata of hostile consumers.
func FuzzSubscribedTopics(f *testing.F) {
	for version := range int16(4) {
		m := kmsg.NewConsumerMemberMetadata()
		m.Version, m.Topics, m.UserData = version, []string{"a", "topic"}, []byte{1, 2}
		f.Add(m.AppendTo(nil))
	}
	f.Add([]byte{0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		topics, ok := subscribedTopics(b)
		if !ok {
			return
		}
		size := 0
		for _, topic := range topics {
			size += 2 + len(topic)
		}
		if size > len(b) {
			t.Fatalf("%d bytes of topics out of %d", size, len(b))
		}
		// What we read, and the codec of the protocol reads too, is the same.
		m := kmsg.NewConsumerMemberMetadata()
		if err := m.ReadFrom(b); err == nil && !slices.Equal(m.Topics, topics) {
			t.Fatalf("topics %q, the codec has %q", topics, m.Topics)
		}
	})
}

func TestSubscribedTopics(t *testing.T) {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics = 3, []string{"b", "a"}
	good := m.AppendTo(nil)
	if topics, ok := subscribedTopics(good); !ok || strings.Join(topics, " ") != "b a" {
		t.Errorf("%q %v", topics, ok)
	}
	m.Version = 0
	good = m.AppendTo(nil)
	for n := range good {
		if topics, ok := subscribedTopics(good[:n]); ok {
			t.Errorf("%d of %d bytes are read as %q", n, len(good), topics)
		}
	}
	if allocs := testing.AllocsPerRun(10, func() { subscribedTopics([]byte{0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 1}) }); allocs > 1 {
		t.Errorf("%v allocations for a lie about the number of topics", allocs)
	}

	// Members whose metadata cannot be read are taken to read everything.
	h := newHarness(t)
	h.cfg.InitialRebalanceDelayMs = 0
	req := who{old: true}.request(h)
	req.Protocols[0].Metadata = []byte{1, 2, 3}
	e, err := h.m.JoinGroup(h.nowMs, req, 1)
	if err != nil {
		t.Fatal(err)
	}
	h.apply(e)
	h.sleep(0)
	if g := h.m.groups["g"]; g.subscribed != nil || !g.isSubscribedTo("anything") {
		t.Errorf("subscribed: %v", g.subscribed)
	}
}

// TestRandomOperations throws random operations at a machine, reasonable and hostile ones. The harness checks the replay law after each,
// and asserts inside the machine its invariants; at the end everything that waits gets an answer as time passes.
func TestRandomOperations(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomOperations(t, seed) })
	}
}

func randomOperations(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	h := newHarness(t)
	h.cfg.MaxSize, h.cfg.MaxBatchBytes = 5, 1500
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	ids := []string{"", "made up"}
	var tokens []machine.Token
	for range 300 {
		w := who{
			id: ids[random.IntN(len(ids))], instance: pick("", "", "i", "j"), client: pick("A", "B"), version: int16(random.IntN(10)),
			sessionMs: 1000 + random.Int32N(20_000), timeoutMs: random.Int32N(30_000), kind: pick("consumer", "consumer", "consumer", "connect"),
			protocols: [][]string{{"range"}, {"range", "sticky"}, {"sticky", "range"}, {"sticky", "sticky"}, {}}[random.IntN(5)],
			topics:    [][]string{{topicA}, {topicB}, {topicA, topicB}}[random.IntN(3)],
		}
		generation := int32(random.IntN(3) - 1)
		if g := h.m.groups["g"]; g != nil {
			generation = g.generation - int32(random.IntN(8)/7)
			if len(g.members) > 0 && random.IntN(2) == 0 {
				w.id = g.members[random.IntN(len(g.members))].id
			}
		}
		switch random.IntN(12) {
		case 0, 1, 2, 3:
			h.token++
			if e, err := h.m.JoinGroup(h.nowMs, w.request(h), h.token); err == nil {
				tokens = append(tokens, h.token)
				h.apply(e)
			} else {
				h.apply(e)
			}
		case 4, 5:
			assignments := map[string]string{"x": "nothing"}
			for _, id := range ids {
				assignments[id] = string(make([]byte, random.IntN(300)))
			}
			tokens = append(tokens, h.sync(w, generation, assignments))
		case 6:
			h.heartbeat(w, generation)
		case 7:
			h.leave(w)
		case 8:
			h.commitOffset(commit{w: w, generation: generation, topic: pick(topicA, topicB), partition: random.Int32N(2), offset: 5})
		case 9:
			switch random.IntN(6) {
			case 0:
				h.deleteGroup("g")
			case 1:
				h.deleteOffset("g", pick(topicA, topicB), 0)
			case 2:
				h.apply(h.m.TopicsDeleted(h.nowMs, []DeletedTopic{{Name: topicA, ID: idA}}))
			case 3:
				if !h.holdCommits {
					h.reload()
					for _, token := range tokens { // the runtime has failed them
						if _, ok := h.answers[token]; !ok {
							h.answers[token] = nil
						}
					}
				}
			}
		case 10:
			h.sleep(random.Int64N(10_000))
		case 11:
			if h.holdCommits {
				h.commit(nil)
			} else {
				h.holdCommits = random.IntN(3) == 0
			}
		}
		if g := h.m.groups["g"]; g != nil {
			ids = ids[:2]
			for _, m := range g.members {
				ids = append(ids, m.id)
			}
			ids = append(ids, sortedKeys(g.pendingJoin)...)
			checkBooks(t, g)
		}
	}
	if h.holdCommits {
		h.commit(nil)
	}
	h.sleep(2 * NewMemberJoinTimeoutMs)
	for _, token := range tokens {
		if _, ok := h.answers[token]; !ok {
			t.Errorf("request %d was never answered", token)
		}
	}
}

// checkBooks counts anew what a group keeps count of.
func checkBooks(t *testing.T, g *classicGroup) {
	t.Helper()
	awaiting, pendingSync, static := 0, 0, 0
	offered := map[string]int{}
	for _, m := range g.members {
		if m.join != 0 {
			awaiting++
		}
		if m.pendingSync {
			pendingSync++
		}
		if m.instanceID != nil {
			static++
			if g.static[*m.instanceID] != m.id {
				t.Fatalf("instance %q is %q in the book and %q", *m.instanceID, g.static[*m.instanceID], m.id)
			}
		}
		for _, p := range m.protocols {
			offered[p.name]++
		}
		if g.byID[m.id] != m || m.heartbeat.index == 0 && !m.hasSatisfiedHeartbeat() {
			t.Fatalf("member %q is not in the book, or has no session and does not wait", m.id)
		}
	}
	if awaiting != g.awaitingJoin || pendingSync != g.pendingSync || static != len(g.static) || len(g.byID) != len(g.members) || fmt.Sprint(offered) != fmt.Sprint(g.offered) {
		t.Fatalf("awaiting %d/%d, pending sync %d/%d, static %d/%d, members %d/%d, offered %v/%v", awaiting, g.awaitingJoin, pendingSync, g.pendingSync,
			static, len(g.static), len(g.members), len(g.byID), offered, g.offered)
	}
	if (g.leader == "") != (len(g.members) == 0) || g.leader != "" && g.byID[g.leader] == nil {
		t.Fatalf("leader %q of %d members", g.leader, len(g.members))
	}
}
