package api

import (
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxAnswerBytes is what one request may make of a few bytes: who asks for the same large group, or all configs of a broker, a million times
// in one request would have a million of them built. It is what Kafka's own clients take at most. Answers that are files are not counted.
const maxAnswerBytes = 100 << 20

// answerSize adds up how large an answer grows while it is made, roughly. Answers whose parts may each be much larger than what asks for
// them are counted.
type answerSize struct{ bytes atomic.Int64 }

// add counts n bytes and reports whether the answer may be made.
func (a *answerSize) add(n int) bool { return a.bytes.Add(int64(n)) <= maxAnswerBytes }

// over reports that the answer is too large to be made.
func (a *answerSize) over() bool { return a.bytes.Load() > maxAnswerBytes }

// answerTooLarge ends the connection: no API has an error for this.
func answerTooLarge() Reply {
	return Hangup(fmt.Sprintf("its answer would have more than %d bytes", maxAnswerBytes))
}

// elementBytes is what an element of an answer takes beside its strings, in memory or encoded.
const elementBytes = 64

func textBytes(texts ...*string) (n int) {
	for _, t := range texts {
		if t != nil {
			n += len(*t)
		}
	}
	return n
}

func describedGroupBytes(g *kmsg.DescribeGroupsResponseGroup) int {
	n := elementBytes + len(g.Group)
	for i := range g.Members {
		m := &g.Members[i]
		n += 2*elementBytes + len(m.MemberID) + len(m.ClientID) + len(m.ClientHost) + len(m.ProtocolMetadata) + len(m.MemberAssignment) + textBytes(m.InstanceID)
	}
	return n
}

func fetchedOffsetsBytes(g *kmsg.OffsetFetchResponseGroup) int {
	n := elementBytes + len(g.Group)
	for i := range g.Topics {
		n += elementBytes + len(g.Topics[i].Topic)
		for j := range g.Topics[i].Partitions {
			n += elementBytes + textBytes(g.Topics[i].Partitions[j].Metadata)
		}
	}
	return n
}

func describedConfigBytes(c *kmsg.DescribeConfigsResponseResourceConfig) int {
	n := 2*elementBytes + len(c.Name) + textBytes(c.Value, c.Documentation)
	for i := range c.ConfigSynonyms {
		n += elementBytes + len(c.ConfigSynonyms[i].Name) + textBytes(c.ConfigSynonyms[i].Value)
	}
	return n
}
