package diff

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// versions are the lowest and highest version of an API that a broker advertises, inclusive.
type versions struct{ min, max int16 }

// served is what the brokers under test advertise, by API key: first Apache Kafka, then Sluice.
var served atomic.Pointer[[2]map[int16]versions]

// servedBySluice says whether answers about an API can be compared at all.
func servedBySluice(key int16) bool {
	s := served.Load()
	if s == nil {
		return true
	}
	_, ok := s[1][key]
	return ok
}

// askVersions asks a broker what it advertises.
func askVersions(address string) (map[int16]versions, error) {
	c := &conn{address: address}
	defer c.close()
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "diff", "1"
	req.SetVersion(4)
	c.send(appendFrame(req, 0), req.ResponseKind())
	a := c.receive(10 * time.Second)
	resp, ok := a.response.(*kmsg.ApiVersionsResponse)
	if !ok || resp.ErrorCode != 0 {
		return nil, fmt.Errorf("%s does not say what it serves: %s %s", address, a.outcome, a.detail)
	}
	all := map[int16]versions{}
	for _, k := range resp.ApiKeys {
		all[k.ApiKey] = versions{k.MinVersion, k.MaxVersion}
	}
	return all, nil
}

// lowestSent is the lowest version that can be sent with success, where Apache Kafka advertises a lower one for the sake of a client.
var lowestSent = map[kmsg.Key]int16{kmsg.Produce: 3}

// testedVersions are the versions of an API that both brokers serve.
func testedVersions(key kmsg.Key) []int16 {
	s := served.Load()
	k, ok := s[0][int16(key)]
	if !ok {
		return nil
	}
	o, ok := s[1][int16(key)]
	if !ok {
		return nil
	}
	var list []int16
	for v := max(k.min, o.min, lowestSent[key]); v <= min(k.max, o.max); v++ {
		list = append(list, v)
	}
	return list
}

// sortedKeys are the API keys that Apache Kafka advertises.
func sortedKeys() []int16 {
	var keys []int16
	for key := range served.Load()[0] {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
