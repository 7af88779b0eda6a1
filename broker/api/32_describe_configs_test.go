package api

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func describeConfigs(version int16, resources ...kmsg.DescribeConfigsRequestResource) *kmsg.DescribeConfigsRequest {
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.Version, request.Resources = version, resources
	return request
}

func resource(kind int8, name string, keys ...string) kmsg.DescribeConfigsRequestResource {
	return kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceType(kind), ResourceName: name, ConfigNames: keys}
}

// V26: a topic's and a broker's configs, in every version, with and without synonyms, documentation and a filter.
func TestV26_DescribeConfigs(t *testing.T) {
	w := serveOn(t, adminHandlers(t, map[string]string{"ssl.keystore.password": "s3cret"}), "PLAINTEXT")()
	w.mustCreate(topicRequest("connect-configs", 1, 1, "cleanup.policy", "compact"))
	for version := int16(1); version <= 4; version++ {
		request := describeConfigs(version, resource(2, "connect-configs"), resource(4, "1"), resource(2, "connect-configs", "retention.ms", "none"))
		for _, asked := range []bool{false, true} {
			request.IncludeSynonyms, request.IncludeDocumentation = asked, asked && version >= 3
			answer := ask[*kmsg.DescribeConfigsResponse](w, request).Resources
			topic, broker := byName(answer[0]), byName(answer[1])
			if len(topic) != 37 || len(broker) < 350 || len(answer[2].Configs) != 1 {
				t.Fatalf("version %d: %d, %d and %d configs", version, len(topic), len(broker), len(answer[2].Configs))
			}
			policy := topic["cleanup.policy"]
			if *policy.Value != "compact" || policy.Source != 1 || policy.ReadOnly || policy.IsSensitive {
				t.Errorf("version %d: %+v", version, policy)
			}
			var synonyms []string
			for _, s := range policy.ConfigSynonyms {
				synonyms = append(synonyms, fmt.Sprint(s.Name, "=", nullable(s.Value), " ", int8(s.Source)))
			}
			var want []string
			if asked {
				want = []string{"cleanup.policy=compact 1", "log.cleanup.policy=delete 5"}
			}
			if diff := cmp.Diff(want, synonyms); diff != "" {
				t.Errorf("version %d: %s", version, diff)
			}
			for _, key := range []string{"auto.create.topics.enable", "log.retention.ms", "message.max.bytes", "num.partitions"} {
				if _, ok := broker[key]; !ok {
					t.Errorf("version %d: %s is missing", version, key)
				}
			}
			if secret := broker["ssl.keystore.password"]; !secret.IsSensitive || secret.Value != nil || secret.Source != 4 {
				t.Errorf("version %d: %+v", version, secret)
			}
			if id := broker["node.id"]; !id.ReadOnly || *id.Value != "1" {
				t.Errorf("version %d: %+v", version, id)
			}
			if version < 3 {
				continue
			}
			if (policy.Documentation != nil) != asked {
				t.Errorf("version %d: documentation %v", version, nullable(policy.Documentation))
			}
			for key, kind := range map[string]kmsg.ConfigType{"preallocate": 1, "compression.type": 2, "segment.bytes": 3, "retention.ms": 5, "min.cleanable.dirty.ratio": 6, "cleanup.policy": 7} {
				if topic[key].ConfigType != kind {
					t.Errorf("version %d: type of %s is %d, want %d", version, key, topic[key].ConfigType, kind)
				}
			}
			if broker["offsets.topic.replication.factor"].ConfigType != 4 || broker["principal.builder.class"].ConfigType != 8 || broker["ssl.keystore.password"].ConfigType != 9 {
				t.Errorf("version %d: types", version)
			}
		}
	}
}

func byName(r kmsg.DescribeConfigsResponseResource) map[string]kmsg.DescribeConfigsResponseResourceConfig {
	m := make(map[string]kmsg.DescribeConfigsResponseResourceConfig, len(r.Configs))
	for _, c := range r.Configs {
		m[c.Name] = c
	}
	return m
}

// V26: resources that are not there are refused in the words of Apache Kafka 4.4.0, others of the request are described all the same.
func TestV26_UnknownResources(t *testing.T) {
	w := serveOn(t, adminHandlers(t, nil), "PLAINTEXT")()
	answer := ask[*kmsg.DescribeConfigsResponse](w, describeConfigs(4,
		resource(2, "nope"), resource(4, "7"), resource(4, "x"), resource(8, ""), resource(8, "7"), resource(32, ""), resource(16, ""), resource(2, "a b"),
		resource(2, ""), resource(4, ""), resource(32, "g"), resource(16, "m"), resource(8, "1")))
	want := []string{
		`nope 3  0`,
		`7 42 Unexpected broker id, expected 1 or empty string, but received 7 0`,
		`x 42 Broker id must be an integer, but it is: x 0`,
		` 42 Broker id must not be empty 0`,
		`7 42 Unexpected broker id, expected 1 but received 7 0`,
		` 42 Group name must not be empty 0`,
		` 42 Client metrics subscription name must not be empty 0`,
		`a b 17 Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-' 0`,
		` 17 Topic name is invalid: the empty string is not allowed 0`,
		` 0  0`,
		`g 0  21`,
		`m 0  3`,
		`1 0  0`,
	}
	var got []string
	for _, r := range answer.Resources {
		got = append(got, fmt.Sprint(r.ResourceName, " ", r.ErrorCode, " ", nullable(r.ErrorMessage), " ", len(r.Configs)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, r := range ask[*kmsg.DescribeConfigsResponse](w, describeConfigs(4, resource(4, "1"), resource(99, "x"))).Resources {
		if r.ErrorCode != 42 || nullable(r.ErrorMessage) != kerr.InvalidRequest.Description {
			t.Errorf("%+v", r)
		}
	}
}
