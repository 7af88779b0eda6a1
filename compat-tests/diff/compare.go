package diff

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// difference is one place where two answers are not the same.
type difference struct {
	path   string // "FetchResponse.Topics[].Partitions[].ErrorCode", or "outcome"
	at     string // the same with the indices
	values [2]string
}

// normaliser compares answers of one scenario. What the rules call a rename must be consistent over the whole scenario: a value of one broker stands
// for one value of the other.
type normaliser struct {
	prefix  string
	rules   map[string]rule
	renames map[string]*bijection
}

func newNormaliser(prefix string) *normaliser {
	return &normaliser{prefix: prefix, rules: rules, renames: map[string]*bijection{}}
}

// clone and restore let an exchange be tried without keeping what it taught.
func (n *normaliser) clone() map[string]*bijection {
	c := map[string]*bijection{}
	for class, b := range n.renames {
		c[class] = &bijection{maps.Clone(b.there), maps.Clone(b.back), [2]map[any]int{maps.Clone(b.order[0]), maps.Clone(b.order[1])}}
	}
	return c
}

func (n *normaliser) restore(c map[string]*bijection) { n.renames = c }

// bijection holds which value of the second broker stands for which of the first.
type bijection struct {
	there, back map[any]any
	order       [2]map[any]int // by side: the how manieth pair it was
}

func newBijection() *bijection {
	return &bijection{map[any]any{}, map[any]any{}, [2]map[any]int{{}, {}}}
}

func (n *normaliser) rename(class string, k, s any) bool {
	b := n.renames[class]
	if b == nil {
		b = newBijection()
		n.renames[class] = b
	}
	if known, ok := b.there[k]; ok {
		return known == s
	}
	if _, taken := b.back[s]; taken {
		return false
	}
	b.order[0][k], b.order[1][s] = len(b.there), len(b.there)
	b.there[k], b.back[s] = s, k
	return true
}

// translate puts the second broker's ids in the place of the first's in a text.
func (n *normaliser) translate(text string) string {
	for _, class := range slices.Sorted(maps.Keys(n.renames)) {
		for k, s := range n.renames[class].there {
			switch k := k.(type) {
			case string:
				if len(k) >= 8 {
					text = strings.ReplaceAll(text, k, s.(string))
				}
			case [16]byte:
				text = strings.ReplaceAll(text, uuidText(k), uuidText(s.([16]byte)))
			}
		}
	}
	return text
}

func (n *normaliser) compare(k, s answer) []difference {
	c := comparison{n: n}
	switch {
	case k.outcome == garbled || s.outcome == garbled:
		c.differ("outcome", "outcome", k.outcome.String()+" "+k.detail, s.outcome.String()+" "+s.detail)
	case k.outcome != s.outcome:
		c.differ("outcome", "outcome", k.describe(), s.describe())
	case k.outcome == replied:
		kv, sv := reflect.ValueOf(k.response).Elem(), reflect.ValueOf(s.response).Elem()
		c.walk(kv.Type().Name(), kv.Type().Name(), kv, sv)
	}
	return c.found
}

func (a answer) describe() string {
	if a.outcome != replied {
		return a.outcome.String()
	}
	return "replied " + show(reflect.ValueOf(a.response).Elem())
}

type comparison struct {
	n     *normaliser
	found []difference
}

func (c *comparison) differ(path, at, k, s string) {
	c.found = append(c.found, difference{path, at, [2]string{k, s}})
}

func (c *comparison) walk(path, at string, k, s reflect.Value) {
	if equal := c.n.rules[path].equal; equal != nil {
		equal(c, path, at, k, s)
		return
	}
	switch k.Kind() {
	case reflect.Struct:
		c.fields(path, at, k, s)
	case reflect.Pointer:
		if k.IsNil() || s.IsNil() {
			if k.IsNil() != s.IsNil() {
				c.differ(path, at, show(k), show(s))
			}
			return
		}
		c.walk(path, at, k.Elem(), s.Elem())
	case reflect.Slice:
		if k.Type().Elem().Kind() == reflect.Uint8 {
			if !bytes.Equal(k.Bytes(), s.Bytes()) || k.IsNil() != s.IsNil() {
				c.differ(path, at, show(k), show(s))
			}
			return
		}
		c.slice(path, at, k, s)
	case reflect.String:
		if withoutTimes(c.n.translate(k.String())) != withoutTimes(s.String()) {
			c.differ(path, at, show(k), show(s))
		}
	default:
		if k.Interface() != s.Interface() {
			c.differ(path, at, show(k), show(s))
		}
	}
}

func (c *comparison) fields(path, at string, k, s reflect.Value) {
	for i := range k.NumField() {
		f := k.Type().Field(i)
		if f.Name == "UnknownTags" {
			c.unknownTags(path+".UnknownTags", at, k.Field(i), s.Field(i))
			continue
		}
		if f.IsExported() {
			c.walk(path+"."+f.Name, at+"."+f.Name, k.Field(i), s.Field(i))
		}
	}
}

func (c *comparison) slice(path, at string, k, s reflect.Value) {
	ke, se := c.elements(path, k, 0), c.elements(path, s, 1)
	if k.IsNil() != s.IsNil() {
		c.differ(path, at, show(k), show(s))
		return
	}
	if len(ke) != len(se) {
		c.differ(path+"[]", at, fmt.Sprintf("%d: %s", len(ke), showAll(ke)), fmt.Sprintf("%d: %s", len(se), showAll(se)))
		return
	}
	for i := range ke {
		c.walk(path+"[]", fmt.Sprintf("%s[%d]", at, i), ke[i], se[i])
	}
}

// elements are those that take part: without what belongs to other scenarios, and in an order of their own where the rules say so.
func (c *comparison) elements(path string, v reflect.Value, side int) []reflect.Value {
	var elements []reflect.Value
	for i := range v.Len() {
		if e := v.Index(i); !c.n.foreign(path, e) {
			elements = append(elements, e)
		}
	}
	if c.n.rules[path].merge {
		elements = merged(elements)
	}
	if fields := c.n.rules[path].sortBy; fields != nil {
		slices.SortStableFunc(elements, func(a, b reflect.Value) int {
			return strings.Compare(c.n.key(a, fields, side), c.n.key(b, fields, side))
		})
	}
	return elements
}

// merged puts the partitions of a topic that is answered in several pieces together.
func merged(topics []reflect.Value) []reflect.Value {
	var all []reflect.Value
	at := map[any]int{}
	for _, t := range topics {
		key := [2]any{t.FieldByName("Topic").Interface(), t.FieldByName("TopicID").Interface()}
		i, ok := at[key]
		if !ok {
			at[key] = len(all)
			one := reflect.New(t.Type()).Elem()
			one.Set(t)
			all = append(all, one)
			continue
		}
		partitions := all[i].FieldByName("Partitions")
		both := reflect.AppendSlice(reflect.MakeSlice(partitions.Type(), 0, 0), partitions)
		partitions.Set(reflect.AppendSlice(both, t.FieldByName("Partitions")))
	}
	return all
}

// key is what elements are sorted by: the fields as text, with ids that are known already by when they became known, so that both sides sort alike.
func (n *normaliser) key(e reflect.Value, fields []string, side int) string {
	var b strings.Builder
	for _, field := range fields {
		f := e
		if field != "" { // the element itself
			f = e.FieldByName(field)
		}
		if f.Kind() == reflect.Pointer && !f.IsNil() {
			f = f.Elem()
		}
		switch {
		case f.Kind() == reflect.Pointer:
			b.WriteString("null")
		default:
			if rank, ok := n.rank(field, f, side); ok {
				fmt.Fprintf(&b, "known %06d", rank)
			} else if f.CanInt() {
				fmt.Fprintf(&b, "%020d", f.Int())
			} else {
				b.WriteString(show(f))
			}
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// rank says the how manieth rename an id was.
func (n *normaliser) rank(field string, f reflect.Value, side int) (int, bool) {
	class := map[string]string{"TopicID": "topic id", "MemberID": "member id", "ProducerID": "producer id"}[field]
	b := n.renames[class]
	if b == nil {
		return 0, false
	}
	rank, ok := b.order[side][f.Interface()]
	return rank, ok
}

// scenarioName is how the names of every scenario of every run begin.
var scenarioName = regexp.MustCompile(`^d[0-9a-f]{6}-[0-9]{3}-`)

// foreign says whether an element of a list is named after something that belongs to another scenario, or to nobody.
func (n *normaliser) foreign(path string, e reflect.Value) bool {
	if e.Kind() != reflect.Struct {
		return false
	}
	if rule := n.rules[path]; rule.leaveOut != nil && rule.leaveOut(e) {
		return true
	}
	for _, field := range []string{"Topic", "Group", "Name", "TransactionalID"} {
		f := e.FieldByName(field)
		if !f.IsValid() {
			continue
		}
		if f.Kind() == reflect.Pointer {
			if f.IsNil() {
				continue
			}
			f = f.Elem()
		}
		if f.Kind() != reflect.String {
			continue
		}
		name := f.String()
		if scenarioName.MatchString(name) && !strings.HasPrefix(name, n.prefix) {
			return true
		}
		if field == "Topic" && laterInternalTopics[name] {
			return true
		}
	}
	return false
}

func (c *comparison) unknownTags(path, at string, k, s reflect.Value) {
	kl, sl := k.Addr().MethodByName("Len").Call(nil)[0].Int(), s.Addr().MethodByName("Len").Call(nil)[0].Int()
	if kl != sl {
		c.differ(path, at, strconv.FormatInt(kl, 10), strconv.FormatInt(sl, 10))
	}
}

// bounds in messages count from the broker's clock.
var timeBounds = regexp.MustCompile(`should be within \[-?\d+, -?\d+\]`)

func withoutTimes(message string) string {
	return timeBounds.ReplaceAllString(message, "should be within […]")
}

// sameInstant compares times in milliseconds: absent on both, or a time of this run on both.
func sameInstant(c *comparison, path, at string, k, s reflect.Value) {
	now := time.Now().UnixMilli()
	of := func(v reflect.Value) string {
		switch ms := v.Int(); {
		case ms < 0:
			return strconv.FormatInt(ms, 10)
		case ms > now-10*60_000 && ms < now+60_000:
			return "now"
		default:
			return strconv.FormatInt(ms, 10)
		}
	}
	if of(k) != of(s) {
		c.differ(path, at, of(k), of(s))
	}
}

// renamed gives the comparison of ids: none of the absent values on either side or on both, and otherwise one id for one id.
func renamed(class string, absent ...any) func(c *comparison, path, at string, k, s reflect.Value) {
	return func(c *comparison, path, at string, k, s reflect.Value) {
		if k.Kind() == reflect.Pointer {
			if k.IsNil() || s.IsNil() {
				if k.IsNil() != s.IsNil() {
					c.differ(path, at, show(k), show(s))
				}
				return
			}
			k, s = k.Elem(), s.Elem()
		}
		kv, sv := k.Interface(), s.Interface()
		if slices.Contains(absent, kv) || slices.Contains(absent, sv) {
			if kv != sv {
				c.differ(path, at, show(k), show(s))
			}
			return
		}
		if class == "member id" && len(k.String()) != len(s.String()) {
			c.differ(path, at, show(k), show(s))
			return
		}
		if !c.n.rename(class, kv, sv) {
			c.differ(path, at, show(k), show(s)+" (stands for another "+class+")")
		}
	}
}
