package server

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"
)

// Half frames that use up the memory are given up once others need it; one that gets on is not.
func TestShed_SlowFramesGiveWay(t *testing.T) {
	onPipe(t, echo, Limits{QueuedBytes: 4 << 20}, func(t *testing.T, s *Server, dial func() client) {
		half := make([]byte, 300_000)
		binary.BigEndian.PutUint32(half, 2<<20)
		var slow []client
		for !s.budget.exhausted() {
			c := dial()
			go c.Write(half)
			synctest.Wait()
			slow = append(slow, c)
		}
		time.Sleep(time.Minute) // fake time: without others, the slow have all the time they want
		if n := s.Connections(); n != len(slow) {
			t.Fatalf("%d of %d connections are left", n, len(slow))
		}

		small, large := dial(), dial()
		small.send(1, "heartbeat")
		small.expect(1, "heartbeat")
		steady := slow[0]
		go func() { // 120 kB or more in each interval
			for range 40 {
				steady.Write(half[4:40_004])
				time.Sleep(shedInterval * 3 / 10)
			}
		}()
		start := time.Now()
		body := string(make([]byte, 50_000))
		go large.send(1, body)
		large.expect(1, body)
		if took := time.Since(start); took > 2*shedInterval {
			t.Errorf("a request waited %v for memory", took)
		}
		synctest.Wait()
		if n := s.Connections(); n != 3 {
			t.Errorf("%d connections are left, want those that send whole requests and the one that gets on", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
	})
}
