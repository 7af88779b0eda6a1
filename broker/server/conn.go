// Package server accepts connections and moves Kafka frames: it reads requests, hands them to a Dispatcher in order, and writes the
// replies in the same order, within bounds. It knows no single API.
//
// One goroutine per connection reads and dispatches. It also writes the answers that are ready, as long as it is their turn, so that a
// plain request costs no hand-over between goroutines. An answer that comes later is written by a goroutine of its own, which ends with
// the last answer that is ready: a connection that waits, for a client or for an answer, has one goroutine.
package server

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// readBufferBytes is what a connection holds at most while it waits for the rest of a small frame, or for a large one to begin.
const readBufferBytes = 4 << 10

// Conn is one client connection.
type Conn struct {
	server   *Server
	listener string
	socket   net.Conn
	ctx      context.Context
	cancel   context.CancelFunc
	frameCap atomic.Int64 // bytes; beside Limits.FrameBytes; 0 for none
	client   atomic.Pointer[ClientSoftware]

	// arriving is for shed: bytes held for a frame that has not arrived whole, 0 between frames, and bytes ever read.
	arriving struct{ held, bytes atomic.Int64 }

	reader reader
	writer writer
	queue  queue
}

// ClientSoftware is what a client says it is.
type ClientSoftware struct{ Name, Version string }

// queue holds the requests whose replies are not written yet, in order.
type queue struct {
	sync.Mutex
	changed     sync.Cond // a reply was written, the writer ended or the connection was closed
	first, last *Request
	count       int  // requests in the list, and those the writer has taken out and not finished
	owed        int  // bytes of answers in memory
	writing     bool // a goroutine writes; only it takes requests out, and it looks again before it ends
	closed      bool // nothing is added any more
	mutedUntil  time.Time
	sentAt      time.Time // when an answer was last written
}

func newConn(s *Server, l *ListenerConfig, socket net.Conn) *Conn {
	c := &Conn{server: s, listener: l.Name, socket: socket}
	c.frameCap.Store(int64(l.PreLoginFrameBytes))
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.queue.changed.L = &c.queue
	c.reader.init(socket)
	return c
}

// Context ends when the connection is closed.
func (c *Conn) Context() context.Context { return c.ctx }

// Listener is the name of the listener that accepted the connection.
func (c *Conn) Listener() string { return c.listener }

// LocalAddr is the broker's end of the connection.
func (c *Conn) LocalAddr() net.Addr { return c.socket.LocalAddr() }

// RemoteAddr is the client's end of the connection.
func (c *Conn) RemoteAddr() net.Addr { return c.socket.RemoteAddr() }

// ClientSoftware is what SetClientSoftware was last told, or empty.
func (c *Conn) ClientSoftware() ClientSoftware {
	if client := c.client.Load(); client != nil {
		return *client
	}
	return ClientSoftware{}
}

// SetClientSoftware notes what the client says it is.
func (c *Conn) SetClientSoftware(s ClientSoftware) { c.client.Store(&s) }

// LoggedIn lifts the listener's cap on frames of clients that have not shown who they are.
func (c *Conn) LoggedIn() { c.frameCap.Store(0) }

// serve runs the connection to its end.
func (c *Conn) serve() {
	c.close(c.readLoop())
	c.queue.Lock()
	for c.queue.writing {
		c.queue.changed.Wait()
	}
	c.queue.Unlock()
}

// readLoop reads and dispatches until the connection is to be closed, and says why; nil when there is nothing to say.
func (c *Conn) readLoop() (reason error) {
	for {
		if !c.awaitRoom() {
			return nil
		}
		r, err := c.nextRequest()
		if err != nil {
			return c.readEnded(err)
		}
		if !c.awaitUnmuted() {
			return nil
		}
		c.handle(r)
		// Answers of requests that arrived together leave together.
		if !c.reader.frameBuffered() || c.flushDue() {
			c.flush()
		}
	}
}

// readEnded turns the end of reading into the reason to close. What was read before is answered first, unless the client is gone.
func (c *Conn) readEnded(err error) (reason error) {
	q := &c.queue
	switch err {
	case errDisconnected:
		return nil
	case errDraining:
		c.flush()
		q.Lock()
		defer q.Unlock()
		for q.count > 0 && !q.closed {
			q.changed.Wait()
		}
		return nil
	}
	// The end takes its turn behind the replies that are still owed.
	q.Lock()
	q.push(&Request{Conn: c, kind: replyHangup, reason: err, state: stateReady})
	q.Unlock()
	c.flush()
	q.Lock()
	defer q.Unlock()
	for !q.closed {
		q.changed.Wait()
	}
	return nil
}

// awaitRoom waits until the connection may have one more request in flight, and is false when it is closed.
func (c *Conn) awaitRoom() bool {
	limits := c.server.limits.Load()
	q := &c.queue
	q.Lock()
	defer q.Unlock()
	for (q.count >= limits.InFlight || q.owed >= limits.ResponseBytesPerConnection) && !q.closed {
		if q.writable() {
			q.writing = true
			q.Unlock()
			c.writeReady()
			q.Lock()
			continue
		}
		q.changed.Wait()
	}
	return !q.closed
}

// awaitUnmuted waits while the client is throttled, and is false when the connection is closed.
func (c *Conn) awaitUnmuted() bool {
	c.queue.Lock()
	until := c.queue.mutedUntil
	c.queue.Unlock()
	if until.IsZero() {
		return true
	}
	wait := time.Until(until)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.server.stop:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// handle dispatches one request and queues what became of it.
func (c *Conn) handle(r *Request) {
	reply := c.dispatch(r)
	now := time.Now()
	q := &c.queue
	q.Lock()
	r.dispatched, r.completed = now, now
	early := r.state == stateCompletedEarly
	switch {
	case reply.kind == replyLater && early:
		// complete has left kind and response.
	case reply.kind == replyLater:
		r.state = stateWaiting
	default:
		if early {
			stale := r.response // of a Pending that the dispatcher completed and then did not return
			defer stale.finish()
		}
		r.kind, r.reason = reply.kind, reply.reason
		if r.kind == replyHangup && r.reason == nil {
			r.reason = hangup("no reply was made")
		}
		r.response = reply.response
	}
	if q.closed {
		r.drop()
		q.Unlock()
		r.finishDropped()
		return
	}
	if r.state == stateWaiting {
		q.push(r)
		q.Unlock()
		return
	}
	r.recycle()
	if r.kind == replyNone && q.first == nil {
		r.state = stateGone
		q.Unlock()
		r.over(now)
		return
	}
	c.ready(r)
	q.push(r)
	q.Unlock()
}

// dispatch calls the dispatcher and turns a panic into a hang-up: a fault in serving one client must not end the others.
func (c *Conn) dispatch(r *Request) (reply Reply) {
	defer func() {
		if fault := recover(); fault != nil {
			c.server.log.Error("panic while serving a request", zap.Any("panic", fault), zap.Int16("api", r.Header.Key),
				zap.Int16("version", r.Header.Version), zap.Stringer("remote", c.RemoteAddr()), zap.Stack("stack"))
			r.retained = true // who knows what still uses it
			reply = Hangup("internal error")
		}
	}()
	return c.server.dispatcher.Dispatch(r)
}

// ready marks r to be written and charges its answer. The queue is locked.
func (c *Conn) ready(r *Request) {
	r.state = stateReady
	r.owed = r.response.inMemory()
	c.queue.owed += r.owed
	c.server.budget.take(r.owed)
}

// complete takes the reply of a Pending.
func (r *Request) complete(kind replyKind, response Response, reason error) {
	c := r.Conn
	q := &c.queue
	q.Lock()
	switch r.state {
	case stateDispatching:
		r.state = stateCompletedEarly
		r.kind, r.response, r.reason = kind, response, reason
		q.Unlock()
	case stateWaiting:
		r.kind, r.response, r.reason, r.completed = kind, response, reason, time.Now()
		r.recycle()
		c.ready(r)
		start := q.writable()
		if start {
			q.writing = true
		}
		q.Unlock()
		if start {
			go c.writeReady()
		}
	default:
		q.Unlock()
		response.finish()
	}
}

// writable reports that the next answer can be written and nobody does it yet.
func (q *queue) writable() bool {
	return !q.writing && !q.closed && q.first != nil && q.first.state == stateReady
}

func (q *queue) push(r *Request) {
	if q.last == nil {
		q.first = r
	} else {
		q.last.next = r
	}
	q.last = r
	q.count++
}

func (q *queue) pop() *Request {
	r := q.first
	if q.first = r.next; q.first == nil {
		q.last = nil
	}
	r.next = nil
	return r
}

// drop forgets a request whose connection is closed; finishDropped does what must not be done under the lock. The queue is locked. The
// frame is left to the garbage collector: with a Pending somebody may still read it.
func (r *Request) drop() {
	if r.charged > 0 {
		r.Conn.server.budget.release(r.charged)
		r.charged = 0
	}
	r.frame = nil
	if r.owed > 0 {
		r.Conn.queue.owed -= r.owed
		r.Conn.server.budget.release(r.owed)
		r.owed = 0
	}
	if r.state == stateWaiting {
		r.completed = time.Now()
	}
	r.state = stateGone
}

func (r *Request) finishDropped() {
	r.response.finish()
	r.over(time.Now())
}

// over reports that the request is done with.
func (r *Request) over(now time.Time) {
	if r.frameless() {
		return
	}
	r.Conn.server.observer.RequestFinished(r.Header.Key, Timing{
		Local:  r.dispatched.Sub(r.ReceivedAt),
		Remote: r.completed.Sub(r.dispatched),
		Send:   now.Sub(r.completed),
		Bytes:  r.size,
	})
}

// frameless is true of the mark that readEnded leaves in the queue.
func (r *Request) frameless() bool { return r.size == 0 }

// close ends the connection, once; what is not written yet is dropped. The reason goes to the log unless it is nil.
func (c *Conn) close(reason error) {
	q := &c.queue
	q.Lock()
	if q.closed {
		q.Unlock()
		return
	}
	q.closed = true
	var dropped []*Request
	for q.first != nil {
		r := q.pop()
		r.drop()
		dropped = append(dropped, r)
		q.count--
	}
	q.changed.Broadcast()
	q.Unlock()
	c.cancel()
	c.socket.Close()
	c.server.budget.wake()
	for _, r := range dropped {
		r.finishDropped()
	}
	if reason == nil {
		return
	}
	level := zap.InfoLevel
	if errors.Is(reason, errIdle) {
		level = zap.DebugLevel
	}
	if entry := c.server.endings.Check(level, "closing a connection"); entry != nil {
		entry.Write(zap.String("reason", reason.Error()), zap.String("listener", c.listener), zap.Stringer("remote", c.RemoteAddr()),
			zap.String("software", c.ClientSoftware().Name))
	}
}

// drain makes the reader stop between two requests.
func (c *Conn) drain() { c.socket.SetReadDeadline(longAgo) }
