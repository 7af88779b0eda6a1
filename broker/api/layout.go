package api

import (
	"encoding/binary"
	"reflect"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A layout is the wire form of one struct of a request in one version. kmsg has this knowledge only as code, so it is learned from its
// encoder: a field is there when setting it changes the encoding, and it is a tagged one when setting it adds more than its own bytes.
// What was learned is checked by walking encodings of filled-in requests (layout_test.go).
type layout struct {
	fields   []wireField
	flexible bool // compact lengths, and tagged fields at the end
}

type wireField struct {
	kind     wireKind
	nullable bool    // of text, blob and the arrays: null is a value, and not malformed
	width    int     // bytes of a fixed field, or of each element of a fixedArray
	memory   int     // bytes of memory for each element of an array
	element  *layout // of structArray, inlineStruct and nullableStruct
}

type wireKind uint8

const (
	fixed wireKind = iota
	text           // string, nullable or not
	blob           // []byte: aliases the frame, costs nothing
	fixedArray
	textArray
	structArray
	inlineStruct
	nullableStruct
)

type layoutID struct{ key, version int16 }

var layouts sync.Map // layoutID to *layout

// layoutOf returns the layout of the body of request, whose version is set.
func layoutOf(request kmsg.Request) *layout {
	id := layoutID{request.Key(), request.GetVersion()}
	if l, ok := layouts.Load(id); ok {
		return l.(*layout)
	}
	sample := kmsg.RequestForKey(id.key)
	sample.SetVersion(id.version)
	p := prober{flexible: sample.IsFlexible(), encode: func() []byte { return sample.AppendTo(nil) }}
	l, _ := layouts.LoadOrStore(id, p.layout(reflect.ValueOf(sample).Elem()))
	return l.(*layout)
}

// prober learns layouts by changing a sample request and encoding it.
type prober struct {
	flexible bool
	encode   func() []byte
}

// layout learns the struct v, which is part of the sample.
func (p prober) layout(v reflect.Value) *layout {
	l := &layout{flexible: p.flexible}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name == "Version" || name == "UnknownTags" {
			continue
		}
		field := v.Field(i)
		original := reflect.ValueOf(field.Interface())
		if f, ok := p.field(field); ok {
			l.fields = append(l.fields, f)
		}
		if original.IsValid() {
			field.Set(original)
		}
	}
	return l
}

// field learns one field; it is not ok when the version does not have it, or has it as a tagged field.
func (p prober) field(v reflect.Value) (f wireField, ok bool) {
	switch v.Kind() {
	case reflect.Slice:
		return p.slice(v)
	case reflect.Struct:
		element := p.layout(v)
		return wireField{kind: inlineStruct, element: element}, len(element.fields) > 0
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Struct {
			before := p.encode()
			v.Set(newDefault(v.Type().Elem()))
			if string(p.encode()) == string(before) {
				return f, false
			}
			return wireField{kind: nullableStruct, element: p.layout(v.Elem())}, true
		}
		f = wireField{kind: text, nullable: p.nullable(v, reflect.New(v.Type().Elem()))}
		one := "x"
		_, ok = p.change(v, reflect.ValueOf(&one), 1)
		return f, ok
	case reflect.String:
		_, ok = p.change(v, reflect.ValueOf("x").Convert(v.Type()), 1)
		return wireField{kind: text}, ok
	}
	_, ok = p.change(v, different(v), 0)
	return wireField{kind: fixed, width: widthOf(v.Type())}, ok
}

func (p prober) slice(v reflect.Value) (f wireField, ok bool) {
	element := v.Type().Elem()
	nullable := p.nullable(v, elements(v.Type(), 0))
	if element.Kind() == reflect.Uint8 {
		_, ok = p.change(v, reflect.ValueOf([]byte{1}), 1)
		return wireField{kind: blob, nullable: nullable}, ok
	}
	none := len(p.encode())
	one, changed := p.change(v, elements(v.Type(), 1), 1<<20)
	two, _ := p.change(v, elements(v.Type(), 2), 1<<20)
	if !changed || one-none != two-one { // a tagged array adds its tag, size and count with the first element
		return f, false
	}
	f = wireField{memory: int(element.Size()), nullable: nullable}
	switch element.Kind() {
	case reflect.Struct:
		v.Set(elements(v.Type(), 1))
		f.kind, f.element = structArray, p.layout(v.Index(0))
	case reflect.String:
		f.kind = textArray
	default:
		f.kind, f.width = fixedArray, widthOf(element)
	}
	return f, true
}

// nullable says whether the encoding tells null from empty.
func (p prober) nullable(v, empty reflect.Value) bool {
	original := reflect.New(v.Type()).Elem()
	original.Set(v)
	defer v.Set(original)
	v.SetZero()
	null := string(p.encode())
	v.Set(empty)
	return string(p.encode()) != null
}

// change sets v and encodes. It is not ok when nothing changed, or more than most bytes were added.
func (p prober) change(v, to reflect.Value, most int) (size int, ok bool) {
	before := p.encode()
	v.Set(to)
	after := p.encode()
	return len(after), string(after) != string(before) && len(after)-len(before) <= most
}

func newDefault(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if d, ok := v.Interface().(interface{ Default() }); ok {
		d.Default()
	}
	return v
}

// elements makes a slice of n default elements.
func elements(slice reflect.Type, n int) reflect.Value {
	v := reflect.MakeSlice(slice, n, n)
	if slice.Elem().Kind() == reflect.Struct {
		for i := range n {
			v.Index(i).Set(newDefault(slice.Elem()).Elem())
		}
	}
	return v
}

// different is a value of v's fixed-width type other than v's.
func different(v reflect.Value) reflect.Value {
	other := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Bool:
		other.SetBool(!v.Bool())
	case reflect.Float64:
		other.SetFloat(v.Float() + 1)
	case reflect.Array: // a UUID
		other.Set(v)
		other.Index(0).SetUint(v.Index(0).Uint() ^ 1)
	case reflect.Uint16:
		other.SetUint(v.Uint() ^ 1)
	default:
		other.SetInt(v.Int() ^ 1)
	}
	return other
}

// widthOf is the size of a fixed-width type on the wire, which is that in memory.
func widthOf(t reflect.Type) int { return int(t.Size()) }

// walker follows a layout through the bytes of a body and adds up what decoding it would allocate.
type walker struct {
	b      []byte
	memory int
	limit  int
	bad    bool // ends early, or holds a length that cannot be
}

// tagMemory is about what kmsg keeps for an unknown tagged field: an entry of a map.
const tagMemory = 64

// taggedFactor bounds what a known tagged field allocates for each of its bytes; none of them is an array of structs.
const taggedFactor = 16

func (w *walker) walk(l *layout) {
	for i := range l.fields {
		f := &l.fields[i]
		switch f.kind {
		case fixed:
			w.skip(f.width)
		case text:
			w.text(f, l.flexible)
		case blob:
			w.skip(w.length(f, l.flexible, 4))
		case fixedArray:
			n := w.array(f, l.flexible)
			w.skip(n * f.width)
		case textArray:
			for n := w.array(f, l.flexible); n > 0 && w.going(); n-- {
				w.text(&wireField{}, l.flexible)
			}
		case structArray:
			for n := w.array(f, l.flexible); n > 0 && w.going(); n-- {
				w.walk(f.element)
			}
		case inlineStruct:
			w.walk(f.element)
		case nullableStruct:
			if len(w.b) == 0 {
				w.bad = true
				return
			}
			present := int8(w.b[0]) >= 0
			w.skip(1)
			if present {
				w.walk(f.element)
			}
		}
		if !w.going() {
			return
		}
	}
	if l.flexible {
		for n := w.uvarint(); n > 0 && w.going(); n-- {
			w.uvarint()
			size := w.uvarint()
			w.skip(size)
			w.memory += tagMemory + taggedFactor*size
		}
	}
}

func (w *walker) going() bool { return !w.bad && w.memory <= w.limit }

func (w *walker) skip(n int) {
	if n > len(w.b) {
		w.bad, w.b = true, nil
		return
	}
	w.b = w.b[n:]
}

// text steps over a string, which is copied when decoded.
func (w *walker) text(f *wireField, flexible bool) {
	n := w.length(f, flexible, 2)
	w.skip(n)
	w.memory += n + 16
}

// array reads the count of an array and adds its elements.
func (w *walker) array(f *wireField, flexible bool) int {
	n := w.length(f, flexible, 4)
	if n > len(w.b) {
		w.bad = true
		return 0
	}
	w.memory += n * f.memory
	return n
}

// length reads a length or count. Null, of a field that may be null, counts as 0.
func (w *walker) length(f *wireField, flexible bool, width int) int {
	n := w.rawLength(flexible, width)
	if n < 0 {
		w.bad = w.bad || !f.nullable
		return 0
	}
	return n
}

// rawLength reads a length or count as it is; below 0 stands for null.
func (w *walker) rawLength(flexible bool, width int) int {
	if flexible {
		return w.uvarint() - 1
	}
	if len(w.b) < width {
		w.bad = true
		return 0
	}
	var n int
	if width == 2 {
		n = int(int16(binary.BigEndian.Uint16(w.b)))
	} else {
		n = int(int32(binary.BigEndian.Uint32(w.b)))
	}
	w.b = w.b[width:]
	return n
}

func (w *walker) uvarint() int {
	value, n := binary.Uvarint(w.b[:min(len(w.b), binary.MaxVarintLen32)])
	if n <= 0 || value > 1<<32-1 {
		w.bad = true
		return 0
	}
	w.b = w.b[n:]
	return int(value)
}
