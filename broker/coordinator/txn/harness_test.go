package txn

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/broker/coordinator/machine"
)

// A harness runs a machine as the runtime does, on a clock of its own, and holds it against the replay law after each operation: a new
// machine that is fed all records so far is in the same state.
type harness struct {
	t       *testing.T
	m       *Machine
	cfg     *Config
	nowMs   int64
	log     []logged
	answers map[machine.Token]Outcome
	token   machine.Token
	nextID  int64

	markers []Markers // that were asked for, and not reported back yet
	wantIDs []string  // transactional ids that a producer id was asked for
	manual  bool      // markers are reported by the test; otherwise at once, as written

	holdCommits bool // keeps records from being committed until commit is called
	held        []machine.Effects
}

type logged struct{ key, value []byte }

func newHarness(t *testing.T, version int16) *harness {
	h := &harness{
		t: t, nowMs: 1_000_000, nextID: 1000,
		cfg:     &Config{MaxTimeoutMs: 900_000, IDExpirationMs: 7 * 24 * 3600_000, IDExpirationCheckMs: 3600_000, Version: version},
		answers: map[machine.Token]Outcome{},
	}
	h.m = New(func() *Config { return h.cfg }, h)
	h.apply(h.m.Loaded(h.nowMs))
	return h
}

func (h *harness) WriteMarkers(m Markers)    { h.markers = append(h.markers, m) }
func (h *harness) FetchProducerID(id string) { h.wantIDs = append(h.wantIDs, id) }

func (h *harness) apply(e machine.Effects) {
	h.t.Helper()
	for _, r := range e.Records {
		key := r.AppendKey(nil)
		value, tombstone := r.AppendValue([]byte{})
		if tombstone {
			value = nil
		}
		h.log = append(h.log, logged{key, value})
		h.m.Replay(int64(len(h.log)-1), machine.NoProducer, r)
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
		h.answers[a.Token] = a.Response.(Outcome)
	}
	if e.Settled != nil {
		h.apply(e.Settled(h.nowMs, err))
	}
	if !h.manual {
		h.report(nil)
	}
}

// report says of all markers that were asked for that they are written, but for those left.
func (h *harness) report(left Partitions) {
	h.t.Helper()
	markers := h.markers
	h.markers = nil
	for _, m := range markers {
		h.apply(h.m.MarkersWritten(h.nowMs, m.TransactionalID, m.Attempt, left))
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
	h.m, h.markers = h.replayed(), nil
	h.apply(h.m.Loaded(h.nowMs))
}

func (h *harness) replayed() *Machine {
	h.t.Helper()
	m := New(func() *Config { return h.cfg }, h)
	for i, l := range h.log {
		r, err := m.Parse(l.key, l.value)
		if err != nil {
			h.t.Fatalf("record %d: %v", i, err)
		}
		m.Replay(int64(i), machine.NoProducer, r)
	}
	return m
}

func (h *harness) checkReplayLaw() {
	h.t.Helper()
	if diff := cmp.Diff(states(h.replayed(), h.cfg.Version), states(h.m, h.cfg.Version)); diff != "" {
		h.t.Fatalf("state after replay (-) is not the live one (+):\n%s", diff)
	}
}

// states are all states as far as the records tell them.
func states(m *Machine, version int16) map[string]string {
	all := map[string]string{}
	for id, t := range m.transactions {
		s := *t.state
		s.lastEpoch = 0
		if version == 0 {
			s.prevProducerID, s.nextProducerID, s.clientVersion = 0, 0, 0
		}
		all[id] = fmt.Sprintf("%+v", s)
	}
	return all
}

// init sends InitProducerId, with what the producer has or nil.
func (h *harness) init(id string, current *machine.Producer) (Outcome, error) {
	h.t.Helper()
	return h.initWith(InitRequest{TransactionalID: id, TimeoutMs: 60_000, Current: current})
}

func (h *harness) initWith(req InitRequest) (Outcome, error) {
	h.t.Helper()
	h.token++
	t := h.token
	req.NewProducerID = -1
	e, err := h.m.InitProducerID(h.nowMs, req, t)
	if errors.Is(err, ErrNeedProducerID) {
		h.nextID++
		req.NewProducerID = h.nextID
		e, err = h.m.InitProducerID(h.nowMs, req, t)
	}
	if err != nil {
		return Outcome{}, err
	}
	h.apply(e)
	return h.answers[t], h.answers[t].Err
}

func (h *harness) mustInit(id string) machine.Producer {
	h.t.Helper()
	o, err := h.init(id, nil)
	if err != nil {
		h.t.Fatalf("InitProducerId: %v", err)
	}
	return o.Producer
}

func (h *harness) add(id string, p machine.Producer, version int16, partitions ...TopicPartitions) error {
	h.t.Helper()
	e, err := h.m.AddPartitions(h.nowMs, AddRequest{TransactionalID: id, Producer: p, Partitions: partitions, Version: version})
	if err == nil {
		h.apply(e)
	}
	return err
}

// end sends EndTxn and returns its token; the answer may come later.
func (h *harness) end(id string, p machine.Producer, commit, v2 bool) (machine.Token, error) {
	h.t.Helper()
	h.token++
	t := h.token
	req := EndRequest{TransactionalID: id, Producer: p, Commit: commit, V2: v2, NewProducerID: -1}
	e, err := h.m.EndTxn(h.nowMs, req, t)
	if errors.Is(err, ErrNeedProducerID) {
		h.nextID++
		req.NewProducerID = h.nextID
		e, err = h.m.EndTxn(h.nowMs, req, t)
	}
	if err == nil {
		h.apply(e)
	}
	return t, err
}

func (h *harness) mustEnd(id string, p machine.Producer, commit, v2 bool) machine.Producer {
	h.t.Helper()
	t, err := h.end(id, p, commit, v2)
	if err != nil {
		h.t.Fatalf("EndTxn: %v", err)
	}
	o, ok := h.answers[t]
	if !ok || o.Err != nil {
		h.t.Fatalf("EndTxn: answered %v, %v", ok, o.Err)
	}
	return o.Producer
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

func (h *harness) wantStatus(id string, want Status) {
	h.t.Helper()
	t := h.m.transactions[id]
	if t == nil || t.status != want {
		h.t.Fatalf("%q is %+v, want %v", id, h.m.Describe(id), want)
	}
}

func (h *harness) wantIdentity(id string, want machine.Producer) {
	h.t.Helper()
	if got := h.m.transactions[id].identity(); got != want {
		h.t.Fatalf("%q has producer %+v, want %+v", id, got, want)
	}
}

func parts(topic string, partitions ...int32) TopicPartitions {
	return TopicPartitions{Topic: topic, Partitions: partitions}
}
