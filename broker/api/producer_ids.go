package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"sluice/replication/metadata"
)

// producerIDs hands out producer ids from blocks that the controller allocates to this broker. The next block is asked for while there
// are still ids left, so that a producer seldom waits for the controller.
type producerIDs struct {
	deps *Deps
	mu   struct {
		sync.Mutex
		next, end int64 // the block in use; end is exclusive
		spare     block // the block after it, if it is there yet
		asking    bool
		waiting   []func(id int64, err error)
	}
}

type block struct{ first, length int64 }

// prefetchBelow is how many ids are left when the next block is asked for: a tenth of a block.
const prefetchBelow = 100

// allocationTimeout bounds one request to the controller.
const allocationTimeout = 30 * time.Second

// take returns the next id if there is one at hand.
func (p *producerIDs) take() (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeLocked()
}

func (p *producerIDs) takeLocked() (int64, bool) {
	m := &p.mu
	if m.next == m.end && m.spare.length > 0 {
		m.next, m.end = m.spare.first, m.spare.first+m.spare.length
		m.spare = block{}
	}
	if m.end-m.next < prefetchBelow && m.spare.length == 0 {
		p.askLocked()
	}
	if m.next == m.end {
		return 0, false
	}
	id := m.next
	m.next++
	return id, true
}

// await calls f with the next id once there is one, or with what kept the controller from giving any.
func (p *producerIDs) await(f func(id int64, err error)) {
	p.mu.Lock()
	id, ok := p.takeLocked()
	if !ok {
		p.mu.waiting = append(p.mu.waiting, f)
	}
	p.mu.Unlock()
	if ok {
		f(id, nil)
	}
}

func (p *producerIDs) askLocked() {
	if p.mu.asking {
		return
	}
	p.mu.asking = true
	go func() {
		got, err := p.allocate()
		if err != nil {
			p.deps.Log.Warn("no producer ids from the controller", zap.Error(err))
		}
		p.deliver(got, err)
	}()
}

// deliver takes a new block in and serves those who wait.
func (p *producerIDs) deliver(got block, err error) {
	p.mu.Lock()
	p.mu.asking = false
	p.mu.spare = got
	waiting := p.mu.waiting
	p.mu.waiting = nil
	ids := make([]int64, 0, len(waiting))
	for err == nil && len(ids) < len(waiting) {
		id, ok := p.takeLocked()
		if !ok { // more are waiting than the block has; takeLocked has asked for another
			p.mu.waiting = waiting[len(ids):]
			break
		}
		ids = append(ids, id)
	}
	p.mu.Unlock()
	for i, f := range waiting {
		switch {
		case i < len(ids):
			f(ids[i], nil)
		case err != nil:
			f(0, err)
		}
	}
}

func (p *producerIDs) allocate() (block, error) {
	broker, ok := p.deps.Controller.Image().Broker(p.deps.NodeID)
	if !ok {
		return block{}, errors.New("this broker is not registered yet")
	}
	request := kmsg.NewPtrAllocateProducerIDsRequest()
	request.BrokerID, request.BrokerEpoch = int32(p.deps.NodeID), int64(broker.Epoch)
	ctx, cancel := context.WithTimeout(context.Background(), allocationTimeout)
	defer cancel()
	answer, err := p.deps.Controller.Do(ctx, metadata.AllocateProducerIDs(request))
	if err != nil {
		return block{}, err
	}
	response, ok := answer.(*kmsg.AllocateProducerIDsResponse)
	if !ok {
		return block{}, fmt.Errorf("the controller answered with %T", answer)
	}
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return block{}, err
	}
	if response.ProducerIDLen <= 0 {
		return block{}, fmt.Errorf("the controller gave a block of %d producer ids", response.ProducerIDLen)
	}
	return block{response.ProducerIDStart, int64(response.ProducerIDLen)}, nil
}
