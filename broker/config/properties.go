package config

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// PropertiesBytesMax is the largest properties file in bytes that is read.
const PropertiesBytesMax = 1 << 20

// ParseProperties reads a Java .properties file: # and ! comments, keys that end at the first = or : or white space, continued
// lines, \uXXXX and the other escapes. The last one of several equal keys holds. A file that is not UTF-8 is taken as Latin-1,
// which is what Java takes every file as.
func ParseProperties(r io.Reader) (map[string]string, error) {
	content, err := io.ReadAll(io.LimitReader(r, PropertiesBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(content) > PropertiesBytesMax {
		return nil, fmt.Errorf("more than %d bytes: that is no properties file", PropertiesBytesMax)
	}
	text := string(content)
	if !utf8.ValidString(text) {
		letters := make([]rune, len(content))
		for i, c := range content {
			letters[i] = rune(c)
		}
		text = string(letters)
	}
	properties := make(map[string]string)
	lines := lineReader{rest: text}
	for {
		line, number, ok := lines.next()
		if !ok {
			return properties, nil
		}
		rawKey, rawValue := splitProperty(line)
		key, err := unescape(rawKey)
		if err == nil {
			properties[key], err = unescape(rawValue)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
}

// lineReader joins the lines of a file that end in a backslash with the next ones, and leaves out comments and empty lines.
type lineReader struct {
	rest   string
	number int // of the line last read, from 1
}

const blanks = " \t\f"

// next returns a logical line without the white space in front, and the number of its first line.
func (l *lineReader) next() (line string, number int, ok bool) {
	for {
		first, more := l.natural()
		if !more {
			return "", 0, false
		}
		first = strings.TrimLeft(first, blanks)
		if first == "" || first[0] == '#' || first[0] == '!' {
			continue
		}
		number = l.number
		joined := strings.Builder{}
		for continued(first) {
			joined.WriteString(first[:len(first)-1])
			if first, more = l.natural(); !more {
				break
			}
			first = strings.TrimLeft(first, blanks)
		}
		joined.WriteString(first)
		if joined.Len() > 0 {
			return joined.String(), number, true
		}
	}
}

// natural returns the text up to the next line end, which is \n, \r or \r\n.
func (l *lineReader) natural() (string, bool) {
	if l.rest == "" {
		return "", false
	}
	l.number++
	end := strings.IndexAny(l.rest, "\r\n")
	if end < 0 {
		line := l.rest
		l.rest = ""
		return line, true
	}
	line := l.rest[:end]
	if strings.HasPrefix(l.rest[end:], "\r\n") {
		end++
	}
	l.rest = l.rest[end+1:]
	return line, true
}

// continued reports whether the line ends in a backslash that is not itself escaped.
func continued(line string) bool {
	backslashes := len(line) - len(strings.TrimRight(line, `\`))
	return backslashes%2 == 1
}

// splitProperty divides a line at the first = or : or white space that is not escaped.
func splitProperty(line string) (key, value string) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if strings.IndexByte("=:"+blanks, line[i]) >= 0 {
			end = i
			break
		}
	}
	value = strings.TrimLeft(line[end:], blanks)
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], blanks)
	}
	return line[:end], value
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var out strings.Builder
	var surrogate rune // a first half of a pair that waits for its second
	flush := func() {
		if surrogate != 0 {
			out.WriteRune(utf8.RuneError)
			surrogate = 0
		}
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			flush()
			out.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			break
		}
		if s[i] == 'u' {
			if i+5 > len(s) {
				return "", fmt.Errorf(`\u must be followed by four hexadecimal digits`)
			}
			code, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf(`\u must be followed by four hexadecimal digits`)
			}
			i += 4
			switch letter := rune(code); {
			case surrogate != 0 && utf16.DecodeRune(surrogate, letter) != utf8.RuneError:
				out.WriteRune(utf16.DecodeRune(surrogate, letter))
				surrogate = 0
			case utf16.IsSurrogate(letter):
				flush()
				surrogate = letter
			default:
				flush()
				out.WriteRune(letter)
			}
			continue
		}
		flush()
		switch s[i] {
		case 't':
			out.WriteByte('\t')
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 'f':
			out.WriteByte('\f')
		default:
			out.WriteByte(s[i])
		}
	}
	flush()
	return out.String(), nil
}
