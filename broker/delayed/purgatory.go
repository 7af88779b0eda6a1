// Package delayed parks operations until what they wait for has happened or time is up: a Fetch that found too few bytes, an acks=all
// Produce whose records are not committed yet, a DeleteRecords that waits for the followers. Kafka calls such a place a purgatory.
//
// Whoever changes something that operations may wait for calls Changed, in its own goroutine, and the operation finishes right there:
// nothing polls. Changed costs one atomic load as long as nobody waits.
package delayed

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Key names one thing that can change. Keys are never used twice.
type Key uint64

// AnyKey is handed to Ready when nothing in particular has changed: look at everything.
const AnyKey Key = 0

// Outcome says why an operation finishes.
type Outcome int8

const (
	// Satisfied: Ready has returned true.
	Satisfied Outcome = iota
	// Expired: the time to wait is over.
	Expired
	// Cancelled: the context has ended or the purgatory is closed; there may be nobody left to answer.
	Cancelled
)

// Operation is what waits.
type Operation interface {
	// Ready reports whether the operation can finish now that key has changed. Calls for one operation never overlap, nor does Finish with
	// them. It must not block.
	Ready(key Key) bool
	// Finish ends the operation. It is called once, in the goroutine that caused it, with no lock held.
	Finish(o Outcome)
}

const shardCount = 64 // a power of two

// Purgatory holds parked operations by the keys that they watch.
type Purgatory struct {
	shards [shardCount]shard
	parked atomic.Int64
	closed atomic.Bool
}

// shard holds the watches of some keys. Watches of one key form a ring without a head: the map points at any of them.
type shard struct {
	waiting atomic.Int64 // number of watches in the map; read without the lock
	mu      struct {
		sync.Mutex
		watches map[Key]*watch
	}
	_ [64]byte // keep neighbouring shards out of each other's cache lines
}

// watch ties one parked operation to one key.
type watch struct {
	key        Key
	ticket     *ticket
	prev, next *watch
}

// ticket is one parked operation.
type ticket struct {
	purgatory *Purgatory
	operation Operation
	watches   []watch
	timer     *time.Timer
	detach    func() bool // from the context
	// turn makes sure that one goroutine at a time asks the operation. Others, and the same one further up its stack, leave a note for it.
	turn struct {
		sync.Mutex
		asking bool
		again  bool    // ask once more: something has changed since
		over   bool    // time is up, or the operation is cancelled
		why    Outcome // if over
		done   bool
	}
}

// New returns an empty purgatory.
func New() *Purgatory { return &Purgatory{} }

// Park makes op wait for a change of one of the keys that makes it ready, for the time to pass, or for ctx to end. The operation may
// finish before Park returns. What changed before Park is not missed: Ready(AnyKey) is asked once after the keys are watched.
func (p *Purgatory) Park(ctx context.Context, op Operation, keys []Key, wait time.Duration) {
	t := &ticket{purgatory: p, operation: op, watches: make([]watch, len(keys))}
	p.parked.Add(1)
	t.turn.asking = true // nobody finishes the operation before it is set up
	for i, key := range keys {
		t.watches[i] = watch{key: key, ticket: t}
		p.shard(key).add(&t.watches[i])
	}
	t.timer = time.AfterFunc(wait, func() { t.end(Expired) })
	t.detach = context.AfterFunc(ctx, func() { t.end(Cancelled) })
	if p.closed.Load() {
		t.end(Cancelled)
	}
	t.ask(AnyKey)
}

// Changed lets the operations that watch key finish if they are ready.
func (p *Purgatory) Changed(key Key) {
	s := p.shard(key)
	if s.waiting.Load() == 0 {
		return
	}
	var room [8]*ticket
	for _, t := range s.tickets(key, room[:0]) {
		t.try(key)
	}
}

// Recheck asks every operation anew: something has changed that is no key's. An operation parked later is asked anyway.
func (p *Purgatory) Recheck() {
	for i := range p.shards {
		for _, t := range p.shards[i].all() {
			t.try(AnyKey)
		}
	}
}

// Len is the number of operations that wait.
func (p *Purgatory) Len() int { return int(p.parked.Load()) }

// Close finishes every operation as cancelled, and each one parked from now on.
func (p *Purgatory) Close() {
	p.closed.Store(true)
	for i := range p.shards {
		for _, t := range p.shards[i].all() {
			t.end(Cancelled)
		}
	}
}

func (p *Purgatory) shard(key Key) *shard { return &p.shards[key%shardCount] }

// try asks the operation, or has it asked again by whoever does right now.
func (t *ticket) try(key Key) {
	t.turn.Lock()
	if t.turn.done || t.turn.asking {
		t.turn.again = true
		t.turn.Unlock()
		return
	}
	t.turn.asking = true
	t.turn.Unlock()
	t.ask(key)
}

// ask runs with turn.asking set, by one goroutine.
func (t *ticket) ask(key Key) {
	for {
		ready := t.operation.Ready(key)
		t.turn.Lock()
		if ready || t.turn.over {
			outcome := Satisfied
			if !ready {
				outcome = t.turn.why
			}
			t.turn.done = true
			t.turn.Unlock()
			t.leave(outcome)
			return
		}
		if !t.turn.again {
			t.turn.asking = false
			t.turn.Unlock()
			return
		}
		t.turn.again = false
		t.turn.Unlock()
		key = AnyKey
	}
}

// end finishes the operation although it is not ready.
func (t *ticket) end(why Outcome) {
	t.turn.Lock()
	if t.turn.done || t.turn.over {
		t.turn.Unlock()
		return
	}
	t.turn.over, t.turn.why = true, why
	if t.turn.asking { // whoever asks will see it
		t.turn.Unlock()
		return
	}
	t.turn.done = true
	t.turn.Unlock()
	t.leave(why)
}

// leave is reached once for each ticket, by whoever set turn.done.
func (t *ticket) leave(o Outcome) {
	for i := range t.watches {
		t.purgatory.shard(t.watches[i].key).remove(&t.watches[i])
	}
	t.timer.Stop()
	t.detach()
	t.purgatory.parked.Add(-1)
	t.operation.Finish(o)
}

func (s *shard) add(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.watches == nil {
		s.mu.watches = make(map[Key]*watch)
	}
	if at := s.mu.watches[w.key]; at == nil {
		w.prev, w.next = w, w
		s.mu.watches[w.key] = w
	} else { // behind the others, so that they are tried in the order in which they came
		w.prev, w.next = at.prev, at
		at.prev.next = w
		at.prev = w
	}
	s.waiting.Add(1)
}

func (s *shard) remove(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.next == w {
		delete(s.mu.watches, w.key)
	} else {
		w.prev.next, w.next.prev = w.next, w.prev
		if s.mu.watches[w.key] == w {
			s.mu.watches[w.key] = w.next
		}
	}
	w.prev, w.next = nil, nil
	s.waiting.Add(-1)
}

func (s *shard) tickets(key Key, into []*ticket) []*ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.mu.watches[key]
	if first == nil {
		return into
	}
	into = append(into, first.ticket)
	for w := first.next; w != first; w = w.next {
		into = append(into, w.ticket)
	}
	return into
}

func (s *shard) all() []*ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*ticket
	for _, first := range s.mu.watches {
		found = append(found, first.ticket)
		for w := first.next; w != first; w = w.next {
			found = append(found, w.ticket)
		}
	}
	return found
}
