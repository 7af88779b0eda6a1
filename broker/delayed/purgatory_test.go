package delayed

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counter is an operation that is ready once a number has been reached.
type counter struct {
	want     int64
	value    *atomic.Int64
	asked    atomic.Int64
	finished chan Outcome
	asking   atomic.Bool
	overlap  atomic.Bool
	during   func()
}

func newCounter(want int64, value *atomic.Int64) *counter {
	return &counter{want: want, value: value, finished: make(chan Outcome, 2)}
}

func (c *counter) Ready(Key) bool {
	if !c.asking.CompareAndSwap(false, true) {
		c.overlap.Store(true)
	}
	defer c.asking.Store(false)
	c.asked.Add(1)
	if c.during != nil {
		c.during()
	}
	return c.value.Load() >= c.want
}

func (c *counter) Finish(o Outcome) { c.finished <- o }

func (c *counter) state() string {
	select {
	case o := <-c.finished:
		return [...]string{"satisfied", "expired", "cancelled"}[o]
	default:
		return "waiting"
	}
}

func expect(t *testing.T, c *counter, want string) {
	t.Helper()
	if got := c.state(); got != want {
		t.Errorf("the operation is %s, want %s", got, want)
	}
}

func TestPark_FinishesInTheGoroutineOfTheChange(t *testing.T) {
	p := New()
	var value atomic.Int64
	c := newCounter(2, &value)
	p.Park(t.Context(), c, []Key{7, 8}, time.Hour)
	value.Store(1)
	p.Changed(7)
	expect(t, c, "waiting")
	value.Store(2)
	p.Changed(9)
	expect(t, c, "waiting") // nobody said that 7 or 8 changed
	p.Changed(8)
	expect(t, c, "satisfied")
	p.Changed(7)
	expect(t, c, "waiting") // once only
	if p.Len() != 0 {
		t.Errorf("%d operations are left", p.Len())
	}
}

func TestPark_SeesWhatChangedBefore(t *testing.T) {
	p := New()
	var value atomic.Int64
	value.Store(5)
	c := newCounter(5, &value)
	p.Park(t.Context(), c, []Key{1}, time.Hour)
	expect(t, c, "satisfied")
}

func TestRecheck_AsksWhateverTheKeys(t *testing.T) {
	p := New()
	var value atomic.Int64
	first, second := newCounter(1, &value), newCounter(2, &value)
	p.Park(t.Context(), first, []Key{7, 8}, time.Hour)
	p.Park(t.Context(), second, []Key{7, 9}, time.Hour)
	value.Store(1)
	p.Recheck()
	expect(t, first, "satisfied")
	expect(t, second, "waiting")
	if p.Len() != 1 {
		t.Errorf("%d operations wait", p.Len())
	}
}

func TestPark_ExpiresAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		var value atomic.Int64
		c := newCounter(1, &value)
		p.Park(t.Context(), c, []Key{1}, 500*time.Millisecond)
		time.Sleep(499 * time.Millisecond)
		expect(t, c, "waiting")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		expect(t, c, "expired")
	})
}

func TestPark_EndsWithItsContextAndWithThePurgatory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		var value atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		first, second, late := newCounter(1, &value), newCounter(1, &value), newCounter(1, &value)
		p.Park(ctx, first, []Key{1}, time.Hour)
		p.Park(t.Context(), second, []Key{1}, time.Hour)
		cancel()
		synctest.Wait()
		expect(t, first, "cancelled")
		expect(t, second, "waiting")
		p.Close()
		expect(t, second, "cancelled")
		p.Park(t.Context(), late, []Key{1}, time.Hour)
		expect(t, late, "cancelled")
	})
}

// TestReady_MayCauseAChangeItself is about a look at a log that takes its directory offline, of which the operation is told in turn.
func TestReady_MayCauseAChangeItself(t *testing.T) {
	p := New()
	var value atomic.Int64
	c := newCounter(3, &value)
	c.during = func() {
		if value.Add(1) < 3 {
			p.Changed(1)
		}
	}
	p.Park(t.Context(), c, []Key{1}, time.Hour)
	expect(t, c, "satisfied")
}

func TestChanged_AsksInOrderOfArrival(t *testing.T) {
	p := New()
	var value atomic.Int64
	var order []int
	for i := range 20 {
		c := newCounter(1, &value)
		c.during = func() { order = append(order, i) }
		p.Park(t.Context(), c, []Key{3}, time.Hour)
	}
	order = nil
	p.Changed(3)
	for i := range order {
		if order[i] != i {
			t.Fatalf("asked in the order %v", order)
		}
	}
	if len(order) != 20 {
		t.Fatalf("asked %d of 20", len(order))
	}
}

// TestPark_UnderManyChanges looks for lost wake-ups and double ends: every operation must finish, exactly once, and be asked by one at a time.
func TestPark_UnderManyChanges(t *testing.T) {
	p := New()
	const keys, operations, changers = 5, 2000, 4
	var values [keys]atomic.Int64
	stop := make(chan struct{})
	var changing sync.WaitGroup
	for n := range changers {
		changing.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for {
				select {
				case <-stop:
					return
				default:
					k := random.IntN(keys)
					values[k].Add(1)
					p.Changed(Key(k + 1))
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	parked := make([]*counter, operations)
	for i := range parked {
		k := random.IntN(keys)
		c := newCounter(values[k].Load()+int64(random.IntN(3)), &values[k])
		parked[i] = c
		p.Park(t.Context(), c, []Key{Key(k + 1), Key(random.IntN(keys) + 1)}, time.Hour)
	}
	for i, c := range parked {
		if o := <-c.finished; o != Satisfied {
			t.Errorf("operation %d ended with %d", i, o)
		}
	}
	close(stop)
	changing.Wait()
	for i, c := range parked {
		if c.overlap.Load() {
			t.Errorf("operation %d was asked by two at once", i)
		}
		expect(t, c, "waiting")
	}
	if p.Len() != 0 {
		t.Errorf("%d operations are left", p.Len())
	}
	for i := range p.shards {
		if n := p.shards[i].waiting.Load(); n != 0 || len(p.shards[i].mu.watches) != 0 {
			t.Errorf("shard %d still has %d watches", i, n)
		}
	}
}

// never is not ready until told.
type never struct{ ready bool }

func (n *never) Ready(Key) bool { return n.ready }
func (n *never) Finish(Outcome) {}

func BenchmarkChanged_NobodyWaits(b *testing.B) {
	p := New()
	for b.Loop() {
		p.Changed(42)
	}
}

func BenchmarkParkAndFinish_100Keys(b *testing.B) {
	p := New()
	keys := make([]Key, 100)
	for i := range keys {
		keys[i] = Key(i + 1)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		n := &never{}
		p.Park(ctx, n, keys, time.Hour)
		n.ready = true
		p.Changed(50)
	}
}
