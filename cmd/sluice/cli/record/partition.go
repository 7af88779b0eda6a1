package record

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// chosenPartitioner writes a record to the partition that it names, and one that names none (-1) to where Java's client would: by the hash of
// its key, or, without a key, to one partition for each batch.
type chosenPartitioner struct {
	otherwise kgo.Partitioner
	// missing is the first partition that was named and does not exist.
	missing *atomic.Pointer[missingPartition]
}

type missingPartition struct{ partition, of int }

func newChosenPartitioner() chosenPartitioner {
	return chosenPartitioner{kgo.StickyKeyPartitioner(nil), new(atomic.Pointer[missingPartition])}
}

func (p chosenPartitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return &chosenInTopic{p, p.otherwise.ForTopic(topic)}
}

type chosenInTopic struct {
	chosen    chosenPartitioner
	otherwise kgo.TopicPartitioner
}

func (p *chosenInTopic) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || p.otherwise.RequiresConsistency(r)
}

func (p *chosenInTopic) Partition(r *kgo.Record, n int) int {
	if r.Partition < 0 {
		return p.otherwise.Partition(r, n)
	}
	if int(r.Partition) >= n {
		p.chosen.missing.CompareAndSwap(nil, &missingPartition{int(r.Partition), n})
		return -1 // which fails the record
	}
	return int(r.Partition)
}

func (p *chosenInTopic) OnNewBatch() {
	if sticky, ok := p.otherwise.(kgo.TopicPartitionerOnNewBatch); ok {
		sticky.OnNewBatch()
	}
}
