package metadata

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sluice/protocol/logrecord"
	"sluice/protocol/uuid"
)

// A harness drives a machine by script. After each operation it replays all records into a fresh machine and compares.
type harness struct {
	t       *testing.T
	machine *Machine
	log     []logged
	nowMs   int64
	names   map[uuid.UUID]string // what ids are printed as
}

type logged struct {
	offset int64
	record logrecord.ClusterRecord
}

// seeded is a reproducible source of randomness.
func seeded(seed uint64) io.Reader {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

var allFeatures = []Feature{
	{Name: FeatureMetadataVersion, Min: MinMetadataVersion, Max: LatestMetadataVersion, Bootstrap: LatestMetadataVersion},
	{Name: FeatureELR, Max: 1, Bootstrap: 1},
	{Name: "group.version", Max: 1, Bootstrap: 1},
	{Name: "transaction.version", Max: 2},
	{Name: "share.version", Max: 2, Unserved: true},
}

func newHarness(t *testing.T) *harness {
	return &harness{t: t, names: map[uuid.UUID]string{}, nowMs: 1_000_000}
}

func (h *harness) settings() Settings {
	return Settings{
		ClusterID: "test-cluster", NodeID: 1, Voters: []BrokerID{1}, DefaultReplicationFactor: 1, DefaultPartitions: 2, MinInSyncReplicas: 1,
		SessionTimeoutMs: 9000, Features: allFeatures, Configs: stubConfigs{}, Random: seeded(7),
	}
}

// init handles "init [elr=0] [metadata-version=n] [min-isr=n] [rf=n]".
func (h *harness) init(d *datadriven.TestData) string {
	s := h.settings()
	features := slices.Clone(s.Features)
	for i := range features {
		switch features[i].Name {
		case FeatureELR:
			features[i].Bootstrap = int16(intArg(d, "elr", 1))
		case FeatureMetadataVersion:
			features[i].Bootstrap = int16(intArg(d, "metadata-version", LatestMetadataVersion))
		}
	}
	s.MinInSyncReplicas = int32(intArg(d, "min-isr", 1))
	s.DefaultReplicationFactor = int16(intArg(d, "rf", 1))
	s.UncleanLeaderElection = d.HasArg("unclean")
	h.machine = NewMachine(s)
	h.log = nil
	h.machine.SkipTo(0) // the leader change record
	return h.run(ActivationRecords(BootstrapRecords(features)))
}

// run plans, accepts and publishes an operation and prints what came of it.
func (h *harness) run(op Op) string {
	var out strings.Builder
	result, err := h.machine.Plan(op, h.nowMs)
	if err != nil {
		return h.short(fmt.Sprintf("error: %v\n", err))
	}
	for i, r := range result.Records {
		h.log = append(h.log, logged{h.machine.NextOffset() + int64(i), r})
		if topic, ok := r.(*logrecord.TopicRecord); ok {
			h.names[topic.TopicID] = "id(" + topic.Name + ")"
		}
	}
	h.machine.Accept(result)
	if result.Response != nil {
		out.WriteString(printResponse(result.Response))
	}
	for _, r := range result.Records {
		fmt.Fprintf(&out, "record %s\n", printRecord(r))
	}
	out.WriteString(printDelta(h.machine.Publish(1)))
	h.checkReplay()
	if out.Len() == 0 {
		return "ok\n"
	}
	return h.short(out.String())
}

// finalized feature=name level=n replays a level that another program has finalized.
func (h *harness) finalized(d *datadriven.TestData) string {
	r := &logrecord.FeatureLevelRecord{Name: stringArg(d, "feature"), FeatureLevel: int16(intArg(d, "level", 0))}
	offset := h.machine.NextOffset()
	if err := h.machine.Replay(offset, r); err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	h.log = append(h.log, logged{offset, r})
	out := printDelta(h.machine.Publish(1))
	h.checkReplay()
	return out
}

// checkReplay: the replay law.
func (h *harness) checkReplay() {
	h.t.Helper()
	s := h.machine.settings
	fresh := NewMachine(s)
	for _, l := range h.log {
		if err := fresh.Replay(l.offset, l.record); err != nil {
			h.t.Fatalf("replay: %v", err)
		}
	}
	fresh.SkipTo(h.machine.offset)
	fresh.Publish(1)
	if live, replayed := printImage(h.machine.Image()), printImage(fresh.Image()); live != replayed {
		h.t.Fatalf("the live image\n%s\ndiffers from the replayed one\n%s", live, replayed)
	}
}

// short replaces ids by what they are of.
func (h *harness) short(s string) string {
	for id, name := range h.names {
		s = strings.ReplaceAll(s, id.String(), name)
	}
	return s
}

func intArg(d *datadriven.TestData, key string, otherwise int64) int64 {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			n, err := strconv.ParseInt(a.Vals[0], 10, 64)
			if err != nil {
				panic(err)
			}
			return n
		}
	}
	return otherwise
}

func stringArg(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return strings.Join(a.Vals, ",")
		}
	}
	return ""
}

// stubConfigs knows a handful of configs.
type stubConfigs struct{}

func (stubConfigs) ValidateTopicConfigs(configs map[string]string) error {
	for name, value := range configs {
		switch {
		case name == "cleanup.policy" && value != "delete" && value != "compact" && value != "compact,delete" && value != "delete,compact":
			return fmt.Errorf("Invalid value %s for configuration %s", value, name)
		case name == "unknown":
			return fmt.Errorf("Unknown topic config name: %s", name)
		}
	}
	return nil
}

func (stubConfigs) ValidateGroupConfigs(configs map[string]string) error {
	if _, found := configs["unknown"]; found {
		return fmt.Errorf("Unknown group config name: unknown")
	}
	return nil
}

func (stubConfigs) ValidateClientMetricsConfigs(name string, configs map[string]string) error {
	if configs["interval.ms"] == "1" {
		return &Error{42, "Invalid value 1 for interval.ms"}
	}
	return nil
}

func (stubConfigs) ListConfig(t ResourceType, name string) (bool, string) {
	return name == "cleanup.policy", "delete"
}

func (stubConfigs) EffectiveTopicConfigs(topic, node, cluster map[string]string) []TopicConfig {
	value, source := "delete", int8(5)
	if v, set := topic["cleanup.policy"]; set {
		value, source = v, 1
	}
	return []TopicConfig{{Name: "cleanup.policy", Value: &value, Source: source}}
}
