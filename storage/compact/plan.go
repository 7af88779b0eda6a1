package compact

import (
	"math"
)

// Policy is how a topic wants to be compacted. Each field is named after the config.
type Policy struct {
	MinCleanableRatio float64 // min.cleanable.dirty.ratio: a log with a smaller part of dirty bytes waits
	MinLagMs          int64   // min.compaction.lag.ms: a segment with a younger record is not touched
	MaxLagMs          int64   // max.compaction.lag.ms: a log with an older dirty segment does not wait; MaxInt64 = it may
	DeleteRetentionMs int64   // delete.retention.ms: so long tombstones and markers stay after they have been compacted
}

// State is what is known of a log when it is looked at.
type State struct {
	LogStartOffset   int64
	LogEndOffset     int64
	LastStableOffset int64 // by the high watermark
	CleanedTo        int64 // the end (exclusive) of what was compacted, by cleaner-offset-checkpoint; -1 if the log has no entry
	Segments         []Segment
	ActiveBaseOffset int64 // of the segment that follows them
}

// Segment is what deciding needs of a segment that is not the active one.
type Segment struct {
	BaseOffset       int64
	Bytes            int64
	OffsetIndexBytes int64
	TimeIndexBytes   int64
	// FirstTimestampMs is the maximum timestamp of the first batch, in ms since 1970, LargestTimestampMs that of the segment. They are asked for
	// only where a lag is configured.
	FirstTimestampMs   func() (int64, error)
	LargestTimestampMs func() (int64, error)
}

// Candidate says what of a log could be compacted.
type Candidate struct {
	FirstDirtyOffset       int64
	FirstUncleanableOffset int64 // the base offset of a segment
	CleanBytes             int64 // of the segments that begin before the first dirty offset
	CleanableBytes         int64 // of the segments between the two
	OverdueMs              int64 // by how much max.compaction.lag.ms has passed; 0 if it has not
	Reset                  bool  // the checkpoint does not fit the log: it begins at its start offset again, which is to be written down
}

// Ratio is the dirty part of the bytes that may be compacted, from 0 to 1.
func (c Candidate) Ratio() float64 {
	if c.CleanBytes+c.CleanableBytes == 0 {
		return 0
	}
	return float64(c.CleanableBytes) / float64(c.CleanBytes+c.CleanableBytes)
}

// Due says whether the log is to be compacted now.
func (c Candidate) Due(p Policy) bool {
	return c.CleanableBytes > 0 && (c.OverdueMs > 0 || c.Ratio() > p.MinCleanableRatio)
}

// Assess finds out what of a log could be compacted.
func Assess(s State, p Policy, nowMs int64) (Candidate, error) {
	c := Candidate{FirstDirtyOffset: s.CleanedTo}
	if s.CleanedTo < s.LogStartOffset || s.CleanedTo > s.LogEndOffset {
		c.FirstDirtyOffset, c.Reset = s.LogStartOffset, s.CleanedTo >= 0
	}
	limit := min(s.LastStableOffset, s.ActiveBaseOffset)
	var dirty []Segment
	if c.FirstDirtyOffset < s.ActiveBaseOffset {
		dirty = s.Segments[floor(s.Segments, c.FirstDirtyOffset):]
	}
	if p.MinLagMs > 0 {
		for i := range dirty {
			newest, err := dirty[i].LargestTimestampMs()
			if err != nil {
				return Candidate{}, err
			}
			if newest > nowMs-p.MinLagMs {
				limit = min(limit, dirty[i].BaseOffset)
				break
			}
		}
	}
	limit = max(limit, c.FirstDirtyOffset)
	// A segment is compacted as a whole or not at all.
	c.FirstUncleanableOffset = s.ActiveBaseOffset
	if limit < s.ActiveBaseOffset && len(s.Segments) > 0 {
		c.FirstUncleanableOffset = s.Segments[floor(s.Segments, limit)].BaseOffset
	}
	for i, segment := range s.Segments {
		// A segment that begins before the first dirty offset and ends after it counts in both, as it does in Apache Kafka.
		if segment.BaseOffset < c.FirstDirtyOffset {
			c.CleanBytes += segment.Bytes
		}
		if s.next(i) > c.FirstDirtyOffset && segment.BaseOffset < c.FirstUncleanableOffset {
			c.CleanableBytes += segment.Bytes
		}
	}
	var err error
	c.OverdueMs, err = overdue(dirty, p, nowMs)
	return c, err
}

// overdue is by how long the oldest dirty segment has waited too long.
func overdue(dirty []Segment, p Policy, nowMs int64) (int64, error) {
	if p.MaxLagMs == math.MaxInt64 {
		return 0, nil
	}
	limit, overdue := nowMs-max(p.MaxLagMs, 0), int64(0)
	for i := range dirty {
		first, err := dirty[i].FirstTimestampMs()
		if err != nil {
			return 0, err
		}
		if first > 0 {
			overdue = max(overdue, limit-first)
		}
	}
	return overdue, nil
}

// next is where the segment after the i-th begins.
func (s *State) next(i int) int64 {
	if i+1 < len(s.Segments) {
		return s.Segments[i+1].BaseOffset
	}
	return s.ActiveBaseOffset
}

// floor is the index of the last segment that begins at or before an offset; 0 if there is none.
func floor(segments []Segment, offset int64) int {
	i := len(segments) - 1
	for ; i > 0 && segments[i].BaseOffset > offset; i-- {
	}
	return max(i, 0)
}

// group is segments that become one.
type group struct{ from, to int } // indices, to exclusive

// limits bound a segment.
type limits struct {
	segmentBytes int64 // segment.bytes
	indexBytes   int64 // segment.index.bytes
}

// groups puts neighbouring segments together that fit one. next is where the segment after the last one begins.
func groups(segments []Segment, next int64, l limits) []group {
	var all []group
	for i := 0; i < len(segments); {
		g := group{i, i + 1}
		bytes, offsetIndex, timeIndex := segments[i].Bytes, segments[i].OffsetIndexBytes, segments[i].TimeIndexBytes
		for ; g.to < len(segments); g.to++ {
			s := &segments[g.to]
			bytes, offsetIndex, timeIndex = bytes+s.Bytes, offsetIndex+s.OffsetIndexBytes, timeIndex+s.TimeIndexBytes
			last := next - 1
			if g.to+1 < len(segments) {
				last = segments[g.to+1].BaseOffset - 1
			}
			// Offsets in a segment are kept in 32 bits. That the last one is judged and not the last that is there is Apache Kafka's way too.
			if bytes > l.segmentBytes || offsetIndex > l.indexBytes || timeIndex > l.indexBytes || s.Bytes > 0 && last-segments[i].BaseOffset > math.MaxInt32 {
				break
			}
		}
		all = append(all, g)
		i = g.to
	}
	return all
}
