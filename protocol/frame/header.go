package frame

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// RequestHeader is what precedes the body of every request.
type RequestHeader struct {
	Key           int16
	Version       int16
	CorrelationID int32
	ClientID      *string // nil when the client sent null, or when the header has no such field (version 0)
}

// Malformed says that bytes from a peer do not form a request header.
type Malformed struct{ Reason string }

func (m *Malformed) Error() string { return "malformed request header: " + m.Reason }

// maxTags bounds the tagged fields of one header. No header field is tagged today; a few may come.
const maxTags = 1024

// neverFlexible is the firstFlexible of a key whose requests have no flexible version, or that is unknown.
const neverFlexible = int16(1<<15 - 1)

// firstFlexible[key] is the first version of the request that uses flexible encoding, and with it header version 2.
var firstFlexible = findFirstFlexible()

func findFirstFlexible() []int16 {
	first := make([]int16, kmsg.MaxKey+1)
	for key := range first {
		first[key] = neverFlexible
		request := kmsg.RequestForKey(int16(key))
		if request == nil {
			continue
		}
		for version := int16(0); version <= request.MaxVersion(); version++ {
			request.SetVersion(version)
			if request.IsFlexible() {
				first[key] = version
				break
			}
		}
	}
	return first
}

// Flexible reports whether requests and responses of this key and version use flexible encoding (compact lengths, tagged fields).
// A version beyond those known is taken to be flexible when the newest known one is.
func Flexible(key, version int16) bool {
	return key >= 0 && int(key) < len(firstFlexible) && version >= firstFlexible[key]
}

// RequestHeaderVersion is the version of the header before a request of this key and version.
func RequestHeaderVersion(key, version int16) int16 {
	switch {
	case key == int16(kmsg.ControlledShutdown) && version == 0:
		return 0
	case Flexible(key, version):
		return 2
	}
	return 1
}

// ResponseHeaderVersion is the version of the header before a response. ApiVersions responses always have version 0, so that a client
// can read them before it knows what the broker speaks.
func ResponseHeaderVersion(key, version int16) int16 {
	if key != int16(kmsg.ApiVersions) && Flexible(key, version) {
		return 1
	}
	return 0
}

// AppendResponseHeader appends the header of the response to a request of this key and version.
func AppendResponseHeader(dst []byte, key, version int16, correlationID int32) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if ResponseHeaderVersion(key, version) >= 1 {
		dst = append(dst, 0) // no tagged fields
	}
	return dst
}

// AppendRequestHeader appends h in the header version that its key and version ask for.
func AppendRequestHeader(dst []byte, h RequestHeader) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Key))
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.CorrelationID))
	version := RequestHeaderVersion(h.Key, h.Version)
	if version >= 1 {
		if h.ClientID == nil {
			dst = append(dst, 0xff, 0xff)
		} else {
			dst = binary.BigEndian.AppendUint16(dst, uint16(len(*h.ClientID)))
			dst = append(dst, *h.ClientID...)
		}
	}
	if version >= 2 {
		dst = append(dst, 0)
	}
	return dst
}

// ParseRequestHeader reads the header at the front of a frame; body is what follows it and aliases b. A client id equal to the one before,
// which may be nil, is not copied anew. Tagged fields of the header are skipped. Every error is a *Malformed.
func ParseRequestHeader(b []byte, before *string) (h RequestHeader, body []byte, err error) {
	if len(b) < 8 {
		return h, nil, &Malformed{fmt.Sprintf("%d bytes, need at least 8", len(b))}
	}
	h.Key = int16(binary.BigEndian.Uint16(b))
	h.Version = int16(binary.BigEndian.Uint16(b[2:]))
	h.CorrelationID = int32(binary.BigEndian.Uint32(b[4:]))
	b = b[8:]
	version := RequestHeaderVersion(h.Key, h.Version)
	if version == 0 {
		return h, b, nil
	}
	if len(b) < 2 {
		return h, nil, &Malformed{"ends before the client id"}
	}
	length := int(int16(binary.BigEndian.Uint16(b)))
	b = b[2:]
	switch { // every negative length stands for null, as in Kafka
	case length > len(b):
		return h, nil, &Malformed{fmt.Sprintf("client id of length %d, only %d bytes left", length, len(b))}
	case length >= 0:
		if before == nil || *before != string(b[:length]) {
			clientID := string(b[:length])
			before = &clientID
		}
		h.ClientID = before
		b = b[length:]
	}
	if version == 2 {
		if b, err = skipTags(b); err != nil {
			return h, nil, err
		}
	}
	return h, b, nil
}

func skipTags(b []byte) ([]byte, error) {
	count, b, err := uvarint(b)
	if err != nil {
		return nil, err
	}
	if count > maxTags {
		return nil, &Malformed{fmt.Sprintf("%d tagged fields", count)}
	}
	for range count {
		if _, b, err = uvarint(b); err != nil {
			return nil, err
		}
		var size uint32
		if size, b, err = uvarint(b); err != nil {
			return nil, err
		}
		if uint64(size) > uint64(len(b)) {
			return nil, &Malformed{fmt.Sprintf("tagged field of %d bytes, only %d left", size, len(b))}
		}
		b = b[size:]
	}
	return b, nil
}

// uvarint reads Kafka's unsigned varint: at most five bytes, 32 bits.
func uvarint(b []byte) (uint32, []byte, error) {
	value, n := binary.Uvarint(b[:min(len(b), binary.MaxVarintLen32)])
	if n <= 0 || value > 1<<32-1 {
		return 0, nil, &Malformed{"bad varint"}
	}
	return uint32(value), b[n:], nil
}
