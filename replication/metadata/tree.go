package metadata

import (
	"cmp"
	"iter"
	"slices"
)

// A tree is an ordered map that is immutable once published: a B-tree whose changed nodes are copied and whose other nodes are shared with
// all earlier versions, so creating one topic among ten thousand copies a handful of nodes. Iteration is in key order, so no map order can
// reach a record or a response.
//
// A tree value is changed only through an edit. Nodes carry the edit that made them; an edit changes its own nodes in place and copies
// those of others, so that loading n entries in one edit is not n times a path.
type tree[K cmp.Ordered, V any] struct {
	root *node[K, V]
	size int
}

// An edit identifies one series of changes between two published images.
type edit struct{ _ byte }

// nodeMax is the most entries in a node; a node that would hold more is split. Small enough that a copied path costs about a kilobyte.
const nodeMax = 32

type node[K cmp.Ordered, V any] struct {
	owner    *edit
	keys     []K
	values   []V
	children []*node[K, V] // nil in a leaf, else len(keys)+1
}

func (t *tree[K, V]) len() int { return t.size }

// search returns where key is or belongs. Keys are never NaN, which is what makes the library's search slower.
func (n *node[K, V]) search(key K) (at int, found bool) {
	low, high := 0, len(n.keys)
	for low < high {
		if middle := int(uint(low+high) >> 1); n.keys[middle] < key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(n.keys) && n.keys[low] == key
}

func (t *tree[K, V]) get(key K) (V, bool) {
	for n := t.root; n != nil; {
		i, found := n.search(key)
		if found {
			return n.values[i], true
		}
		if n.children == nil {
			break
		}
		n = n.children[i]
	}
	var zero V
	return zero, false
}

// all yields the entries in ascending key order.
func (t *tree[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { t.root.walk(yield) }
}

// from yields the entries with keys not below start, in ascending order.
func (t *tree[K, V]) from(start K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { t.root.walkFrom(start, yield) }
}

func (n *node[K, V]) walk(yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.keys {
		if n.children != nil && !n.children[i].walk(yield) {
			return false
		}
		if !yield(n.keys[i], n.values[i]) {
			return false
		}
	}
	return n.children == nil || n.children[len(n.keys)].walk(yield)
}

func (n *node[K, V]) walkFrom(start K, yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	i, found := n.search(start)
	if !found && n.children != nil && !n.children[i].walkFrom(start, yield) {
		return false
	}
	for ; i < len(n.keys); i++ {
		if !yield(n.keys[i], n.values[i]) {
			return false
		}
		if n.children != nil && !n.children[i+1].walk(yield) {
			return false
		}
	}
	return true
}

// put sets key to value in the version of the tree that e is building.
func (t *tree[K, V]) put(e *edit, key K, value V) {
	if t.root == nil {
		t.root = &node[K, V]{owner: e}
	}
	root, added := t.root.put(e, key, value)
	if added {
		t.size++
	}
	if len(root.keys) > nodeMax {
		grown := &node[K, V]{owner: e, children: []*node[K, V]{root}}
		grown.split(e, 0)
		root = grown
	}
	t.root = root
}

// remove deletes key and reports whether it was there.
func (t *tree[K, V]) remove(e *edit, key K) bool {
	if t.root == nil {
		return false
	}
	if _, found := t.get(key); !found {
		return false
	}
	root := t.root.remove(e, key)
	t.size--
	if len(root.keys) == 0 {
		if root.children == nil {
			root = nil
		} else {
			root = root.children[0]
		}
	}
	t.root = root
	return true
}

// own returns n itself when e made it, else a copy that belongs to e.
func (n *node[K, V]) own(e *edit) *node[K, V] {
	if n.owner == e {
		return n
	}
	return &node[K, V]{owner: e, keys: slices.Clone(n.keys), values: slices.Clone(n.values), children: slices.Clone(n.children)}
}

func (n *node[K, V]) put(e *edit, key K, value V) (result *node[K, V], added bool) {
	n = n.own(e)
	i, found := n.search(key)
	if found {
		n.values[i] = value
		return n, false
	}
	if n.children == nil {
		n.keys = slices.Insert(n.keys, i, key)
		n.values = slices.Insert(n.values, i, value)
		return n, true
	}
	n.children[i], added = n.children[i].put(e, key, value)
	if len(n.children[i].keys) > nodeMax {
		n.split(e, i)
	}
	return n, added
}

// split divides child i in two around its middle entry, which moves up into n. n and the child belong to e.
func (n *node[K, V]) split(e *edit, i int) {
	left := n.children[i]
	middle := len(left.keys) / 2
	right := &node[K, V]{owner: e, keys: slices.Clone(left.keys[middle+1:]), values: slices.Clone(left.values[middle+1:])}
	key, value := left.keys[middle], left.values[middle]
	if left.children != nil {
		right.children = slices.Clone(left.children[middle+1:])
		clear(left.children[middle+1:])
		left.children = left.children[:middle+1]
	}
	clear(left.keys[middle:])
	clear(left.values[middle:])
	left.keys, left.values = left.keys[:middle], left.values[:middle]
	n.keys = slices.Insert(n.keys, i, key)
	n.values = slices.Insert(n.values, i, value)
	n.children = slices.Insert(n.children, i+1, right)
}

func (n *node[K, V]) remove(e *edit, key K) *node[K, V] {
	n = n.own(e)
	i, found := n.search(key)
	switch {
	case found && n.children == nil:
		n.keys = slices.Delete(n.keys, i, i+1)
		n.values = slices.Delete(n.values, i, i+1)
		return n
	case found:
		// The entry's place is taken by its predecessor, the last entry of the child before it.
		last := n.children[i]
		for last.children != nil {
			last = last.children[len(last.keys)]
		}
		end := len(last.keys) - 1
		n.keys[i], n.values[i] = last.keys[end], last.values[end]
		n.children[i] = n.children[i].remove(e, n.keys[i])
	default:
		n.children[i] = n.children[i].remove(e, key)
	}
	n.refill(e, i)
	return n
}

// refill brings child i back to at least a quarter of nodeMax entries by borrowing from or merging with a neighbour.
func (n *node[K, V]) refill(e *edit, i int) {
	const least = nodeMax / 4
	if len(n.children[i].keys) >= least {
		return
	}
	if i == len(n.children)-1 {
		i--
	}
	left, right := n.children[i].own(e), n.children[i+1].own(e)
	// Join both around the entry between them, then split again if that is too much for one node.
	left.keys = append(append(left.keys, n.keys[i]), right.keys...)
	left.values = append(append(left.values, n.values[i]), right.values...)
	left.children = append(left.children, right.children...)
	n.children[i] = left
	n.keys = slices.Delete(n.keys, i, i+1)
	n.values = slices.Delete(n.values, i, i+1)
	n.children = slices.Delete(n.children, i+1, i+2)
	if len(left.keys) > nodeMax {
		n.split(e, i)
	}
}

func valuesOf[K cmp.Ordered, V any](t *tree[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range t.all() {
			if !yield(v) {
				return
			}
		}
	}
}
