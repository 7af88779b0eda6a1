package metadata

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/uuid"
)

// The machine answers and writes as Kafka's controller does; each script is about one subject. After every operation the records
// written so far, replayed into a fresh machine, give the same image.
func TestMachine(t *testing.T) {
	datadriven.Walk(t, "testdata/machine", func(t *testing.T, path string) {
		h := newHarness(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			h.t = t
			h.nowMs += intArg(d, "after", 0)
			switch d.Cmd {
			case "init":
				return h.init(d)
			case "image":
				return h.short(printImage(h.machine.Image()))
			case "register":
				return h.register(d)
			case "heartbeat":
				return h.heartbeat(d)
			case "join":
				return h.join(d)
			case "unregister":
				req := kmsg.NewUnregisterBrokerRequest()
				req.BrokerID = int32(intArg(d, "id", 1))
				return h.run(UnregisterBroker(&req))
			case "fence-stale":
				return h.run(FenceStaleBrokers())
			case "finalized":
				return h.finalized(d)
			case "activate":
				h.machine.Activate(h.nowMs)
				return "ok\n"
			case "create-topics":
				return h.createTopics(d)
			case "delete-topics":
				return h.deleteTopics(d)
			case "create-partitions":
				return h.createPartitions(d)
			case "incremental-alter-configs":
				return h.incrementalAlterConfigs(d)
			case "alter-configs":
				return h.alterConfigs(d)
			case "allocate-producer-ids":
				req := kmsg.NewAllocateProducerIDsRequest()
				req.BrokerID, req.BrokerEpoch = int32(intArg(d, "id", 1)), h.epoch(d)
				return h.run(AllocateProducerIDs(&req))
			case "elect-leaders":
				return h.electLeaders(d)
			case "alter-partition":
				return h.alterPartition(d)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

// incarnation and directory make ids out of small numbers.
func testID(kind byte, n int64) (id uuid.UUID) {
	copy(id[:], fmt.Sprintf("%c%015d", kind, n))
	return id
}

func (h *harness) epoch(d *datadriven.TestData) int64 {
	if b, found := h.machine.next.brokers.get(BrokerID(intArg(d, "id", 1))); found {
		return intArg(d, "epoch", int64(b.Epoch))
	}
	return intArg(d, "epoch", -1)
}

// register id=n [incarnation=n] [rack=name] [previous-epoch=n] [dirs=n] [cluster=id] [metadata-version-max=n]
func (h *harness) register(d *datadriven.TestData) string {
	req := kmsg.NewBrokerRegistrationRequest()
	id := intArg(d, "id", 1)
	req.Version, req.BrokerID, req.ClusterID = 4, int32(id), "test-cluster"
	if c := stringArg(d, "cluster"); c != "" {
		req.ClusterID = c
	}
	req.IncarnationID = testID('i', intArg(d, "incarnation", id*100+1))
	h.names[req.IncarnationID] = fmt.Sprintf("incarnation(%d)", intArg(d, "incarnation", id*100+1))
	for i := range intArg(d, "dirs", 1) {
		dir := testID('d', intArg(d, "dir", id*10+i+1))
		h.names[dir] = fmt.Sprintf("dir(%d)", intArg(d, "dir", id*10+i+1))
		req.LogDirs = append(req.LogDirs, dir)
	}
	if rack := stringArg(d, "rack"); rack != "" {
		req.Rack = &rack
	}
	req.PreviousBrokerEpoch = intArg(d, "previous-epoch", -1)
	listener := kmsg.NewBrokerRegistrationRequestListener()
	listener.Name, listener.Host, listener.Port = "PLAINTEXT", "host"+strconv.Itoa(int(id)), 9092
	req.Listeners = append(req.Listeners, listener)
	for _, f := range Served(allFeatures) {
		feature := kmsg.NewBrokerRegistrationRequestFeature()
		feature.Name, feature.MinSupportedVersion, feature.MaxSupportedVersion = f.Name, f.Min, f.Max
		if f.Name == FeatureMetadataVersion {
			feature.MaxSupportedVersion = int16(intArg(d, "metadata-version-max", int64(f.Max)))
		}
		if !d.HasArg("without") || stringArg(d, "without") != f.Name {
			req.Features = append(req.Features, feature)
		}
	}
	return h.run(RegisterBroker(&req))
}

// heartbeat id=n [epoch=n] [offset=n] [want-fence] [want-shutdown] [offline=n] [cordoned=n]
func (h *harness) heartbeat(d *datadriven.TestData) string {
	req := kmsg.NewBrokerHeartbeatRequest()
	id := intArg(d, "id", 1)
	req.BrokerID, req.BrokerEpoch = int32(id), h.epoch(d)
	req.CurrentMetadataOffset = intArg(d, "offset", h.machine.offset)
	req.WantFence, req.WantShutdown = d.HasArg("want-fence"), d.HasArg("want-shutdown")
	if n := intArg(d, "offline", 0); n > 0 {
		req.OfflineLogDirs = append(req.OfflineLogDirs, testID('d', n))
	}
	if d.HasArg("cordoned") {
		req.CordonedLogDirs = [][16]byte{}
		if n := intArg(d, "cordoned", 0); n > 0 {
			req.CordonedLogDirs = append(req.CordonedLogDirs, testID('d', n))
		}
	}
	return h.run(BrokerHeartbeat(&req))
}

// join registers and unfences brokers quietly: join ids=(1,2,3) [racks]
func (h *harness) join(d *datadriven.TestData) string {
	for _, a := range d.CmdArgs {
		if a.Key != "ids" {
			continue
		}
		for i, id := range a.Vals {
			reg := *d
			reg.CmdArgs = []datadriven.CmdArg{{Key: "id", Vals: []string{id}}}
			if d.HasArg("racks") {
				reg.CmdArgs = append(reg.CmdArgs, datadriven.CmdArg{Key: "rack", Vals: []string{"r" + strconv.Itoa(i%2)}})
			}
			h.register(&reg)
			h.heartbeat(&reg)
		}
	}
	return "ok\n"
}

// create-topics takes a topic a line: name [partitions=n] [rf=n] [assign=0:1,2;1:2,3] [config.name=value]. A name may be quoted.
func (h *harness) createTopics(d *datadriven.TestData) string {
	req := kmsg.NewCreateTopicsRequest()
	req.Version, req.ValidateOnly = 7, d.HasArg("validate-only")
	for line := range strings.Lines(d.Input) {
		name, fields := splitLine(line)
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
		for _, f := range fields {
			key, value, _ := strings.Cut(f, "=")
			switch {
			case key == "partitions":
				t.NumPartitions = int32(number(value))
			case key == "rf":
				t.ReplicationFactor = int16(number(value))
			case key == "assign":
				for part := range strings.SplitSeq(value, ";") {
					partition, replicas, _ := strings.Cut(part, ":")
					a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
					a.Partition, a.Replicas = int32(number(partition)), numbers(replicas)
					t.ReplicaAssignment = append(t.ReplicaAssignment, a)
				}
			default:
				c := kmsg.NewCreateTopicsRequestTopicConfig()
				c.Name = key
				if value != "null" {
					c.Value = &value
				}
				t.Configs = append(t.Configs, c)
			}
		}
		req.Topics = append(req.Topics, t)
	}
	return h.run(CreateTopics(&req))
}

// splitLine cuts a line into a first word, which may be quoted, and the others.
func splitLine(line string) (first string, rest []string) {
	line = strings.TrimSpace(line)
	if quoted, err := strconv.QuotedPrefix(line); err == nil {
		first, _ = strconv.Unquote(quoted)
		if long, n, found := strings.Cut(first, "*"); found {
			first = strings.Repeat(long, number(n))
		}
		return first, strings.Fields(line[len(quoted):])
	}
	fields := strings.Fields(line)
	return fields[0], fields[1:]
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func numbers(s string) []int32 {
	all := []int32{}
	for n := range strings.SplitSeq(s, ",") {
		if n != "" {
			all = append(all, int32(number(n)))
		}
	}
	return all
}

// delete-topics takes a line each: name NAME, id NAME (of the topic with that name), both NAME, neither, or unknown-id.
func (h *harness) deleteTopics(d *datadriven.TestData) string {
	req := kmsg.NewDeleteTopicsRequest()
	req.Version = 6
	for line := range strings.Lines(d.Input) {
		kind, rest := splitLine(line)
		t := kmsg.NewDeleteTopicsRequestTopic()
		if kind == "name" || kind == "both" {
			t.Topic = &rest[0]
		}
		if kind == "id" || kind == "both" {
			topic, found := h.machine.next.topics.get(rest[0])
			if !found {
				return "no topic " + rest[0]
			}
			t.TopicID = topic.ID
		}
		if kind == "unknown-id" {
			t.TopicID = testID('u', 1)
			h.names[t.TopicID] = "id(unknown)"
		}
		req.Topics = append(req.Topics, t)
	}
	return h.run(DeleteTopics(&req))
}

// create-partitions takes a line each: name count [assign=1,2;2,3]
func (h *harness) createPartitions(d *datadriven.TestData) string {
	req := kmsg.NewCreatePartitionsRequest()
	req.Version, req.ValidateOnly = 3, d.HasArg("validate-only")
	for line := range strings.Lines(d.Input) {
		name, rest := splitLine(line)
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = name, int32(number(rest[0]))
		for _, f := range rest[1:] {
			for replicas := range strings.SplitSeq(strings.TrimPrefix(f, "assign="), ";") {
				a := kmsg.NewCreatePartitionsRequestTopicAssignment()
				a.Replicas = numbers(replicas)
				t.Assignment = append(t.Assignment, a)
			}
		}
		req.Topics = append(req.Topics, t)
	}
	return h.run(CreatePartitions(&req))
}

func resourceType(s string) kmsg.ConfigResourceType {
	for _, t := range []ResourceType{TopicResource, BrokerResource, BrokerLoggerResource, ClientMetricsResource, GroupResource} {
		if strings.EqualFold(strings.ReplaceAll(t.String(), "_", "-"), s) {
			return kmsg.ConfigResourceType(t)
		}
	}
	return kmsg.ConfigResourceType(number(s))
}

// incremental-alter-configs takes a resource a line: type name set:k=v delete:k append:k=v subtract:k=v
func (h *harness) incrementalAlterConfigs(d *datadriven.TestData) string {
	req := kmsg.NewIncrementalAlterConfigsRequest()
	req.ValidateOnly = d.HasArg("validate-only")
	for line := range strings.Lines(d.Input) {
		kind, rest := splitLine(line)
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType = resourceType(kind)
		r.ResourceName, rest = splitLine(strings.Join(rest, " "))
		for _, f := range rest {
			op, change, _ := strings.Cut(f, ":")
			key, value, has := strings.Cut(change, "=")
			c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			c.Name = key
			if has {
				c.Value = &value
			}
			c.Op = map[string]kmsg.IncrementalAlterConfigOp{"set": 0, "delete": 1, "append": 2, "subtract": 3, "other": 9}[op]
			r.Configs = append(r.Configs, c)
		}
		req.Resources = append(req.Resources, r)
	}
	return h.run(IncrementalAlterConfigs(&req))
}

// alter-configs takes a resource a line: type name k=v ...
func (h *harness) alterConfigs(d *datadriven.TestData) string {
	req := kmsg.NewAlterConfigsRequest()
	req.ValidateOnly = d.HasArg("validate-only")
	for line := range strings.Lines(d.Input) {
		kind, rest := splitLine(line)
		r := kmsg.NewAlterConfigsRequestResource()
		r.ResourceType = resourceType(kind)
		r.ResourceName, rest = splitLine(strings.Join(rest, " "))
		for _, f := range rest {
			key, value, has := strings.Cut(f, "=")
			c := kmsg.NewAlterConfigsRequestResourceConfig()
			c.Name = key
			if has {
				c.Value = &value
			}
			r.Configs = append(r.Configs, c)
		}
		req.Resources = append(req.Resources, r)
	}
	return h.run(AlterConfigs(&req))
}

// elect-leaders [unclean] [all], a line each: topic partition ...
func (h *harness) electLeaders(d *datadriven.TestData) string {
	req := kmsg.NewElectLeadersRequest()
	req.Version, req.ElectionType = 2, int8(intArg(d, "type", 0))
	for line := range strings.Lines(d.Input) {
		name, rest := splitLine(line)
		t := kmsg.NewElectLeadersRequestTopic()
		t.Topic = name
		for _, p := range rest {
			t.Partitions = append(t.Partitions, int32(number(p)))
		}
		req.Topics = append(req.Topics, t)
	}
	return h.run(ElectLeaders(&req))
}

// alter-partition id=n topic=t partition=n isr=(1,2) [leader-epoch=n] [partition-epoch=n] [recovering]
func (h *harness) alterPartition(d *datadriven.TestData) string {
	req := kmsg.NewAlterPartitionRequest()
	req.Version, req.BrokerID, req.BrokerEpoch = 3, int32(intArg(d, "id", 1)), h.epoch(d)
	t := kmsg.NewAlterPartitionRequestTopic()
	p := kmsg.NewAlterPartitionRequestTopicPartition()
	p.Partition = int32(intArg(d, "partition", 0))
	if topic, found := h.machine.next.topics.get(stringArg(d, "topic")); found {
		t.TopicID = topic.ID
		if int(p.Partition) < len(topic.Partitions) {
			now := topic.Partitions[p.Partition]
			p.LeaderEpoch, p.PartitionEpoch = int32(intArg(d, "leader-epoch", int64(now.LeaderEpoch))), int32(intArg(d, "partition-epoch", int64(now.PartitionEpoch)))
		}
	}
	for _, id := range numbers(stringArg(d, "isr")) {
		member := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
		member.BrokerID, member.BrokerEpoch = id, -1
		p.NewEpochISR = append(p.NewEpochISR, member)
	}
	if d.HasArg("recovering") {
		p.LeaderRecoveryState = 1
	}
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return h.run(AlterPartition(&req))
}
