package interchange

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// state is what clients can see of a broker, one fact a line by subject, so that two of them can be compared.
type state map[string]string

// observe asks a broker for everything that a directory holds.
func observe(t *testing.T, address string, groups ...string) state {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cl := open(t, address)
	adm := kadm.NewClient(cl)
	s := state{}

	topics, err := adm.ListTopicsWithInternal(ctx)
	if err != nil {
		t.Fatal(err)
	}
	set := kadm.TopicsSet{}
	for name, topic := range topics {
		s["topic "+name] = fmt.Sprintf("id %s, %d partitions", topic.ID, len(topic.Partitions))
		for n := range topic.Partitions {
			set.Add(name, n)
		}
	}
	starts, ends := listed(t, ctx, topics, adm.ListStartOffsets), listed(t, ctx, topics, adm.ListEndOffsets)
	stable, latest := listed(t, ctx, topics, adm.ListCommittedOffsets), listed(t, ctx, topics, adm.ListMaxTimestampOffsets)
	set.Each(func(name string, n int32) {
		start, _ := starts.Lookup(name, n)
		end, _ := ends.Lookup(name, n)
		lso, _ := stable.Lookup(name, n)
		newest, _ := latest.Lookup(name, n)
		key := fmt.Sprintf("%s-%d", name, n)
		s["offsets "+key] = fmt.Sprintf("%d to %d, stable to %d, newest is %d of %d", start.Offset, end.Offset, lso.Offset, newest.Offset, newest.Timestamp)
		for _, level := range []kgo.IsolationLevel{kgo.ReadUncommitted(), kgo.ReadCommitted()} {
			until := end.Offset
			if level == kgo.ReadCommitted() {
				until = lso.Offset
			}
			summary, epochs := read(t, ctx, address, name, n, start.Offset, until, level)
			s[fmt.Sprintf("records %s isolation %v", key, level)] = summary
			for epoch := range epochs {
				s[fmt.Sprintf("epoch %d of %s", epoch, key)] = epochEnd(t, ctx, adm, name, n, epoch, newestEpoch(epochs), end.Offset)
			}
		}
	})
	producers, err := adm.DescribeProducers(ctx, set)
	if err != nil {
		t.Fatal(err)
	}
	producers.EachProducer(func(p kadm.DescribedProducer) {
		s[fmt.Sprintf("producer %d in %s-%d", p.ProducerID, p.Topic, p.Partition)] =
			fmt.Sprintf("epoch %d, sequence %d, at %d, coordinator epoch %d, transaction from %d", p.ProducerEpoch, p.LastSequence, p.LastTimestamp, p.CoordinatorEpoch, p.CurrentTxnStartOffset)
	})
	observeConfigs(t, ctx, adm, s, slices.Collect(maps.Keys(topics)))
	for _, group := range groups {
		offsets, err := adm.FetchOffsets(ctx, group)
		if err != nil {
			t.Fatal(err)
		}
		offsets.Each(func(o kadm.OffsetResponse) {
			s[fmt.Sprintf("group %s %s-%d", group, o.Topic, o.Partition)] = fmt.Sprintf("at %d, epoch %d, metadata %q, error %v", o.At, o.LeaderEpoch, o.Metadata, o.Err)
		})
	}
	return s
}

func listed(t *testing.T, ctx context.Context, topics kadm.TopicDetails, list func(context.Context, ...string) (kadm.ListedOffsets, error)) kadm.ListedOffsets {
	t.Helper()
	offsets, err := list(ctx, topics.Names()...)
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	return offsets
}

// read reads a partition from start to end and returns the number of records and a hash of everything about them, and the epochs they
// were written in. Markers of transactions count as records.
func read(t *testing.T, ctx context.Context, address, topic string, partition int32, start, end int64, level kgo.IsolationLevel) (string, map[int32]bool) {
	t.Helper()
	hash, count, epochs := sha256.New(), 0, map[int32]bool{}
	cl := open(t, address, kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(start)}}))
	defer cl.Close()
	for next := start; next < end; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%s-%d at %d of %d: %v", topic, partition, next, end, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			fmt.Fprintf(hash, "%d %d %v %q %v %q %v %+v %d %d %d\n", r.Offset, r.Timestamp.UnixMilli(), r.Key == nil, r.Key, r.Value == nil, r.Value, r.Headers, r.Attrs, r.ProducerID, r.ProducerEpoch, r.LeaderEpoch)
			next, count = r.Offset+1, count+1
			epochs[r.LeaderEpoch] = true
		})
	}
	return fmt.Sprintf("%d, sha256 %s", count, hex.EncodeToString(hash.Sum(nil)[:8])), epochs
}

func newestEpoch(epochs map[int32]bool) int32 { return slices.Max(slices.Collect(maps.Keys(epochs))) }

// epochEnd is where an epoch ends. That of the newest with records is the end of the log, whatever epochs without records came after it.
func epochEnd(t *testing.T, ctx context.Context, adm *kadm.Client, topic string, partition, epoch, newest int32, end int64) string {
	t.Helper()
	var request kadm.OffsetForLeaderEpochRequest
	request.Add(topic, partition, epoch)
	responses, err := adm.OffsetForLeaderEpoch(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	r := responses[topic][partition]
	if epoch == newest && r.EndOffset == end {
		return "to the end"
	}
	return fmt.Sprintf("to %d, error %v", r.EndOffset, r.Err)
}

func observeConfigs(t *testing.T, ctx context.Context, adm *kadm.Client, s state, topics []string) {
	t.Helper()
	described, err := adm.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		t.Fatal(err)
	}
	brokers, err := adm.DescribeBrokerConfigs(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range append(described, brokers...) {
		if resource.Err != nil {
			t.Fatalf("configs of %s: %v", resource.Name, resource.Err)
		}
		for _, c := range resource.Configs {
			if c.Source == kmsg.ConfigSourceDynamicTopicConfig || c.Source == kmsg.ConfigSourceDynamicBrokerConfig || c.Source == kmsg.ConfigSourceDynamicDefaultBrokerConfig {
				s[fmt.Sprintf("config %s of %s", c.Key, resource.Name)] = fmt.Sprintf("%s by %s", c.MaybeValue(), c.Source)
			}
		}
	}
}

// without leaves out the facts whose subject begins with one of the prefixes.
func (s state) without(prefixes ...string) state {
	kept := maps.Clone(s)
	maps.DeleteFunc(kept, func(subject, _ string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(subject, p) })
	})
	return kept
}

// mustBe reports every fact that differs.
func (s state) mustBe(t *testing.T, when string, want state) {
	t.Helper()
	subjects := slices.Sorted(maps.Keys(s))
	for subject := range want {
		if _, ok := s[subject]; !ok {
			subjects = append(subjects, subject)
		}
	}
	slices.SortFunc(subjects, cmp.Compare[string])
	for _, subject := range subjects {
		if s[subject] != want[subject] {
			t.Errorf("%s: %s is\n  %q, was\n  %q", when, subject, s[subject], want[subject])
		}
	}
	t.Logf("%s: %d facts compared", when, len(want))
}

func open(t *testing.T, address string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(address)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}
