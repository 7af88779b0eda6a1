package wire

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice/compat-tests/sluicetest"
	"sluice/protocol/compress"
	"sluice/protocol/record"
)

// TestV33_HalfFramesThatFillTheMemory: clients that hold what requests of all clients may take, and send nothing more, give way to others.
func TestV33_HalfFramesThatFillTheMemory(t *testing.T) {
	p := own(t, "--set", "queued.max.request.bytes=20000000", "--set", "socket.request.max.bytes=20000000")
	setup := sluicetest.Dial(t, p.Address)
	topic := fresh("v33")
	createTopic(t, setup, topic, 1)
	b := startBystander(t, p.Address)
	before := p.ResidentBytes()
	half := append([]byte{1, 0, 0, 0}, header(0, 9, true)...) // of 16 MiB
	half = append(half, make([]byte, 3<<20)...)
	var attackers []net.Conn
	for range 20 {
		c, err := net.Dial("tcp", p.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = c.Write(half) // not all of them are read to the end, or at all
		attackers = append(attackers, c)
	}
	// At twice what is allowed the broker ends those who ask for more. What the others hold is more than is allowed.
	sluicetest.Until(t, 10*time.Second, "one is refused for want of memory", func() bool {
		return slices.ContainsFunc(attackers, func(c net.Conn) bool {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := c.Read(make([]byte, 1))
			return !errors.Is(err, os.ErrDeadlineExceeded)
		})
	})
	during := p.ResidentBytes() - before
	t.Logf("half frames of 20 clients: %d MiB", during>>20)
	if during > 40<<20+maxGrowth {
		t.Errorf("%d MiB, though 20 MB are allowed", during>>20)
	}
	large := batch(t, plain(), values(1000, string(make([]byte, 900_000)))...)
	for range 10 {
		start := time.Now()
		if got := produce(setup, topic, 0, large); got.ErrorCode != none {
			t.Errorf("produce: error %d", got.ErrorCode)
		}
		if took := time.Since(start); took > 10*time.Second { // its turn comes when the attackers of one or more intervals are gone
			t.Errorf("a large request waited %v for memory", took)
		} else if took > time.Second/2 {
			t.Logf("a large request waited %v for memory", took)
		}
	}
	b.undisturbed(t)
}

// TestBadInput_DecompressionBombs: a batch of some kilobytes that holds one record of 64 MiB is looked through without being held.
func TestBadInput_DecompressionBombs(t *testing.T) {
	p := own(t, "--log-level", "warn")
	setup := sluicetest.Dial(t, p.Address)
	topic := fresh("bomb")
	createTopic(t, setup, topic, 1)
	b := startBystander(t, p.Address)
	before := p.ResidentBytes()
	const window = 8 << 20 // what the decoder of zstd holds for one batch
	for _, codec := range []compress.Codec{compress.Gzip, compress.Lz4, compress.Zstd} {
		o := plain()
		o.Codec = codec
		bomb := batch(t, o, record.Record{TimestampMs: 1000, Value: make([]byte, 64<<20)})
		start := time.Now()
		var wait sync.WaitGroup
		for range 8 {
			c := sluicetest.Dial(t, p.Address)
			wait.Go(func() {
				if got := produce(c, topic, 0, bomb); got.ErrorCode != none && got.ErrorCode != invalidRecord && got.ErrorCode != messageTooLarge {
					t.Errorf("%v: error %d", codec, got.ErrorCode)
				}
			})
		}
		wait.Wait()
		during := p.ResidentBytes() - before
		t.Logf("%v: eight bombs of %d bytes in %v, %d MiB more", codec, len(bomb), time.Since(start), during>>20)
		if during > maxGrowth+8*window {
			t.Errorf("%v: %d MiB", codec, during>>20)
		}
	}
	wantAlive(t, p)
	b.undisturbed(t)
}
