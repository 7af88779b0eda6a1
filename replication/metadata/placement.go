package metadata

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A usableBroker may be given replicas. Fenced ones only come after all others, and never first.
type usableBroker struct {
	id     BrokerID
	rack   string
	fenced bool
}

// random draws the numbers of placement from the machine's source.
type random struct{ source io.Reader }

// below returns a number in [0, n). A source that ends gives 0: placement then is merely less spread.
func (r random) below(n int) int {
	var b [8]byte
	if n <= 1 {
		return 0
	}
	if _, err := io.ReadFull(r.source, b[:]); err != nil {
		return 0
	}
	return int(binary.LittleEndian.Uint64(b[:]) % uint64(n))
}

func shuffle[T any](r random, s []T) {
	for i := len(s) - 1; i > 0; i-- {
		j := r.below(i + 1)
		s[i], s[j] = s[j], s[i]
	}
}

// A placer spreads partitions over racks and over the brokers of each rack, as Kafka's striped placement does: each partition starts in the
// rack after the one before and takes one broker of each rack in turn, so that leaders and replicas end up even.
type placer struct {
	random   random
	racks    []*rack // by name
	total    int
	unfenced int
	offset   int // the rack that the next partition starts in
	epoch    int // partitions placed since the last shuffle
}

type rack struct {
	name             string
	unfenced, fenced ring
}

// A ring hands out the brokers of one rack, starting one further for each partition.
type ring struct {
	brokers              []BrokerID
	offset, index, epoch int
}

func newPlacer(r random, brokers []usableBroker) *placer {
	p := &placer{random: r}
	byName := map[string]*rack{}
	for _, b := range brokers {
		at := byName[b.rack]
		if at == nil {
			at = &rack{name: b.rack}
			byName[b.rack] = at
			p.racks = append(p.racks, at)
		}
		if b.fenced {
			at.fenced.brokers = append(at.fenced.brokers, b.id)
		} else {
			at.unfenced.brokers = append(at.unfenced.brokers, b.id)
			p.unfenced++
		}
		p.total++
	}
	slices.SortFunc(p.racks, func(a, b *rack) int { return cmp.Compare(a.name, b.name) })
	for _, at := range p.racks {
		for _, ring := range []*ring{&at.fenced, &at.unfenced} {
			slices.Sort(ring.brokers)
			ring.offset = r.below(len(ring.brokers))
		}
	}
	p.offset = r.below(len(p.racks))
	return p
}

// check tells whether replicationFactor can be reached.
func (p *placer) check(replicationFactor int) *Error {
	switch {
	case replicationFactor <= 0:
		return reject(kerr.InvalidReplicationFactor, "Invalid replication factor %d: the replication factor must be positive.", replicationFactor)
	case p.unfenced == 0:
		return reject(kerr.InvalidReplicationFactor, "All brokers are currently fenced, or have all their log directories cordoned.")
	case replicationFactor > p.total:
		return reject(kerr.InvalidReplicationFactor, "The target replication factor of %d cannot be reached because only %d broker(s) are registered or some brokers have all their log directories cordoned.", replicationFactor, p.total)
	}
	return nil
}

// place returns the replicas of the next partition, its leader first and unfenced. check has passed.
func (p *placer) place(replicationFactor int) []BrokerID {
	if p.epoch == p.unfenced && p.unfenced > 1 {
		shuffle(p.random, p.racks)
		for _, at := range p.racks {
			shuffle(p.random, at.fenced.brokers)
			shuffle(p.random, at.unfenced.brokers)
		}
		p.epoch = 0
	}
	if p.offset == len(p.racks) {
		p.offset = 0
	}
	replicas := make([]BrokerID, 0, replicationFactor)
	first := p.offset
	for {
		if id := p.racks[first].unfenced.next(p.epoch); id != NoBroker {
			replicas = append(replicas, id)
			break
		}
		first = (first + 1) % len(p.racks)
	}
	for at := p.offset; len(replicas) < replicationFactor; at = (at + 1) % len(p.racks) {
		if at == first {
			first = -1 // the leader's rack has had its turn, this once
			continue
		}
		id := p.racks[at].unfenced.next(p.epoch)
		if id == NoBroker {
			id = p.racks[at].fenced.next(p.epoch)
		}
		if id != NoBroker {
			replicas = append(replicas, id)
		}
	}
	p.epoch++
	p.offset++
	return replicas
}

// next returns the next broker of the ring for one partition, NoBroker once all have been used for it.
func (r *ring) next(epoch int) BrokerID {
	if len(r.brokers) == 0 {
		return NoBroker
	}
	if r.epoch != epoch {
		r.epoch, r.index = epoch, 0
		r.offset = (r.offset + 1) % len(r.brokers)
	}
	if r.index >= len(r.brokers) {
		return NoBroker
	}
	id := r.brokers[(r.index+r.offset)%len(r.brokers)]
	r.index++
	return id
}

func sortedIDs(ids []BrokerID) []BrokerID {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	return sorted
}
