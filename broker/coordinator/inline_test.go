package coordinator

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"sluice/broker/coordinator/machine"
)

// Inline: an operation on an idle partition is done when Submit returns, one that is submitted meanwhile comes after it, and many goroutines
// at once are served as ever.
func TestRuntime_Inline(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.options.Inline = true
		f.Load(0, 1, f.log)
		synctest.Wait()
		before := f.add("first")
		if !before.done {
			t.Error("the operation has not been done by who submitted it")
		}
		var order []string
		f.Submit(0, func(*list, int64) (machine.Effects, error) {
			f.Submit(0, func(*list, int64) (machine.Effects, error) {
				order = append(order, "inner")
				return machine.Effects{Records: records("inner")}, nil
			}, func(error) {})
			order = append(order, "outer")
			return machine.Effects{Records: records("outer")}, nil
		}, func(error) { order = append(order, "answered") })
		synctest.Wait()
		if !slices.Equal(order, []string{"outer", "answered", "inner"}) {
			t.Errorf("order %v", order)
		}
		// Operations that beget others for ever do not keep the goroutine for ever: it gets to open the gate.
		var rounds atomic.Int64
		gate := make(chan struct{})
		var again func()
		again = func() {
			f.Submit(0, func(*list, int64) (machine.Effects, error) {
				if rounds.Load() == 2*inlineTurns {
					<-gate
				}
				return machine.Effects{}, nil
			}, func(error) {
				if rounds.Add(1) < 100 {
					again()
				}
			})
		}
		again()
		close(gate)
		synctest.Wait()

		var outcomes [8][50]*outcome
		var work sync.WaitGroup
		for i := range outcomes {
			work.Go(func() {
				for j := range outcomes[i] {
					outcomes[i][j] = f.add(fmt.Sprint(i, "-", j))
				}
			})
		}
		work.Wait()
		for i := range outcomes {
			for _, o := range outcomes[i] {
				f.want(o, nil)
			}
		}
		if n := len(f.values()); n != 3+8*50 || rounds.Load() != 100 {
			t.Errorf("%d values, %d rounds", n, rounds.Load())
		}
	})
}
