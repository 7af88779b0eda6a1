package diff

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// frames are the scenarios about what is no valid request at all: wrong versions, unknown APIs, bytes.
func frames() []Scenario {
	var list []Scenario
	for _, key := range sortedKeys() {
		if servedBySluice(key) {
			list = append(list, wrongVersions(key))
		}
	}
	return append(list, Scenario{Name: "frames/unknown APIs", Steps: unknownAPIs}, Scenario{Name: "frames/sizes", Steps: wrongSizes},
		Scenario{Name: "frames/headers", Steps: wrongHeaders})
}

// wrongVersions asks one API at versions just outside of what Apache Kafka advertises, and far from it.
func wrongVersions(key int16) Scenario {
	return Scenario{Name: "frames/versions of " + kmsg.NameForKey(key), Steps: func(r *Run) {
		v := served.Load()[0][key]
		for _, version := range []int16{v.min - 1, v.max + 1, -1, -32768, 32767} {
			if version >= v.min && version <= v.max {
				continue
			}
			// The body is one of the nearest version: an answer that the broker gives must be about the version.
			near := min(max(version, v.min), v.max)
			r.sendFrame(fmt.Sprintf("version %d", version), func() ([]byte, kmsg.Response) {
				req := kmsg.RequestForKey(key)
				req.SetVersion(near)
				frame := appendFrame(req, 0)
				binary.BigEndian.PutUint16(frame[6:], uint16(version))
				return frame, req.ResponseKind()
			})
		}
	}}
}

// unknownAPIs asks for keys that nobody serves, those that only controllers serve, and those that were served once.
func unknownAPIs(r *Run) {
	for _, key := range []int16{-1, -32768, 4, 5, 6, 7, 94, 95, 100, 1000, 32767, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82} {
		r.sendFrame(fmt.Sprintf("key %d", key), func() ([]byte, kmsg.Response) {
			req := kmsg.NewPtrMetadataRequest()
			frame := appendFrame(req, 0)
			binary.BigEndian.PutUint16(frame[4:], uint16(key))
			return frame, req.ResponseKind()
		})
	}
}

// wrongSizes sends sizes that no request has.
func wrongSizes(r *Run) {
	for _, size := range []int32{-1, -2147483648, 2147483647, 104857601, 0, 1, 7} {
		r.sendFrame(fmt.Sprintf("size %d", size), func() ([]byte, kmsg.Response) {
			frame := binary.BigEndian.AppendUint32(nil, uint32(size))
			if size >= 0 && size < 8 {
				frame = append(frame, make([]byte, size)...)
			}
			return frame, kmsg.NewPtrMetadataResponse()
		})
	}
}

// wrongHeaders sends headers that end early, or whose client id is none.
func wrongHeaders(r *Run) {
	body := func(client ...byte) func() ([]byte, kmsg.Response) {
		return func() ([]byte, kmsg.Response) {
			req := kmsg.NewPtrApiVersionsRequest()
			frame := append([]byte{0, 0, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0}, client...)
			return resized(frame), req.ResponseKind()
		}
	}
	r.sendFrame("a null client id", body(0xff, 0xff))
	r.sendFrame("an empty client id", body(0, 0))
	r.sendFrame("a client id of negative length", body(0xff, 0xfe))
	r.sendFrame("a client id longer than the frame", body(0, 9, 'x'))
	r.sendFrame("no client id", body())
	r.sendFrame("a client id that is no UTF-8", body(0, 2, 0xff, 0xfe))
}

// sendFrame sends bytes and compares what comes back. Afterwards both connections are new.
func (r *Run) sendFrame(step string, build func() (frame []byte, response kmsg.Response)) {
	r.both(func(_ int, s *side) {
		frame, response := build()
		s.conn(r.on).send(frame, response)
	})
	r.receive(step)
	r.both(func(_ int, s *side) { s.conn(r.on).close() })
}
