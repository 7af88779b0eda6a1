package segment

// Handles bounds how many files the segments of all logs that share it keep open between uses. Files in use are never closed, so that
// the bound is exceeded for a while when more are used at once.
type Handles struct {
	limit int
}

// NewHandles keeps at most limit files open.
func NewHandles(limit int) *Handles { return &Handles{limit: limit} }
