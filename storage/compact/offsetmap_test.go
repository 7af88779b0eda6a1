package compact

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestOffsetMap_Model: a map, up to the last slot.
func TestOffsetMap_Model(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, size := range []struct{ slots, limit int }{{1, 1}, {2, 1}, {3, 3}, {100, 99}, {1000, 900}, {20000, 18000}} {
		m, model := newOffsetMap(size.slots, size.limit), map[string]int64{}
		for offset := int64(0); ; offset++ {
			key := fmt.Sprint(r.IntN(size.slots * 2))
			if !m.put([]byte(key), offset) {
				break
			}
			model[key] = offset
			if m.last != offset || m.count != len(model) {
				t.Fatalf("last %d, %d keys, want %d and %d", m.last, m.count, offset, len(model))
			}
		}
		if m.count != size.limit {
			t.Errorf("%d slots: full with %d keys, want %d", size.slots, m.count, size.limit)
		}
		for k := range size.slots * 2 {
			key := fmt.Sprint(k)
			want, ok := model[key]
			if !ok {
				want = -1
			}
			if got := m.get([]byte(key)); got != want {
				t.Fatalf("%d slots: key %s at %d, want %d", size.slots, key, got, want)
			}
		}
	}
}

func TestMapSize(t *testing.T) {
	for _, c := range []struct {
		buffer       int64
		load         float64
		offsets      int64
		slots, limit int
	}{
		{128 << 20, 0.9, 1 << 40, 5592405, 5033164}, // as Apache Kafka's with its defaults
		{1 << 40, 0.9, 1 << 40, 89478485, 80530636},
		{2400, 1, 1 << 40, 100, 100},
		{2400, 7, 1 << 40, 100, 100},
		{2400, 0.9, 89, 100, 89},
		{128 << 20, 0.9, 30, 46, 30},
		{128 << 20, 0.9, 0, 1, 0},
		{48, 0.9, 10, 2, 1},
		{48, 0, 10, 2, 1},
		{0, -1, 10, 1, 1},
	} {
		if slots, limit := mapSize(c.buffer, c.load, c.offsets); slots != c.slots || limit != c.limit {
			t.Errorf("%+v: %d slots, limit %d", c, slots, limit)
		}
	}
}

func BenchmarkOffsetMap(b *testing.B) {
	m := newOffsetMap(mapSize(24<<20, 0.9, 1<<40))
	key := make([]byte, 16)
	for i := int64(0); ; i++ {
		binary.LittleEndian.PutUint64(key, uint64(i))
		if !m.put(key, i) {
			break
		}
	}
	b.Run("get", func(b *testing.B) {
		for i := range b.N {
			binary.LittleEndian.PutUint64(key, uint64(i%(2*m.count)))
			m.get(key)
		}
	})
}
