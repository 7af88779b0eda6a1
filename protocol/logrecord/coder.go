package logrecord

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kbin"

	"sluice/internal/assert"
	"sluice/protocol/uuid"
)

// Tags are tagged fields that this version of the program does not know, kept so that a record is written again as it was
// read. Ordered by tag.
type Tags []Tag

// Tag is one tagged field.
type Tag struct {
	Tag   uint32
	Value []byte
}

// maxStringBytes is the largest string in any of these records: the flexible encoding could say more, Kafka refuses it.
const maxStringBytes = 1<<15 - 1

// coder walks the fields of a record in wire order, in one of two directions: it appends them to dst, or it takes them
// off r. One list of fields a record thus serves both, and they cannot drift apart. All records are flexible (KIP-482).
type coder struct {
	writing bool
	dst     []byte
	r       kbin.Reader
	err     error // first fault when reading
}

// fail notes the first fault and makes all further reads yield zeros.
func (c *coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.r.Src = nil
}

func (c *coder) bool(v *bool) {
	if c.writing {
		c.dst = kbin.AppendBool(c.dst, *v)
		return
	}
	*v = c.r.Bool()
}

func (c *coder) int8(v *int8) {
	if c.writing {
		c.dst = kbin.AppendInt8(c.dst, *v)
		return
	}
	*v = c.r.Int8()
}

func (c *coder) int16(v *int16) {
	if c.writing {
		c.dst = kbin.AppendInt16(c.dst, *v)
		return
	}
	*v = c.r.Int16()
}

func (c *coder) uint16(v *uint16) {
	if c.writing {
		c.dst = kbin.AppendUint16(c.dst, *v)
		return
	}
	*v = c.r.Uint16()
}

func (c *coder) int32(v *int32) {
	if c.writing {
		c.dst = kbin.AppendInt32(c.dst, *v)
		return
	}
	*v = c.r.Int32()
}

func (c *coder) int64(v *int64) {
	if c.writing {
		c.dst = kbin.AppendInt64(c.dst, *v)
		return
	}
	*v = c.r.Int64()
}

func (c *coder) float64(v *float64) {
	if c.writing {
		c.dst = kbin.AppendFloat64(c.dst, *v)
		return
	}
	*v = c.r.Float64()
}

func (c *coder) uuid(v *uuid.UUID) {
	if c.writing {
		c.dst = append(c.dst, v[:]...)
		return
	}
	*v = uuid.UUID(c.r.Uuid())
}

// length codes the length of a string, byte string or array, -1 meaning null. min is the least size of one element.
// What is read is at most what the rest of the input can hold, so that it may be allocated.
func (c *coder) length(n, min int) int {
	if c.writing {
		c.dst = kbin.AppendUvarint(c.dst, uint32(n+1))
		return n
	}
	n = int(c.r.Uvarint()) - 1
	if n > len(c.r.Src)/min {
		c.fail("length %d exceeds the %d bytes that are left", n, len(c.r.Src))
		return 0
	}
	return n
}

func (c *coder) required(n int, what string) int {
	if n < 0 {
		if c.r.Ok() {
			c.fail("null %s where none is allowed", what)
		}
		return 0
	}
	return n
}

func (c *coder) string(v *string) {
	if c.writing {
		assert.That(len(*v) <= maxStringBytes, "string of %d bytes in a log record", len(*v))
		c.dst = kbin.AppendCompactString(c.dst, *v)
		return
	}
	n := c.required(c.length(0, 1), "string")
	if n > maxStringBytes {
		c.fail("string of %d bytes", n)
		return
	}
	*v = string(c.r.Span(n))
}

func (c *coder) nullableString(v **string) {
	if c.writing {
		if *v == nil {
			c.length(-1, 1)
			return
		}
		c.string(*v)
		return
	}
	n := c.length(0, 1)
	if n > maxStringBytes {
		c.fail("string of %d bytes", n)
		return
	}
	*v = nil
	if n >= 0 && c.r.Ok() {
		s := string(c.r.Span(n))
		*v = &s
	}
}

// bytes reads a copy: a record outlives the buffer that it was parsed from.
func (c *coder) bytes(v *[]byte) {
	if c.writing {
		c.dst = kbin.AppendCompactBytes(c.dst, *v)
		return
	}
	n := c.required(c.length(0, 1), "byte string")
	*v = append(make([]byte, 0, n), c.r.Span(n)...)
}

func (c *coder) int32s(v *[]int32) { codeList(c, v, false, 4, c.int32) }

func (c *coder) nullableInt32s(v *[]int32) { codeList(c, v, true, 4, c.int32) }

func (c *coder) uuids(v *[]uuid.UUID) { codeList(c, v, false, 16, c.uuid) }

func (c *coder) nullableUUIDs(v *[]uuid.UUID) { codeList(c, v, true, 16, c.uuid) }

func (c *coder) strings(v *[]string) { codeList(c, v, false, 1, c.string) }

// codeList codes an array. Where it may be null nil stands for null; where it may not, nil is written as empty. min is
// the least number of bytes of an element.
func codeList[T any](c *coder, v *[]T, nullable bool, min int, each func(*T)) {
	n := len(*v)
	if nullable && *v == nil {
		n = -1
	}
	n = c.length(n, min)
	if !nullable {
		n = c.required(n, "array")
	}
	if !c.writing {
		*v = nil
		if n >= 0 && c.r.Ok() {
			*v = make([]T, n)
		}
	}
	for i := range *v {
		each(&(*v)[i])
	}
}

// tagged describes a tagged field of a record.
type tagged struct {
	tag   uint32
	since int16  // first version of the record that has it
	set   bool   // it differs from its default and is to be written
	name  string // for the assertion
	code  func(*coder)
}

// absent asserts that a field which the version being written does not have is at its default, for it would be lost.
func (c *coder) absent(set bool, name string) {
	assert.That(!c.writing || !set, "%s is set but the version to be written does not have it", name)
}

// tags codes the tagged fields that end a record or structure: the known ones, which must be in the order of their tags,
// merged with those that were not known when it was read.
func (c *coder) tags(version int16, unknown *Tags, known ...tagged) {
	if c.writing {
		c.writeTags(version, *unknown, known)
		return
	}
	*unknown = nil
	previous := int64(-1)
	for n := c.r.Uvarint(); n > 0 && c.r.Ok(); n-- {
		tag := c.r.Uvarint()
		size := c.r.Uvarint()
		if int64(tag) <= previous {
			c.fail("tag %d follows tag %d", tag, previous)
			return
		}
		previous = int64(tag)
		if uint64(size) > uint64(len(c.r.Src)) {
			c.fail("tagged field %d of %d bytes where %d are left", tag, size, len(c.r.Src))
			return
		}
		value := c.r.Span(int(size))
		i := slices.IndexFunc(known, func(t tagged) bool { return t.tag == tag && version >= t.since })
		if i < 0 {
			*unknown = append(*unknown, Tag{Tag: tag, Value: slices.Clone(value)})
			continue
		}
		c.readTag(known[i], value)
	}
}

func (c *coder) readTag(t tagged, value []byte) {
	rest := c.r
	c.r = kbin.Reader{Src: value}
	t.code(c)
	if c.err == nil && (!c.r.Ok() || len(c.r.Src) > 0) {
		c.fail("tagged field %d (%s) does not fill its %d bytes", t.tag, t.name, len(value))
	}
	c.r = rest
	if c.err != nil {
		c.r.Src = nil
	}
}

func (c *coder) writeTags(version int16, unknown Tags, known []tagged) {
	count := len(unknown)
	for _, t := range known {
		if version < t.since {
			c.absent(t.set, t.name)
			continue
		}
		if t.set {
			count++
		}
	}
	c.dst = kbin.AppendUvarint(c.dst, uint32(count))
	for _, t := range known {
		if version < t.since || !t.set {
			continue
		}
		for len(unknown) > 0 && unknown[0].Tag < t.tag {
			c.writeTag(unknown[0].Tag, unknown[0].Value)
			unknown = unknown[1:]
		}
		c.dst = kbin.AppendUvarint(c.dst, t.tag)
		start := len(c.dst)
		t.code(c)
		c.insertSize(start)
	}
	for _, t := range unknown {
		c.writeTag(t.Tag, t.Value)
	}
}

func (c *coder) writeTag(tag uint32, value []byte) {
	c.dst = kbin.AppendUvarint(c.dst, tag)
	c.dst = kbin.AppendUvarint(c.dst, uint32(len(value)))
	c.dst = append(c.dst, value...)
}

// insertSize puts the size of what was written since start in front of it.
func (c *coder) insertSize(start int) {
	size := len(c.dst) - start
	var room [5]byte
	prefix := kbin.AppendUvarint(room[:0], uint32(size))
	c.dst = append(c.dst, prefix...)
	copy(c.dst[start+len(prefix):], c.dst[start:start+size])
	copy(c.dst[start:], prefix)
}

// complete is the error of a finished reading: of a field, of input that ran out, or of bytes left over.
func (c *coder) complete() error {
	switch {
	case c.err != nil:
		return c.err
	case !c.r.Ok():
		return kbin.ErrNotEnoughData
	case len(c.r.Src) > 0:
		return fmt.Errorf("%d bytes left over", len(c.r.Src))
	}
	return nil
}
