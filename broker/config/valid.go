package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Valid is what a row accepts beyond its type. String is how Kafka's documentation writes it.
type Valid interface {
	String() string
	check(r *Row, v value) *Invalid
}

type atLeast struct{ min float64 }

// AtLeast accepts numbers from min.
func AtLeast(min float64) Valid { return atLeast{min} }

func (a atLeast) String() string { return "[" + plain(a.min) + ",...]" }

func (a atLeast) check(r *Row, v value) *Invalid {
	if v.asFloat(r) < a.min {
		return invalid(r.Name, *r.format(v), "Value must be at least "+plain(a.min))
	}
	return nil
}

type between struct{ min, max float64 }

// Between accepts numbers from min to max, both included.
func Between(min, max float64) Valid { return between{min, max} }

func (b between) String() string { return "[" + plain(b.min) + ",...," + plain(b.max) + "]" }

func (b between) check(r *Row, v value) *Invalid {
	if why := AtLeast(b.min).check(r, v); why != nil {
		return why
	}
	if v.asFloat(r) > b.max {
		return invalid(r.Name, *r.format(v), "Value must be no more than "+plain(b.max))
	}
	return nil
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (v value) asFloat(r *Row) float64 {
	if r.Type == Double {
		return v.double
	}
	return float64(v.number)
}

type oneOf []string

// OneOf accepts the given texts.
func OneOf(texts ...string) Valid { return oneOf(texts) }

func (o oneOf) String() string { return "[" + strings.Join(o, ", ") + "]" }

func (o oneOf) check(r *Row, v value) *Invalid { return o.checkText(r, v.text) }

func (o oneOf) checkText(r *Row, text string) *Invalid {
	if slices.Contains(o, text) {
		return nil
	}
	return invalid(r.Name, text, "String must be one of: "+strings.Join(o, ", "))
}

type oneOfAnyCase []string

// OneOfAnyCase accepts the given texts, which are in upper case, in any case.
func OneOfAnyCase(texts ...string) Valid { return oneOfAnyCase(texts) }

func (o oneOfAnyCase) String() string { return "(case insensitive) [" + strings.Join(o, ", ") + "]" }

func (o oneOfAnyCase) check(r *Row, v value) *Invalid {
	if slices.Contains(o, strings.ToUpper(v.text)) {
		return nil
	}
	return invalid(r.Name, v.text, "String must be one of (case insensitive): "+strings.Join(o, ", "))
}

// list is a list without doubles and without empty members.
type list struct {
	emptyAllowed bool
	members      oneOf // nil: any
}

// Lists of any members.
var (
	AnyList      Valid = list{emptyAllowed: true}
	NonEmptyList Valid = list{}
)

// ListOf accepts lists of the given members, the empty one too.
func ListOf(members ...string) Valid { return list{emptyAllowed: true, members: members} }

// NonEmptyListOf accepts lists of the given members but the empty one.
func NonEmptyListOf(members ...string) Valid { return list{members: members} }

func (l list) String() string {
	if l.members == nil {
		return ""
	}
	return l.members.String()
}

func (l list) check(r *Row, v value) *Invalid {
	refuse := func(why string) *Invalid {
		return &Invalid{Key: r.Name, Message: "Configuration '" + r.Name + "' " + why}
	}
	if len(v.list) == 0 && !l.emptyAllowed {
		accepted := "any non-empty value"
		if l.members != nil {
			accepted = l.members.String()
		}
		return refuse("must not be empty. Valid values include: " + accepted)
	}
	seen := make(map[string]bool, len(v.list))
	for _, member := range v.list {
		if seen[member] {
			return refuse("values must not be duplicated.")
		}
		seen[member] = true
	}
	for _, member := range v.list {
		if member == "" {
			return refuse("values must not be empty.")
		}
		if l.members != nil {
			if why := l.members.checkText(r, member); why != nil {
				return why
			}
		}
	}
	return nil
}

// validFunc is a rule that only one or two rows have.
type validFunc struct {
	text string
	rule func(r *Row, v value) *Invalid
}

func (f validFunc) String() string                 { return f.text }
func (f validFunc) check(r *Row, v value) *Invalid { return f.rule(r, v) }

// Rules of single rows.
var (
	// NotNull accepts any text.
	NotNull Valid = validFunc{"non-null string", func(*Row, value) *Invalid { return nil }}
	// NonEmptyText accepts any text but the empty one.
	NonEmptyText Valid = validFunc{"non-empty string", func(r *Row, v value) *Invalid {
		if v.text == "" {
			return invalid(r.Name, v.text, "String must be non-empty")
		}
		return nil
	}}
	// GzipLevel accepts gzip's levels and -1 for its default.
	GzipLevel Valid = validFunc{"[1,...,9] or -1", func(r *Row, v value) *Invalid {
		if v.number == -1 || v.number >= 1 && v.number <= 9 {
			return nil
		}
		return invalid(r.Name, *r.format(v), "Value must be between 1 and 9 or equal to -1")
	}}
	// Voters accepts ID@HOST:PORT members.
	Voters Valid = validFunc{"non-empty list", func(r *Row, v value) *Invalid {
		_, err := parseVoters(v.list)
		if err != nil {
			return &Invalid{Key: r.Name, Message: err.Error()}
		}
		return nil
	}}
	// HostPorts accepts HOST:PORT members.
	HostPorts Valid = validFunc{"non-empty list", func(r *Row, v value) *Invalid {
		for _, member := range v.list {
			if _, _, err := splitHostPort(member); err != nil {
				return &Invalid{Key: r.Name, Message: err.Error()}
			}
		}
		return nil
	}}
	// ThrottledReplicas accepts PARTITION:BROKER members, or * alone.
	ThrottledReplicas Valid = validFunc{"[partitionId]:[brokerId],[partitionId]:[brokerId],...", func(r *Row, v value) *Invalid {
		if strings.Join(v.list, "") == "*" {
			return nil
		}
		for _, member := range v.list {
			if !throttledReplica.MatchString(member) {
				return invalid(r.Name, javaList(v.list), r.Name+" must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...")
			}
		}
		return nil
	}}
	// OffsetReset accepts latest, earliest and by_duration: with an ISO 8601 duration.
	OffsetReset Valid = validFunc{"[latest, earliest, by_duration:PnDTnHnMn.nS]", func(r *Row, v value) *Invalid {
		duration, by := strings.CutPrefix(v.text, "by_duration:")
		if v.text == "latest" || v.text == "earliest" || by && isoDuration.MatchString(duration) && strings.ContainsAny(duration, "0123456789") && !strings.HasSuffix(duration, "T") {
			return nil
		}
		return invalid(r.Name, v.text, fmt.Sprintf("Invalid value `%s` for configuration %s. The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.", v.text, r.Name))
	}}

	throttledReplica = regexp.MustCompile(`^([0-9]+:[0-9]+)?$`)
	isoDuration      = regexp.MustCompile(`^P([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]{0,9})?S)?)?$`)
)

// javaList writes a list as it appears in Kafka's messages.
func javaList(members []string) string { return "[" + strings.Join(members, ", ") + "]" }
