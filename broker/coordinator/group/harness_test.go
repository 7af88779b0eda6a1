package group

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

// A harness runs a machine as the runtime does, on a clock of its own, and holds it against the replay law after each operation: a new
// machine that is fed all records so far has the same groups and offsets.
type harness struct {
	t       *testing.T
	m       *Machine
	cfg     *Config
	nowMs   int64
	log     []logged
	answers map[machine.Token]any
	token   machine.Token
	uuids   int

	// holdCommits keeps records from being committed until commit is called.
	holdCommits bool
	held        []machine.Effects
}

type logged struct {
	key, value []byte
	producer   machine.Producer
	ends       bool // an end marker
	commit     bool
}

const topicA, topicB = "a", "b"

var idA, idB = [16]byte{0xa}, [16]byte{0xb}

func newHarness(t *testing.T) *harness {
	h := &harness{
		t:     t,
		nowMs: 1_000_000,
		cfg: &Config{
			InitialRebalanceDelayMs: 3_000,
			MaxSize:                 1000,
			OffsetMetadataMaxSize:   4096,
			OffsetsRetentionMs:      7 * 24 * 3600_000,
			OffsetsRetentionCheckMs: 600_000,
			MaxBatchBytes:           1 << 20,
		},
		answers: map[machine.Token]any{},
	}
	h.m = New(func() *Config { return h.cfg })
	h.apply(h.m.Loaded(h.nowMs))
	return h
}

func (h *harness) apply(e machine.Effects) {
	h.t.Helper()
	for _, r := range e.Records {
		key := r.AppendKey(nil)
		value, tombstone := r.AppendValue(nil)
		if tombstone {
			value = nil
		} else if value == nil {
			value = []byte{}
		}
		producer := machine.NoProducer
		if e.Transaction != nil {
			producer = e.Transaction.Producer
		}
		h.log = append(h.log, logged{key: key, value: value, producer: producer})
		if !e.Live {
			h.m.Replay(int64(len(h.log)-1), producer, r)
		}
	}
	if h.holdCommits {
		h.held = append(h.held, e)
	} else {
		h.committed(e, nil)
	}
	h.checkReplayLaw()
}

func (h *harness) committed(e machine.Effects, err error) {
	h.t.Helper()
	for _, a := range e.Answers {
		if _, twice := h.answers[a.Token]; twice {
			h.t.Fatalf("token %d is answered twice", a.Token)
		}
		h.answers[a.Token] = a.Response
	}
	if e.Settled != nil {
		h.apply(e.Settled(h.nowMs, err))
	}
}

// commit settles what holdCommits has held back.
func (h *harness) commit(err error) {
	h.t.Helper()
	held := h.held
	h.held, h.holdCommits = nil, false
	for _, e := range held {
		h.committed(e, err)
	}
}

// sleep lets time pass, and all timers run that come due, each at its time.
func (h *harness) sleep(ms int64) {
	h.t.Helper()
	until := h.nowMs + ms
	for {
		at, ok := h.m.Deadline()
		if !ok || at > until {
			break
		}
		h.nowMs = max(h.nowMs, at)
		e, due := h.m.Expire(h.nowMs)
		if !due {
			h.t.Fatalf("nothing is due at the deadline %d", at)
		}
		h.apply(e)
	}
	h.nowMs = until
}

// reload replaces the machine by one loaded from the log, as after a restart.
func (h *harness) reload() {
	h.t.Helper()
	h.m = h.replayed()
	h.apply(h.m.Loaded(h.nowMs))
}

func (h *harness) replayed() *Machine {
	h.t.Helper()
	m := New(func() *Config { return h.cfg })
	for i, l := range h.log {
		if l.ends {
			m.ReplayEndTxn(l.producer, l.commit)
			continue
		}
		r, err := m.Parse(l.key, l.value)
		if err != nil {
			h.t.Fatalf("record %d: %v", i, err)
		}
		m.Replay(int64(i), l.producer, r)
	}
	return m
}

func (h *harness) checkReplayLaw() {
	h.t.Helper()
	fresh := h.replayed()
	if diff := cmp.Diff(offsetsOf(fresh), offsetsOf(h.m)); diff != "" {
		h.t.Fatalf("offsets after replay (-) are not the live ones (+):\n%s", diff)
	}
	if diff := cmp.Diff(fmt.Sprint(fresh.offsets.open), fmt.Sprint(h.m.offsets.open)); diff != "" {
		h.t.Fatalf("pending offsets after replay (-) are not the live ones (+):\n%s", diff)
	}
	if diff := cmp.Diff(sortedKeys(fresh.groups), sortedKeys(h.m.groups)); diff != "" {
		h.t.Fatalf("groups after replay (-) are not the live ones (+):\n%s", diff)
	}
	for id, g := range h.m.groups {
		if g.state != stateEmpty && g.state != stateStable {
			continue // between two records
		}
		if diff := cmp.Diff(atRest(fresh.groups[id]), atRest(g)); diff != "" {
			h.t.Fatalf("group %q after replay (-) is not the live one (+):\n%s", id, diff)
		}
	}
}

func offsetsOf(m *Machine) map[string]string {
	all := map[string]string{}
	for group, topics := range m.offsets.byGroup {
		for topic, partitions := range topics {
			for partition, c := range partitions {
				all[fmt.Sprintf("%s %s-%d", group, topic, partition)] = fmt.Sprintf("%+v", *c)
			}
		}
	}
	return all
}

// atRest is what of a group is in its records.
func atRest(g *classicGroup) map[string]any {
	r := map[string]any{
		"state": g.state.String(), "generation": g.generation, "type": g.protocolType, "protocol": g.protocol, "leader": g.leader,
		"static": g.static, "subscribed": slices.Sorted(maps.Keys(g.subscribed)), "subscribedKnown": g.subscribed != nil,
	}
	if g.state == stateEmpty {
		r["since"] = g.stateSinceMs
	}
	for _, m := range g.members {
		r["member "+m.id] = fmt.Sprint(m.instanceID == nil, m.clientID, m.clientHost, m.rebalanceTimeoutMs, m.sessionTimeoutMs, m.metadata(*g.protocol), m.assignment)
	}
	return r
}

// A who is a member in a test. The zero values of its fields are sensible.
type who struct {
	group     string // "g"
	id        string
	instance  string // empty: dynamic
	client    string // "client"
	version   int16  // 9, or 3 (which needs no id) with old
	old       bool
	sessionMs int32    // 10 s
	timeoutMs int32    // rebalance timeout, 60 s
	kind      string   // "consumer"
	protocols []string // "range"
	topics    []string // topic a
}

func (w who) request(h *harness) *JoinRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.Version = or(w.group, "g"), w.id, or(w.version, 9)
	if w.old {
		req.Version = 3
	}
	if w.instance != "" {
		req.InstanceID = &w.instance
	}
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = or(w.sessionMs, 10_000), or(w.timeoutMs, 60_000)
	req.ProtocolType = or(w.kind, "consumer")
	protocols, topics := w.protocols, w.topics
	if protocols == nil {
		protocols = []string{"range"}
	}
	if topics == nil {
		topics = []string{topicA}
	}
	for _, p := range protocols {
		req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: p, Metadata: subscription(topics...)})
	}
	h.uuids++
	return &JoinRequest{JoinGroupRequest: req, ClientID: or(w.client, "client"), ClientHost: "/127.0.0.1", RandomUUID: fmt.Sprintf("uuid-%d", h.uuids)}
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// subscription is the metadata of a consumer.
func subscription(topics ...string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = topics
	return m.AppendTo(nil)
}

// join sends JoinGroup and returns its token; joined or waits tell what became of it.
func (h *harness) join(w who) machine.Token {
	h.t.Helper()
	h.token++
	t := h.token
	e, err := h.m.JoinGroup(h.nowMs, w.request(h), t)
	if err != nil {
		h.t.Fatalf("JoinGroup: %v", err)
	}
	h.apply(e)
	return t
}

// newID joins without an id and returns the one that is given out.
func (h *harness) newID(w who) string {
	h.t.Helper()
	r := h.joined(h.join(w))
	h.wantCode(r.ErrorCode, kerr.MemberIDRequired)
	return r.MemberID
}

func (h *harness) joined(t machine.Token) *kmsg.JoinGroupResponse {
	h.t.Helper()
	r, ok := h.answers[t].(*kmsg.JoinGroupResponse)
	if !ok {
		h.t.Fatalf("JoinGroup %d is not answered", t)
	}
	return r
}

func (h *harness) waits(tokens ...machine.Token) {
	h.t.Helper()
	for _, t := range tokens {
		if r, ok := h.answers[t]; ok {
			h.t.Fatalf("request %d is answered: %+v", t, r)
		}
	}
}

func (h *harness) sync(w who, generation int32, assignments map[string]string) machine.Token {
	h.t.Helper()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = 5
	req.Group, req.MemberID, req.Generation = or(w.group, "g"), w.id, generation
	if w.instance != "" {
		req.InstanceID = &w.instance
	}
	for _, id := range sortedKeys(assignments) {
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte(assignments[id])})
	}
	h.token++
	t := h.token
	e, err := h.m.SyncGroup(h.nowMs, req, t)
	if err != nil {
		h.t.Fatalf("SyncGroup: %v", err)
	}
	h.apply(e)
	return t
}

func (h *harness) synced(t machine.Token) *kmsg.SyncGroupResponse {
	h.t.Helper()
	r, ok := h.answers[t].(*kmsg.SyncGroupResponse)
	if !ok {
		h.t.Fatalf("SyncGroup %d is not answered", t)
	}
	return r
}

func (h *harness) heartbeat(w who, generation int32) error {
	h.t.Helper()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = or(w.group, "g"), w.id, generation
	if w.instance != "" {
		req.InstanceID = &w.instance
	}
	e, err := h.m.Heartbeat(h.nowMs, req)
	h.apply(e)
	return err
}

// leave sends LeaveGroup and returns the code for each member.
func (h *harness) leave(members ...who) []int16 {
	h.t.Helper()
	var req []kmsg.LeaveGroupRequestMember
	for _, w := range members {
		m := kmsg.LeaveGroupRequestMember{MemberID: w.id}
		if w.instance != "" {
			m.InstanceID = &w.instance
		}
		req = append(req, m)
	}
	results, e := h.m.LeaveGroup(h.nowMs, or(members[0].group, "g"), req)
	h.apply(e)
	var codes []int16
	for _, r := range results {
		codes = append(codes, r.ErrorCode)
	}
	return codes
}

// A commit is one offset to be committed.
type commit struct {
	w          who
	generation int32
	topic      string
	partition  int32
	offset     int64
	epoch      int32
	metadata   string
	retention  int64 // -1: the broker's
	version    int16 // 10
}

func (h *harness) commitOffset(c commit) (code int16, err error) {
	h.t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version = or(c.version, 10)
	req.Group, req.MemberID, req.Generation = or(c.w.group, "g"), c.w.id, c.generation
	if c.w.instance != "" {
		req.InstanceID = &c.w.instance
	}
	req.RetentionTimeMillis = or(c.retention, -1)
	topic := or(c.topic, topicA)
	req.Topics = []kmsg.OffsetCommitRequestTopic{{
		Topic: topic, TopicID: map[string][16]byte{topicA: idA, topicB: idB}[topic],
		Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: c.partition, Offset: c.offset, LeaderEpoch: c.epoch, Metadata: &c.metadata}},
	}}
	resp, e, err := h.m.CommitOffsets(h.nowMs, req)
	h.apply(e)
	if err != nil {
		return 0, err
	}
	return resp.Topics[0].Partitions[0].ErrorCode, nil
}

func (h *harness) mustCommit(c commit) {
	h.t.Helper()
	if code, err := h.commitOffset(c); code != 0 || err != nil {
		h.t.Fatalf("OffsetCommit: code %d, %v", code, err)
	}
}

// fetch returns what group g, or another, has committed for one partition.
func (h *harness) fetch(group, topic string, partition int32) kmsg.OffsetFetchResponseGroupTopicPartition {
	h.t.Helper()
	return h.fetchOf(group, topic, partition, [16]byte{}, false)
}

func (h *harness) fetchOf(group, topic string, partition int32, id [16]byte, stable bool) kmsg.OffsetFetchResponseGroupTopicPartition {
	h.t.Helper()
	resp := h.m.FetchOffsets(&kmsg.OffsetFetchRequestGroup{
		Group: group, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, TopicID: id, Partitions: []int32{partition}}},
	}, stable)
	return resp.Topics[0].Partitions[0]
}

func (h *harness) deleteGroup(id string) int16 {
	h.t.Helper()
	results, e := h.m.DeleteGroups(h.nowMs, []string{id})
	h.apply(e)
	return results[0].ErrorCode
}

func (h *harness) deleteOffset(group, topic string, partition int32) (int16, error) {
	h.t.Helper()
	resp, e, err := h.m.DeleteOffsets(h.nowMs, &kmsg.OffsetDeleteRequest{Group: group, Topics: []kmsg.OffsetDeleteRequestTopic{{
		Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: partition}},
	}}})
	h.apply(e)
	if err != nil {
		return 0, err
	}
	return resp.Topics[0].Partitions[0].ErrorCode, nil
}

func (h *harness) state(group string) string { return h.m.DescribeGroup(group, 5).State }

func (h *harness) wantState(group, state string) {
	h.t.Helper()
	if got := h.state(group); got != state {
		h.t.Fatalf("group %q is %s, want %s", group, got, state)
	}
}

func (h *harness) wantCode(code int16, want *kerr.Error) {
	h.t.Helper()
	var wanted int16
	if want != nil {
		wanted = want.Code
	}
	if code != wanted {
		h.t.Fatalf("code %v, want %v", kerr.ErrorForCode(code), want)
	}
}

func (h *harness) wantErr(err error, want *kerr.Error) {
	h.t.Helper()
	if want == nil && err == nil {
		return
	}
	if !errors.Is(err, want) {
		h.t.Fatalf("error %v, want %v", err, want)
	}
}

// stable makes group g stable with these members, in version 3 of JoinGroup unless they are static, and returns them with their ids and
// the generation. Each gets "for <client>" assigned.
func (h *harness) stable(members ...who) ([]who, int32) {
	h.t.Helper()
	members = slices.Clone(members)
	tokens := make([]machine.Token, len(members))
	for i, w := range members {
		if w.instance == "" {
			w.old = true
		}
		tokens[i] = h.join(w)
	}
	h.sleep(int64(h.cfg.InitialRebalanceDelayMs) * 2)
	var generation int32
	assignments := map[string]string{}
	leader := -1
	for i, t := range tokens {
		r := h.joined(t)
		h.wantCode(r.ErrorCode, nil)
		members[i].id, generation = r.MemberID, r.Generation
		assignments[r.MemberID] = "for " + members[i].client
		if r.LeaderID == r.MemberID {
			leader = i
		}
	}
	for i, w := range members {
		if i != leader {
			tokens[i] = h.sync(w, generation, nil)
		}
	}
	tokens[leader] = h.sync(members[leader], generation, assignments)
	for _, t := range tokens {
		h.wantCode(h.synced(t).ErrorCode, nil)
	}
	h.wantState(or(members[0].group, "g"), "Stable")
	return members, generation
}
