package api

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// Writes go on in the order in which they may, one at a time, whoever runs them; an empty lane is forgotten.
func TestLanes(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		var l lanes
		var mu sync.Mutex
		var order []int
		var done sync.WaitGroup
		inside := 0
		const writes = 1000
		for range writes {
			l.enter(7)
		}
		if !l.busy(7) || l.busy(8) {
			t.Fatal("busy")
		}
		for i := range writes {
			done.Add(1)
			l.goOn(7, blocks, func() {
				defer done.Done()
				mu.Lock()
				defer mu.Unlock()
				if inside++; inside != 1 {
					t.Error("two writes at a time")
				}
				order = append(order, i)
				inside--
			})
		}
		done.Wait()
		if !slices.IsSorted(order) || len(order) != writes {
			t.Errorf("order %v", order)
		}
	}
}

// A write that is let go on within another one waits for it.
func TestLanes_Nested(t *testing.T) {
	var l lanes
	var order []string
	l.enter(1)
	l.enter(1)
	l.goOn(1, false, func() {
		l.goOn(1, false, func() { order = append(order, "second") })
		order = append(order, "first")
	})
	if fmt.Sprint(order) != "[first second]" {
		t.Errorf("%v", order)
	}
	if l.busy(1) || len(l.of) != 0 {
		t.Error("the lane is still there")
	}
}
