package connect

import (
	"testing"
	"time"

	"sluice/cmd/sluice/cli/exit"
)

// TestParsePosition reads every way of writing a position, at noon of New Year's Day in a zone an hour east.
func TestParsePosition(t *testing.T) {
	zone := time.FixedZone("east", 3600)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, zone)
	ms := func(t time.Time) Position { return Position{atTime, t.UnixMilli()} }
	for _, test := range []struct {
		text string
		want Position
	}{
		{"beginning", Beginning}, {"start", Beginning}, {"earliest", Beginning},
		{"end", End}, {"latest", End},
		{"0", Position{atOffset, 0}}, {"9223372036854775807", Position{atOffset, 1<<63 - 1}},
		{"-1", Position{beforeEnd, 1}}, {"-100", Position{beforeEnd, 100}},
		{"@0", Position{atTime, 0}}, {"@1767225600000", Position{atTime, 1767225600000}},
		{"15m", ms(now.Add(-15 * time.Minute))}, {"0s", ms(now)},
		{"2025-12-31T23:00:00Z", ms(time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC))},
		{"2025-12-31T23:00:00.5+02:00", ms(time.Date(2025, 12, 31, 21, 0, 0, 5e8, time.UTC))},
		{"2025-12-31", ms(time.Date(2025, 12, 31, 0, 0, 0, 0, zone))},
		{"2025-12-31 08:30", ms(time.Date(2025, 12, 31, 8, 30, 0, 0, zone))},
		{"2025-12-31T08:30:15", ms(time.Date(2025, 12, 31, 8, 30, 15, 0, zone))},
	} {
		if got, err := ParsePosition(test.text, now); err != nil || got != test.want {
			t.Errorf("%s: %v, %v; want %v", test.text, got, err, test.want)
		}
	}
	for _, text := range []string{"", "yesterday", "-15m", "@-1", "@", "1.5", "9223372036854775808", "2026-13-01", "1960-01-01"} {
		if got, err := ParsePosition(text, now); exit.Code(err) != exit.Usage {
			t.Errorf("%q: %v, %v; want a usage error", text, got, err)
		}
	}
}
