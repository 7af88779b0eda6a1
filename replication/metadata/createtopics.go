package metadata

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
)

// maxPartitionsPerOp bounds the partitions that one request may create; Kafka has the same bound.
const maxPartitionsPerOp = 10000

// CreateTopics creates topics. Each topic succeeds or fails for itself. The response is a *kmsg.CreateTopicsResponse with one answer a topic
// name, in the order of the request.
func CreateTopics(req *kmsg.CreateTopicsRequest) Op {
	return func(m *Machine, _ int64) (Result, error) {
		resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		if rejected := m.createTopicsTooLarge(req); rejected != nil {
			answerAll(resp, req, rejected)
			return Result{Response: resp}, nil
		}
		named := make(map[string]int, len(req.Topics))
		for i := range req.Topics {
			named[req.Topics[i].Topic]++
		}
		var records []logrecord.ClusterRecord
		for i := range req.Topics {
			in := &req.Topics[i]
			if named[in.Topic] < 0 {
				continue // a double, answered at its first place
			}
			out := kmsg.NewCreateTopicsResponseTopic()
			out.Topic = in.Topic
			var created []logrecord.ClusterRecord
			var rejected *Error
			switch {
			case named[in.Topic] > 1:
				rejected = reject(kerr.InvalidRequest, "Duplicate topic name.")
			case in.Topic == ClusterMetadataTopic:
				rejected = reject(kerr.InvalidRequest, "Creation of internal topic %s is prohibited.", ClusterMetadataTopic)
			default:
				created, rejected = m.createTopic(in, &out)
			}
			if rejected != nil {
				out = kmsg.NewCreateTopicsResponseTopic()
				out.Topic, out.ErrorCode, out.ErrorMessage = in.Topic, rejected.Code, rejected.message()
				out.Configs = []kmsg.CreateTopicsResponseTopicConfig{} // null would say that the client may not see them
			}
			named[in.Topic] = -1
			resp.Topics = append(resp.Topics, out)
			records = append(records, created...)
		}
		if len(records) > maxRecordsPerOp {
			resp.Topics = nil
			answerAll(resp, req, errTooLarge)
			return Result{Response: resp}, nil
		}
		if req.ValidateOnly {
			records = nil
		}
		return Result{Records: records, Response: resp}, nil
	}
}

// answerAll gives every topic of the request the same error.
func answerAll(resp *kmsg.CreateTopicsResponse, req *kmsg.CreateTopicsRequest, rejected *Error) {
	seen := map[string]bool{}
	for i := range req.Topics {
		if name := req.Topics[i].Topic; !seen[name] {
			seen[name] = true
			out := kmsg.NewCreateTopicsResponseTopic()
			out.Topic, out.ErrorCode, out.ErrorMessage = name, rejected.Code, rejected.message()
			out.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
			resp.Topics = append(resp.Topics, out)
		}
	}
}

func (m *Machine) createTopicsTooLarge(req *kmsg.CreateTopicsRequest) *Error {
	var total int64
	for i := range req.Topics {
		switch t := &req.Topics[i]; {
		case len(t.ReplicaAssignment) > 0:
			total += int64(len(t.ReplicaAssignment))
		case t.NumPartitions == -1:
			total += int64(m.settings.DefaultPartitions)
		case t.NumPartitions > 0:
			total += int64(t.NumPartitions)
		}
		if total > maxPartitionsPerOp {
			return reject(kerr.PolicyViolation, "Excessively large number of partitions per request.")
		}
	}
	return nil
}

// createTopic returns the records of a new topic and fills in its answer.
func (m *Machine) createTopic(in *kmsg.CreateTopicsRequestTopic, out *kmsg.CreateTopicsResponseTopic) ([]logrecord.ClusterRecord, *Error) {
	if rejected := m.checkNewName(in.Topic); rejected != nil {
		return nil, rejected
	}
	configs, configRecords, rejected := m.creationConfigs(in)
	if rejected != nil {
		return nil, rejected
	}
	var replicas [][]BrokerID
	if len(in.ReplicaAssignment) > 0 {
		replicas, rejected = m.assignedReplicas(in)
	} else {
		replicas, rejected = m.placedReplicas(in)
	}
	if rejected != nil {
		return nil, rejected
	}
	id, err := uuid.New(m.settings.Random)
	if err != nil {
		return nil, reject(kerr.UnknownServerError, "no random topic id: %v", err)
	}
	records := make([]logrecord.ClusterRecord, 0, 1+len(configRecords)+len(replicas))
	records = append(records, &logrecord.TopicRecord{Name: in.Topic, TopicID: id})
	records = append(records, configRecords...)
	for i, r := range replicas {
		records = append(records, m.newPartition(id, int32(i), r, m.next.activeOf(r)))
	}
	out.TopicID, out.NumPartitions, out.ReplicationFactor = id, int32(len(replicas)), int16(len(replicas[0]))
	for _, c := range m.settings.Configs.EffectiveTopicConfigs(configs, m.nodeConfigs(), m.clusterConfigs()) {
		answer := kmsg.NewCreateTopicsResponseTopicConfig()
		answer.Name, answer.ReadOnly, answer.Source, answer.IsSensitive = c.Name, c.ReadOnly, c.Source, c.Sensitive
		if !c.Sensitive {
			answer.Value = c.Value
		}
		out.Configs = append(out.Configs, answer)
	}
	return records, nil
}

func (m *Machine) checkNewName(name string) *Error {
	rejected := ValidateTopicName(name)
	if key, can := collisionKey(name); can {
		for at, other := range m.next.collisions.from(key + "\x00") {
			if strings.HasPrefix(at, key+"\x00") {
				rejected = reject(kerr.InvalidTopicException, "Topic '%s' collides with existing topic: %s", name, other)
			}
			break
		}
	}
	if _, found := m.next.topics.get(name); found {
		return reject(kerr.TopicAlreadyExists, "Topic '%s' already exists.", name)
	}
	return rejected
}

// creationConfigs checks the configs that a topic is created with.
func (m *Machine) creationConfigs(in *kmsg.CreateTopicsRequestTopic) (map[string]string, []logrecord.ClusterRecord, *Error) {
	if len(in.Configs) == 0 {
		return nil, nil, nil
	}
	configs := make(map[string]string, len(in.Configs))
	var null []string
	var edits []configEdit
	for _, c := range in.Configs {
		if c.Value == nil {
			null = append(null, c.Name)
			continue
		}
		if _, twice := configs[c.Name]; twice {
			for i := range edits {
				if edits[i].name == c.Name {
					edits[i].value = c.Value
				}
			}
		} else {
			edits = append(edits, configEdit{c.Name, c.Value})
		}
		configs[c.Name] = *c.Value
	}
	if null != nil {
		return nil, nil, reject(kerr.InvalidConfig, "Null value not supported for topic configs: %s", strings.Join(null, ","))
	}
	records, rejected := m.alterConfigs(ConfigResource{TopicResource, in.Topic}, edits, true)
	if rejected != nil {
		return nil, nil, rejected
	}
	return configs, append(records, m.clearELRsFor(records)...), nil
}

// assignedReplicas checks a manual assignment.
func (m *Machine) assignedReplicas(in *kmsg.CreateTopicsRequestTopic) ([][]BrokerID, *Error) {
	if in.ReplicationFactor != -1 {
		return nil, reject(kerr.InvalidRequest, "A manual partition assignment was specified, but replication factor was not set to -1.")
	}
	if in.NumPartitions != -1 {
		return nil, reject(kerr.InvalidRequest, "A manual partition assignment was specified, but numPartitions was not set to -1.")
	}
	byPartition := make(map[int32][]BrokerID, len(in.ReplicaAssignment))
	factor := 0
	for _, a := range in.ReplicaAssignment {
		if _, twice := byPartition[a.Partition]; twice {
			return nil, reject(kerr.InvalidReplicaAssignment, "Found multiple manual partition assignments for partition %d", a.Partition)
		}
		replicas := ids[BrokerID](a.Replicas)
		if rejected := m.checkAssignment(replicas, factor); rejected != nil {
			return nil, rejected
		}
		factor = len(replicas)
		if len(m.next.activeOf(replicas)) == 0 {
			return nil, allInactive(a.Partition)
		}
		byPartition[a.Partition] = replicas
	}
	all := make([][]BrokerID, len(byPartition))
	for i := range all {
		replicas, found := byPartition[int32(i)]
		if !found {
			return nil, reject(kerr.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
		all[i] = replicas
	}
	return all, nil
}

func allInactive(partition int32) *Error {
	return reject(kerr.InvalidReplicaAssignment, "All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", partition)
}

// placedReplicas spreads the replicas of a new topic.
func (m *Machine) placedReplicas(in *kmsg.CreateTopicsRequestTopic) ([][]BrokerID, *Error) {
	if in.ReplicationFactor < -1 || in.ReplicationFactor == 0 {
		return nil, reject(kerr.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	}
	if in.NumPartitions < -1 || in.NumPartitions == 0 {
		return nil, reject(kerr.InvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	partitions, factor := in.NumPartitions, in.ReplicationFactor
	if partitions == -1 {
		partitions = m.settings.DefaultPartitions
	}
	if factor == -1 {
		factor = m.settings.DefaultReplicationFactor
	}
	all, rejected := m.place(int(partitions), int(factor))
	if rejected != nil && rejected.Code == kerr.InvalidReplicationFactor.Code {
		rejected.Message = fmt.Sprintf("Unable to replicate the partition %d time(s): %s", factor, rejected.Message)
	}
	return all, rejected
}

// place returns the replicas of a number of new partitions, at least one active among each.
func (m *Machine) place(partitions, factor int) ([][]BrokerID, *Error) {
	p := newPlacer(m.random, m.usableBrokers())
	if rejected := p.check(factor); rejected != nil {
		return nil, rejected
	}
	all := make([][]BrokerID, partitions)
	for i := range all {
		all[i] = p.place(factor)
		if len(m.next.activeOf(all[i])) == 0 {
			return nil, reject(kerr.InvalidReplicationFactor, "All brokers are currently fenced or in controlled shutdown.")
		}
	}
	return all, nil
}

// checkAssignment checks the replicas that a client chose for a partition; factor is how many there have to be, 0 for any number.
func (m *Machine) checkAssignment(replicas []BrokerID, factor int) *Error {
	if len(replicas) == 0 {
		return reject(kerr.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	last := NoBroker
	for i, id := range sortedIDs(replicas) {
		b, known := m.next.brokers.get(id)
		switch {
		case !known:
			return reject(kerr.InvalidReplicaAssignment, "The manual partition assignment includes broker %d, but no such broker is registered.", id)
		case !b.takesReplicas():
			return reject(kerr.InvalidReplicaAssignment, "The manual partition assignment includes broker %d, but all its log directories are cordoned.", id)
		case i > 0 && id == last:
			return reject(kerr.InvalidReplicaAssignment, "The manual partition assignment includes the broker %d more than once.", id)
		}
		last = id
	}
	if factor > 0 && len(replicas) != factor {
		return reject(kerr.InvalidReplicaAssignment, "The manual partition assignment includes a partition with %d replica(s), but this is not consistent with previous partitions, which have %d replica(s).", len(replicas), factor)
	}
	return nil
}
