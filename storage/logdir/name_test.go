package logdir

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParseDirName(t *testing.T) {
	const id = "3f2a9c4de0b14d5fa1b2c3d4e5f60718"
	long := strings.Repeat("t", 249)
	for _, test := range []struct {
		name      string
		topic     string
		partition int32
		kind      Kind
	}{
		{"orders-0", "orders", 0, Current},
		{"a.b-c_d-12", "a.b-c_d", 12, Current},
		{"a--1", "a-", 1, Current},
		{"x-delete-0", "x-delete", 0, Current},
		{"__consumer_offsets-49", "__consumer_offsets", 49, Current},
		{"__cluster_metadata-0", "__cluster_metadata", 0, Current},
		{long + "-2147483647", long, 2147483647, Current},
		{"orders-0." + id + "-delete", "orders", 0, Deleted},
		{"a.b-1." + id + "-future", "a.b", 1, Future},
		{"a.b-1." + id + "-stray", "a.b", 1, Stray},
	} {
		tp, kind, err := ParseDirName(test.name)
		if err != nil || tp.Topic != test.topic || tp.Partition != test.partition || kind != test.kind {
			t.Errorf("%s: %v %v %v, want %v", test.name, tp, kind, err, test)
		}
		if kind == Current && DirName(tp) != test.name {
			t.Errorf("%s: the name of %v is %s", test.name, tp, DirName(tp))
		}
	}
	for name, want := range map[string]string{
		"":                        "no dash",
		"orders":                  "no dash",
		"lost+found":              "no dash",
		"-0":                      "no topic can have that name",
		"..-0":                    "no topic can have that name",
		"a b-0":                   "no topic can have that name",
		"a/b-0":                   "no topic can have that name",
		long + "t-0":              "no topic can have that name",
		"orders-":                 "no partition number after the last dash",
		"orders-x":                "no partition number after the last dash",
		"orders-01":               "no partition number after the last dash",
		"orders-+1":               "no partition number after the last dash",
		"orders-99999999999":      "no partition number after the last dash",
		"orders-0-delete":         "no id before -delete",
		"orders-0.-delete":        "no id before -delete",
		"orders-0-future":         "no id before -future",
		"orders." + id + "-stray": "no dash",
	} {
		if _, _, err := ParseDirName(name); err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}

func TestMarkedName_FitsAndParses(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for _, topic := range []string{"orders", "a.b-c", strings.Repeat("t", 249)} {
		for _, kind := range []Kind{Deleted, Stray, Future} {
			name, err := markedName(TopicPartition{Topic: topic, Partition: 7}, kind, random)
			if err != nil {
				t.Fatal(err)
			}
			if kind != Future && len(name) > 255 {
				t.Errorf("%s: %d bytes", name, len(name))
			}
			tp, parsed, err := ParseDirName(name)
			if err != nil || parsed != kind || tp.Partition != 7 || !strings.HasPrefix(topic, tp.Topic) {
				t.Errorf("%s: %v %v %v", name, tp, parsed, err)
			}
		}
	}
}

func FuzzParseDirName(f *testing.F) {
	for _, s := range []string{"orders-0", "a.b-1.3f2a-delete", "x-0.y-future", "-", "a-0.b-stray"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		tp, kind, err := ParseDirName(name)
		if err == nil && (tp.Partition < 0 && kind == Current && name != DirName(tp) || !validTopic(tp.Topic)) {
			t.Fatalf("%q: %v %v", name, tp, kind)
		}
		if err == nil && kind == Current && DirName(tp) != name {
			t.Fatalf("%q is not the name of %v", name, tp)
		}
	})
}
