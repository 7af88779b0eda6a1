package api

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var recordFrom = flag.String("kafka", "", "HOST:PORT of an Apache Kafka with group.initial.rebalance.delay.ms=0: write what it answers to testdata/groups-4.4.0.txt")

const groupAnswers = "testdata/groups-4.4.0.txt"

// TestGroups_AnswersAreKafkas sends the same requests that Apache Kafka 4.4.0 once got, in all versions, and compares the answers. Only
// what differs from run to run is taken out of them: ids, ports, and the order of lists, which in Kafka is that of hash maps.
func TestGroups_AnswersAreKafkas(t *testing.T) {
	if *recordFrom != "" {
		s := &groupScript{t: t, address: *recordFrom, prefix: fmt.Sprintf("script%d", time.Now().Unix())}
		s.run()
		if err := os.WriteFile(groupAnswers, s.out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(groupAnswers)
	if err != nil {
		t.Fatal(err)
	}
	s := &groupScript{t: t, address: serveGroups(t), prefix: "script1"}
	s.run()
	if diff := gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(s.out.String(), "\n")); diff != "" {
		t.Errorf("answers differ from Kafka's (-):\n%s", diff)
	}
}

// A groupScript is a conversation about groups. What is answered goes to out, one line an answer.
type groupScript struct {
	t               *testing.T
	address, prefix string
	out             bytes.Buffer
	uuids           []string
	ids             map[string][16]byte // of topics
}

type scriptClient struct {
	s           *groupScript
	conn        net.Conn
	format      *kmsg.RequestFormatter
	correlation int32
}

func (s *groupScript) dial(clientID string) *scriptClient {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	return &scriptClient{s: s, conn: conn, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))}
}

// send sends a request; the result reads its answer.
func (c *scriptClient) send(request kmsg.Request) (receive func() kmsg.Response) {
	t := c.s.t
	t.Helper()
	c.correlation++
	if _, err := c.conn.Write(c.format.AppendRequest(nil, request, c.correlation)); err != nil {
		t.Fatal(err)
	}
	return func() kmsg.Response {
		t.Helper()
		var size [4]byte
		if _, err := io.ReadFull(c.conn, size[:]); err != nil {
			t.Fatalf("answer to %T version %d: %v", request, request.GetVersion(), err)
		}
		b := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(c.conn, b); err != nil {
			t.Fatal(err)
		}
		b = b[4:] // correlation id
		if request.IsFlexible() {
			b = b[1:]
		}
		response := request.ResponseKind()
		if err := response.ReadFrom(b); err != nil {
			t.Fatalf("answer to %T version %d: %v", request, request.GetVersion(), err)
		}
		return response
	}
}

// ask sends a request and notes the answer under its name.
func (c *scriptClient) ask(name string, request kmsg.Request) kmsg.Response {
	c.s.t.Helper()
	response := c.send(request)()
	c.s.note(name, response)
	return response
}

var (
	uuidPattern    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	addressPattern = regexp.MustCompile(`"Host":"[^"]+","Port":[1-9][0-9]*`)
	emptyFields    = regexp.MustCompile(`"(UnknownTags|ThrottleMillis|Version)":(\{\}|[0-9]+),?`)
	trailingCommas = regexp.MustCompile(`,([}\]])`)
)

// note writes an answer without what differs from run to run.
func (s *groupScript) note(name string, response kmsg.Response) {
	s.t.Helper()
	s.sortLists(response)
	b, err := json.Marshal(response)
	if err != nil {
		s.t.Fatal(err)
	}
	text := uuidPattern.ReplaceAllStringFunc(string(b), func(u string) string {
		i := slices.Index(s.uuids, u)
		if i < 0 {
			i = len(s.uuids)
			s.uuids = append(s.uuids, u)
		}
		return fmt.Sprintf("uuid%d", i)
	})
	for topic, id := range s.ids {
		n, _ := json.Marshal(id)
		text = strings.ReplaceAll(text, string(n), `"id of `+topic+`"`)
	}
	text = strings.ReplaceAll(text, "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]", "0")
	text = strings.ReplaceAll(text, s.prefix, "P")
	text = addressPattern.ReplaceAllString(text, `"Host":"host","Port":"port"`)
	text = trailingCommas.ReplaceAllString(emptyFields.ReplaceAllString(text, ""), "$1")
	fmt.Fprintf(&s.out, "%s v%d: %s\n", name, response.GetVersion(), text)
}

// sortLists puts what Kafka answers in the order of its hash maps into one that does not change.
func (s *groupScript) sortLists(response kmsg.Response) {
	switch r := response.(type) {
	case *kmsg.OffsetFetchResponse:
		for i := range r.Topics {
			slices.SortFunc(r.Topics[i].Partitions, func(a, b kmsg.OffsetFetchResponseTopicPartition) int { return cmp.Compare(a.Partition, b.Partition) })
		}
		for _, g := range r.Groups {
			for i := range g.Topics {
				slices.SortFunc(g.Topics[i].Partitions, func(a, b kmsg.OffsetFetchResponseGroupTopicPartition) int {
					return cmp.Compare(a.Partition, b.Partition)
				})
			}
		}
	case *kmsg.OffsetDeleteResponse:
		for i := range r.Topics {
			slices.SortFunc(r.Topics[i].Partitions, func(a, b kmsg.OffsetDeleteResponseTopicPartition) int { return cmp.Compare(a.Partition, b.Partition) })
		}
		slices.SortFunc(r.Topics, func(a, b kmsg.OffsetDeleteResponseTopic) int { return cmp.Compare(a.Topic, b.Topic) })
	case *kmsg.DeleteGroupsResponse:
		slices.SortFunc(r.Groups, func(a, b kmsg.DeleteGroupsResponseGroup) int { return cmp.Compare(a.Group, b.Group) })
	case *kmsg.DescribeGroupsResponse:
		slices.SortFunc(r.Groups, func(a, b kmsg.DescribeGroupsResponseGroup) int { return cmp.Compare(a.Group, b.Group) })
		for i := range r.Groups {
			slices.SortFunc(r.Groups[i].Members, func(a, b kmsg.DescribeGroupsResponseGroupMember) int { return cmp.Compare(a.MemberID, b.MemberID) })
		}
	case *kmsg.ListGroupsResponse:
		r.Groups = slices.DeleteFunc(r.Groups, func(g kmsg.ListGroupsResponseGroup) bool { return !strings.HasPrefix(g.Group, s.prefix) })
		slices.SortFunc(r.Groups, func(a, b kmsg.ListGroupsResponseGroup) int { return cmp.Compare(a.Group, b.Group) })
	case *kmsg.JoinGroupResponse:
		slices.SortFunc(r.Members, func(a, b kmsg.JoinGroupResponseMember) int { return cmp.Compare(a.MemberID, b.MemberID) })
	}
}

func at[T any](v T) *T { return &v }

func (s *groupScript) group() string { return s.prefix + "-g" }
func (s *groupScript) topic() string { return s.prefix + "-t" }
func (s *groupScript) other() string { return s.prefix + "-t2" }

func (s *groupScript) join(version int16, member string, instance *string, protocols ...string) *kmsg.JoinGroupRequest {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.Group, r.MemberID, r.InstanceID, r.ProtocolType = version, s.group(), member, instance, "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 20_000, 30_000
	for _, name := range protocols {
		m := kmsg.NewConsumerMemberMetadata()
		m.Version, m.Topics, m.UserData = 1, []string{"script-topic"}, []byte{1}
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: m.AppendTo(nil)})
	}
	return r
}

func (s *groupScript) sync(version int16, member string, generation int32, assign ...string) *kmsg.SyncGroupRequest {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version, r.Group, r.MemberID, r.Generation, r.ProtocolType, r.Protocol = version, s.group(), member, generation, at("consumer"), at("range")
	for _, m := range assign {
		r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m, MemberAssignment: []byte("for " + m[:1])})
	}
	return r
}

func (s *groupScript) commit(version int16, group, member string, generation int32, topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.MemberID, r.Generation = version, group, member, generation
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = partition, offset, 3, at("meta")
	r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, TopicID: s.ids[topic], Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	return r
}

// fetch asks for partitions of topics, for all without topics.
func (s *groupScript) fetch(version int16, group string, topics ...string) *kmsg.OffsetFetchRequest {
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Version, r.Group, r.RequireStable = version, group, version == 9
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	for _, topic := range topics {
		r.Topics = append(r.Topics, kmsg.OffsetFetchRequestTopic{Topic: topic, Partitions: []int32{0, 1, 9}})
		g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: topic, TopicID: s.ids[topic], Partitions: []int32{0, 1, 9}})
	}
	r.Groups = []kmsg.OffsetFetchRequestGroup{g}
	return r
}

func heartbeatOf(version int16, group, member string, generation int32, instance *string) *kmsg.HeartbeatRequest {
	r := kmsg.NewPtrHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.Generation, r.InstanceID = version, group, member, generation, instance
	return r
}

func describeOf(version int16, groups ...string) *kmsg.DescribeGroupsRequest {
	r := kmsg.NewPtrDescribeGroupsRequest()
	r.Version, r.Groups, r.IncludeAuthorizedOperations = version, groups, true
	return r
}

func deleteOf(version int16, groups ...string) *kmsg.DeleteGroupsRequest {
	r := kmsg.NewPtrDeleteGroupsRequest()
	r.Version, r.Groups = version, groups
	return r
}

func (s *groupScript) run() {
	admin := s.dial("admin")
	s.prepare(admin)
	s.findCoordinators(admin)
	a := s.dial("A")
	member := s.firstMember(admin, a)
	s.offsets(admin, a, member)
	s.staticMember(admin, a, member)
	s.deletions(admin)
	s.leaving(admin, member)
}

func (s *groupScript) prepare(admin *scriptClient) {
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version = 7
	for _, name := range []string{s.topic(), s.other()} {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, 3, 1
		create.Topics = append(create.Topics, t)
	}
	s.ids = map[string][16]byte{}
	for _, t := range admin.send(create)().(*kmsg.CreateTopicsResponse).Topics {
		if t.ErrorCode != 0 {
			s.t.Fatalf("create topic: %+v", t)
		}
		s.ids[t.Topic] = t.TopicID
	}
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 12
	metadata.Topics = []kmsg.MetadataRequestTopic{{Topic: at(s.other())}}
	ready := func() bool {
		r := admin.send(metadata)().(*kmsg.MetadataResponse)
		return r.Topics[0].ErrorCode == 0 && len(r.Topics[0].Partitions) == 3
	}
	for deadline := time.Now().Add(10 * time.Second); !ready(); {
		if time.Now().After(deadline) {
			s.t.Fatal("topics do not come up")
		}
	}
}

func (s *groupScript) findCoordinators(admin *scriptClient) {
	find := func(version int16, kind int8, keys ...string) *kmsg.FindCoordinatorRequest {
		r := kmsg.NewPtrFindCoordinatorRequest()
		r.Version, r.CoordinatorType, r.CoordinatorKey, r.CoordinatorKeys = version, kind, keys[0], keys
		return r
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		if admin.send(find(3, 0, s.group()))().(*kmsg.FindCoordinatorResponse).ErrorCode == 0 {
			break // Apache Kafka needs a while for the first one
		}
		if time.Now().After(deadline) {
			s.t.Fatal("no coordinator")
		}
	}
	for version := range int16(7) {
		admin.ask("find", find(version, 0, s.group(), "", "x"))
	}
	for _, version := range []int16{1, 4, 6} {
		admin.ask("find unknown type", find(version, 7, s.group(), "x"))
	}
}

// firstMember makes a group of one.
func (s *groupScript) firstMember(admin, a *scriptClient) (member string) {
	short := s.join(9, "", nil, "range")
	short.SessionTimeoutMillis = 1
	a.ask("join with a short session", short)
	nameless := s.join(9, "x", nil, "range")
	nameless.Group = ""
	a.ask("join without a group", nameless)
	a.ask("join as an unknown member", s.join(9, "nope", nil, "range"))
	a.ask("join without protocols", s.join(9, "", nil))
	member = a.ask("join first", s.join(9, "", nil, "range", "roundrobin")).(*kmsg.JoinGroupResponse).MemberID
	admin.ask("heartbeat of a pending member", heartbeatOf(4, s.group(), member, 0, nil))
	admin.ask("describe an empty group", describeOf(6, s.group()))
	for version := range int16(7) {
		admin.ask("describe no group", describeOf(version, "script-none"))
	}
	a.ask("join", s.join(9, member, nil, "range", "roundrobin"))
	a.ask("join again, the answer got lost", s.join(5, member, nil, "range", "roundrobin"))
	admin.ask("describe a syncing group", describeOf(6, s.group()))
	admin.ask("sync with another generation", s.sync(5, member, 9))
	bad := s.sync(5, member, 1)
	bad.Protocol = nil
	admin.ask("sync without a protocol", bad)
	bad = s.sync(5, member, 1)
	bad.Protocol = at("sticky")
	admin.ask("sync with another protocol", bad)
	a.ask("sync", s.sync(5, member, 1, member))
	for version := range int16(6) {
		admin.ask("sync again", s.sync(version, member, 1))
	}
	for version := range int16(7) {
		admin.ask("describe", describeOf(version, s.group(), "script-none"))
	}
	for version := range int16(5) {
		admin.ask("heartbeat", heartbeatOf(version, s.group(), member, 1, nil))
	}
	admin.ask("heartbeat of another generation", heartbeatOf(4, s.group(), member, 0, nil))
	admin.ask("heartbeat of nobody", heartbeatOf(4, s.group(), "x", 1, nil))
	admin.ask("heartbeat in no group", heartbeatOf(4, "script-none", "x", 1, nil))
	admin.ask("heartbeat without a group", heartbeatOf(4, "", "x", 1, nil))
	admin.ask("heartbeat of nobody's instance", heartbeatOf(4, s.group(), member, 1, at("x")))
	return member
}

func (s *groupScript) offsets(admin, a *scriptClient, member string) {
	g, simple := s.group(), s.prefix+"-s"
	for version := int16(2); version <= 10; version++ {
		a.ask("commit", s.commit(version, g, member, 1, s.topic(), 0, 40+int64(version)))
	}
	a.ask("commit", s.commit(10, g, member, 1, s.other(), 1, 43))
	a.ask("commit to no partition", s.commit(8, g, member, 1, s.topic(), 9, 42))
	a.ask("commit to no topic", s.commit(8, g, member, 1, "script-none", 0, 42))
	a.ask("commit to no topic", s.commit(10, g, member, 1, "script-none", 0, 42))
	big := s.commit(8, g, member, 1, s.topic(), 0, 42)
	big.Topics[0].Partitions[0].Metadata = at(strings.Repeat("x", 4097))
	a.ask("commit with large metadata", big)
	a.ask("commit of another generation", s.commit(8, g, member, 5, s.topic(), 0, 42))
	a.ask("commit of nobody", s.commit(8, g, "x", 1, s.topic(), 0, 42))
	a.ask("commit of a simple consumer to a group in use", s.commit(8, g, "", -1, s.topic(), 0, 42))
	a.ask("commit to no group", s.commit(8, "script-none", "x", 1, s.topic(), 0, 42))
	a.ask("commit to no group", s.commit(9, "script-none", "x", 1, s.topic(), 0, 42))
	kept := s.commit(2, simple, "", -1, s.topic(), 1, 7)
	kept.RetentionTimeMillis = 3600_000
	admin.ask("commit of a simple consumer", kept)
	admin.ask("commit of a simple consumer", s.commit(6, simple, "", -1, s.topic(), 0, 8))
	for version := int16(1); version <= 10; version++ {
		admin.ask("fetch", s.fetch(version, g, s.topic(), s.other(), "script-none"))
		admin.ask("fetch from no group", s.fetch(version, "script-none", s.topic()))
		if version >= 2 {
			admin.ask("fetch all", s.fetch(version, simple))
			admin.ask("fetch all from no group", s.fetch(version, "script-none"))
		}
	}
}

// staticMember has a static member join, and another take its place.
func (s *groupScript) staticMember(admin, a *scriptClient, member string) {
	b := s.dial("B")
	joinB := b.send(s.join(5, "", at("inst"), "range"))
	// B is in when the group rebalances.
	for deadline := time.Now().Add(10 * time.Second); ; {
		if admin.send(heartbeatOf(4, s.group(), member, 1, nil))().(*kmsg.HeartbeatResponse).ErrorCode != 0 {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatal("no rebalance")
		}
	}
	admin.ask("heartbeat during a rebalance", heartbeatOf(4, s.group(), member, 1, nil))
	admin.ask("sync during a rebalance", s.sync(5, member, 1))
	admin.ask("describe during a rebalance", describeOf(6, s.group()))
	joinA := a.send(s.join(9, member, nil, "range", "roundrobin"))
	joined := joinB().(*kmsg.JoinGroupResponse)
	static := joined.MemberID
	s.note("join of a static member", joined)
	s.note("join of the leader", joinA())
	syncB := s.sync(3, static, 2)
	syncB.InstanceID = at("inst")
	syncedB := b.send(syncB)
	a.ask("commit before the assignment", s.commit(8, s.group(), member, 2, s.topic(), 0, 44))
	a.ask("sync of the leader", s.sync(4, member, 2, member, static))
	s.note("sync of the follower", syncedB())

	again := s.dial("B2")
	again.ask("join of a successor", s.join(9, "", at("inst"), "range"))
	admin.ask("heartbeat of the predecessor", heartbeatOf(4, s.group(), static, 2, at("inst")))
	admin.ask("join of the predecessor", s.join(9, static, at("inst"), "range"))
	fenced := s.sync(5, static, 2)
	fenced.InstanceID = at("inst")
	admin.ask("sync of the predecessor", fenced)
	commit := s.commit(8, s.group(), static, 2, s.topic(), 0, 42)
	commit.InstanceID = at("inst")
	admin.ask("commit of the predecessor", commit)
	admin.ask("describe with a static member", describeOf(4, s.group()))
}

func (s *groupScript) deletions(admin *scriptClient) {
	remove := kmsg.NewPtrOffsetDeleteRequest()
	remove.Group = s.group()
	for topic, partitions := range map[string][]int32{s.topic(): {0}, s.other(): {1, 77}, "script-none": {0}} {
		t := kmsg.OffsetDeleteRequestTopic{Topic: topic}
		for _, p := range partitions {
			t.Partitions = append(t.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p})
		}
		remove.Topics = append(remove.Topics, t)
	}
	admin.ask("delete offsets", remove)
	remove.Group = "script-none"
	admin.ask("delete offsets of no group", remove)
	remove.Group = ""
	admin.ask("delete offsets without a group", remove)
	admin.ask("delete groups in use", deleteOf(3, s.group(), "script-none", s.group()))
	for version := range int16(6) {
		list := kmsg.NewPtrListGroupsRequest()
		list.Version = version
		admin.ask("list", list)
		if version >= 4 {
			list.StatesFilter = []string{"stable"}
			admin.ask("list stable groups", list)
			list.StatesFilter, list.TypesFilter = nil, []string{"Classic", "share"}
			admin.ask("list classic groups", list)
		}
	}
}

func (s *groupScript) leaving(admin *scriptClient, member string) {
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = s.group()
	for version := int16(3); version <= 5; version++ {
		leave.Version = version
		leave.Members = []kmsg.LeaveGroupRequestMember{{InstanceID: at("nope")}, {MemberID: "x"}, {}, {MemberID: "x", InstanceID: at("inst")}}
		admin.ask("leave as nobody", leave)
	}
	leave.Members = []kmsg.LeaveGroupRequestMember{{InstanceID: at("inst")}}
	admin.ask("leave by instance id", leave)
	leave.MemberID = member
	for version := range int16(3) {
		leave.Version = version
		admin.ask("leave", leave)
	}
	leave.Group = ""
	admin.ask("leave no group", leave)
	for version := range int16(7) {
		admin.ask("describe an empty group", describeOf(version, s.group()))
	}
	for version := range int16(4) {
		admin.ask("delete groups", deleteOf(version, s.group(), s.prefix+"-s"))
	}
	admin.ask("fetch from a deleted group", s.fetch(8, s.group(), s.topic()))
}
