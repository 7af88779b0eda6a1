package compact

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

// segments makes segments of these base offsets, each with 100 bytes; the timestamps of the i-th are i*1000+1 to i*1000+999.
func segments(bases ...int64) []Segment {
	all := make([]Segment, len(bases))
	for i, base := range bases {
		first, largest := int64(i)*1000+1, int64(i)*1000+999
		all[i] = Segment{
			BaseOffset: base, Bytes: 100,
			FirstTimestampMs:   func() (int64, error) { return first, nil },
			LargestTimestampMs: func() (int64, error) { return largest, nil },
		}
	}
	return all
}

// TestAssess is about a log with segments at 0, 10, 20, the active one at 30, and its end at 40, which was compacted up to 10 and is looked at when it is 4000.
func TestAssess(t *testing.T) {
	for _, c := range []struct {
		about  string
		change func(*State, *Policy)
		want   Candidate
		due    bool
	}{
		{"two dirty of three", func(*State, *Policy) {}, Candidate{FirstDirtyOffset: 10, FirstUncleanableOffset: 30, CleanBytes: 100, CleanableBytes: 200}, true},
		{"never compacted", func(s *State, _ *Policy) { s.CleanedTo = -1 },
			Candidate{FirstDirtyOffset: 0, FirstUncleanableOffset: 30, CleanableBytes: 300}, true},
		{"below the ratio", func(_ *State, p *Policy) { p.MinCleanableRatio = 0.7 },
			Candidate{FirstDirtyOffset: 10, FirstUncleanableOffset: 30, CleanBytes: 100, CleanableBytes: 200}, false},
		{"at the ratio", func(_ *State, p *Policy) { p.MinCleanableRatio = 2. / 3 },
			Candidate{FirstDirtyOffset: 10, FirstUncleanableOffset: 30, CleanBytes: 100, CleanableBytes: 200}, false},
		{"clean", func(s *State, _ *Policy) { s.CleanedTo = 30 }, Candidate{FirstDirtyOffset: 30, FirstUncleanableOffset: 30, CleanBytes: 300}, false},
		{"open transaction", func(s *State, _ *Policy) { s.LastStableOffset = 25 },
			Candidate{FirstDirtyOffset: 10, FirstUncleanableOffset: 20, CleanBytes: 100, CleanableBytes: 100}, true},
		{"open transaction in the first dirty segment", func(s *State, _ *Policy) { s.LastStableOffset = 12 },
			Candidate{FirstDirtyOffset: 10, FirstUncleanableOffset: 10, CleanBytes: 100}, false},
		{"open transaction in what is clean", func(s *State, _ *Policy) { s.LastStableOffset = 3 },
			Candidate{FirstDirtyOffset: 10, FirstUncleanableOffset: 10, CleanBytes: 100}, false},
		{"young records", func(_ *State, p *Policy) { p.MinLagMs = 1100 },
			Candidate{FirstDirtyOffset: 10, FirstUncleanableOffset: 20, CleanBytes: 100, CleanableBytes: 100}, true},
		{"old enough to the millisecond", func(_ *State, p *Policy) { p.MinLagMs = 1001 },
			Candidate{FirstDirtyOffset: 10, FirstUncleanableOffset: 30, CleanBytes: 100, CleanableBytes: 200}, true},
		{"all young", func(_ *State, p *Policy) { p.MinLagMs = 5000 }, Candidate{FirstDirtyOffset: 10, FirstUncleanableOffset: 10, CleanBytes: 100}, false},
		{"overdue", func(_ *State, p *Policy) { p.MinCleanableRatio, p.MaxLagMs = 0.9, 2998 },
			Candidate{FirstDirtyOffset: 10, FirstUncleanableOffset: 30, CleanBytes: 100, CleanableBytes: 200, OverdueMs: 1}, true},
		{"not yet overdue", func(_ *State, p *Policy) { p.MinCleanableRatio, p.MaxLagMs = 0.9, 2999 },
			Candidate{FirstDirtyOffset: 10, FirstUncleanableOffset: 30, CleanBytes: 100, CleanableBytes: 200}, false},
		{"partly compacted segment", func(s *State, _ *Policy) { s.CleanedTo = 15 },
			Candidate{FirstDirtyOffset: 15, FirstUncleanableOffset: 30, CleanBytes: 200, CleanableBytes: 200}, true},
		{"checkpoint beyond the end", func(s *State, _ *Policy) { s.CleanedTo = 41 },
			Candidate{FirstDirtyOffset: 0, FirstUncleanableOffset: 30, CleanableBytes: 300, Reset: true}, true},
		{"checkpoint before the start", func(s *State, _ *Policy) { s.CleanedTo, s.LogStartOffset = 3, 5 },
			Candidate{FirstDirtyOffset: 5, FirstUncleanableOffset: 30, CleanBytes: 100, CleanableBytes: 300, Reset: true}, true},
		{"log starts in the active segment", func(s *State, _ *Policy) { s.CleanedTo, s.LogStartOffset = -1, 35 },
			Candidate{FirstDirtyOffset: 35, FirstUncleanableOffset: 30, CleanBytes: 300}, false},
		{"only the active segment", func(s *State, _ *Policy) { s.Segments, s.CleanedTo = nil, -1 },
			Candidate{FirstDirtyOffset: 0, FirstUncleanableOffset: 30}, false},
	} {
		s := State{LogEndOffset: 40, LastStableOffset: 40, CleanedTo: 10, Segments: segments(0, 10, 20), ActiveBaseOffset: 30}
		p := Policy{MinCleanableRatio: 0.4, MaxLagMs: math.MaxInt64}
		c.change(&s, &p)
		got, err := Assess(s, p, 4000)
		if err != nil || got != c.want || got.Due(p) != c.due {
			t.Errorf("%s: %v, due %v\n got %+v\nwant %+v", c.about, err, got.Due(p), got, c.want)
		}
	}
}

// TestAssess_TimestampsUnreadable_Fails: it is not taken for young or old.
func TestAssess_TimestampsUnreadable_Fails(t *testing.T) {
	broken := errors.New("broken")
	s := State{LogEndOffset: 40, LastStableOffset: 40, CleanedTo: -1, Segments: segments(0), ActiveBaseOffset: 30}
	s.Segments[0].FirstTimestampMs = func() (int64, error) { return 0, broken }
	s.Segments[0].LargestTimestampMs = s.Segments[0].FirstTimestampMs
	for _, p := range []Policy{{MinLagMs: 1, MaxLagMs: math.MaxInt64}, {MaxLagMs: 1}} {
		if _, err := Assess(s, p, 1); !errors.Is(err, broken) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestGroups(t *testing.T) {
	const far = math.MaxInt32
	for _, c := range []struct {
		bases  []int64
		change func([]Segment)
		l      limits
		want   string
	}{
		{[]int64{0, 10, 20, 30}, nil, limits{200, 1000}, "[{0 2} {2 4}]"},
		{[]int64{0, 10, 20, 30}, nil, limits{199, 1000}, "[{0 1} {1 2} {2 3} {3 4}]"},
		{[]int64{0, 10, 20, 30}, nil, limits{50, 1000}, "[{0 1} {1 2} {2 3} {3 4}]"},
		{[]int64{0, 10, 20}, func(s []Segment) { s[0].OffsetIndexBytes, s[1].OffsetIndexBytes = 600, 600 }, limits{1000, 1000}, "[{0 1} {1 3}]"},
		{[]int64{0, 10, 20}, func(s []Segment) { s[1].TimeIndexBytes, s[2].TimeIndexBytes = 600, 600 }, limits{1000, 1000}, "[{0 2} {2 3}]"},
		{[]int64{0, 10, far}, nil, limits{1000, 1000}, "[{0 2} {2 3}]"},
		{[]int64{0, 10, far, far + 1, far + 2}, nil, limits{1000, 1000}, "[{0 3} {3 5}]"},
		{[]int64{0, far + 10, 2 * far}, func(s []Segment) { s[1].Bytes = 0 }, limits{1000, 1000}, "[{0 2} {2 3}]"},
		{nil, nil, limits{1000, 1000}, "[]"},
	} {
		s := segments(c.bases...)
		if c.change != nil {
			c.change(s)
		}
		next := int64(0)
		if len(s) > 0 {
			next = s[len(s)-1].BaseOffset + 10
		}
		if got := fmt.Sprint(groups(s, next, c.l)); got != c.want {
			t.Errorf("%v: %s, want %s", c.bases, got, c.want)
		}
	}
}

// TestThrottle: the rate holds over a while, whatever the pieces are.
func TestThrottle(t *testing.T) {
	for _, piece := range []int64{1, 100, 1000, 50_000} {
		var throttle Throttle
		nowMs, total := int64(500), int64(0)
		for total < 300_000 {
			total += piece
			nowMs += throttle.Spend(piece, 10_000, nowMs)
		}
		if took, want := nowMs-500, total/10; took < want-1000 || took > want+1 {
			t.Errorf("pieces of %d: %d bytes took %d ms, want %d", piece, total, took, want)
		}
	}
	var throttle Throttle
	if pause := throttle.Spend(1<<40, math.MaxFloat64, 0); pause != 0 {
		t.Errorf("pause of %d ms without a limit", pause)
	}
	throttle = Throttle{}
	throttle.Spend(1, 10, 1000)
	if pause := throttle.Spend(10, 10, 100_000); pause != 0 {
		t.Errorf("pause of %d ms after long idleness", pause)
	}
	if pause := throttle.Spend(10, 10, 100_001); pause < 900 {
		t.Errorf("pause of %d ms: what was not used of the rate has been saved up", pause)
	}
}
