package txn

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"sluice/broker/coordinator/machine"
)

// Status is how far the current transaction of a transactional id is.
type Status int8

// The statuses, numbered as in Kafka's records.
const (
	Empty          Status = iota // never had a transaction since its producer was initialized
	Ongoing                      // has partitions, and is neither committed nor aborted
	PrepareCommit                // decided: markers are being written
	PrepareAbort                 // decided: markers are being written
	CompleteCommit               // all markers are written
	CompleteAbort                // all markers are written
)

var statusNames = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"}

// transientStatusNames are states of Kafka that never show, and may be asked for all the same.
var transientStatusNames = [...]string{"Dead", "PrepareEpochFence"}

func (s Status) String() string { return statusNames[s] }

// deciding says that the outcome is fixed and markers are being written.
func (s Status) deciding() bool { return s == PrepareCommit || s == PrepareAbort }

// idle says that no transaction is under way.
func (s Status) idle() bool { return s == Empty || s == CompleteCommit || s == CompleteAbort }

const (
	noProducerID    = -1
	noProducerEpoch = -1
	noTimestamp     = -1

	// lastUsableEpoch is the last one that a producer may be given; the one above it is left to fence it.
	lastUsableEpoch = math.MaxInt16 - 1
)

// A state is what a transactional id's record says. It does not change.
type state struct {
	producerID, prevProducerID int64 // prevProducerID is the one before the last change of state
	nextProducerID             int64 // that the producer gets with the end of this transaction; noProducerID: it keeps its own
	epoch                      int16
	lastEpoch                  int16 // that the producer had before it was given this one, if both are its own; not in the record
	clientVersion              int16 // of transactions, as the client or who aborted for it understood them
	timeoutMs                  int32
	status                     Status
	partitions                 Partitions
	startMs, updatedMs         int64
}

// exhausted says that the producer cannot be given another epoch.
func (s *state) exhausted() bool { return s.epoch >= lastUsableEpoch }

// change returns a copy to be changed into the next state.
func (s *state) change() *state {
	next := *s
	next.prevProducerID = s.producerID
	return &next
}

// A transaction is a transactional id with its state, and what is known about it in memory only.
type transaction struct {
	id string
	*state
	timer      timer       // Ongoing: when its time is up; while a completion is under way: the next step of that
	completion *completion // nil while there is none
}

// Partitions are a set of partitions: topics by name, partitions ascending. It does not change.
type Partitions []TopicPartitions

// TopicPartitions are partitions of one topic.
type TopicPartitions struct {
	Topic      string
	Partitions []int32
}

// Contains says whether a partition is in the set.
func (p Partitions) Contains(topic string, partition int32) bool {
	i, found := p.find(topic)
	if !found {
		return false
	}
	_, found = slices.BinarySearch(p[i].Partitions, partition)
	return found
}

func (p Partitions) containsAll(of Partitions) bool {
	for _, t := range of {
		for _, partition := range t.Partitions {
			if !p.Contains(t.Topic, partition) {
				return false
			}
		}
	}
	return true
}

func (p Partitions) find(topic string) (int, bool) {
	return slices.BinarySearchFunc(p, topic, func(t TopicPartitions, name string) int { return cmp.Compare(t.Topic, name) })
}

// With returns the set with more in it, which may be in any order.
func (p Partitions) With(added ...TopicPartitions) Partitions {
	all := slices.Concat(p, added)
	slices.SortStableFunc(all, func(a, b TopicPartitions) int { return cmp.Compare(a.Topic, b.Topic) })
	sum := all[:0]
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].Topic == all[i].Topic {
			j++
		}
		var partitions []int32
		for _, t := range all[i:j] {
			partitions = append(partitions, t.Partitions...)
		}
		slices.Sort(partitions)
		sum = append(sum, TopicPartitions{Topic: all[i].Topic, Partitions: slices.Compact(partitions)})
		i = j
	}
	return sum
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// identity is the producer as it is now.
func (s *state) identity() machine.Producer {
	return machine.Producer{ID: s.producerID, Epoch: s.epoch}
}
