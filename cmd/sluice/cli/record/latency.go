package record

import (
	"math/bits"
	"time"
)

// latencies counts durations in buckets that are 1/16 of their power of two wide, so that a percentile is at most 6.25 % too high.
type latencies struct {
	buckets [latencyBuckets]int64
	n       int64
	most    time.Duration
}

const (
	latencySubBits = 4
	latencyBuckets = 64 << latencySubBits
)

func latencyBucket(us uint64) int {
	if us < 1<<latencySubBits {
		return int(us)
	}
	shift := bits.Len64(us) - 1 - latencySubBits
	return (shift+1)<<latencySubBits + int(us>>shift) - 1<<latencySubBits
}

// latencyBound is the highest duration, in microseconds, of a bucket.
func latencyBound(bucket int) uint64 {
	if bucket < 1<<latencySubBits {
		return uint64(bucket)
	}
	shift := bucket>>latencySubBits - 1
	return uint64(bucket&(1<<latencySubBits-1)+1<<latencySubBits+1)<<shift - 1
}

func (l *latencies) add(d time.Duration) {
	l.buckets[latencyBucket(uint64(max(d, 0).Microseconds()))]++
	l.n++
	l.most = max(l.most, d)
}

// percentile is the duration, in ms, that a part of all, 0 to 1, did not exceed.
func (l *latencies) percentile(part float64) float64 {
	wanted, seen := int64(part*float64(l.n)), int64(0)
	for bucket, n := range l.buckets {
		if seen += n; seen > wanted {
			return min(float64(latencyBound(bucket))/1000, float64(l.most.Microseconds())/1000)
		}
	}
	return float64(l.most.Microseconds()) / 1000
}
