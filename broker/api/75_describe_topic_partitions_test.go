package api

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Pages of partitions follow each other without a gap, whatever their size.
func TestDescribeTopicPartitions_Pages(t *testing.T) {
	w := serveOn(t, adminHandlers(t, map[string]string{"max.request.partition.size.limit": "4"}), "PLAINTEXT")()
	w.mustCreate(topicRequest("a", 3, 1), topicRequest("b", 5, 1), topicRequest("c", 1, 1))
	every := []string{"a-0", "a-1", "a-2", "b-0", "b-1", "b-2", "b-3", "b-4", "c-0"}
	for _, limit := range []int32{-1, 1, 2, 3, 4, 1000} {
		request := kmsg.NewPtrDescribeTopicPartitionsRequest()
		request.ResponsePartitionLimit = limit
		var got []string
		for {
			answer := ask[*kmsg.DescribeTopicPartitionsResponse](w, request)
			inPage := 0
			for _, topic := range answer.Topics {
				if topic.ErrorCode != 0 || topic.AuthorizedOperations != 3576 || topic.TopicID == noID {
					t.Fatalf("%+v", topic)
				}
				for _, p := range topic.Partitions {
					got = append(got, fmt.Sprint(*topic.Topic, "-", p.Partition))
					inPage++
					if p.LeaderID != 1 || !cmp.Equal(p.Replicas, []int32{1}) || !cmp.Equal(p.ISR, []int32{1}) {
						t.Errorf("%+v", p)
					}
				}
			}
			if inPage > int(max(min(limit, 4), 1)) {
				t.Errorf("limit %d: %d partitions in a page", limit, inPage)
			}
			if answer.NextCursor == nil {
				break
			}
			request.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: answer.NextCursor.Topic, Partition: answer.NextCursor.Partition}
		}
		if diff := cmp.Diff(every, got); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
	}
}

// Topics by name are sorted and answered once; those that do not exist say so; a cursor must be among them.
func TestDescribeTopicPartitions_ByName(t *testing.T) {
	w := serveOn(t, adminHandlers(t, nil), "PLAINTEXT")()
	w.mustCreate(topicRequest("a", 1, 1), topicRequest("b", 1, 1))
	request := kmsg.NewPtrDescribeTopicPartitionsRequest()
	request.ResponsePartitionLimit = 100
	for _, name := range []string{"b", "nope", "a", "b", "no name"} {
		request.Topics = append(request.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: name})
	}
	answers := func() (got []string) {
		for _, topic := range ask[*kmsg.DescribeTopicPartitionsResponse](w, request).Topics {
			got = append(got, fmt.Sprint(*topic.Topic, " ", topic.ErrorCode, " ", len(topic.Partitions)))
		}
		return got
	}
	if diff := cmp.Diff([]string{"a 0 1", "b 0 1", "no name 17 0", "nope 3 0"}, answers()); diff != "" {
		t.Error(diff)
	}
	request.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: "b", Partition: 1 << 30}
	if diff := cmp.Diff([]string{"b 0 0", "no name 17 0", "nope 3 0"}, answers()); diff != "" {
		t.Error(diff)
	}
	for _, cursor := range []kmsg.DescribeTopicPartitionsRequestCursor{{Topic: "c"}, {Topic: "b", Partition: -1}} {
		request.Cursor = &cursor
		if diff := cmp.Diff([]string{"b 42 0", "nope 42 0", "a 42 0", "b 42 0", "no name 42 0"}, answers()); diff != "" {
			t.Error(diff)
		}
	}
}
