package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func text(s string) *string { return &s }

// Headers of each version survive a round trip, and what follows them is left alone.
func TestRequestHeader_RoundTrip(t *testing.T) {
	for _, h := range []RequestHeader{
		{Key: 7, Version: 0, CorrelationID: 9}, // version 0: no client id
		{Key: 7, Version: 1, CorrelationID: -1, ClientID: text("c")},
		{Key: 3, Version: 1, CorrelationID: 1, ClientID: text("client")},
		{Key: 3, Version: 1, CorrelationID: 1, ClientID: nil},
		{Key: 3, Version: 9, CorrelationID: 1 << 30, ClientID: text("")},
		{Key: 18, Version: 3, CorrelationID: 1, ClientID: text("ü")},
		{Key: 18, Version: 127, CorrelationID: 1, ClientID: text("from the future")},
		{Key: 18, Version: -1, CorrelationID: 1, ClientID: text("x")},
		{Key: 999, Version: 5, CorrelationID: 1, ClientID: text("unknown key")},
	} {
		b := append(AppendRequestHeader(nil, h), "body"...)
		got, body, err := ParseRequestHeader(b, nil)
		if err != nil || string(body) != "body" || !cmp.Equal(got, h) {
			t.Errorf("%+v: got %+v, body %q, error %v", h, got, body, err)
		}
	}
}

// Our header before a request is what kmsg's own formatter writes.
func TestRequestHeader_SameAsKmsg(t *testing.T) {
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID("me"))
	for key := range int16(kmsg.MaxKey + 1) {
		request := kmsg.RequestForKey(key)
		if request == nil {
			continue
		}
		for version := range request.MaxVersion() + 1 {
			if RequestHeaderVersion(key, version) == 0 {
				continue // kmsg writes version 1, as no broker of today asks for 0
			}
			request.SetVersion(version)
			framed := formatter.AppendRequest(nil, request, 5)
			h, body, err := ParseRequestHeader(framed[LengthBytes:], text("me"))
			if err != nil || h.Key != key || h.Version != version || h.CorrelationID != 5 || !bytes.Equal(body, request.AppendTo(nil)) {
				t.Errorf("%s v%d: header %+v, error %v", kmsg.NameForKey(key), version, h, err)
			}
		}
	}
}

// Only flexible responses have tagged fields in their header, and those of ApiVersions never do.
func TestResponseHeader(t *testing.T) {
	for _, test := range []struct {
		key, version int16
		want         []byte
	}{
		{3, 8, []byte{0, 0, 0, 7}},
		{3, 9, []byte{0, 0, 0, 7, 0}},
		{18, 0, []byte{0, 0, 0, 7}},
		{18, 3, []byte{0, 0, 0, 7}},
		{18, 127, []byte{0, 0, 0, 7}},
	} {
		if got := AppendResponseHeader(nil, test.key, test.version, 7); !bytes.Equal(got, test.want) {
			t.Errorf("key %d version %d: %x, want %x", test.key, test.version, got, test.want)
		}
	}
}

// Headers that cannot be are refused in words; tagged fields are skipped.
func TestParseRequestHeader_Malformed(t *testing.T) {
	plain := []byte{0, 3, 0, 1, 0, 0, 0, 1}
	flexible := []byte{0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff}
	for _, test := range []struct {
		name string
		b    []byte
		want string // reason; "" for a good header
	}{
		{"nothing", nil, "0 bytes, need at least 8"},
		{"seven bytes", plain[:7], "7 bytes, need at least 8"},
		{"no client id", plain, "ends before the client id"},
		{"half a length", append(plain[:8:8], 0), "ends before the client id"},
		{"client id too long", append(plain[:8:8], 0, 3, 'a', 'b'), "client id of length 3, only 2 bytes left"},
		{"client id of length -2", append(plain[:8:8], 0xff, 0xfe), ""},
		{"no tags", flexible, "bad varint"},
		{"varint of six bytes", append(flexible[:10:10], 0xff, 0xff, 0xff, 0xff, 0xff, 0), "bad varint"},
		{"varint above 32 bits", append(flexible[:10:10], 0xff, 0xff, 0xff, 0xff, 0x7f), "bad varint"},
		{"too many tags", append(flexible[:10:10], 0xff, 0xff, 3), "65535 tagged fields"},
		{"tag cut short", append(flexible[:10:10], 1, 0, 5, 1, 2), "tagged field of 5 bytes, only 2 left"},
		{"two tags", append(flexible[:10:10], 2, 0, 1, 9, 0x80, 1, 2, 9, 9), ""},
	} {
		_, body, err := ParseRequestHeader(test.b, nil)
		var malformed *Malformed
		switch {
		case test.want == "" && (err != nil || len(body) > 0):
			t.Errorf("%s: error %v, body %x", test.name, err, body)
		case test.want != "" && (!errors.As(err, &malformed) || malformed.Reason != test.want):
			t.Errorf("%s: error %v, want %q", test.name, err, test.want)
		}
	}
}

// Lengths are taken from 0 up to the cap, and a frame is whole when all of its bytes are there.
func TestLength(t *testing.T) {
	for _, test := range []struct {
		length int32
		ok     bool
	}{{0, true}, {1, true}, {100, true}, {101, false}, {-1, false}, {1<<31 - 1, false}, {-1 << 31, false}} {
		b := binary.BigEndian.AppendUint32(nil, uint32(test.length))
		got, err := Length(b, 100)
		var bad *BadLength
		if (err == nil) != test.ok || (test.ok && got != int(test.length)) || (!test.ok && !errors.As(err, &bad)) {
			t.Errorf("length %d: %d, %v", test.length, got, err)
		}
	}
	for _, test := range []struct {
		b    []byte
		want bool
	}{{nil, false}, {[]byte{0, 0, 0}, false}, {[]byte{0, 0, 0, 0}, true}, {[]byte{0, 0, 0, 2, 1}, false}, {[]byte{0, 0, 0, 2, 1, 2}, true},
		{[]byte{0, 0, 0, 2, 1, 2, 3}, true}, {[]byte{0xff, 0xff, 0xff, 0xff}, false}} {
		if got := Complete(test.b); got != test.want {
			t.Errorf("%x: whole %v", test.b, got)
		}
	}
}

// Whatever the bytes, parsing ends with a header whose own encoding is a prefix of the input but for skipped tags, or an error.
func FuzzParseRequestHeader(f *testing.F) {
	for _, h := range []RequestHeader{{Key: 7}, {Key: 3, Version: 1, ClientID: text("client")}, {Key: 18, Version: 3, CorrelationID: 1, ClientID: text("x")}} {
		f.Add(AppendRequestHeader(nil, h))
	}
	f.Add([]byte{0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 2, 0, 1, 9, 1, 2, 9, 9})
	f.Add([]byte{0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, body, err := ParseRequestHeader(b, nil)
		if err != nil {
			return
		}
		if !bytes.HasSuffix(b, body) {
			t.Error("the body is not the end of the input")
		}
		again, rest, err := ParseRequestHeader(AppendRequestHeader(nil, h), h.ClientID)
		if err != nil || len(rest) > 0 || !cmp.Equal(again, h) {
			t.Errorf("%+v comes back as %+v, %v", h, again, err)
		}
	})
}

func BenchmarkParseRequestHeader(b *testing.B) {
	header := AppendRequestHeader(nil, RequestHeader{Key: 1, Version: 17, CorrelationID: 1, ClientID: text("consumer-group-1")})
	before := text("consumer-group-1")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := ParseRequestHeader(header, before); err != nil {
			b.Fatal(err)
		}
	}
}
