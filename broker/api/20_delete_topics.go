package api

// DeleteTopics (key 20): topics by name, or by id.
//
// Versions 1–6: 2 as 1; 3 may answer TOPIC_DELETION_DISABLED; 4 is flexible; 5 adds the error message and may answer
// THROTTLING_QUOTA_EXCEEDED; 6 takes names or ids, and answers with both.
//
// Differs from Apache Kafka: answers are in the order of the request, there shuffled.

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/metadata"
)

func (h *Handlers) deleteTopics(c *Context, request *kmsg.DeleteTopicsRequest) Reply {
	rejected := func(code int16, message *string) kmsg.Response {
		response := kmsg.NewPtrDeleteTopicsResponse()
		add := func(name *string, id [16]byte) {
			t := kmsg.NewDeleteTopicsResponseTopic()
			t.Topic, t.TopicID, t.ErrorCode, t.ErrorMessage = name, id, code, message
			response.Topics = append(response.Topics, t)
		}
		for i := range request.TopicNames {
			add(&request.TopicNames[i], [16]byte{})
		}
		for i := range request.Topics {
			add(request.Topics[i].Topic, request.Topics[i].TopicID)
		}
		return response
	}
	if !h.Config().DeleteTopicEnable {
		return Respond(rejected(deletionDisabled(request.Version)))
	}
	return h.change(c, request.TimeoutMillis, metadata.DeleteTopics(request), rejected)
}

// deletionDisabled is the error for a request to delete topics where that is switched off; clients of old versions do not know the code.
func deletionDisabled(version int16) (int16, *string) {
	if version < 3 {
		message := "This version does not support topic deletion."
		return kerr.InvalidRequest.Code, &message
	}
	message := "Topic deletion is disabled."
	return kerr.TopicDeletionDisabled.Code, &message
}
