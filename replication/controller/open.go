package controller

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"

	"go.uber.org/zap"

	"sluice/protocol/logrecord"
	"sluice/protocol/record"
	"sluice/protocol/uuid"
	"sluice/replication/metadata"
	"sluice/replication/quorum"
	"sluice/storage/checkpoint"
	"sluice/storage/partlog"
)

// partitionDir is the folder of the metadata log in the metadata log directory.
const partitionDir = metadata.ClusterMetadataTopic + "-0"

// topicID is the reserved id of the metadata topic.
var topicID = uuid.UUID{15: 1}

// Kafka's defaults for the metadata log.
const (
	defaultSegmentBytes = 1 << 30
	defaultSegmentMs    = 7 * 24 * 3600 * 1000
)

// Open reads the log, replays it, and takes part in the quorum. A quorum of one is active, and has its bootstrap records, when Open returns.
func Open(o Options) (*Controller, error) {
	if len(o.Voters) != 1 || o.Voters[0] != o.Machine.NodeID {
		return nil, fmt.Errorf("controller.quorum.voters: a metadata quorum of this node (%d) alone is supported, not of %v", o.Machine.NodeID, o.Voters)
	}
	o.Machine.Voters, o.Machine.Random = o.Voters, o.Random
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	c := &Controller{
		options: o, log: o.Log, dir: o.Dir + "/" + partitionDir,
		machine: metadata.NewMachine(o.Machine),
		queue:   make(chan *task, queueLength), closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	c.stop = sync.OnceFunc(func() { close(c.stopped) })
	c.close = sync.OnceValue(c.closeOnce)
	c.image.Store(c.machine.Image())
	if err := c.open(); err != nil {
		if c.partition != nil {
			err = errors.Join(err, c.partition.Close())
		}
		return nil, fmt.Errorf("metadata log %s: %w", c.dir, err)
	}
	return c, nil
}

func (c *Controller) open() error {
	fsys, nowMs := c.options.FS, c.options.NowMs()
	if err := makeDurableDir(fsys, c.dir); err != nil {
		return err
	}
	if err := c.identify(); err != nil {
		return err
	}
	state, err := readQuorumState(fsys, c.dir, c.options.Voters)
	if err != nil {
		return err
	}
	bootstrap, err := c.bootstrapRecords()
	if err != nil {
		return err
	}
	config := partlog.DefaultConfig()
	config.SegmentBytes, config.SegmentMs = defaultSegmentBytes, defaultSegmentMs
	if c.options.SegmentBytes > 0 {
		config.SegmentBytes = c.options.SegmentBytes
	}
	if c.options.SegmentMs > 0 {
		config.SegmentMs = c.options.SegmentMs
	}
	config.MaxMessageBytes = maxBatchBytes
	config.Delete = false // only a snapshot may take the place of a part of this log
	// All of the log is scanned at each start: it is small, it is read anyway, and everything rests on it.
	c.partition, err = partlog.Open(partlog.Options{FS: fsys, Dir: c.dir, Config: config, NowMs: nowMs, Progress: c.progress})
	if err != nil {
		return err
	}
	if err := c.loadSnapshot(); err != nil {
		return err
	}
	epochs, err := c.replayLog()
	if err != nil {
		return err
	}
	if c.core, err = quorum.New(quorum.Config{
		ID: quorum.NodeID(c.options.Machine.NodeID), Voters: quorumIDs(c.options.Voters),
		// With no other voter none of these is ever waited for.
		ElectionTimeoutMs: 1000, FetchTimeoutMs: 2000, BackoffMaxMs: 1000, RequestTimeoutMs: 2000, FetchMaxWaitMs: 500,
		Random: rand.Int64N,
	}, state, quorum.LogState{StartOffset: c.partition.LogStartOffset(), EndOffset: c.partition.LogEndOffset(), Epochs: epochs}, nowMs); err != nil {
		return err
	}
	if err := c.advance(); err != nil {
		return err
	}
	return c.activate(bootstrap, nowMs)
}

func (c *Controller) progress(r partlog.Recovery) {
	if r.TruncatedBytes > 0 || r.SegmentsDropped > 0 || r.Repaired != "" {
		c.log.Warn("metadata log repaired", zap.Int64("segment", r.SegmentBase), zap.Int64("truncatedBytes", r.TruncatedBytes),
			zap.Int("segmentsDropped", r.SegmentsDropped), zap.String("repaired", r.Repaired))
	}
}

// identify checks or writes partition.metadata.
func (c *Controller) identify() error {
	id, err := checkpoint.ReadPartitionMetadata(c.options.FS, c.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkpoint.WritePartitionMetadata(c.options.FS, c.dir, topicID)
	case err != nil:
		return err
	case id != topicID:
		return fmt.Errorf("%s has topic id %s, not that of the metadata topic, %s", checkpoint.PartitionMetadataFile, id, topicID)
	}
	return nil
}

// activate writes what a new active controller has to write and publishes the first image.
func (c *Controller) activate(bootstrap []logrecord.ClusterRecord, nowMs int64) error {
	c.machine.Activate(nowMs)
	ops := []metadata.Op{metadata.ActivationRecords(bootstrap)}
	if len(c.options.Endpoints) > 0 {
		ops = append(ops, metadata.RegisterController(c.registration()))
	}
	for _, op := range ops {
		t := &task{op: op, done: make(chan struct{})}
		if err := c.commit([]*task{t}); err != nil {
			return err
		}
		if t.err != nil {
			return t.err
		}
	}
	return nil
}

func (c *Controller) registration() *logrecord.RegisterControllerRecord {
	r := &logrecord.RegisterControllerRecord{
		ControllerID: int32(c.options.Machine.NodeID), IncarnationID: c.options.IncarnationID, EndPoints: c.options.Endpoints,
	}
	for _, f := range metadata.Served(c.options.Machine.Features) {
		r.Features = append(r.Features, logrecord.FeatureRange{Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max})
	}
	return r
}

func quorumIDs(ids []metadata.BrokerID) []quorum.NodeID {
	to := make([]quorum.NodeID, len(ids))
	for i, id := range ids {
		to[i] = quorum.NodeID(id)
	}
	return to
}

// readBytes is how much of the log is read at a time.
const readBytes = 1 << 20

// replayLog feeds the log to the machine and returns where its epochs begin. All of it counts as committed: what a quorum of one has on its
// disk, a majority has.
func (c *Controller) replayLog() ([]quorum.EpochStart, error) {
	var epochs []quorum.EpochStart
	at, end := max(c.machine.NextOffset(), c.partition.LogStartOffset()), c.partition.LogEndOffset()
	if c.partition.LogStartOffset() > c.machine.NextOffset() {
		return nil, fmt.Errorf("the log starts at offset %d, and there is no snapshot of what came before", c.partition.LogStartOffset())
	}
	for at < end {
		bytes, err := c.read(at, end)
		if err != nil {
			return nil, err
		}
		before := at
		for len(bytes) >= record.HeaderBytes && record.SizeOf(bytes) <= int64(len(bytes)) {
			b, rest, err := record.Split(bytes)
			if err != nil {
				return nil, fmt.Errorf("after offset %d: %w", at-1, err)
			}
			bytes = rest
			if b.NextOffset() <= at {
				continue
			}
			if e := b.LeaderEpoch(); len(epochs) == 0 || epochs[len(epochs)-1].Epoch < e {
				epochs = append(epochs, quorum.EpochStart{Epoch: e, StartOffset: b.BaseOffset()})
			}
			if err := c.replayBatch(b, at); err != nil {
				return nil, err
			}
			at = b.NextOffset()
		}
		if at == before {
			return nil, fmt.Errorf("no whole batch at offset %d of a log that ends before %d", at, end)
		}
	}
	return epochs, nil
}

func (c *Controller) read(from, end int64) ([]byte, error) {
	s, err := c.partition.Read(from, readBytes, true, end)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.Bytes == 0 {
		return nil, fmt.Errorf("nothing at offset %d of a log that ends before %d", from, end)
	}
	bytes := make([]byte, s.Bytes)
	if _, err := s.File.ReadAt(bytes, s.Position); err != nil {
		return nil, err
	}
	return bytes, nil
}

func (c *Controller) replayBatch(b record.Batch, from int64) error {
	for r, err := range b.Records(maxBatchBytes) {
		if err != nil {
			return fmt.Errorf("batch at offset %d: %w", b.BaseOffset(), err)
		}
		if r.Offset < from {
			continue
		}
		if b.IsControl() {
			if err := checkControl(r); err != nil {
				return err
			}
			continue
		}
		value, err := logrecord.ParseCluster(r.Value)
		if err != nil {
			return fmt.Errorf("offset %d: %w", r.Offset, err)
		}
		if err := c.machine.Replay(r.Offset, value); err != nil {
			return err
		}
	}
	c.machine.SkipTo(b.LastOffset())
	return nil
}

// checkControl refuses logs of quorums whose voters are in the log: this node would not follow their changes.
func checkControl(r record.Record) error {
	control, err := record.ParseControl(r)
	if err != nil {
		return fmt.Errorf("offset %d: %w", r.Offset, err)
	}
	switch k := control.(type) {
	case record.KRaftVersion:
		if k.KRaftVersion > 0 {
			return fmt.Errorf("offset %d: the metadata quorum has kraft.version %d (voters that can change); only static voters, version 0, are supported", r.Offset, k.KRaftVersion)
		}
	case record.Voters:
		return fmt.Errorf("offset %d: the metadata quorum keeps its voters in the log; only static voters are supported", r.Offset)
	}
	return nil
}
