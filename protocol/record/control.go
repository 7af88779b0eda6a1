package record

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"

	"sluice/internal/assert"
	"sluice/protocol/uuid"
)

// ControlType is what a control record says; its key carries it.
type ControlType int16

// The control types.
const (
	ControlAbort          ControlType = 0 // a transaction was aborted
	ControlCommit         ControlType = 1 // a transaction was committed
	ControlLeaderChange   ControlType = 2 // a quorum has a new leader
	ControlSnapshotHeader ControlType = 3
	ControlSnapshotFooter ControlType = 4
	ControlKRaftVersion   ControlType = 5
	ControlVoters         ControlType = 6
)

// controlKeyBytes is the size of a control record's key: its version and its type.
const controlKeyBytes = 4

// Control is the content of a control record: EndTxnMarker, LeaderChange, SnapshotHeader, SnapshotFooter, KRaftVersion,
// Voters, or UnknownControl.
type Control interface {
	ControlType() ControlType
	appendValue(dst []byte) []byte
}

// EndTxnMarker ends a transaction of the producer of its batch.
type EndTxnMarker struct {
	Commit           bool
	CoordinatorEpoch int32 // of the transaction coordinator
}

// LeaderChange is the first record of an epoch in a metadata log.
type LeaderChange struct {
	Version        int16
	LeaderID       int32
	Voters         []int32
	GrantingVoters []int32
}

// SnapshotHeader is the first record of a snapshot.
type SnapshotHeader struct {
	Version                     int16
	LastContainedLogTimestampMs int64 // ms since 1970
}

// SnapshotFooter is the last record of a snapshot.
type SnapshotFooter struct{ Version int16 }

// KRaftVersion is the finalized level of the feature kraft.version.
type KRaftVersion struct {
	Version      int16
	KRaftVersion int16
}

// Voters is a set of voters of a quorum (KIP-853).
type Voters struct {
	Version int16
	Voters  []Voter
}

// Voter is one member of a set of voters.
type Voter struct {
	ID              int32
	DirectoryID     uuid.UUID
	Endpoints       []VoterEndpoint
	MinKRaftVersion int16 // that it supports, inclusive
	MaxKRaftVersion int16 // that it supports, inclusive
}

// VoterEndpoint is where a voter's controller listens.
type VoterEndpoint struct {
	Name string // of the listener
	Host string
	Port uint16
}

// UnknownControl is a control record of a type from the future: clients and brokers skip it.
type UnknownControl struct{ Type ControlType }

// ControlType implements Control.
func (m EndTxnMarker) ControlType() ControlType {
	if m.Commit {
		return ControlCommit
	}
	return ControlAbort
}

// ControlType implements Control.
func (LeaderChange) ControlType() ControlType { return ControlLeaderChange }

// ControlType implements Control.
func (SnapshotHeader) ControlType() ControlType { return ControlSnapshotHeader }

// ControlType implements Control.
func (SnapshotFooter) ControlType() ControlType { return ControlSnapshotFooter }

// ControlType implements Control.
func (KRaftVersion) ControlType() ControlType { return ControlKRaftVersion }

// ControlType implements Control.
func (Voters) ControlType() ControlType { return ControlVoters }

// ControlType implements Control.
func (u UnknownControl) ControlType() ControlType { return u.Type }

func (m EndTxnMarker) appendValue(dst []byte) []byte {
	dst = kbin.AppendInt16(dst, 0) // version of the value
	return kbin.AppendInt32(dst, m.CoordinatorEpoch)
}

func (l LeaderChange) appendValue(dst []byte) []byte {
	dst = kbin.AppendInt16(dst, l.Version)
	dst = kbin.AppendInt32(dst, l.LeaderID)
	for _, voters := range [][]int32{l.Voters, l.GrantingVoters} {
		dst = kbin.AppendCompactArrayLen(dst, len(voters))
		for _, id := range voters {
			dst = kbin.AppendInt32(dst, id)
			dst = appendNoTags(dst)
		}
	}
	return appendNoTags(dst)
}

func (h SnapshotHeader) appendValue(dst []byte) []byte {
	dst = kbin.AppendInt16(dst, h.Version)
	dst = kbin.AppendInt64(dst, h.LastContainedLogTimestampMs)
	return appendNoTags(dst)
}

func (f SnapshotFooter) appendValue(dst []byte) []byte {
	return appendNoTags(kbin.AppendInt16(dst, f.Version))
}

func (k KRaftVersion) appendValue(dst []byte) []byte {
	dst = kbin.AppendInt16(dst, k.Version)
	dst = kbin.AppendInt16(dst, k.KRaftVersion)
	return appendNoTags(dst)
}

func (v Voters) appendValue(dst []byte) []byte {
	dst = kbin.AppendInt16(dst, v.Version)
	dst = kbin.AppendCompactArrayLen(dst, len(v.Voters))
	for _, voter := range v.Voters {
		dst = kbin.AppendInt32(dst, voter.ID)
		dst = append(dst, voter.DirectoryID[:]...)
		dst = kbin.AppendCompactArrayLen(dst, len(voter.Endpoints))
		for _, e := range voter.Endpoints {
			dst = kbin.AppendCompactString(dst, e.Name)
			dst = kbin.AppendCompactString(dst, e.Host)
			dst = kbin.AppendUint16(dst, e.Port)
			dst = appendNoTags(dst)
		}
		dst = kbin.AppendInt16(dst, voter.MinKRaftVersion)
		dst = kbin.AppendInt16(dst, voter.MaxKRaftVersion)
		dst = appendNoTags(dst) // of the version range
		dst = appendNoTags(dst) // of the voter
	}
	return appendNoTags(dst)
}

func (u UnknownControl) appendValue(dst []byte) []byte {
	assert.That(false, "control record of unknown type %d cannot be written", u.Type)
	return dst
}

// appendNoTags ends a flexible structure without tagged fields.
func appendNoTags(dst []byte) []byte { return kbin.AppendUvarint(dst, 0) }

// ControlRecord makes the record that carries c.
func ControlRecord(c Control, timestampMs int64) Record {
	key := kbin.AppendInt16(make([]byte, 0, controlKeyBytes), 0) // version of the key
	key = kbin.AppendInt16(key, int16(c.ControlType()))
	return Record{TimestampMs: timestampMs, Key: key, Value: c.appendValue(nil)}
}

// ParseControlType reads the type off the key of a control record. Versions of the key from the future are read as the present one.
func ParseControlType(key []byte) (ControlType, error) {
	if len(key) < controlKeyBytes {
		return 0, fmt.Errorf("control record key of %d bytes, want %d", len(key), controlKeyBytes)
	}
	if version := int16(binary.BigEndian.Uint16(key)); version < 0 {
		return 0, fmt.Errorf("control record key of version %d", version)
	}
	return ControlType(binary.BigEndian.Uint16(key[2:])), nil
}

// ParseControl reads a control record. The result shares no memory with it.
func ParseControl(r Record) (Control, error) {
	t, err := ParseControlType(r.Key)
	if err != nil {
		return nil, err
	}
	in := kbin.Reader{Src: r.Value}
	version := in.Int16()
	if in.Ok() && version < 0 {
		return nil, fmt.Errorf("control record of type %d: value of version %d", t, version)
	}
	var c Control
	switch t {
	case ControlAbort, ControlCommit:
		c = EndTxnMarker{Commit: t == ControlCommit, CoordinatorEpoch: in.Int32()}
	case ControlLeaderChange:
		l := LeaderChange{Version: version, LeaderID: in.Int32()}
		l.Voters = readVoterIDs(&in)
		l.GrantingVoters = readVoterIDs(&in)
		skipTags(&in)
		c = l
	case ControlSnapshotHeader:
		h := SnapshotHeader{Version: version, LastContainedLogTimestampMs: in.Int64()}
		skipTags(&in)
		c = h
	case ControlSnapshotFooter:
		skipTags(&in)
		c = SnapshotFooter{Version: version}
	case ControlKRaftVersion:
		k := KRaftVersion{Version: version, KRaftVersion: in.Int16()}
		skipTags(&in)
		c = k
	case ControlVoters:
		v := Voters{Version: version, Voters: readVoters(&in)}
		skipTags(&in)
		c = v
	default:
		return UnknownControl{Type: t}, nil
	}
	if err := in.Complete(); err != nil {
		return nil, fmt.Errorf("control record of type %d: %w", t, err)
	}
	return c, nil
}

func readVoterIDs(in *kbin.Reader) []int32 {
	n := readArrayLen(in, 5)
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = in.Int32()
		skipTags(in)
	}
	return ids
}

func readVoters(in *kbin.Reader) []Voter {
	voters := make([]Voter, readArrayLen(in, 27))
	for i := range voters {
		v := &voters[i]
		v.ID = in.Int32()
		v.DirectoryID = uuid.UUID(in.Uuid())
		v.Endpoints = make([]VoterEndpoint, readArrayLen(in, 5))
		for j := range v.Endpoints {
			v.Endpoints[j] = VoterEndpoint{Name: in.CompactString(), Host: in.CompactString(), Port: in.Uint16()}
			skipTags(in)
		}
		v.MinKRaftVersion = in.Int16()
		v.MaxKRaftVersion = in.Int16()
		skipTags(in)
		skipTags(in)
	}
	return voters
}

// readArrayLen reads how many elements of at least min bytes follow, never more than the input can hold. A null array
// reads as an empty one.
func readArrayLen(in *kbin.Reader, min int) int {
	n := int(in.Uvarint()) - 1
	if n > len(in.Src)/min {
		in.Span(len(in.Src) + 1) // more than there is: marks the reader as failed
		return 0
	}
	return max(n, 0)
}

func skipTags(in *kbin.Reader) {
	for n := in.Uvarint(); n > 0 && in.Ok(); n-- {
		in.Uvarint()
		in.Span(int(in.Uvarint()))
	}
}
