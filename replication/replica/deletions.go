package replica

import (
	"sync"

	"sluice/storage/logdir"
)

// deletions are the partitions whose files are being given up in the background.
type deletions struct {
	all sync.WaitGroup
	mu  struct {
		sync.Mutex
		pending map[logdir.TopicPartition]chan struct{} // closed when done
	}
}

func (d *deletions) start(tp logdir.TopicPartition, remove func()) {
	done := make(chan struct{})
	d.mu.Lock()
	if d.mu.pending == nil {
		d.mu.pending = make(map[logdir.TopicPartition]chan struct{})
	}
	d.mu.pending[tp] = done
	d.mu.Unlock()
	d.all.Go(func() {
		remove()
		d.mu.Lock()
		delete(d.mu.pending, tp)
		d.mu.Unlock()
		close(done)
	})
}

// wait returns when the partition is not being deleted.
func (d *deletions) wait(tp logdir.TopicPartition) {
	d.mu.Lock()
	done := d.mu.pending[tp]
	d.mu.Unlock()
	if done != nil {
		<-done
	}
}
