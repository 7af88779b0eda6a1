package diff

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
)

// showLimit cuts what is printed of one value, in bytes.
const showLimit = 160

// show prints a value of a message for a reader: nil is not empty, ids as Kafka writes them, long texts cut.
func show(v reflect.Value) string {
	var b strings.Builder
	printInto(&b, v)
	if s := b.String(); len(s) > showLimit {
		return s[:showLimit] + fmt.Sprintf("… (%d bytes)", len(s))
	}
	return b.String()
}

func showAll(values []reflect.Value) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(show(v))
	}
	if s := b.String(); len(s) > 3*showLimit {
		return s[:3*showLimit] + "…"
	}
	return b.String()
}

func printInto(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			b.WriteString("null")
			return
		}
		printInto(b, v.Elem())
	case reflect.String:
		fmt.Fprintf(b, "%q", v.String())
	case reflect.Array:
		if id, ok := v.Interface().([16]byte); ok {
			b.WriteString(uuidText(id))
			return
		}
		fmt.Fprint(b, v.Interface())
	case reflect.Slice:
		switch {
		case v.IsNil():
			b.WriteString("null")
		case v.Type().Elem().Kind() == reflect.Uint8:
			fmt.Fprintf(b, "%x", v.Bytes())
		default:
			b.WriteByte('[')
			for i := range v.Len() {
				if i > 0 {
					b.WriteByte(' ')
				}
				printInto(b, v.Index(i))
			}
			b.WriteByte(']')
		}
	case reflect.Struct:
		b.WriteByte('{')
		first := true
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Name == "UnknownTags" || f.Name == "Version" || v.Field(i).IsZero() {
				continue
			}
			if !first {
				b.WriteByte(' ')
			}
			first = false
			b.WriteString(f.Name + ":")
			printInto(b, v.Field(i))
		}
		b.WriteByte('}')
	default:
		fmt.Fprint(b, v.Interface())
	}
}

// uuidText is an id in Kafka's notation: base64 for URLs, without padding.
func uuidText(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }
