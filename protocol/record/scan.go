package record

// scanned is what one record's bytes say, without its contents being looked at.
type scanned struct {
	next           int // position behind the record
	length         int // that the record declares, of what follows its length field
	timestampDelta int64
	offsetDelta    int32
	hasKey         bool
	key, value     int // positions of the first byte
	keyLen         int // -1 = null
	valueLen       int // -1 = null
	headers        int // position of the first header
	headerCount    int
}

// A record, all numbers zigzag varints:
//
//	length of all that follows | attributes, 1 byte | timestamp delta | offset delta |
//	key length, negative = null | key | value length, negative = null | value |
//	count of headers | { key length | key | value length, negative = null | value }…

// What can be wrong with a record. They are constants so that scanning never allocates.
const (
	faultLength      = "record length is not a number"
	faultNegative    = "record length is negative"
	faultBeyondBatch = "record is longer than what is left of its batch"
	faultFields      = "record fields do not fit into the record's length"
	faultHeaders     = "record has an impossible count of headers"
	faultHeaderKey   = "record header has a negative key length"
	faultLeftOver    = "record is longer than its fields"
)

// varint decodes a zigzag varint of at most 5 bytes at b[at:]. next is -1 if there is none.
func varint(b []byte, at int) (v int32, next int) {
	if at < len(b) && b[at] < 0x80 {
		u := b[at]
		return int32(u>>1) ^ -int32(u&1), at + 1
	}
	var u uint32
	for shift := 0; shift < 35; shift += 7 {
		if at >= len(b) {
			return 0, -1
		}
		c := b[at]
		at++
		u |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1), at
		}
	}
	return 0, -1
}

// varlong decodes a zigzag varint of at most 10 bytes at b[at:]. next is -1 if there is none.
func varlong(b []byte, at int) (v int64, next int) {
	var u uint64
	for shift := 0; shift < 70; shift += 7 {
		if at >= len(b) {
			return 0, -1
		}
		c := b[at]
		at++
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), at
		}
	}
	return 0, -1
}

// What glance knows: numbers below 1<<glanceBits before the zigzag is undone, which are one or two bytes.
const (
	glanceBits  = 14
	glanceBytes = 2 + 1 + 2 + 2 + 2 // the most that it reads of a record without looking: all up to the key
	zigzagNull  = 1                 // -1
)

// glance is scan for the records that nearly all are: without headers, shorter than 8 KiB. ok is false for any other record, be it good or
// not; scan tells. It is several times faster: nothing but registers, and branches that go the same way for each record of a batch.
func glance(b []byte, at int) (next int, timestampDelta int64, offsetDelta int32, hasKey, ok bool) {
	if len(b)-at < glanceBytes {
		return 0, 0, 0, false, false
	}
	length, at := glanceNumber(b, at)
	next = at + int(length>>1)
	timestamp, at := glanceNumber(b, at+1) // behind the attributes
	offset, at := glanceNumber(b, at)
	key, at := glanceNumber(b, at)
	at += int(key >> 1) // by nothing if it is null
	if next > len(b) || at+2 > next {
		return 0, 0, 0, false, false
	}
	value, at := glanceNumber(b, at)
	at += int(value >> 1)
	switch {
	case (length|timestamp|offset|key|value)>>glanceBits != 0,
		length&1 != 0, key&1 != 0 && key != zigzagNull, value&1 != 0 && value != zigzagNull, // negative
		at != next-1, b[at] != 0: // one byte is left, for the count of headers
		return 0, 0, 0, false, false
	}
	return next, int64(timestamp>>1) ^ -int64(timestamp&1), int32(offset>>1) ^ -int32(offset&1), key != zigzagNull, true
}

// glanceNumber decodes a number of one or two bytes at b[at:], where there are two, and leaves the zigzag in. A longer one shows as a number
// of more than glanceBits.
func glanceNumber(b []byte, at int) (u uint, next int) {
	u = uint(b[at])
	if u < 0x80 {
		return u, at + 1
	}
	return u&0x7f | uint(b[at+1])<<7, at + 2
}

// scan takes the record at b[at:] apart. fault is empty, or what is wrong with it.
func scan(b []byte, at int) (s scanned, fault string) {
	length, at := varint(b, at)
	switch {
	case at < 0:
		return s, faultLength
	case length < 0:
		return s, faultNegative
	case int(length) > len(b)-at:
		return s, faultBeyondBatch
	}
	end := at + int(length)
	b = b[:end]
	at++ // attributes: none are defined
	if at > end {
		return s, faultFields
	}
	if s.timestampDelta, at = varlong(b, at); at < 0 {
		return s, faultFields
	}
	if s.offsetDelta, at = varint(b, at); at < 0 {
		return s, faultFields
	}
	if s.keyLen, s.key, at = span(b, at); at < 0 {
		return s, faultFields
	}
	s.hasKey = s.keyLen >= 0
	if s.valueLen, s.value, at = span(b, at); at < 0 {
		return s, faultFields
	}
	count, at := varint(b, at)
	if at < 0 {
		return s, faultFields
	}
	if count < 0 || int(count) > end-at {
		return s, faultHeaders
	}
	s.headers, s.headerCount = at, int(count)
	for range count {
		var keyLen int
		if keyLen, _, at = span(b, at); at < 0 {
			return s, faultFields
		}
		if keyLen < 0 {
			return s, faultHeaderKey
		}
		if _, _, at = span(b, at); at < 0 {
			return s, faultFields
		}
	}
	if at != end {
		return s, faultLeftOver
	}
	s.next, s.length = end, int(length)
	return s, ""
}

// span decodes a length at b[at:] and steps over as many bytes. A negative length, null, becomes -1. next is -1 if b
// ends before.
func span(b []byte, at int) (length, start, next int) {
	n, at := varint(b, at)
	if at < 0 || int(n) > len(b)-at {
		return 0, 0, -1
	}
	if n < 0 {
		return -1, at, at
	}
	return int(n), at, at + int(n)
}

// decode gives the record that was scanned in b.
func (s *scanned) decode(b []byte) Record {
	r := Record{}
	if s.keyLen >= 0 {
		r.Key = b[s.key : s.key+s.keyLen : s.key+s.keyLen]
	}
	if s.valueLen >= 0 {
		r.Value = b[s.value : s.value+s.valueLen : s.value+s.valueLen]
	}
	if s.headerCount == 0 {
		return r
	}
	r.Headers = make([]Header, s.headerCount)
	at := s.headers
	for i := range r.Headers {
		var n, start int
		n, start, at = span(b, at)
		r.Headers[i].Key = string(b[start : start+n])
		if n, start, at = span(b, at); n >= 0 {
			r.Headers[i].Value = b[start : start+n : start+n]
		}
	}
	return r
}
