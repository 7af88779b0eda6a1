package replica

import (
	"errors"
	"syscall"

	"go.uber.org/zap"

	"sluice/storage/partlog"
)

// A full disk is not a broken one. The log that met it takes no more writes, as after any failed write, but the directory stays in use:
// reading goes on, and the log is opened anew once there is space again. What was acknowledged is in it; a torn end is cut off.

// outOfSpace tells a full disk, which passes, from a broken one.
func outOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

const (
	// reopenIntervalMs is the least time between two attempts to open a log anew: each scans what is not flushed.
	reopenIntervalMs = 1000
	// spaceToWrite is the free space, in bytes, below which a disk counts as full.
	spaceToWrite = 1 << 20
)

// full reports whether the directory's volume is known to have no space to speak of.
func (s *Set) full(d *directory) bool {
	_, free, err := s.options.FS.Usage(d.Path())
	return err == nil && free >= 0 && free < spaceToWrite
}

// reopenedLocked opens the log anew if err says that it has stopped because the disk was full, and the disk is not full any more.
func (r *Replica) reopenedLocked(err error, nowMs int64) bool {
	fault := (*partlog.Fault)(nil)
	if !errors.As(err, &fault) || !outOfSpace(fault) || nowMs-r.writer.reopenedMs < reopenIntervalMs || r.set.full(r.dir) {
		return false
	}
	r.writer.reopenedMs = nowMs
	before := r.log()
	after, err := r.set.openLog(r.dir, r.topic, r.topicID, r.index, r.config.Load(), checkpoints{
		logStartOffset: before.LogStartOffset(), recoveryPoint: before.RecoveryPoint(), cleanedTo: r.cleanedTo.Load(),
	})
	if err != nil {
		r.set.options.Log.Warn("a log that met a full disk could not be opened anew yet", zap.String("topic", r.topic), zap.Int32("partition", r.index), zap.Error(err))
		return false
	}
	r.set.options.Log.Info("a log that met a full disk is open anew", zap.String("topic", r.topic), zap.Int32("partition", r.index),
		zap.Int64("log_end_offset", after.LogEndOffset()))
	r.current.Store(after)
	before.Discard()
	return true
}
