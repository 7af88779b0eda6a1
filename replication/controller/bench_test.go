package controller

import (
	"fmt"
	"testing"

	"sluice/storage/vfs"
)

// One topic after the other, each with a sync of the file system in memory; what a disk adds is its sync.
func BenchmarkDo(b *testing.B) {
	fsys := vfs.NewMem()
	format(b, fsys)
	c, _ := start(b, options(b, fsys))
	register(b, c, 1)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := create(c, fmt.Sprintf("topic-%d", i), 1); err != nil {
			b.Fatal(err)
		}
	}
}

// A start with 2,000 partitions in the log.
func BenchmarkOpen(b *testing.B) {
	fsys := vfs.NewMem()
	format(b, fsys)
	c, stop := start(b, options(b, fsys))
	register(b, c, 1)
	for i := range 2000 {
		if err := create(c, fmt.Sprintf("topic-%d", i), 1); err != nil {
			b.Fatal(err)
		}
	}
	stop()
	b.ResetTimer()
	for range b.N {
		c, err := Open(options(b, fsys))
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
