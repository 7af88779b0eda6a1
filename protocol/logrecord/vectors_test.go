package logrecord

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/protocol/uuid"
)

// vector is what Apache Kafka's class wrote for one record; testdata/LogRecordVectors.java made the file.
type vector struct {
	kind, name string
	version    int16
	full       bool
	bytes      []byte
}

func vectors(t testing.TB) []vector {
	f, err := os.Open("testdata/kafka-4.4.0.vectors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []vector
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var v vector
		var what, digits string
		if _, err := fmt.Sscan(lines.Text(), &v.kind, &v.name, &v.version, &what, &digits); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		v.full = what == "full"
		if v.bytes, err = hex.DecodeString(digits); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if len(all) < 80 {
		t.Fatalf("only %d vectors", len(all))
	}
	return all
}

// want sets v to the value that the Java program gave to the field of that name; i is the index of its structure.
func want(v reflect.Value, name string, i int) {
	n := int64(crc32.ChecksumIEEE([]byte(name))) + int64(i)
	switch v.Interface().(type) {
	case uuid.UUID:
		var u uuid.UUID
		for j := range 8 {
			u[7-j], u[15-j] = byte(n>>(8*j)), byte((n+1)>>(8*j))
		}
		v.Set(reflect.ValueOf(u))
		return
	case []byte:
		v.SetBytes(fmt.Appendf(nil, "%s-%d", name, i))
		return
	case Tags:
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int8:
		v.SetInt(n%100 + 1)
	case reflect.Int16:
		v.SetInt(n%30000 + 1)
	case reflect.Uint16:
		v.SetUint(uint64(n%60000 + 1))
	case reflect.Int32:
		v.SetInt(n%2000000000 + 1)
	case reflect.Int64:
		v.SetInt(n * 1000003)
	case reflect.Float64:
		v.SetFloat(float64(n) / 8)
	case reflect.String:
		v.SetString(fmt.Sprintf("%s-%d", name, i))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		want(v.Elem(), name, i)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for j := range 2 {
			if v.Index(j).Kind() == reflect.Struct {
				wantFields(v.Index(j), j)
			} else {
				want(v.Index(j), name, j)
			}
		}
	default:
		panic("no value for a " + v.Type().String())
	}
}

func wantFields(v reflect.Value, i int) {
	for _, f := range reflect.VisibleFields(v.Type()) {
		name := strings.ToLower(f.Name)
		if name == "quotakey" { // Kafka says Key, which is the method here
			name = "key"
		}
		want(v.FieldByIndex(f.Index), name, i)
	}
}

// Every record type, at every version, reads as the values that Kafka wrote, field by field, and is written as the same bytes.
func TestCluster_EveryTypeAndVersion_AsKafkaWritesIt(t *testing.T) {
	seen := map[int16]bool{}
	for _, v := range vectors(t) {
		if v.kind != "cluster" {
			continue
		}
		t.Run(fmt.Sprintf("%s/%d/%t", v.name, v.version, v.full), func(t *testing.T) {
			got, version, err := ParseClusterVersion(v.bytes)
			if err != nil {
				t.Fatal(err)
			}
			if version != v.version {
				t.Errorf("version %d, want %d", version, v.version)
			}
			seen[got.Key()] = true
			name := strings.ToLower(strings.ReplaceAll(v.name, "_", ""))
			if typeName := strings.ToLower(reflect.TypeOf(got).Elem().Name()); typeName != name {
				t.Fatalf("parsed as %s", typeName)
			}
			if again := AppendCluster(nil, got, version); !bytes.Equal(again, v.bytes) {
				t.Errorf("written again:\n%x\nwant\n%x", again, v.bytes)
			}
			expected := NewClusterRecord(got.Key())
			if v.full && v.version == got.MaxVersion() {
				wantFields(reflect.ValueOf(expected).Elem(), 0)
			}
			if !v.full {
				// Kafka's defaults for these are empty, not null; ours are null, which is what leaving them out means.
				switch r := expected.(type) {
				case *RegisterBrokerRecord:
					r.Rack = new(string)
				case *ConfigRecord:
					r.Value = new(string)
				}
			}
			if v.full && v.version < got.MaxVersion() {
				return // the fields are checked at the newest version, their presence by the bytes
			}
			if diff := cmp.Diff(expected, got, equateEmpty); diff != "" {
				t.Errorf("want(-) got(+):\n%s", diff)
			}
		})
	}
	if len(seen) != 27 {
		t.Errorf("vectors of %d types, want all 27", len(seen))
	}
	for key := int16(-1); key < 40; key++ {
		if known := NewClusterRecord(key) != nil; known != seen[key] {
			t.Errorf("type %d: known %t, in the vectors %t", key, known, seen[key])
		}
	}
}

// equateEmpty takes nil and empty for equal only where null cannot be: there they mean the same.
var equateEmpty = cmp.FilterPath(func(p cmp.Path) bool {
	switch p.Last().String() {
	case ".LogDirs", ".Replicas", ".ISR", ".RemovingReplicas", ".AddingReplicas", ".Directories", ".Entity", ".EndPoints",
		".Features", ".Renewers", ".Salt", ".StoredKey", ".ServerKey":
		return true
	}
	return false
}, cmp.Comparer(func(a, b any) bool {
	if reflect.ValueOf(a).Len()+reflect.ValueOf(b).Len() == 0 {
		return true
	}
	return cmp.Equal(a, b)
}))

// The keys and values of group records read as what Kafka wrote.
func TestGroup_AsKafkaWritesIt(t *testing.T) {
	count := 0
	for _, v := range vectors(t) {
		if v.kind != "group" {
			continue
		}
		count++
		t.Run(fmt.Sprintf("%s/%d", v.name, v.version), func(t *testing.T) {
			switch v.name {
			case "OffsetCommitValue":
				got, err := ParseOffsetCommitValue(v.bytes)
				if err != nil {
					t.Fatal(err)
				}
				if again := got.AppendTo(nil); !bytes.Equal(again, v.bytes) {
					t.Errorf("written again:\n%x\nwant\n%x", again, v.bytes)
				}
				if (got.LeaderEpoch == -1) != (v.version < 3) || (got.ExpireTimestamp == -1) != (v.version != 1) || got.Metadata != "metadata-0" {
					t.Errorf("got %+v", got)
				}
				if v.version == 1 || v.version == 4 {
					if again := AppendOffsetCommitValue(nil, got); !bytes.Equal(again, v.bytes) {
						t.Errorf("written as\n%x\nwant\n%x", again, v.bytes)
					}
				}
			case "GroupMetadataValue":
				got, err := ParseGroupMetadataValue(v.bytes)
				if err != nil {
					t.Fatal(err)
				}
				if again := got.AppendTo(nil); !bytes.Equal(again, v.bytes) {
					t.Errorf("written again:\n%x\nwant\n%x", again, v.bytes)
				}
				if (got.CurrentStateTimestamp == -1) != (v.version < 2) || len(got.Members) != 2 || got.Members[1].ClientID != "clientid-1" ||
					(got.Members[0].RebalanceTimeoutMillis == -1) != (v.version < 1) {
					t.Errorf("got %+v", got)
				}
				if v.version == 3 {
					if again := AppendGroupMetadataValue(nil, got); !bytes.Equal(again, v.bytes) {
						t.Errorf("written as\n%x\nwant\n%x", again, v.bytes)
					}
				}
			default:
				got, err := ParseGroupKey(v.bytes)
				if err != nil {
					t.Fatal(err)
				}
				again := AppendGroupMetadataKey(nil, got.Group)
				if got.IsOffsetCommit() {
					again = AppendOffsetCommitKey(nil, got.Group, got.Topic, got.Partition)
				}
				if v.name == "LegacyOffsetCommitKey" {
					again[1] = 0
				}
				if !bytes.Equal(again, v.bytes) || !got.Known() {
					t.Errorf("%+v written again:\n%x\nwant\n%x", got, again, v.bytes)
				}
			}
		})
	}
	if count != 13 {
		t.Errorf("%d vectors of group records, want 13", count)
	}
}
