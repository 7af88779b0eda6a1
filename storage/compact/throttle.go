package compact

// Throttle spreads work over time so that it does not exceed a rate. The zero value is ready. One caller at a time uses it.
type Throttle struct {
	sinceMs int64
	spent   float64
	begun   bool
}

const throttlePeriodMs = 1000

// Spend notes that bytes were read or written at nowMs, and returns for how many milliseconds to pause so that the rate is not exceeded.
func (t *Throttle) Spend(bytes int64, bytesPerSecond float64, nowMs int64) (pauseMs int64) {
	if !t.begun || nowMs < t.sinceMs {
		t.begun, t.sinceMs, t.spent = true, nowMs, 0
	}
	t.spent += float64(bytes)
	elapsed := nowMs - t.sinceMs
	const longestMs = 60 * 60 * 1000
	if needs := t.spent / bytesPerSecond * 1000; needs > float64(elapsed) {
		pauseMs = int64(min(needs-float64(elapsed), longestMs))
	}
	if elapsed+pauseMs >= throttlePeriodMs {
		// What was not used of the rate is not saved up.
		t.sinceMs, t.spent = nowMs+pauseMs, 0
	}
	return pauseMs
}
