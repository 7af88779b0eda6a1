package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

// TestBadInput_Repetition: the same large thing asked for again and again in one request must not become one enormous answer.
func TestBadInput_Repetition(t *testing.T) {
	p := own(t, "--log-level", "warn")
	setup := sluicetest.Dial(t, p.Address)
	topic := fresh("many")
	id := createTopic(t, setup, topic, 100)
	m := memberOf(t, p.Address, fresh("large"), lastGroupVersions)
	m.subscribed = []string{strings.Repeat("x", 30_000)}
	m.sessionMs = 300_000
	form(t, m)
	noted := fresh("noted")
	commit := commitRequest(noted, topic, id, 1, 0)
	commit.Topics[0].Partitions[0].Metadata = kmsg.StringPtr(strings.Repeat("x", 4000))
	waitForCoordinator(t, setup, noted)
	mustCommit(t, setup, 9, commit)
	b := startBystander(t, p.Address)

	const times = 20_000
	metadata := kmsg.NewPtrMetadataRequest()
	configs := kmsg.NewPtrDescribeConfigsRequest()
	configs.IncludeDocumentation, configs.IncludeSynonyms = true, true
	groups := kmsg.NewPtrDescribeGroupsRequest()
	offsets, partitionsOfOne := kmsg.NewPtrOffsetFetchRequest(), kmsg.NewPtrOffsetFetchRequest()
	one := kmsg.NewOffsetFetchRequestGroup()
	one.Group, one.Topics = noted, []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, Partitions: make([]int32, 10*times)}}
	partitionsOfOne.Groups = append(partitionsOfOne.Groups, one)
	find := kmsg.NewPtrFindCoordinatorRequest()
	listed := kmsg.NewPtrListOffsetsRequest()
	listed.ReplicaID = -1
	listed.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic}}
	fetched := fetchRequest(topic, id, 0, 0)
	dirs := kmsg.NewPtrDescribeLogDirsRequest()
	producers := kmsg.NewPtrDescribeProducersRequest()
	partitions := kmsg.NewPtrDescribeTopicPartitionsRequest()
	epochs := kmsg.NewPtrOffsetForLeaderEpochRequest()
	for range times {
		named := kmsg.NewMetadataRequestTopic()
		named.Topic = &topic
		metadata.Topics = append(metadata.Topics, named)
		configs.Resources = append(configs.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1"})
		groups.Groups = append(groups.Groups, m.group)
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = noted
		offsets.Groups = append(offsets.Groups, g)
		find.CoordinatorKeys = append(find.CoordinatorKeys, m.group)
		o := kmsg.NewListOffsetsRequestTopicPartition()
		o.Timestamp = -1
		listed.Topics[0].Partitions = append(listed.Topics[0].Partitions, o)
		fetched.Topics[0].Partitions = append(fetched.Topics[0].Partitions, fetched.Topics[0].Partitions[0])
		dirs.Topics = append(dirs.Topics, kmsg.DescribeLogDirsRequestTopic{Topic: topic, Partitions: []int32{0}})
		producers.Topics = append(producers.Topics, kmsg.DescribeProducersRequestTopic{Topic: topic, Partitions: []int32{0}})
		partitions.Topics = append(partitions.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: topic})
		epochs.Topics = append(epochs.Topics, kmsg.OffsetForLeaderEpochRequestTopic{Topic: topic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{kmsg.NewOffsetForLeaderEpochRequestTopicPartition()}})
	}
	for _, req := range []kmsg.Request{metadata, configs, groups, offsets, partitionsOfOne, find, listed, fetched, dirs, producers, partitions, epochs} {
		req.SetVersion(min(req.MaxVersion(), 9))
		frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("wire")).AppendRequest(nil, req, 1)
		before := p.ResidentBytes() // what earlier requests have left is in it: memory is given back to the system only after minutes
		c := sluicetest.Dial(t, p.Address)
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Write(frame); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 4)
		_, err := io.ReadFull(c, head)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: neither an answer nor the end", kmsg.NameForKey(req.Key()))
		}
		answer := "the connection was ended"
		if err == nil {
			answer = fmt.Sprintf("an answer of %d bytes", binary.BigEndian.Uint32(head))
		}
		during := (p.ResidentBytes() - before) >> 20
		t.Logf("%s, %d bytes asked: %s, %d MiB more", kmsg.NameForKey(req.Key()), len(frame), answer, during)
		if during > mostForOne>>20 {
			t.Errorf("%s: %d MiB for one request", kmsg.NameForKey(req.Key()), during)
		}
		c.Close()
	}
	wantAlive(t, p)
	b.undisturbed(t)
}

// mostForOne is what one request may take, decoded, while it is served, and encoded.
const mostForOne = 400 << 20
