package group

import "encoding/binary"

// subscribedTopics reads the topics out of a consumer's metadata (ConsumerProtocolSubscription: a version, then topics and user data;
// what later versions added behind is of no interest here). The bytes are a client's: false when they are not that.
func subscribedTopics(metadata []byte) (topics []string, ok bool) {
	r := reader{b: metadata}
	r.int16() // the version
	n := r.int32()
	if n < 0 || int64(n)*2 > int64(len(r.b)) { // a topic takes two bytes at least
		return nil, false
	}
	topics = make([]string, 0, n)
	for range n {
		topics = append(topics, string(r.take(int(r.int16()))))
	}
	if userData := r.int32(); userData >= 0 {
		r.take(int(userData))
	}
	if r.short {
		return nil, false
	}
	return topics, true
}

// A reader takes values off the front of b. Once there is too little left, short is set and all further values are zero.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if r.short || n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return nil
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) int16() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}
