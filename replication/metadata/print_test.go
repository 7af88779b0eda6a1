package metadata

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
)

// printRecord shows the fields that differ from the record's defaults.
func printRecord(r logrecord.ClusterRecord) string {
	v, standard := reflect.ValueOf(r).Elem(), reflect.ValueOf(logrecord.NewClusterRecord(r.Key())).Elem()
	var out strings.Builder
	out.WriteString(strings.TrimSuffix(v.Type().Name(), "Record"))
	for i := range v.NumField() {
		if reflect.DeepEqual(v.Field(i).Interface(), standard.Field(i).Interface()) {
			continue
		}
		fmt.Fprintf(&out, " %s=%s", v.Type().Field(i).Name, printValue(v.Field(i).Interface()))
	}
	return out.String()
}

func printValue(v any) string {
	switch v := v.(type) {
	case uuid.UUID:
		return v.String()
	case []uuid.UUID:
		return fmt.Sprint(v)
	case *string:
		if v == nil {
			return "null"
		}
		return fmt.Sprintf("%q", *v)
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%v", v)
}

func code(c int16) string {
	if c == 0 {
		return "ok"
	}
	return kerr.ErrorForCode(c).(*kerr.Error).Message
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return ": " + *s
}

func printResponse(r kmsg.Response) string {
	var out strings.Builder
	switch r := r.(type) {
	case *kmsg.CreateTopicsResponse:
		for _, t := range r.Topics {
			fmt.Fprintf(&out, "%s %s%s", t.Topic, code(t.ErrorCode), text(t.ErrorMessage))
			if t.ErrorCode == 0 {
				fmt.Fprintf(&out, " partitions=%d rf=%d", t.NumPartitions, t.ReplicationFactor)
				for _, c := range t.Configs {
					fmt.Fprintf(&out, " %s=%s(%d)", c.Name, *c.Value, c.Source)
				}
			}
			out.WriteString("\n")
		}
	case *kmsg.DeleteTopicsResponse:
		for _, t := range r.Topics {
			name := "null"
			if t.Topic != nil {
				name = *t.Topic
			}
			fmt.Fprintf(&out, "%s %s %s%s\n", name, uuid.UUID(t.TopicID), code(t.ErrorCode), text(t.ErrorMessage))
		}
	case *kmsg.CreatePartitionsResponse:
		for _, t := range r.Topics {
			fmt.Fprintf(&out, "%s %s%s\n", t.Topic, code(t.ErrorCode), text(t.ErrorMessage))
		}
	case *kmsg.IncrementalAlterConfigsResponse:
		for _, t := range r.Resources {
			fmt.Fprintf(&out, "%d %q %s%s\n", t.ResourceType, t.ResourceName, code(t.ErrorCode), text(t.ErrorMessage))
		}
	case *kmsg.AlterConfigsResponse:
		for _, t := range r.Resources {
			fmt.Fprintf(&out, "%d %q %s%s\n", t.ResourceType, t.ResourceName, code(t.ErrorCode), text(t.ErrorMessage))
		}
	case *kmsg.BrokerRegistrationResponse:
		fmt.Fprintf(&out, "%s epoch=%d\n", code(r.ErrorCode), r.BrokerEpoch)
	case *kmsg.BrokerHeartbeatResponse:
		fmt.Fprintf(&out, "%s caught-up=%t fenced=%t should-shutdown=%t\n", code(r.ErrorCode), r.IsCaughtUp, r.IsFenced, r.ShouldShutdown)
	case *kmsg.UnregisterBrokerResponse:
		fmt.Fprintf(&out, "%s%s\n", code(r.ErrorCode), text(r.ErrorMessage))
	case *kmsg.AllocateProducerIDsResponse:
		fmt.Fprintf(&out, "%s start=%d len=%d\n", code(r.ErrorCode), r.ProducerIDStart, r.ProducerIDLen)
	case *kmsg.ElectLeadersResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&out, "%s-%d %s%s\n", t.Topic, p.Partition, code(p.ErrorCode), text(p.ErrorMessage))
			}
		}
	case *kmsg.AlterPartitionResponse:
		fmt.Fprintf(&out, "%s\n", code(r.ErrorCode))
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&out, "%s-%d %s leader=%d/%d isr=%v epoch=%d recovery=%d\n", uuid.UUID(t.TopidID), p.Partition, code(p.ErrorCode), p.LeaderID, p.LeaderEpoch, p.ISR, p.PartitionEpoch, p.LeaderRecoveryState)
			}
		}
	default:
		fmt.Fprintf(&out, "%+v\n", r)
	}
	return out.String()
}

func printDelta(d *Delta) string {
	var out strings.Builder
	names := func(what string, topics []*Topic) {
		for _, t := range topics {
			fmt.Fprintf(&out, "delta %s %s\n", what, t.Name)
		}
	}
	names("created", d.TopicsCreated)
	for _, c := range d.TopicsChanged {
		fmt.Fprintf(&out, "delta changed %s %v\n", c.Topic.Name, c.Partitions)
	}
	names("deleted", d.TopicsDeleted)
	for _, c := range d.ConfigsChanged {
		fmt.Fprintf(&out, "delta configs %s %q\n", c.Type, c.Name)
	}
	if len(d.BrokersChanged) > 0 {
		fmt.Fprintf(&out, "delta brokers %v\n", d.BrokersChanged)
	}
	if len(d.FeaturesChanged) > 0 {
		fmt.Fprintf(&out, "delta features %v\n", d.FeaturesChanged)
	}
	return out.String()
}

// printImage shows all of an image, for comparison and in scripts.
func printImage(i *Image) string {
	var out strings.Builder
	fmt.Fprintf(&out, "offset %d\n", i.Offset())
	levels, _ := i.FinalizedFeatures()
	for _, f := range slices.Sorted(maps.Keys(levels)) {
		fmt.Fprintf(&out, "feature %s=%d\n", f, levels[f])
	}
	for b := range i.Brokers() {
		fmt.Fprintf(&out, "broker %d epoch=%d", b.ID, b.Epoch)
		if b.Fenced {
			out.WriteString(" fenced")
		}
		if b.InControlledShutdown {
			out.WriteString(" shutting-down")
		}
		if b.Rack != "" {
			fmt.Fprintf(&out, " rack=%s", b.Rack)
		}
		for _, name := range slices.Sorted(maps.Keys(b.Endpoints)) {
			fmt.Fprintf(&out, " %s=%s:%d", name, b.Endpoints[name].Host, b.Endpoints[name].Port)
		}
		out.WriteString("\n")
	}
	for t := range i.Topics() {
		fmt.Fprintf(&out, "topic %s %s\n", t.Name, t.ID)
		if same, _ := i.TopicByID(t.ID); same != t {
			fmt.Fprintf(&out, "!! by id it is %v\n", same)
		}
		for n, p := range t.Partitions {
			fmt.Fprintf(&out, "  %d leader=%d/%d isr=%v replicas=%v epoch=%d", n, p.Leader, p.LeaderEpoch, p.ISR, p.Replicas, p.PartitionEpoch)
			if len(p.Adding) > 0 {
				fmt.Fprintf(&out, " adding=%v", p.Adding)
			}
			if len(p.Removing) > 0 {
				fmt.Fprintf(&out, " removing=%v", p.Removing)
			}
			if len(p.ELR) > 0 {
				fmt.Fprintf(&out, " elr=%v", p.ELR)
			}
			if len(p.LastKnownELR) > 0 {
				fmt.Fprintf(&out, " last-known=%v", p.LastKnownELR)
			}
			if p.Recovering {
				out.WriteString(" recovering")
			}
			out.WriteString("\n")
		}
	}
	for r, configs := range i.ConfigResources() {
		fmt.Fprintf(&out, "configs %s %q %v\n", r.Type, r.Name, configs)
	}
	for a := range i.AccessControlEntries() {
		fmt.Fprintf(&out, "%s\n", printRecord(a))
	}
	for s := range i.ScramCredentials() {
		fmt.Fprintf(&out, "%s\n", printRecord(s))
	}
	for q := range i.ClientQuotas() {
		fmt.Fprintf(&out, "quota %s %v\n", quotaKey(q.Entity), q.Values)
	}
	for _, name := range slices.Sorted(maps.Keys(i.tokens())) {
		fmt.Fprintf(&out, "token %s\n", name)
	}
	if i.nextProducerID >= 0 {
		fmt.Fprintf(&out, "next producer id %d\n", i.nextProducerID)
	}
	return out.String()
}

func (i *Image) tokens() map[string]bool {
	all := map[string]bool{}
	for t := range i.DelegationTokens() {
		all[t.TokenID] = true
	}
	return all
}
