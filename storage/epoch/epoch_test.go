package epoch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sluice/protocol/record"
	"sluice/storage/vfs"
	"sluice/storage/vfs/errorfs"
)

func newCache(t *testing.T) (*Cache, *vfs.Mem) {
	t.Helper()
	fs := vfs.NewMem()
	if err := errors.Join(fs.MkdirAll("/t", 0o755), fs.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	return New(fs, "/t"), fs
}

func (c *Cache) String() string {
	var parts []string
	for _, e := range c.Entries() {
		parts = append(parts, fmt.Sprintf("%d@%d", e.Epoch, e.StartOffset))
	}
	return strings.Join(parts, " ")
}

// TestAssign: entries stay ascending in both fields; what contradicts the newest goes.
func TestAssign(t *testing.T) {
	for _, test := range []struct {
		assign []Entry
		want   string
	}{
		{[]Entry{{0, 0}, {1, 10}, {4, 20}}, "0@0 1@10 4@20"},
		{[]Entry{{0, 0}, {0, 5}, {0, 9}}, "0@0"},
		{[]Entry{{3, 7}, {3, 5}}, "3@5"},
		{[]Entry{{0, 0}, {1, 10}, {2, 10}}, "0@0 2@10"},
		{[]Entry{{0, 0}, {1, 10}, {2, 20}, {3, 5}}, "0@0 3@5"},
		{[]Entry{{0, 0}, {2, 10}, {1, 15}}, "0@0 1@15"},
		{[]Entry{{5, 10}, {4, 0}}, "4@0"},
	} {
		c, _ := newCache(t)
		for _, e := range test.assign {
			c.Assign(e.Epoch, e.StartOffset)
		}
		if c.String() != test.want {
			t.Errorf("%v gives %s, want %s", test.assign, c, test.want)
		}
	}
}

// TestEndOffsetFor compares with the list 2@11 5@20 9@50 of a log that ends at 60.
func TestEndOffsetFor(t *testing.T) {
	c, _ := newCache(t)
	if e, offset := c.EndOffsetFor(3, 60); e != -1 || offset != -1 {
		t.Errorf("empty list: %d %d", e, offset)
	}
	if c.LatestEpoch() != record.NoLeaderEpoch || c.ForOffset(3) != record.NoLeaderEpoch {
		t.Error("an empty list has an epoch")
	}
	for _, e := range []Entry{{2, 11}, {5, 20}, {9, 50}} {
		c.Assign(e.Epoch, e.StartOffset)
	}
	for requested, want := range map[record.LeaderEpoch]Entry{
		-1: {-1, -1}, 0: {0, 11}, 1: {1, 11}, 2: {2, 20}, 3: {2, 20}, 4: {2, 20}, 5: {5, 50}, 8: {5, 50}, 9: {9, 60}, 10: {-1, -1},
	} {
		if e, offset := c.EndOffsetFor(requested, 60); (Entry{e, offset}) != want {
			t.Errorf("epoch %d: %d %d, want %v", requested, e, offset, want)
		}
	}
	for offset, want := range map[int64]record.LeaderEpoch{0: -1, 10: -1, 11: 2, 19: 2, 20: 5, 49: 5, 50: 9, 1000: 9} {
		if got := c.ForOffset(offset); got != want {
			t.Errorf("offset %d: epoch %d, want %d", offset, got, want)
		}
	}
}

// TestTruncate from either side.
func TestTruncate(t *testing.T) {
	for offset, want := range map[int64][2]string{ // from the end, from the start
		0:   {"", "2@11 5@20 9@50"},
		11:  {"", "2@11 5@20 9@50"},
		12:  {"2@11", "2@12 5@20 9@50"},
		20:  {"2@11", "5@20 9@50"},
		21:  {"2@11 5@20", "5@21 9@50"},
		50:  {"2@11 5@20", "9@50"},
		51:  {"2@11 5@20 9@50", "9@51"},
		100: {"2@11 5@20 9@50", "9@100"},
	} {
		for side := range want {
			c, fs := newCache(t)
			for _, e := range []Entry{{2, 11}, {5, 20}, {9, 50}} {
				c.Assign(e.Epoch, e.StartOffset)
			}
			if err := c.Save(1000); err != nil {
				t.Fatal(err)
			}
			if side == 0 {
				if err := c.TruncateFromEnd(offset); err != nil {
					t.Fatal(err)
				}
				// What is cut off the end is gone from the disk at once.
				if saved, err := Open(fs.CrashClone(vfs.CrashConfig{}), "/t"); err != nil || saved.String() != want[0] {
					t.Errorf("truncated at %d, the file has %s %v", offset, saved, err)
				}
			} else {
				c.TruncateFromStart(offset)
			}
			if c.String() != want[side] {
				t.Errorf("side %d at %d: %s, want %s", side, offset, c, want[side])
			}
		}
	}
}

// TestSave writes Kafka's format, only when there is something new, and keeps trying after an error.
func TestSave(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("/t", 0o755); err != nil {
		t.Fatal(err)
	}
	fs := errorfs.Wrap(mem, nil)
	c := New(fs, "/t")
	if err := c.Save(1000); err != nil || fs.Count() != 0 {
		t.Errorf("%d operations for an empty list, %v", fs.Count(), err)
	}
	c.Assign(0, 0)
	c.Assign(3, 120)
	fs.SetInject(errorfs.FailFrom(1, os.ErrPermission))
	if err := c.Save(1000); err == nil {
		t.Error("saved in spite of errors")
	}
	fs.SetInject(nil)
	if err := c.Save(1000); err != nil {
		t.Fatal(err)
	}
	count := fs.Count()
	if err := c.Save(1000); err != nil || fs.Count() != count {
		t.Errorf("saved twice, %v", err)
	}
	f, err := mem.Open("/t/" + FileName)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, _ := f.ReadAt(b, 0)
	if want := "0\n2\n0 0\n3 120\n"; string(b[:n]) != want {
		t.Errorf("%q, want %q", b[:n], want)
	}
	again, err := Open(fs, "/t")
	count = fs.Count()
	if err != nil || !slices.Equal(again.Entries(), c.Entries()) {
		t.Errorf("%v %v", again, err)
	}
	again.Assign(7, 200)
	if err := again.Save(200); err != nil || fs.Count() != count {
		t.Errorf("saved an epoch without records, %v", err)
	}
	if err := again.Clear(); err != nil || len(again.Entries()) != 0 {
		t.Error(again, err)
	}
	if again, err = Open(mem, "/t"); err != nil || len(again.Entries()) != 0 {
		t.Error(again, err)
	}
}

// TestOpen_Files: what is read and what is refused.
func TestOpen_Files(t *testing.T) {
	for content, want := range map[string]string{
		"":                             "",
		"0\n0\n":                       "",
		"0\n2\n0 0\n3 120\n":           "0@0 3@120",
		"0\n2\n3 120\n0 0\n":           "0@0 3@120",
		"0\n2\n3 120\n3 90\n":          "3@90",
		"1\n0\n":                       "error",
		"0\n1\n0\n":                    "error",
		"0\n1\n-1 0\n":                 "error",
		"0\n1\n0 -1\n":                 "error",
		"0\n1\n99999999999 1\n":        "error",
		"0\n2\n0 0\n":                  "error",
		"\x00\x00\x00\x00\x00\x00\x00": "error",
	} {
		fs := vfs.NewMem()
		if err := fs.MkdirAll("/t", 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := fs.OpenFile("/t/"+FileName, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(content), 0); err != nil {
			t.Fatal(err)
		}
		c, err := Open(fs, "/t")
		got := "error"
		if err == nil {
			got = c.String()
		}
		if got != want {
			t.Errorf("%q gives %s %v, want %s", content, got, err, want)
		}
	}
}
