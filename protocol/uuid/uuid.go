// Package uuid holds the 128-bit ids that Kafka gives to topics, log directories, broker incarnations and voters.
//
// Kafka prints them as URL-safe base64 without padding (22 characters), not in the RFC 4122 form.
package uuid

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

// UUID is one id, in the byte order of the wire (most significant byte first).
type UUID [16]byte

// Zero is the absent id. In a list of log directories it marks a replica that is still to be migrated (MIGRATING).
var Zero UUID

// MetadataTopic is the topic id of __cluster_metadata. As a log directory the same bits mean "not assigned yet".
var MetadataTopic = UUID{15: 1}

// Log directory ids with a fixed meaning (KIP-858): nothing is stored in a directory of these names.
var (
	// UnassignedDirectory stands for a replica whose broker has not chosen a log directory yet.
	UnassignedDirectory = UUID{15: 1}
	// LostDirectory stands for a replica whose log directory is gone.
	LostDirectory = UUID{15: 2}
)

// reservedBelow is the count of ids, from zero upwards, that are never generated: the first hundred are kept for
// fixed meanings such as the ones above.
const reservedBelow = 100

// encodedBytes is the length of the text form.
const encodedBytes = 22

// IsZero says whether u is the absent id.
func (u UUID) IsZero() bool { return u == Zero }

// IsReserved says whether u lies in the range that carries fixed meanings: such an id is never a generated one.
func (u UUID) IsReserved() bool {
	return bytes.Equal(u[:15], Zero[:15]) && u[15] < reservedBelow
}

// String gives the 22 characters that Kafka's tools, files and logs show.
func (u UUID) String() string { return base64.RawURLEncoding.EncodeToString(u[:]) }

// Compare orders ids by their bytes, for output that must not depend on map order.
func (u UUID) Compare(v UUID) int { return bytes.Compare(u[:], v[:]) }

// MarshalText implements encoding.TextMarshaler with the form of String.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler with Parse.
func (u *UUID) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*u = parsed
	}
	return err
}

// Parse reads the text form; padding is accepted because Java's decoder accepts it.
func Parse(s string) (UUID, error) {
	var u UUID
	text := s
	if len(text) == encodedBytes+2 && text[encodedBytes:] == "==" {
		text = text[:encodedBytes]
	}
	if len(text) != encodedBytes {
		return Zero, fmt.Errorf("uuid %.32q: want %d characters of URL-safe base64, have %d", s, encodedBytes, len(s))
	}
	if _, err := base64.RawURLEncoding.Decode(u[:], []byte(text)); err != nil {
		return Zero, fmt.Errorf("uuid %.32q: %w", s, err)
	}
	return u, nil
}

// New draws a random (version 4) id from random, which in production is crypto/rand.Reader. Ids with a reserved
// meaning are drawn again, and so are those whose text has a '-' in it: a leading one would look like an option on a
// command line, and ids without any can be marked with a double click.
func New(random io.Reader) (UUID, error) {
	for {
		var u UUID
		if _, err := io.ReadFull(random, u[:]); err != nil {
			return Zero, fmt.Errorf("uuid: read random bytes: %w", err)
		}
		u[6] = u[6]&0x0f | 0x40
		u[8] = u[8]&0x3f | 0x80
		if u.IsReserved() || strings.Contains(u.String(), "-") {
			continue
		}
		return u, nil
	}
}
