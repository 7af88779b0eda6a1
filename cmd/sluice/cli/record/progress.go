package record

import (
	"fmt"
	"io"
	"time"

	"sluice/cmd/sluice/cli/output"
)

// progress shows on a terminal how far long work is, once a second. Elsewhere it is silent.
type progress struct {
	w     io.Writer // nil: silent
	began time.Time
	shown time.Time
	width int

	records, bytes int64
}

// newProgress starts to count. Work that prints its records to the terminal is its own progress.
func newProgress(stderr io.Writer, prints io.Writer) *progress {
	p := &progress{began: time.Now()}
	if output.IsTerminal(stderr) && (prints == nil || !output.IsTerminal(prints)) {
		p.w, p.shown = stderr, p.began
	}
	return p
}

// add counts records and their bytes. Whoever counts from several goroutines locks outside.
func (p *progress) add(records, bytes int) {
	p.records += int64(records)
	p.bytes += int64(bytes)
	if p.w == nil || time.Since(p.shown) < time.Second {
		return
	}
	p.shown = time.Now()
	line := p.line()
	p.width = max(p.width, len(line))
	fmt.Fprintf(p.w, "\r%-*s", p.width, line) //nolint:errcheck // progress that cannot be shown is not missed
}

// clear takes the line away again.
func (p *progress) clear() {
	if p.w != nil && p.width > 0 {
		fmt.Fprintf(p.w, "\r%*s\r", p.width, "") //nolint:errcheck // as above
	}
}

func (p *progress) elapsed() time.Duration { return time.Since(p.began) }

func (p *progress) line() string {
	seconds := max(p.elapsed().Seconds(), 0.001)
	return fmt.Sprintf("%d records, %s, %.0f records/s, %s/s", p.records, output.Bytes(float64(p.bytes)), float64(p.records)/seconds, output.Bytes(float64(p.bytes)/seconds))
}

func recordBytes(key, value []byte) int { return len(key) + len(value) }
