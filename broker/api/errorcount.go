package api

import (
	"reflect"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A codePlan says where a response type has error codes: its own ErrorCode, and those of its elements.
type codePlan struct {
	own    int // index of the field ErrorCode; -1 for none
	fields []codeField
}

type codeField struct {
	index int
	plan  *codePlan // of the element
}

var codePlans sync.Map // reflect.Type of a struct to *codePlan

func planCodes(t reflect.Type) *codePlan {
	if plan, ok := codePlans.Load(t); ok {
		return plan.(*codePlan)
	}
	plan := &codePlan{own: -1}
	for i := range t.NumField() {
		field := t.Field(i)
		element := field.Type
		if field.Name == "ErrorCode" && element.Kind() == reflect.Int16 {
			plan.own = i
			continue
		}
		if element.Kind() == reflect.Slice || element.Kind() == reflect.Pointer {
			element = element.Elem()
		}
		if element.Kind() != reflect.Struct || !field.IsExported() || element == reflect.TypeFor[kmsg.Tags]() {
			continue
		}
		if inner := planCodes(element); inner.own >= 0 || len(inner.fields) > 0 {
			plan.fields = append(plan.fields, codeField{i, inner})
		}
	}
	codePlans.Store(t, plan)
	return plan
}

// eachCode calls f for every error code in a response, successes included.
func eachCode(response kmsg.Response, f func(code int16)) {
	v := reflect.ValueOf(response).Elem()
	planCodes(v.Type()).walk(v, f)
}

func (p *codePlan) walk(v reflect.Value, f func(code int16)) {
	if p.own >= 0 {
		f(int16(v.Field(p.own).Int()))
	}
	for _, field := range p.fields {
		switch inner := v.Field(field.index); inner.Kind() {
		case reflect.Slice:
			for i := range inner.Len() {
				field.plan.walk(inner.Index(i), f)
			}
		case reflect.Pointer:
			if !inner.IsNil() {
				field.plan.walk(inner.Elem(), f)
			}
		default:
			field.plan.walk(inner, f)
		}
	}
}
