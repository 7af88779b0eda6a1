// Package controller runs the metadata quorum and the controller machine over the log __cluster_metadata-0: it makes operations durable,
// commits them through the quorum core, and publishes an image of the cluster after each commit.
package controller

import (
	"context"
	"errors"
	"io"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/replication/metadata"
	"sluice/storage/vfs"
)

// ErrNotController means that this node is not, or no longer, the active controller.
var ErrNotController = errors.New("this node is not the active controller")

// A Fault is a failed write of the metadata log. The controller takes no operation after one: what the log holds is uncertain until it has
// been read again by a new start.
type Fault struct{ Err error }

func (f *Fault) Error() string { return "the metadata log failed: " + f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// Options say where the log is and how the machine is set up.
type Options struct {
	FS     vfs.FS
	Dir    string // the metadata log directory (metadata.log.dir), which holds __cluster_metadata-0
	Voters []metadata.BrokerID
	// Machine has all settings but Random, which comes from Random below.
	Machine metadata.Settings
	Random  io.Reader
	NowMs   func() int64
	Log     *zap.Logger
}

// A Controller is the node's part in the metadata quorum.
type Controller struct{}

// Open reads the log, replays what is committed and takes part in the quorum. A quorum of one is active when Open returns.
func Open(o Options) (*Controller, error) { panic("not written yet") }

// Run serves until ctx ends or the log fails.
func (c *Controller) Run(ctx context.Context) error { panic("not written yet") }

// Close stops the controller and flushes the log.
func (c *Controller) Close() error { panic("not written yet") }

// Do runs op and returns its response once its records are committed, Image shows them and all subscribers have been called.
// The error is a *metadata.Error when op rejected the request, ErrNotController, a *Fault, or ctx's.
func (c *Controller) Do(ctx context.Context, op metadata.Op) (kmsg.Response, error) {
	panic("not written yet")
}

// Image is the newest published image.
func (c *Controller) Image() *metadata.Image { panic("not written yet") }

// Subscribe has f called with each delta, in order and from one goroutine, beginning with one from an empty image to the present one.
// f must not wait for Do.
func (c *Controller) Subscribe(f func(*metadata.Delta)) { panic("not written yet") }
