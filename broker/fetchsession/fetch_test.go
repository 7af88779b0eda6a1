package fetchsession

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice/protocol/uuid"
)

// counting gives session ids in order.
func counting() func() int32 {
	next := int32(0)
	return func() int32 { next++; return next }
}

func ask(topic string, index int32, offset int64) *Partition {
	return &Partition{Key: Key{Topic: topic, Index: index}, Topic: topic, FetchOffset: offset, MaxBytes: 1 << 20, LeaderEpoch: -1, LastFetchedEpoch: -1}
}

// serve ends a fetch as if each partition had the answer given, and returns the session and the partitions that are told.
func serve(t *testing.T, f *Fetch, nowMs int64, answers map[string]Answer) (id int32, told []string) {
	t.Helper()
	if !f.Enter() {
		t.Fatal("the session has moved on")
	}
	for _, p := range f.Partitions() {
		name := fmt.Sprintf("%s-%d", p.Key.Topic, p.Key.Index)
		answer, ok := answers[name]
		if !ok {
			answer = Answer{}
		}
		if f.Tell(p, answer) {
			told = append(told, name)
		}
	}
	return f.Finish(nowMs), told
}

func begin(t *testing.T, c *Cache, q Request, nowMs int64) *Fetch {
	t.Helper()
	f, err := c.Begin(q, nowMs)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func equal(t *testing.T, got []string, want string) {
	t.Helper()
	if strings.Join(got, " ") != want {
		t.Errorf("got %v, want %q", got, want)
	}
}

func TestIncremental_TellsOnlyNews(t *testing.T) {
	c := New(10, counting())
	id, told := serve(t, begin(t, c, Request{Epoch: InitialEpoch, Partitions: []*Partition{ask("a", 0, 0), ask("a", 1, 0), ask("b", 0, 0)}}, 0), 0, nil)
	equal(t, told, "a-0 a-1 b-0")
	if id != 1 {
		t.Fatalf("session %d, want 1", id)
	}
	empty := Request{SessionID: id}
	empty.Epoch = 1
	_, told = serve(t, begin(t, c, empty, 0), 0, nil)
	equal(t, told, "")
	empty.Epoch = 2
	_, told = serve(t, begin(t, c, empty, 0), 0, map[string]Answer{"a-1": {HighWatermark: 5}, "b-0": {LogStartOffset: 3}})
	equal(t, told, "a-1 b-0")
	empty.Epoch = 3
	_, told = serve(t, begin(t, c, empty, 0), 0, map[string]Answer{"a-1": {HighWatermark: 5, HasRecords: true}, "b-0": {LogStartOffset: 3}})
	equal(t, told, "a-1")
	empty.Epoch = 4
	_, told = serve(t, begin(t, c, empty, 0), 0, map[string]Answer{"a-1": {HighWatermark: 5}, "b-0": {LogStartOffset: 3, HasHint: true}})
	equal(t, told, "b-0")
	empty.Epoch = 5
	failing := map[string]Answer{"a-1": {HighWatermark: 5}, "b-0": {HighWatermark: -1, LogStartOffset: -1, HasError: true}}
	_, told = serve(t, begin(t, c, empty, 0), 0, failing)
	equal(t, told, "b-0")
	empty.Epoch = 6
	_, told = serve(t, begin(t, c, empty, 0), 0, failing) // an error is told as long as it lasts
	equal(t, told, "b-0")
	empty.Epoch = 7
	_, told = serve(t, begin(t, c, empty, 0), 0, map[string]Answer{"a-1": {HighWatermark: 5}, "b-0": {LogStartOffset: 3}}) // and so is its end
	equal(t, told, "b-0")
}

func TestIncremental_AddsChangesAndForgets(t *testing.T) {
	c := New(10, counting())
	id, _ := serve(t, begin(t, c, Request{Partitions: []*Partition{ask("a", 0, 0), ask("a", 1, 0)}}, 0), 0, nil)
	f := begin(t, c, Request{SessionID: id, Epoch: 1, Partitions: []*Partition{ask("a", 1, 42), ask("c", 7, 1)}, Forget: []Key{{Topic: "a", Index: 0}, {Topic: "x"}}}, 0)
	var offsets []string
	f.Enter()
	for _, p := range f.Partitions() {
		offsets = append(offsets, fmt.Sprintf("%s-%d@%d", p.Topic, p.Key.Index, p.FetchOffset))
	}
	f.Leave()
	equal(t, offsets, "a-1@42 c-7@1")
	_, told := serve(t, f, 0, nil)
	equal(t, told, "c-7") // it is new to the session
	// Forgetting the last ones ends the session.
	f = begin(t, c, Request{SessionID: id, Epoch: 2, Forget: []Key{{Topic: "a", Index: 1}, {Topic: "c", Index: 7}}}, 0)
	got, told := serve(t, f, 0, nil)
	equal(t, told, "")
	if got != NoSession || c.Stats() != (Stats{}) {
		t.Errorf("session %d, stats %+v: want none", got, c.Stats())
	}
}

func TestIncremental_ServedPartitionsGoToTheEnd(t *testing.T) {
	c := New(10, counting())
	id, _ := serve(t, begin(t, c, Request{Partitions: []*Partition{ask("a", 0, 0), ask("a", 1, 0), ask("a", 2, 0), ask("a", 3, 0)}}, 0), 0, nil)
	data := Answer{HasRecords: true}
	serve(t, begin(t, c, Request{SessionID: id, Epoch: 1}, 0), 0, map[string]Answer{"a-0": data, "a-2": data})
	all := map[string]Answer{"a-0": data, "a-1": data, "a-2": data, "a-3": data}
	_, told := serve(t, begin(t, c, Request{SessionID: id, Epoch: 2}, 0), 0, all)
	equal(t, told, "a-1 a-3 a-0 a-2")
}

func TestBegin_Refuses(t *testing.T) {
	c := New(10, counting())
	id, _ := serve(t, begin(t, c, Request{Partitions: []*Partition{ask("a", 0, 0)}}, 0), 0, nil)
	withIDs, _ := serve(t, begin(t, c, Request{TopicIDs: true, Partitions: []*Partition{{Key: Key{TopicID: uuid.UUID{1: 7}}}}}, 0), 0, nil)
	for _, test := range []struct {
		name string
		q    Request
		want error
	}{
		{"unknown session", Request{SessionID: 99, Epoch: 1}, ErrNotFound},
		{"negative session", Request{SessionID: -5, Epoch: 1}, ErrNotFound},
		{"no session", Request{SessionID: 0, Epoch: 1}, ErrNotFound},
		{"old epoch", Request{SessionID: id, Epoch: 5}, ErrInvalidEpoch},
		{"epoch before the topic ids", Request{SessionID: id, Epoch: 5, TopicIDs: true}, ErrInvalidEpoch},
		{"ids in a session of names", Request{SessionID: id, Epoch: 1, TopicIDs: true}, ErrTopicIDs},
		{"names in a session of ids", Request{SessionID: withIDs, Epoch: 1}, ErrTopicIDs},
	} {
		if _, err := c.Begin(test.q, 0); err != test.want {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
	if _, told := serve(t, begin(t, c, Request{SessionID: id, Epoch: 1}, 0), 0, nil); told != nil {
		t.Error("a refused request has changed the session")
	}
}

func TestFull_EndsTheNamedSession(t *testing.T) {
	c := New(10, counting())
	id, _ := serve(t, begin(t, c, Request{Partitions: []*Partition{ask("a", 0, 0)}}, 0), 0, nil)
	next, _ := serve(t, begin(t, c, Request{SessionID: id, Epoch: InitialEpoch, Partitions: []*Partition{ask("a", 0, 0)}}, 0), 0, nil)
	if next == id || c.Stats().Sessions != 1 {
		t.Errorf("session %d after %d, %+v", next, id, c.Stats())
	}
	none, told := serve(t, begin(t, c, Request{SessionID: next, Epoch: FinalEpoch, Partitions: []*Partition{ask("b", 0, 0)}}, 0), 0, nil)
	equal(t, told, "b-0")
	if none != NoSession || c.Stats().Sessions != 0 {
		t.Errorf("session %d, %+v: want none", none, c.Stats())
	}
}

func TestFull_PartitionNamedTwice(t *testing.T) {
	c := New(10, counting())
	f := begin(t, c, Request{Partitions: []*Partition{ask("a", 0, 1), ask("b", 0, 2), ask("a", 0, 3)}}, 0)
	var offsets []int64
	for _, p := range f.Partitions() {
		offsets = append(offsets, p.FetchOffset)
	}
	if !slices.Equal(offsets, []int64{3, 2}) {
		t.Errorf("offsets %v, want 3 and 2", offsets)
	}
}

// TestEnter_OldRequestOfASession is about a fetch that waits while the client has gone on, with the next request, over another connection.
func TestEnter_OldRequestOfASession(t *testing.T) {
	c := New(10, counting())
	id, _ := serve(t, begin(t, c, Request{Partitions: []*Partition{ask("a", 0, 0)}}, 0), 0, nil)
	old := begin(t, c, Request{SessionID: id, Epoch: 1}, 0)
	serve(t, begin(t, c, Request{SessionID: id, Epoch: 2}, 0), 0, nil)
	if old.Enter() {
		t.Error("the old request still has the session")
	}
	if old.SessionID() != id {
		t.Errorf("the answer would name session %d, want %d", old.SessionID(), id)
	}
}

func TestEpoch_StartsAgainAfterTheLargest(t *testing.T) {
	if got := nextEpoch(1<<31 - 1); got != 1 {
		t.Errorf("after the largest epoch comes %d, want 1", got)
	}
}

// TestEviction plays sessions that want a slot against those that have one. Each step creates a session "consumer" or "follower" with so many
// partitions at a time in seconds, or uses one; after it, the ids that are left are compared.
func TestEviction(t *testing.T) {
	type step struct {
		at         int64 // s
		use        int32 // session to use, or 0 to create
		follower   bool
		partitions int
		want       string // sessions afterwards
	}
	for _, test := range []struct {
		name  string
		slots int
		steps []step
	}{
		{"no slots", 0, []step{{want: ""}}},
		{"a consumer does not displace the young", 2, []step{{partitions: 1, want: "1"}, {partitions: 2, want: "1 2"}, {at: 60, partitions: 9, want: "1 2"}}},
		{"the unused go first", 2, []step{
			{partitions: 9, want: "1"}, {at: 100, partitions: 1, want: "1 2"}, {at: 121, partitions: 1, want: "2 3"},
		}},
		{"use keeps it", 2, []step{
			{partitions: 9, want: "1"}, {at: 100, partitions: 1, want: "1 2"}, {at: 110, use: 1, want: "1 2"}, {at: 121, partitions: 1, want: "1 2"},
		}},
		{"old ones go to a larger newcomer", 2, []step{
			{partitions: 3, want: "1"}, {partitions: 5, want: "1 2"}, {at: 121, use: 1, want: "1 2"}, {at: 121, use: 2, want: "1 2"},
			{at: 122, partitions: 3, want: "1 2"}, {at: 122, partitions: 4, want: "2 3"},
		}},
		{"a follower displaces a young consumer", 2, []step{
			{partitions: 90, want: "1"}, {partitions: 80, want: "1 2"}, {at: 1, follower: true, partitions: 1, want: "1 3"},
			{at: 2, follower: true, partitions: 1, want: "3 4"}, {at: 3, follower: true, partitions: 9, want: "3 4"}, {at: 3, partitions: 9, want: "3 4"},
		}},
		{"a larger follower displaces an old smaller one", 1, []step{
			{follower: true, partitions: 3, want: "1"}, {at: 121, use: 1, want: "1"}, {at: 122, follower: true, partitions: 3, want: "1"},
			{at: 122, partitions: 99, want: "1"}, {at: 122, follower: true, partitions: 4, want: "2"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := New(test.slots, counting())
			epochs := map[int32]int32{}
			for i, s := range test.steps {
				nowMs := s.at * 1000
				if s.use != 0 {
					epochs[s.use]++
					serve(t, begin(t, c, Request{SessionID: s.use, Epoch: epochs[s.use]}, nowMs), nowMs, nil)
				} else {
					var asked []*Partition
					for n := range s.partitions {
						asked = append(asked, ask("t", int32(n), 0))
					}
					serve(t, begin(t, c, Request{Follower: s.follower, Partitions: asked}, nowMs), nowMs, nil)
				}
				var left []string
				partitions := 0
				for id := int32(1); id < 100; id++ {
					if found := c.find(id); found != nil {
						left = append(left, fmt.Sprint(id))
						partitions += found.size
					}
				}
				equal(t, left, s.want)
				if stats := c.Stats(); stats.Partitions != partitions || stats.Sessions != len(left) {
					t.Errorf("step %d: stats %+v, want %d partitions in %d sessions", i, stats, partitions, len(left))
				}
			}
		})
	}
}

// TestPartitions_AreBounded: a fetcher that asks for too much gets no session, and one that grows too large loses it.
func TestPartitions_AreBounded(t *testing.T) {
	c := New(10, counting())
	many := func(topic string, count int) []*Partition {
		all := make([]Partition, count)
		asked := make([]*Partition, count)
		for i := range all {
			all[i].Key = Key{Topic: topic, Index: int32(i)}
			asked[i] = &all[i]
		}
		return asked
	}
	finish := func(f *Fetch) int32 {
		if !f.Enter() {
			t.Fatal("the session has moved on")
		}
		return f.Finish(0)
	}
	first := finish(begin(t, c, Request{Partitions: many("a", maxPartitions-10)}, 0))
	if first == NoSession {
		t.Fatal("no session within the bound")
	}
	if id := finish(begin(t, c, Request{Partitions: many("b", 11)}, 0)); id != NoSession {
		t.Error("a session beyond the bound")
	}
	second := finish(begin(t, c, Request{Partitions: many("b", 10)}, 0))
	if second == NoSession {
		t.Fatal("no session within the bound")
	}
	finish(begin(t, c, Request{SessionID: second, Epoch: 1, Partitions: many("c", 1)}, 0))
	if _, err := c.Begin(Request{SessionID: second, Epoch: 2}, 0); err != ErrNotFound {
		t.Errorf("the session that grew beyond the bound: %v, want it gone", err)
	}
	if stats := c.Stats(); stats.Sessions != 1 || stats.Partitions != maxPartitions-10 {
		t.Errorf("%+v", stats)
	}
}

func BenchmarkIncremental_100Partitions_OneChanged(b *testing.B) {
	c := New(10, counting())
	var asked []*Partition
	for n := range 100 {
		asked = append(asked, ask("topic", int32(n), 0))
	}
	f, _ := c.Begin(Request{Partitions: asked}, 0)
	id := f.Finish(0)
	epoch := int32(0)
	b.ReportAllocs()
	for b.Loop() {
		epoch++
		f, err := c.Begin(Request{SessionID: id, Epoch: epoch, Partitions: []*Partition{ask("topic", epoch%100, int64(epoch))}}, 0)
		if err != nil || !f.Enter() {
			b.Fatal(err)
		}
		for i, p := range f.Partitions() {
			f.Tell(p, Answer{HasRecords: i == 0})
		}
		f.Finish(0)
	}
}
