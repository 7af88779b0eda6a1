// Package controller runs the metadata quorum and the controller machine over the log __cluster_metadata-0: it makes operations durable,
// commits them through the quorum core, and publishes an image of the cluster after each commit.
//
// Kafka's controller appends a NoOpRecord every 500 ms so that observers notice a stalled leader. A quorum of one has no observers; nothing is
// written while nothing happens, and an idle node sleeps.
package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
	"sluice/replication/metadata"
	"sluice/replication/quorum"
	"sluice/storage/partlog"
	"sluice/storage/vfs"
)

// ErrNotController means that this node is not, or no longer, the active controller. The operation was not begun.
var ErrNotController = errors.New("this node is not the active controller")

// A Fault is a failed write of the metadata log. The controller takes no operation after one: what the log holds is uncertain until it has
// been read again by a new start. An operation that fails with it may or may not turn out to have happened.
type Fault struct{ Err error }

func (f *Fault) Error() string { return "the metadata log failed: " + f.Err.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Options say where the log is and how the machine is set up.
type Options struct {
	FS vfs.FS // *vfs.Mem for a node that keeps nothing
	// Dir is the metadata log directory (metadata.log.dir), which holds __cluster_metadata-0. The caller has it locked.
	Dir string
	// Voters is controller.quorum.voters; only this node alone is supported.
	Voters []metadata.BrokerID
	// Machine has all settings; Voters and Random are taken from these options.
	Machine metadata.Settings
	// IncarnationID and Endpoints register the controller when it has a listener.
	IncarnationID uuid.UUID
	Endpoints     []logrecord.Endpoint
	SegmentBytes  int   // metadata.log.segment.bytes; 0 for Kafka's default
	SegmentMs     int64 // metadata.log.segment.ms; 0 for Kafka's default
	Random        io.Reader
	NowMs         func() int64
	Log           *zap.Logger
}

// Bounds of one group of operations, which shares a batch and an fsync. A batch is never larger than followers are able to fetch.
const (
	queueLength     = 1024
	maxGroupOps     = 512
	maxGroupBytes   = 1 << 20
	maxBatchBytes   = 8 << 20
	maxBatchRecords = 10_000
	sessionCheckMs  = 500 // at most this often
)

// A Controller is the node's part in the metadata quorum.
type Controller struct {
	options Options
	log     *zap.Logger

	// Owned by Open and then by Run.
	core      *quorum.Core
	machine   *metadata.Machine
	partition *partlog.Log
	dir       string // of the partition
	leading   quorum.Leadership

	queue   chan *task
	closing chan struct{} // closed by Close: begin no more
	stopped chan struct{} // closed when no task will be worked on any more
	running atomic.Bool
	stop    func() // closes stopped, once
	close   func() error

	image   atomic.Pointer[metadata.Image]
	failure atomic.Pointer[error] // why tasks are refused

	subscribing struct {
		sync.Mutex
		functions []func(*metadata.Delta)
	}
}

// A task is one operation on its way.
type task struct {
	op       metadata.Op
	response kmsg.Response
	err      error
	done     chan struct{}
}

// Do runs op and returns its response once its records are committed, Image shows them and all subscribers have been called. The error is
// a *metadata.Error when op rejected the request, ErrNotController, a *Fault, or ctx's; after ctx's the operation may still happen.
func (c *Controller) Do(ctx context.Context, op metadata.Op) (kmsg.Response, error) {
	t := &task{op: op, done: make(chan struct{})}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-c.stopped:
		return nil, c.refusal()
	default:
	}
	select {
	case c.queue <- t:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.stopped:
		return nil, c.refusal()
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.stopped:
		select {
		case <-t.done: // it was finished just before
		default:
			return nil, c.refusal()
		}
	}
	return t.response, t.err
}

func (c *Controller) refusal() error {
	if err := c.failure.Load(); err != nil {
		return *err
	}
	return ErrNotController
}

// Image is the newest published image.
func (c *Controller) Image() *metadata.Image { return c.image.Load() }

// Subscribe calls f at once with the step from an empty image to the present one, and then with each delta, in order and one at a time. f
// must not call Subscribe nor wait for Do.
func (c *Controller) Subscribe(f func(*metadata.Delta)) {
	c.subscribing.Lock()
	defer c.subscribing.Unlock()
	empty := metadata.NewMachine(metadata.Settings{ClusterID: c.options.Machine.ClusterID}).Image()
	f(metadata.DeltaBetween(empty, c.image.Load()))
	c.subscribing.functions = append(c.subscribing.functions, f)
}

// Run serves operations until ctx ends, Close is called or the log fails. Without Run, Do waits.
func (c *Controller) Run(ctx context.Context) error {
	if !c.running.CompareAndSwap(false, true) {
		return errors.New("the controller runs already")
	}
	defer c.stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-c.closing:
			return nil // before anything else: Close may be at work on the log already
		default:
		}
		timer.Reset(c.untilTick())
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-c.closing:
			return nil
		case t := <-c.queue:
			err = c.serve(t)
		case <-timer.C:
			err = c.tick()
		}
		if err != nil {
			c.fail(err)
			return err
		}
	}
}

// untilTick is how long the loop may sleep when nobody asks for anything.
func (c *Controller) untilTick() time.Duration {
	at := min(c.core.NextTickMs(), c.machine.NextSessionEndMs())
	if at == math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(max(at-c.options.NowMs(), sessionCheckMs)) * time.Millisecond
}

func (c *Controller) tick() error {
	nowMs := c.options.NowMs()
	c.core.Tick(nowMs)
	if err := c.advance(); err != nil {
		return err
	}
	for c.machine.NextSessionEndMs() <= nowMs {
		t := &task{op: metadata.FenceStaleBrokers(), done: make(chan struct{})}
		if err := c.commit([]*task{t}); err != nil {
			return err
		}
		if t.err != nil {
			return fmt.Errorf("fence stale brokers: %w", t.err)
		}
	}
	return nil
}

// serve works on a task and those that wait behind it, as one group.
func (c *Controller) serve(first *task) error {
	group := []*task{first}
	for len(group) < maxGroupOps {
		select {
		case t := <-c.queue:
			group = append(group, t)
			continue
		default:
		}
		break
	}
	return c.commit(group)
}

// fail makes Do refuse from here on.
func (c *Controller) fail(err error) {
	c.failure.CompareAndSwap(nil, &err)
	c.log.Error("the controller has failed; it serves no operation until the node is started again", zap.Error(err))
}

// Close stops the controller, gives leadership up and closes the log. Operations that have not been answered are refused. It waits for Run
// to return, but not for a Run that is begun later.
func (c *Controller) Close() error { return c.close() }

func (c *Controller) closeOnce() error {
	close(c.closing)
	if c.running.Load() {
		<-c.stopped
	}
	c.stop()
	if c.failure.Load() != nil {
		return c.partition.Close() // what the log holds is uncertain: nothing more is written to it
	}
	c.core.Resign()
	return errors.Join(c.advance(), c.partition.Close())
}
