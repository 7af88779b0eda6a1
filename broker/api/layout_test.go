package api

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// eachRequestVersion calls f for every request that kmsg knows, in every version.
func eachRequestVersion(f func(request kmsg.Request, name string)) {
	for key := range int16(kmsg.MaxKey + 1) {
		request := kmsg.RequestForKey(key)
		if request == nil {
			continue
		}
		for version := range request.MaxVersion() + 1 {
			request := kmsg.RequestForKey(key)
			request.SetVersion(version)
			f(request, fmt.Sprintf("%s v%d", kmsg.NameForKey(key), version))
		}
	}
}

// fill sets every field below v at random; arrays get up to three elements.
func fill(v reflect.Value, random *rand.Rand) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.Name != "Version" && field.Name != "UnknownTags" {
				fill(v.Field(i), random)
			}
		}
	case reflect.Slice:
		n := random.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), random)
		}
	case reflect.Pointer:
		if random.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), random)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), random)
		}
	case reflect.String:
		v.SetString([]string{"", "a", "topic", string(make([]byte, 200))}[random.IntN(4)])
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 1)
	case reflect.Float64:
		v.SetFloat(random.Float64())
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(random.Uint64() >> 48)
	default:
		v.SetInt(int64(random.Uint64()))
	}
}

// A learned layout leads exactly to the end of whatever kmsg encodes, in every version of every request, and what it adds up is about
// what decoding allocates.
func TestLayout_FollowsTheEncoder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	eachRequestVersion(func(request kmsg.Request, name string) {
		for range 30 {
			fill(reflect.ValueOf(request).Elem(), random)
			body := request.AppendTo(nil)
			w := walker{b: body, limit: 1 << 30}
			w.walk(layoutOf(request))
			if w.bad || len(w.b) > 0 {
				t.Errorf("%s: bad %v, %d of %d bytes left", name, w.bad, len(w.b), len(body))
				return
			}
		}
	})
}

// Whatever the bytes, the walk ends within its limits and refuses no more than kmsg does, but for null where none may be.
func FuzzLayout(f *testing.F) {
	eachRequestVersion(func(request kmsg.Request, _ string) {
		if request.GetVersion() == request.MaxVersion() {
			f.Add(request.Key(), request.GetVersion(), request.AppendTo(nil))
		}
	})
	f.Add(int16(3), int16(12), []byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		request := kmsg.RequestForKey(key)
		if request == nil || version < 0 || version > request.MaxVersion() {
			return
		}
		request.SetVersion(version)
		w := walker{b: body, limit: 1 << 20}
		w.walk(layoutOf(request))
		// What kmsg read null as is empty when it is encoded again.
		if w.bad && request.ReadFrom(body) == nil && bytes.HasPrefix(body, request.AppendTo(nil)) {
			t.Errorf("kmsg decodes what the layout of %s v%d calls bad", kmsg.NameForKey(key), version)
		}
	})
}
