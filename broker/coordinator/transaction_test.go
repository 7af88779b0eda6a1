package coordinator

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"

	"sluice/broker/coordinator/machine"
	"sluice/protocol/record"
)

// addTransactional is add for values that are part of a producer's transaction.
func (f *fixture) addTransactional(producerID int64, v record.Verification, values ...string) *outcome {
	return f.submit(func(*list, int64) (machine.Effects, error) {
		return machine.Effects{
			Records:     records(values...),
			Transaction: &machine.Transaction{Producer: machine.Producer{ID: producerID, Epoch: 3}, Verification: v},
		}, nil
	})
}

func (f *fixture) end(producerID int64, epoch int16, coordinatorEpoch int32, commit bool) *outcome {
	o := &outcome{}
	f.EndTransaction(0, EndTransaction{
		Producer: machine.Producer{ID: producerID, Epoch: epoch}, CoordinatorEpoch: coordinatorEpoch, Commit: commit,
	}, func(err error) { o.set(nil, err) })
	return o
}

func (f *fixture) committedValues() (committed []string) {
	f.Each(f.t.Context(), func(_ int32, m *list) { committed = slices.Clone(m.committed) })
	return committed
}

// Records of transactions keep their place among others, count with their marker, and are the same after a restart.
func TestTransactions(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		before := f.add("a")
		inTxn := f.addTransactional(7, record.Verification{}, "7a", "7b")
		other := f.addTransactional(8, record.Verification{}, "8a")
		after := f.add("b")
		f.want(before, nil)
		f.want(inTxn, nil)
		f.want(other, nil)
		f.want(after, nil)
		for epoch := range record.LeaderEpoch(2) {
			f.wantValues("a", "b")
			if got := f.committedValues(); len(got) != 0 {
				t.Fatalf("committed %q", got)
			}
			f.reopen(epoch + 2)
		}
		f.want(f.end(7, 3, 5, true), nil)
		f.want(f.end(8, 3, 5, false), nil)
		for epoch := range record.LeaderEpoch(2) {
			if got := f.committedValues(); !slices.Equal(got, []string{"7a", "7b"}) {
				t.Fatalf("committed %q", got)
			}
			f.reopen(epoch + 5)
		}
		if last := f.log.LogEndOffset(); last != 7 {
			t.Errorf("log ends at %d: five records and two markers", last)
		}
	})
}

// What the log refuses has not happened, and nobody else's records go with it.
func TestTransactions_Refused(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		before := f.add("a")
		unverified := f.addTransactional(7, record.Verification{Required: true, AsOf: record.NoOffset}, "7a")
		after := f.add("b")
		f.want(before, nil)
		f.wantFailure(unverified)
		f.want(after, nil)
		f.want(f.addTransactional(7, record.Verification{Required: true, AsOf: f.log.LogEndOffset()}, "7a"), nil)
		f.want(f.end(7, 3, 5, true), nil)
		f.wantFailure(f.end(7, 2, 5, false)) // an old epoch
		f.wantFailure(f.end(7, 3, 4, false)) // a former coordinator
		f.wantValues("a", "b")
		if got := f.committedValues(); !slices.Equal(got, []string{"7a"}) {
			t.Fatalf("committed %q", got)
		}
		large := f.addTransactional(9, record.Verification{}, string(make([]byte, f.log.maxBatchBytes)))
		f.want(large, kerr.RecordListTooLarge)
		f.Unload(0, 9)
		f.want(f.end(7, 3, 5, true), kerr.NotCoordinator)
	})
}

// A marker that cannot be written leaves the transaction open.
func TestTransactions_MarkerFails(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.Load(0, 1, f.log)
		f.want(f.addTransactional(7, record.Verification{}, "7a"), nil)
		f.log.fail = kerr.NotEnoughReplicas
		f.want(f.end(7, 3, 5, true), kerr.NotEnoughReplicas)
		if got := f.committedValues(); len(got) != 0 {
			t.Fatalf("committed %q", got)
		}
		f.want(f.end(7, 3, 5, true), nil)
		if got := f.committedValues(); !slices.Equal(got, []string{"7a"}) {
			t.Fatalf("committed %q", got)
		}
	})
}

func (f *fixture) wantFailure(o *outcome) {
	f.t.Helper()
	synctest.Wait()
	if !o.done || o.err == nil || errors.Is(o.err, kerr.NotCoordinator) {
		f.t.Errorf("outcome %+v, want it refused", o)
	}
}
