package txn

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/machine"
)

const id = "t"

// A client of version 1 begins with AddPartitionsToTxn, keeps its epoch, and may end its transaction twice.
func TestV1_CommitAndAbort(t *testing.T) {
	for _, commit := range []bool{true, false} {
		for _, version := range []int16{0, 2} {
			h := newHarness(t, version)
			p := h.mustInit(id)
			if p.Epoch != 0 {
				t.Fatalf("%+v", p)
			}
			_, err := h.end(id, p, commit, false)
			h.wantErr(err, kerr.InvalidTxnState)
			h.wantErr(h.add(id, p, 0, parts("b", 2, 0), parts("a", 1)), nil)
			h.wantErr(h.add(id, p, 0, parts("b", 1)), nil)
			records := len(h.log)
			h.wantErr(h.add(id, p, 0, parts("b", 1, 2)), nil)
			if len(h.log) != records {
				t.Error("partitions that are there were logged once more")
			}
			h.manual = true
			token, err := h.end(id, p, commit, false)
			h.wantErr(err, nil)
			want := []Markers{{
				TransactionalID: id, Attempt: h.m.attempt, Producer: p, Commit: commit, Version: 0,
				Partitions: Partitions{parts("a", 1), parts("b", 0, 1, 2)},
			}}
			if diff := cmp.Diff(want, h.markers); diff != "" {
				t.Fatal(diff)
			}
			if _, answered := h.answers[token]; answered {
				t.Error("EndTxn is answered before its markers are written")
			}
			_, err = h.end(id, p, commit, false)
			h.wantErr(err, kerr.ConcurrentTransactions)
			h.wantErr(h.add(id, p, 0, parts("a", 1)), kerr.ConcurrentTransactions)
			h.report(nil)
			if o := h.answers[token]; o != (Outcome{Producer: p}) {
				t.Errorf("%+v", o)
			}
			h.manual = false
			h.mustEnd(id, p, commit, false)
			_, err = h.end(id, p, !commit, false)
			h.wantErr(err, kerr.InvalidTxnState)
			_, err = h.end(id, machine.Producer{ID: p.ID, Epoch: p.Epoch + 1}, commit, false)
			h.wantErr(err, kerr.ProducerFenced)
			_, err = h.end(id, machine.Producer{ID: p.ID + 1, Epoch: p.Epoch}, commit, false)
			h.wantErr(err, kerr.InvalidProducerIDMapping)
			_, err = h.end("none", p, commit, false)
			h.wantErr(err, kerr.InvalidProducerIDMapping)

			// The next transaction has the same epoch.
			h.wantErr(h.add(id, p, 0, parts("a", 0)), nil)
			h.mustEnd(id, p, !commit, false)
			h.wantIdentity(id, p)
		}
	}
}

// V14: with version 2 each end takes an epoch, so that what is sent again is known for what it is.
func TestV2_EndBumpsTheEpoch(t *testing.T) {
	h := newHarness(t, 2)
	p := h.mustInit(id)
	for i, commit := range []bool{true, false, true} {
		h.wantErr(h.add(id, p, 2, parts("a", 0)), nil)
		next := h.mustEnd(id, p, commit, true)
		if next != (machine.Producer{ID: p.ID, Epoch: int16(i + 1)}) {
			t.Fatalf("%+v after %+v", next, p)
		}
		if again := h.mustEnd(id, p, commit, true); again != next {
			t.Fatalf("sent again: %+v, want %+v", again, next)
		}
		_, err := h.end(id, p, !commit, true)
		h.wantErr(err, kerr.InvalidTxnState)
		h.wantErr(h.add(id, p, 2, parts("a", 0)), kerr.ProducerFenced)
		p = next
	}
	_, err := h.end(id, machine.Producer{ID: p.ID, Epoch: p.Epoch - 2}, true, true)
	h.wantErr(err, kerr.ProducerFenced)
	_, err = h.end(id, p, true, true) // nothing to be committed
	h.wantErr(err, kerr.InvalidTxnState)
}

// The markers of version 2 carry the epoch of the next transaction.
func TestV2_Markers(t *testing.T) {
	h := newHarness(t, 2)
	p := h.mustInit(id)
	h.wantErr(h.add(id, p, 2, parts("a", 0)), nil)
	h.manual = true
	_, err := h.end(id, p, true, true)
	h.wantErr(err, nil)
	if m := h.markers[0]; m.Version != 2 || m.Producer.Epoch != p.Epoch+1 {
		t.Errorf("%+v", m)
	}
	_, err = h.end(id, p, true, true)
	h.wantErr(err, kerr.ConcurrentTransactions)
}

// A client of version 2 that gives up a transaction of which nothing has come here still gets an epoch.
func TestV2_AbortOfNothing(t *testing.T) {
	h := newHarness(t, 2)
	p := h.mustInit(id)
	next := h.mustEnd(id, p, false, true)
	if next.Epoch != p.Epoch+1 || next.ID != p.ID {
		t.Fatalf("%+v", next)
	}
	h.wantStatus(id, CompleteAbort)
	next = h.mustEnd(id, next, false, true)
	h.wantErr(h.add(id, next, 2, parts("a", 0)), nil)
	next = h.mustEnd(id, next, true, true)
	h.wantStatus(id, CompleteCommit)
	next = h.mustEnd(id, next, false, true)
	if next.Epoch != 4 {
		t.Fatalf("%+v", next)
	}
}

// When epochs are used up, the end of a transaction comes with a new producer id; also when the answer was lost, and over a restart.
func TestV2_EpochsAreUsedUp(t *testing.T) {
	for _, restart := range []bool{false, true} {
		h := newHarness(t, 2)
		p := h.mustInit(id)
		for p.Epoch < lastUsableEpoch {
			p = h.skipTo(id, lastUsableEpoch)
		}
		h.wantErr(h.add(id, p, 2, parts("a", 0)), nil)
		h.manual = true
		token, err := h.end(id, p, true, true)
		h.wantErr(err, nil)
		if m := h.markers[0]; m.Producer.ID != p.ID || m.Producer.Epoch != lastUsableEpoch+1 {
			t.Errorf("markers of the old producer: %+v", m)
		}
		if restart {
			h.reload()
		}
		h.report(nil)
		h.manual = false
		want := machine.Producer{ID: h.nextID, Epoch: 0}
		if o := h.answers[token]; !restart && o.Producer != want {
			t.Errorf("%+v, want %+v", o, want)
		}
		h.wantIdentity(id, want)
		if again := h.mustEnd(id, p, true, true); again != want {
			t.Errorf("sent again: %+v, want %+v", again, want)
		}
		h.wantErr(h.add(id, p, 2, parts("a", 0)), kerr.InvalidProducerIDMapping)
		h.wantErr(h.add(id, want, 2, parts("a", 0)), nil)
	}
}

// skipTo puts a transactional id's epoch forward.
func (h *harness) skipTo(id string, epoch int16) machine.Producer {
	s := *h.m.transactions[id].state
	s.epoch = epoch
	h.apply(machine.Effects{Records: []machine.Record{h.m.record(id, &s)}})
	return s.identity()
}

// V12 (a): the timeout must be positive and within the limit.
func TestV12_TimeoutBounds(t *testing.T) {
	h := newHarness(t, 2)
	for timeoutMs, want := range map[int32]*kerr.Error{3_600_000: kerr.InvalidTransactionTimeout, 0: kerr.InvalidTransactionTimeout, -1: kerr.InvalidTransactionTimeout, 900_001: kerr.InvalidTransactionTimeout, 900_000: nil, 1: nil} {
		_, err := h.initWith(InitRequest{TransactionalID: fmt.Sprint(timeoutMs), TimeoutMs: timeoutMs})
		h.wantErr(err, want)
	}
}

// V12 (b): a transaction that takes too long is aborted, and its producer fenced.
func TestV12_TimeOut(t *testing.T) {
	for _, version := range []int16{0, 1, 2} {
		h := newHarness(t, version)
		p := h.mustInit(id)
		h.wantErr(h.add(id, p, version, parts("a", 0)), nil)
		h.sleep(30_000)
		h.wantErr(h.add(id, p, version, parts("a", 1)), nil) // does not make it longer
		h.sleep(30_000)
		h.wantStatus(id, Ongoing)
		h.manual = true
		h.sleep(1)
		h.wantStatus(id, PrepareAbort)
		m := h.markers[0]
		if m.Commit || m.Producer.Epoch != p.Epoch+1 || (m.Version >= 2) != (version >= 2) {
			t.Errorf("%+v", m)
		}
		h.report(nil)
		h.manual = false
		h.wantStatus(id, CompleteAbort)
		for _, v2 := range []bool{false, version >= 2} {
			_, err := h.end(id, p, true, v2)
			want := kerr.ProducerFenced
			if v2 {
				want = kerr.InvalidTxnState // it looks like the producer's own abort, sent again with another result
			}
			h.wantErr(err, want)
		}
		h.wantErr(h.m.VerifyPartition(id, p, "a", 0), kerr.ProducerFenced)
		next := h.mustInit(id)
		if next.ID != p.ID || next.Epoch != p.Epoch+2 {
			t.Errorf("%+v", next)
		}
	}
}

// A transaction that is open at a restart still times out: at its time, or at once.
func TestTimeOut_AfterRestart(t *testing.T) {
	for _, after := range []int64{0, 30_000, 59_000, 100_000} {
		h := newHarness(t, 2)
		p := h.mustInit(id)
		h.wantErr(h.add(id, p, 2, parts("a", 0)), nil)
		begun := h.nowMs
		h.nowMs += after
		h.reload()
		h.sleep(max(begun+60_000-h.nowMs, 0))
		if after <= 60_000 {
			h.wantStatus(id, Ongoing)
			h.sleep(1)
		}
		h.wantStatus(id, CompleteAbort)
	}
}

// A timeout with used up epochs needs a producer id, which may take a while to get.
func TestTimeOut_EpochsAreUsedUp(t *testing.T) {
	h := newHarness(t, 2)
	h.mustInit(id)
	p := h.skipTo(id, lastUsableEpoch)
	h.wantErr(h.add(id, p, 2, parts("a", 0)), nil)
	h.sleep(62_500)
	h.wantStatus(id, Ongoing)
	if len(h.wantIDs) != 3 {
		t.Errorf("asked for an id %d times", len(h.wantIDs))
	}
	e, err := h.m.AbortTimedOut(h.nowMs, id, 7777)
	h.wantErr(err, nil)
	h.apply(e)
	h.wantStatus(id, CompleteAbort)
	h.wantIdentity(id, machine.Producer{ID: 7777, Epoch: 0})
	e, err = h.m.AbortTimedOut(h.nowMs, id, 8888) // a second answer
	h.wantErr(err, nil)
	h.apply(e)
	h.wantIdentity(id, machine.Producer{ID: 7777, Epoch: 0})
}

// V12 (c): a second producer aborts what the first has open, and fences it.
func TestV12_SecondProducer(t *testing.T) {
	for _, version := range []int16{0, 2} {
		h := newHarness(t, version)
		first := h.mustInit(id)
		h.wantErr(h.add(id, first, version, parts("a", 0)), nil)
		_, err := h.init(id, nil)
		h.wantErr(err, kerr.ConcurrentTransactions)
		h.wantStatus(id, CompleteAbort)
		second := h.mustInit(id)
		if second.ID != first.ID || second.Epoch != first.Epoch+2 {
			t.Errorf("%+v after %+v", second, first)
		}
		_, err = h.end(id, first, true, version >= 2)
		h.wantErr(err, kerr.ProducerFenced)
		h.wantErr(h.add(id, first, version, parts("a", 0)), kerr.ProducerFenced)
		_, err = h.init(id, &first)
		h.wantErr(err, kerr.ProducerFenced)
		h.wantErr(h.add(id, second, version, parts("a", 0)), nil)
	}
}

// InitProducerId while markers are being written waits for nothing: the client tries again.
func TestInit_WhileDeciding(t *testing.T) {
	h := newHarness(t, 2)
	p := h.mustInit(id)
	h.wantErr(h.add(id, p, 2, parts("a", 0)), nil)
	h.manual = true
	_, err := h.end(id, p, true, true)
	h.wantErr(err, nil)
	_, err = h.init(id, nil)
	h.wantErr(err, kerr.ConcurrentTransactions)
	h.wantErr(h.m.VerifyPartition(id, machine.Producer{ID: p.ID, Epoch: p.Epoch + 1}, "a", 0), kerr.ConcurrentTransactions)
	h.report(nil)
	h.mustInit(id)
}

// KIP-360: a producer keeps its id, gets the same epoch when it asks twice, and is fenced when another has taken over.
func TestInit_KeepsTheProducer(t *testing.T) {
	h := newHarness(t, 2)
	p := h.mustInit(id)
	o, err := h.init(id, &p)
	h.wantErr(err, nil)
	second := machine.Producer{ID: p.ID, Epoch: p.Epoch + 1}
	if o.Producer != second {
		t.Fatalf("%+v", o)
	}
	if o, err = h.init(id, &p); err != nil || o.Producer != second {
		t.Fatalf("sent again: %+v, %v", o, err)
	}
	if o, err = h.init(id, &second); err != nil || o.Producer.Epoch != 2 {
		t.Fatalf("%+v, %v", o, err)
	}
	_, err = h.init(id, &p)
	h.wantErr(err, kerr.ProducerFenced)
	_, err = h.init(id, &machine.Producer{ID: p.ID + 5, Epoch: 2})
	h.wantErr(err, kerr.ProducerFenced)
	third := h.mustInit(id) // another instance
	_, err = h.init(id, &machine.Producer{ID: p.ID, Epoch: 2})
	h.wantErr(err, kerr.ProducerFenced)
	if third.Epoch != 3 {
		t.Fatalf("%+v", third)
	}
	// One that the coordinator has forgotten, or never knew, begins anew.
	if o, err = h.init("new", &machine.Producer{ID: 5, Epoch: 5}); err != nil || o.Producer != (machine.Producer{ID: h.nextID, Epoch: 0}) {
		t.Fatalf("%+v, %v", o, err)
	}
}

// Used up epochs lead to a new producer id, also for one that did not hear of it.
func TestInit_EpochsAreUsedUp(t *testing.T) {
	h := newHarness(t, 2)
	h.mustInit(id)
	old := h.skipTo(id, lastUsableEpoch)
	o, err := h.init(id, &old)
	h.wantErr(err, nil)
	want := machine.Producer{ID: h.nextID, Epoch: 0}
	if o.Producer != want {
		t.Fatalf("%+v", o)
	}
	if o, err = h.init(id, &old); err != nil || o.Producer != want {
		t.Fatalf("sent again: %+v, %v", o, err)
	}
	old = h.skipTo(id, lastUsableEpoch)
	if got := h.mustInit(id); got.ID == old.ID || got.Epoch != 0 {
		t.Fatalf("%+v", got)
	}
}

// A decision that the log knows is carried out after a restart, at whatever step that happened.
func TestRestart_AtEachStep(t *testing.T) {
	for _, commit := range []bool{true, false} {
		for _, v2 := range []bool{true, false} {
			steps := 0
			for stop := 0; stop <= steps; stop++ {
				h := newHarness(t, 2)
				p := h.mustInit(id)
				h.wantErr(h.add(id, p, 2, parts("a", 0, 1), parts("b", 0)), nil)
				h.mustEnd(id, p, commit, v2)
				steps = len(h.log)
				h.log = h.log[:stop]
				h.manual = true
				h.reload()
				s := h.m.transactions[id]
				switch {
				case s == nil:
					if stop != 0 {
						t.Fatalf("nothing is left of %d records", stop)
					}
				case s.status.deciding():
					if len(h.markers) != 1 || h.markers[0].Commit != commit || len(h.markers[0].Partitions) != 2 {
						t.Fatalf("markers %+v", h.markers)
					}
					h.report(nil)
					if done := h.m.transactions[id].status; commit && done != CompleteCommit || !commit && done != CompleteAbort {
						t.Fatalf("%v", done)
					}
				case len(h.markers) != 0:
					t.Fatalf("%v: markers %+v", s.status, h.markers)
				}
			}
		}
	}
}

// Markers are not written, and nobody is told, before the decision is committed. When that takes too long, the client hears of it and the
// decision stands.
func TestDecision_WaitsForCommit(t *testing.T) {
	h := newHarness(t, 2)
	p := h.mustInit(id)
	h.wantErr(h.add(id, p, 2, parts("a", 0)), nil)
	h.manual, h.holdCommits = true, true
	token, err := h.end(id, p, true, true)
	h.wantErr(err, nil)
	if len(h.markers) != 0 {
		t.Fatal("markers of a decision that may be lost")
	}
	held := h.held
	h.held = nil
	for _, e := range held {
		h.committed(e, kerr.RequestTimedOut)
	}
	if len(h.markers) != 0 {
		t.Fatal("markers of a decision that may be lost")
	}
	h.commit(nil)
	if o := h.answers[token]; o.Err != kerr.CoordinatorNotAvailable {
		t.Fatalf("%+v", o)
	}
	h.report(nil)
	h.wantStatus(id, CompleteCommit)
}

// Markers that cannot be written now are tried again, ever less often; the producer does not wait for long.
func TestMarkers_AreTriedAgain(t *testing.T) {
	h := newHarness(t, 2)
	p := h.mustInit(id)
	h.wantErr(h.add(id, p, 2, parts("a", 0, 1), parts("b", 0)), nil)
	h.manual = true
	token, err := h.end(id, p, true, true)
	h.wantErr(err, nil)
	stale := h.markers[0].Attempt
	left := Partitions{parts("a", 1)}
	attempts := 0
	for range 10 {
		if len(h.markers) != 1 {
			t.Fatalf("%d attempts at a time", len(h.markers))
		}
		if attempts > 0 {
			if diff := cmp.Diff(left, h.markers[0].Partitions); diff != "" {
				t.Fatal(diff)
			}
		}
		h.report(left)
		attempts++
		if _, answered := h.answers[token]; answered != (attempts > 6) { // 20, 40, … 640, 1000
			t.Fatalf("answered %v after %d attempts", answered, attempts)
		}
		h.sleep(min(int64(20)<<(attempts-1), 1000))
	}
	if d := h.m.Describe(id); len(d.Topics) != 1 || d.Topics[0].Topic != "a" || len(d.Topics[0].Partitions) != 1 {
		t.Errorf("%+v", d)
	}
	h.apply(h.m.MarkersWritten(h.nowMs, id, stale, nil))
	h.wantStatus(id, PrepareCommit)
	h.wantErr(h.add(id, machine.Producer{ID: p.ID, Epoch: 1}, 2, parts("a", 0)), kerr.ConcurrentTransactions)
	h.report(nil)
	h.wantStatus(id, CompleteCommit)
	if o := h.answers[token]; o.Err != nil || o.Producer.Epoch != p.Epoch+1 {
		t.Errorf("%+v", o)
	}
}

// Markers that take long are waited for up to a second.
func TestMarkers_SlowOnes(t *testing.T) {
	h := newHarness(t, 2)
	p := h.mustInit(id)
	h.wantErr(h.add(id, p, 2, parts("a", 0)), nil)
	h.manual = true
	token, err := h.end(id, p, false, true)
	h.wantErr(err, nil)
	h.sleep(999)
	if _, answered := h.answers[token]; answered {
		t.Fatal("answered")
	}
	h.sleep(1)
	if o, answered := h.answers[token]; !answered || o.Err != nil {
		t.Fatalf("%v %+v", answered, o)
	}
	h.sleep(10_000)
	h.report(nil)
	h.wantStatus(id, CompleteAbort)
}

// V14: partitions that are not part of the transaction are told so.
func TestVerify(t *testing.T) {
	h := newHarness(t, 2)
	h.wantErr(h.m.VerifyPartition(id, machine.Producer{ID: 1}, "a", 0), kerr.InvalidProducerIDMapping)
	p := h.mustInit(id)
	h.wantErr(h.m.VerifyPartition(id, p, "a", 0), kerr.TransactionAbortable)
	h.wantErr(h.add(id, p, 0, parts("a", 0)), nil)
	h.wantErr(h.m.VerifyPartition(id, p, "a", 0), nil)
	h.wantErr(h.m.VerifyPartition(id, p, "a", 1), kerr.TransactionAbortable)
	h.wantErr(h.m.VerifyPartition(id, p, "b", 0), kerr.TransactionAbortable)
	h.wantErr(h.m.VerifyPartition(id, machine.Producer{ID: p.ID, Epoch: 1}, "a", 0), kerr.ProducerFenced)
	h.wantErr(h.m.VerifyPartition(id, machine.Producer{ID: p.ID + 1}, "a", 0), kerr.InvalidProducerIDMapping)
	h.mustEnd(id, p, true, false)
	h.wantErr(h.m.VerifyPartition(id, p, "a", 0), kerr.TransactionAbortable)
}

// Transactional ids are forgotten a week after their last transaction, never within one.
func TestIDExpiry(t *testing.T) {
	h := newHarness(t, 2)
	h.mustInit("idle")
	p := h.mustInit("used")
	open := h.mustInit("open")
	week := h.cfg.IDExpirationMs
	h.sleep(week / 2)
	h.wantErr(h.add("used", p, 2, parts("a", 0)), nil)
	h.mustEnd("used", p, true, true)
	h.sleep(week/2 - 1)
	h.manual = true
	h.wantErr(h.add("open", open, 2, parts("a", 0)), nil)
	h.sleep(h.cfg.IDExpirationCheckMs)
	if h.m.transactions["idle"] != nil || h.m.transactions["used"] == nil || h.m.transactions["open"] == nil {
		t.Fatalf("%+v", states(h.m, 2))
	}
	h.wantErr(h.add("idle", p, 2, parts("a", 0)), kerr.InvalidProducerIDMapping)
	h.sleep(3 * week)
	if len(h.m.transactions) != 1 {
		t.Fatalf("%+v", states(h.m, 2))
	}
	h.reload()
	if len(h.m.transactions) != 1 {
		t.Fatalf("%+v", states(h.m, 2))
	}
}

// When the clock is set, transactions have as long as they had.
func TestClockMoved(t *testing.T) {
	h := newHarness(t, 2)
	p := h.mustInit(id)
	h.wantErr(h.add(id, p, 2, parts("a", 0)), nil)
	h.nowMs += 3600_000
	h.m.ClockMoved(3600_000)
	h.sleep(60_000)
	h.wantStatus(id, Ongoing)
	h.sleep(1)
	h.wantStatus(id, CompleteAbort)
}

func TestDescribeAndList(t *testing.T) {
	h := newHarness(t, 2)
	h.mustInit("app-1")
	p := h.mustInit("app-2")
	h.wantErr(h.add("app-2", p, 2, parts("b", 1, 0), parts("a", 3)), nil)
	q := h.mustInit("other")
	h.wantErr(h.add("other", q, 2, parts("a", 3)), nil)
	h.mustEnd("other", q, true, true)
	h.sleep(5_000)

	d := h.m.Describe("app-2")
	if d.State != "Ongoing" || d.ProducerID != p.ID || d.TimeoutMillis != 60_000 || d.StartTimestamp != h.nowMs-5_000 || len(d.Topics) != 2 || d.Topics[1].Partitions[1] != 1 {
		t.Errorf("%+v", d)
	}
	if d := h.m.Describe("none"); d.ErrorCode != kerr.TransactionalIDNotFound.Code {
		t.Errorf("%+v", d)
	}
	pattern := func(s string) *string { return &s }
	for _, test := range []struct {
		name    string
		req     kmsg.ListTransactionsRequest
		want    string
		unknown int
		err     *kerr.Error
	}{
		{"all", kmsg.ListTransactionsRequest{DurationFilterMillis: -1}, "[app-1 app-2 other]", 0, nil},
		{"state", kmsg.ListTransactionsRequest{DurationFilterMillis: -1, StateFilters: []string{"Ongoing", "CompleteCommit"}}, "[app-2 other]", 0, nil},
		{"unknown state", kmsg.ListTransactionsRequest{DurationFilterMillis: -1, StateFilters: []string{"Ongoing", "Wrong"}}, "[app-2]", 1, nil},
		{"a state that never shows", kmsg.ListTransactionsRequest{DurationFilterMillis: -1, StateFilters: []string{"Dead"}}, "[]", 0, nil},
		{"producer", kmsg.ListTransactionsRequest{DurationFilterMillis: -1, ProducerIDFilters: []int64{q.ID, 99}}, "[other]", 0, nil},
		{"duration", kmsg.ListTransactionsRequest{DurationFilterMillis: 4_999}, "[app-1 app-2 other]", 0, nil},
		{"longer", kmsg.ListTransactionsRequest{DurationFilterMillis: 5_000}, "[app-1]", 0, nil},
		{"pattern", kmsg.ListTransactionsRequest{DurationFilterMillis: -1, TransactionalIDPattern: pattern("app-.*")}, "[app-1 app-2]", 0, nil},
		{"part of an id", kmsg.ListTransactionsRequest{DurationFilterMillis: -1, TransactionalIDPattern: pattern("app")}, "[]", 0, nil},
		{"alternatives", kmsg.ListTransactionsRequest{DurationFilterMillis: -1, TransactionalIDPattern: pattern("x|other")}, "[other]", 0, nil},
		{"empty pattern", kmsg.ListTransactionsRequest{DurationFilterMillis: -1, TransactionalIDPattern: pattern("")}, "[app-1 app-2 other]", 0, nil},
		{"no pattern", kmsg.ListTransactionsRequest{DurationFilterMillis: -1, TransactionalIDPattern: pattern("a)(b")}, "", 0, kerr.InvalidRegularExpression},
	} {
		f, unknown, err := NewFilter(&test.req)
		h.wantErr(err, test.err)
		if test.err != nil {
			continue
		}
		ids := []string{}
		for _, l := range h.m.List(h.nowMs, f) {
			ids = append(ids, l.TransactionalID)
		}
		if fmt.Sprint(ids) != test.want || len(unknown) != test.unknown {
			t.Errorf("%s: %v, unknown %v", test.name, ids, unknown)
		}
	}
}
