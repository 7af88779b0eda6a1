package record

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/cmd/sluice/cli/connect"
)

// remaining knows what a consumer with --until-end has still to read. The end of a partition is the one that it had at the start: a topic that
// is written to meanwhile does not keep the consumer from ending.
type remaining struct {
	mu       sync.Mutex
	untilEnd bool
	group    bool
	settled  bool // the group has assigned partitions, or none, and it is known where they start
	ends     map[place]int64
	next     map[place]int64 // the offset to be read next
	mine     map[place]bool  // assigned by the group
}

type place struct {
	topic     string
	partition int32
}

// start says where the partitions end, exclusive, and where they are read from.
func (r *remaining) start(ranges map[string]map[int32]connect.Range, offsets map[string]map[int32]int64, untilEnd, group bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.untilEnd, r.group = untilEnd, group
	r.ends, r.next, r.mine = map[place]int64{}, map[place]int64{}, map[place]bool{}
	for topic, partitions := range ranges {
		for partition, ends := range partitions {
			r.ends[place{topic, partition}] = ends.End
			r.next[place{topic, partition}] = offsets[topic][partition]
		}
	}
}

// read counts a record, and reports whether it is one from before the end.
func (r *remaining) read(record *kgo.Record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := place{record.Topic, record.Partition}
	r.next[at] = record.Offset + 1
	end, known := r.ends[at]
	return !r.untilEnd || known && record.Offset < end
}

// done reports whether everything has been read that was there at the start.
func (r *remaining) done() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.untilEnd || r.group && !r.settled {
		return false
	}
	for at, end := range r.ends {
		if r.next[at] < end && (!r.group || r.mine[at]) {
			return false
		}
	}
	return true
}

func (r *remaining) assigned(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for topic, list := range partitions {
		for _, partition := range list {
			r.mine[place{topic, partition}] = true
		}
	}
	r.settled = len(partitions) == 0
}

// starting is told where newly assigned partitions start: what the group has committed, or a place that start was told, too.
func (r *remaining) starting(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for topic, partitions := range offsets {
		for partition, offset := range partitions {
			if at := offset.EpochOffset().Offset; at >= 0 {
				r.next[place{topic, partition}] = at
			}
		}
	}
	r.settled = true
	return offsets, nil
}

func (r *remaining) revoked(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for topic, list := range partitions {
		for _, partition := range list {
			delete(r.mine, place{topic, partition})
		}
	}
}
