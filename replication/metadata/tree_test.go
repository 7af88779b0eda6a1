package metadata

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A tree behaves as a map whose every published version stays as it was, whatever later edits do.
func TestTree_VersionsAreImmutable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type version struct {
			tree  tree[int, int]
			model map[int]int
		}
		var versions []version
		var now tree[int, int]
		model := map[int]int{}
		e := new(edit)
		span := rapid.SampledFrom([]int{8, 100, 3000}).Draw(t, "span")
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			key := rapid.IntRange(0, span).Draw(t, "key")
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0, 1, 2:
				_, had := model[key]
				if removed := now.remove(e, key); removed != had {
					t.Fatalf("remove(%d) = %t, present %t", key, removed, had)
				}
				delete(model, key)
			case 3:
				copied := map[int]int{}
				for k, v := range model {
					copied[k] = v
				}
				versions = append(versions, version{now, copied})
				e = new(edit)
			default:
				value := rapid.Int().Draw(t, "value")
				now.put(e, key, value)
				model[key] = value
			}
		}
		for _, v := range append(versions, version{now, model}) {
			if err := equalsModel(&v.tree, v.model, span); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func equalsModel(tree *tree[int, int], model map[int]int, span int) error {
	if tree.len() != len(model) {
		return fmt.Errorf("len %d, want %d", tree.len(), len(model))
	}
	var keys, want []int
	for k, v := range tree.all() {
		keys = append(keys, k)
		if model[k] != v {
			return fmt.Errorf("tree[%d] = %d, want %d", k, v, model[k])
		}
	}
	for k, v := range model {
		want = append(want, k)
		if got, found := tree.get(k); !found || got != v {
			return fmt.Errorf("get(%d) = %d %t, want %d", k, got, found, v)
		}
	}
	slices.Sort(want)
	if !slices.Equal(keys, want) {
		return fmt.Errorf("keys %v, want %v", keys, want)
	}
	for _, start := range []int{-1, span / 2, span + 1} {
		var got []int
		for k := range tree.from(start) {
			got = append(got, k)
		}
		i, _ := slices.BinarySearch(want, start)
		if !slices.Equal(got, want[i:]) {
			return fmt.Errorf("from(%d) = %v, want %v", start, got, want[i:])
		}
	}
	return nil
}

// An iteration that stops early stops at once.
func TestTree_IterationStops(t *testing.T) {
	var tr tree[int, int]
	e := new(edit)
	for i := range 500 {
		tr.put(e, i, i)
	}
	n := 0
	for range tr.all() {
		if n++; n == 100 {
			break
		}
	}
	for range tr.from(250) {
		if n++; n == 120 {
			break
		}
	}
	if n != 120 {
		t.Fatalf("%d steps", n)
	}
}

// One change in a tree of ten thousand copies a path, not the tree.
func TestTree_ChangeIsCheap(t *testing.T) {
	var tr tree[int, int]
	e := new(edit)
	for _, k := range rand.New(rand.NewPCG(1, 2)).Perm(10_000) {
		tr.put(e, k, k)
	}
	allocated := testing.AllocsPerRun(100, func() {
		next := tr
		next.put(new(edit), 20_000, 1)
	})
	if allocated > 25 {
		t.Fatalf("%v allocations for one change", allocated)
	}
}
