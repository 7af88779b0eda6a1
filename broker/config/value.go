package config

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/assert"
)

// value is a config's text, read.
type value struct {
	null   bool
	number int64    // Int, Short, Long; 1 for a true Boolean
	double float64  // Double
	text   string   // String, Class, Password
	list   []string // List
}

func invalid(key, text, why string) *Invalid {
	message := "Invalid value " + text + " for configuration " + key
	if why != "" {
		message += ": " + why
	}
	return &Invalid{Key: key, Message: message}
}

var commaBetween = regexp.MustCompile(`\s*,\s*`)

// parse reads text as the row's type and checks it against the row's range. What a list names twice counts once.
func (r *Row) parse(text string) (value, *Invalid) {
	v, why := r.read(text)
	if why != nil {
		return v, why
	}
	if _, ok := r.Valid.(list); ok {
		v.list = distinct(v.list)
	}
	return v, r.check(v)
}

// parseDynamic is parse for a broker's dynamic config, where a list must not name anything twice.
func (r *Row) parseDynamic(text string) (value, *Invalid) {
	v, why := r.read(text)
	if why != nil {
		return v, why
	}
	return v, r.check(v)
}

func (r *Row) check(v value) *Invalid {
	if r.Valid == nil {
		return nil
	}
	return r.Valid.check(r, v)
}

func distinct(members []string) []string {
	kept := members[:0:0]
	for _, m := range members {
		if !slices.Contains(kept, m) {
			kept = append(kept, m)
		}
	}
	return kept
}

// read reads text as the row's type.
func (r *Row) read(text string) (value, *Invalid) {
	trimmed := strings.TrimFunc(text, func(c rune) bool { return c <= ' ' })
	var v value
	notANumber := func() *Invalid { return invalid(r.Name, text, "Not a number of type "+r.Type.String()) }
	switch r.Type {
	case Boolean:
		switch strings.ToLower(trimmed) {
		case "true":
			v.number = 1
		case "false":
		default:
			return v, invalid(r.Name, text, "Expected value to be either true or false")
		}
	case Int, Short, Long:
		n, err := strconv.ParseInt(trimmed, 10, r.Type.bits())
		if err != nil {
			return v, notANumber()
		}
		v.number = n
	case Double:
		d, err := strconv.ParseFloat(trimmed, 64)
		if err != nil && !math.IsInf(d, 0) || strings.Contains(trimmed, "_") { // Go takes underscores between digits, Java does not
			return v, notANumber()
		}
		v.double = d
	case List:
		if trimmed != "" {
			v.list = commaBetween.Split(trimmed, -1)
		}
	default:
		v.text = trimmed
	}
	return v, nil
}

// defaultValue is the value of a row that is not set.
func (r *Row) defaultValue() value {
	if r.NoDefault || r.Required {
		return value{null: true}
	}
	v, err := r.parse(r.Default)
	assert.That(err == nil, "the table contradicts itself about %s: %v", r.Name, err)
	return v
}

// format writes a value in the form in which DescribeConfigs shows it; nil for null.
func (r *Row) format(v value) *string {
	if v.null {
		return nil
	}
	var s string
	switch r.Type {
	case Boolean:
		s = strconv.FormatBool(v.number == 1)
	case Int, Short, Long:
		s = strconv.FormatInt(v.number, 10)
	case Double:
		s = formatDouble(v.double)
	case List:
		s = strings.Join(v.list, ",")
	default:
		s = v.text
	}
	return &s
}

// formatDouble writes a number as Java does: always with a decimal point, with an exponent outside [0.001, 10 million).
func formatDouble(d float64) string {
	switch {
	case math.IsNaN(d):
		return "NaN"
	case math.IsInf(d, 1):
		return "Infinity"
	case math.IsInf(d, -1):
		return "-Infinity"
	}
	if a := math.Abs(d); a == 0 || a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(d, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(d, 'E', -1, 64), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	exponent = strings.TrimPrefix(exponent, "+")
	if negative, ok := strings.CutPrefix(exponent, "-"); ok {
		return mantissa + "E-" + strings.TrimLeft(negative, "0")
	}
	return mantissa + "E" + strings.TrimLeft(exponent, "0")
}
