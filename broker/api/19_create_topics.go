package api

// CreateTopics (key 19): new topics, each with a number of partitions and replicas or with an assignment of its own.
//
// Versions 2–7: 3 as 2; 4 lets partitions and replicas be -1, the broker's default; 5 is flexible and answers with the partitions,
// replicas and configs that the topic has got; 6 may answer THROTTLING_QUOTA_EXCEEDED; 7 adds the topic id.
//
// As Apache Kafka: each topic succeeds or fails for itself, validate_only changes nothing, and the topics are led by somebody when the
// answer arrives.

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/metadata"
)

func (h *Handlers) createTopics(c *Context, request *kmsg.CreateTopicsRequest) Reply {
	return h.change(c, request.TimeoutMillis, metadata.CreateTopics(request), func(code int16, message *string) kmsg.Response {
		response := kmsg.NewPtrCreateTopicsResponse()
		for i := range request.Topics {
			t := kmsg.NewCreateTopicsResponseTopic()
			t.Topic, t.ErrorCode, t.ErrorMessage = request.Topics[i].Topic, code, message
			t.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
			response.Topics = append(response.Topics, t)
		}
		return response
	})
}
