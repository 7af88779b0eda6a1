package group

// noLeaderEpoch stands for "none was given with the commit".
const noLeaderEpoch = -1

// neverExpires stands for "no expiry of its own": the broker's retention decides.
const neverExpires = -1

// A committedOffset is what a group has committed for one partition. It does not change.
type committedOffset struct {
	offset        int64 // the next one to be read
	leaderEpoch   int32 // of the last record that was read; noLeaderEpoch when not given
	metadata      string
	committedAtMs int64
	expiresAtMs   int64    // neverExpires, unless OffsetCommit v2 to v4 said how long to keep it
	topicID       [16]byte // of the topic under that name at the time of the commit; zero in records of old versions
	recordOffset  int64    // where the record is in the log
}

type partitionKey struct {
	group, topic string
	partition    int32
}

// byTopic are the offsets of one group.
type byTopic map[string]map[int32]*committedOffset

// An offsetStore holds committed offsets, and those that become so with the end of a transaction.
type offsetStore struct {
	byGroup map[string]byTopic
	count   int

	pending map[int64]map[partitionKey]*committedOffset // by producer id, of open transactions
	open    map[string]map[partitionKey]map[int64]struct{}
	// open says, by group, which producers have a commit pending for a partition
}

func newOffsetStore() offsetStore {
	return offsetStore{
		byGroup: map[string]byTopic{},
		pending: map[int64]map[partitionKey]*committedOffset{},
		open:    map[string]map[partitionKey]map[int64]struct{}{},
	}
}

// get returns a committed offset, nil when there is none.
func (s *offsetStore) get(group, topic string, partition int32) *committedOffset {
	return s.byGroup[group][topic][partition]
}

func (s *offsetStore) put(group, topic string, partition int32, c *committedOffset) {
	topics := s.byGroup[group]
	if topics == nil {
		topics = byTopic{}
		s.byGroup[group] = topics
	}
	partitions := topics[topic]
	if partitions == nil {
		partitions = map[int32]*committedOffset{}
		topics[topic] = partitions
	}
	if partitions[partition] == nil {
		s.count++
	}
	partitions[partition] = c
}

// remove forgets what is committed for a partition, and what open transactions would commit.
func (s *offsetStore) remove(group, topic string, partition int32) {
	if topics := s.byGroup[group]; topics[topic][partition] != nil {
		s.count--
		delete(topics[topic], partition)
		if len(topics[topic]) == 0 {
			delete(topics, topic)
		}
		if len(topics) == 0 {
			delete(s.byGroup, group)
		}
	}
	key := partitionKey{group, topic, partition}
	for producerID := range s.open[group][key] {
		delete(s.pending[producerID], key)
	}
	s.forgetOpen(key)
}

func (s *offsetStore) putPending(producerID int64, group, topic string, partition int32, c *committedOffset) {
	key := partitionKey{group, topic, partition}
	if s.pending[producerID] == nil {
		s.pending[producerID] = map[partitionKey]*committedOffset{}
	}
	s.pending[producerID][key] = c
	if s.open[group] == nil {
		s.open[group] = map[partitionKey]map[int64]struct{}{}
	}
	if s.open[group][key] == nil {
		s.open[group][key] = map[int64]struct{}{}
	}
	s.open[group][key][producerID] = struct{}{}
}

func (s *offsetStore) forgetOpen(key partitionKey) {
	if keys := s.open[key.group]; keys != nil {
		delete(keys, key)
		if len(keys) == 0 {
			delete(s.open, key.group)
		}
	}
}

// endTransaction makes a producer's pending offsets the committed ones, unless a later commit has overtaken them, or drops them.
func (s *offsetStore) endTransaction(producerID int64, commit bool) {
	for key, c := range s.pending[producerID] {
		if producers := s.open[key.group][key]; producers != nil {
			delete(producers, producerID)
			if len(producers) == 0 {
				s.forgetOpen(key)
			}
		}
		if !commit {
			continue
		}
		if present := s.get(key.group, key.topic, key.partition); present == nil || present.recordOffset < c.recordOffset {
			s.put(key.group, key.topic, key.partition, c)
		}
	}
	delete(s.pending, producerID)
}

// isOpen reports whether a transaction has a commit pending for the partition.
func (s *offsetStore) isOpen(group, topic string, partition int32) bool {
	return len(s.open[group]) > 0 && s.open[group][partitionKey{group, topic, partition}] != nil
}
