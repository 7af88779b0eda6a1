package diff

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/record"
)

// setupLimit bounds the making of what a scenario needs, in which nothing is compared.
const setupLimit = 20 * time.Second

// topic creates a topic on both brokers and waits until every partition serves. Its id is kept under the name. Configs are pairs.
func (r *Run) topic(name string, partitions int32, configs ...string) {
	r.t.Helper()
	r.both(func(_ int, s *side) {
		req := createTopics(name, partitions, 1, configs...)
		req.SetVersion(7)
		c := s.conn("setup")
		c.send(appendFrame(req, 0), req.ResponseKind())
		resp, ok := c.receive(setupLimit).response.(*kmsg.CreateTopicsResponse)
		if !ok || resp.Topics[0].ErrorCode != 0 {
			r.t.Errorf("%s: create %s: %+v", s.name, name, resp)
			return
		}
		s.keep(name, resp.Topics[0].TopicID)
		r.waitForLeaders(s, name, partitions)
	})
	r.norm.rename("topic id", idOf(r.sides[0], name), idOf(r.sides[1], name))
}

// waitForLeaders waits until a topic can be read from and, as far as metadata tells, written to.
func (r *Run) waitForLeaders(s *side, name string, partitions int32) {
	c := s.conn("setup")
	deadline := time.Now().Add(setupLimit)
	for {
		req := listOffsets(name, -1, 0)
		for p := int32(1); p < partitions; p++ {
			asked := kmsg.NewListOffsetsRequestTopicPartition()
			asked.Partition, asked.Timestamp = p, -1
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, asked)
		}
		req.SetVersion(7)
		c.send(appendFrame(req, 0), req.ResponseKind())
		resp, ok := c.receive(setupLimit).response.(*kmsg.ListOffsetsResponse)
		ready := ok
		if ok {
			for _, p := range resp.Topics[0].Partitions {
				ready = ready && p.ErrorCode == 0
			}
		}
		if ready {
			return
		}
		if time.Now().After(deadline) {
			r.t.Errorf("%s: %s has no leaders", s.name, name)
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// idOf is the id of a topic made by topic.
func idOf(s *side, name string) [16]byte { return get[[16]byte](s, name) }

// warmUps is how many names are asked for, so that each of the fifty partitions of a coordinator's topic is among them.
const warmUps = 600

// waitForGroups waits until each partition of the offsets topic has a coordinator that has loaded.
func waitForGroups(address string) error {
	c := &conn{address: address}
	defer c.close()
	deadline := time.Now().Add(60 * time.Second)
	for n := 0; n < warmUps; {
		group := fmt.Sprintf("d-warm-up-%d", n)
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.CoordinatorKey = group
		find.SetVersion(2)
		c.send(appendFrame(find, 0), find.ResponseKind())
		found, ok := c.receive(setupLimit).response.(*kmsg.FindCoordinatorResponse)
		if ok && found.ErrorCode == 0 {
			beat := kmsg.NewPtrHeartbeatRequest()
			beat.Group, beat.MemberID = group, "nobody"
			beat.SetVersion(4)
			c.send(appendFrame(beat, 0), beat.ResponseKind())
			if resp, ok := c.receive(setupLimit).response.(*kmsg.HeartbeatResponse); ok && resp.ErrorCode == 25 {
				n++
				continue
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: no coordinator for %s", address, group)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// waitForTransactions waits until each partition of the transactions topic has a coordinator that has loaded.
func waitForTransactions(address string) error {
	c := &conn{address: address}
	defer c.close()
	deadline := time.Now().Add(60 * time.Second)
	for n := 0; n < warmUps; {
		id := fmt.Sprintf("d-warm-up-%d", n)
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.CoordinatorKey, find.CoordinatorType = id, 1
		find.SetVersion(2)
		c.send(appendFrame(find, 0), find.ResponseKind())
		found, ok := c.receive(setupLimit).response.(*kmsg.FindCoordinatorResponse)
		if ok && found.ErrorCode == 0 {
			end := kmsg.NewPtrEndTxnRequest()
			end.TransactionalID = id
			end.SetVersion(3)
			c.send(appendFrame(end, 0), end.ResponseKind())
			if resp, ok := c.receive(setupLimit).response.(*kmsg.EndTxnResponse); ok && resp.ErrorCode == 49 {
				n++
				continue
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: no transaction coordinator for %s", address, id)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// waitForProducerIDs waits until a broker gives out producer ids: Apache Kafka fetches its first block of them when the first is wanted.
func waitForProducerIDs(address string) error {
	c := &conn{address: address}
	defer c.close()
	deadline := time.Now().Add(30 * time.Second)
	for {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.ProducerID, req.ProducerEpoch = -1, -1
		req.SetVersion(4)
		c.send(appendFrame(req, 0), req.ResponseKind())
		if resp, ok := c.receive(setupLimit).response.(*kmsg.InitProducerIDResponse); ok && resp.ErrorCode == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: no producer ids", address)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func createTopics(name string, partitions int32, replicas int16, configs ...string) *kmsg.CreateTopicsRequest {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, replicas
	for i := 0; i < len(configs); i += 2 {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = configs[i], &configs[i+1]
		topic.Configs = append(topic.Configs, config)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 10_000
	req.Topics = append(req.Topics, topic)
	return req
}

func listOffsets(name string, timestampMs int64, partition int32) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	asked := kmsg.NewListOffsetsRequestTopicPartition()
	asked.Partition, asked.Timestamp, asked.CurrentLeaderEpoch = partition, timestampMs, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = name
	t.Partitions = append(t.Partitions, asked)
	req.Topics = append(req.Topics, t)
	return req
}

func metadata(create bool, topics ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = create
	for i := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &topics[i]
		req.Topics = append(req.Topics, topic)
	}
	return req
}

// baseTime is the timestamp of records, in milliseconds: half an hour ago, so that nothing is too old or too new for a broker, and
// differs from what brokers stamp themselves.
var baseTime = time.Now().Add(-30 * time.Minute).UnixMilli()

// plain are the options of a batch without a producer id.
func plain() record.BuilderOptions { return record.Unattributed() }

// from are the options of an idempotent producer's batch.
func from(id int64, epoch int16, sequence int32) record.BuilderOptions {
	o := record.Unattributed()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence = record.ProducerID(id), record.ProducerEpoch(epoch), sequence
	return o
}

// batch builds a batch as a client would send it, of records with the key "k" and times that count up from baseTime.
func batch(o record.BuilderOptions, values ...string) []byte {
	b := record.NewBuilder(o)
	for i, v := range values {
		b.Add(record.Record{TimestampMs: baseTime + int64(i), Key: []byte("k"), Value: []byte(v)})
	}
	built, err := b.Build()
	if err != nil {
		panic(err) // a batch of our own
	}
	return built
}

func produce(name string, id [16]byte, acks int16, partition int32, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 10_000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = name, id
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return req
}

// fill writes a batch into a partition of both brokers and compares the answers.
func (r *Run) fill(name string, partition int32, values ...string) {
	ask[*kmsg.ProduceResponse](r, fmt.Sprintf("fill partition %d", partition), 9, func(s *side) kmsg.Request {
		return produce(name, idOf(s, name), -1, partition, batch(plain(), values...))
	})
}

// fetch asks for one partition, without a session.
func fetch(name string, id [16]byte, partition int32, offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.ReplicaState.ID = -1, -1
	req.MaxBytes, req.MinBytes, req.MaxWaitMillis = 1<<20, 1, 50
	req.SessionID, req.SessionEpoch = 0, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch, p.LastFetchedEpoch = partition, offset, 1<<20, -1, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = name, id
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// member is one member of a classic group: its connection and what it knows of itself.
type member struct {
	name     string // of the connection, and of the kept member id
	instance string // empty: dynamic
}

func (m member) id(s *side) string { return get[string](s, m.name) }

func (m member) instanceID() *string {
	if m.instance == "" {
		return nil
	}
	return &m.instance
}

// join is a request to join as this member; the first one of a dynamic member has no id.
func (m member) join(s *side, group string, protocols ...string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID = group, m.id(s), m.instanceID()
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 30_000, 5_000
	req.ProtocolType = "consumer"
	if len(protocols) == 0 {
		protocols = []string{"range"}
	}
	for _, name := range protocols {
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = name, []byte("subscription of "+m.name)
		req.Protocols = append(req.Protocols, p)
	}
	return req
}

// sync is a request to sync, with an assignment for each of the members if it is the leader's.
func (m member) sync(s *side, group string, generation int32, assignTo ...member) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = group, m.id(s), m.instanceID(), generation
	req.ProtocolType, req.Protocol = pointer("consumer"), pointer("range")
	for _, other := range assignTo {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = other.id(s), []byte("assignment of "+other.name)
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	return req
}

func (m member) heartbeat(s *side, group string, generation int32) *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = group, m.id(s), m.instanceID(), generation
	return req
}

// keepMember keeps the member id that a join gave.
func (m member) keepMember(s *side, resp *kmsg.JoinGroupResponse) {
	if resp.MemberID != "" {
		s.keep(m.name, resp.MemberID)
	}
	s.keep(m.name+" generation", resp.Generation)
}

// joinAlone makes a group of one stable member, at versions that name the member first. Steps are compared.
func (r *Run) joinAlone(group string, m member) {
	at := r.connection(m.name)
	if m.instance == "" {
		ask(at, "join without an id", 5, func(s *side) kmsg.Request { return m.join(s, group) }, m.keepMember)
	}
	ask(at, "join", 5, func(s *side) kmsg.Request { return m.join(s, group) }, m.keepMember)
	ask[*kmsg.SyncGroupResponse](at, "sync", 5, func(s *side) kmsg.Request { return m.sync(s, group, get[int32](s, m.name+" generation"), m) })
}

func commit(s *side, group string, m *member, generation int32, topic string, offset int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, generation
	if m != nil {
		req.MemberID, req.InstanceID = m.id(s), m.instanceID()
	}
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = topic, idOf(s, topic)
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset, p.LeaderEpoch, p.Metadata = offset, 0, pointer("note")
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func pointer[T any](v T) *T { return &v }
