package txn

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"sluice/broker/coordinator/machine"
)

// A seen is what a random walk has seen of one transactional id.
type seen struct {
	epochs map[int64]int16 // the highest epoch given out, by producer id
	status Status
}

// However requests, timeouts, markers, restarts and used up epochs fall together: the log tells the same state (the harness checks it), no
// producer is given what another had, and what is decided stays decided.
func TestRandomWalk(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		h := newHarness(t, int16(seed%3))
		ids := map[string]*seen{}
		producers := map[string][]machine.Producer{} // what clients believe to have
		for step := range 300 {
			id := fmt.Sprint("t", r.IntN(3))
			if ids[id] == nil {
				ids[id] = &seen{epochs: map[int64]int16{}}
			}
			known := producers[id]
			p := machine.Producer{ID: 1001, Epoch: 0}
			if len(known) > 0 {
				p = known[max(0, len(known)-1-r.IntN(3))] // mostly the last one, or one that is fenced by now
			}
			h.manual = r.IntN(3) > 0
			given := func(o Outcome, err error) {
				if err != nil || o.Err != nil || o.Producer == (machine.Producer{}) {
					return
				}
				producers[id] = append(producers[id], o.Producer)
				if before, ok := ids[id].epochs[o.Producer.ID]; ok && o.Producer.Epoch < before {
					t.Fatalf("seed %d, step %d: %q was given %+v after epoch %d", seed, step, id, o.Producer, before)
				}
				ids[id].epochs[o.Producer.ID] = o.Producer.Epoch
			}
			v2 := seed%3 == 2 && r.IntN(4) > 0
			switch r.IntN(10) {
			case 0:
				given(h.init(id, nil))
			case 1:
				given(h.init(id, &p))
			case 2, 3, 4:
				version := int16(0)
				if v2 {
					version = 2
				}
				_ = h.add(id, p, version, parts(fmt.Sprint("p", r.IntN(2)), int32(r.IntN(3))))
			case 5, 6:
				token, err := h.end(id, p, r.IntN(2) == 0, v2)
				if o, answered := h.answers[token]; err == nil && answered {
					given(o, nil)
				}
			case 7:
				var left Partitions
				if r.IntN(2) == 0 && len(h.markers) > 0 {
					left = h.markers[0].Partitions[:1]
				}
				h.report(left)
			case 8:
				h.sleep(r.Int64N(70_000))
				for _, waiting := range h.wantIDs {
					h.nextID++
					if e, err := h.m.AbortTimedOut(h.nowMs, waiting, h.nextID); err == nil {
						h.apply(e)
					}
				}
				h.wantIDs = nil
			case 9:
				switch s := h.m.transactions[id]; {
				case r.IntN(3) == 0:
					h.reload()
				case s != nil && s.status.idle() && s.epoch < lastUsableEpoch-3 && r.IntN(3) == 0:
					h.skipTo(id, lastUsableEpoch-int16(r.IntN(3)))
				}
			}
			checkDecisions(t, h, ids, seed, step)
		}
		// In the end all is carried out, and nobody waits.
		h.manual = false
		h.report(nil)
		h.sleep(200_000)
		for id, s := range h.m.transactions {
			if !s.status.idle() {
				t.Fatalf("seed %d: %q is left %v", seed, id, s.status)
			}
		}
	}
}

// checkDecisions holds each transactional id's state against the one before.
func checkDecisions(t *testing.T, h *harness, ids map[string]*seen, seed uint64, step int) {
	t.Helper()
	for id, s := range h.m.transactions {
		if ids[id] == nil {
			continue
		}
		before := ids[id].status
		if before == PrepareCommit && s.status == CompleteAbort || before == PrepareAbort && s.status == CompleteCommit {
			t.Fatalf("seed %d, step %d: %q is %v after %v", seed, step, id, s.status, before)
		}
		ids[id].status = s.status
		if s.status.idle() && len(s.partitions) != 0 || s.status == Ongoing && len(s.partitions) == 0 {
			t.Fatalf("seed %d, step %d: %q is %v with partitions %v", seed, step, id, s.status, s.partitions)
		}
	}
	for _, m := range h.markers {
		if s := h.m.transactions[m.TransactionalID]; s != nil && s.status.deciding() && s.completion != nil && s.completion.attempt == m.Attempt &&
			m.Commit != (s.status == PrepareCommit) {
			t.Fatalf("seed %d, step %d: markers %+v for %v", seed, step, m, s.status)
		}
	}
}
