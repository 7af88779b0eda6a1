package dump

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sluice/protocol/uuid"
)

// timestamp prints milliseconds since 1970 in UTC, or as a number where that is no sensible time.
func timestamp(ms int64) string {
	const yearTenThousand = 253402300800000
	if ms < 0 || ms >= yearTenThousand {
		return strconv.FormatInt(ms, 10)
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// shown prints bytes as text if they are one, otherwise in hexadecimal, and says how much is left out.
func (p *printer) shown(b []byte) string {
	part := b
	if p.o.ShownBytes > 0 && len(b) > p.o.ShownBytes {
		part = b[:p.o.ShownBytes]
		for cut := 0; cut < utf8.UTFMax && !utf8.Valid(part) && utf8.Valid(b); cut++ {
			part = part[:len(part)-1]
		}
	}
	text := raw(part)
	if len(part) < len(b) {
		text += fmt.Sprintf("…(%d bytes)", len(b))
	}
	return text
}

func raw(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case utf8.Valid(b) && strings.IndexFunc(string(b), func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) < 0:
		return strconv.Quote(string(b))
	}
	return "0x" + hex.EncodeToString(b)
}

// hidden are fields that a dump, which people send to each other, must not show.
var hidden = map[string]bool{"Salt": true, "StoredKey": true, "ServerKey": true, "HMAC": true, "Hmac": true}

// structure prints a structure of an internal record: its type and its fields in the order of declaration.
func structure(v any) string {
	t := reflect.Indirect(reflect.ValueOf(v))
	return strings.TrimSuffix(t.Type().Name(), "Record") + fields(t)
}

func value(v reflect.Value) string {
	if s, ok := v.Interface().(fmt.Stringer); ok && v.Kind() != reflect.Pointer {
		return s.String()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "null"
		}
		return value(v.Elem())
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return raw(v.Bytes())
		}
		if v.IsNil() {
			return "null"
		}
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = value(v.Index(i))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case reflect.Array:
		if b, ok := v.Interface().([16]byte); ok {
			return uuid.UUID(b).String()
		}
	case reflect.Struct:
		return fields(v)
	default:
	}
	return fmt.Sprint(v.Interface())
}

// fields prints the exported fields of a structure; unknown tags only where there are any.
func fields(v reflect.Value) string {
	var parts []string
	for i := range v.NumField() {
		f, field := v.Type().Field(i), v.Field(i)
		if !f.IsExported() {
			continue
		}
		var text string
		switch {
		case f.Name == "UnknownTags":
			if field.IsZero() {
				continue
			}
			text = fmt.Sprint(field.Interface())
		case hidden[f.Name]:
			text = "(hidden)"
		case strings.HasSuffix(strings.TrimSuffix(f.Name, "Ms"), "Timestamp") && field.Kind() == reflect.Int64:
			text = timestamp(field.Int())
		default:
			text = value(field)
		}
		parts = append(parts, f.Name+"="+text)
	}
	return "{" + strings.Join(parts, " ") + "}"
}
