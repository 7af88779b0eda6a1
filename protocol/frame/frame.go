// Package frame knows what surrounds the bodies of Kafka requests and responses: the four-byte length of a frame, the request header in
// versions 0 to 2, the response header in versions 0 and 1, and the exception that ApiVersions makes. It is pure: no I/O, no state.
package frame

import (
	"encoding/binary"
	"fmt"
)

// LengthBytes is the size of the big-endian length in front of each frame. The length does not count itself.
const LengthBytes = 4

// BadLength says that a frame announces a length that no well-meaning peer sends.
type BadLength struct {
	Length int32
	Max    int // inclusive
}

func (b *BadLength) Error() string {
	return fmt.Sprintf("frame of length %d: must be between 0 and %d", b.Length, b.Max)
}

// Length reads the length at the front of b, which holds at least LengthBytes bytes, and checks it against max (bytes, inclusive).
// The error is a *BadLength.
func Length(b []byte, max int) (int, error) {
	length := int32(binary.BigEndian.Uint32(b))
	if length < 0 || int(length) > max {
		return 0, &BadLength{Length: length, Max: max}
	}
	return int(length), nil
}

// Complete reports whether b starts with a whole frame.
func Complete(b []byte) bool {
	if len(b) < LengthBytes {
		return false
	}
	length := int32(binary.BigEndian.Uint32(b))
	return length >= 0 && len(b)-LengthBytes >= int(length)
}
