// Package assert checks the program's own invariants. It stays on in production: a broken invariant of ours means that what would be
// written or answered next cannot be trusted. It is never used for bytes that a peer or a disk supplied; those are errors.
package assert

import "fmt"

// That panics with the formatted message when condition is false.
func That(condition bool, format string, args ...any) {
	if !condition {
		panic("assertion failed: " + fmt.Sprintf(format, args...))
	}
}
