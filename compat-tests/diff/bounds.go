package diff

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// subject is one API for the bounds scenarios: how a valid request is made, and what must not be sent.
type subject struct {
	key kmsg.Key
	// prepare makes what the valid request speaks of; once for each version.
	prepare func(r *Run)
	// each makes, before request n, what a request uses up.
	each func(r *Run, version int16, n int)
	// valid is a request that succeeds, with at least one element in every list. n differs for each request of the scenario, for names that must be fresh.
	valid func(r *Run, s *side, version int16, n int) kmsg.Request
	// after looks, with steps of its own, at what request n has left.
	after func(r *Run, step string, version int16, n int)
	// skip leaves changes out, "field = value" or "field", each with the reason.
	skip map[string]string
	// since are versions before which kmsg writes a tagged field that the schema brought later.
	since map[string]int16
	// alone: see Scenario.Alone.
	alone bool
}

// change is one way to spoil a request.
type change struct {
	field, value string
	frame        func(req kmsg.Request) []byte
}

func (c change) String() string { return c.field + " = " + c.value }

// scenario gives the bounds scenario of one version.
func (sub subject) scenario(version int16) Scenario {
	return Scenario{
		Name:  fmt.Sprintf("bounds/%s v%d", sub.key.Name(), version),
		Alone: sub.alone,
		Steps: func(r *Run) {
			if sub.prepare != nil {
				sub.prepare(r)
			}
			n := 0
			send := func(step string, frame func(req kmsg.Request) []byte) {
				n++
				if sub.each != nil {
					sub.each(r, version, n)
				}
				r.both(func(_ int, s *side) {
					req := sub.valid(r, s, version, n)
					req.SetVersion(version)
					response := req.ResponseKind()
					s.conn(r.on).send(frame(req), response)
				})
				r.receive(step)
				if sub.after != nil {
					sub.after(r, step, version, n)
				}
			}
			whole := func(req kmsg.Request) []byte { return appendFrame(req, 0) }
			send("valid", whole)
			sample := sub.valid(r, r.sides[0], version, 0)
			sample.SetVersion(version)
			for _, c := range changes(sample, r.prefix) {
				if _, skipped := sub.skip[c.field]; skipped || version < sub.since[c.field] {
					continue
				}
				if _, skipped := sub.skip[c.String()]; skipped {
					continue
				}
				send(c.String(), c.frame)
			}
			send("valid again", whole)
		},
	}
}

// changes are all that can be done to one field of a request at the version that it has. A change that alters no byte is none.
func changes(sample kmsg.Request, prefix string) []change {
	var all []change
	original := appendFrame(sample, 0)
	walkFields(reflect.ValueOf(sample).Elem(), nil, "", func(path []int, field string, v reflect.Value) {
		set := func(value string, alter func(v reflect.Value)) {
			frame := func(req kmsg.Request) []byte {
				copied := deepCopy(req)
				target := locate(reflect.ValueOf(copied).Elem(), path)
				if !target.IsValid() {
					return appendFrame(copied, 0)
				}
				alter(target)
				return appendFrame(copied, 0)
			}
			if !bytes.Equal(frame(sample), original) {
				all = append(all, change{field, value, frame})
			}
		}
		for _, b := range bounds(v, field, prefix) {
			set(b.name, b.alter)
		}
		if frame := nullFrame(sample, path, v); frame != nil {
			all = append(all, change{field, "null where none may be", func(req kmsg.Request) []byte {
				if f := nullFrame(req, path, v); f != nil {
					return f
				}
				return appendFrame(req, 0)
			}})
		}
	})
	all = append(all, bodyChanges(sample)...)
	// Two names for the same bytes are one change.
	var unique []change
	for _, c := range all {
		frame := c.frame(sample)
		if !slices.ContainsFunc(unique, func(u change) bool { return u.field == c.field && bytes.Equal(u.frame(sample), frame) }) {
			unique = append(unique, c)
		}
	}
	return unique
}

// walkFields visits every field that can be reached through first elements.
func walkFields(v reflect.Value, path []int, name string, visit func(path []int, field string, v reflect.Value)) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || f.Name == "Version" || f.Name == "UnknownTags" {
			continue
		}
		at, field := append(slices.Clone(path), i), strings.TrimPrefix(name+"."+f.Name, ".")
		visit(at, field, v.Field(i))
		walkInto(v.Field(i), at, field, visit)
	}
}

func walkInto(v reflect.Value, path []int, field string, visit func([]int, string, reflect.Value)) {
	switch {
	case v.Kind() == reflect.Struct:
		walkFields(v, path, field, visit)
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct && !v.IsNil():
		walkFields(v.Elem(), path, field, visit)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8 && v.Len() > 0:
		element, at := v.Index(0), append(slices.Clone(path), -1)
		if element.Kind() == reflect.Struct {
			walkFields(element, at, field+"[]", visit)
		} else {
			visit(at, field+"[]", element)
		}
	}
}

// locate follows a path of walkFields: indices of fields, and -1 for the first element. It gives the zero Value where the list is empty.
func locate(v reflect.Value, path []int) reflect.Value {
	for _, i := range path {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if i >= 0 {
			v = v.Field(i)
		} else if v.Len() > 0 {
			v = v.Index(0)
		} else {
			return reflect.Value{}
		}
	}
	return v
}

type bound struct {
	name  string
	alter func(v reflect.Value)
}

// bounds are the values at which fields of a type are tried.
func bounds(v reflect.Value, field, prefix string) []bound {
	var list []bound
	add := func(name string, value any) {
		list = append(list, bound{name, func(v reflect.Value) { v.Set(reflect.ValueOf(value).Convert(v.Type())) }})
	}
	switch v.Kind() {
	case reflect.Bool:
		list = append(list, bound{"the opposite", func(v reflect.Value) { v.SetBool(!v.Bool()) }})
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := v.Type().Bits()
		for _, n := range []int64{-1, 0, 1, -2, 5, math.MinInt64 >> (64 - bits), math.MaxInt64 >> (64 - bits)} {
			add(intName(n, bits), n)
		}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		add("0", uint8(0))
		list = append(list, bound{"max", func(v reflect.Value) { v.SetUint(1<<v.Type().Bits() - 1) }})
	case reflect.Float64:
		add("-1", -1.0)
		add("0", 0.0)
		add("max", math.MaxFloat64)
		list = append(list, bound{"not a number", func(v reflect.Value) { v.SetFloat(math.NaN()) }})
	case reflect.String:
		for _, text := range texts(field, prefix) {
			add(text.name, text.value)
		}
	case reflect.Pointer:
		list = append(list, bound{"null", func(v reflect.Value) { v.SetZero() }})
		if v.Type().Elem().Kind() == reflect.String {
			for _, text := range texts(field, prefix) {
				list = append(list, bound{text.name, func(v reflect.Value) {
					value := reflect.New(v.Type().Elem())
					value.Elem().SetString(text.value)
					v.Set(value)
				}})
			}
		}
	case reflect.Array:
		if v.Type() == reflect.TypeFor[[16]byte]() {
			add("no id", [16]byte{})
			add("the first reserved id", [16]byte{15: 1})
			add("an unknown id", [16]byte{0: 1, 1: 2, 15: 99})
		}
	case reflect.Slice:
		list = append(list,
			bound{"null", func(v reflect.Value) { v.SetZero() }},
			bound{"empty", func(v reflect.Value) { v.Set(reflect.MakeSlice(v.Type(), 0, 0)) }})
		if v.Type().Elem().Kind() == reflect.Uint8 {
			list = append(list,
				bound{"one zero byte", func(v reflect.Value) { v.SetBytes([]byte{0}) }},
				bound{"cut in half", func(v reflect.Value) { v.SetBytes(v.Bytes()[:v.Len()/2]) }},
				bound{"a flipped bit", func(v reflect.Value) {
					if b := bytes.Clone(v.Bytes()); len(b) > 0 {
						b[len(b)-1] ^= 1
						v.SetBytes(b)
					}
				}})
		} else {
			list = append(list,
				bound{"the first twice", func(v reflect.Value) {
					if v.Len() > 0 {
						v.Set(reflect.Append(v, v.Index(0)))
					}
				}})
		}
	}
	return list
}

type namedText struct{ name, value string }

// texts are tried for texts. What could become the name of something is the scenario's own: others must not meet it.
func texts(field, prefix string) []namedText {
	list := []namedText{
		{"empty text", ""},
		{"249 letters", prefix + strings.Repeat("a", 249-len(prefix))},
		{"250 letters", prefix + strings.Repeat("a", 250-len(prefix))},
		{"illegal letters", prefix + "no such/name: ü"},
		{"an unknown name", prefix + "unknown"},
	}
	if strings.Contains(field, "Topic") {
		list = append(list, namedText{"a dot", "."}, namedText{"two dots", ".."})
	}
	return list
}

func intName(n int64, bits int) string {
	switch n {
	case math.MinInt64 >> (64 - bits):
		return "min"
	case math.MaxInt64 >> (64 - bits):
		return "max"
	}
	return fmt.Sprint(n)
}

// nullFrame is a request in which a text or list has the length of null although its schema has no null, or nil where the schema has one.
// kmsg cannot encode that, so the bytes are changed: encoded with no element and with one, a request first differs in the last byte of the length.
func nullFrame(req kmsg.Request, path []int, v reflect.Value) []byte {
	wide := 0 // bytes of the length before version of compact encodings
	switch {
	case v.Kind() == reflect.String:
		wide = 2
	case v.Kind() == reflect.Slice:
		wide = 4
	default:
		return nil
	}
	with := func(alter func(v reflect.Value)) []byte {
		copied := deepCopy(req)
		target := locate(reflect.ValueOf(copied).Elem(), path)
		if !target.IsValid() {
			return nil
		}
		alter(target)
		return appendFrame(copied, 0)
	}
	empty := with(func(v reflect.Value) {
		if v.Kind() == reflect.String {
			v.SetString("")
		} else {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
	})
	one := with(func(v reflect.Value) {
		if v.Kind() == reflect.String {
			v.SetString("x")
		} else {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
	})
	if empty == nil || one == nil {
		return nil
	}
	if v.Kind() == reflect.Slice {
		if null := with(func(v reflect.Value) { v.SetZero() }); !bytes.Equal(null, empty) {
			return nil // the schema has a null, and it is tried by bounds
		}
	}
	const header = 14 + len(clientID) // size, key, version, correlation id, client id
	at := header
	for at < len(empty) && at < len(one) && empty[at] == one[at] {
		at++
	}
	if at == len(empty) {
		return nil // not a field of this version
	}
	frame := bytes.Clone(empty)
	if req.IsFlexible() {
		if frame[at] != 1 {
			return nil // a tagged field: left out when empty
		}
		frame[at] = 0
		return frame
	}
	if at < wide-1+header {
		return nil
	}
	for i := at - wide + 1; i <= at; i++ {
		frame[i] = 0xff
	}
	return frame
}

// bodyChanges are done to the bytes of the request as a whole.
func bodyChanges(sample kmsg.Request) []change {
	list := []change{
		{"the body", "cut by a byte", func(req kmsg.Request) []byte {
			frame := appendFrame(req, 0)
			return resized(frame[:len(frame)-1])
		}},
		{"the body", "with a byte more", func(req kmsg.Request) []byte { return resized(append(appendFrame(req, 0), 0)) }},
	}
	if sample.IsFlexible() {
		list = append(list, change{"the tags", "one that nobody knows", func(req kmsg.Request) []byte {
			copied := deepCopy(req)
			tags := reflect.ValueOf(copied).Elem().FieldByName("UnknownTags")
			if tags.IsValid() {
				tags.Addr().Interface().(*kmsg.Tags).Set(9999, []byte{1, 2, 3})
			}
			return appendFrame(copied, 0)
		}})
	}
	return list
}

// resized puts the right size before a frame.
func resized(frame []byte) []byte {
	size := len(frame) - 4
	frame[0], frame[1], frame[2], frame[3] = byte(size>>24), byte(size>>16), byte(size>>8), byte(size)
	return frame
}

// deepCopy copies a request, lists and pointers included.
func deepCopy(req kmsg.Request) kmsg.Request {
	v := reflect.New(reflect.TypeOf(req).Elem())
	copyInto(v.Elem(), reflect.ValueOf(req).Elem())
	return v.Interface().(kmsg.Request)
}

func copyInto(dst, src reflect.Value) {
	switch src.Kind() {
	case reflect.Struct:
		dst.Set(src) // unexported parts too
		for i := range src.NumField() {
			if src.Type().Field(i).IsExported() {
				copyInto(dst.Field(i), src.Field(i))
			}
		}
	case reflect.Pointer:
		if !src.IsNil() {
			dst.Set(reflect.New(src.Type().Elem()))
			copyInto(dst.Elem(), src.Elem())
		}
	case reflect.Slice:
		if !src.IsNil() {
			dst.Set(reflect.MakeSlice(src.Type(), src.Len(), src.Len()))
			for i := range src.Len() {
				copyInto(dst.Index(i), src.Index(i))
			}
		}
	default:
		dst.Set(src)
	}
}
