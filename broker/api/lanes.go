package api

import "sync"

// lanes keep the transactional writes of one producer in the order in which they came, although some of them wait for the transaction's
// coordinator and others need not: sequence numbers would not add up otherwise. A producer has a lane as long as something waits in it.
type lanes struct {
	mu sync.Mutex
	of map[int64]*lane // by producer id
}

type lane struct {
	waiting int      // writes that have entered and are not done
	ready   []func() // writes that may go on, in order
	moving  bool     // somebody is running them
}

// busy says whether a producer's next write has to wait for earlier ones.
func (l *lanes) busy(producerID int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[producerID] != nil
}

// enter is called for each write that waits, in their order, before goOn is.
func (l *lanes) enter(producerID int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[int64]*lane{}
	}
	at := l.of[producerID]
	if at == nil {
		at = &lane{}
		l.of[producerID] = at
	}
	at.waiting++
}

// goOn runs a write that waits no more: after those before it, in this goroutine or, if the write may block, in another.
func (l *lanes) goOn(producerID int64, blocks bool, write func()) {
	l.mu.Lock()
	at := l.of[producerID]
	at.ready = append(at.ready, write)
	start := !at.moving
	at.moving = true
	l.mu.Unlock()
	switch {
	case !start:
	case blocks:
		go l.move(producerID, at)
	default:
		l.move(producerID, at)
	}
}

func (l *lanes) move(producerID int64, at *lane) {
	for {
		l.mu.Lock()
		if len(at.ready) == 0 {
			at.moving = false
			l.mu.Unlock()
			return
		}
		write := at.ready[0]
		at.ready = at.ready[1:]
		l.mu.Unlock()
		write()
		l.mu.Lock()
		if at.waiting--; at.waiting == 0 {
			delete(l.of, producerID)
		}
		l.mu.Unlock()
	}
}
