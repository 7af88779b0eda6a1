package config

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// Properties files are read as Java reads them.
func TestParseProperties(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want map[string]string
	}{
		"separators":              {"a=1\nb:2\nc 3\nd\t=\t4\ne = = 5\nf", map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "= 5", "f": ""}},
		"white space":             {"  \t a = 1 \n\fb=2  ", map[string]string{"a": "1 ", "b": "2  "}},
		"comments":                {"# a=1\n  ! b=2\nc=#3\n", map[string]string{"c": "#3"}},
		"line ends":               {"a=1\rb=2\r\nc=3\n\n", map[string]string{"a": "1", "b": "2", "c": "3"}},
		"continued":               {"a=1,\\\n   2,\\\r\n\t3\nb=4", map[string]string{"a": "1,2,3", "b": "4"}},
		"continued by a comment":  {"a=1\\\n# 2\n", map[string]string{"a": "1# 2"}},
		"comments do not go on":   {"# a \\\nb=1", map[string]string{"b": "1"}},
		"continued by nothing":    {"a=1\\\n\nb=2", map[string]string{"a": "1", "b": "2"}},
		"continued into the end":  {"a=1\\", map[string]string{"a": "1"}},
		"an escaped backslash":    {"a=1\\\\\nb=2", map[string]string{"a": `1\`, "b": "2"}},
		"escapes":                 {`a=\t\n\r\f\q\=`, map[string]string{"a": "\t\n\r\fq="}},
		"escapes in keys":         {`a\=b\ c\:d=1`, map[string]string{"a=b c:d": "1"}},
		"unicode":                 {`a=\u00e4\u20AC\ud83d\ude00`, map[string]string{"a": "ä€😀"}},
		"half a surrogate pair":   {`a=\ud83dx`, map[string]string{"a": "\uFFFDx"}},
		"UTF-8":                   {"a=ä", map[string]string{"a": "ä"}},
		"Latin-1":                 {"a=\xe4", map[string]string{"a": "ä"}},
		"the last one counts":     {"a=1\na=2", map[string]string{"a": "2"}},
		"nothing":                 {" \n\t\n#\n", map[string]string{}},
		"an empty key":            {"=1", map[string]string{"": "1"}},
		"a lone backslash starts": {"\\\na=1", map[string]string{"a": "1"}},
	} {
		got, err := ParseProperties(strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestParseProperties_Refuses(t *testing.T) {
	for text, want := range map[string]string{
		"a=1\n\nb=\\u12x4": `line 3: \u must be followed by four hexadecimal digits`,
		"a=\\u123":         `line 1: \u must be followed by four hexadecimal digits`,
		strings.Repeat("x", PropertiesBytesMax+1): "more than 1048576 bytes: that is no properties file",
	} {
		if _, err := ParseProperties(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

// Whatever the bytes, reading ends without a panic, and what is read can be written and read again.
func FuzzParseProperties(f *testing.F) {
	for _, seed := range []string{"a=1\nb:2\\\n 3", "#x\r\n!y\n\\u00e4 = \\t", "=\\\\\n\\", "k\\:=v\\ud83d\\ude00", "\xff=\xfe"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		first, err := ParseProperties(strings.NewReader(string(content)))
		if err != nil {
			return
		}
		escape := func(s string) string {
			return strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\f", `\f`, " ", `\ `, "=", `\=`, ":", `\:`, "#", `\#`, "!", `\!`).Replace(s)
		}
		var again strings.Builder
		for key, value := range first {
			if !utf8.ValidString(key) || !utf8.ValidString(value) {
				t.Fatalf("not UTF-8: %q=%q", key, value)
			}
			again.WriteString(escape(key) + "=" + escape(value) + "\n")
		}
		if again.Len() > PropertiesBytesMax {
			return
		}
		second, err := ParseProperties(strings.NewReader(again.String()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Environment variables are those of the apache/kafka image.
func TestFromEnv(t *testing.T) {
	got := FromEnv([]string{
		"PATH=/bin", "KAFKA_NODE_ID=7", "KAFKA_LOG_RETENTION_MS=1", "KAFKA_A__B=x", "KAFKA_C___D=y", "KAFKA_HEAP_OPTS=-Xmx1g", "KAFKA_OPTS=-D",
		"KAFKA_LOG4J_ROOT_LOGLEVEL=WARN", "KAFKA_=", "KAFKA", "MY_KAFKA_X=1", "KAFKA_LISTENER_NAME_EXTERNAL_SASL_JAAS_CONFIG=a=b",
		"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://broker:19092,EXTERNAL://[::1]:9092",
	})
	want := map[string]string{
		"node.id": "7", "log.retention.ms": "1", "a_b": "x", "c-d": "y", "listener.name.external.sasl.jaas.config": "a=b",
		"advertised.listeners": "PLAINTEXT://broker:19092,EXTERNAL://[::1]:9092",
		"listeners":            "PLAINTEXT://0.0.0.0:19092,EXTERNAL://0.0.0.0:9092",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = FromEnv([]string{"KAFKA_ADVERTISED_LISTENERS=A://b:1", "KAFKA_LISTENERS=A://:2"})
	if got["listeners"] != "A://:2" {
		t.Error("listeners are set and were replaced by", got["listeners"])
	}
}
