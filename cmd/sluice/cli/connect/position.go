package connect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"sluice/cmd/sluice/cli/exit"
)

// Position is a place in each of several partitions: beginning, end, an offset, or the first record at or after a time.
type Position struct {
	kind positionKind
	// n is an offset, or how many records before the end, or a time in ms.
	n int64
}

type positionKind uint8

const (
	atEnd positionKind = iota
	atBeginning
	atOffset
	beforeEnd
	atTime
)

// The places that need no number.
var (
	Beginning = Position{kind: atBeginning}
	End       = Position{kind: atEnd}
)

// PositionHelp says how a position is written.
const PositionHelp = `beginning; end; an OFFSET such as 1200; -N for the last N records of each partition; or a TIME: 2026-01-31T15:04:05Z,
"2026-01-31 15:04" or 2026-01-31 in local time, 15m for 15 minutes ago, @1767225600000 for milliseconds since 1970.`

// localTimes are the layouts that stand for local time.
var localTimes = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"}

// ParsePosition reads a position. now is for times that are relative.
func ParsePosition(text string, now time.Time) (Position, error) {
	switch text {
	case "beginning", "start", "earliest":
		return Beginning, nil
	case "end", "latest":
		return End, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < 0 {
			return Position{kind: beforeEnd, n: -n}, nil
		}
		return Position{kind: atOffset, n: n}, nil
	}
	if len(text) > 1 && text[0] == '@' {
		if ms, err := strconv.ParseInt(text[1:], 10, 64); err == nil && ms >= 0 {
			return Position{kind: atTime, n: ms}, nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return Position{kind: atTime, n: now.Add(-ago).UnixMilli()}, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil && at.UnixMilli() >= 0 {
		return Position{kind: atTime, n: at.UnixMilli()}, nil
	}
	for _, layout := range localTimes {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil && at.UnixMilli() >= 0 {
			return Position{kind: atTime, n: at.UnixMilli()}, nil
		}
	}
	return Position{}, exit.Usagef("%q is no position: want %s", text, PositionHelp)
}

// IsBeginning and IsEnd are the positions that a group can start from where it has committed nothing.
func (p Position) IsBeginning() bool { return p.kind == atBeginning }

// IsEnd reports whether the position is the end.
func (p Position) IsEnd() bool { return p.kind == atEnd }

// Range is the start (inclusive) and end (exclusive) offset of a partition.
type Range struct{ Start, End int64 }

// Ranges are the offsets that partitions have at the moment. committed leaves out what open transactions hold back.
func (c *Client) Ranges(ctx context.Context, committed bool, topics ...string) (map[string]map[int32]Range, error) {
	starts, err := c.Admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, c.Explain(err)
	}
	list := c.Admin.ListEndOffsets
	if committed {
		list = c.Admin.ListCommittedOffsets
	}
	ends, err := list(ctx, topics...)
	if err != nil {
		return nil, c.Explain(err)
	}
	ranges := map[string]map[int32]Range{}
	for _, topic := range topics {
		ranges[topic] = map[int32]Range{}
		partitions := starts[topic]
		if len(partitions) == 0 {
			return nil, topicMissing(topic)
		}
		for _, partition := range slices.Sorted(maps.Keys(partitions)) {
			start, end := partitions[partition], ends[topic][partition]
			for _, err := range []error{start.Err, end.Err} {
				if err != nil && partition < 0 {
					return nil, topicMissing(topic)
				}
				if err := c.Refused(fmt.Sprintf("find the offsets of %s, partition %d", topic, partition), err, ""); err != nil {
					return nil, err
				}
			}
			ranges[topic][partition] = Range{start.Offset, end.Offset}
		}
	}
	return ranges, nil
}

func topicMissing(topic string) error {
	return exit.With(exit.NotFound, fmt.Errorf("the topic %s does not exist; `sluice topic list` shows those that do", topic))
}

// Resolve turns a position into an offset for each partition of ranges. An offset outside of a partition is moved to its start or end.
func (c *Client) Resolve(ctx context.Context, p Position, ranges map[string]map[int32]Range) (map[string]map[int32]int64, error) {
	var after kadm.ListedOffsets
	if p.kind == atTime {
		var err error
		if after, err = c.Admin.ListOffsetsAfterMilli(ctx, p.n, slices.Sorted(maps.Keys(ranges))...); err != nil {
			return nil, c.Explain(err)
		}
	}
	offsets := map[string]map[int32]int64{}
	for topic, partitions := range ranges {
		offsets[topic] = map[int32]int64{}
		for partition, r := range partitions {
			at := r.End
			switch p.kind {
			case atEnd:
			case atBeginning:
				at = r.Start
			case atOffset:
				at = p.n
			case beforeEnd:
				at = r.End - min(p.n, r.End)
			case atTime:
				found := after[topic][partition]
				if err := c.Refused(fmt.Sprintf("find the time in %s, partition %d", topic, partition), found.Err, ""); err != nil {
					return nil, err
				}
				if found.Offset >= 0 {
					at = found.Offset
				}
			}
			offsets[topic][partition] = min(max(at, r.Start), r.End)
		}
	}
	return offsets, nil
}
