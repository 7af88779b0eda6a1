package uuid

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// The text form is Java's: URL-safe base64 without padding.
func TestString_ParseRoundTrip(t *testing.T) {
	for _, c := range []struct {
		u    UUID
		text string
	}{
		{Zero, "AAAAAAAAAAAAAAAAAAAAAA"},
		{MetadataTopic, "AAAAAAAAAAAAAAAAAAAAAQ"},
		{UUID{0xfb, 0xff, 0xbf, 3: 1, 15: 0xff}, "-_-_AQAAAAAAAAAAAAAA_w"},
	} {
		if got := c.u.String(); got != c.text {
			t.Errorf("%x is %s, want %s", c.u[:], got, c.text)
		}
		for _, text := range []string{c.text, c.text + "=="} {
			if got, err := Parse(text); got != c.u || err != nil {
				t.Errorf("Parse(%q) = %v, %v", text, got, err)
			}
		}
	}
}

func TestParse_Malformed(t *testing.T) {
	for _, text := range []string{"", "AAAA", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAA+", "AAAAAAAAAAAAAAAAAAAAAA=",
		"6b1f38fe-5c3e-4b55-8b0e-3f1c1b0f4d11", "AAAAAAAAAAA\nAAAAAAAAAAA"} {
		if u, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v", text, u)
		}
	}
}

// New skips ids that would be printed with a '-' and gives version 4 ids otherwise.
func TestNew_SkipsDashes(t *testing.T) {
	dash := bytes.Repeat([]byte{0xfb}, 16) // prints as -_v7…
	good := bytes.Repeat([]byte{0x11}, 16)
	u, err := New(bytes.NewReader(append(dash, good...)))
	if err != nil {
		t.Fatal(err)
	}
	want := UUID(good)
	want[6], want[8] = 0x41, 0x91
	if u != want {
		t.Errorf("got %x, want %x", u[:], want[:])
	}
	if _, err := New(bytes.NewReader(dash)); !errors.Is(err, io.EOF) {
		t.Errorf("random source ran dry: %v", err)
	}
	if _, err := New(iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("random source fails: %v", err)
	}
}

func TestIsReserved(t *testing.T) {
	for _, c := range []struct {
		u    UUID
		want bool
	}{{Zero, true}, {MetadataTopic, true}, {LostDirectory, true}, {UUID{15: 99}, true}, {UUID{15: 100}, false}, {UUID{14: 1}, false}, {UUID{0: 1}, false}} {
		if got := c.u.IsReserved(); got != c.want {
			t.Errorf("%s: %t", c.u, got)
		}
	}
}
