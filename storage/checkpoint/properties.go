package checkpoint

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Property is one key and its value.
type Property struct{ Key, Value string }

// AppendProperties appends a file in the text form of Java's Properties to dst, in UTF-8.
func AppendProperties(dst []byte, properties []Property) []byte {
	for _, p := range properties {
		dst = appendEscaped(dst, p.Key, true)
		dst = append(dst, '=')
		dst = appendEscaped(dst, p.Value, false)
		dst = append(dst, '\n')
	}
	return dst
}

func appendEscaped(dst []byte, s string, key bool) []byte {
	for i := range len(s) {
		switch c := s[i]; c {
		case ' ':
			if key || i == 0 {
				dst = append(dst, '\\')
			}
			dst = append(dst, ' ')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\\', '=', ':', '#', '!':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// ParseProperties reads the text form of Java's Properties: comments with # or !, keys up to =, : or white space, lines continued by a
// backslash at their end, \uXXXX. Of two values of a key the last one counts. name is for errors.
func ParseProperties(name string, content []byte) (map[string]string, error) {
	properties := map[string]string{}
	lines := lineReader{rest: string(content)}
	for {
		line, ok := lines.next()
		if !ok {
			return properties, nil
		}
		first := lines.number
		line = trimBlanks(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continues(line) {
			next, ok := lines.next()
			line = line[:len(line)-1] + trimBlanks(next)
			if !ok {
				break
			}
		}
		key, value := cutProperty(line)
		for _, s := range []*string{&key, &value} {
			unescaped, err := unescape(*s)
			if err != nil {
				return nil, &Corrupt{Path: name, Line: first, Reason: err.Error()}
			}
			*s = unescaped
		}
		properties[key] = value
	}
}

func trimBlanks(s string) string { return strings.TrimLeft(s, " \t\f") }

// continues tells whether a line ends with a backslash that is not itself escaped.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// cutProperty cuts a line at the first separator that is not escaped.
func cutProperty(line string) (key, value string) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			end = i
			break
		}
	}
	value = trimBlanks(line[end:])
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = trimBlanks(value[1:])
	}
	return line[:end], value
}

func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			break
		}
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			units, end, err := unicodeEscapes(s, i-1)
			if err != nil {
				return "", err
			}
			b.WriteString(string(utf16.Decode(units)))
			i = end - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// unicodeEscapes reads the \uXXXX that follow each other from start on: a pair of them may be one character.
func unicodeEscapes(s string, start int) (units []uint16, end int, err error) {
	for end = start; strings.HasPrefix(s[end:], `\u`); end += 6 {
		digits := s[end+2 : min(len(s), end+6)]
		unit, err := strconv.ParseUint(digits, 16, 16)
		if err != nil || len(digits) != 4 {
			return nil, 0, fmt.Errorf(`\u%s is not \u and four hexadecimal digits`, digits)
		}
		units = append(units, uint16(unit))
	}
	return units, end, nil
}
