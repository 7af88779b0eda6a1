package wire

import (
	"encoding/binary"
	"math"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

// plausible fills a request with values that a broker would act upon: names that exist, partition 0, short times. Arrays get two elements.
type plausible struct {
	name    string   // of a topic, group, member, config resource
	topicID [16]byte // of the topic
	records []byte   // a batch
}

// request is a filled request of a key in a version, as a frame with its size.
func (p plausible) request(key, version int16) []byte {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	p.fill(reflect.ValueOf(req).Elem(), "")
	req.SetVersion(version)
	switch r := req.(type) {
	case *kmsg.FetchRequest:
		r.ReplicaID, r.SessionID, r.SessionEpoch, r.MaxWaitMillis = -1, 0, -1, 1
		r.ReplicaState.ID = -1
	case *kmsg.ProduceRequest:
		r.Acks, r.TransactionID = -1, nil
	case *kmsg.ListOffsetsRequest:
		r.ReplicaID = -1
	}
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("hostile")).AppendRequest(nil, req, 1)
}

func (p plausible) fill(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		p.fill(v.Elem(), field)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[kmsg.Tags]() {
			return
		}
		for i := range v.NumField() {
			p.fill(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.String:
		v.SetString(p.name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(p.records)
			return
		}
		n := 2
		if field == "Partitions" {
			n = 1
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			p.fill(v.Index(i), field+"s")
		}
	case reflect.Array:
		if v.Type() == reflect.TypeFor[[16]byte]() {
			v.Set(reflect.ValueOf(p.topicID))
		}
	case reflect.Int32, reflect.Int64:
		switch field {
		case "TimeoutMillis", "MaxWaitMillis":
			v.SetInt(100)
		case "SessionTimeoutMillis", "RebalanceTimeoutMillis":
			v.SetInt(6000)
		case "MaxBytes", "PartitionMaxBytes":
			v.SetInt(1 << 10)
		case "ProducerID", "ProducerEpoch", "LeaderEpoch", "CurrentLeaderEpoch", "LastFetchedEpoch", "Timestamp", "Generation":
			v.SetInt(-1)
		}
	case reflect.Int8, reflect.Int16:
		if field == "ProducerEpoch" {
			v.SetInt(-1)
		}
	}
}

// validRequests are a filled request of every key in every version that a broker advertises.
func validRequests(t *testing.T, address string, p plausible) map[[2]int16][]byte {
	t.Helper()
	c := sluicetest.Dial(t, address)
	frames := map[[2]int16][]byte{}
	for _, k := range sluicetest.Ask[*kmsg.ApiVersionsResponse](c, apiVersions("hostile", "1"), 3).ApiKeys {
		known := kmsg.RequestForKey(k.ApiKey)
		if known == nil {
			t.Errorf("key %d is advertised, and unknown to the test", k.ApiKey)
			continue
		}
		for version := k.MinVersion; version <= min(k.MaxVersion, known.MaxVersion()); version++ {
			frames[[2]int16{k.ApiKey, version}] = p.request(k.ApiKey, version)
		}
	}
	return frames
}

// sized is a body as a frame.
func sized(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// header is a request header with client id "x", with an empty tag section where the version asks for one.
func header(key, version int16, flexible bool) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = append(b, 0, 0, 0, 7, 0, 1, 'x')
	if flexible {
		b = append(b, 0)
	}
	return b
}

const hugeLength = math.MaxInt32
